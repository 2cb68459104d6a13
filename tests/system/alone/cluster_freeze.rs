//! The controller that holds a cluster still.

use k8s_openapi::jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use vmi_cluster_freeze::ClusterFreeze;
use vmi_crds::graph::StepName::{self, *};
use vmi_lab::cluster::crds;
use vmi_lab::kubernetes::{
    self, CLUSTER_AUTOSCALER, CLUSTER_VERSION, CONTROL_PLANE_MACHINE_SET, CRD, DEPLOYMENT, INFRASTRUCTURE, Kind, MACHINE_CONFIGURATION,
    MACHINE_HEALTH_CHECK,
};
use vmi_lab::migration::dump::Dump;
use vmi_lab::migration::{Site, audit};

use crate::support::alone::{Alone, Ground, NAME};
use crate::support::lab::Lab;
use crate::support::openshift::{MACHINE_API, PATIENCE};
use crate::support::suite::TestResult;

const OTHERS: [StepName; 7] =
    [CredentialsAdded, TagsAttached, FolderCreated, InfrastructureExtended, CloudConfigExtended, PodsRestarted, PodsHealthy];
const VERSION_OPERATOR: (&str, &str) = ("openshift-cluster-version", "cluster-version-operator");
const LOCKED: [&str; 2] = ["infrastructures.config.openshift.io", "controllerconfigs.machineconfiguration.openshift.io"];
const PAUSED: &str = "cluster.x-k8s.io/paused";

pub async fn read(lab: &Lab, kind: Kind, namespace: &str, name: &str) -> TestResult<Value> {
    Ok(json!(kubernetes::get(&lab.client, kind, namespace, name).await?.ok_or_else(|| format!("no {} {name}", kind.kind))?))
}

async fn replicas(lab: &Lab) -> TestResult<Value> {
    Ok(read(lab, DEPLOYMENT, VERSION_OPERATOR.0, VERSION_OPERATOR.1).await?["spec"]["replicas"].clone())
}

/// Whether the CRD has the rule that keeps the number of vCenters.
async fn is_locked(lab: &Lab, crd: &str) -> TestResult<bool> {
    Ok(read(lab, CRD, "", crd).await?["spec"].to_string().contains("vcenters cannot be added or removed once set"))
}

async fn policies(lab: &Lab) -> TestResult<Value> {
    Ok(read(lab, MACHINE_CONFIGURATION, "", "cluster").await?["spec"]["nodeDisruptionPolicy"]["files"].clone())
}

fn no_reboot() -> Value {
    json!({"path": "/etc/kubernetes/cloud.conf", "actions": [{"type": "None"}]})
}

pub async fn dump(lab: &Lab) -> TestResult<Dump> {
    Ok(Dump::take(&Site::of(&lab.record).await?).await?)
}

pub async fn is_as_before(lab: &Lab, before: &Dump) -> TestResult {
    let difference = before.difference(&dump(lab).await?);
    if difference.is_empty() { Ok(()) } else { Err(format!("not as before:\n{}", difference.join("\n")).into()) }
}

/// As if the others had done their steps, and the summary had let the thaw through the one-way door.
pub async fn until_thawed(ground: &Ground<'_>) -> TestResult {
    ground.done(&OTHERS).await?;
    ground.until_condition(ClusterThawed, "False", "Ready").await?;
    let door = json!({"status": {"oneWayAt": "2026-01-02T03:04:05Z"}});
    ground.api().patch_status(NAME, &PatchParams::default(), &Patch::Merge(&door)).await?;
    ground.until_condition(ClusterThawed, "True", "Thawed").await?;
    for hold in [ClusterVersionFrozen, InfrastructureUnlocked, ControlPlaneSetSaved] {
        ground.until_condition(hold, "False", "Thawed").await?;
    }
    Ok(())
}

pub async fn until_undone(ground: &Ground<'_>) -> TestResult {
    ground.edit(json!({"state": "RollingBack"})).await?;
    for hold in [ControlPlaneSetSaved, InfrastructureUnlocked, ClusterVersionFrozen] {
        ground.until_condition(hold, "False", "Undone").await?;
    }
    Ok(())
}

async fn until_held(ground: &Ground<'_>) -> TestResult {
    ground.until_condition(ClusterVersionFrozen, "True", "Frozen").await?;
    ground.until_condition(InfrastructureUnlocked, "True", "Unlocked").await?;
    ground.until_condition(ControlPlaneSetSaved, "True", "LeftAlone").await?;
    Ok(())
}

