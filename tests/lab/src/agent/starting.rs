//! Starting a container, or saying why it cannot be started.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Container as Spec;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::container::{self, Exit, Launch};
use super::leases::Claim;
use super::pod::{Happening, PodTask, What};
use super::record::Life;
use super::{environment, logs, probes, reading};
use crate::kubernetes::{self, Kind, LEASE};

/// The prefix of a pod annotation, followed by a container's name, that says which Lease (NAMESPACE/NAME) to delete before that
/// container starts: some controllers do not release theirs and would wait for themselves.
const LEASE_ANNOTATION: &str = "lease.vmi-lab/";
/// The same for a Lease that several pods wait for: it is deleted when its holder has ended.
const SHARED_LEASE_ANNOTATION: &str = "shared-lease.vmi-lab/";

/// Why a container cannot be started: a kubelet's reason and a sentence.
struct Refusal {
    reason: &'static str,
    message: String,
}

impl PodTask {
    /// Starts a container, or shows it as waiting for what it lacks.
    pub async fn start(&mut self, index: usize) {
        let launch = match self.launch(&self.containers[index].spec) {
            Ok(launch) => launch,
            Err(refusal) => {
                let message = refusal.message.clone();
                if self.containers[index].wait(refusal.reason, Some(refusal.message)) {
                    self.shared.events.warning(&self.pod, "Failed", message);
                }
                return;
            }
        };
        let claim = match self.claim_lease(index).await {
            Ok(claim) => claim,
            Err(error) => {
                tracing::warn!(pod = self.name(), %error, "the lease of a container cannot be deleted before its start");
                return self.try_again();
            }
        };
        let container = &self.containers[index];
        let image = container.spec.image.clone().unwrap_or_default();
        self.lives += 1;
        let number = self.lives;
        let path = self.ground.folder.join("logs").join(&container.spec.name).join(format!("{number}.log"));
        let started = logs::start(&path).and_then(|(writer, log)| Ok((container::start(&launch)?, writer, log)));
        let (stop, stopped) = watch::channel(None);
        let mut life = Life { number, image, stop, tasks: JoinSet::new() };
        let (process, writer, log) = match started {
            Ok(started) => started,
            Err(error) => {
                let exit = Exit::not_started(&launch.program, &error);
                self.shared.events.warning(&self.pod, "Failed", format!("Error: {}", exit.message.as_deref().unwrap_or_default()));
                self.containers[index].begun(life, "process://none".to_owned());
                self.containers[index].has_ended(exit);
                // The back-off that follows from this end is found in the next round.
                return self.wake_at(Some(tokio::time::Instant::now()));
            }
        };
        let id = format!("process://{}", process.pid());
        let name = container.spec.name.clone();
        self.shared.logs.enter(self.namespace(), self.name(), &name, self.uid(), log.clone());
        self.watch_life(index, &mut life, (process, claim), writer, stopped, log);
        self.probe(index, &mut life, launch);
        self.containers[index].begun(life, id);
        self.shared.events.normal(&self.pod, "Started", format!("Started container {name}"));
    }

    fn watch_life(
        &self,
        index: usize,
        life: &mut Life,
        (process, claim): (container::Process, Option<Claim>),
        writer: logs::Writer,
        stopped: watch::Receiver<Option<tokio::time::Instant>>,
        log: logs::Log,
    ) {
        let (teller, number) = (self.teller.clone(), life.number);
        let policy = self.containers[index].spec.termination_message_policy.as_deref();
        let last_words_wanted = policy == Some("FallbackToLogsOnError");
        let shared = Arc::clone(&self.shared);
        life.tasks.spawn(async move {
            let mut exit = process.end(writer, stopped).await;
            if let Some(claim) = claim {
                shared.leases.ended(&shared.settings.client, claim).await;
            }
            if last_words_wanted && exit.code != 0 {
                exit.message = reading::last_words(&log).await.ok();
            }
            // Nobody listens any more only where the pod's task has ended, which kills its containers anyway.
            let _ = teller.send(Happening { container: index, life: number, what: What::Ended(exit) });
        });
    }

