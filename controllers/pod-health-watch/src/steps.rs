//! Steps 9 and 10, and what is like them once the source is gone: pods are replaced, then watched until they are well.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::json;
use vmi_crds::graph::StepName;
use vmi_crds::status::StepState;
use vmi_kit::kind::POD;
use vmi_kit::{Stop, failure};
use vmi_steps::step::sooner;
use vmi_steps::{Migration, Seen, Step, Writer};

use crate::PodHealthWatch;
use crate::health::{self, Health};
use crate::restart::{self, Next, Round};
use crate::view::View;
use crate::workloads::CLOUD_CONTROLLER_MANAGER;

/// Where the pods that have to go are written down on the way back.
const BACK: &str = "pods-back";
/// Why pods that are new already are deleted.
const ASKS_ONCE: &str = "a vCenter did not answer when it started, and it does not ask again by itself";
/// How much longer than it may take a step is left to say by itself what is missing.
const LAST_WORD: Duration = Duration::from_secs(60);

/// When pods are replaced: the names of the steps, and where the pods that have to go are written down.
pub trait When: Send + Sync {
    /// The step that replaces them.
    const RESTARTED: StepName;
    /// The step that watches them.
    const HEALTHY: StepName;
    /// Where they are written down.
    const KEY: &'static str;
}

/// After the target was added.
pub struct Extended;
/// After the source was detached.
pub struct Detached;
/// After the source's credentials were removed: one step does both.
pub struct Removed;

impl When for Extended {
    const RESTARTED: StepName = StepName::PodsRestarted;
    const HEALTHY: StepName = StepName::PodsHealthy;
    const KEY: &'static str = "pods-forward";
}

impl When for Detached {
    const RESTARTED: StepName = StepName::PodsRestartedAfterDetach;
    const HEALTHY: StepName = StepName::PodsHealthyAfterDetach;
    const KEY: &'static str = "pods-detached";
}

impl When for Removed {
    const RESTARTED: StepName = StepName::PodsHealthyAfterRemoval;
    const HEALTHY: StepName = StepName::PodsHealthyAfterRemoval;
    const KEY: &'static str = "pods-removed";
}

/// The pods that had to go last, if it has come to that.
pub fn latest_round(m: &Migration) -> Option<Round> {
    let keys =
        if vmi_crds::turn::rolling_back(&m.vmi) { &[BACK, Extended::KEY][..] } else { &[Removed::KEY, Detached::KEY, Extended::KEY][..] };
    keys.iter().find_map(|key| round(m, key))
}

fn round(m: &Migration, key: &str) -> Option<Round> {
    serde_json::from_value(m.saved(key)?).ok()
}

/// One act.
pub enum Act {
    /// Writes down which pods have to go.
    Save(String, Round),
    /// Deletes a pod.
    Delete(Arc<DynamicObject>),
    /// Deletes a pod that was made for this step and asked a vCenter that did not answer.
    AskAgain(Arc<DynamicObject>),
}

async fn act(act: Act, writer: &mut Writer<'_>) -> Result<(), Stop> {
    let delete = |pod: &DynamicObject| format!("delete pod {}/{}", pod.namespace().unwrap_or_default(), pod.name_any());
    match act {
        Act::Save(key, round) => writer.save(&key, &json!(round)).await,
        Act::Delete(pod) => writer.delete(POD, &pod, &delete(&pod)).await,
        Act::AskAgain(pod) => writer.delete(POD, &pod, &format!("{} once more: {ASKS_ONCE}", delete(&pod))).await,
    }
}

/// Replaces pods.
pub struct Restarted<'a, W>(pub &'a PodHealthWatch, pub PhantomData<W>);

impl<W: When> Step for Restarted<'_, W> {
    const NAME: StepName = W::RESTARTED;
    type Act = Act;

    async fn observe(&self, m: &Migration) -> Result<Seen<Act>, Stop> {
        Ok(replace(self.0, m, W::KEY, "Restarted"))
    }

    async fn observe_undo(&self, m: &Migration) -> Result<Seen<Act>, Stop> {
        Ok(replace(self.0, m, BACK, "Undone"))
    }

    async fn act(&self, _m: &Migration, what: Act, writer: &mut Writer<'_>) -> Result<(), Stop> {
        act(what, writer).await
    }
}

fn replace(controller: &PodHealthWatch, m: &Migration, key: &str, reason: &'static str) -> Seen<Act> {
    let views = View::all(m);
    let changes = restart::changes(&views);
    let now = Timestamp::now();
    if m.vmi.seen().started_at.is_none() {
        let nothing = Round { since: now, uids: Default::default(), ailing: Default::default() };
        return Seen::Todo { act: Act::Save(key.to_owned(), nothing), changes };
    }
    match restart::next(&views, round(m, key).as_ref(), now) {
        Next::Save(list) => {
            // What began after the first of them is not from before the start, whatever happened since.
            let first = [Extended::KEY, BACK].iter().find_map(|key| round(m, key));
            let ailing = first.map_or_else(|| controller.ailing(m, &views), |first| first.ailing);
            Seen::Todo { act: Act::Save(key.to_owned(), Round { ailing, ..list }), changes }
        }
        Next::Delete { namespace, pod } => match m.get(POD, namespace, &pod) {
            Some(pod) => Seen::Todo { act: Act::Delete(pod), changes },
            // It went between two looks; that is an event of its own.
            None => Seen::waiting(format!("waits for pod {namespace}/{pod} to end")),
        },
        Next::Wait { message, until } => Seen::Waiting { message, until },
        Next::Fail(failure) => Seen::Failed(failure),
        Next::Done(message) => Seen::done(reason, message),
    }
}

