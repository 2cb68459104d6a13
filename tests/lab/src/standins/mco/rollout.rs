//! The second part: what the pools' nodes are to run is rendered from ControllerConfig, and nodes are brought there one by one.
//! A file whose change the node disruption policy calls harmless costs nothing; any other costs a drain and a reboot. A paused
//! pool waits.

use std::collections::{BTreeMap, BTreeSet};

use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::drain::{self, DESIRED_DRAIN, LAST_DRAIN};
use crate::nodes::REBOOTS;

const CURRENT: &str = "machineconfiguration.openshift.io/currentConfig";
const DESIRED: &str = "machineconfiguration.openshift.io/desiredConfig";
const STATE: &str = "machineconfiguration.openshift.io/state";
/// The one file that follows from what a migration changes.
const CLOUD_CONF: &str = "/etc/kubernetes/cloud.conf";

/// What a pool's nodes are to run. Its name says what is in it: the same configuration comes back under the same name.
pub fn rendered(pool: &str, controller_config: &Value) -> Value {
    let text = controller_config["spec"]["cloudProviderConfig"].as_str().unwrap_or_default();
    let hash: String = Sha256::digest(text).iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    let source = format!("data:,{}", escaped(text));
    json!({
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
        "metadata": {"name": format!("rendered-{pool}-{hash}")},
        "spec": {"config": {"ignition": {"version": "3.4.0"}, "storage": {"files": [
            {"path": CLOUD_CONF, "mode": 420, "overwrite": true, "contents": {"source": source}},
        ]}}},
    })
}

/// As a data URL wants it.
fn escaped(text: &str) -> String {
    text.bytes().map(|byte| if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

fn annotation<'a>(node: &'a DynamicObject, key: &str) -> &'a str {
    node.annotations().get(key).map_or("", String::as_str)
}

/// Whether the node runs what it should.
pub fn is_updated(node: &DynamicObject, target: &str) -> bool {
    annotation(node, CURRENT) == target && annotation(node, DESIRED) == target && annotation(node, STATE) == "Done"
}

/// Everything that one step of a pool's update looks at.
pub struct Pool<'a> {
    pub pool: &'a DynamicObject,
    pub nodes: &'a [&'a DynamicObject],
    pub configs: &'a BTreeMap<String, Value>,
    /// `status.nodeDisruptionPolicyStatus` of MachineConfiguration.
    pub policy: &'a Value,
    pub ready: fn(&DynamicObject) -> bool,
}

/// The next write to each node of the pool that has one: its name and a merge patch.
pub fn steps(pool: &Pool<'_>) -> Vec<(String, Value)> {
    let target = pool.pool.data["spec"]["configuration"]["name"].as_str().unwrap_or_default();
    let paused = pool.pool.data["spec"]["paused"] == true;
    if target.is_empty() {
        return Vec::new();
    }
    // A machine is served what the pool has reached, which in a paused pool is not what it is to reach.
    let served = pool.pool.data["status"]["configuration"]["name"].as_str().unwrap_or(target);
    let (mut steps, mut busy) = (Vec::new(), 0);
    for node in pool.nodes {
        let (current, desired) = (annotation(node, CURRENT), annotation(node, DESIRED));
        if current.is_empty() {
            steps.push((node.name_any(), annotated(&[(CURRENT, served), (DESIRED, served), (STATE, "Done")])));
        } else if current != desired || annotation(node, STATE) != "Done" {
            busy += 1;
            steps.extend(daemon(pool, node).map(|patch| (node.name_any(), patch)));
        } else if !(pool.ready)(node) {
            busy += 1;
        }
    }
    if !paused {
        let free = at_once(&pool.pool.data["spec"]["maxUnavailable"], pool.nodes.len()).saturating_sub(busy);
        let behind = pool.nodes.iter().filter(|node| {
            let (current, desired) = (annotation(node, CURRENT), annotation(node, DESIRED));
            !current.is_empty() && current == desired && annotation(node, STATE) == "Done" && current != target
        });
        steps.extend(behind.take(free).map(|node| (node.name_any(), annotated(&[(DESIRED, target)]))));
    }
    steps
}

