//! MachineConfigPools and what they say of their nodes: whether they are ready, and whether they run what `spec.configuration`
//! names.

use std::collections::BTreeSet;

use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::{Value, json};

use super::rollout;
use crate::kubernetes::condition;
use crate::standins::operator_status::with_conditions;

const BUILT_IN: &str = "machineconfiguration.openshift.io/mco-built-in";
const REQUIRED: &str = "operator.machineconfiguration.openshift.io/required-for-upgrade";

/// The pools every cluster has; updates wait for the control plane's.
pub fn built_in() -> [Value; 2] {
    ["master", "worker"].map(|role| {
        let mut labels = json!({BUILT_IN: "", (format!("pools.operator.machineconfiguration.openshift.io/{role}")): ""});
        if role == "master" {
            labels[REQUIRED] = json!("");
        }
        json!({
            "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool",
            "metadata": {"name": role, "labels": labels},
            "spec": {
                "machineConfigSelector": {"matchLabels": {"machineconfiguration.openshift.io/role": role}},
                "nodeSelector": {"matchLabels": {(format!("node-role.kubernetes.io/{role}")): ""}},
            },
        })
    })
}

/// The nodes of a pool. A node of the control plane belongs to `master` whatever else it is.
pub fn members<'a>(pool: &DynamicObject, nodes: impl Iterator<Item = &'a DynamicObject>) -> Vec<&'a DynamicObject> {
    let wanted = pool.data["spec"]["nodeSelector"]["matchLabels"].as_object();
    let chosen = |node: &&DynamicObject| {
        let labels = node.labels();
        let fits = wanted.is_some_and(|wanted| wanted.iter().all(|(key, value)| labels.get(key).map(String::as_str) == value.as_str()));
        fits && (pool.name_any() == "master" || !labels.contains_key("node-role.kubernetes.io/master"))
    };
    nodes.filter(chosen).collect()
}

/// Ready for work in the operator's eyes: a cordoned node is not.
pub fn is_ready(node: &DynamicObject) -> bool {
    let quiet = |kind: &str| matches!(condition(node, kind), "" | "False");
    condition(node, "Ready") == "True" && quiet("DiskPressure") && quiet("NetworkUnavailable") && node.data["spec"]["unschedulable"] != true
}

/// The status of a pool with these nodes.
pub fn status(pool: &DynamicObject, nodes: &[&DynamicObject], now: &str) -> Value {
    let existing = &pool.data["status"];
    let spec = &pool.data["spec"];
    let target = spec["configuration"]["name"].as_str().unwrap_or_default();
    let updated = |node: &DynamicObject| rollout::is_updated(node, target);
    let (total, there) = (nodes.len(), nodes.iter().filter(|node| updated(node)).count());
    let unavailable = nodes.iter().filter(|node| !is_ready(node)).count();
    let ready = nodes.iter().filter(|node| updated(node) && is_ready(node)).count();
    let mut status = if existing.is_object() { existing.clone() } else { json!({}) };
    let counts = [
        ("machineCount", total),
        ("updatedMachineCount", there),
        ("readyMachineCount", ready),
        ("unavailableMachineCount", unavailable),
        ("degradedMachineCount", 0),
    ];
    for (field, count) in counts {
        status[field] = json!(count);
    }
    status["observedGeneration"] = json!(pool.metadata.generation.unwrap_or_default());
    let words;
    let (updated, updating) = if ready == total {
        if let Some(configuration) = spec.get("configuration") {
            status["configuration"] = configuration.clone();
        }
        words = format!("All nodes are updated with MachineConfig {target}");
        (("Updated", "True", "", words.as_str()), ("Updating", "False", "", ""))
    } else if spec["paused"] == true {
        words = format!("Pool is paused; will not update to MachineConfig {target}");
        (("Updated", "False", "", ""), ("Updating", "False", "", words.as_str()))
    } else {
        words = format!("All nodes are updating to MachineConfig {target}");
        (("Updated", "False", "", ""), ("Updating", "True", "", words.as_str()))
    };
    let degraded = ["RenderDegraded", "NodeDegraded", "Degraded"].map(|kind| (kind, "False", "", ""));
    let conditions: Vec<_> = [updated, updating].into_iter().chain(degraded).collect();
    status["conditions"] = with_conditions(&existing["conditions"], &conditions, now);
    status
}

