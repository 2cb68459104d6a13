//! A MachineSet carried over to another failure domain: a new set beside the old one, the same in all but place and name.

use serde_json::{Map, Value, json};

use crate::provider;

/// By this label a Machine says which set it belongs to.
pub const SET: &str = "machine.openshift.io/cluster-api-machineset";
/// By these a Machine or a Node says where it is.
pub const REGIONS: [&str; 3] = ["machine.openshift.io/region", "topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"];
pub const ZONES: [&str; 3] = ["machine.openshift.io/zone", "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"];
/// Written for the old set alone: by others, or by an earlier migration that made it.
const NOT_CARRIED_OVER: [&str; 7] = [
    "autoscaling.openshift.io/machineautoscaler",
    "machine.openshift.io/cluster-api-autoscaler-node-group-max-size",
    "machine.openshift.io/cluster-api-autoscaler-node-group-min-size",
    "kubectl.kubernetes.io/last-applied-configuration",
    "config.openshift.io/vmi-source-machineset",
    "config.openshift.io/vmi-failure-domain",
    "config.openshift.io/vmi-uid",
];

/// The set as it shall be in the failure domain, with no machine yet. `marks` are annotations it gets besides.
pub fn carried_over(source: &Value, name: &str, domain: &Value, infrastructure_id: &str, marks: &[(&str, &str)]) -> Value {
    let old = source["metadata"]["name"].as_str().unwrap_or_default();
    let mut spec = renamed(&source["spec"], old, name);
    spec["replicas"] = json!(0);
    spec["selector"]["matchLabels"][SET] = json!(name);
    spec["template"]["metadata"]["labels"][SET] = json!(name);
    // A selector that says where has to go on selecting what the template makes.
    for labels in ["/selector/matchLabels", "/template/metadata/labels", "/template/spec/metadata/labels"] {
        spec.pointer_mut(labels).into_iter().for_each(|labels| relocate(labels, domain));
    }
    let value = provider::moved(&source["spec"]["template"]["spec"]["providerSpec"]["value"], domain, infrastructure_id);
    spec["template"]["spec"]["providerSpec"]["value"] = value;
    let mut annotations = source["metadata"]["annotations"].as_object().cloned().unwrap_or_default();
    annotations.retain(|key, _| !NOT_CARRIED_OVER.contains(&key.as_str()));
    annotations.extend(marks.iter().map(|(key, value)| ((*key).to_owned(), json!(value))));
    let mut labels = source["metadata"]["labels"].clone();
    relocate(&mut labels, domain);
    json!({
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "MachineSet",
        "metadata": {
            "name": name, "namespace": source["metadata"]["namespace"], "labels": labels.as_object().cloned().unwrap_or_default(),
            "annotations": annotations,
        },
        "spec": spec,
    })
}

/// The set's own name wherever the selector and the template's labels say it, so that no set takes the other's machines for its own.
fn renamed(spec: &Value, old: &str, new: &str) -> Value {
    let mut spec = spec.clone();
    let is_old = |value: &Value| value == old;
    let mut rename = |pointer: &str| {
        let labels = spec.pointer_mut(pointer).and_then(Value::as_object_mut);
        labels.into_iter().flat_map(Map::values_mut).filter(|value| is_old(value)).for_each(|value| *value = json!(new));
    };
    rename("/selector/matchLabels");
    rename("/template/metadata/labels");
    let expressions = spec.pointer_mut("/selector/matchExpressions").and_then(Value::as_array_mut);
    for expression in expressions.into_iter().flatten() {
        let values = expression["values"].as_array_mut().into_iter().flatten();
        values.filter(|value| is_old(value)).for_each(|value| *value = json!(new));
    }
    spec
}

/// Labels that say where something is say where it is now; those that are not there are not made.
fn relocate(labels: &mut Value, domain: &Value) {
    let Some(labels) = labels.as_object_mut() else { return };
    for (keys, place) in [(REGIONS, &domain["region"]), (ZONES, &domain["zone"])] {
        for key in keys {
            if let Some(value) = labels.get_mut(key) {
                *value = place.clone();
            }
        }
    }
}
