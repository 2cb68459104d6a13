//! What is read of pods and of those who own them.

use jiff::Timestamp;
use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::Value;
use vmi_kit::Migration;
use vmi_kit::kind::POD;

use crate::workloads::Workload;

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
    /// When the first of its containers that run now was started.
    pub started: Option<Timestamp>,
    /// Why containers do not run: container, reason, message.
    pub waits: Vec<(String, String, String)>,
    /// The most restarts of one of its containers.
    pub restarts: u64,
    /// The container that was ended last for want of memory, and when.
    pub starved: Option<(String, Timestamp)>,
}

impl View {
    /// The workload as it is in the cache.
    pub fn of(m: &Migration, workload: &'static Workload) -> Self {
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
        let ends = containers().flat_map(|container| {
            let ended = [&container["state"]["terminated"], &container["lastState"]["terminated"]];
            ended
                .into_iter()
                .filter(|ended| ended["reason"] == "OOMKilled")
                .filter_map(|ended| Some((text(&container["name"]), time(&ended["finishedAt"])?)))
        });
        Self {
            name: pod.name_any(),
            uid: pod.uid().unwrap_or_default(),
            leaves: pod.metadata.deletion_timestamp.is_some(),
            ready: ready.is_some_and(|ready| ready["status"] == "True"),
            since: ready.and_then(|ready| time(&ready["lastTransitionTime"])).or_else(|| pod.creation_timestamp().map(|time| time.0)),
            created: pod.creation_timestamp().map(|time| time.0),
            started: list(&status["containerStatuses"]).filter_map(|container| time(&container["state"]["running"]["startedAt"])).min(),
            waits: waits.collect(),
            restarts: containers().filter_map(|container| container["restartCount"].as_u64()).max().unwrap_or(0),
            starved: ends.max_by_key(|(_, when)| *when),
        }
    }
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