/// Things of every kind that would work against a migration: the lab has none of them.
async fn busy_machines(lab: &Lab) -> TestResult {
    // The real CRD is not in the pinned modules; what counts here is that the kind is served.
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let autoscalers = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "clusterautoscalers.autoscaling.openshift.io"},
        "spec": {"group": "autoscaling.openshift.io", "scope": "Cluster", "names": {"plural": "clusterautoscalers", "kind": "ClusterAutoscaler"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}});
    crds::install(&lab.client, &[autoscalers]).await?;
    // Established comes a moment before the first request is answered; a first list says that it is.
    drop(lab.watch(&[CLUSTER_AUTOSCALER]).await);
    let check = |name: &str, annotations: Value| {
        json!({"apiVersion": "machine.openshift.io/v1beta1", "kind": "MachineHealthCheck",
            "metadata": {"name": name, "namespace": MACHINE_API, "annotations": annotations},
            "spec": {"selector": {"matchLabels": {"nobody": "has-this"}}, "maxUnhealthy": "40%",
                "unhealthyConditions": [{"type": "Ready", "status": "Unknown", "timeout": "300s"}]}})
    };
    let manager = json!({"apiGroup": "machine.openshift.io", "resource": "machinesets", "selection": {"mode": "All"}});
    for object in [
        check("open", json!({})),
        check("paused-by-hand", json!({PAUSED: "maintenance"})),
        json!({"apiVersion": "autoscaling.openshift.io/v1", "kind": "ClusterAutoscaler", "metadata": {"name": "default"},
            "spec": {"scaleDown": {"enabled": true, "delayAfterAdd": "10m"}}}),
        json!({"apiVersion": "operator.openshift.io/v1", "kind": "MachineConfiguration", "metadata": {"name": "cluster"},
            "spec": {"managedBootImages": {"machineManagers": [manager]}}}),
    ] {
        kubernetes::apply(&lab.client, "busy", &object).await?;
    }
    Ok(())
}

async fn quiet_again(lab: &Lab) -> TestResult {
    for check in ["open", "paused-by-hand"] {
        kubernetes::delete(&lab.client, MACHINE_HEALTH_CHECK, MACHINE_API, check).await?;
    }
    kubernetes::merge(&lab.client, MACHINE_CONFIGURATION, "", "cluster", &json!({"spec": {"managedBootImages": null}})).await?;
    kubernetes::delete(&lab.client, CLUSTER_AUTOSCALER, "", "default").await?;
    kubernetes::delete(&lab.client, CRD, "", "clusterautoscalers.autoscaling.openshift.io").await?;
    Ok(())
}

pub async fn a_native_cluster_has_its_machines_held_and_released_and_nothing_else(lab: &Lab) -> TestResult {
    busy_machines(lab).await?;
    let before = dump(lab).await?;
    let set = read(lab, CONTROL_PLANE_MACHINE_SET, MACHINE_API, "cluster").await?;
    let ground = Ground::new(lab, "freeze-native", json!({})).await?;
    let alone = Alone::run(&ground, ClusterFreeze).await?;
    ground.report("preflight", json!({"plan": {"path": "native"}}), &[]).await?;
    let planned = ground
        .until("the plan", |vmi| match vmi.step(ControlPlaneSetSaved) {
            Some(step) if step.changes.len() == 4 => Ok(()),
            other => Err(format!("{other:?}")),
        })
        .await?;
    assert_eq!(planned.step(ClusterThawed).map(|step| step.changes.len()), Some(4), "{:?}", planned.step(ClusterThawed));
    is_as_before(lab, &before).await?;

    ground.start("native").await?;
    ground.until_condition(ClusterVersionFrozen, "True", "NotNeeded").await?;
    ground.until_condition(InfrastructureUnlocked, "True", "NotNeeded").await?;
    ground.until_condition(ControlPlaneSetSaved, "True", "LeftAlone").await?;
    let annotations = |check: &Value| check["metadata"]["annotations"][PAUSED].clone();
    assert_eq!(annotations(&read(lab, MACHINE_HEALTH_CHECK, MACHINE_API, "open").await?), "");
    assert_eq!(annotations(&read(lab, MACHINE_HEALTH_CHECK, MACHINE_API, "paused-by-hand").await?), "maintenance");
    let scale_down = read(lab, CLUSTER_AUTOSCALER, "", "default").await?["spec"]["scaleDown"].clone();
    assert_eq!(scale_down, json!({"enabled": false, "delayAfterAdd": "10m"}));
    let configuration = read(lab, MACHINE_CONFIGURATION, "", "cluster").await?;
    assert_eq!(configuration["spec"]["managedBootImages"]["machineManagers"][0]["selection"], json!({"mode": "None"}));
    assert_eq!(policies(lab).await?, json!([no_reboot()]));
    let now = read(lab, CONTROL_PLANE_MACHINE_SET, MACHINE_API, "cluster").await?;
    assert_eq!((&now["metadata"]["uid"], &now["metadata"]["generation"]), (&set["metadata"]["uid"], &set["metadata"]["generation"]));
    assert_eq!(replicas(lab).await?, 1);

    until_thawed(&ground).await?;
    is_as_before(lab, &before).await?;
    alone.finish(&ground).await?;
    ground.leave().await?;
    quiet_again(lab).await
}