/// Watches new pods until they are well.
pub struct Healthy<'a, W>(pub &'a PodHealthWatch, pub PhantomData<W>);

impl<W: When> Step for Healthy<'_, W> {
    const NAME: StepName = W::HEALTHY;
    type Act = Act;

    async fn observe(&self, m: &Migration) -> Result<Seen<Act>, Stop> {
        // One step does both where nothing stands between them.
        if W::RESTARTED == W::HEALTHY {
            match replace(self.0, m, W::KEY, "Restarted") {
                Seen::Done { .. } => {}
                other => return Ok(other),
            }
        }
        Ok(watch(self.0, m, W::HEALTHY, W::KEY, "Healthy"))
    }

    async fn observe_undo(&self, m: &Migration) -> Result<Seen<Act>, Stop> {
        Ok(watch(self.0, m, W::HEALTHY, BACK, "Undone"))
    }

    async fn act(&self, _m: &Migration, what: Act, writer: &mut Writer<'_>) -> Result<(), Stop> {
        act(what, writer).await
    }

    fn deadline(&self, m: &Migration) -> Duration {
        m.spec().health.deadline.duration() + LAST_WORD
    }
}

fn watch(controller: &PodHealthWatch, m: &Migration, name: StepName, key: &str, reason: &'static str) -> Seen<Act> {
    let health = &m.spec().health;
    let Some(round) = round(m, key) else {
        let quiet = String::from(health.quiet_period.clone());
        return Seen::waiting(format!(
            "after the restart: watches the logs until they were quiet for {quiet} and every sign of work is there"
        ));
    };
    let now = Timestamp::now();
    let views = View::all(m);
    let again = Again::of(m, name, key);
    let asked = again.as_ref().and_then(|again| again.asked.as_ref());
    let stays = asked.and_then(|asked| restart::stays(&views, &asked.uids));
    if let Some(pod) = stays.and_then(|(namespace, pod)| m.get(POD, namespace, &pod)) {
        return Seen::Todo { act: Act::AskAgain(pod), changes: vec![asks_again()] };
    }
    let mut calm = None;
    let (message, until, mut missing) = match controller.health(m, &round, now) {
        Health::Well(message) => return Seen::done(reason, message),
        Health::NotYet(message, until, missing) => (message, until, missing),
        Health::Unasked(message, from, missing) => {
            calm = again.filter(|again| again.asked.is_none()).map(|again| (again, from));
            (message, None, missing)
        }
    };
    let limit = SignedDuration::try_from(health.deadline.duration()).ok();
    let end = began(m, name).zip(limit).and_then(|(began, limit)| began.checked_add(limit).ok());
    if end.is_none_or(|end| now < end) {
        // That a new process has yet to read the logs is no news of the cluster's.
        let message = if missing.rule == health::UNREAD { said(m, name).unwrap_or(message) } else { message };
        return match calm {
            Some((again, from)) if from <= now => Seen::Todo { act: again.ask(&views, now), changes: vec![asks_again()] },
            Some((_, from)) => {
                let message = format!(
                    "{message}; unless the manager reaches every vCenter, its pods are deleted once more at {} UTC",
                    from.strftime("%H:%M:%S")
                );
                Seen::Waiting { message, until: sooner(Some(from), end) }
            }
            None => Seen::Waiting { message, until: sooner(until, end) },
        };
    }
    // Only time is missing, as after what was wrong has been accepted: it is looked at again when that is over.
    if until.is_some() && m.vmi.step_state(name) == StepState::Failed {
        return Seen::Waiting { message, until };
    }
    missing.message = format!("not healthy after {}: {}", String::from(health.deadline.clone()), missing.message);
    Seen::Failed(Box::new(failure::look(*missing.clone(), missing.look.clone())))
}

/// Pods of the cloud controller manager that an attempt deletes although they are new, once at most: where they are written down before
/// the first of them is deleted, and they, if they are.
struct Again {
    key: String,
    asked: Option<Round>,
}

impl Again {
    fn of(m: &Migration, name: StepName, key: &str) -> Option<Self> {
        let attempt = began(m, name).and(m.vmi.step(name))?.attempts;
        let key = format!("{key}-again-{attempt}");
        Some(Self { asked: round(m, &key), key })
    }

    fn ask(self, views: &[View], now: Timestamp) -> Act {
        let managers = views.iter().filter(|view| view.workload.component == CLOUD_CONTROLLER_MANAGER);
        let uids = managers.flat_map(|view| view.pods.iter().map(|pod| pod.uid.clone())).collect();
        Act::Save(self.key, Round { since: now, uids, ailing: Default::default() })
    }
}

fn asks_again() -> String {
    format!("delete the pods of the cloud controller manager once more: {ASKS_ONCE}")
}

/// What this attempt said last.
fn said(m: &Migration, name: StepName) -> Option<String> {
    began(m, name).and(m.vmi.step(name)).map(|step| step.message.clone())
}

/// When this attempt began, once the vmi shows it: what it shows of an attempt before this one does not count.
fn began(m: &Migration, name: StepName) -> Option<Timestamp> {
    let step = m.vmi.step(name).filter(|step| matches!(step.state, StepState::Active | StepState::Failed))?;
    let began = step.started_at.as_ref()?.0;
    if vmi_crds::turn::rolling_back(&m.vmi) {
        let turned = m.vmi.seen().rolling_back_at.as_ref()?.0;
        return (began > turned).then_some(began);
    }
    Some(began)
}
