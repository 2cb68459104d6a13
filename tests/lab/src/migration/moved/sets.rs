//! MachineSets before and after a move: another place and name, and nothing else.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::OWNER;
use crate::kubernetes::MACHINE_SET;
use crate::migration::dump::Dump;
use crate::migration::verdict::none;

/// Annotations that are about one set and its place alone: whose autoscaler scales it, who applied it, who made it from which.
const OF_ONE_SET: [&str; 4] = [
    OWNER,
    "machine.openshift.io/cluster-api-autoscaler-node-group-min-size",
    "machine.openshift.io/cluster-api-autoscaler-node-group-max-size",
    "kubectl.kubernetes.io/last-applied-configuration",
];
const OF_THE_OPERATOR: &str = "config.openshift.io/vmi-";

/// What a MachineSet is and makes, without where and how many: its own labels and annotations, its policies, and its template.
fn kind_of(set: &Value) -> String {
    let mut spec = set["spec"].clone();
    if let Some(fields) = spec.as_object_mut() {
        // The selector is its name; replicas are counted.
        fields.retain(|field, _| !["replicas", "selector"].contains(&field.as_str()));
    }
    let template = &mut spec["template"];
    for labels in ["/metadata/labels", "/spec/metadata/labels"] {
        if let Some(labels) = template.pointer_mut(labels).and_then(Value::as_object_mut) {
            placeless(labels);
        }
    }
    if let Some(fields) = template["spec"]["providerSpec"]["value"].as_object_mut() {
        for place in ["workspace", "template", "network", "tagIDs", "snapshot", "cloneMode", "metadata"] {
            fields.remove(place);
        }
    }
    let mut labels = set["metadata"]["labels"].as_object().cloned().unwrap_or_default();
    placeless(&mut labels);
    let mut annotations = set["metadata"]["annotations"].as_object().cloned().unwrap_or_default();
    annotations.retain(|key, _| !OF_ONE_SET.contains(&key.as_str()) && !key.starts_with(OF_THE_OPERATOR));
    sorted(&json!({"labels": labels, "annotations": annotations, "spec": spec})).to_string()
}

fn placeless(labels: &mut Map<String, Value>) {
    let of_place = |key: &str| key.ends_with("/region") || key.ends_with("/zone");
    labels.retain(|key, _| !of_place(key) && !key.ends_with("/cluster-api-machineset"));
}

/// With keys in their order and without empty objects, so that equal ones read the same: the real webhook fills empty ones in, and
/// the lab's first set is older than it.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| (key.clone(), sorted(value)));
            fields.filter(|(_, value)| *value != json!({})).collect::<BTreeMap<_, _>>().into_iter().collect()
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

/// As many replicas of each kind of machine as before, and no kind more.
pub fn carried_over(before: &Dump, after: &Dump) -> Result<(), String> {
    let replicas = |dump: &Dump| {
        let mut all: BTreeMap<String, (i64, Vec<String>)> = BTreeMap::new();
        for (name, set) in dump.of(MACHINE_SET) {
            let entry = all.entry(kind_of(set)).or_default();
            entry.0 += set["spec"]["replicas"].as_i64().unwrap_or(1);
            entry.1.push(name.to_owned());
        }
        all
    };
    let (old, new) = (replicas(before), replicas(after));
    let mut wrong: Vec<String> = Vec::new();
    for (kind, (wanted, names)) in &old {
        match new.get(kind) {
            Some((found, _)) if found == wanted => {}
            Some((found, others)) => wrong.push(format!("{} had {wanted} replicas, {} have {found}", names.join(", "), others.join(", "))),
            None => wrong.push(format!("nothing makes what {} made: {kind}", names.join(", "))),
        }
    }
    let strange = new.iter().filter(|(kind, _)| !old.contains_key(*kind));
    wrong.extend(strange.map(|(kind, (_, names))| format!("{} make what nothing made before: {kind}", names.join(", "))));
    none(&wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(name: &str, replicas: i64, cpus: i64, server: &str) -> Value {
        json!({
            "metadata": {"name": name},
            "spec": {"replicas": replicas, "template": {
                "metadata": {"labels": {"machine.openshift.io/cluster-api-machineset": name, "role": "worker"}},
                "spec": {"providerSpec": {"value": {"numCPUs": cpus, "workspace": {"server": server}}}},
            }},
        })
    }

    fn carried(old: &[Value], new: &[Value]) -> Result<(), String> {
        let dump = |sets: &[Value]| Dump::with(MACHINE_SET, sets);
        carried_over(&dump(old), &dump(new))
    }

    #[test]
    fn sets_may_change_name_and_place_but_not_what_they_make_nor_how_many() {
        let old = [set("infra", 2, 8, "a"), set("worker", 3, 4, "a"), set("none", 0, 2, "a")];
        let new = [set("infra-b", 2, 8, "b"), set("worker-b", 1, 4, "b"), set("worker-c", 2, 4, "b"), set("none-b", 0, 2, "b")];
        assert_eq!(carried(&old, &new), Ok(()));
        assert!(carried(&old, &new[..3]).unwrap_err().contains("nothing makes what ns/none made"));
        assert!(carried(&old[..2], &new).unwrap_err().contains("ns/none-b make what nothing made before"));
        let fewer = [new[0].clone(), new[1].clone(), new[3].clone()];
        assert_eq!(carried(&old, &fewer), Err("ns/worker had 3 replicas, ns/worker-b have 1".to_owned()));
    }

    #[test]
    fn a_set_keeps_its_own_labels_annotations_and_policies() {
        let with = |change: fn(&mut Value)| {
            let mut set = set("gpu", 1, 8, "a");
            set["metadata"]["labels"] = json!({"team": "models", "topology.kubernetes.io/zone": "zone-a"});
            set["metadata"]["annotations"] = json!({"capacity.cluster-autoscaler.kubernetes.io/gpu-count": "1", OWNER: "x/y"});
            set["spec"]["deletePolicy"] = json!("Oldest");
            set["spec"]["minReadySeconds"] = json!(2);
            change(&mut set);
            [set]
        };
        let moved = |set: &mut Value| {
            set["metadata"]["labels"]["topology.kubernetes.io/zone"] = json!("zone-b");
            set["metadata"]["annotations"] =
                json!({"capacity.cluster-autoscaler.kubernetes.io/gpu-count": "1", "config.openshift.io/vmi-uid": "u"});
        };
        let before = with(|_| {});
        assert_eq!(carried(&before, &with(moved)), Ok(()));
        let losses: [fn(&mut Value); 5] = [
            |set| set["metadata"]["labels"] = json!({}),
            |set| set["metadata"]["annotations"] = json!({}),
            |set| set["spec"]["deletePolicy"] = json!("Random"),
            |set| set["spec"]["minReadySeconds"] = json!(0),
            |set| set["spec"]["template"]["spec"]["taints"] = json!([{"key": "x"}]),
        ];
        for (at, loss) in losses.into_iter().enumerate() {
            assert!(carried(&before, &with(loss)).is_err_and(|why| why.contains("nothing makes what ns/gpu made")), "{at}");
        }
    }
}
