//! What healthy means, watched and never asked twice.

use std::time::Duration;

use kube::api::DynamicObject;
use kube::{Client, ResourceExt as _};
use serde_json::Value;

use crate::cache::{Cache, GaveUp};
use crate::cluster::machines::SET_LABEL;
use crate::kubernetes::{
    self, CLUSTER_OPERATOR, CONTROL_PLANE_MACHINE_SET, DAEMON_SET, DEPLOYMENT, MACHINE, MACHINE_CONFIG_POOL, MACHINE_SET, NODE, condition,
    full_name,
};
use crate::shape::{FailureDomains, Shape};

/// Long enough for a loaded machine; a healthy boot takes a tenth of it.
const PATIENCE: Duration = Duration::from_secs(240);

/// Returns when every machine is Running, every node Ready and initialised, every deployment, daemon set and operator available.
pub async fn wait(client: &Client, shape: &Shape) -> Result<(), GaveUp> {
    if !shape.has_openshift() {
        let mut cache = Cache::start(client, &[(NODE, "")]).await;
        return cache.until("the nodes to be ready", PATIENCE, |cache| nodes(cache, usize::from(shape.plain_nodes))).await;
    }
    let kinds = [MACHINE, MACHINE_SET, NODE, CLUSTER_OPERATOR, DEPLOYMENT, DAEMON_SET, CONTROL_PLANE_MACHINE_SET, MACHINE_CONFIG_POOL];
    let mut cache = Cache::start(client, &kinds.map(|kind| (kind, ""))).await;
    cache.until("the cluster to be healthy", PATIENCE, |cache| whole(cache, shape).and_then(|()| pools_updated(cache))).await
}

fn pools_updated(cache: &Cache) -> Result<(), String> {
    match cache.list(MACHINE_CONFIG_POOL).iter().find(|pool| condition(pool, "Updated") != "True") {
        Some(late) => Err(format!("the pool {} is not updated", late.name_any())),
        None => Ok(()),
    }
}

/// Everything at once; the first thing missing is named.
pub fn whole(cache: &Cache, shape: &Shape) -> Result<(), String> {
    let machines = machines(cache)?;
    nodes(cache, machines + usize::from(shape.bare_metal_nodes))?;
    all_available(cache)?;
    all_operators(cache, shape)?;
    control_plane_complete(cache, shape)
}

/// Returns when the machine controller and the cloud controller manager do not work any more.
pub async fn stopped(client: &Client) -> Result<(), GaveUp> {
    let mut cache = Cache::start(client, &[(DEPLOYMENT, "")]).await;
    cache
        .until("the machine controller and the cloud controller manager to stop", PATIENCE, |cache| {
            for name in ["machine-api-controllers", "vsphere-cloud-controller-manager"] {
                let all = cache.list(DEPLOYMENT);
                let ready = all
                    .iter()
                    .find(|deployment| deployment.name_any() == name)
                    .map_or(0, |found| number(&found.data["status"]["readyReplicas"]));
                if ready > 0 {
                    return Err(format!("{name} has {ready} ready pods"));
                }
            }
            Ok(())
        })
        .await
}

/// Deployments and DaemonSets.
pub fn all_available(cache: &Cache) -> Result<(), String> {
    cache.list(DEPLOYMENT).iter().try_for_each(|deployment| available(deployment))?;
    cache.list(DAEMON_SET).iter().try_for_each(|set| available_on_its_nodes(set))
}

/// Those that were degraded from the beginning still are.
pub fn all_operators(cache: &Cache, shape: &Shape) -> Result<(), String> {
    cache.list(CLUSTER_OPERATOR).iter().try_for_each(|operator| {
        let degraded = if shape.degraded_operators.contains(&operator.name_any()) { "True" } else { "False" };
        operator_healthy(operator, degraded)
    })
}

