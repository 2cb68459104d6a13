//! What the shape `rich` is there for: whoever moves it has met each of these.

use std::collections::BTreeSet;

use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde_json::{Value, json};
use vmi_lab::cache::Cache;
use vmi_lab::cluster::machines::SET_LABEL;
use vmi_lab::faults::{Fault, Faults};
use vmi_lab::kubernetes::{
    self, Kind, MACHINE, MACHINE_AUTOSCALER, MACHINE_HEALTH_CHECK, MACHINE_SET, NODE, PERSISTENT_VOLUME, POD, POD_DISRUPTION_BUDGET,
    VOLUME_ATTACHMENT, condition,
};
use vmi_lab::vcenter::INFRA_ID;

use crate::support::lab::Lab;
use crate::support::openshift::{MACHINE_API, PATIENCE, virtual_machines};
use crate::support::suite::TestResult;

async fn found(lab: &Lab, kind: Kind, namespace: &str, name: &str) -> TestResult<Value> {
    let object = kubernetes::get(&lab.client, kind, namespace, name).await?;
    Ok(object.ok_or_else(|| format!("there is no {} {name}", kind.kind))?.data)
}

/// The machines of a set, by its name in the shape.
async fn machines(lab: &Lab, set: &str) -> TestResult<Vec<DynamicObject>> {
    let name = format!("{INFRA_ID}-{set}-a");
    let mut all = kubernetes::list(&lab.client, MACHINE, MACHINE_API).await?;
    all.retain(|machine| machine.labels().get(SET_LABEL) == Some(&name));
    Ok(all)
}

/// Waits until the node of each machine of a set has this label and this taint, which the real nodelink controller gives it.
async fn set_apart(lab: &Lab, set: &str, label: (&str, &str), taint: &Value) -> TestResult {
    let mut cache = lab.watch(&[NODE]).await;
    for machine in machines(lab, set).await? {
        let name = machine.name_any();
        cache
            .until(&format!("{name} to be set apart"), PATIENCE, |cache| {
                let node = cache.get(NODE, "", &name).ok_or("there is no node")?;
                let labelled = node.labels().get(label.0).is_some_and(|value| value == label.1);
                let taints = node.data["spec"]["taints"].as_array().cloned().unwrap_or_default();
                let fits = |held: &Value| ["key", "value", "effect"].iter().all(|field| held[field] == taint[field]);
                if labelled && taints.iter().any(fits) { Ok(()) } else { Err(format!("{:?} {taints:?}", node.labels())) }
            })
            .await?;
    }
    Ok(())
}

pub async fn the_rich_shape_has_the_sets_budgets_checks_and_volumes_that_it_is_there_for(lab: &Lab) -> TestResult {
    for (set, replicas) in [("worker", 2), ("infra", 1), ("gpu", 1), ("spare", 0)] {
        assert_eq!(machines(lab, set).await?.len(), replicas, "{set}");
        found(lab, MACHINE_SET, MACHINE_API, &format!("{INFRA_ID}-{set}-a")).await?;
    }
    set_apart(
        lab,
        "infra",
        ("node-role.kubernetes.io/infra", ""),
        &json!({"key": "node-role.kubernetes.io/infra", "effect": "NoSchedule"}),
    )
    .await?;
    set_apart(lab, "gpu", ("example.com/gpu", "true"), &json!({"key": "example.com/gpu", "value": "true", "effect": "NoSchedule"})).await?;

    // The real machine controller refuses a machine whose disks it cannot make; neither the client nor the control socket tells
    // of a virtual machine's disks.
    let there = virtual_machines(lab, "a").await?;
    for machine in machines(lab, "gpu").await? {
        let disks = machine.data["spec"]["providerSpec"]["value"]["dataDisks"].as_array().cloned().unwrap_or_default();
        let disks: Vec<(Value, Value)> = disks.iter().map(|disk| (disk["name"].clone(), disk["sizeGiB"].clone())).collect();
        assert_eq!(disks, [(json!("models"), json!(20)), (json!("scratch"), json!(10))]);
        assert_eq!(machine.data["status"]["phase"], "Running");
        assert!(there.contains(&machine.name_any()), "{there:?}");
    }

    found(lab, MACHINE_HEALTH_CHECK, MACHINE_API, "workers").await?;
    let scaler = found(lab, MACHINE_AUTOSCALER, MACHINE_API, "workers").await?;
    assert_eq!(scaler["spec"]["scaleTargetRef"]["name"], format!("{INFRA_ID}-worker-a"));
    assert_eq!(found(lab, POD_DISRUPTION_BUDGET, "default", "web").await?["spec"]["minAvailable"], 1);
    assert_eq!(found(lab, POD_DISRUPTION_BUDGET, "openshift-etcd-operator", "etcd-operator").await?["spec"]["maxUnavailable"], 1);
    for (volume, driver) in [("pvc-orders", "csi.vsphere.vmware.com"), ("shared-files", "nfs.csi.k8s.io")] {
        assert_eq!(found(lab, PERSISTENT_VOLUME, "", volume).await?["spec"]["csi"]["driver"], driver);
    }
    let attached = kubernetes::list(&lab.client, VOLUME_ATTACHMENT, "").await?;
    assert!(attached.is_empty(), "{attached:?}");
    assert!(found(lab, NODE, "", "bare-metal-0").await?["spec"]["providerID"].is_null());
    Ok(())
}

pub async fn a_blocked_drain_has_a_pod_on_every_worker_also_on_the_tainted_ones(lab: &Lab) -> TestResult {
    let master = |node: &DynamicObject| node.labels().contains_key("node-role.kubernetes.io/master");
    let nodes = kubernetes::list(&lab.client, NODE, "").await?;
    let workers: BTreeSet<String> = nodes.iter().filter(|node| !master(node)).map(kube::ResourceExt::name_any).collect();
    assert_eq!(workers.len(), 5, "two workers, one of infra, one with a GPU and one of bare metal: {workers:?}");
    let faults = Faults::of(&lab.record).await?;
    let id = faults.add(&Fault::DrainBlocked).await?;
    let blockers = |cache: &Cache| -> Vec<DynamicObject> {
        let pods = cache.list(POD);
        pods.iter().filter(|pod| pod.name_any().starts_with("drain-blocker")).map(|pod| pod.as_ref().clone()).collect()
    };
    let mut cache = lab.watch(&[POD]).await;
    let blocked = cache.until("a pod on every worker", PATIENCE, |cache| {
        let ready = blockers(cache).into_iter().filter(|pod| condition(pod, "Ready") == "True");
        let on: BTreeSet<String> = ready.filter_map(|pod| pod.data["spec"]["nodeName"].as_str().map(str::to_owned)).collect();
        if on == workers { Ok(()) } else { Err(format!("they are on {on:?}")) }
    });
    let blocked = blocked.await;
    faults.lift(&id).await?;
    let gone = |cache: &Cache| if blockers(cache).is_empty() { Ok(()) } else { Err("there is one left".to_owned()) };
    cache.until("the pods to be gone", PATIENCE, gone).await?;
    Ok(blocked?)
}