    fn probe(&self, index: usize, life: &mut Life, launch: Launch) {
        let target = probes::Target {
            launch,
            address: self.shared.settings.address,
            ports: self.ground.ports.clone(),
            spec: self.spec.clone(),
            tls: Arc::clone(&self.shared.tls),
        };
        let (teller, number) = (self.teller.clone(), life.number);
        let spec = self.containers[index].spec.clone();
        life.tasks.spawn(probes::watch(spec, target, move |verdict| {
            let _ = teller.send(Happening { container: index, life: number, what: What::Probed(verdict) });
        }));
    }

    /// The program, arguments and environment of a container.
    fn launch(&self, container: &Spec) -> Result<Launch, Refusal> {
        let refuse = |message: String| Refusal { reason: "CreateContainerConfigError", message };
        if container.restart_policy.as_deref() == Some("Always") {
            return Err(refuse("the lab's node agent has no sidecars among init containers: make it a plain container".to_owned()));
        }
        let mounts = container.volume_mounts.iter().flatten();
        if let Some(mount) = mounts.into_iter().find(|mount| mount.sub_path.is_some() || mount.sub_path_expr.is_some()) {
            let variable = super::ports::variable(&mount.name);
            return Err(refuse(format!("the lab's node agent has no subPath (volume {:?}): use $(LAB_VOLUME_{variable})", mount.name)));
        }
        if container.lifecycle.as_ref().is_some_and(|hooks| hooks.post_start.is_some() || hooks.pre_stop.is_some()) {
            return Err(refuse("the lab's node agent has no lifecycle hooks: leave postStart and preStop out".to_owned()));
        }
        let settings = &self.shared.settings;
        let image = container.image.as_deref().unwrap_or_default();
        let Some(program) = settings.programs.get(image) else {
            let mut known: Vec<_> = settings.programs.keys().map(String::as_str).collect();
            known.sort_unstable();
            let message = format!("Back-off pulling image {image:?}: the lab has no program for it, only for {}", known.join(", "));
            return Err(Refusal { reason: "ImagePullBackOff", message });
        };
        let objects = |kind: Kind, name: &str| self.shared.cache.get(kind, self.namespace(), name);
        let given = self.ground.environment(&self.shared, &self.pod, &self.spec);
        let environment = environment::environment(&self.pod, container, given, &objects, settings.address).map_err(refuse)?;
        // The first word of a command names the program inside the image, and here the image is the program.
        let command = container.command.iter().flatten().skip(1);
        let own = command.chain(container.args.iter().flatten());
        let expanded = own.map(|text| environment::expand(text, |name| environment.get(name).cloned()));
        Ok(Launch {
            program: program.path.clone(),
            arguments: program.arguments.iter().cloned().chain(expanded).collect(),
            environment: environment.clone(),
            directory: self.ground.folder.clone(),
            mark: settings.mark.clone(),
        })
    }

    /// The container's part in a Lease. Of one that only one process holds at a time, waits until nobody does, and deletes what is left.
    async fn claim_lease(&self, index: usize) -> Result<Option<Claim>, kubernetes::Error> {
        let container = &self.containers[index].spec.name;
        let annotated = |prefix: &str| self.pod.metadata.annotations.as_ref()?.get(&format!("{prefix}{container}"));
        if let Some(lease) = annotated(SHARED_LEASE_ANNOTATION) {
            return Ok(Some(Claim::Shared(self.shared.leases.shared(lease))));
        }
        let Some(lease) = annotated(LEASE_ANNOTATION) else { return Ok(None) };
        let claim = self.shared.leases.alone(lease).await;
        let (namespace, name) = lease.split_once('/').unwrap_or((self.namespace(), lease));
        kubernetes::delete(&self.shared.settings.client, LEASE, namespace, name).await?;
        Ok(Some(claim))
    }
}
