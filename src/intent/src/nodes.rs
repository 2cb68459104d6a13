//! Which nodes are vSphere's. Bare-metal hosts may stand beside them in a vSphere cluster; the migration leaves those alone.

use std::collections::BTreeSet;

use serde_json::Value;

const PLATFORM: &str = "node.openshift.io/platform-type";
const INSTANCE_TYPE: &str = "node.kubernetes.io/instance-type";
const MACHINE: &str = "machine.openshift.io/machine";
const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";

/// Region and zone of a node, as the cloud controller manager says.
const TOPOLOGY: [&str; 2] = ["topology.kubernetes.io/region", "topology.kubernetes.io/zone"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    Vsphere,
    /// Joined without a cloud provider, or run by the bare-metal operator.
    BareMetal,
    /// Another platform's, or one the cloud controller manager has yet to find.
    Other,
}

/// The first sign that says something decides: platform label, provider id, instance type, Machine, taint.
pub fn class(node: &Value) -> Class {
    let label = |key: &str| node.pointer("/metadata/labels").and_then(|labels| labels.get(key)).and_then(Value::as_str);
    match label(PLATFORM) {
        None | Some("vsphere") => {}
        Some(platform) if ["baremetal", "metal", "none"].contains(&platform.to_ascii_lowercase().as_str()) => return Class::BareMetal,
        Some(_) => return Class::Other,
    }
    if let Some(id) = node.pointer("/spec/providerID").and_then(Value::as_str).filter(|id| !id.is_empty()) {
        return match id.split_once("://") {
            Some(("vsphere", _)) => Class::Vsphere,
            Some(("baremetalhost", _)) => Class::BareMetal,
            _ => Class::Other,
        };
    }
    let machine = node.pointer("/metadata/annotations").is_some_and(|annotations| annotations.get(MACHINE).is_some());
    let waits = node.pointer("/spec/taints").and_then(Value::as_array).is_some_and(|taints| {
        let key = |taint: &Value| taint.get("key").and_then(Value::as_str) == Some(UNINITIALIZED);
        taints.iter().any(key)
    });
    match label(INSTANCE_TYPE) {
        _ if label(PLATFORM).is_some() || machine => Class::Vsphere,
        Some(kind) if kind.starts_with("vsphere-vm.") => Class::Vsphere,
        Some(_) => Class::Other,
        None if waits => Class::Other,
        None => Class::BareMetal,
    }
}

/// Whether the node is a virtual machine that somebody made by hand, so that nobody moves it, and is in none of these places, each a
/// region and its zone. `of_machines` are the nodes that Machines name.
pub fn is_made_by_hand(node: &Value, of_machines: &BTreeSet<&str>, places: &[(&str, &str)]) -> bool {
    let name = node.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    let [region, zone] = TOPOLOGY.map(|key| node.pointer("/metadata/labels").and_then(|labels| labels.get(key)).and_then(Value::as_str));
    let elsewhere = region.zip(zone).is_some_and(|place| places.contains(&place));
    class(node) == Class::Vsphere && !of_machines.contains(name) && !elsewhere
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_first_sign_that_says_something_decides() {
        let vsphere_id = json!({"providerID": "vsphere://4217f5a8-1111-2222-3333-444455556666"});
        let waiting = json!({"taints": [{"key": UNINITIALIZED, "effect": "NoSchedule"}]});
        for (labels, annotations, spec, want) in [
            (json!({}), json!({}), vsphere_id.clone(), Class::Vsphere),
            (json!({PLATFORM: "vsphere"}), json!({}), vsphere_id.clone(), Class::Vsphere),
            (json!({PLATFORM: "vsphere"}), json!({}), json!({}), Class::Vsphere),
            (json!({PLATFORM: "baremetal"}), json!({}), vsphere_id.clone(), Class::BareMetal),
            (json!({PLATFORM: "none"}), json!({}), json!({}), Class::BareMetal),
            (json!({PLATFORM: "nutanix"}), json!({}), vsphere_id, Class::Other),
            (json!({}), json!({}), json!({"providerID": "aws:///eu-1/i-1"}), Class::Other),
            (json!({}), json!({}), json!({"providerID": "vsphere-like://x"}), Class::Other),
            (json!({}), json!({}), json!({"providerID": "baremetalhost:///openshift-machine-api/host-1"}), Class::BareMetal),
            (json!({INSTANCE_TYPE: "vsphere-vm.cpu-4.mem-16gb.os-rhel"}), json!({}), json!({}), Class::Vsphere),
            (json!({INSTANCE_TYPE: "m5.large"}), json!({}), json!({}), Class::Other),
            (json!({}), json!({MACHINE: "openshift-machine-api/w-1"}), json!({}), Class::Vsphere),
            (json!({}), json!({MACHINE: "openshift-machine-api/w-1"}), waiting.clone(), Class::Vsphere),
            (json!({}), json!({}), waiting, Class::Other),
            (json!({}), json!({}), json!({"providerID": ""}), Class::BareMetal),
            (json!({}), json!({}), json!({}), Class::BareMetal),
        ] {
            let node = json!({"metadata": {"labels": labels, "annotations": annotations}, "spec": spec});
            assert_eq!(class(&node), want, "{node}");
        }
    }

    #[test]
    fn a_node_without_labels_and_annotations_at_all_is_bare_metal() {
        assert_eq!(class(&json!({"metadata": {"name": "host-1"}, "spec": {}})), Class::BareMetal);
    }

    #[test]
    fn a_virtual_machine_without_a_machine_is_made_by_hand_wherever_it_is_not_known_to_be_elsewhere() {
        let node = |id: &str, labels: Value| json!({"metadata": {"name": "n", "labels": labels}, "spec": {"providerID": id}});
        let at = |region: &str, zone: &str| json!({TOPOLOGY[0]: region, TOPOLOGY[1]: zone});
        let (vm, places, nobody) = ("vsphere://1", [("region-b", "zone-b")], BTreeSet::new());
        for (node, of_machines, by_hand) in [
            (node(vm, json!({})), &nobody, true),
            (node(vm, at("region-a", "zone-a")), &nobody, true),
            (node(vm, at("region-a", "zone-b")), &nobody, true),
            (node(vm, at("region-b", "zone-b")), &nobody, false),
            (node(vm, json!({})), &BTreeSet::from(["n"]), false),
            (node("", json!({})), &nobody, false),
        ] {
            assert_eq!(is_made_by_hand(&node, of_machines, &places), by_hand, "{node}");
        }
    }
}