pub fn machines(cache: &Cache) -> Result<usize, String> {
    let machines = cache.list(MACHINE);
    for set in cache.list(MACHINE_SET) {
        // Not its ready replicas: its controller looks at nodes only when a machine changes, and may be minutes behind.
        let (wanted, there) = (number(&set.data["spec"]["replicas"]), number(&set.data["status"]["replicas"]));
        if wanted != there {
            return Err(format!("MachineSet {} has {there} of {wanted} machines", set.name_any()));
        }
    }
    for machine in &machines {
        let phase = machine.data["status"]["phase"].as_str().unwrap_or("not seen yet");
        if phase != "Running" {
            return Err(format!("Machine {} is {phase}{}", machine.name_any(), error_of(machine)));
        }
    }
    Ok(machines.len())
}

/// The machines of one set, when there are exactly so many, each Running with a Ready node.
pub fn machine_set(cache: &Cache, set: &str, replicas: usize) -> Result<Vec<String>, String> {
    let belongs = |machine: &DynamicObject| machine.labels().get(SET_LABEL).is_some_and(|name| name == set);
    let machines: Vec<_> = cache.list(MACHINE).into_iter().filter(|machine| belongs(machine)).collect();
    if machines.len() != replicas {
        return Err(format!("{set} has {} of {replicas} machines", machines.len()));
    }
    for machine in &machines {
        let name = machine.name_any();
        let phase = machine.data["status"]["phase"].as_str().unwrap_or("not seen yet");
        if phase != "Running" {
            return Err(format!("Machine {name} is {phase}{}", error_of(machine)));
        }
        if cache.get(NODE, "", &name).is_none_or(|node| condition(&node, "Ready") != "True") {
            return Err(format!("Node {name} is not Ready"));
        }
    }
    Ok(machines.iter().map(|machine| machine.name_any()).collect())
}

fn error_of(machine: &DynamicObject) -> String {
    machine.data["status"]["errorMessage"].as_str().map(|message| format!(" ({message})")).unwrap_or_default()
}

pub fn nodes(cache: &Cache, wanted: usize) -> Result<(), String> {
    let nodes = cache.list(NODE);
    if nodes.len() != wanted {
        return Err(format!("{} of {wanted} nodes have joined", nodes.len()));
    }
    for node in nodes {
        if condition(&node, "Ready") != "True" {
            return Err(format!("Node {} is not Ready", node.name_any()));
        }
        let taints = node.data["spec"]["taints"].as_array().cloned().unwrap_or_default();
        if let Some(taint) = taints.iter().find(|taint| {
            taint["key"] == "node.cloudprovider.kubernetes.io/uninitialized" || taint["key"] == "node.kubernetes.io/not-ready"
        }) {
            return Err(format!("Node {} still carries the taint {}", node.name_any(), taint["key"]));
        }
    }
    Ok(())
}

fn available(deployment: &DynamicObject) -> Result<(), String> {
    let (spec, status) = (&deployment.data["spec"], &deployment.data["status"]);
    let wanted = number(&spec["replicas"]);
    let ready = number(&status["availableReplicas"]).min(number(&status["updatedReplicas"]));
    let seen = status["observedGeneration"].as_i64() == deployment.metadata.generation;
    if ready < wanted || !seen {
        return Err(format!("Deployment {} has {ready} of {wanted} pods available", full_name(deployment)));
    }
    Ok(())
}

/// On those nodes that its controller wants pods on: which these are follows from taints and selectors, and is not judged here.
fn available_on_its_nodes(set: &DynamicObject) -> Result<(), String> {
    let status = &set.data["status"];
    let wanted = number(&status["desiredNumberScheduled"]);
    let ready = number(&status["numberAvailable"]).min(number(&status["updatedNumberScheduled"]));
    let seen = status["observedGeneration"].as_i64() == set.metadata.generation;
    if ready < wanted || !seen {
        return Err(format!("DaemonSet {} has {ready} of {wanted} pods available", full_name(set)));
    }
    Ok(())
}