pub async fn a_control_plane_machine_set_is_saved_deleted_made_anew_by_its_operator_and_put_back(lab: &Lab) -> TestResult {
    let before = dump(lab).await?;
    let set = read(lab, CONTROL_PLANE_MACHINE_SET, MACHINE_API, "cluster").await?;
    assert_eq!(set["spec"]["state"], "Active");
    let ground = Ground::new(lab, "freeze-control-plane", json!({"controlPlane": {"failureDomains": ["fd-b"]}})).await?;
    let alone = Alone::run(&ground, ClusterFreeze).await?;
    ground.start("native").await?;
    ground.until_condition(ControlPlaneSetSaved, "True", "Saved").await?;
    let made = read(lab, CONTROL_PLANE_MACHINE_SET, MACHINE_API, "cluster").await?;
    assert_eq!(made["spec"]["state"], "Inactive");
    assert_ne!(made["metadata"]["uid"], set["metadata"]["uid"]);
    until_undone(&ground).await?;
    assert_eq!(read(lab, CONTROL_PLANE_MACHINE_SET, MACHINE_API, "cluster").await?["spec"], set["spec"]);
    is_as_before(lab, &before).await?;
    alone.finish(&ground).await?;
    ground.leave().await?;
    lab.settled().await
}

pub async fn a_legacy_cluster_is_frozen_unlocked_and_thawed_and_holds_taken_away_are_taken_again(lab: &Lab) -> TestResult {
    let before = dump(lab).await?;
    let began = Timestamp::now();
    let ground = Ground::new(lab, "freeze-legacy", json!({})).await?;
    let alone = Alone::run(&ground, ClusterFreeze).await?;
    ground.start("legacy").await?;
    until_held(&ground).await?;
    assert_eq!(replicas(lab).await?, 0);
    for crd in LOCKED {
        assert!(!is_locked(lab, crd).await?, "{crd}");
    }
    assert_eq!(policies(lab).await?, json!([no_reboot()]));
    let domains = read(lab, INFRASTRUCTURE, "", "cluster").await?["spec"]["platformSpec"]["vsphere"]["failureDomains"].clone();
    assert_eq!(domains.as_array().map(Vec::len), Some(1), "only a dry run was made");
    let site = Site::of(&lab.record).await?;
    let accepted = audit::read(&site.folder, began, |event| event.uri.contains("dryRun=All") && event.response_status.code == 200)?;
    for (resource, name) in [("infrastructures", "cluster"), ("controllerconfigs", "machine-config-controller")] {
        let of = |event: &&audit::Event| event.object_ref.resource == resource && event.object_ref.name == name;
        assert!(accepted.iter().any(|event| of(&event)), "no dry run of {resource} {name} was accepted");
    }

    // The version operator comes back and puts its CRDs back.
    kubernetes::merge(&lab.client, DEPLOYMENT, VERSION_OPERATOR.0, VERSION_OPERATOR.1, &json!({"spec": {"replicas": 1}})).await?;
    ground.until_condition(ClusterVersionFrozen, "False", "TakenAway").await?;
    ground.until_condition(InfrastructureUnlocked, "False", "TakenAway").await?;
    assert_eq!(replicas(lab).await?, 1, "nothing is fought over");
    ground.edit(json!({"state": "Paused"})).await?;
    ground.until_condition(ClusterVersionFrozen, "False", "Paused").await?;
    ground.edit(json!({"state": "Running"})).await?;
    until_held(&ground).await?;
    assert_eq!(replicas(lab).await?, 0);

    let thawing = Timestamp::now();
    until_thawed(&ground).await?;
    // Under this name everything but the vmi is patched. Were the version operator up earlier, both would write the CRDs.
    let ours = |event: &audit::Event| event.is_write() && event.field_manager() == Some("vmi-operator");
    let released: Vec<String> = audit::read(&site.folder, thawing, ours)?.iter().map(audit::Event::spoken).collect();
    for crd in LOCKED {
        assert!(released.contains(&format!("patch customresourcedefinitions {crd}")), "{crd}: {released:?}");
    }
    let (namespace, name) = VERSION_OPERATOR;
    assert_eq!(released.last(), Some(&format!("patch deployments {namespace}/{name}")), "{released:?}");
    is_as_before(lab, &before).await?;
    alone.finish(&ground).await?;
    ground.leave().await?;
    lab.settled().await
}

