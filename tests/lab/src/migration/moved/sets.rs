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
    forget_place(&mut template["spec"]["providerSpec"]["value"]);
    let mut labels = set["metadata"]["labels"].as_object().cloned().unwrap_or_default();
    placeless(&mut labels);
    let mut annotations = set["metadata"]["annotations"].as_object().cloned().unwrap_or_default();
    annotations.retain(|key, _| !OF_ONE_SET.contains(&key.as_str()) && !key.starts_with(OF_THE_OPERATOR));
    sorted(&json!({"labels": labels, "annotations": annotations, "spec": spec})).to_string()
}

/// What a machine is made like, without where.
pub fn forget_place(provider: &mut Value) {
    if let Some(fields) = provider.as_object_mut() {
        for place in ["workspace", "template", "network", "tagIDs", "snapshot", "cloneMode", "metadata"] {
            fields.remove(place);
        }
    }
}

pub fn placeless(labels: &mut Map<String, Value>) {
    let of_place = |key: &str| key.ends_with("/region") || key.ends_with("/zone");
    labels.retain(|key, _| !of_place(key) && !key.ends_with("/cluster-api-machineset"));
}

/// With keys in their order and without empty objects, so that equal ones read the same: the real webhook fills empty ones in, and
/// the lab's first set is older than it.
pub fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| (key.clone(), sorted(value)));
            fields.filter(|(_, value)| *value != json!({})).collect::<BTreeMap<_, _>>().into_iter().collect()
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

/// For each set of the source one like it, with as many replicas: none is lost, split, or put together with another.
pub fn carried_over(before: &Dump, after: &Dump) -> Result<(), String> {
    let replicas = |dump: &Dump| {
        let mut all: BTreeMap<String, (Vec<i64>, Vec<String>)> = BTreeMap::new();
        for (name, set) in dump.of(MACHINE_SET) {
            let (replicas, names) = all.entry(kind_of(set)).or_default();
            replicas.push(set["spec"]["replicas"].as_i64().unwrap_or(1));
            names.push(name.to_owned());
        }
        all.values_mut().for_each(|(replicas, _)| replicas.sort_unstable());
        all
    };
    let (old, new) = (replicas(before), replicas(after));
    let mut wrong: Vec<String> = Vec::new();
    for (kind, (wanted, names)) in &old {
        match new.get(kind) {
            Some((found, _)) if found == wanted => {}
            Some((found, others)) => {
                wrong.push(format!("{} had {wanted:?} replicas, {} have {found:?}", names.join(", "), others.join(", ")));
            }
            None => wrong.push(format!("nothing makes what {} made: {kind}", names.join(", "))),
        }
    }
    let strange = new.iter().filter(|(kind, _)| !old.contains_key(*kind));
    wrong.extend(strange.map(|(kind, (_, names))| format!("{} make what nothing made before: {kind}", names.join(", "))));
    none(&wrong)
}

/// As many sets in each of these places, by server and resource pool, as in any other, or one more.
pub fn spread(after: &Dump, places: &[(String, String)]) -> Result<(), String> {
    let workspace = |set: &Value| set["spec"]["template"]["spec"]["providerSpec"]["value"]["workspace"].clone();
    let found: Vec<Value> = after.of(MACHINE_SET).map(|(_, set)| workspace(set)).collect();
    let here = |(server, pool): &(String, String)| {
        found.iter().filter(|workspace| workspace["server"] == server.as_str() && workspace["resourcePool"] == pool.as_str()).count()
    };
    let counts: Vec<usize> = places.iter().map(here).collect();
    let (least, most) = (counts.iter().min().copied().unwrap_or_default(), counts.iter().max().copied().unwrap_or_default());
    if counts.iter().sum::<usize>() == found.len() && most - least <= 1 {
        return Ok(());
    }
    let told = places.iter().zip(&counts).map(|((server, pool), count)| format!("{count} in {pool} of {server}"));
    Err(format!("of {} MachineSets {}", found.len(), told.collect::<Vec<_>>().join(", ")))
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
        let old = [set("infra", 2, 8, "a"), set("worker", 2, 4, "a"), set("spare", 0, 4, "a"), set("none", 0, 2, "a")];
        let new = [set("infra-b", 2, 8, "b"), set("worker-b", 2, 4, "b"), set("spare-b", 0, 4, "b"), set("none-b", 0, 2, "b")];
        assert_eq!(carried(&old, &new), Ok(()));
        assert!(carried(&old, &new[..3]).unwrap_err().contains("nothing makes what ns/none made"));
        assert!(carried(&old[..3], &new).unwrap_err().contains("ns/none-b make what nothing made before"));
        let like = |spare: &[(&str, i64)]| {
            let others = spare.iter().map(|(name, replicas)| set(name, *replicas, 4, "b"));
            [new[0].clone(), new[3].clone()].into_iter().chain(others).collect::<Vec<_>>()
        };
        let wanted = "ns/spare, ns/worker had [0, 2] replicas, ";
        for (found, told) in [
            (like(&[("worker-b", 2)]), "ns/worker-b have [2]"),
            (like(&[("worker-b", 1), ("spare-b", 1)]), "ns/spare-b, ns/worker-b have [1, 1]"),
            (like(&[("worker-b", 1), ("worker-c", 1), ("spare-b", 0)]), "ns/spare-b, ns/worker-b, ns/worker-c have [0, 1, 1]"),
        ] {
            assert_eq!(carried(&old, &found), Err(format!("{wanted}{told}")));
        }
    }

    #[test]
    fn no_failure_domain_has_sets_while_another_waits_for_its_turn() {
        let at = |server: &str, pool: &str| {
            let mut set = set(&format!("{server}{pool}"), 0, 4, server);
            set["spec"]["template"]["spec"]["providerSpec"]["value"]["workspace"]["resourcePool"] = json!(pool);
            set
        };
        let places = [("b", "p1"), ("b", "p2"), ("c", "p1")].map(|(server, pool)| (server.to_owned(), pool.to_owned()));
        let judged = |sets: &[Value]| spread(&Dump::with(MACHINE_SET, sets), &places);
        assert_eq!(judged(&[at("b", "p1"), at("b", "p2"), at("c", "p1")]), Ok(()));
        assert_eq!(judged(&[at("b", "p1"), at("c", "p1")]), Ok(()));
        let (mut first, mut second) = (at("b", "p1"), at("b", "p1"));
        (first["metadata"]["name"], second["metadata"]["name"]) = (json!("one"), json!("two"));
        let told = "of 2 MachineSets 2 in p1 of b, 0 in p2 of b, 0 in p1 of c";
        assert_eq!(judged(&[first, second]), Err(told.to_owned()));
        assert!(judged(&[at("a", "p1")]).is_err(), "somewhere else");
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
