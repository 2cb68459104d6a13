//! ControllerConfig, pools and the node disruption policy.

use kube::ResourceExt as _;
use serde_json::{Value, json};
use vmi_lab::kubernetes::{
    self, CONFIG_MAP, CONTROLLER_CONFIG, CRD, DEPLOYMENT, INFRASTRUCTURE, MACHINE_CONFIG, MACHINE_CONFIG_POOL, MACHINE_CONFIGURATION, NODE,
    POD, POD_DISRUPTION_BUDGET, condition,
};
use vmi_lab::nodes::REBOOTS;
use vmi_lab::standins::mco;

use super::{AtWork, MANAGED, MANAGER, VERSION, becomes, clean, install, merge_until_taken, relax, reported, vcenter};
use crate::support::lab::Lab;
use crate::support::openshift::PATIENCE;
use crate::support::suite::TestResult;

const CONFIG_CRD: &str = "controllerconfigs.machineconfiguration.openshift.io";
const INFRASTRUCTURE_CRD: &str = "infrastructures.config.openshift.io";
const PLATFORM: &str = "spec/properties/platformSpec/properties/vsphere/properties/vcenters/x-kubernetes-validations";

fn at_work(lab: &Lab) -> AtWork {
    let client = lab.client.clone();
    AtWork::start(async move { mco::keep(&client, VERSION).await })
}

fn text(cloud_conf: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kube-cloud-config", "namespace": MANAGED},
        "data": {"cloud.conf": cloud_conf}})
}

/// What the stand-in leaves on nodes, taken away.
fn no_annotations() -> Value {
    let keys = ["currentConfig", "desiredConfig", "state", "desiredDrain", "lastAppliedDrain"]
        .map(|key| (format!("machineconfiguration.openshift.io/{key}"), Value::Null));
    json!({"metadata": {"annotations": keys.into_iter().collect::<serde_json::Map<String, Value>>()}})
}

async fn remove(lab: &Lab) -> TestResult {
    for node in kubernetes::list(&lab.client, NODE, "").await? {
        kubernetes::merge(&lab.client, NODE, "", &node.name_any(), &no_annotations()).await?;
    }
    for config in kubernetes::list(&lab.client, MACHINE_CONFIG, "").await? {
        kubernetes::delete(&lab.client, MACHINE_CONFIG, "", &config.name_any()).await?;
    }
    kubernetes::delete(&lab.client, CONTROLLER_CONFIG, "", "machine-config-controller").await?;
    kubernetes::delete(&lab.client, MACHINE_CONFIGURATION, "", "cluster").await?;
    for pool in ["master", "worker"] {
        kubernetes::delete(&lab.client, MACHINE_CONFIG_POOL, "", pool).await?;
    }
    clean(lab).await
}

/// Waits until ControllerConfig carries so many vCenters and this cloud config, and its status has caught up.
async fn controller_config(lab: &Lab, vcenters: usize, cloud_conf: &str) -> TestResult {
    becomes(lab, CONTROLLER_CONFIG, "", "machine-config-controller", |config| {
        let spec = &config["spec"];
        let listed = spec["infra"]["spec"]["platformSpec"]["vsphere"]["vcenters"].as_array().map_or(0, Vec::len);
        if listed != vcenters || spec["cloudProviderConfig"] != cloud_conf {
            return Err(format!("{listed} vCenters, {}", spec["cloudProviderConfig"]));
        }
        let seen = &config["status"]["observedGeneration"];
        if seen == &config["metadata"]["generation"] { Ok(()) } else { Err(format!("status of generation {seen}")) }
    })
    .await
}

