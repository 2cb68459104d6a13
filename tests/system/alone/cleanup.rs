//! The controller that takes the source out of the cluster. To have a source without machines, the cluster is grown by vCenter b, and
//! then moved "from b to a": what is taken away is what was added.

use kube::Client;
use kube::api::PostParams;
use serde_json::{Value, json};
use vmi_cleanup::Cleanup;
use vmi_config_rewrite::ConfigRewrite;
use vmi_crds::graph::StepName::{
    CloudConfigExtended, ClusterVersionFrozen, ControlPlaneReady, InfrastructureUnlocked, PodsHealthyAfterDetach, PodsRestartedAfterDetach,
    PreflightPassed, SourceDetached, SourceRemoved, SourceWorkersRemoved, WorkersReady,
};
use vmi_lab::cluster::{config, machines};
use vmi_lab::kubernetes::{self, CLUSTER_CSI_DRIVER, CONFIG_MAP, INFRASTRUCTURE, MACHINE_SET, PERSISTENT_VOLUME, SECRET};
use vmi_site::credentials::COMPONENT_SECRETS;
use vmi_site::vcenter::{ROOT_SECRET, secret_data};

use super::config_rewrite::{dump, prepared, put_back};
use crate::support::alone::{Alone, Ground, NAME, now};
use crate::support::forbidden::Forbidden;
use crate::support::lab::Lab;
use crate::support::openshift::{MACHINE_API, PATIENCE, vcenter};
use crate::support::suite::TestResult;

const CSI: &str = "openshift-cluster-csi-drivers";
const CSI_CONFIG: &str = "vsphere-csi-config-secret";
const DRIVER: &str = "csi.vsphere.vmware.com";
const EMPTY_SET: &str = "source-without-machines";
/// A set of the source that somebody still needs.
const USED_SET: &str = "source-in-use";
/// A volume of the source, which `volumes: Ignore` leaves.
const LEFT: &str = "left-behind";
const REMOVAL: &str = "0123456789abcdef";
const NOTHING_LEAVES: Forbidden = Forbidden {
    name: "nothing-leaves-infrastructure",
    account: ("", "alone-cleanup"),
    operation: "UPDATE",
    kind: INFRASTRUCTURE,
    subresource: "",
};

/// The cluster with vCenter b added, as step 8 leaves it.
async fn grown(lab: &Lab) -> TestResult {
    let ground = Ground::new(lab, "cleanup-grown", json!({})).await?;
    prepared(&ground).await?;
    let alone = Alone::run(&ground, ConfigRewrite).await?;
    ground.until_condition(CloudConfigExtended, "True", "Extended").await?;
    alone.finish(&ground).await?;
    ground.leave().await
}

fn csi_config(servers: &[&str]) -> Value {
    let sections: String = servers.iter().map(|server| format!("[VirtualCenter \"{server}\"]\nuser = \"u\"\n")).collect();
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": CSI_CONFIG, "namespace": CSI},
        "stringData": {"cloud.conf": format!("[Global]\ncluster-id = \"x\"\n{sections}")},
    })
}

/// What only a cluster with the CSI driver has, and a MachineSet of the source that makes nothing.
async fn furnished(lab: &Lab) -> TestResult {
    let (a, b) = (vcenter(lab, "a")?, vcenter(lab, "b")?);
    let driver = json!({
        "apiVersion": "operator.openshift.io/v1", "kind": "ClusterCSIDriver", "metadata": {"name": DRIVER},
        "spec": {"managementState": "Managed", "logLevel": "Normal", "operatorLogLevel": "Normal"},
    });
    let volume = json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": LEFT},
        "spec": {
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "persistentVolumeReclaimPolicy": "Retain",
            "claimRef": {"namespace": "shop", "name": "orders", "uid": "4f0f7a1c-2a55-4a10-9d59-0c6f1d3b7e22"},
            "csi": {"driver": DRIVER, "volumeHandle": "0e1f5a4c-9b1e-4a43-a9f3-1d3c1a2b3c4e"},
        },
    });
    for object in [driver, csi_config(&[&a.server, &b.server]), machines::machine_set(EMPTY_SET, &b, &b.zones[0], 0), volume] {
        kubernetes::apply(&lab.client, "test", &object).await?;
    }
    Ok(())
}

