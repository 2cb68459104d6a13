//! What the agent knows of one container across its lives.

use k8s_openapi::api::core::v1::{
    Container as Spec, ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting, ContainerStatus,
};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::backoff::{Backoff, go_duration};
use super::container::Exit;
use super::status::now;

pub(super) struct Container {
    pub spec: Spec,
    pub init: bool,
    pub status: ContainerStatus,
    pub life: Option<Life>,
    ended: Option<Ended>,
    backoff: Backoff,
    /// To be started again whatever its exit code says, because the agent ended it.
    pub again: bool,
    /// To be started again without back-off.
    pub at_once: bool,
}

/// A running process, seen from the pod. Dropping it kills the process.
pub(super) struct Life {
    pub number: u64,
    pub image: String,
    pub stop: watch::Sender<Option<Instant>>,
    /// The life itself and its probes.
    pub tasks: JoinSet<()>,
}

struct Ended {
    code: i32,
    at: Instant,
}

/// What a container without a process is up to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    Start,
    /// Back-off until then; the text is the kubelet's for the delay.
    Wait(Instant, String),
    /// It ended and stays so.
    Done,
}

impl Container {
    /// A container not yet started by this agent; `before` is what its pod's status says of earlier lives, if any.
    pub fn new(spec: Spec, init: bool, before: Option<&ContainerStatus>) -> Container {
        let mut status = ContainerStatus {
            name: spec.name.clone(),
            image: spec.image.clone().unwrap_or_default(),
            started: Some(false),
            ..ContainerStatus::default()
        };
        if let Some(before) = before {
            status.restart_count = before.restart_count;
            status.container_id = before.container_id.clone();
        }
        let mut container =
            Container { spec, init, status, life: None, ended: None, backoff: Backoff::default(), again: false, at_once: false };
        container.wait("ContainerCreating", None);
        container
    }

    pub fn next(&self, policy: &str, now: Instant) -> Next {
        let Some(ended) = &self.ended else { return Next::Start };
        let again = match policy {
            "Never" => false,
            "Always" if !self.init => true,
            _ => ended.code != 0 || self.again,
        };
        if !again {
            return Next::Done;
        }
        if self.at_once {
            return Next::Start;
        }
        match self.backoff.pending(ended.at, now) {
            Some((delay, over)) => Next::Wait(over, go_duration(delay)),
            None => Next::Start,
        }
    }

    pub fn succeeded(&self) -> bool {
        self.life.is_none() && self.ended.as_ref().is_some_and(|ended| ended.code == 0)
    }

    pub fn begun(&mut self, life: Life, id: String) {
        if let Some(ended) = self.ended.take() {
            self.backoff.grant(ended.at, Instant::now());
        }
        (self.again, self.at_once) = (false, false);
        if self.status.container_id.is_some() {
            self.status.restart_count += 1;
        }
        self.remember_last_life();
        self.status.state =
            Some(ContainerState { running: Some(ContainerStateRunning { started_at: Some(now()) }), ..ContainerState::default() });
        self.status.image.clone_from(&life.image);
        self.status.image_id.clone_from(&life.image);
        self.status.container_id = Some(id);
        self.life = Some(life);
    }

    pub fn has_ended(&mut self, exit: Exit) {
        let began = self.status.state.as_ref().and_then(|state| state.running.as_ref()).and_then(|running| running.started_at.clone());
        self.status.state = Some(ContainerState {
            terminated: Some(ContainerStateTerminated {
                exit_code: exit.code,
                signal: exit.signal,
                reason: Some(exit.reason.to_owned()),
                message: exit.message,
                started_at: began,
                finished_at: Some(now()),
                container_id: self.status.container_id.clone(),
            }),
            ..ContainerState::default()
        });
        self.status.ready = self.init && exit.code == 0;
        self.status.started = Some(false);
        self.ended = Some(Ended { code: exit.code, at: Instant::now() });
        self.life = None;
    }

    /// Shows the container as waiting for `reason`; false if it showed exactly that before.
    pub fn wait(&mut self, reason: &str, message: Option<String>) -> bool {
        let waiting = ContainerState {
            waiting: Some(ContainerStateWaiting { reason: Some(reason.to_owned()), message }),
            ..ContainerState::default()
        };
        if self.status.state.as_ref() == Some(&waiting) {
            return false;
        }
        self.remember_last_life();
        self.status.ready = false;
        self.status.state = Some(waiting);
        true
    }

    /// True before the first start.
    pub fn is_new(&self) -> bool {
        self.life.is_none() && self.ended.is_none()
    }

    fn remember_last_life(&mut self) {
        if self.status.state.as_ref().is_some_and(|state| state.terminated.is_some()) {
            self.status.last_state = self.status.state.take();
        }
    }

    /// Asks the process to end by `deadline`; the earliest such wish counts.
    pub fn stop_by(&self, deadline: Instant) {
        if let Some(life) = &self.life {
            life.stop.send_if_modified(|stop| {
                let earlier = stop.is_none_or(|before| deadline < before);
                if earlier {
                    *stop = Some(deadline);
                }
                earlier
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn life(number: u64) -> Life {
        Life { number, image: "vmi-lab/shell".to_owned(), stop: watch::channel(None).0, tasks: JoinSet::new() }
    }

    fn exit(code: i32) -> Exit {
        Exit { code, signal: None, reason: if code == 0 { "Completed" } else { "Error" }, message: None }
    }

    fn after_exit(init: bool, code: i32, policy: &str) -> Next {
        let mut container = Container::new(Spec::default(), init, None);
        assert_eq!(container.next(policy, Instant::now()), Next::Start);
        container.begun(life(1), "id://1".to_owned());
        container.has_ended(exit(code));
        container.next(policy, Instant::now())
    }

    #[test]
    fn the_restart_policy_decides_what_follows_an_exit() {
        assert_eq!(after_exit(false, 0, "Always"), Next::Start);
        assert_eq!(after_exit(false, 1, "OnFailure"), Next::Start);
        assert_eq!(after_exit(false, 0, "OnFailure"), Next::Done);
        assert_eq!(after_exit(false, 1, "Never"), Next::Done);
        assert_eq!(after_exit(true, 0, "Always"), Next::Done);
        assert_eq!(after_exit(true, 1, "Always"), Next::Start);
    }

    #[test]
    fn a_second_crash_waits_and_shows_the_last_life() {
        let mut container = Container::new(Spec::default(), false, None);
        for number in 1..=2 {
            container.begun(life(number), format!("id://{number}"));
            container.has_ended(exit(3));
        }
        let Next::Wait(_, delay) = container.next("Always", Instant::now()) else { panic!("it must wait") };
        assert_eq!(delay, "10s");
        container.wait("CrashLoopBackOff", None);
        let last = container.status.last_state.clone().and_then(|state| state.terminated).unwrap();
        assert_eq!((last.exit_code, last.container_id.as_deref()), (3, Some("id://2")));
        assert_eq!(container.status.restart_count, 1);
        container.at_once = true;
        assert_eq!(container.next("Always", Instant::now()), Next::Start);
    }

    #[test]
    fn a_container_known_from_an_earlier_agent_counts_its_restart() {
        let before = ContainerStatus { restart_count: 4, container_id: Some("id://old".to_owned()), ..ContainerStatus::default() };
        let mut container = Container::new(Spec::default(), false, Some(&before));
        container.begun(life(1), "id://new".to_owned());
        assert_eq!(container.status.restart_count, 5);
    }
}
