//! The drain controller: a node says by an annotation that it wants to be drained or used again, and reads in another that it is.
//! It is cordoned, and its pods are evicted, but for those of DaemonSets; a disruption budget can keep a drain waiting.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DynamicObject, EvictParams};
use kube::runtime::watcher;
use kube::{Client, ResourceExt as _};
use serde_json::json;
use tokio::task::JoinSet;

use crate::cache::Cache;
use crate::kubernetes::{self, NODE, POD, full_name};

pub const DESIRED_DRAIN: &str = "machineconfiguration.openshift.io/desiredDrain";
pub const LAST_DRAIN: &str = "machineconfiguration.openshift.io/lastAppliedDrain";
/// As long as the real one's drains wait before an eviction that a budget refused is tried again: no event says when it allows it.
const REFUSED: Duration = Duration::from_secs(5);

/// What a node asks for before it reboots into this configuration.
pub fn away(config: &str) -> String {
    format!("drain-{config}")
}

/// And after it.
pub fn back(config: &str) -> String {
    format!("uncordon-{config}")
}

/// What a node asks for and has not got yet.
fn asked(node: &DynamicObject) -> Option<String> {
    let desired = node.annotations().get(DESIRED_DRAIN)?;
    (node.annotations().get(LAST_DRAIN) != Some(desired)).then(|| desired.clone())
}

/// Drains nodes side by side, for ever.
pub async fn keep(client: &Client) -> ! {
    let mut cache = Cache::start(client, &[(NODE, "")]).await;
    let (mut at_work, mut nodes) = (JoinSet::new(), BTreeSet::new());
    loop {
        for node in cache.list(NODE) {
            let name = node.name_any();
            if let Some(order) = asked(&node)
                && nodes.insert(name.clone())
            {
                at_work.spawn(serve(client.clone(), name, order));
            }
        }
        tokio::select! {
            _ = cache.changed() => {}
            Some(done) = at_work.join_next() => match done {
                Ok(name) => drop(nodes.remove(&name)),
                Err(error) => tracing::error!("a drain ended badly: {error}"),
            },
        }
    }
}

async fn serve(client: Client, node: String, order: String) -> String {
    while let Err(error) = drain_or_use(&client, &node, &order).await {
        if error.is_not_found() {
            break;
        }
        tracing::error!("node {node}: {error}; it is tried again");
        tokio::time::sleep(REFUSED).await;
    }
    node
}

async fn drain_or_use(client: &Client, node: &str, order: &str) -> Result<(), kubernetes::Error> {
    let applied = json!({"annotations": {LAST_DRAIN: order}});
    if order.starts_with("drain-") {
        tracing::info!("node {node}: initiating cordon and drain");
        kubernetes::merge(client, NODE, "", node, &json!({"spec": {"unschedulable": true}})).await?;
        evict_all(client, node).await?;
        tracing::info!("node {node}: operation successful; applying completion annotation");
        kubernetes::merge(client, NODE, "", node, &json!({"metadata": applied})).await?;
    } else {
        tracing::info!("node {node}: initiating uncordon");
        kubernetes::merge(client, NODE, "", node, &json!({"metadata": applied, "spec": {"unschedulable": null}})).await?;
    }
    Ok(())
}

/// Returns when nothing is left on the node that has to leave it.
async fn evict_all(client: &Client, node: &str) -> Result<(), kubernetes::Error> {
    let on_it = watcher::Config::default().fields(&format!("spec.nodeName={node}"));
    let mut cache = Cache::start_selected(client, &[(POD, "")], &on_it).await;
    loop {
        let left: Vec<Arc<DynamicObject>> = cache.list(POD).into_iter().filter(|pod| has_to_leave(pod)).collect();
        if left.is_empty() {
            return Ok(());
        }
        let mut refused = false;
        for pod in left.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()) {
            let api: Api<Pod> = Api::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
            match api.evict(&pod.name_any(), &EvictParams::default()).await {
                Ok(_) => tracing::info!("node {node}: evicting pod {}", full_name(pod)),
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                Err(error) => {
                    tracing::error!("node {node}: error when evicting pod {} (will retry after 5s): {error}", full_name(pod));
                    refused = true;
                }
            }
        }
        // Evicted pods bring events as they go.
        let wait = if refused { REFUSED } else { Duration::MAX };
        let _ = tokio::time::timeout(wait, cache.changed()).await;
    }
}

/// Every pod that runs and that no DaemonSet would put there again.
fn has_to_leave(pod: &DynamicObject) -> bool {
    let owners = pod.metadata.owner_references.iter().flatten();
    let stays = owners.into_iter().any(|owner| owner.kind == "DaemonSet") || pod.annotations().contains_key("kubernetes.io/config.mirror");
    let over = ["Succeeded", "Failed"].iter().any(|phase| pod.data["status"]["phase"] == *phase);
    !stays && !over
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn object(value: Value) -> DynamicObject {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_node_is_served_once_for_each_thing_it_asks_for() {
        let node = |annotations: Value| object(json!({"metadata": {"name": "n", "annotations": annotations}}));
        assert_eq!(asked(&node(json!({}))), None);
        assert_eq!(asked(&node(json!({DESIRED_DRAIN: "drain-a"}))), Some("drain-a".to_owned()));
        assert_eq!(asked(&node(json!({DESIRED_DRAIN: "uncordon-a", LAST_DRAIN: "drain-a"}))), Some("uncordon-a".to_owned()));
        assert_eq!(asked(&node(json!({DESIRED_DRAIN: "drain-a", LAST_DRAIN: "drain-a"}))), None);
    }

    #[test]
    fn pods_of_daemon_sets_and_those_that_are_over_stay() {
        let pod = |owner: &str, phase: &str| {
            let owners = json!([{"apiVersion": "apps/v1", "kind": owner, "name": "o", "uid": "u"}]);
            object(json!({"metadata": {"name": "p", "ownerReferences": owners}, "status": {"phase": phase}}))
        };
        assert!(has_to_leave(&pod("ReplicaSet", "Running")) && has_to_leave(&pod("ReplicaSet", "Pending")));
        assert!(!has_to_leave(&pod("DaemonSet", "Running")) && !has_to_leave(&pod("Job", "Succeeded")));
        let mirror = json!({"metadata": {"name": "etcd", "annotations": {"kubernetes.io/config.mirror": "x"}}});
        assert!(!has_to_leave(&object(mirror)));
    }
}
