//! How sets shrink to nothing: so many machines at once and no more; and who keeps one from leaving.

use std::collections::HashSet;
use std::time::Duration;

use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::{Value, json};
use vmi_kit::kind::{MACHINE_SET, POD_DISRUPTION_BUDGET, VOLUME_ATTACHMENT};
use vmi_steps::Migration;
use vmi_steps::change::{Act, Change};

use crate::view::{EVENT, NAMESPACE, Object, node_name, phase, replicas, task};

/// For each round of draining: pods may take their time to end.
const A_ROUND: Duration = Duration::from_secs(1800);

/// How long sets may take to lose their machines, the largest having had so many: all are drained at the same time.
pub fn patience(largest: i64, draining: i64) -> Duration {
    A_ROUND * u32::try_from(largest / draining.max(1) + 1).unwrap_or(1)
}

/// A set whose machines leave, and those that are still there.
pub struct Leaving {
    pub set: Object,
    pub machines: Vec<Object>,
}

/// To how many machines a set is reduced next, if it is.
fn next(asked: i64, machines: i64, draining: i64) -> Option<i64> {
    let to = (machines - draining).max(0);
    (to < asked).then_some(to)
}

/// What can be reduced now.
pub fn changes(all: &[Leaving], draining: i64) -> Vec<Change> {
    let reduce = |leaving: &Leaving| {
        let there = i64::try_from(leaving.machines.len()).unwrap_or(i64::MAX);
        Some(scaled(&leaving.set, next(replicas(&leaving.set), there, draining)?))
    };
    all.iter().filter_map(reduce).collect()
}

/// A set told to have so many machines.
pub fn scaled(set: &Object, to: i64) -> Change {
    let mut operations = vec![json!({"op": "test", "path": "/metadata/uid", "value": set.metadata.uid})];
    if let Some(now) = set.data["spec"].get("replicas") {
        operations.push(json!({"op": "test", "path": "/spec/replicas", "value": now}));
    }
    operations.push(json!({"op": "add", "path": "/spec/replicas", "value": to}));
    let words = vec![format!("MachineSet {}: from {} machines to {to}", set.name_any(), replicas(set))];
    Change { act: Act::Patch(MACHINE_SET, set.clone(), Value::Array(operations)), words }
}

/// What is waited for while machines leave: each machine that does, and who keeps it.
pub fn told<'a>(m: &Migration, machines: impl IntoIterator<Item = &'a Object>) -> Vec<String> {
    let suspects = Suspects {
        attachments: m.list(VOLUME_ATTACHMENT, ""),
        budgets: m.list(POD_DISRUPTION_BUDGET, ""),
        events: m.list(EVENT, NAMESPACE),
    };
    let tell = |machine: &Object| {
        let kept = suspects.culprits(machine);
        let kept = if kept.is_empty() { String::new() } else { format!(", kept by {}", kept.join(" and ")) };
        format!("Machine {} is {}{kept}", machine.name_any(), phase(machine))
    };
    machines.into_iter().map(tell).collect()
}

/// Who may keep a machine, and what is told of its draining.
struct Suspects {
    attachments: Vec<Object>,
    budgets: Vec<Object>,
    events: Vec<Object>,
}

impl Suspects {
    /// Who keeps a machine that is to leave: hooks, volumes, and while it is drained budgets that allow no eviction.
    fn culprits(&self, machine: &DynamicObject) -> Vec<String> {
        if machine.metadata.deletion_timestamp.is_none() {
            return Vec::new();
        }
        let hooks = |stage: &str| {
            let listed = machine.data["spec"]["lifecycleHooks"][stage].as_array().cloned().unwrap_or_default();
            let text = |hook: &Value, field: &str| hook[field].as_str().unwrap_or_default().to_owned();
            listed.iter().map(|hook| format!("the {stage} hook {} of {}", text(hook, "name"), text(hook, "owner"))).collect::<Vec<_>>()
        };
        let drained = drained_condition(machine);
        if drained.is_none_or(|condition| condition["status"] != "True") {
            let before = hooks("preDrain");
            return if before.is_empty() { self.blocking_budgets(machine) } else { before };
        }
        let here = |attachment: &&Object| attachment.data["spec"]["nodeName"].as_str().is_some_and(|node| Some(node) == node_name(machine));
        let volume =
            |attachment: &Object| format!("volume {}", attachment.data["spec"]["source"]["persistentVolumeName"].as_str().unwrap_or("?"));
        let keep: Vec<String> = self.attachments.iter().filter(here).map(volume).take(3).chain(hooks("preTerminate")).collect();
        // Nobody else is left: it is the vCenter that takes its time.
        if keep.is_empty() { task(machine).into_iter().collect() } else { keep }
    }

