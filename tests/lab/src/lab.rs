//! Boots a lab and holds it: everything in it belongs to this process and ends with it.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::{Value, json};

use crate::agent::{self, Program};
use crate::cluster::{self, config, crds, machines, operators, webhooks, workloads};
use crate::component::{self, Component};
use crate::control_plane::{self, ControlPlane, KUBELET_PORT, Programs};
use crate::home::{self, Record, VcenterRecord};
use crate::shape::Shape;
use crate::tools::{self, Tools};
use crate::vcenter::{self, Control, Vcenter};
use crate::{health, net, nodes, process};

/// A running lab.
pub struct Lab {
    pub record: Record,
    control_plane: ControlPlane,
    vcsim: Option<Component>,
    agent: agent::Agent,
    _egress: agent::egress::Egress,
    _nodes: tokio::task::JoinSet<()>,
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
        let (control_plane, simulator) = tokio::try_join!(plane, simulator)?;
        let client = control_plane.client.clone();

        let egress = agent::egress::start(&control_plane.egress, SocketAddr::new(block.control_plane(), KUBELET_PORT), &client).await?;
        let agent = agent::start(agent::Settings {
            client: client.clone(),
            directory: folder.join("pods"),
            programs: programs_of(tools)?,
            address: block.pods(),
            listen: SocketAddr::new(block.control_plane(), KUBELET_PORT),
            serving: agent::Identity { certificate: control_plane.kubelet.certificate.clone(), key: control_plane.kubelet.key.clone() },
            client_ca: control_plane.authority.certificate.clone(),
            apiserver: control_plane.url.clone(),
            cluster_ca: control_plane.authority.certificate.clone(),
            mark: mark.clone(),
        })
        .await?;

        let mut followers = tokio::task::JoinSet::new();
        let vcenters: Vec<Vcenter> = vcenters.into_iter().map(|(vcenter, _)| vcenter).collect();
        let vcsim = match simulator {
            Some((component, control)) => {
                let installation = Installation { shape, folder: &folder, tools, control_plane: &control_plane, vcenters: &vcenters };
                installation.run(&control, block.pods(), &mut followers, progress).await?;
                Some(component)
            }
            None => {
                progress("installing OpenShift's CRDs");
                let manifests = tools.manifests(shape.generation.name())?;
                cluster::apply_all(&client, &cluster::foundation()).await?;
                crds::install(&client, &crds::read(&manifests.join("crds"), shape)?).await?;
                plain_nodes(&client, shape.plain_nodes).await?;
                None
            }
        };
        progress("waiting until everything is healthy");
        health::wait(&client, shape).await?;

        record.boot_seconds = Some(began.elapsed().as_secs_f64());
        home::write(&record)?;
        Ok(Lab { record, control_plane, vcsim, agent, _egress: egress, _nodes: followers })
    }

    /// Returns, with the reason, when a part that the lab cannot do without has ended.
    pub async fn died(&mut self) -> Error {
        match &mut self.vcsim {
            Some(vcsim) => tokio::select! {
                error = vcsim.died() => error.into(),
                error = self.control_plane.died() => error.into(),
            },
            None => self.control_plane.died().await.into(),
        }
    }

    /// Ends everything: pods first, for they hold sessions and leases, then what they spoke to.
    pub async fn stop(self) {
        self.agent.shutdown().await;
        self.control_plane.stop().await;
        if let Some(vcsim) = self.vcsim {
            vcsim.stop().await;
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
    programs.insert("vmi-lab/shell".to_owned(), Program { path: PathBuf::from("/bin/sh"), arguments: Vec::new() });
    Ok(programs)
}

/// Nodes without machines, for tests of single parts.
async fn plain_nodes(client: &kube::Client, count: u8) -> Result<(), Error> {
    for index in 0..count {
        let name = format!("node-{index}");
        nodes::register(client, &name, &[], "worker").await?;
        let mut status = nodes::node_status(&format!("00000000-0000-4000-8000-00000000000{index}"), true, config::KUBERNETES);
        status["status"]["addresses"] = json!([{"type": "InternalIP", "address": format!("10.0.0.{}", index + 1)}]);
        nodes::report(client, &name, &status, 1).await?;
    }
    Ok(())
}

/// What it takes to install OpenShift into a running control plane.
struct Installation<'a> {
    shape: &'a Shape,
    folder: &'a Path,
    tools: &'a Tools,
    control_plane: &'a ControlPlane,
    vcenters: &'a [Vcenter],
}

impl Installation<'_> {
    async fn run(
        &self,
        control: &Control,
        pods: std::net::IpAddr,
        followers: &mut tokio::task::JoinSet<()>,
        progress: Progress<'_>,
    ) -> Result<(), Error> {
        let (shape, client) = (self.shape, &self.control_plane.client);
        let Some(source) = self.vcenters.first() else { return Ok(()) };
        progress("installing OpenShift's CRDs and configuration");
        let manifests = self.tools.manifests(shape.generation.name())?;
        let all = crds::read(&manifests.join("crds"), shape)?;
        cluster::apply_all(client, &cluster::foundation()).await?;
        let (gates, (), ()) = tokio::try_join!(
            self.printed("gates"),
            async { Ok(crds::install(client, &all).await?) },
            self.prepare_source(control, source)
        )?;
        let workloads = workloads::objects(shape, pods, &self.folder.join("payload"), &self.control_plane.authority)?;
        workloads::write_payload(&self.folder.join("payload"), &all, &workloads)?;
        cluster::apply_all(client, &config::objects(shape, source, &self.control_plane.url, &gates)?).await?;
        cluster::apply_all(client, &operators::objects(&shape.version)).await?;

        progress("starting machines and controllers");
        followers.spawn(nodes::follow(client.clone(), control.clone(), config::KUBERNETES.to_owned()));
        let mut rest = machines::install_control_plane(shape, source, control).await?;
        rest.extend(machines::machine_sets(shape, source));
        rest.extend(workloads);
        cluster::apply_all(client, &rest).await?;

        progress("waiting for admission");
        health::deployments(client, &["machine-api-controllers", "control-plane-machine-set-operator"]).await?;
        let mut admission =
            webhooks::read(&manifests.join("webhooks"), &self.printed("webhooks").await?, &self.control_plane.authority.certificate)?;
        if shape.in_use_policies {
            admission.extend(crds::in_use_policies());
        }
        cluster::apply_all(client, &admission).await?;
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
        if self.shape.failure_domains != crate::shape::FailureDomains::Named {
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
