//! Nodes follow virtual machines, as kubelets would make them do: a machine that is powered on joins, one that is switched off
//! turns NotReady, one that is gone leaves its Node behind for the cloud controller manager to delete.

use std::collections::HashMap;

use futures::StreamExt as _;
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::faults::{Fault, board};
use crate::kubernetes::{self, NODE};
use crate::vcenter::{Control, Guest};

const MANAGER: &str = "kubelet";
/// The annotation that counts the boots of a Node's machine, which only its guest tells.
pub const BOOTS: &str = "vmi-lab/boots";
/// The annotation that counts the reboots which the machine config operator makes and the machine does not notice: two who count
/// in one would overwrite each other, and every difference would pass for a boot.
pub const REBOOTS: &str = "vmi-lab/reboots";
/// Between attempts.
const PACE: std::time::Duration = std::time::Duration::from_secs(1);

/// Keeps Nodes in step with the virtual machines until dropped.
pub async fn follow(client: Client, control: Control, version: String) {
    let mut board = board::watch(&client).await;
    let mut follower = Follower { client, version, joined: HashMap::new(), waiting: HashMap::new(), failed: false };
    loop {
        match control.guests().await {
            Ok(guests) => {
                let mut guests = std::pin::pin!(guests);
                loop {
                    tokio::select! {
                        guest = guests.next() => match guest {
                            Some(Some(guest)) => follower.hear(guest, &board::seen(&board)).await,
                            Some(None) => {}
                            None => break,
                        },
                        () = board.changed() => follower.look_again(&board::seen(&board)).await,
                        // No event says that the apiserver would take now what it did not take before.
                        () = tokio::time::sleep(PACE), if follower.failed => follower.look_again(&board::seen(&board)).await,
                    }
                }
            }
            Err(error) => tracing::warn!(%error, "cannot follow the guests"),
        }
        // The stream only ends with the simulator, whose death ends the lab; until that is noticed, ask once a second.
        tokio::time::sleep(PACE).await;
    }
}

/// By vCenter and name.
type Key = (String, String);

struct Follower {
    client: Client,
    version: String,
    /// Those whose Nodes are as they are.
    joined: HashMap<Key, Guest>,
    /// Those whose Nodes could not be written, or that stay away because of a fault.
    waiting: HashMap<Key, Guest>,
    failed: bool,
}

impl Follower {
    async fn hear(&mut self, guest: Guest, faults: &[Fault]) {
        let key = (guest.vcenter.clone(), guest.name.clone());
        let known = self.joined.contains_key(&key);
        self.waiting.remove(&key);
        if guest.template || self.joined.get(&key) == Some(&guest) {
            return;
        }
        let away = !known && !guest.deleted && board::stays_away(faults, &guest.name);
        if away || !step(&self.client, &guest, known, &self.version).await {
            self.failed |= !away;
            self.waiting.insert(key, guest);
        } else if guest.deleted {
            self.joined.remove(&key);
        } else if guest.power == "poweredOn" || known {
            self.joined.insert(key, guest);
        }
    }

    async fn look_again(&mut self, faults: &[Fault]) {
        self.failed = false;
        for (_, guest) in std::mem::take(&mut self.waiting) {
            self.hear(guest, faults).await;
        }
    }
}

/// Has the Node follow its guest; false where the apiserver did not take it.
async fn step(client: &Client, guest: &Guest, known: bool, version: &str) -> bool {
    let ready = !guest.deleted && guest.power == "poweredOn";
    // A guest without an address has not booted far enough for its kubelet to register.
    if !known && (!ready || guest.ip.is_empty()) {
        return true;
    }
    let result = async {
        if ready {
            register(client, &guest.name, &[("node.cloudprovider.kubernetes.io/uninitialized", "true")], role(&guest.name)).await?;
        }
        report(client, &guest.name, &status(guest, ready, version), guest.boots).await
    };
    match result.await {
        Err(error) if error.is_not_found() => tracing::debug!(node = guest.name, "the node is gone already"),
        Err(error) => {
            tracing::warn!(node = guest.name, %error, "cannot write the node");
            return false;
        }
        Ok(()) => tracing::info!(node = guest.name, vcenter = guest.vcenter, ready, boots = guest.boots, "node follows its machine"),
    }
    true
}

/// The role is in the user data a machine boots with; the lab reads it off the name.
fn role(name: &str) -> &'static str {
    if name.contains("-master-") { "master" } else { "worker" }
}