pub async fn a_legacy_cluster_taken_back_ends_as_it_was_also_if_the_controller_was_killed_meanwhile(lab: &Lab) -> TestResult {
    let before = dump(lab).await?;
    let ground = Ground::new(lab, "freeze-back", json!({})).await?;
    let first = Alone::run(&ground, ClusterFreeze).await?;
    ground.start("legacy").await?;
    ground.until_condition(ClusterVersionFrozen, "True", "Frozen").await?;
    first.kill().await;
    let second = Alone::run(&ground, ClusterFreeze).await?;
    until_held(&ground).await?;
    ground.done(&OTHERS).await?;
    ground.until_condition(ClusterThawed, "False", "Ready").await?;

    // Somebody lets the version operator run just before the way back begins, which needs the rules to be out of the way.
    kubernetes::merge(&lab.client, DEPLOYMENT, VERSION_OPERATOR.0, VERSION_OPERATOR.1, &json!({"spec": {"replicas": 1}})).await?;
    ground.until_condition(InfrastructureUnlocked, "False", "TakenAway").await?;
    ground.edit(json!({"state": "RollingBack"})).await?;
    ground.until_condition(ClusterVersionFrozen, "True", "Frozen").await?;
    ground.until_condition(InfrastructureUnlocked, "True", "Unlocked").await?;
    ground.undone(&OTHERS).await?;
    until_undone(&ground).await?;
    is_as_before(lab, &before).await?;
    second.finish(&ground).await?;
    ground.leave().await?;
    lab.settled().await
}

pub async fn with_overrides_the_version_operator_stays_alive_and_what_others_changed_is_left(lab: &Lab) -> TestResult {
    let before = dump(lab).await?;
    let ground = Ground::new(lab, "freeze-overrides", json!({"freeze": "Overrides"})).await?;
    let alone = Alone::run(&ground, ClusterFreeze).await?;
    ground.start("legacy").await?;
    until_held(&ground).await?;
    assert_eq!(replicas(lab).await?, 1);
    let overrides = read(lab, CLUSTER_VERSION, "", "version").await?["spec"]["overrides"].clone();
    assert_eq!(overrides.as_array().map(Vec::len), Some(2), "{overrides}");

    // Somebody else adds a policy of their own, and makes ours another one.
    let theirs = json!([{"path": "/etc/theirs", "actions": [{"type": "None"}]}, {"path": "/etc/kubernetes/cloud.conf", "actions": [{"type": "Drain"}]}]);
    let edit = json!({"spec": {"nodeDisruptionPolicy": {"files": theirs}}});
    kubernetes::merge(&lab.client, MACHINE_CONFIGURATION, "", "cluster", &edit).await?;
    ground.edit(json!({"state": "RollingBack"})).await?;
    let left = ground.until_condition(ControlPlaneSetSaved, "False", "UndoneWithConflict").await?;
    let message = &left.condition(ControlPlaneSetSaved.as_str()).unwrap().message;
    assert!(message.contains("/etc/kubernetes/cloud.conf") && message.contains("Drain"), "{message}");
    ground.until_condition(InfrastructureUnlocked, "False", "Undone").await?;
    ground.until_condition(ClusterVersionFrozen, "False", "Undone").await?;
    assert_eq!(policies(lab).await?, theirs);
    let edit = json!({"spec": {"nodeDisruptionPolicy": null}});
    kubernetes::merge(&lab.client, MACHINE_CONFIGURATION, "", "cluster", &edit).await?;
    let mut versions = lab.watch(&[CRD]).await;
    let locked = |cache: &vmi_lab::cache::Cache| {
        let open =
            |name: &&str| !cache.get(CRD, "", name).is_some_and(|crd| crd.data.to_string().contains("cannot be added or removed once set"));
        LOCKED.iter().find(|name| open(name)).map_or(Ok(()), |name| Err(format!("{name} is open")))
    };
    versions.until("the rules to be back", PATIENCE, locked).await?;
    is_as_before(lab, &before).await?;
    alone.finish(&ground).await?;
    ground.leave().await?;
    lab.settled().await
}