/// The ground of a move from b to a, with approval, up to the door.
async fn at_the_door<'a>(lab: &'a Lab, namespace: &str) -> TestResult<Ground<'a>> {
    let a = vcenter(lab, "a")?;
    let zone = &a.zones[0];
    let change = json!({
        "sourceRetirement": "Remove", "approval": "Manual", "credentialsSecret": {"name": "target-a"},
        "vcenters": [config::vcenter_entry(&a)], "source": {"servers": [lab.vcenter("b").server]},
        "failureDomains": [config::failure_domain_entry(&config::named_domain(&a, zone), &a, zone)],
    });
    let ground = Ground::new(lab, namespace, change).await?;
    let pair = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "target-a", "namespace": namespace}, "stringData": config::credentials(&a),
    });
    kubernetes::apply(&lab.client, "test", &pair).await?;
    Ok(ground)
}

/// A set that asks for a machine and gets none: its controller leaves alone what is being deleted, and the finalizer keeps that from
/// ending.
async fn used_set(lab: &Lab) -> TestResult {
    let b = vcenter(lab, "b")?;
    let mut set = machines::machine_set(USED_SET, &b, &b.zones[0], 0);
    set["metadata"]["finalizers"] = json!(["system-test/in-use"]);
    kubernetes::apply(&lab.client, "test", &set).await?;
    kubernetes::delete(&lab.client, MACHINE_SET, MACHINE_API, USED_SET).await?;
    kubernetes::merge(&lab.client, MACHINE_SET, MACHINE_API, USED_SET, &json!({"spec": {"replicas": 1}})).await?;
    Ok(())
}

/// An update of Infrastructure that changes nothing.
async fn try_an_update(client: Client) -> kube::Result<()> {
    let api = INFRASTRUCTURE.api(&client, "");
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    api.replace("cluster", &dry_run, &api.get("cluster").await?).await.map(drop)
}

/// Approved, it waits for whoever uses the source; then it is refused, and goes on when the user resumes.
async fn kept_from_the_door(lab: &Lab, ground: &Ground<'_>) -> TestResult {
    used_set(lab).await?;
    ground.edit(json!({"approvedPlan": REMOVAL})).await?;
    until_message(ground, SourceDetached, &format!("waits for these to leave the source: MachineSet {USED_SET}")).await?;
    NOTHING_LEAVES.add_for_sure(lab, try_an_update).await?;
    kubernetes::merge(&lab.client, MACHINE_SET, MACHINE_API, USED_SET, &json!({"metadata": {"finalizers": null}})).await?;
    let refused = ground.until_condition(SourceDetached, "False", "CLN-001").await?;
    let failure = refused.step(SourceDetached).and_then(|step| step.failure.clone()).ok_or("no failure is reported")?;
    assert!(failure.message.contains(NOTHING_LEAVES.name), "{}", failure.message);
    assert!(refused.seen().one_way_at.is_none(), "the door was passed");
    NOTHING_LEAVES.lift_for_sure(lab, try_an_update).await?;
    ground.edit(json!({"state": "Paused"})).await?;
    ground.until_condition(SourceDetached, "False", "Paused").await?;
    ground.edit(json!({"state": "Running"})).await
}

fn summed_up(lab: &Lab) -> Value {
    json!({"startedAt": now(), "source": {"servers": [lab.vcenter("b").server]}, "graphVersion": 1})
}

async fn preflight(ground: &Ground<'_>, plan: Value) -> TestResult {
    ground.report("preflight", json!({"plan": plan}), &[(PreflightPassed, "True", "Passed", "Done")]).await
}

async fn until_message(ground: &Ground<'_>, step: vmi_crds::graph::StepName, words: &str) -> TestResult {
    let told = |vmi: &vmi_crds::VSphereMigrationInfra| match vmi.condition(step.as_str()) {
        Some(condition) if condition.message.contains(words) => Ok(()),
        other => Err(format!("{other:?}")),
    };
    ground.until(&format!("{step} to say {words:?}"), told).await.map(drop)
}

async fn data(lab: &Lab, (namespace, name): (&str, &str)) -> TestResult<std::collections::BTreeMap<String, Vec<u8>>> {
    Ok(secret_data(&kubernetes::get(&lab.client, SECRET, namespace, name).await?.ok_or(format!("no Secret {namespace}/{name}"))?))
}

