//! How the control plane goes from vCenter to vCenter: its machine set is told once where to, and rolls by itself. Pure.

use std::collections::BTreeMap;

use kube::ResourceExt;
use kube::api::DynamicObject;
use serde::Deserialize;
use serde_json::{Value, json};
use vmi_intent::control_plane_set::domains;

use crate::view::{Object, phase, server};

/// The control plane machine set as step 3 saved it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Saved {
    pub spec: Value,
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
}

impl Saved {
    /// Of the one that is there.
    pub fn of(set: &DynamicObject) -> Self {
        Self { spec: set.data["spec"].clone(), labels: set.labels().clone(), annotations: set.annotations().clone() }
    }

    /// Where it was, and as what it is to stay.
    pub fn goal(self) -> Goal {
        let end = self.end();
        let (labels, annotations) = if end.is_some() { (self.labels, self.annotations) } else { Default::default() };
        Goal { spec: self.spec, servers: Vec::new(), end, labels, annotations }
    }

    /// What becomes of the set once it has rolled: its own strategy, or none where it was not at work and its operator is to make it anew.
    pub fn end(&self) -> Option<Value> {
        (self.spec["state"] == "Active").then(|| self.spec["strategy"].clone())
    }
}

/// Where the control plane is to be.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Goal {
    /// What the set is told, without state and strategy.
    pub spec: Value,
    /// The vCenters its machines are to be on.
    pub servers: Vec<String>,
    /// The strategy in the end; none where the set is to go.
    pub end: Option<Value>,
    /// What its owner wrote on the set; nothing where it is to go.
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
}

impl Goal {
    /// Puts back what its owner wrote on the set that was deleted: the operator that makes it anew knows nothing of it. What somebody
    /// has written there since stays.
    pub fn missing(&self, set: &DynamicObject) -> Vec<Value> {
        let said = |saved: &BTreeMap<String, String>, now: &BTreeMap<String, String>, path: &str| {
            let mut all = saved.clone();
            all.extend(now.clone());
            let test = (!now.is_empty()).then(|| json!({"op": "test", "path": path, "value": now}));
            let add = json!({"op": "add", "path": path, "value": all});
            if all == *now { Vec::new() } else { test.into_iter().chain([add]).collect() }
        };
        let mut operations = said(&self.labels, set.labels(), "/metadata/labels");
        operations.extend(said(&self.annotations, set.annotations(), "/metadata/annotations"));
        operations
    }

    /// The spec under which the set rolls, or under which nothing moves by itself.
    pub fn spec(&self, strategy: &str) -> Value {
        let mut spec = self.spec.clone();
        spec["state"] = json!("Active");
        spec["strategy"] = json!({"type": strategy});
        spec
    }
}

/// What is to be done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Make a set for the masters as they are.
    Create,
    /// Tell the set where to.
    Update,
    /// Give it its own strategy back.
    PutBack,
    /// Delete it, so that its operator makes an inactive one.
    Delete,
    /// Let it roll, or go.
    Wait,
    /// Nothing.
    Done,
}

/// Towards the goal; `complete`: whether the set has rolled.
pub fn next(set: Option<&DynamicObject>, masters: &[Object], goal: &Goal, complete: bool) -> Next {
    let moved = !masters.is_empty() && masters.iter().all(|master| serves_on(master, &goal.servers));
    let at_rest = moved && goal.end.is_none();
    let Some(set) = set else { return if at_rest { Next::Done } else { Next::Create } };
    if set.metadata.deletion_timestamp.is_some() {
        return Next::Wait;
    }
    let spec = &set.data["spec"];
    if spec["state"] != "Active" {
        return if at_rest { Next::Done } else { Next::Update };
    }
    if domains(spec) != domains(&goal.spec) {
        return Next::Update;
    }
    let own = goal.end.as_ref() == Some(&spec["strategy"]);
    match (complete, &goal.end) {
        (true, None) => Next::Delete,
        (true, Some(_)) if own => Next::Done,
        (true, Some(_)) => Next::PutBack,
        // Its own strategy is back, and its operator has yet to say that it saw so.
        (false, Some(_)) if own && moved && updated(set) => Next::Wait,
        (false, _) if spec["strategy"]["type"] != "RollingUpdate" => Next::Update,
        (false, _) => Next::Wait,
    }
}

fn serves_on(master: &DynamicObject, servers: &[String]) -> bool {
    phase(master) == "Running" && servers.iter().any(|wanted| wanted == server(master))
}

fn updated(set: &DynamicObject) -> bool {
    set.data["status"]["updatedReplicas"] == set.data["spec"]["replicas"]
}

/// Whether the set has rolled, by the word of all who know; or what is still missing. Right after a change its status is an old one.
pub fn complete(set: &DynamicObject, masters: &[Object], goal: &Goal, etcd: Option<&DynamicObject>) -> Result<(), String> {
    let (spec, status) = (&set.data["spec"], &set.data["status"]);
    let generation = json!(set.metadata.generation);
    if status["observedGeneration"] != generation {
        return Err("its operator has not seen the change yet".to_owned());
    }
    for (kind, wanted) in [("Available", "True"), ("Progressing", "False"), ("Degraded", "False")] {
        let condition = condition(set, kind);
        let (is, message) = (condition["status"].as_str().unwrap_or("not told"), condition["message"].as_str().unwrap_or_default());
        if is != wanted || condition["observedGeneration"] != generation {
            return Err(format!("the control plane machine set says {kind} is {is}: {message}"));
        }
    }
    for count in ["replicas", "updatedReplicas", "readyReplicas"] {
        if status[count] != spec["replicas"] {
            return Err(format!("the control plane machine set has {count} {}, not {}", status[count], spec["replicas"]));
        }
    }
    if status["unavailableReplicas"].as_i64().unwrap_or_default() != 0 || spec["replicas"] != masters.len() {
        return Err(format!("{} of {} control plane machines are available", status["readyReplicas"], spec["replicas"]));
    }
    if let Some(master) = masters.iter().find(|master| !serves_on(master, &goal.servers)) {
        return Err(format!("Machine {} is {} on {}", master.name_any(), phase(master), server(master)));
    }
    let Some(etcd) = etcd else { return Err("there is no ClusterOperator etcd to say whether it is well".to_owned()) };
    for (kind, wanted) in [("Available", "True"), ("Progressing", "False"), ("Degraded", "False")] {
        let condition = condition(etcd, kind);
        if condition["status"] != wanted {
            let message = condition["message"].as_str().unwrap_or_default();
            return Err(format!("ClusterOperator etcd says {kind} is {}: {message}", condition["status"].as_str().unwrap_or("not told")));
        }
    }
    Ok(())
}

/// What etcd's operator says of a member that is not well: no machine of the control plane leaves before it is.
pub fn sick_member(etcd: Option<&DynamicObject>) -> Option<String> {
    let degraded = condition(etcd?, "Degraded");
    let message = degraded["message"].as_str().unwrap_or_default();
    (degraded["status"] == "True").then(|| format!("ClusterOperator etcd says Degraded is True: {message}"))
}

fn condition<'a>(object: &'a DynamicObject, kind: &str) -> &'a Value {
    let all = object.data["status"]["conditions"].as_array().into_iter().flatten();
    all.into_iter().find(|condition| condition["type"] == kind).unwrap_or(&Value::Null)
}

#[cfg(test)]
mod tests;
