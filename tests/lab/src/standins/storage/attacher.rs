//! The part of the vSphere CSI driver that others wait for: VolumeAttachments are attached and let go. There are no volumes behind
//! them.

use kube::api::DynamicObject;
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

use super::{DRIVER, is_virtual_machine};
use crate::cache::Cache;
use crate::kubernetes::{self, NODE, VOLUME_ATTACHMENT};
use crate::standins::operator_status;

const FINALIZER: &str = "external-attacher/csi-vsphere-vmware-com";

/// What is wanted is attached, what is given up is let go.
pub async fn attach(client: &Client, cache: &Cache) -> Result<(), kubernetes::Error> {
    for attachment in cache.list(VOLUME_ATTACHMENT).iter().filter(|attachment| attachment.data["spec"]["attacher"] == DRIVER) {
        let name = attachment.name_any();
        let held = attachment.finalizers().iter().any(|finalizer| finalizer == FINALIZER);
        match (attachment.metadata.deletion_timestamp.is_some(), held) {
            (true, true) => {
                let left: Vec<&String> = attachment.finalizers().iter().filter(|finalizer| *finalizer != FINALIZER).collect();
                kubernetes::merge(client, VOLUME_ATTACHMENT, "", &name, &json!({"metadata": {"finalizers": left}})).await?;
            }
            (false, _) if attachment.data["status"]["attached"] != true => {
                let node = attachment.data["spec"]["nodeName"].as_str().unwrap_or_default();
                let refused = refusal(node, cache.get(NODE, "", node).as_ref().map(|node| &node.data));
                take(client, attachment, held, refused).await?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// The next write to an attachment that is not attached yet. The finalizer comes first, and only where it can be attached.
async fn take(client: &Client, attachment: &DynamicObject, held: bool, refused: Option<String>) -> Result<(), kubernetes::Error> {
    let name = attachment.name_any();
    let status = match refused {
        Some(why) if attachment.data["status"]["attachError"]["message"] == why.as_str() => return Ok(()),
        Some(why) => json!({"attached": false, "attachError": {"message": why, "time": operator_status::now()}}),
        None if held => json!({"attached": true, "attachError": null}),
        None => {
            let all: Vec<&str> = attachment.finalizers().iter().map(String::as_str).chain([FINALIZER]).collect();
            return kubernetes::merge(client, VOLUME_ATTACHMENT, "", &name, &json!({"metadata": {"finalizers": all}})).await.map(drop);
        }
    };
    kubernetes::merge_status(client, VOLUME_ATTACHMENT, "", &name, &json!({"status": status})).await.map(drop)
}

/// Why nothing can be attached to the node of this name, in the words of the real attacher: the driver registers itself only on a
/// virtual machine of vSphere.
fn refusal(name: &str, node: Option<&Value>) -> Option<String> {
    match node {
        None => Some(format!("csinode.storage.k8s.io \"{name}\" not found")),
        Some(node) => (!is_virtual_machine(node)).then(|| format!("CSINode {name} does not contain driver {DRIVER}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_is_attached_only_to_a_node_that_is_a_virtual_machine_of_vsphere() {
        assert_eq!(refusal("n", Some(&json!({"spec": {"providerID": "vsphere://x"}}))), None);
        let elsewhere = Some("CSINode n does not contain driver csi.vsphere.vmware.com".to_owned());
        assert_eq!(refusal("n", Some(&json!({"spec": {}}))), elsewhere);
        assert_eq!(refusal("n", Some(&json!({"spec": {"providerID": "baremetalhost:///x"}}))), elsewhere);
        assert_eq!(refusal("n", None), Some("csinode.storage.k8s.io \"n\" not found".to_owned()));
    }
}