pub async fn the_source_leaves_through_the_one_way_door_and_killed_on_either_side_it_is_finished(lab: &Lab) -> TestResult {
    let before = dump(lab).await?;
    grown(lab).await?;
    furnished(lab).await?;
    let grown = dump(lab).await?;
    let (a, b) = (lab.vcenter("a").server.clone(), lab.vcenter("b").server.clone());
    let ground = at_the_door(lab, "cleanup-door").await?;

    let alone = Alone::run(&ground, Cleanup).await?;
    let planned = ground.until_condition(SourceRemoved, "False", "NotStarted").await?;
    assert_eq!(
        planned.step(SourceDetached).map(|step| step.changes.clone()).unwrap_or_default(),
        [
            format!("ClusterCSIDriver {DRIVER}: topologyCategories are named, since one failure domain is left"),
            format!("Infrastructure cluster: vCenter {b} goes"),
            "Infrastructure cluster: failure domain fd-b goes".to_owned(),
            format!("ConfigMap openshift-config/cloud-provider-config: {b} goes"),
        ]
    );

    preflight(&ground, json!({"path": "native"})).await?;
    let mut summary = summed_up(lab);
    ground.report("summary", summary.clone(), &[]).await?;
    ground.edit(json!({"state": "Running"})).await?;
    ground.done(&[ClusterVersionFrozen, InfrastructureUnlocked]).await?;
    ground.done(&[WorkersReady, ControlPlaneReady, SourceWorkersRemoved]).await?;
    until_message(&ground, SourceDetached, "status.plan.removalHash").await?;
    preflight(&ground, json!({"path": "native", "removalHash": REMOVAL})).await?;
    until_message(&ground, SourceDetached, &format!("set spec.approvedPlan to {REMOVAL}")).await?;
    kept_from_the_door(lab, &ground).await?;
    ground.until_condition(SourceDetached, "False", "Ready").await?;
    ground.edit(json!({"state": "Paused"})).await?;
    ground.until_condition(SourceDetached, "False", "Paused").await?;
    ground.edit(json!({"state": "Running"})).await?;
    ground.until_condition(SourceDetached, "False", "Ready").await?;
    alone.kill().await;

    // On this side of the door nothing was written, and a new process writes nothing either.
    let alone = Alone::run(&ground, Cleanup).await?;
    ground.edit(json!({"state": "Paused"})).await?;
    ground.until_condition(SourceDetached, "False", "Paused").await?;
    ground.edit(json!({"state": "Running"})).await?;
    ground.until_condition(SourceDetached, "False", "Ready").await?;
    assert!(grown == dump(lab).await?, "something was written before the door");

    // On the other side a process that dies in the middle leaves the rest to the next, pause or not.
    let mut cache = lab.watch(&[INFRASTRUCTURE]).await;
    summary["oneWayAt"] = json!(now());
    ground.report("summary", summary, &[]).await?;
    cache
        .until("the source to leave Infrastructure", PATIENCE, |cache| {
            let spec = cache.get(INFRASTRUCTURE, "", "cluster").map(|object| object.data["spec"].to_string()).unwrap_or_default();
            if spec.contains(&b) { Err("it is listed".to_owned()) } else { Ok(()) }
        })
        .await?;
    alone.kill().await;
    ground.edit(json!({"state": "Paused"})).await?;
    let alone = Alone::run(&ground, Cleanup).await?;
    ground.until_condition(SourceDetached, "True", "Detached").await?;
    ground.edit(json!({"state": "Running"})).await?;
    detached(lab, &a, &b).await?;

    removed(lab, &ground, &b).await?;
    alone.finish(&ground).await?;
    kubernetes::delete(&lab.client, CLUSTER_CSI_DRIVER, "", DRIVER).await?;
    kubernetes::delete(&lab.client, SECRET, CSI, CSI_CONFIG).await?;
    kubernetes::delete(&lab.client, PERSISTENT_VOLUME, "", LEFT).await?;
    put_back(lab, &before).await?;
    ground.leave().await
}

