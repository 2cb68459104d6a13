//! Machines and nodes as they stand. Pure looks.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::{Value, json};
use vmi_kit::Kind;

/// What the machine API's controllers tell of a machine besides its status.
pub const EVENT: Kind = Kind { group: "", version: "v1", kind: "Event", plural: "events", namespaced: true };
/// What a new node asks for before it may join.
pub const SIGNING_REQUEST: Kind = Kind {
    group: "certificates.k8s.io",
    version: "v1",
    kind: "CertificateSigningRequest",
    plural: "certificatesigningrequests",
    namespaced: false,
};

/// Where machines and what makes them live.
pub const NAMESPACE: &str = "openshift-machine-api";
const ROLE: &str = "machine.openshift.io/cluster-api-machine-role";
const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";
/// The API takes no more.
const MOST_COUNTS: usize = 128;

/// An object as the cache has it.
pub type Object = Arc<DynamicObject>;

/// The vCenter a Machine is on.
pub fn server(machine: &DynamicObject) -> &str {
    machine.data["spec"]["providerSpec"]["value"]["workspace"]["server"].as_str().unwrap_or_default()
}

/// The vCenter a MachineSet makes machines on.
pub fn set_server(set: &DynamicObject) -> &str {
    set.data["spec"]["template"]["spec"]["providerSpec"]["value"]["workspace"]["server"].as_str().unwrap_or_default()
}

/// How many machines a MachineSet is to have; one where it does not say.
pub fn replicas(set: &DynamicObject) -> i64 {
    set.data["spec"]["replicas"].as_i64().unwrap_or(1)
}

/// Whether a Machine belongs to the control plane.
pub fn is_master(machine: &DynamicObject) -> bool {
    role(machine) == "master"
}

fn role(machine: &DynamicObject) -> &str {
    machine.labels().get(ROLE).map_or("", String::as_str)
}

/// How far a Machine is, as its controller says.
pub fn phase(machine: &DynamicObject) -> &str {
    if machine.metadata.deletion_timestamp.is_some() {
        return "Deleting";
    }
    machine.data["status"]["phase"].as_str().filter(|phase| !phase.is_empty()).unwrap_or("New")
}

/// The Node that a Machine became.
pub fn node_name(machine: &DynamicObject) -> Option<&str> {
    machine.data["status"]["nodeRef"]["name"].as_str()
}

/// Whether the set made the Machine.
pub fn belongs_to(machine: &DynamicObject, set: &DynamicObject) -> bool {
    machine.owner_references().iter().any(|owner| Some(&owner.uid) == set.metadata.uid.as_ref())
}

/// How a machine stands that is to serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It serves.
    Up,
    /// Not yet: why.
    Coming(String),
    /// It never will: why.
    Failed(String),
}

/// How a machine stands; `labels` are those its node has to have.
pub fn standing(machine: &DynamicObject, node: Option<&DynamicObject>, labels: &BTreeMap<String, String>) -> Standing {
    let name = machine.name_any();
    match phase(machine) {
        "Failed" => {
            let status = &machine.data["status"];
            let [reason, message] = ["errorReason", "errorMessage"].map(|field| status[field].as_str().unwrap_or("no reason given"));
            return Standing::Failed(format!("Machine {name} has failed: {reason}: {message}"));
        }
        "Running" => {}
        "Provisioned" => return Standing::Coming(format!("Machine {name} is Provisioned: it runs, and has not joined as a Node")),
        phase => return Standing::Coming(format!("Machine {name} is {phase}{}", creation(machine))),
    }
    match (node_name(machine), node) {
        (None, _) => Standing::Coming(format!("Machine {name} has no Node yet")),
        (Some(node), None) => Standing::Coming(format!("Machine {name} waits for Node {node} to join")),
        (Some(_), Some(node)) => lacking(node, labels).map_or(Standing::Up, Standing::Coming),
    }
}

/// What its controller says of its creation, where that went wrong, and the last task it gave the vCenter: there one sees why it takes
/// its time.
pub fn creation(machine: &DynamicObject) -> String {
    let status = &machine.data["status"]["providerStatus"];
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let trouble = conditions.into_iter().find(|condition| condition["type"] == "MachineCreation" && condition["status"] == "False");
    let trouble = trouble.and_then(|condition| condition["message"].as_str()).map(str::to_owned);
    let told: Vec<String> = trouble.into_iter().chain(task(machine)).collect();
    if told.is_empty() { String::new() } else { format!(" ({})", told.join("; ")) }
}

/// The last task that its controller gave the vCenter.
pub fn task(machine: &DynamicObject) -> Option<String> {
    let task = machine.data["status"]["providerStatus"]["taskRef"].as_str().filter(|task| !task.is_empty())?;
    Some(format!("vCenter task {task} on {}", server(machine)))
}

/// What a node lacks to serve.
fn lacking(node: &DynamicObject, labels: &BTreeMap<String, String>) -> Option<String> {
    let name = node.name_any();
    let conditions = node.data["status"]["conditions"].as_array().into_iter().flatten();
    if !conditions.into_iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True") {
        return Some(format!("Node {name} is not Ready"));
    }
    let mut taints = node.data["spec"]["taints"].as_array().into_iter().flatten();
    if taints.any(|taint| taint["key"] == UNINITIALIZED) || node.data["spec"]["providerID"].as_str().is_none_or(str::is_empty) {
        return Some(format!("Node {name} waits for the cloud controller manager to find its virtual machine"));
    }
    let wrong = labels.iter().find(|(label, wanted)| node.labels().get(*label) != Some(*wanted))?;
    let found = node.labels().get(wrong.0).map_or("not there", String::as_str);
    Some(format!("Node {name}: label {} is {found}, not {}", wrong.0, wrong.1))
}