pub async fn controller_config_follows_infrastructure_as_far_as_its_own_rules_let_it(lab: &Lab) -> TestResult {
    install(lab).await?;
    kubernetes::apply(&lab.client, MANAGER, &text("one")).await?;
    let at_work = at_work(lab);
    controller_config(lab, 1, "one").await?;
    reported(lab, "machine-config", "Degraded", "False").await?;

    let root = "/spec/versions/0/schema/openAPIV3Schema/properties";
    let back = relax(lab, INFRASTRUCTURE_CRD, &format!("{root}/{PLATFORM}")).await?;
    let vcenters = json!([vcenter("vc-a.example.com"), vcenter("vc-b.example.com")]);
    let both = json!({"spec": {"platformSpec": {"vsphere": {"vcenters": vcenters}}}});
    merge_until_taken(lab, INFRASTRUCTURE, "cluster", &both).await?;
    kubernetes::apply(&lab.client, MANAGER, &text("two")).await?;
    let message = reported(lab, "machine-config", "Degraded", "True").await?;
    assert!(message.contains("vcenters cannot be added or removed once set"), "{message}");
    // The refused write was one whole: the text did not get through either.
    controller_config(lab, 1, "one").await?;

    let back_too = relax(lab, CONFIG_CRD, &format!("{root}/spec/properties/infra/properties/{PLATFORM}")).await?;
    controller_config(lab, 2, "two").await?;
    reported(lab, "machine-config", "Degraded", "False").await?;
    drop(at_work);
    kubernetes::merge(&lab.client, CRD, "", INFRASTRUCTURE_CRD, &back).await?;
    kubernetes::merge(&lab.client, CRD, "", CONFIG_CRD, &back_too).await?;
    remove(lab).await
}

pub async fn a_missing_cloud_config_degrades_the_machine_config_operator(lab: &Lab) -> TestResult {
    install(lab).await?;
    let at_work = at_work(lab);
    let message = reported(lab, "machine-config", "Degraded", "True").await?;
    assert!(message.contains("kube-cloud-config configmap is required on platform VSphere but not found"), "{message}");
    kubernetes::apply(
        &lab.client,
        MANAGER,
        &json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "kube-cloud-config", "namespace": MANAGED}, "data": {"other": "x"}}),
    )
    .await?;
    let words = "openshift-config-managed/kube-cloud-config configmap must have the cloud.conf key on platform VSphere but not found";
    becomes(lab, vmi_lab::kubernetes::CLUSTER_OPERATOR, "", "machine-config", |operator| {
        let conditions = operator["status"]["conditions"].to_string();
        if conditions.contains(words) { Ok(()) } else { Err(conditions) }
    })
    .await?;
    kubernetes::apply(&lab.client, MANAGER, &text("one")).await?;
    reported(lab, "machine-config", "Degraded", "False").await?;
    controller_config(lab, 1, "one").await?;
    kubernetes::delete(&lab.client, CONFIG_MAP, MANAGED, "kube-cloud-config").await?;
    drop(at_work);
    remove(lab).await
}