    /// Budgets that allow no eviction, where one of this machine's pods could not be evicted: others have nothing to do with it.
    fn blocking_budgets(&self, machine: &DynamicObject) -> Vec<String> {
        let told = self.of_the_drain(machine);
        let refused = |namespace: &str| told.iter().any(|text| text.contains(&format!("-n {namespace:?}")));
        let blocks = |budget: &&Object| {
            let status = &budget.data["status"];
            status["disruptionsAllowed"] == 0 && status["expectedPods"].as_i64().is_some_and(|pods| pods > 0)
        };
        let here = self.budgets.iter().filter(|budget| budget.metadata.namespace.as_deref().is_some_and(refused));
        here.filter(blocks).map(|budget| format!("PodDisruptionBudget {}, which allows no eviction now", named(budget))).take(3).collect()
    }

    /// What the drain's controller says of this machine, in its events, and where it keeps that also in the Machine's condition; a pod
    /// that could not be evicted is in it as `error when evicting pods/"NAME" -n "NAMESPACE"`.
    fn of_the_drain<'a>(&'a self, machine: &'a DynamicObject) -> Vec<&'a str> {
        let condition = drained_condition(machine).and_then(|condition| condition["message"].as_str());
        let about = |event: &&Object| {
            event.data["reason"] == "DrainRequeued"
                && event.data["involvedObject"]["kind"] == "Machine"
                && event.data["involvedObject"]["uid"].as_str() == machine.metadata.uid.as_deref()
        };
        let events = self.events.iter().filter(about).filter_map(|event| event.data["message"].as_str());
        condition.into_iter().chain(events).collect()
    }
}