/// How many machines of each role are in which phase on which vCenter.
pub fn counts(machines: &[Object]) -> Value {
    let mut counts: BTreeMap<[String; 3], i32> = BTreeMap::new();
    for machine in machines.iter().filter(|machine| !server(machine).is_empty()) {
        let role = if role(machine).is_empty() { "unknown" } else { role(machine) };
        *counts.entry([role, server(machine), phase(machine)].map(str::to_owned)).or_default() += 1;
    }
    let count =
        |([role, vcenter, phase], count): ([String; 3], i32)| json!({"role": role, "vcenter": vcenter, "phase": phase, "count": count});
    counts.into_iter().take(MOST_COUNTS).map(count).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends by panicking")]

    use super::*;

    fn object(value: Value) -> DynamicObject {
        serde_json::from_value(value).unwrap()
    }

    fn machine(role: &str, server: &str, phase: &str) -> Object {
        Arc::new(object(json!({"metadata": {"name": "m", "labels": {ROLE: role}},
            "spec": {"providerSpec": {"value": {"workspace": {"server": server}}}},
            "status": {"phase": phase, "nodeRef": {"name": "n"}, "errorReason": "InvalidConfiguration", "errorMessage": "no template"}})))
    }

    fn node(ready: &str, taints: &Value, provider: &str, labels: &Value) -> DynamicObject {
        object(json!({"metadata": {"name": "n", "labels": labels}, "spec": {"taints": taints, "providerID": provider},
            "status": {"conditions": [{"type": "Ready", "status": ready}]}}))
    }

    #[test]
    fn a_machine_is_up_when_its_node_is_ready_initialised_and_labelled() {
        let labels = BTreeMap::from([("zone".to_owned(), "b".to_owned())]);
        let good = || node("True", &json!([{"key": "infra"}]), "vsphere://1", &json!({"zone": "b"}));
        let running = machine("worker", "b", "Running");
        assert_eq!(standing(&running, Some(&good()), &labels), Standing::Up);
        for (node, why) in [
            (node("False", &json!([]), "vsphere://1", &json!({"zone": "b"})), "not Ready"),
            (node("True", &json!([{"key": UNINITIALIZED}]), "vsphere://1", &json!({"zone": "b"})), "cloud controller manager"),
            (node("True", &json!([]), "", &json!({"zone": "b"})), "cloud controller manager"),
            (node("True", &json!([]), "vsphere://1", &json!({"zone": "a"})), "label zone is a, not b"),
            (node("True", &json!([]), "vsphere://1", &json!({})), "label zone is not there, not b"),
        ] {
            assert!(matches!(standing(&running, Some(&node), &labels), Standing::Coming(text) if text.contains(why)), "{why}");
        }
        assert!(matches!(standing(&running, None, &labels), Standing::Coming(text) if text.contains("waits for Node n to join")));
    }

    #[test]
    fn a_machine_that_failed_says_why_and_one_on_its_way_how_far_it_is() {
        let none = BTreeMap::new();
        let failed = standing(&machine("worker", "b", "Failed"), None, &none);
        assert_eq!(failed, Standing::Failed("Machine m has failed: InvalidConfiguration: no template".to_owned()));
        let mut coming = machine("worker", "b", "Provisioning").as_ref().clone();
        coming.data["status"]["providerStatus"] =
            json!({"conditions": [{"type": "MachineCreation", "status": "False", "message": "no host"}]});
        assert_eq!(standing(&coming, None, &none), Standing::Coming("Machine m is Provisioning (no host)".to_owned()));
        coming.data["status"]["providerStatus"]["taskRef"] = json!("task-42");
        assert_eq!(creation(&coming), " (no host; vCenter task task-42 on b)");
        coming.data["status"]["providerStatus"]["conditions"] = json!([{"type": "MachineCreation", "status": "True", "message": "fine"}]);
        assert_eq!(creation(&coming), " (vCenter task task-42 on b)");
        let lonely = standing(&machine("worker", "b", "Provisioned"), None, &none);
        assert_eq!(lonely, Standing::Coming("Machine m is Provisioned: it runs, and has not joined as a Node".to_owned()));
    }

    #[test]
    fn machines_are_counted_by_role_vcenter_and_phase_and_those_of_no_vcenter_are_not() {
        let all = [
            machine("worker", "b", "Running"),
            machine("master", "a", "Running"),
            machine("worker", "b", "Running"),
            machine("worker", "b", ""),
            machine("worker", "", "Running"),
        ];
        let count =
            |role: &str, vcenter: &str, phase: &str, count: i32| json!({"role": role, "vcenter": vcenter, "phase": phase, "count": count});
        assert_eq!(
            counts(&all),
            json!([count("master", "a", "Running", 1), count("worker", "b", "New", 1), count("worker", "b", "Running", 2)])
        );
    }
}
