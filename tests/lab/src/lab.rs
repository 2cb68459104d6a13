//! Boots a lab and holds it: everything in it belongs to this process and ends with it.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kube::Client;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::agent::{self, Program};
use crate::cache::Cache;
use crate::cluster::{self, config, crds, machines, operators, webhooks, workloads, written};
use crate::component::{self, Component};
use crate::control_plane::{self, APISERVER_PORT, ControlPlane, KUBELET_PORT, Programs, SIDE_DOOR};
use crate::faults::{self, Fault, board};
use crate::home::{self, Record, VcenterRecord};
use crate::shape::{FailureDomains, Shape};
use crate::tools::{self, Tools};
use crate::vcenter::{self, Control, Vcenter};
use crate::{health, net, nodes, process, side_door};

/// A running lab.
pub struct Lab {
    pub record: Record,
    /// In the order in which they were started.
    components: Vec<Component>,
    inside: Inside,
}

/// What runs in this very process.
struct Inside {
    agent: agent::Agent,
    _egress: agent::egress::Egress,
    _tasks: tokio::task::JoinSet<()>,
    client: Client,
    /// Where faults of the cluster are put up.
    board: Cache,
    /// By how much an operator's watches are late.
    delay: watch::Sender<Duration>,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Home(#[from] home::Error),
    #[error(transparent)]
    Net(#[from] net::Error),
    #[error(transparent)]
    Tools(#[from] tools::Error),
    #[error(transparent)]
    ControlPlane(#[from] control_plane::Error),
    #[error(transparent)]
    Vcenter(#[from] vcenter::Error),
    #[error(transparent)]
    Cluster(#[from] cluster::Error),
    #[error(transparent)]
    Component(#[from] component::Error),
    #[error(transparent)]
    Agent(#[from] agent::Error),
    #[error(transparent)]
    Kubernetes(#[from] crate::kubernetes::Error),
    #[error(transparent)]
    Faults(#[from] faults::Error),
    #[error(transparent)]
    Unhealthy(#[from] crate::cache::GaveUp),
    #[error("the lab's program {program} did not print what is wanted: {reason}")]
    Printed { program: &'static str, reason: String },
}

/// Tells how far the boot is.
pub type Progress<'a> = &'a mut (dyn FnMut(&str) + Send);

impl Lab {
    /// Boots `shape` in the folder and block of `record` and returns when everything in it is healthy.
    pub async fn boot(mut record: Record, shape: &Shape, tools: &Tools, progress: Progress<'_>) -> Result<Lab, Error> {
        let began = Instant::now();
        let folder = home::of(&record.name);
        let mark = home::mark(&record.name);
        let block = record.block;
        let port = net::vcenter_port(block)?;
        let vcenters = vcenter::plan(shape, block, port)?;
        record.vcenters = vcenters.iter().map(|(vcenter, _)| public(vcenter)).collect();
        home::write(&record)?;

        progress("starting the control plane and the vCenters");
        let programs = Programs {
            etcd: tools.path("etcd")?.to_owned(),
            apiserver: tools.path("kube-apiserver")?.to_owned(),
            controller_manager: tools.path("kube-controller-manager")?.to_owned(),
            scheduler: tools.path("kube-scheduler")?.to_owned(),
        };
        let simulator = async {
            if vcenters.is_empty() {
                return Ok(None);
            }
            let (component, control) = vcenter::start(&mark, &folder, tools.path("vcsim")?, block, &vcenters).await?;
            Ok::<_, Error>(Some((component, control)))
        };
        let plane = async { Ok(ControlPlane::start(&mark, &folder, block, &programs).await?) };
        let ((control_plane, plane), simulator) = tokio::try_join!(plane, simulator)?;
        let (simulator, control) = simulator.unzip();
        let mut components: Vec<Component> = simulator.into_iter().chain(plane).collect();
        let vcenters: Vec<Vcenter> = vcenters.into_iter().map(|(vcenter, _)| vcenter).collect();
        let installation = Installation { shape, folder: &folder, tools, control_plane: &control_plane, vcenters: &vcenters, block };
        let inside = tokio::select! {
            inside = installation.run(mark, control.as_ref(), progress) => inside?,
            error = component::any_died(&mut components) => return Err(error.into()),
        };
        record.boot_seconds = Some(began.elapsed().as_secs_f64());
        home::write(&record)?;
        Ok(Lab { record, components, inside })
    }

    /// Breaks what faults say, and returns, with the reason, when a program that the lab cannot do without has ended.
    pub async fn watch_over(&mut self) -> Error {
        loop {
            tokio::select! {
                error = component::any_died(&mut self.components) => return error.into(),
                () = self.inside.board.changed() => if let Err(error) = self.follow_faults().await {
                    return error;
                },
            }
        }
    }

    async fn follow_faults(&mut self) -> Result<(), Error> {
        let faults = board::seen(&self.inside.board);
        let late = faults.iter().find_map(|fault| match fault {
            Fault::SlowWatch { milliseconds } => Some(Duration::from_millis(u64::from(*milliseconds))),
            _ => None,
        });
        self.inside.delay.send_replace(late.unwrap_or_default());
        for fault in &faults {
            if let Fault::ApiserverRestart { milliseconds } = fault {
                self.restart_apiserver(Duration::from_millis(u64::from(*milliseconds))).await?;
                board::take(&self.inside.client, &board::id(fault)).await?;
                // What is seen until the watch is back is how it was before.
                self.inside.board = board::watch(&self.inside.client).await;
            }
        }
        Ok(())
    }

    async fn restart_apiserver(&mut self, pause: Duration) -> Result<(), Error> {
        let client = self.inside.client.clone();
        let Some(apiserver) = self.components.iter_mut().find(|component| component.name == "kube-apiserver") else { return Ok(()) };
        tracing::info!(?pause, "a fault restarts the apiserver");
        apiserver.restart(pause).await?;
        Ok(apiserver.while_alive(control_plane::ready(&client)).await?)
    }

    /// Ends everything: pods first, then what they spoke to. None is asked, for nobody reads what it would still write, and an
    /// apiserver takes seconds to take its leave.
    pub async fn stop(self) {
        self.inside.agent.shutdown().await;
        for mut component in self.components.into_iter().rev() {
            if let Err(error) = component.kill().await {
                tracing::warn!(name = component.name, %error, "cannot be ended; it ends with this process");
            }
        }
    }
}

fn public(vcenter: &Vcenter) -> VcenterRecord {
    VcenterRecord { name: vcenter.name.clone(), server: vcenter.server.clone(), port: vcenter.port, username: vcenter.username.clone() }
}

/// Which program runs for an image.
fn programs_of(tools: &Tools) -> Result<HashMap<String, Program>, Error> {
    let mut programs: HashMap<String, Program> = tools
        .places()
        .iter()
        .map(|place| (format!("vmi-lab/{}", place.tool.name), Program { path: place.path.clone(), arguments: Vec::new() }))
        .collect();
    let own = process::own_binary().map_err(|source| component::Error::Start { name: "a stand-in".to_owned(), source })?;
    programs.insert("vmi-lab/stand-in".to_owned(), Program { path: own, arguments: vec!["stand-in".to_owned()] });
    let shell = PathBuf::from("/bin/sh");
    programs.insert("vmi-lab/shell".to_owned(), Program { path: shell.clone(), arguments: Vec::new() });
    let crash = "echo 'vmi-lab: a fault ends this container; `vmi-lab fault list` tells which' >&2; exit 1";
    programs.insert(agent::CRASHES.to_owned(), Program { path: shell, arguments: ["-c", crash].map(str::to_owned).to_vec() });
    Ok(programs)
}

/// Nodes that no machine and no virtual machine stands behind.
async fn nodes_without_machines(client: &Client, prefix: &str, count: u8) -> Result<(), Error> {
    for index in 0..count {
        let name = format!("{prefix}-{index}");
        nodes::register(client, &name, &[], "worker").await?;
        let mut status = nodes::node_status(&format!("00000000-0000-4000-8000-00000000000{index}"), true, config::KUBERNETES);
        status["status"]["addresses"] = json!([{"type": "InternalIP", "address": format!("10.0.0.{}", index + 1)}]);
        nodes::report(client, &name, &status, 1).await?;
    }
    Ok(())
}

/// What it takes to fill a running control plane.
struct Installation<'a> {
    shape: &'a Shape,
    folder: &'a Path,
    tools: &'a Tools,
    control_plane: &'a ControlPlane,
    vcenters: &'a [Vcenter],
    block: net::Block,
}

impl Installation<'_> {
    /// Starts what runs in this process, installs the shape, and returns when all of it is healthy.
    async fn run(&self, mark: String, control: Option<&Control>, progress: Progress<'_>) -> Result<Inside, Error> {
        let (plane, client) = (self.control_plane, &self.control_plane.client);
        let kubelet = SocketAddr::new(self.block.control_plane(), KUBELET_PORT);
        let egress = agent::egress::start(&plane.egress, kubelet, client).await?;
        let agent = agent::start(agent::Settings {
            client: client.clone(),
            directory: self.folder.join("pods"),
            programs: programs_of(self.tools)?,
            address: self.block.pods(),
            listen: kubelet,
            serving: agent::Identity { certificate: plane.kubelet.certificate.clone(), key: plane.kubelet.key.clone() },
            client_ca: plane.authority.certificate.clone(),
            apiserver: plane.url.clone(),
            cluster_ca: plane.authority.certificate.clone(),
            mark,
        })
        .await?;
        let mut tasks = tokio::task::JoinSet::new();
        let door = SocketAddr::new(self.block.control_plane(), SIDE_DOOR);
        let listener = TcpListener::bind(door).await.map_err(|source| net::Error::Listen { address: door, source })?;
        let (delay, late) = watch::channel(Duration::ZERO);
        tasks.spawn(side_door::serve(listener, SocketAddr::new(self.block.control_plane(), APISERVER_PORT), late));
        let healthy = async {
            match (control, self.vcenters.first()) {
                (Some(control), Some(source)) => {
                    tasks.spawn(nodes::follow(client.clone(), control.clone(), config::KUBERNETES.to_owned()));
                    self.openshift(control, source, progress).await?;
                }
                _ => self.plain(progress).await?,
            }
            progress("waiting until everything is healthy");
            Ok::<_, Error>(health::wait(client, self.shape).await?)
        };
        tokio::select! {
            healthy = healthy => healthy?,
            error = component::pods::any_dies_at_start(client, self.folder) => return Err(error.into()),
        }
        if let (Some(wanted), Some(source)) = (self.shape.written, self.vcenters.first()) {
            progress("writing a large cluster's objects");
            // Those who would look for their virtual machines.
            for fault in [Fault::MachineControllerCrashLoop, Fault::CcmKilled] {
                board::put(client, &fault).await?;
            }
            health::stopped(client).await?;
            written::write(client, source, wanted).await?;
        }
        let board = board::watch(client).await;
        Ok(Inside { agent, _egress: egress, _tasks: tasks, client: client.clone(), board, delay })
    }

    async fn plain(&self, progress: Progress<'_>) -> Result<(), Error> {
        progress("installing OpenShift's CRDs");
        let client = &self.control_plane.client;
        let manifests = self.tools.manifests(self.shape.generation.name())?;
        cluster::apply_all(client, &cluster::foundation()).await?;
        crds::install(client, &crds::read(&manifests.join("crds"), self.shape)?).await?;
        nodes_without_machines(client, "node", self.shape.plain_nodes).await
    }

    async fn openshift(&self, control: &Control, source: &Vcenter, progress: Progress<'_>) -> Result<(), Error> {
        let (shape, client) = (self.shape, &self.control_plane.client);
        progress("installing OpenShift's CRDs and configuration");
        let manifests = self.tools.manifests(shape.generation.name())?;
        let all = crds::read(&manifests.join("crds"), shape)?;
        cluster::apply_all(client, &cluster::foundation()).await?;
        let (gates, (), ()) = tokio::try_join!(
            self.printed("gates"),
            async { Ok(crds::install(client, &all).await?) },
            self.prepare_source(control, source)
        )?;
        let workloads = workloads::objects(shape, self.block.pods(), &self.folder.join("payload"), &self.control_plane.authority)?;
        workloads::write_payload(&self.folder.join("payload"), &all, &workloads)?;
        cluster::apply_all(client, &config::objects(shape, source, &self.control_plane.url, &gates)?).await?;
        cluster::apply_all(client, &operators::objects(shape)).await?;

        progress("starting machines and controllers");
        let mut rest = machines::install_control_plane(shape, source, control).await?;
        rest.extend(machines::machine_sets(shape, source));
        rest.extend(workloads);
        rest.extend(cluster::more(shape)?);
        cluster::apply_all(client, &rest).await?;
        nodes_without_machines(client, "bare-metal", shape.bare_metal_nodes).await?;

        progress("waiting for admission");
        health::deployments(client, &["machine-api-controllers", "control-plane-machine-set-operator"]).await?;
        let mut admission =
            webhooks::read(&manifests.join("webhooks"), &self.printed("webhooks").await?, &self.control_plane.authority.certificate)?;
        if shape.in_use_policies {
            admission.extend(crds::in_use_policies());
        }
        cluster::apply_all(client, &admission).await?;
        if shape.failure_domains == FailureDomains::None {
            // Nor has such a cluster a control plane machine set.
            return Ok(());
        }
        let domains = machines::source_domains(shape, source);
        health::adopt_control_plane(client, &machines::control_plane_machine_set(source, &domains, "Active")).await?;
        Ok(())
    }

    /// The source as the installer leaves it: folder, ownership tag, and region and zone tags where the user named them.
    async fn prepare_source(&self, control: &Control, source: &Vcenter) -> Result<(), Error> {
        let tags = format!("/vcenters/{}/tags", source.name);
        let folder = json!({"datacenter": source.datacenter(), "path": vcenter::INFRA_ID});
        control.post(&format!("/vcenters/{}/folders", source.name), &folder).await?;
        let owner = json!({"category": format!("openshift-{}", vcenter::INFRA_ID), "tag": vcenter::INFRA_ID, "type": "Folder", "object": vcenter::INFRA_ID});
        control.post(&tags, &owner).await?;
        if self.shape.failure_domains != FailureDomains::Named {
            return Ok(());
        }
        for zone in &source.zones {
            let domain = config::failure_domain(self.shape, source, zone);
            control
                .post(
                    &tags,
                    &json!({"category": "openshift-region", "tag": domain.region, "type": "Datacenter", "object": source.datacenter()}),
                )
                .await?;
            control
                .post(&tags, &json!({"category": "openshift-zone", "tag": domain.zone, "type": "ClusterComputeResource", "object": format!("cluster-{zone}")}))
                .await?;
        }
        Ok(())
    }

    /// What one of the lab's own programs prints, JSON.
    async fn printed(&self, program: &'static str) -> Result<Value, Error> {
        let fail = |reason: String| Error::Printed { program, reason };
        let output = tokio::process::Command::new(self.tools.path(program)?).output().await.map_err(|error| fail(error.to_string()))?;
        if !output.status.success() {
            return Err(fail(String::from_utf8_lossy(&output.stderr).into_owned()));
        }
        serde_json::from_slice(&output.stdout).map_err(|error| fail(error.to_string()))
    }
}