pub async fn a_wished_disruption_policy_reaches_the_status(lab: &Lab) -> TestResult {
    install(lab).await?;
    kubernetes::apply(&lab.client, MANAGER, &text("one")).await?;
    let at_work = at_work(lab);
    let path = "/etc/kubernetes/cloud.conf";
    let actions = |configuration: &Value| {
        let files = configuration["status"]["nodeDisruptionPolicyStatus"]["clusterPolicies"]["files"].as_array().cloned();
        files.map(|files| files.into_iter().find(|file| file["path"] == path).map(|file| file["actions"].clone()))
    };
    becomes(lab, MACHINE_CONFIGURATION, "", "cluster", |configuration| match actions(configuration) {
        Some(None) => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await?;
    let wish = json!({"spec": {"nodeDisruptionPolicy": {"files": [{"path": path, "actions": [{"type": "None"}]}]}}});
    kubernetes::merge(&lab.client, MACHINE_CONFIGURATION, "", "cluster", &wish).await?;
    becomes(lab, MACHINE_CONFIGURATION, "", "cluster", |configuration| {
        let seen = configuration["status"]["observedGeneration"] == configuration["metadata"]["generation"];
        match actions(configuration) {
            Some(Some(actions)) if seen && actions == json!([{"type": "None"}]) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await?;
    drop(at_work);
    remove(lab).await
}

pub async fn a_pool_says_how_its_nodes_are_and_waits_while_paused(lab: &Lab) -> TestResult {
    install(lab).await?;
    kubernetes::apply(&lab.client, MANAGER, &text("one")).await?;
    let node = kubernetes::list(&lab.client, NODE, "").await?.remove(0);
    let name = node.metadata.name.clone().unwrap_or_default();
    let role = |value: Value| json!({"metadata": {"labels": {"node-role.kubernetes.io/worker": value}}});
    kubernetes::merge(&lab.client, NODE, "", &name, &role(json!(""))).await?;
    let at_work = at_work(lab);
    let before = kubernetes::list(&lab.client, NODE, "").await?;
    let workers = before
        .iter()
        .filter(|node| node.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key("node-role.kubernetes.io/worker")))
        .count();
    worker_pool(lab, workers, workers, "True", "False").await?;
    kubernetes::merge(&lab.client, NODE, "", &name, &json!({"spec": {"unschedulable": true}})).await?;
    worker_pool(lab, workers, workers - 1, "False", "True").await?;
    kubernetes::merge(&lab.client, MACHINE_CONFIG_POOL, "", "worker", &json!({"spec": {"paused": true}})).await?;
    worker_pool(lab, workers, workers - 1, "False", "False").await?;
    kubernetes::merge(&lab.client, NODE, "", &name, &json!({"spec": {"unschedulable": null}})).await?;
    worker_pool(lab, workers, workers, "True", "False").await?;
    drop(at_work);
    let was = node.metadata.labels.as_ref().and_then(|labels| labels.get("node-role.kubernetes.io/worker")).cloned();
    kubernetes::merge(&lab.client, NODE, "", &name, &role(json!(was))).await?;
    remove(lab).await
}

async fn worker_pool(lab: &Lab, total: usize, ready: usize, updated: &str, updating: &str) -> TestResult {
    becomes(lab, MACHINE_CONFIG_POOL, "", "worker", |pool| {
        let status = &pool["status"];
        let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
        let reads = |kind: &str, expected: &str| conditions.iter().any(|entry| entry["type"] == kind && entry["status"] == expected);
        let counted = status["machineCount"] == total && status["readyMachineCount"] == ready;
        let said = reads("Updated", updated) && reads("Updating", updating) && reads("Degraded", "False");
        if counted && said { Ok(()) } else { Err(status.to_string()) }
    })
    .await
}

/// How often the node has booted, once it runs what the text of cloud.conf comes to.
async fn booted_with(lab: &Lab, node: &str, cloud_conf: &str) -> TestResult<u64> {
    let target = becomes(lab, MACHINE_CONFIG_POOL, "", "worker", |pool| {
        let name = pool["spec"]["configuration"]["name"].as_str().ok_or("nothing is rendered")?.to_owned();
        let updated = pool["status"]["conditions"]
            .as_array()
            .into_iter()
            .flatten()
            .any(|entry| entry["type"] == "Updated" && entry["status"] == "True");
        if updated && pool["status"]["configuration"]["name"] == name.as_str() { Ok(name) } else { Err(pool["status"].to_string()) }
    })
    .await?;
    let config = kubernetes::get(&lab.client, MACHINE_CONFIG, "", &target).await?.ok_or("the rendered configuration is not there")?;
    let source = config.data["spec"]["config"]["storage"]["files"][0]["contents"]["source"].clone();
    assert_eq!(source, format!("data:,{cloud_conf}").as_str());
    let node = kubernetes::get(&lab.client, NODE, "", node).await?.ok_or("no node")?;
    assert_ne!(node.data["spec"]["unschedulable"], true);
    Ok(reboots(&node))
}

/// How often the operator has rebooted it.
fn reboots(node: &kube::api::DynamicObject) -> u64 {
    node.annotations().get(REBOOTS).and_then(|count| count.parse().ok()).unwrap_or(0)
}

/// Waits until the pool is to reach what this text comes to.
async fn targets(lab: &Lab, before: &str) -> TestResult<String> {
    becomes(lab, MACHINE_CONFIG_POOL, "", "worker", |pool| {
        let name = pool["spec"]["configuration"]["name"].as_str().unwrap_or_default();
        if name.is_empty() || name == before { Err(format!("it is {name:?}")) } else { Ok(name.to_owned()) }
    })
    .await
}

pub async fn a_changed_cloud_conf_reboots_nodes_unless_the_policy_or_a_pause_says_otherwise(lab: &Lab) -> TestResult {
    install(lab).await?;
    kubernetes::apply(&lab.client, MANAGER, &text("one")).await?;
    let at_work = at_work(lab);
    let name = kubernetes::list(&lab.client, NODE, "").await?.remove(0).name_any();
    let first = targets(lab, "").await?;
    let before = booted_with(lab, &name, "one").await?;

    kubernetes::apply(&lab.client, MANAGER, &text("two")).await?;
    let second = targets(lab, &first).await?;
    assert_eq!(booted_with(lab, &name, "two").await?, before + 1);

    kubernetes::merge(&lab.client, MACHINE_CONFIG_POOL, "", "worker", &json!({"spec": {"paused": true}})).await?;
    kubernetes::apply(&lab.client, MANAGER, &text("three")).await?;
    targets(lab, &second).await?;
    becomes(lab, MACHINE_CONFIG_POOL, "", "worker", |pool| {
        let said = pool["status"]["conditions"].to_string();
        if said.contains("Pool is paused; will not update to MachineConfig") { Ok(()) } else { Err(said) }
    })
    .await?;

    let wish =
        json!({"spec": {"nodeDisruptionPolicy": {"files": [{"path": "/etc/kubernetes/cloud.conf", "actions": [{"type": "None"}]}]}}});
    kubernetes::merge(&lab.client, MACHINE_CONFIGURATION, "", "cluster", &wish).await?;
    becomes(lab, MACHINE_CONFIGURATION, "", "cluster", |configuration| {
        let seen = configuration["status"]["observedGeneration"] == configuration["metadata"]["generation"];
        if seen { Ok(()) } else { Err(configuration["status"].to_string()) }
    })
    .await?;
    kubernetes::merge(&lab.client, MACHINE_CONFIG_POOL, "", "worker", &json!({"spec": {"paused": false}})).await?;
    assert_eq!(booted_with(lab, &name, "three").await?, before + 1, "it rebooted for a file that was called harmless");
    drop(at_work);
    remove(lab).await
}

pub async fn a_node_reboots_only_when_its_pods_have_left_it(lab: &Lab) -> TestResult {
    install(lab).await?;
    kubernetes::apply(&lab.client, MANAGER, &text("one")).await?;
    let at_work = at_work(lab);
    let first = targets(lab, "").await?;
    let labels = json!({"app": "guarded"});
    let container = json!({"name": "guarded", "image": "vmi-lab/shell", "args": ["-c", "exec sleep infinity"]});
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "guarded", "namespace": "default"},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
            "spec": {"terminationGracePeriodSeconds": 1, "containers": [container]}}}});
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "guarded", "namespace": "default"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}}});
    kubernetes::apply(&lab.client, MANAGER, &deployment).await?;
    kubernetes::apply(&lab.client, MANAGER, &budget).await?;
    let mut pods = lab.watch(&[POD]).await;
    let ready = |cache: &vmi_lab::cache::Cache| {
        let all = cache.list(POD);
        let pod = all.iter().find(|pod| pod.labels().get("app").is_some_and(|app| app == "guarded")).ok_or("no pod")?;
        let node = pod.data["spec"]["nodeName"].as_str().unwrap_or_default();
        if condition(pod, "Ready") == "True" { Ok((pod.name_any(), node.to_owned())) } else { Err(pod.data["status"].to_string()) }
    };
    let (pod, name) = pods.until("the guarded pod", PATIENCE, ready).await?;
    let before = booted_with(lab, &name, "one").await?;

    kubernetes::apply(&lab.client, MANAGER, &text("two")).await?;
    let second = targets(lab, &first).await?;
    becomes(lab, NODE, "", &name, |node| {
        let asks = &node["metadata"]["annotations"]["machineconfiguration.openshift.io/desiredDrain"];
        let cordoned = *asks == format!("drain-{second}").as_str() && node["spec"]["unschedulable"] == true;
        if cordoned { Ok(()) } else { Err(format!("{asks} {}", node["spec"])) }
    })
    .await?;
    let held = kubernetes::get(&lab.client, NODE, "", &name).await?.ok_or("no node")?;
    assert_eq!(reboots(&held), before, "it rebooted under its pod");
    assert!(kubernetes::get(&lab.client, POD, "default", &pod).await?.is_some(), "the budget did not keep the pod");

    kubernetes::delete(&lab.client, POD_DISRUPTION_BUDGET, "default", "guarded").await?;
    assert_eq!(booted_with(lab, &name, "two").await?, before + 1);
    assert!(kubernetes::get(&lab.client, POD, "default", &pod).await?.is_none(), "its pod stayed");
    kubernetes::delete(&lab.client, DEPLOYMENT, "default", "guarded").await?;
    drop(at_work);
    remove(lab).await
}
