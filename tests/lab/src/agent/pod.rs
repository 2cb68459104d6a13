//! One pod's task: it sees what is wanted, acts, writes the status and waits for the next event.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, PodCondition, PodSpec, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::DynamicObject;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::container::Exit;
use super::ground::{Ground, Obstacle};
use super::observing::{NodeView, Wish};
use super::probes::Verdict;
use super::record::{Container, Next};
use super::status;
use super::{CRASHES, Shared};
use crate::faults::board;

/// A pod whose object is gone already gets this long to end by itself.
const LAST_SECOND: Duration = Duration::from_secs(1);
/// Between attempts at a request that failed, where no event will tell that it would succeed now.
pub(super) const FIRST_RETRY: Duration = Duration::from_millis(500);
const LONGEST_RETRY: Duration = Duration::from_secs(30);
/// A request that hangs must not keep a pod from being killed for ever.
pub(super) const LONGEST_REQUEST: Duration = Duration::from_secs(30);

pub(super) struct PodTask {
    pub shared: Arc<Shared>,
    pub pod: Pod,
    pub spec: PodSpec,
    pub ground: Ground,
    pub containers: Vec<Container>,
    pub lives: u64,
    pub teller: mpsc::UnboundedSender<Happening>,
    pub happenings: mpsc::UnboundedReceiver<Happening>,
    pub node: NodeView,
    pub address: Option<String>,
    pub started: Time,
    pub conditions: Vec<PodCondition>,
    pub written: Option<(PodStatus, u64)>,
    pub over: bool,
    pub delete_accepted: bool,
    pub wake: Option<Instant>,
    pub retry: Duration,
}

/// Something that happened to a container in one of its lives.
pub(super) struct Happening {
    pub container: usize,
    pub life: u64,
    pub what: What,
}

pub(super) enum What {
    Ended(Exit),
    Probed(Verdict),
}

impl PodTask {
    pub fn new(shared: Arc<Shared>, object: &DynamicObject) -> Result<PodTask, kube::core::dynamic::ParseDynamicObjectError> {
        let pod: Pod = object.clone().try_parse()?;
        let spec = pod.spec.clone().unwrap_or_default();
        let before = pod.status.clone().unwrap_or_default();
        let known = |name: &str| {
            let statuses = before.init_container_statuses.iter().chain(&before.container_statuses);
            statuses.flatten().find(|status| status.name == name)
        };
        let new = |init: bool| move |spec: &k8s_openapi::api::core::v1::Container| Container::new(spec.clone(), init, known(&spec.name));
        let init = spec.init_containers.iter().flatten().map(new(true));
        let containers = init.chain(spec.containers.iter().map(new(false))).collect();
        let part = |text: &Option<String>| text.clone().unwrap_or_default();
        let metadata = &pod.metadata;
        let folder = format!("{}_{}_{}", part(&metadata.namespace), part(&metadata.name), part(&metadata.uid));
        let ground = Ground::new(shared.settings.directory.join("pods").join(folder));
        let (teller, happenings) = mpsc::unbounded_channel();
        Ok(PodTask {
            over: matches!(before.phase.as_deref(), Some("Succeeded" | "Failed")),
            started: before.start_time.clone().unwrap_or_else(status::now),
            conditions: before.conditions.clone().unwrap_or_default(),
            shared,
            pod,
            spec,
            ground,
            containers,
            lives: 0,
            teller,
            happenings,
            node: NodeView::default(),
            address: None,
            written: None,
            delete_accepted: false,
            wake: None,
            retry: FIRST_RETRY,
        })
    }

    pub fn namespace(&self) -> &str {
        self.pod.metadata.namespace.as_deref().unwrap_or_default()
    }

    pub fn name(&self) -> &str {
        self.pod.metadata.name.as_deref().unwrap_or_default()
    }

    pub fn uid(&self) -> &str {
        self.pod.metadata.uid.as_deref().unwrap_or_default()
    }

    pub async fn run(mut self) {
        let shared = self.shared.clone();
        let mut changes = shared.cache.changes();
        let grace = loop {
            changes.mark_unchanged();
            self.wake = None;
            match self.observe() {
                Wish::Gone => break LAST_SECOND,
                Wish::Wait => {}
                Wish::Run => {
                    self.advance().await;
                    self.write_status().await;
                }
                Wish::End(deadline) => self.end(deadline).await,
            }
            let wake = self.wake;
            tokio::select! {
                () = shared.stop.cancelled() => break Duration::ZERO,
                Ok(()) = changes.changed() => {}
                Some(happening) = self.happenings.recv() => self.note(happening),
                () = tokio::time::sleep_until(wake.unwrap_or_else(Instant::now)), if wake.is_some() => {}
            }
            while let Ok(happening) = self.happenings.try_recv() {
                self.note(happening);
            }
        };
        self.stop_all(Instant::now() + grace);
        while self.is_alive()
            && let Some(happening) = self.happenings.recv().await
        {
            self.note(happening);
        }
        shared.logs.forget(self.uid());
        self.ground.clear(&shared);
    }