async fn detached(lab: &Lab, a: &str, b: &str) -> TestResult {
    let infrastructure = kubernetes::get(&lab.client, INFRASTRUCTURE, "", "cluster").await?.ok_or("no Infrastructure")?;
    let vsphere = &infrastructure.data["spec"]["platformSpec"]["vsphere"];
    for list in ["vcenters", "failureDomains"] {
        let servers: Vec<&str> = vsphere[list].as_array().into_iter().flatten().filter_map(|item| item["server"].as_str()).collect();
        assert_eq!(servers, [a], "{list}");
    }
    let copies = [("openshift-config-managed", "kube-cloud-config"), ("openshift-cloud-controller-manager", "cloud-conf")];
    for (namespace, name) in [("openshift-config", "cloud-provider-config")].into_iter().chain(copies) {
        let text = kubernetes::get(&lab.client, CONFIG_MAP, namespace, name).await?.ok_or("no cloud configuration")?.data.to_string();
        assert!(text.contains(a) && !text.contains(b), "{namespace}/{name}: {text}");
    }
    let driver = kubernetes::get(&lab.client, CLUSTER_CSI_DRIVER, "", DRIVER).await?.ok_or("no driver")?;
    assert_eq!(driver.data["spec"]["driverConfig"]["vSphere"]["topologyCategories"], json!(["openshift-zone", "openshift-region"]));
    for place in [ROOT_SECRET].into_iter().chain(COMPONENT_SECRETS) {
        assert!(data(lab, place).await?.contains_key(&format!("{b}.password")), "{place:?}: the pair is still needed");
    }
    Ok(())
}

/// The rest: metadata first, then pairs and sets; and it waits for those who have to follow.
async fn removed(lab: &Lab, ground: &Ground<'_>, b: &str) -> TestResult {
    let pair = data(lab, ROOT_SECRET).await?;
    ground.done(&[PodsRestartedAfterDetach, PodsHealthyAfterDetach]).await?;
    // All others have followed then.
    until_message(ground, SourceRemoved, &format!("named nowhere: the CSI driver operator has yet to take {b} out")).await?;
    for place in [ROOT_SECRET].into_iter().chain(COMPONENT_SECRETS) {
        let left = data(lab, place).await?;
        assert!(left.keys().all(|key| !key.starts_with(b)) && left.len() == 2, "{place:?}: {:?}", left.keys());
    }
    assert!(kubernetes::get(&lab.client, MACHINE_SET, MACHINE_API, EMPTY_SET).await?.is_none(), "the empty set is still there");
    let metadata = data(lab, (&ground.namespace, &format!("vmi-{NAME}-metadata"))).await?;
    let metadata: Value = serde_json::from_slice(metadata.get("metadata.json").ok_or("no metadata.json")?)?;
    let vcenters = metadata["vsphere"]["VCenters"].as_array().ok_or("no vCenters")?;
    assert_eq!(vcenters.len(), 2, "of both");
    for vcenter in vcenters {
        let key = format!("{}.password", vcenter["vCenter"].as_str().unwrap_or_default());
        assert!(vcenter["password"].as_str().map(str::as_bytes) == pair.get(&key).map(Vec::as_slice), "another password for {key}");
    }
    assert_eq!(metadata["infraID"], vmi_lab::vcenter::INFRA_ID);

    let rest = csi_config(&[&lab.vcenter("a").server]);
    kubernetes::merge(&lab.client, SECRET, CSI, CSI_CONFIG, &json!({"stringData": rest["stringData"]})).await?;
    let vmi = ground.until_condition(SourceRemoved, "True", "Removed").await?;
    let map = format!("vmi-{NAME}-leftovers");
    let message = vmi.condition(SourceRemoved.as_str()).map(|condition| condition.message.clone()).unwrap_or_default();
    assert!(message.contains(&map), "{message}");
    let left = kubernetes::get(&lab.client, CONFIG_MAP, &ground.namespace, &map).await?.ok_or("no leftovers")?;
    let text = left.data["data"]["leftovers.txt"].as_str().unwrap_or_default();
    let template = format!("govc vm.destroy {}\n", vcenter(lab, "b")?.template());
    for told in
        [&format!("# in vCenter {b}"), "govc object.destroy /dc-b/vm/", &template, "# claim shop/orders,", "oc delete pv left-behind\n"]
    {
        assert!(text.contains(told), "{told:?} is not in {text}");
    }
    assert!(message.contains("and 1 volumes"), "{message}");
    let all = serde_json::to_string(&vmi)? + text;
    let password = &vcenter(lab, "b")?.password;
    assert!(!all.contains(password.as_str()), "a password in the vmi or in the list");
    Ok(())
}
