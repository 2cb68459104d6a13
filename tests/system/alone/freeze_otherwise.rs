//! The controller that holds a cluster still, where others do not do what it counts on.

use kube::ResourceExt;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;
use vmi_cluster_freeze::ClusterFreeze;
use vmi_crds::graph::StepName::ControlPlaneSetSaved;
use vmi_lab::kubernetes::{self, CONTROL_PLANE_MACHINE_SET, MACHINE_CONFIG_POOL, MACHINE_CONFIGURATION};

use super::cluster_freeze::{dump, is_as_before, read, until_thawed, until_undone};
use crate::planeless::NONE_IS_GENERATED;
use crate::support::alone::{Alone, Ground};
use crate::support::forbidden::Forbidden;
use crate::support::lab::Lab;
use crate::support::openshift::MACHINE_API;
use crate::support::suite::TestResult;

/// The operator of an older release shows no policy at all.
const NO_POLICY_IS_SHOWN: Forbidden = Forbidden {
    name: "no-node-disruption-policy-is-shown",
    account: ("openshift-machine-config-operator", "machine-config-operator"),
    operation: "UPDATE",
    kind: MACHINE_CONFIGURATION,
    subresource: "/status",
};

async fn paused_pools(lab: &Lab) -> TestResult<Vec<String>> {
    let pools = kubernetes::list(&lab.client, MACHINE_CONFIG_POOL, "").await?;
    let mut paused: Vec<String> = pools.iter().filter(|pool| pool.data["spec"]["paused"] == true).map(ResourceExt::name_any).collect();
    paused.sort_unstable();
    Ok(paused)
}

pub async fn where_no_policy_is_shown_reboots_are_held_by_pools_until_the_thaw(lab: &Lab) -> TestResult {
    let before = dump(lab).await?;
    let attempt = async |client| {
        let dry_run = PatchParams { dry_run: true, ..PatchParams::default() };
        let edit = json!({"status": {"observedGeneration": 0}});
        MACHINE_CONFIGURATION.api(&client, "").patch_status("cluster", &dry_run, &Patch::Merge(&edit)).await.map(drop)
    };
    NO_POLICY_IS_SHOWN.add_for_sure(lab, attempt).await?;
    let ground = Ground::new(lab, "freeze-pools", json!({})).await?;
    let alone = Alone::run(&ground, ClusterFreeze).await?;
    ground.start("native").await?;
    let held = ground.until_condition(ControlPlaneSetSaved, "True", "LeftAlone").await?;
    let message = &held.condition(ControlPlaneSetSaved.as_str()).unwrap().message;
    assert!(message.contains("reboots are held by paused machine config pools"), "{message}");
    assert_eq!(paused_pools(lab).await?, ["master", "worker"]);

    until_thawed(&ground).await?;
    assert_eq!(paused_pools(lab).await?, [""; 0]);
    NO_POLICY_IS_SHOWN.lift(lab).await?;
    is_as_before(lab, &before).await?;
    alone.finish(&ground).await?;
    ground.leave().await?;
    lab.settled().await
}

pub async fn a_control_plane_machine_set_that_nobody_makes_anew_is_waited_for_and_made_again_on_the_way_back(lab: &Lab) -> TestResult {
    let before = dump(lab).await?;
    let set = read(lab, CONTROL_PLANE_MACHINE_SET, MACHINE_API, "cluster").await?;
    let copy = serde_json::from_value(json!({
        "apiVersion": set["apiVersion"], "kind": set["kind"], "spec": set["spec"], "metadata": {"name": "cluster", "namespace": MACHINE_API},
    }))?;
    let attempt = async |client| {
        let dry_run = PostParams { dry_run: true, ..PostParams::default() };
        CONTROL_PLANE_MACHINE_SET.api(&client, MACHINE_API).create(&dry_run, &copy).await.map(drop)
    };
    NONE_IS_GENERATED.add_for_sure(lab, attempt).await?;
    let ground = Ground::new(lab, "freeze-planeless", json!({"controlPlane": {"failureDomains": ["fd-b"]}})).await?;
    let alone = Alone::run(&ground, ClusterFreeze).await?;
    ground.start("native").await?;
    let saved = ground.until_condition(ControlPlaneSetSaved, "True", "NoneRegenerated").await?;
    let message = &saved.condition(ControlPlaneSetSaved.as_str()).unwrap().message;
    assert!(message.contains("none was made anew within 2 minutes"), "{message}");
    assert!(kubernetes::get(&lab.client, CONTROL_PLANE_MACHINE_SET, MACHINE_API, "cluster").await?.is_none());

    until_undone(&ground).await?;
    assert_eq!(read(lab, CONTROL_PLANE_MACHINE_SET, MACHINE_API, "cluster").await?["spec"], set["spec"]);
    NONE_IS_GENERATED.lift(lab).await?;
    is_as_before(lab, &before).await?;
    alone.finish(&ground).await?;
    ground.leave().await?;
    lab.settled().await
}
