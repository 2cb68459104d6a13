//! What the operator writes for a MachineAutoscaler, in its own order, and what the autoscaler makes of the bounds it finds.

use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde_json::{Value, json};

use crate::cluster::machines::NAMESPACE;

const FINALIZER: &str = "machinetarget.autoscaling.openshift.io";
const OWNER: &str = "autoscaling.openshift.io/machineautoscaler";
const MIN: &str = "machine.openshift.io/cluster-api-autoscaler-node-group-min-size";
const MAX: &str = "machine.openshift.io/cluster-api-autoscaler-node-group-max-size";

/// A merge patch of the object of this name.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    Set(String, Value),
    Scaler(String, Value),
    ScalerStatus(String, Value),
}

/// All that a decision looks at.
pub struct Seen<'a> {
    pub scalers: Vec<&'a DynamicObject>,
    pub sets: Vec<&'a DynamicObject>,
    /// The spec of the ClusterAutoscaler, without which nothing is scaled.
    pub cluster: Option<&'a Value>,
}

impl Seen<'_> {
    fn set(&self, reference: &Value) -> Option<&DynamicObject> {
        self.sets.iter().find(|set| reference["name"] == set.name_any().as_str()).copied()
    }
}

/// What has to be written for one MachineAutoscaler, or why it cannot be served.
pub fn serve(scaler: &DynamicObject, seen: &Seen<'_>) -> Result<Vec<Act>, String> {
    let (name, wanted, last) = (scaler.name_any(), &scaler.data["spec"]["scaleTargetRef"], &scaler.data["status"]["lastTargetRef"]);
    let held = scaler.finalizers().iter().any(|finalizer| finalizer == FINALIZER);
    if scaler.metadata.deletion_timestamp.is_some() {
        let mut acts: Vec<Act> = seen.set(wanted).and_then(released).into_iter().collect();
        if held {
            acts.push(Act::Scaler(name, finalizers(scaler.finalizers().iter().filter(|finalizer| *finalizer != FINALIZER))));
        }
        return Ok(acts);
    }
    let remember = || Act::ScalerStatus(name.clone(), json!({"status": {"lastTargetRef": wanted}}));
    if !last.is_null() && last != wanted {
        // First the old target, so that it is scaled no more even where there is something wrong with the new one.
        return Ok(seen.set(last).and_then(released).into_iter().chain([remember()]).collect());
    }
    if (&wanted["apiVersion"], &wanted["kind"]) != (&json!("machine.openshift.io/v1beta1"), &json!("MachineSet")) {
        return Err("Error getting target: unsupported MachineAutoscaler target".to_owned());
    }
    let missing = || format!("Error getting target: machinesets.machine.openshift.io {} not found", wanted["name"]);
    let set = seen.set(wanted).ok_or_else(missing)?;
    let owner = format!("{NAMESPACE}/{name}");
    if set.annotations().get(OWNER).is_some_and(|other| *other != owner) {
        return Err("Error setting target owner: already owned by another MachineAutoscaler".to_owned());
    }
    let mut acts = Vec::new();
    if last.is_null() {
        acts.push(remember());
    }
    if !held {
        acts.push(Act::Scaler(name.clone(), finalizers(scaler.finalizers().iter().map(String::as_str).chain([FINALIZER]))));
    }
    let bound = |field: &str| scaler.data["spec"][field].as_i64().unwrap_or_default().to_string();
    let annotations = [(OWNER, owner), (MIN, bound("minReplicas")), (MAX, bound("maxReplicas"))];
    if annotations.iter().any(|(key, value)| set.annotations().get(*key) != Some(value)) {
        acts.push(Act::Set(set.name_any(), annotated(annotations.map(|(key, value)| (key, json!(value))))));
    }
    Ok(acts)
}

/// A set that nobody scales any more.
fn released(set: &DynamicObject) -> Option<Act> {
    let keys = [OWNER, MIN, MAX];
    let marked = keys.iter().any(|key| set.annotations().contains_key(*key));
    marked.then(|| Act::Set(set.name_any(), annotated(keys.map(|key| (key, Value::Null)))))
}

fn annotated(annotations: [(&str, Value); 3]) -> Value {
    let all: serde_json::Map<String, Value> = annotations.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    json!({"metadata": {"annotations": all}})
}

fn finalizers<T: serde::Serialize>(all: impl Iterator<Item = T>) -> Value {
    json!({"metadata": {"finalizers": all.collect::<Vec<T>>()}})
}