    /// Brings the pod one step on towards running.
    async fn advance(&mut self) {
        if self.over {
            return;
        }
        let shared = self.shared.clone();
        let laid = tokio::time::timeout(LONGEST_REQUEST, self.ground.lay(&shared, &self.pod, &self.spec)).await;
        let obstacle = match laid {
            Ok(Ok(())) => None,
            Ok(Err(Obstacle::Missing(reason))) => Some(reason),
            Ok(Err(Obstacle::Failed(reason))) => {
                self.try_again();
                Some(reason)
            }
            Err(_) => {
                self.try_again();
                Some("the apiserver does not answer".to_owned())
            }
        };
        if let Some(reason) = obstacle {
            return self.hold(&reason);
        }
        self.wake_at(self.ground.due());
        self.follow_images();
        self.start_containers().await;
        let (init, containers) = self.statuses();
        self.over = !self.is_alive() && matches!(status::phase(&self.spec, &init, &containers), "Succeeded" | "Failed");
    }

    /// Shows why nothing starts; what runs already goes on.
    fn hold(&mut self, reason: &str) {
        let mut changed = false;
        for container in self.containers.iter_mut().filter(|container| container.is_new()) {
            changed |= container.wait("ContainerCreating", Some(reason.to_owned()));
        }
        if changed {
            self.shared.events.warning(&self.pod, "FailedMount", reason);
        }
    }

    async fn start_containers(&mut self) {
        let policy = self.spec.restart_policy.clone().unwrap_or_else(|| "Always".to_owned());
        for index in 0..self.containers.len() {
            if self.containers[index].init && self.containers[index].succeeded() {
                continue;
            }
            if self.containers[index].life.is_none() {
                match self.containers[index].next(&policy, Instant::now()) {
                    Next::Done => {}
                    Next::Start => self.start(index).await,
                    Next::Wait(until, delay) => self.back_off(index, until, &delay),
                }
            }
            if self.containers[index].init {
                // One after the other: the next begins when this one has succeeded.
                for later in self.containers.iter_mut().skip(index + 1).filter(|later| later.is_new()) {
                    later.wait("PodInitializing", None);
                }
                return;
            }
        }
    }

    fn back_off(&mut self, index: usize, until: Instant, delay: &str) {
        let pod = format!("{}_{}({})", self.name(), self.namespace(), self.uid());
        let container = &mut self.containers[index];
        let message = format!("back-off {delay} restarting failed container={} pod={pod}", container.spec.name);
        if container.wait("CrashLoopBackOff", Some(message)) {
            let message = format!("Back-off restarting failed container {} in pod {pod}", container.spec.name);
            self.shared.events.warning(&self.pod, "BackOff", message);
        }
        self.wake_at(Some(until));
    }

    /// A container's image is the one thing of it that may change while it lives; it is then started anew. So a fault that makes
    /// it crash is another image.
    fn follow_images(&mut self) {
        let faults = board::seen(&self.shared.cache);
        let (namespace, name) = (self.namespace().to_owned(), self.name().to_owned());
        let wanted = self.pod.spec.iter().flat_map(|spec| spec.init_containers.iter().flatten().chain(&spec.containers));
        for wanted in wanted {
            let Some(container) = self.containers.iter_mut().find(|container| container.spec.name == wanted.name) else { continue };
            let crashes = board::crashes(&faults, &namespace, &name, &wanted.name);
            let image = if crashes { Some(CRASHES.to_owned()) } else { wanted.image.clone() };
            if container.spec.image != image {
                (container.again, container.at_once) = (true, true);
            }
            if container.life.as_ref().is_some_and(|life| Some(&life.image) != image.as_ref()) {
                container.stop_by(Instant::now() + if crashes { Duration::ZERO } else { grace(&self.spec, None) });
            }
            container.spec.image = image;
        }
    }

    fn note(&mut self, happening: Happening) {
        let Some(container) = self.containers.get_mut(happening.container) else { return };
        if container.life.as_ref().is_none_or(|life| life.number != happening.life) {
            return;
        }
        let name = container.spec.name.clone();
        let events = &self.shared.events;
        match happening.what {
            What::Ended(exit) => container.has_ended(exit),
            What::Probed(Verdict::Started) => container.status.started = Some(true),
            What::Probed(Verdict::Ready) => container.status.ready = true,
            What::Probed(Verdict::NotReady(message)) => {
                container.status.ready = false;
                events.warning(&self.pod, "Unhealthy", format!("Readiness probe failed: {message}"));
            }
            What::Probed(Verdict::Unsupported(message)) => {
                events.warning(&self.pod, "Unhealthy", format!("container {name} will never be ready: {message}"));
            }
            What::Probed(Verdict::Dead(probe, message, own_grace)) => {
                container.again = true;
                container.stop_by(Instant::now() + grace(&self.spec, own_grace));
                events.warning(&self.pod, "Unhealthy", format!("{probe} probe failed: {message}"));
                events.normal(&self.pod, "Killing", format!("Container {name} failed {} probe, will be restarted", probe.to_lowercase()));
            }
        }
    }

    pub fn is_alive(&self) -> bool {
        self.containers.iter().any(|container| container.life.is_some())
    }

    pub fn stop_all(&self, deadline: Instant) {
        for container in &self.containers {
            container.stop_by(deadline);
        }
    }

    pub fn wake_at(&mut self, moment: Option<Instant>) {
        self.wake = [self.wake, moment].into_iter().flatten().min();
    }

    pub fn try_again(&mut self) {
        self.wake_at(Some(Instant::now() + self.retry));
        self.retry = (self.retry * 2).min(LONGEST_RETRY);
    }
}

pub(super) fn grace(spec: &PodSpec, own: Option<i64>) -> Duration {
    let seconds = own.or(spec.termination_grace_period_seconds).unwrap_or(30);
    Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}
