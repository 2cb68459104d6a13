//! What is read of pods and of those who own them.

use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::Value;
use vmi_kit::kind::POD;
use vmi_steps::Migration;

use crate::workloads::{WORKLOADS, Workload};

/// Why a container waits that ends again and again.
const LOOPS: &str = "CrashLoopBackOff";
/// A process may end and begin once by design.
const CRASHES: u64 = 3;
/// So long after a crash nobody calls a container well: the kubelet too forgets its back-off only then.
const CALM: SignedDuration = SignedDuration::from_secs(600);
/// So long a container that ended again and again has to run before it counts as mended: that it runs for a moment is part of the loop.
const MENDED: SignedDuration = SignedDuration::from_secs(120);

/// A watched workload as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// Which.
    pub workload: &'static Workload,
    /// How many pods its owner wants; none where there is no such workload.
    pub wanted: Option<u64>,
    /// Since when its owner has had fewer than it wants.
    pub short_since: Option<Timestamp>,
    /// Its pods.
    pub pods: Vec<PodView>,
}

/// A pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodView {
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// Whether it is being deleted.
    pub leaves: bool,
    /// Whether it is Ready.
    pub ready: bool,
    /// Since when it has been so, or not.
    pub since: Option<Timestamp>,
    /// When it was made.
    pub created: Option<Timestamp>,
    /// The node it is on.
    pub node: String,
    /// Its containers.
    pub containers: Vec<String>,
    /// Whether one of them runs or has run, so that there is a log to read.
    pub has_run: bool,
    /// When the first of those that run now was started.
    pub started: Option<Timestamp>,
    /// When one of them ended last with an error.
    pub crashed: Option<Timestamp>,
    /// The container that has ended with an error again and again, and since when it has not: when it was begun again, or ended.
    pub looped: Option<(String, Timestamp)>,
    /// Why containers do not run: container, reason, message.
    pub waits: Vec<(String, String, String)>,
    /// The most restarts of one of its containers.
    pub restarts: u64,
    /// The container that was ended last for want of memory, and when.
    pub starved: Option<(String, Timestamp)>,
}

impl View {
    /// All that are watched.
    pub fn all(m: &Migration) -> Vec<Self> {
        WORKLOADS.iter().map(|workload| Self::of(m, workload)).collect()
    }

    /// The workload as it is in the cache.
    fn of(m: &Migration, workload: &'static Workload) -> Self {
        let owner = m.get(workload.kind, workload.namespace, workload.name);
        let fits =
            |pod: &DynamicObject| workload.labels.iter().all(|(key, value)| pod.labels().get(*key).is_some_and(|label| label == value));
        let pods = m.list(POD, workload.namespace);
        let mut pods: Vec<PodView> = pods.iter().filter(|pod| fits(pod)).map(|pod| PodView::of(pod)).collect();
        pods.sort_by(|a, b| a.name.cmp(&b.name));
        Self {
            workload,
            wanted: owner.as_ref().map(|owner| wanted(owner)),
            short_since: owner.as_ref().and_then(|owner| short_since(owner)),
            pods,
        }
    }

    /// The namespace and name of one of its pods.
    pub fn pod(&self, pod: &PodView) -> String {
        format!("{}/{}", self.workload.namespace, pod.name)
    }
}

impl PodView {
    fn of(pod: &DynamicObject) -> Self {
        let status = &pod.data["status"];
        let ready = condition(status, "Ready");
        let containers = || list(&status["initContainerStatuses"]).chain(list(&status["containerStatuses"]));
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let waits = containers().filter(|container| container["state"]["waiting"].is_object()).map(|container| {
            let waiting = &container["state"]["waiting"];
            (text(&container["name"]), text(&waiting["reason"]), text(&waiting["message"]))
        });
        let ended = || containers().flat_map(ends).filter(|(_, ended)| ended.is_object());
        let starved = ended().filter(|(_, ended)| ended["reason"] == "OOMKilled");
        Self {
            name: pod.name_any(),
            uid: pod.uid().unwrap_or_default(),
            leaves: pod.metadata.deletion_timestamp.is_some(),
            ready: ready.is_some_and(|ready| ready["status"] == "True"),
            since: ready.and_then(|ready| time(&ready["lastTransitionTime"])).or_else(|| pod.creation_timestamp().map(|time| time.0)),
            created: pod.creation_timestamp().map(|time| time.0),
            node: text(&pod.data["spec"]["nodeName"]),
            containers: list(&pod.data["spec"]["containers"]).map(|container| text(&container["name"])).collect(),
            has_run: list(&status["containerStatuses"]).any(has_run),
            started: list(&status["containerStatuses"]).filter_map(|container| time(&container["state"]["running"]["startedAt"])).min(),
            crashed: ended().filter(|(_, ended)| ended["exitCode"] != 0).filter_map(|(_, ended)| time(&ended["finishedAt"])).max(),
            looped: containers().filter_map(looped).max_by_key(|(_, since)| *since),
            waits: waits.collect(),
            restarts: containers().filter_map(|container| container["restartCount"].as_u64()).max().unwrap_or(0),
            starved: starved
                .filter_map(|(container, ended)| Some((text(&container["name"]), time(&ended["finishedAt"])?)))
                .max_by_key(|(_, when)| *when),
        }
    }