/// A set that has left its bounds is brought back; machines are removed only where that is allowed.
pub fn scale(set: &DynamicObject, cluster: Option<&Value>) -> Option<Act> {
    let cluster = cluster?;
    let bound = |key: &str| set.annotations().get(key)?.parse::<i64>().ok();
    let (min, max) = (bound(MIN)?, bound(MAX)?);
    let replicas = set.data["spec"]["replicas"].as_i64().unwrap_or(1);
    // A cluster autoscaler that is not told otherwise removes machines.
    let removes = cluster["scaleDown"].is_null() || cluster["scaleDown"]["enabled"] == true;
    let wanted = if replicas < min { min } else { max };
    let outside = replicas < min || (replicas > max && removes);
    (outside && set.metadata.deletion_timestamp.is_none()).then(|| Act::Set(set.name_any(), json!({"spec": {"replicas": wanted}})))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> DynamicObject {
        serde_json::from_value(value).unwrap()
    }

    fn set(name: &str, replicas: i64, annotations: &Value) -> DynamicObject {
        object(json!({"metadata": {"name": name, "annotations": annotations}, "spec": {"replicas": replicas}}))
    }

    fn owned(by: &str) -> Value {
        json!({OWNER: format!("{NAMESPACE}/{by}"), MIN: "1", MAX: "6"})
    }

    fn reference(name: &str) -> Value {
        json!({"apiVersion": "machine.openshift.io/v1beta1", "kind": "MachineSet", "name": name})
    }

    fn scaler(target: &str, last: &Value, metadata: &Value) -> DynamicObject {
        let mut scaler = json!({"metadata": {"name": "workers"}, "status": {"lastTargetRef": last},
            "spec": {"minReplicas": 1, "maxReplicas": 6, "scaleTargetRef": reference(target)}});
        for (key, value) in metadata.as_object().into_iter().flatten() {
            scaler["metadata"][key] = value.clone();
        }
        object(scaler)
    }

    fn served(scaler: &DynamicObject, sets: &[DynamicObject]) -> Result<Vec<Act>, String> {
        serve(scaler, &Seen { scalers: vec![scaler], sets: sets.iter().collect(), cluster: None })
    }

    const NOBODYS: fn() -> Value = || json!({OWNER: null, MIN: null, MAX: null});

    #[test]
    fn a_target_gets_owner_and_bounds_once() {
        let new = scaler("a", &Value::Null, &json!({}));
        let acts = served(&new, &[set("a", 2, &json!({}))]).unwrap();
        let annotated = Act::Set("a".to_owned(), json!({"metadata": {"annotations": owned("workers")}}));
        assert_eq!(acts.len(), 3, "{acts:?}");
        assert!(
            acts.contains(&annotated)
                && acts.contains(&Act::Scaler("workers".to_owned(), json!({"metadata": {"finalizers": [FINALIZER]}})))
        );
        let known = scaler("a", &reference("a"), &json!({"finalizers": [FINALIZER]}));
        assert_eq!(served(&known, &[set("a", 2, &owned("workers"))]), Ok(vec![]));
    }

    #[test]
    fn the_old_target_is_given_up_before_the_new_one_is_taken() {
        let turned = scaler("b", &reference("a"), &json!({"finalizers": [FINALIZER]}));
        let sets = [set("a", 2, &owned("workers")), set("b", 2, &json!({}))];
        let released = Act::Set("a".to_owned(), json!({"metadata": {"annotations": NOBODYS()}}));
        let remembered = Act::ScalerStatus("workers".to_owned(), json!({"status": {"lastTargetRef": reference("b")}}));
        assert_eq!(served(&turned, &sets), Ok(vec![released, remembered.clone()]));
        assert_eq!(served(&turned, &sets[1..]), Ok(vec![remembered]), "the old one is gone altogether");
    }

    #[test]
    fn a_deleted_autoscaler_gives_its_target_up_and_goes() {
        let going = json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": [FINALIZER, "other"]});
        let acts = served(&scaler("a", &reference("a"), &going), &[set("a", 2, &owned("workers"))]).unwrap();
        let released = Act::Set("a".to_owned(), json!({"metadata": {"annotations": NOBODYS()}}));
        assert_eq!(acts, [released, Act::Scaler("workers".to_owned(), json!({"metadata": {"finalizers": ["other"]}}))]);
    }

    #[test]
    fn what_cannot_be_served_is_said() {
        let scaler = scaler("a", &Value::Null, &json!({}));
        assert!(served(&scaler, &[]).unwrap_err().contains("\"a\" not found"));
        assert!(served(&scaler, &[set("a", 2, &owned("another"))]).unwrap_err().contains("already owned by another MachineAutoscaler"));
    }

    #[test]
    fn a_set_is_brought_within_its_bounds_and_shrunk_only_where_that_is_allowed() {
        let (on, off) = (json!({"scaleDown": {"enabled": true}}), json!({"scaleDown": {"enabled": false}}));
        let to = |replicas: i64| Some(Act::Set("a".to_owned(), json!({"spec": {"replicas": replicas}})));
        for (what, replicas, cluster, expected) in [
            ("below", 0, Some(&off), to(1)),
            ("within", 4, Some(&on), None),
            ("above", 9, Some(&on), to(6)),
            ("above, but nothing may be removed", 9, Some(&off), None),
            ("nobody scales", 0, None, None),
        ] {
            assert_eq!(scale(&set("a", replicas, &owned("workers")), cluster), expected, "{what}");
        }
        assert_eq!(scale(&set("a", 0, &json!({})), Some(&on)), None, "a set without an autoscaler");
    }
}
