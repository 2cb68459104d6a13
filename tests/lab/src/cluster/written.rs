//! Machines, Nodes and Pods that are only objects: for lists as long as those of a large cluster.

use futures::{StreamExt as _, TryStreamExt as _};
use kube::Client;
use kube::api::{DynamicObject, PostParams};
use serde_json::{Value, json};

use super::{Error, MANAGER, config, machines};
use crate::agent::WRITTEN;
use crate::faults::board::NAMESPACE;
use crate::kubernetes::{self, Kind, NODE, POD};
use crate::nodes;
use crate::shape::Written;
use crate::vcenter::{INFRA_ID, Vcenter};

/// How many requests at once.
const ABREAST: usize = 16;

pub fn name(index: u16) -> String {
    format!("{INFRA_ID}-written-{index:03}")
}

/// Writes as many as wanted. Nothing may look for their virtual machines: the machine controller and the cloud controller manager
/// have to be stopped.
pub async fn write(client: &Client, source: &Vcenter, wanted: Written) -> Result<(), Error> {
    let zone = source.zones.first().map(String::as_str).unwrap_or_default();
    let all = (0..wanted.machines).map(|index| (node(index), machine(index, source, zone)));
    futures::stream::iter(all)
        .map(|(node, machine)| async move {
            create(client, NODE, "", node).await?;
            kubernetes::apply(client, MANAGER, &machine).await.map(drop).map_err(Error::from)
        })
        .buffer_unordered(ABREAST)
        .try_collect::<Vec<()>>()
        .await?;
    let pods = (0..wanted.pods).map(|index| pod(index, wanted.machines));
    futures::stream::iter(pods).map(|pod| create(client, POD, NAMESPACE, pod)).buffer_unordered(ABREAST).try_collect::<Vec<()>>().await?;
    Ok(())
}

async fn create(client: &Client, kind: Kind, namespace: &str, manifest: Value) -> Result<(), Error> {
    let fail = |reason: String| Error::Manifest { name: kind.kind.to_owned(), reason };
    let object: DynamicObject = serde_json::from_value(manifest).map_err(|error| fail(error.to_string()))?;
    kind.api(client, namespace).create(&PostParams::default(), &object).await.map_err(|error| fail(error.to_string()))?;
    Ok(())
}

/// Unlike anything a hypervisor gives out.
fn uuid(index: u16) -> String {
    format!("0b1ec700-0000-4000-8000-{index:012x}")
}

fn address(index: u16) -> String {
    let [high, low] = index.to_be_bytes();
    format!("10.250.{high}.{low}")
}

fn node(index: u16) -> Value {
    let mut node = nodes::node_status(&nodes::smbios(&uuid(index)), true, config::KUBERNETES);
    node["status"]["addresses"] = json!([{"type": "InternalIP", "address": address(index)}]);
    node["apiVersion"] = json!("v1");
    node["kind"] = json!("Node");
    node["metadata"] = json!({"name": name(index), "labels": {
        "kubernetes.io/hostname": name(index), "kubernetes.io/os": "linux", "node-role.kubernetes.io/worker": "", WRITTEN: "",
    }});
    // Nothing is scheduled here: what runs in a lab runs on the nodes of its virtual machines.
    node["spec"] = json!({
        "providerID": format!("vsphere://{}", uuid(index)),
        "taints": [{"key": WRITTEN, "effect": "NoSchedule"}],
    });
    node
}

fn machine(index: u16, source: &Vcenter, zone: &str) -> Value {
    json!({
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
        "metadata": {"name": name(index), "namespace": machines::NAMESPACE, "labels": machines::labels("worker")},
        "spec": {
            "metadata": {}, "providerID": format!("vsphere://{}", uuid(index)),
            "providerSpec": {"value": machines::provider_spec(source, zone, "worker")},
        },
        "status": {
            "phase": "Running", "nodeRef": {"kind": "Node", "name": name(index)},
            "addresses": [{"type": "InternalIP", "address": address(index)}, {"type": "Hostname", "address": name(index)}],
        },
    })
}

fn pod(index: u32, nodes: u16) -> Value {
    let place = u16::try_from(index % u32::from(nodes.max(1))).unwrap_or_default();
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": format!("written-{index:05}"), "labels": {WRITTEN: "", "app": format!("app-{}", index % 50)}},
        "spec": {
            "nodeName": name(place),
            "tolerations": [{"operator": "Exists"}],
            "containers": [{"name": "app", "image": "vmi-lab/shell", "args": ["-c", "exec sleep infinity"],
                "env": [{"name": "INSTANCE", "value": index.to_string()}],
                "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}}}],
        },
    })
}