fn drained_condition(machine: &DynamicObject) -> Option<&Value> {
    machine.data["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == "Drained")
}

fn named(object: &DynamicObject) -> String {
    format!("{}/{}", object.namespace().unwrap_or_default(), object.name_any())
}

/// Nodes of these names that are still there, and volumes still attached to them.
pub fn left_of(names: &[String], nodes: &[Object], attachments: &[Object]) -> Vec<String> {
    // There may be thousands of each, and this is asked again with every event.
    let there: HashSet<&str> = nodes.iter().filter_map(|node| node.metadata.name.as_deref()).collect();
    let leaving: HashSet<&str> = names.iter().map(String::as_str).collect();
    let attached = attachments.iter().filter_map(|attachment| {
        let node = attachment.data["spec"]["nodeName"].as_str().filter(|node| leaving.contains(node))?;
        Some(format!("VolumeAttachment {} of Node {node}", attachment.name_any()))
    });
    names.iter().filter(|name| there.contains(name.as_str())).map(|name| format!("Node {name}")).chain(attached).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends by panicking")]

    use std::sync::Arc;

    use super::*;

    fn object(value: Value) -> Object {
        Arc::new(serde_json::from_value(value).unwrap())
    }

    #[test]
    fn only_so_many_leave_at_once_until_none_is_left() {
        for (asked, machines, draining, to) in [
            (3, 3, 1, Some(2)),
            (2, 3, 1, None),
            (2, 2, 1, Some(1)),
            (3, 3, 2, Some(1)),
            (1, 1, 10, Some(0)),
            (0, 1, 1, None),
            (4, 0, 1, Some(0)),
            (0, 0, 1, None),
        ] {
            assert_eq!(next(asked, machines, draining), to, "{asked} {machines} {draining}");
        }
    }

    #[test]
    fn nodes_of_the_source_are_waited_for_by_name_and_so_are_the_volumes_attached_to_them() {
        let node = |name: &str| object(json!({"metadata": {"name": name}}));
        let attachment = |name: &str, node: &str| object(json!({"metadata": {"name": name}, "spec": {"nodeName": node}}));
        let names = ["n-1".to_owned(), "n-2".to_owned()];
        let left = |nodes: &[&str], attachments: &[(&str, &str)]| {
            let nodes: Vec<Object> = nodes.iter().map(|name| node(name)).collect();
            let attachments: Vec<Object> = attachments.iter().map(|(name, node)| attachment(name, node)).collect();
            left_of(&names, &nodes, &attachments)
        };
        let none: [&str; 0] = [];
        assert_eq!(left(&[], &[]), none);
        assert_eq!(left(&["other", "n-11"], &[("va", "other"), ("va-11", "n-11")]), none, "those stay");
        assert_eq!(left(&["other", "n-2"], &[]), ["Node n-2"]);
        assert_eq!(left(&["other"], &[("va-1", "n-1")]), ["VolumeAttachment va-1 of Node n-1"], "its Node is gone already");
        assert_eq!(left(&["n-1"], &[("va-1", "n-1")]), ["Node n-1", "VolumeAttachment va-1 of Node n-1"]);
    }

    fn leaving(drained: &Value, hooks: &Value) -> Object {
        object(
            json!({"metadata": {"name": "m", "uid": "m-1", "deletionTimestamp": "2026-01-01T00:00:00Z"}, "spec": {"lifecycleHooks": hooks},
            "status": {"phase": "Deleting", "nodeRef": {"name": "n"}, "conditions": [{"type": "Drainable", "status": "True"}, drained]}}),
        )
    }

    fn budget(namespace: &str, name: &str, allowed: i64, pods: i64) -> Object {
        let status = json!({"disruptionsAllowed": allowed, "expectedPods": pods});
        object(json!({"metadata": {"name": name, "namespace": namespace}, "status": status}))
    }

    fn event(reason: &str, uid: &str, message: &str) -> Object {
        let about = json!({"kind": "Machine", "uid": uid});
        object(json!({"metadata": {"name": "e"}, "reason": reason, "involvedObject": about, "message": message}))
    }

    const REFUSED: &str = "Node drain requeued: error when evicting pods/\"web-1\" -n \"shop\": global timeout reached: 20s";

    #[test]
    fn there_is_time_for_every_round_of_the_largest_set() {
        for (largest, draining, rounds) in [(0, 3, 1), (2, 3, 1), (9, 3, 4), (100, 1, 101), (5, 0, 6)] {
            assert_eq!(patience(largest, draining), A_ROUND * rounds, "{largest} by {draining}");
        }
    }

    #[test]
    fn whoever_keeps_a_machine_is_named() {
        let machine = |drained: &str, hooks: Value| leaving(&json!({"type": "Drained", "status": drained}), &hooks);
        let attachment = |node: &str| {
            object(
                json!({"metadata": {"name": "va"}, "spec": {"nodeName": node, "source": {"persistentVolumeName": format!("pv-of-{node}")}}}),
            )
        };
        let hook = |stage: &str| json!({stage: [{"name": "h", "owner": "o"}]});
        let suspects = Suspects {
            attachments: vec![attachment("n"), attachment("other")],
            budgets: vec![budget("shop", "free", 1, 3), budget("shop", "empty", 0, 0), budget("shop", "tight", 0, 2)],
            events: vec![event("DrainRequeued", "m-1", REFUSED)],
        };
        let kept = |drained: &str, hooks: Value| suspects.culprits(&machine(drained, hooks));
        assert_eq!(kept("False", json!({})), ["PodDisruptionBudget shop/tight, which allows no eviction now"]);
        assert_eq!(kept("False", hook("preDrain")), ["the preDrain hook h of o"]);
        assert_eq!(kept("True", hook("preDrain")), ["volume pv-of-n"], "drained already");
        assert_eq!(kept("True", hook("preTerminate")), ["volume pv-of-n", "the preTerminate hook h of o"]);
        let nobody = Suspects { attachments: Vec::new(), budgets: Vec::new(), events: Vec::new() };
        let mut destroyed = serde_json::to_value(machine("True", json!({})).as_ref()).unwrap();
        destroyed["status"]["providerStatus"] = json!({"taskRef": "task-7"});
        destroyed["spec"]["providerSpec"]["value"]["workspace"]["server"] = json!("a");
        assert_eq!(nobody.culprits(&object(destroyed)), ["vCenter task task-7 on a"], "only the vCenter is left");
        let stays = object(json!({"metadata": {"name": "m"}, "spec": {"lifecycleHooks": hook("preDrain")}}));
        assert!(suspects.culprits(&stays).is_empty(), "one that is not to leave is kept by nobody");
    }

    #[test]
    fn a_budget_is_blamed_only_where_one_of_the_machines_own_pods_could_not_be_evicted() {
        let budgets = || vec![budget("bank", "tight", 0, 2), budget("shop", "tight", 0, 2), budget("shop-2", "tight", 0, 2)];
        let kept = |events: Vec<Object>, drained: Value| {
            Suspects { attachments: Vec::new(), budgets: budgets(), events }.culprits(&leaving(&drained, &json!({})))
        };
        let none: [&str; 0] = [];
        let of_shop = ["PodDisruptionBudget shop/tight, which allows no eviction now"];
        assert_eq!(kept(Vec::new(), json!({})), none, "nothing was tried yet");
        assert_eq!(kept(vec![event("DrainRequeued", "m-1", REFUSED)], json!({})), of_shop);
        assert_eq!(kept(vec![event("DrainRequeued", "m-2", REFUSED)], json!({})), none, "it is another machine's");
        assert_eq!(kept(vec![event("DrainProceeds", "m-1", REFUSED)], json!({})), none);
        let waiting = "error when waiting for pod \"web-1\" in namespace \"shop\" to terminate: global timeout reached: 20s";
        assert_eq!(kept(vec![event("DrainRequeued", "m-1", waiting)], json!({})), none, "it was evicted and takes its time");
        assert_eq!(kept(Vec::new(), json!({"type": "Drained", "status": "False", "message": REFUSED})), of_shop);
    }
}