    /// The container that ends again and again, and is not even begun again at the moment.
    pub fn crash_loops(&self) -> Option<&str> {
        let (container, _, _) = self.waits.iter().find(|(_, reason, _)| reason == LOOPS)?;
        (self.restarts >= CRASHES).then_some(container)
    }

    /// The container that ends again and again, also if it runs at this very moment: then with the time from which on it does not count.
    pub fn crashes(&self, now: Timestamp) -> Option<(&str, Option<Timestamp>)> {
        if let Some(container) = self.crash_loops() {
            return Some((container, None));
        }
        let (container, since) = self.looped.as_ref()?;
        let mended = since.checked_add(MENDED).ok()?;
        (now < mended).then_some((container, Some(mended)))
    }

    /// Whether it can be asked for the container's log: that of one that waits to begin for the first time is refused.
    pub fn has_log(&self, container: &str) -> bool {
        self.has_run && !self.waits.iter().any(|(name, reason, _)| name == container && reason != LOOPS)
    }

    /// Whether what its log told then was told by a process that still runs.
    pub fn tells(&self, then: Option<Timestamp>) -> bool {
        then.zip(self.started).is_some_and(|(then, started)| then >= started)
    }

    /// Whether it ends again and again, also if it runs at this very moment.
    pub fn ails(&self, now: Timestamp) -> bool {
        let lately = |when: Timestamp| now.duration_since(when) < CALM;
        self.crash_loops().is_some() || (self.restarts >= CRASHES && self.crashed.is_some_and(lately))
    }
}

/// How a container ended, now and before, if it has.
fn ends(container: &Value) -> [(&Value, &Value); 2] {
    ["state", "lastState"].map(|which| (container, &container[which]["terminated"]))
}

/// The container's name and since when it has not ended any more, if it has ended again and again and its last end was an error. One
/// that had run for long before that has not: over weeks many end a few times, as when they lose a lease.
fn looped(container: &Value) -> Option<(String, Timestamp)> {
    container["restartCount"].as_u64().filter(|restarts| *restarts >= CRASHES)?;
    let (_, last) = ends(container).into_iter().find(|(_, ended)| ended.is_object()).filter(|(_, ended)| ended["exitCode"] != 0)?;
    let ended = time(&last["finishedAt"])?;
    time(&last["startedAt"]).is_none_or(|begun| ended.duration_since(begun) < CALM).then_some(())?;
    let since = time(&container["state"]["running"]["startedAt"]).map_or(ended, |begun| begun.max(ended));
    Some((container["name"].as_str()?.to_owned(), since))
}

fn has_run(container: &Value) -> bool {
    let state = &container["state"];
    state["running"].is_object() || state["terminated"].is_object() || container["lastState"]["terminated"].is_object()
}

fn wanted(owner: &DynamicObject) -> u64 {
    let desired = &owner.data["status"]["desiredNumberScheduled"];
    desired.as_u64().or_else(|| owner.data["spec"]["replicas"].as_u64()).unwrap_or(u64::from(desired.is_null()))
}

fn short_since(owner: &DynamicObject) -> Option<Timestamp> {
    let available = condition(&owner.data["status"], "Available");
    match available {
        Some(available) if available["status"] == "True" => None,
        Some(available) => time(&available["lastTransitionTime"]),
        None => owner.creation_timestamp().map(|time| time.0),
    }
}

/// A list, or nothing.
pub fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// A condition of a status.
pub fn condition<'a>(status: &'a Value, name: &str) -> Option<&'a Value> {
    list(&status["conditions"]).find(|condition| condition["type"] == name)
}

/// A time.
pub fn time(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

#[cfg(test)]
mod tests;