fn operator_healthy(operator: &DynamicObject, degraded: &str) -> Result<(), String> {
    for (kind, wanted) in [("Available", "True"), ("Progressing", "False"), ("Degraded", degraded)] {
        let status = condition(operator, kind);
        if status != wanted {
            let why = operator.data["status"]["conditions"]
                .as_array()
                .into_iter()
                .flatten()
                .find(|entry| entry["type"] == kind)
                .map(|entry| format!(": {}", entry["message"].as_str().unwrap_or_default()))
                .unwrap_or_default();
            let status = if status.is_empty() { "not reported" } else { status };
            return Err(format!("ClusterOperator {} says {kind} is {status}{why}", operator.name_any()));
        }
    }
    Ok(())
}

pub fn control_plane_complete(cache: &Cache, shape: &Shape) -> Result<(), String> {
    if shape.failure_domains == FailureDomains::None {
        return Ok(());
    }
    let Some(set) = cache.get(CONTROL_PLANE_MACHINE_SET, "openshift-machine-api", "cluster") else {
        return Err("there is no control plane machine set".to_owned());
    };
    let status = &set.data["status"];
    let seen = status["observedGeneration"].as_i64() == set.metadata.generation;
    let (wanted, updated) = (number(&set.data["spec"]["replicas"]), number(&status["updatedReplicas"]));
    if !seen || updated != wanted || number(&status["readyReplicas"]) != wanted {
        return Err(format!("the control plane machine set has {updated} of {wanted} machines up to date"));
    }
    Ok(())
}

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or(0)
}

/// Returns when these Deployments are available.
pub async fn deployments(client: &Client, names: &[&str]) -> Result<(), GaveUp> {
    let mut cache = Cache::start(client, &[(DEPLOYMENT, "")]).await;
    cache
        .until("the controllers to start", PATIENCE, |cache| {
            let all = cache.list(DEPLOYMENT);
            for name in names {
                let found = all.iter().find(|deployment| deployment.name_any() == *name);
                available(found.ok_or_else(|| format!("there is no Deployment {name}"))?)?;
            }
            Ok(())
        })
        .await
}

/// Replaces the control plane machine set that the operator generates, inactive, by the active one that an installer leaves.
pub async fn adopt_control_plane(client: &Client, wanted: &Value) -> Result<(), crate::lab::Error> {
    let mut cache = Cache::start(client, &[(CONTROL_PLANE_MACHINE_SET, "")]).await;
    cache
        .until("the operator to generate a control plane machine set", PATIENCE, |cache| {
            cache.list(CONTROL_PLANE_MACHINE_SET).first().map(|_| ()).ok_or_else(|| "there is none yet".to_owned())
        })
        .await?;
    kubernetes::apply(client, crate::cluster::MANAGER, wanted).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_daemon_set_is_available_when_all_of_its_pods_are_and_are_what_it_says_now() {
        let judged = |status: &Value| {
            let set = json!({"metadata": {"name": "node", "namespace": "drivers", "generation": 2}, "status": status});
            available_on_its_nodes(&serde_json::from_value(set).unwrap())
        };
        let status = |available: u8, updated: u8, observed: u8| {
            let mut status = json!({"desiredNumberScheduled": 3, "observedGeneration": observed});
            (status["numberAvailable"], status["updatedNumberScheduled"]) = (json!(available), json!(updated));
            status
        };
        assert_eq!(judged(&status(3, 3, 2)), Ok(()));
        let nowhere = json!({"desiredNumberScheduled": 0, "observedGeneration": 2});
        assert_eq!(judged(&nowhere), Ok(()), "there may be no node for it");
        for (late, wrong) in [(status(2, 3, 2), "2 of 3"), (status(3, 1, 2), "1 of 3"), (status(3, 3, 1), "3 of 3"), (json!({}), "0 of 0")]
        {
            assert_eq!(judged(&late), Err(format!("DaemonSet drivers/node has {wrong} pods available")), "{late}");
        }
    }
}