/// Creates the Node as a kubelet does at its first start; one that exists is left as it is.
pub async fn register(client: &Client, name: &str, taints: &[(&str, &str)], role: &str) -> Result<(), kubernetes::Error> {
    let mut taints: Vec<Value> = taints.iter().map(|(key, value)| json!({"key": key, "value": value, "effect": "NoSchedule"})).collect();
    let mut labels = json!({"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "node.openshift.io/os_id": "rhcos"});
    if role == "master" {
        taints.push(json!({"key": "node-role.kubernetes.io/master", "effect": "NoSchedule"}));
        labels["node-role.kubernetes.io/control-plane"] = json!("");
    }
    labels[format!("node-role.kubernetes.io/{role}")] = json!("");
    let node = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": taints},
    });
    let object = serde_json::from_value(node).unwrap_or_else(|_| kube::api::DynamicObject::new(name, &NODE.resource()));
    match NODE.api(client, "").create(&kube::api::PostParams::default(), &object).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        Err(source) => {
            Err(kubernetes::Error::Request { verb: "create", kind: "Node".to_owned(), name: name.to_owned(), source: Box::new(source) })
        }
    }
}

/// Writes what a kubelet reports: status, and the boots so far where the node agent can see them.
pub async fn report(client: &Client, name: &str, status: &Value, boots: u64) -> Result<(), kubernetes::Error> {
    kubernetes::merge(client, NODE, "", name, &json!({"metadata": {"annotations": {BOOTS: boots.to_string()}}})).await?;
    // A strategic merge keeps the addresses and conditions that others wrote.
    NODE.api(client, "")
        .patch_status(name, &PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() }, &Patch::Strategic(status))
        .await
        .map(|_| ())
        .map_err(|source| kubernetes::Error::Request {
            verb: "patch the status of",
            kind: "Node".to_owned(),
            name: name.to_owned(),
            source: Box::new(source),
        })
}

fn status(guest: &Guest, ready: bool, version: &str) -> Value {
    let mut status = node_status(&smbios(&guest.uuid), ready, version);
    if !guest.ip.is_empty() {
        status["status"]["addresses"] = json!([{"type": "InternalIP", "address": guest.ip}, {"type": "Hostname", "address": guest.name}]);
    }
    status
}

/// A machine's BIOS UUID as its guest reads it from the firmware: the first three groups in the other byte order.
pub fn smbios(uuid: &str) -> String {
    let swapped = |group: &str| -> String {
        let pairs: Vec<&str> = group.as_bytes().chunks(2).rev().filter_map(|pair| std::str::from_utf8(pair).ok()).collect();
        pairs.concat()
    };
    let groups: Vec<String> =
        uuid.split('-').enumerate().map(|(index, group)| if index < 3 { swapped(group) } else { group.to_owned() }).collect();
    groups.join("-").to_lowercase()
}

/// The status of a node with this system UUID.
pub fn node_status(system_uuid: &str, ready: bool, version: &str) -> Value {
    let now = Timestamp::now().to_string();
    let (status, reason, message) = if ready {
        ("True", "KubeletReady", "kubelet is posting ready status")
    } else {
        ("Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")
    };
    let quantities = json!({"cpu": "16", "memory": "64Gi", "pods": "250", "ephemeral-storage": "120Gi"});
    json!({"status": {
        "conditions": [
            {"type": "Ready", "status": status, "reason": reason, "message": message, "lastHeartbeatTime": now, "lastTransitionTime": now},
            {"type": "MemoryPressure", "status": "False", "reason": "KubeletHasSufficientMemory", "message": "kubelet has sufficient memory available", "lastHeartbeatTime": now, "lastTransitionTime": now},
        ],
        "capacity": quantities, "allocatable": quantities,
        "daemonEndpoints": {"kubeletEndpoint": {"Port": crate::control_plane::KUBELET_PORT}},
        "nodeInfo": {
            "machineID": system_uuid.replace('-', ""), "systemUUID": system_uuid, "bootID": system_uuid,
            "kernelVersion": "lab", "osImage": "vmi lab", "containerRuntimeVersion": "processes://1",
            "kubeletVersion": version, "kubeProxyVersion": version, "operatingSystem": "linux", "architecture": "amd64",
        },
    }})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guest_reads_the_first_three_groups_of_its_uuid_in_the_other_byte_order() {
        assert_eq!(smbios("421d8060-04c1-6f84-0a0b-0123456789AB"), "60801d42-c104-846f-0a0b-0123456789ab");
    }

    #[test]
    fn a_switched_off_machine_is_reported_as_a_kubelet_that_went_silent() {
        let status = node_status("x", false, "v1.34.4");
        assert_eq!(status["status"]["conditions"][0]["status"], "Unknown");
    }
}
