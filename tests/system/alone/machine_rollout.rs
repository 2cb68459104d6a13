//! The controller that moves machines. They are made and deleted by the real machine API and control plane machine set operators;
//! what the earlier steps would have done to the cluster is done by hand. Each test has a lab of its own, for it moves all of it.

use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde_json::{Value, json};
use vmi_crds::graph::STEPS;
use vmi_crds::graph::StepName::{self, *};
use vmi_lab::cluster::{crds, machines};
use vmi_lab::kubernetes::{
    self, CONTROL_PLANE_MACHINE_SET, DEPLOYMENT, Kind, MACHINE, MACHINE_AUTOSCALER, MACHINE_SET, NODE, PERSISTENT_VOLUME, condition,
};
use vmi_machine_rollout::MachineRollout;

use crate::node_agent::script;
use crate::support::alone::{Alone, Ground, NAME};
use crate::support::lab::Lab;
use crate::support::openshift::{MACHINE_API, PATIENCE, add_vcenter, scaled, server, vcenter, virtual_machines};
use crate::support::suite::TestResult;

const WORKER: &str = "lab-x7k2p-worker-a";
const INFRA: &str = "lab-x7k2p-infra-a";
const NONE: &str = "lab-x7k2p-none-a";
/// What the machine API's own controller writes onto a set some time after it was made.
const SIZES: [&str; 2] = ["machine.openshift.io/vCPU", "machine.openshift.io/memoryMb"];

/// The steps between the preflight's and these.
pub(super) fn earlier() -> Vec<StepName> {
    STEPS.iter().map(|step| step.name).filter(|name| (ClusterVersionFrozen..WorkersReady).contains(name)).collect()
}

/// Specs of the sets, the control plane machine set and the autoscaler, by name, and what is written on the sets: what has to come back.
async fn specs(lab: &Lab) -> TestResult<Value> {
    let mut found = json!({});
    for kind in [MACHINE_SET, CONTROL_PLANE_MACHINE_SET, MACHINE_AUTOSCALER] {
        let objects = match kubernetes::list(&lab.client, kind, MACHINE_API).await {
            // Only one of the tests has autoscalers.
            Err(error) if error.is_not_found() => continue,
            outcome => outcome?,
        };
        for object in objects {
            let mut kept = json!({"spec": said(&object.data["spec"])});
            if kind == MACHINE_SET {
                let mut annotations = object.annotations().clone();
                annotations.retain(|key, _| !SIZES.contains(&key.as_str()));
                kept["annotations"] = json!(annotations);
                kept["labels"] = json!(object.labels());
            }
            found[format!("{} {}", kind.kind, object.name_any())] = kept;
        }
    }
    Ok(found)
}

/// Without empty objects: the real webhook fills them into what is made anew, and the lab's first set is older than it.
fn said(value: &Value) -> Value {
    let is_empty = |value: &Value| value.as_object().is_some_and(serde_json::Map::is_empty);
    match value {
        Value::Object(fields) => {
            let said = fields.iter().map(|(key, value)| (key.clone(), said(value)));
            said.filter(|(_, value)| !is_empty(value)).collect()
        }
        other => other.clone(),
    }
}

fn same(before: &Value, after: &Value) -> TestResult {
    for (name, was) in before.as_object().into_iter().flatten() {
        if after[name] != *was {
            return Err(format!("{name} was\n{was}\nand is\n{}", after[name]).into());
        }
    }
    let names = |specs: &Value| specs.as_object().map(|specs| specs.keys().cloned().collect::<Vec<_>>());
    assert_eq!(names(before), names(after));
    Ok(())
}