/// How many nodes of a pool may be away at once: a number or a part of them, and always one.
fn at_once(wanted: &Value, nodes: usize) -> usize {
    let part = |text: &str| text.strip_suffix('%').and_then(|percent| percent.parse::<usize>().ok()).map(|percent| nodes * percent / 100);
    let number = wanted.as_u64().and_then(|number| usize::try_from(number).ok());
    number.or_else(|| wanted.as_str().and_then(part)).unwrap_or(1).max(1)
}

/// What the daemon on a node does next, if it is not waiting for a drain: it asks for one where it must, reboots, and says that
/// it is there.
fn daemon(pool: &Pool<'_>, node: &DynamicObject) -> Option<Value> {
    let (current, desired) = (annotation(node, CURRENT), annotation(node, DESIRED));
    let working = annotation(node, STATE) == "Working";
    let (away, back) = (drain::away(desired), drain::back(desired));
    if !working {
        let there = current == desired || cost(pool, current, desired) == Cost::Nothing;
        let asks = [(STATE, "Working"), (DESIRED_DRAIN, away.as_str())];
        return Some(if there { annotated(&[(CURRENT, desired), (STATE, "Done")]) } else { annotated(&asks) });
    }
    if current == desired {
        let asked = annotation(node, DESIRED_DRAIN) == back;
        return match annotation(node, LAST_DRAIN) == back {
            true => Some(annotated(&[(STATE, "Done")])),
            false => (!asked).then(|| annotated(&[(DESIRED_DRAIN, &back)])),
        };
    }
    if annotation(node, LAST_DRAIN) != away {
        return (annotation(node, DESIRED_DRAIN) != away).then(|| annotated(&[(DESIRED_DRAIN, &away)]));
    }
    let mut patch = annotated(&[(CURRENT, desired)]);
    if cost(pool, current, desired) == Cost::Reboot {
        let reboots: u64 = annotation(node, REBOOTS).parse().unwrap_or(0);
        patch["metadata"]["annotations"][REBOOTS] = json!((reboots + 1).to_string());
    }
    Some(patch)
}

fn annotated(annotations: &[(&str, &str)]) -> Value {
    let all: serde_json::Map<String, Value> = annotations.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
    json!({"metadata": {"annotations": all}})
}

/// What a change of files costs the node's workloads.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Cost {
    Nothing,
    Drain,
    Reboot,
}

/// By what the policy says of each file that changes; of one that it does not know a reboot.
fn cost(pool: &Pool<'_>, from: &str, to: &str) -> Cost {
    let (Some(from), Some(to)) = (pool.configs.get(from), pool.configs.get(to)) else { return Cost::Reboot };
    let of_action = |action: &Value| match action["type"].as_str() {
        // Restarts of services and the like disturb no workload either.
        Some("None" | "Reload" | "Restart" | "DaemonReload" | "Special") => Cost::Nothing,
        Some("Drain") => Cost::Drain,
        _ => Cost::Reboot,
    };
    let of_file = |path: &String| {
        let files = pool.policy["clusterPolicies"]["files"].as_array();
        let actions = files.into_iter().flatten().find(|file| file["path"] == path.as_str()).and_then(|file| file["actions"].as_array());
        actions.and_then(|actions| actions.iter().map(of_action).max()).unwrap_or(Cost::Reboot)
    };
    changed(from, to).iter().map(of_file).max().unwrap_or(Cost::Nothing)
}

fn changed(from: &Value, to: &Value) -> BTreeSet<String> {
    let files = |config: &Value| -> BTreeMap<String, Value> {
        let all = config["spec"]["config"]["storage"]["files"].as_array().into_iter().flatten();
        all.filter_map(|file| Some((file["path"].as_str()?.to_owned(), file["contents"].clone()))).collect()
    };
    let (from, to) = (files(from), files(to));
    from.keys().chain(to.keys()).filter(|path| from.get(*path) != to.get(*path)).cloned().collect()
}

#[cfg(test)]
#[path = "rollout_tests.rs"]
mod tests;