/// The built-in pool `wanted` put back into `existing`, or nothing where it is there already. The owner's `paused` stays.
pub fn restored(existing: &DynamicObject, wanted: &Value) -> Option<DynamicObject> {
    let mut pool = existing.clone();
    for (key, _) in wanted["metadata"]["labels"].as_object().into_iter().flatten() {
        pool.labels_mut().insert(key.clone(), String::new());
    }
    for field in ["machineConfigSelector", "nodeSelector"] {
        pool.data["spec"][field] = wanted["spec"][field].clone();
    }
    let names = |pool: &DynamicObject| pool.labels().keys().cloned().collect::<BTreeSet<_>>();
    (pool.data != existing.data || names(&pool) != names(existing)).then_some(pool)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "2026-02-02T00:00:00Z";

    fn object(value: Value) -> DynamicObject {
        serde_json::from_value(value).unwrap()
    }

    fn node(name: &str, roles: &[&str], ready: &str, unschedulable: bool) -> DynamicObject {
        let labels: Value = roles.iter().map(|role| (format!("node-role.kubernetes.io/{role}"), json!(""))).collect();
        let key = |what: &str| format!("machineconfiguration.openshift.io/{what}");
        let annotations = json!({key("currentConfig"): "rendered-1", key("desiredConfig"): "rendered-1", key("state"): "Done"});
        object(json!({"metadata": {"name": name, "labels": labels, "annotations": annotations}, "spec": {"unschedulable": unschedulable},
            "status": {"conditions": [{"type": "Ready", "status": ready}]}}))
    }

    fn pool(role: &str, paused: bool) -> DynamicObject {
        let mut manifest = built_in().into_iter().find(|pool| pool["metadata"]["name"] == role).unwrap();
        manifest["metadata"]["generation"] = json!(2);
        manifest["spec"]["paused"] = json!(paused);
        manifest["spec"]["configuration"] = json!({"name": "rendered-1"});
        object(manifest)
    }

    #[test]
    fn a_node_belongs_to_one_pool_and_the_control_plane_goes_first() {
        let nodes = [
            node("cp", &["master", "control-plane"], "True", false),
            node("compact", &["master", "worker"], "True", false),
            node("w", &["worker"], "True", false),
            node("other", &["infra"], "True", false),
        ];
        for (role, expected) in [("master", vec!["cp", "compact"]), ("worker", vec!["w"])] {
            let names: Vec<String> = members(&pool(role, false), nodes.iter()).iter().map(|node| node.name_any()).collect();
            assert_eq!(names, expected, "{role}");
        }
    }

    #[test]
    fn a_pool_is_updated_once_all_its_nodes_are_ready_and_waits_while_paused() {
        let (good, gone, cordoned) =
            (node("a", &["worker"], "True", false), node("b", &["worker"], "Unknown", false), node("c", &["worker"], "True", true));
        let table = [
            ("no nodes", vec![], false, "True", "False", 0),
            ("ready", vec![&good], false, "True", "False", 1),
            ("paused but ready", vec![&good], true, "True", "False", 1),
            ("one gone", vec![&good, &gone], false, "False", "True", 1),
            ("one cordoned", vec![&good, &cordoned], false, "False", "True", 1),
            ("one gone while paused", vec![&good, &gone], true, "False", "False", 1),
        ];
        for (what, nodes, paused, updated, updating, ready) in table {
            let mut pool = pool("worker", paused);
            pool.data["status"] = status(&pool, &nodes, NOW);
            assert_eq!(condition(&pool, "Updated"), updated, "{what}");
            assert_eq!(condition(&pool, "Updating"), updating, "{what}");
            assert_eq!(condition(&pool, "Degraded"), "False", "{what}");
            let read = &pool.data["status"];
            assert_eq!(
                (read["machineCount"].as_u64(), read["readyMachineCount"].as_u64()),
                (Some(nodes.len() as u64), Some(ready)),
                "{what}"
            );
            assert_eq!(read["observedGeneration"], 2);
            assert_eq!(read["configuration"]["name"].is_string(), updated == "True", "{what}");
            assert_eq!(status(&pool, &nodes, "2027-01-01T00:00:00Z"), *read, "the same nodes give the same status: {what}");
        }
    }

    #[test]
    fn a_built_in_pool_is_put_back_but_stays_paused() {
        let wanted = &built_in()[1];
        assert!(restored(&pool("worker", true), wanted).is_none());
        let mut edited = pool("worker", true);
        edited.data["spec"]["nodeSelector"] = json!({});
        edited.labels_mut().clear();
        let back = restored(&edited, wanted).unwrap();
        assert_eq!(back.data["spec"]["nodeSelector"], wanted["spec"]["nodeSelector"]);
        assert_eq!(back.data["spec"]["paused"], true);
        assert!(back.labels().contains_key(BUILT_IN));
    }
}