/// Besides the lab's workers: one of another kind, a set without machines, and an autoscaler.
async fn furnished(lab: &Lab) -> TestResult {
    let source = vcenter(lab, "a")?;
    let model = machines::machine_sets(&lab.shape, &source).remove(0);
    for (name, replicas) in [(INFRA, 1), (NONE, 0)] {
        let mut set = model.clone();
        set["metadata"]["name"] = json!(name);
        set["metadata"]["labels"]["team"] = json!("shop");
        set["metadata"]["annotations"] = json!({"example.com/asked-by": "shop"});
        set["spec"]["replicas"] = json!(replicas);
        set["spec"]["selector"]["matchLabels"][machines::SET_LABEL] = json!(name);
        let template = &mut set["spec"]["template"];
        template["metadata"]["labels"][machines::SET_LABEL] = json!(name);
        template["spec"]["metadata"] = json!({"labels": {"node-role.kubernetes.io/infra": ""}});
        template["spec"]["taints"] = json!([{"key": "infra", "value": "reserved", "effect": "NoSchedule"}]);
        template["spec"]["providerSpec"]["value"]["numCPUs"] = json!(8);
        if name == NONE {
            // It makes no machine, so nobody looks for the snapshot.
            template["spec"]["providerSpec"]["value"]["cloneMode"] = json!("linkedClone");
            template["spec"]["providerSpec"]["value"]["snapshot"] = json!("golden");
        }
        kubernetes::apply(&lab.client, "test", &set).await?;
    }
    // The real CRD is not in the pinned modules; what counts here is that the kind is served.
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let served = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "machineautoscalers.autoscaling.openshift.io"},
        "spec": {"group": "autoscaling.openshift.io", "scope": "Namespaced", "names": {"plural": "machineautoscalers", "kind": "MachineAutoscaler"},
            "versions": [{"name": "v1beta1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}});
    crds::install(&lab.client, &[served]).await?;
    drop(lab.watch(&[MACHINE_AUTOSCALER]).await);
    let target = json!({"apiVersion": "machine.openshift.io/v1beta1", "kind": "MachineSet", "name": WORKER});
    let autoscaler = json!({"apiVersion": "autoscaling.openshift.io/v1beta1", "kind": "MachineAutoscaler",
        "metadata": {"name": "worker", "namespace": MACHINE_API}, "spec": {"minReplicas": 2, "maxReplicas": 7, "scaleTargetRef": target}});
    kubernetes::apply(&lab.client, "test", &autoscaler).await?;
    scaled(lab, INFRA, 1).await?;
    Ok(())
}

/// As step 3 does it: the control plane machine set is saved; one that is at work is deleted, and its operator has made an inactive one.
pub(super) async fn control_plane_set_saved(ground: &Ground<'_>) -> TestResult {
    let lab = ground.lab;
    let set = kubernetes::get(&lab.client, CONTROL_PLANE_MACHINE_SET, MACHINE_API, "cluster").await?.ok_or("no set")?;
    let uid = ground.vmi().await?.uid().unwrap_or_default();
    let saved = json!({"uid": set.uid(), "spec": set.data["spec"], "labels": {}, "annotations": {}});
    let secret = vmi_steps::saved::first(NAME, &ground.namespace, &uid, "cpms", &saved);
    kubernetes::apply(&lab.client, "test", &secret).await?;
    if set.data["spec"]["state"] == "Active" { made_inactive(lab).await } else { Ok(()) }
}

/// Deletes the control plane machine set, and returns when its operator has made an inactive one.
pub(super) async fn made_inactive(lab: &Lab) -> TestResult {
    let set = get(lab, CONTROL_PLANE_MACHINE_SET, "cluster").await?;
    kubernetes::delete(&lab.client, CONTROL_PLANE_MACHINE_SET, MACHINE_API, "cluster").await?;
    let mut cache = lab.watch(&[CONTROL_PLANE_MACHINE_SET]).await;
    cache
        .until("an inactive control plane machine set", PATIENCE, |cache| {
            let made = cache.get(CONTROL_PLANE_MACHINE_SET, MACHINE_API, "cluster").ok_or("there is none")?;
            if made.uid() != set.uid() && made.data["spec"]["state"] == "Inactive" { Ok(()) } else { Err("it is the old one".to_owned()) }
        })
        .await?;
    Ok(())
}

/// Waits until every Machine is on the vCenter, Running, with a Ready Node, and no other Node is there.
async fn all_on(lab: &Lab, name: &str) -> TestResult {
    let wanted = lab.vcenter(name).server.clone();
    let mut cache = lab.watch(&[MACHINE, NODE]).await;
    cache
        .until(&format!("every machine to be on {name}"), PATIENCE, |cache| {
            let machines = cache.list(MACHINE);
            if let Some(other) = machines.iter().find(|machine| server(machine) != wanted || machine.data["status"]["phase"] != "Running") {
                return Err(format!("{} is {} on {}", other.name_any(), other.data["status"]["phase"], server(other)));
            }
            let nodes = cache.list(NODE);
            let ready = |node: &DynamicObject| {
                condition(node, "Ready") == "True" && machines.iter().any(|machine| machine.name_any() == node.name_any())
            };
            match nodes.iter().find(|node| !ready(node)) {
                Some(node) => Err(format!("Node {} is not Ready or nobody's", node.name_any())),
                None if nodes.len() != machines.len() => Err(format!("{} nodes for {} machines", nodes.len(), machines.len())),
                None => Ok(()),
            }
        })
        .await?;
    Ok(())
}

pub(super) async fn get(lab: &Lab, kind: Kind, name: &str) -> TestResult<DynamicObject> {
    Ok(kubernetes::get(&lab.client, kind, MACHINE_API, name).await?.ok_or_else(|| format!("no {} {name}", kind.kind))?)
}

pub async fn everything_moves_to_the_target_machine_by_machine_and_back_to_the_source() -> TestResult {
    let lab = Lab::start("native", "rolled-out").await?;
    let result = moved_and_back(&lab).await;
    lab.stop().await?;
    result
}

async fn moved_and_back(lab: &Lab) -> TestResult {
    furnished(lab).await?;
    add_vcenter(lab, &vcenter(lab, "b")?).await?;
    let before = specs(lab).await?;
    let asked = json!({"sourceRetirement": "Remove", "rollout": {"batch": 2, "draining": 3}});
    let ground = Ground::new(lab, "rollout-move", asked).await?;
    let first = Alone::run(&ground, MachineRollout).await?;
    planned(&ground).await?;
    same(&before, &specs(lab).await?)?;
    control_plane_set_saved(&ground).await?;
    ground.start("native").await?;
    ground.done(&earlier()).await?;

    // Killed as soon as it has made something, the next process goes on.
    ground.until("the first machine to be asked for", |vmi| logged(vmi, WorkersReady, "from 0 machines to 1")).await?;
    first.kill().await;
    let alone = Alone::run(&ground, MachineRollout).await?;
    let ready = ground.until_condition(WorkersReady, "True", "Ready").await?;
    workers_are_like_the_sources(lab, &ready).await?;

    control_plane_is_braked_while_paused(&ground).await?;
    ground.until_condition(ControlPlaneReady, "True", "Ready").await?;
    let removed = ground.until_condition(SourceWorkersRemoved, "True", "Removed").await?;
    let places: Vec<&str> = removed.seen().machines.iter().map(|machines| machines.vcenter.as_str()).collect();
    assert!(places.iter().all(|place| *place == lab.vcenter("b").server), "{places:?}");
    all_on(lab, "b").await?;
    assert!(virtual_machines(lab, "a").await?.is_empty(), "{:?}", virtual_machines(lab, "a").await?);
    assert_eq!(get(lab, CONTROL_PLANE_MACHINE_SET, "cluster").await?.data["spec"]["state"], "Active");

    ground.edit(json!({"state": "RollingBack"})).await?;
    for step in [SourceWorkersRemoved, ControlPlaneReady, WorkersReady] {
        ground.until_condition(step, "False", "Undone").await?;
    }
    all_on(lab, "a").await?;
    assert!(virtual_machines(lab, "b").await?.is_empty(), "{:?}", virtual_machines(lab, "b").await?);
    same(&before, &specs(lab).await?)?;
    alone.finish(&ground).await
}

async fn planned(ground: &Ground<'_>) -> TestResult {
    let changes =
        |vmi: &vmi_crds::VSphereMigrationInfra, step: StepName| vmi.step(step).map(|step| step.changes.clone()).unwrap_or_default();
    let has = |vmi: &vmi_crds::VSphereMigrationInfra, step: StepName, words: &str| {
        if changes(vmi, step).iter().any(|change| change.contains(words)) {
            Ok(())
        } else {
            Err(format!("no {words:?} in {:?}", changes(vmi, step)))
        }
    };
    ground
        .until("the plan", |vmi| {
            has(vmi, WorkersReady, &format!("MachineSet {WORKER}-fd-b: made like {WORKER} in failure domain fd-b"))?;
            has(vmi, WorkersReady, &format!("MachineSet {NONE}-fd-b: without snapshot golden, cloneMode linkedClone"))?;
            has(vmi, WorkersReady, &format!("MachineAutoscaler worker: looks after MachineSet {WORKER}-fd-b"))?;
            has(vmi, ControlPlaneReady, "failure domains from fd-a to fd-b, Active, RollingUpdate")?;
            has(vmi, SourceWorkersRemoved, &format!("MachineSet {WORKER}: from 3 machines to none, 3 at once, then deleted"))
        })
        .await?;
    Ok(())
}

fn logged(vmi: &vmi_crds::VSphereMigrationInfra, step: StepName, words: &str) -> Result<(), String> {
    let log = vmi.step(step).map(|step| step.log.clone()).unwrap_or_default();
    if log.iter().any(|line| line.contains(words)) { Ok(()) } else { Err(format!("{log:?}")) }
}

/// The same sets, sizes, labels, taints and numbers of machines; one machine came first, the others in batches of two.
async fn workers_are_like_the_sources(lab: &Lab, vmi: &vmi_crds::VSphereMigrationInfra) -> TestResult {
    for (name, replicas) in [(WORKER, 3), (INFRA, 1), (NONE, 0)] {
        let (old, new) = (get(lab, MACHINE_SET, name).await?, get(lab, MACHINE_SET, &format!("{name}-fd-b")).await?);
        assert_eq!(new.data["spec"]["replicas"], replicas, "{name}");
        assert_eq!(new.labels(), old.labels(), "{name}");
        for pointer in ["/spec/template/spec/taints", "/spec/template/spec/metadata", "/spec/template/spec/providerSpec/value/numCPUs"] {
            assert_eq!(new.data.pointer(pointer), old.data.pointer(pointer), "{name} {pointer}");
        }
        let came = scaled(lab, &format!("{name}-fd-b"), usize::try_from(replicas)?).await?;
        for machine in came {
            let node = kubernetes::get(&lab.client, NODE, "", &machine).await?.ok_or("no node")?;
            assert_eq!(node.labels().get("topology.kubernetes.io/zone").map(String::as_str), Some("zone-b"), "{machine}");
            let infra = node.data["spec"]["taints"].to_string().contains("reserved");
            assert_eq!(infra, name == INFRA, "{machine}: {}", node.data["spec"]["taints"]);
        }
    }
    let target = get(lab, MACHINE_AUTOSCALER, "worker").await?.data["spec"].clone();
    assert_eq!((&target["scaleTargetRef"]["name"], &target["maxReplicas"]), (&json!(format!("{WORKER}-fd-b")), &json!(7)));
    let log = vmi.step(WorkersReady).map(|step| step.log.clone()).unwrap_or_default();
    let scalings: Vec<&str> = log.iter().filter_map(|line| line.split_once("-fd-b: from ").map(|(_, scaling)| scaling)).collect();
    assert_eq!(scalings.first(), Some(&"0 machines to 1"), "one comes first: {log:?}");
    assert!(!scalings.contains(&"0 machines to 3"), "never more than two at once: {log:?}");
    Ok(())
}

pub(super) async fn strategy(ground: &Ground<'_>, wanted: &str) -> TestResult {
    let mut cache = ground.lab.watch(&[CONTROL_PLANE_MACHINE_SET]).await;
    cache
        .until(&format!("the strategy to be {wanted}"), PATIENCE, |cache| {
            let set = cache.get(CONTROL_PLANE_MACHINE_SET, MACHINE_API, "cluster").ok_or("no set")?;
            let spec = &set.data["spec"];
            if spec["strategy"]["type"] == wanted && spec["state"] == "Active" { Ok(()) } else { Err(spec["strategy"].to_string()) }
        })
        .await?;
    Ok(())
}

async fn control_plane_is_braked_while_paused(ground: &Ground<'_>) -> TestResult {
    strategy(ground, "RollingUpdate").await?;
    ground.edit(json!({"state": "Paused"})).await?;
    strategy(ground, "OnDelete").await?;
    ground.until_condition(ControlPlaneReady, "False", "Paused").await?;
    ground.edit(json!({"state": "Running"})).await?;
    strategy(ground, "RollingUpdate").await
}

pub async fn a_set_that_was_only_added_leaves_again_and_a_budget_that_keeps_a_machine_is_named() -> TestResult {
    let lab = Lab::start("native", "added").await?;
    let result = added_and_kept(&lab).await;
    lab.stop().await?;
    result
}

async fn added_and_kept(lab: &Lab) -> TestResult {
    add_vcenter(lab, &vcenter(lab, "b")?).await?;
    let before = specs(lab).await?;
    let ground = Ground::new(lab, "rollout-add", json!({"machineSets": [{"name": "extra", "replicas": 1}]})).await?;
    let alone = Alone::run(&ground, MachineRollout).await?;
    ground.start("native").await?;
    ground.done(&earlier()).await?;
    ground.until_condition(WorkersReady, "True", "Ready").await?;
    ground.until_condition(ControlPlaneReady, "Unknown", "NotRequested").await?;
    ground.until_condition(SourceWorkersRemoved, "Unknown", "NotRequested").await?;
    let node = scaled(lab, "extra", 1).await?.remove(0);
    let elsewhere = scaled(lab, WORKER, 3).await?.remove(0);

    guarded_pod(lab, "aside", &elsewhere).await?;
    guarded_pod(lab, "guarded", &node).await?;
    let volume = volume_on_the_target(lab).await?;
    ground.edit(json!({"state": "RollingBack"})).await?;
    let message = workers_say(&ground, "nobody reaches once its machines are gone: shop/orders;").await?;
    assert!(message.contains("spec.volumes to Ignore"), "{message}");
    assert_eq!(get(lab, MACHINE_SET, "extra").await?.data["spec"]["replicas"], 1, "nothing leaves before somebody has decided");
    ground.edit(json!({"volumes": "Ignore"})).await?;
    let message = workers_say(&ground, "kept by PodDisruptionBudget guarded/pod").await?;
    assert!(message.contains(&node) && !message.contains("aside"), "the budget of pods elsewhere has nothing to do with it: {message}");
    lab.kubectl(&["-n", "guarded", "delete", "poddisruptionbudget", "pod"]).await?.success()?;
    ground.until_condition(WorkersReady, "False", "Undone").await?;
    assert!(virtual_machines(lab, "b").await?.is_empty());
    assert!(kubernetes::get(&lab.client, PERSISTENT_VOLUME, "", &volume).await?.is_some(), "it is left, not deleted");
    kubernetes::delete(&lab.client, PERSISTENT_VOLUME, "", &volume).await?;
    same(&before, &specs(lab).await?)?;
    alone.finish(&ground).await
}

/// Waits until step 11 says these words, and returns all it says.
async fn workers_say(ground: &Ground<'_>, words: &str) -> TestResult<String> {
    let said = |vmi: &vmi_crds::VSphereMigrationInfra| {
        vmi.condition(WorkersReady.as_str()).map(|condition| condition.message.clone()).unwrap_or_default()
    };
    let told = |vmi: &vmi_crds::VSphereMigrationInfra| if said(vmi).contains(words) { Ok(()) } else { Err(said(vmi)) };
    Ok(said(&ground.until(&format!("{words:?}"), told).await?))
}

/// A volume that can be used only where the target's machines are, and its name. Nobody has to have made its claim for it to be named.
async fn volume_on_the_target(lab: &Lab) -> TestResult<String> {
    let label =
        |part: &str| json!({"key": format!("topology.csi.vmware.com/openshift-{part}"), "operator": "In", "values": [format!("{part}-b")]});
    let volume = json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "made-on-the-target"},
        "spec": {
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "persistentVolumeReclaimPolicy": "Retain",
            "claimRef": {"namespace": "shop", "name": "orders", "uid": "4f0f7a1c-2a55-4a10-9d59-0c6f1d3b7e22"},
            "csi": {"driver": "csi.vsphere.vmware.com", "volumeHandle": "0e1f5a4c-9b1e-4a43-a9f3-1d3c1a2b3c4e"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [label("region"), label("zone")]}]}},
        },
    });
    Ok(kubernetes::apply(&lab.client, "test", &volume).await?.name_any())
}

/// A pod on the node that its budget allows nobody to evict.
async fn guarded_pod(lab: &Lab, namespace: &str, node: &str) -> TestResult {
    let labels = json!({"app": "guarded"});
    let template = json!({"metadata": {"labels": labels}, "spec": {"nodeSelector": {"kubernetes.io/hostname": node}, "terminationGracePeriodSeconds": 1, "containers": [script("exec sleep 3600")]}});
    let manifest = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "pod", "namespace": namespace},
            "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}},
        {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "pod", "namespace": namespace},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}}},
    ]});
    let file = lab.folder().join(format!("{namespace}.json"));
    std::fs::write(&file, manifest.to_string())?;
    lab.kubectl(&["apply", "-f", &file.to_string_lossy()]).await?.success()?;
    let mut cache = lab.watch(&[DEPLOYMENT]).await;
    cache
        .until("the guarded pod", PATIENCE, |cache| {
            let made = cache.get(DEPLOYMENT, namespace, "pod").ok_or("no Deployment")?;
            if made.data["status"]["availableReplicas"] == 1 { Ok(()) } else { Err(made.data["status"].to_string()) }
        })
        .await?;
    Ok(())
}
