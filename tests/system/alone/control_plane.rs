//! Step 12 alone: the control plane of a cluster whose workers stay, by the real control plane machine set operator.

use serde_json::json;
use vmi_crds::graph::StepName::ControlPlaneReady;
use vmi_lab::kubernetes::{self, CONTROL_PLANE_MACHINE_SET, MACHINE};
use vmi_machine_rollout::MachineRollout;

use super::machine_rollout::{control_plane_set_saved, earlier, get, made_inactive, strategy};
use crate::support::alone::{Alone, Ground, now};
use crate::support::lab::Lab;
use crate::support::openshift::{MACHINE_API, PATIENCE, add_vcenter, is_master, server, vcenter};
use crate::support::suite::TestResult;

/// A lab of its own: its control plane is replaced four times.
pub async fn a_control_plane_moves_and_comes_back_whatever_its_set_was_told_to_do_by_itself() -> TestResult {
    let lab = Lab::start("native", "planes").await?;
    let result = moved_and_back(&lab).await;
    lab.stop().await?;
    result
}

async fn moved_and_back(lab: &Lab) -> TestResult {
    add_vcenter(lab, &vcenter(lab, "b")?).await?;
    let by_hand = json!({"spec": {"strategy": {"type": "OnDelete"}}});
    kubernetes::merge(&lab.client, CONTROL_PLANE_MACHINE_SET, MACHINE_API, "cluster", &by_hand).await?;
    there_and_back(lab, "plane-on-delete", "Active", "OnDelete").await?;
    made_inactive(lab).await?;
    let own = get(lab, CONTROL_PLANE_MACHINE_SET, "cluster").await?.data["spec"]["strategy"]["type"].clone();
    there_and_back(lab, "plane-inactive", "Inactive", own.as_str().unwrap_or_default()).await
}

async fn there_and_back(lab: &Lab, name: &str, state: &str, own: &str) -> TestResult {
    let ground = Ground::new(lab, name, json!({"controlPlane": {"failureDomains": ["fd-b"]}})).await?;
    let alone = Alone::run(&ground, MachineRollout).await?;
    control_plane_set_saved(&ground).await?;
    ground.start("native").await?;
    ground.done(&earlier()).await?;
    strategy(&ground, "RollingUpdate").await?;
    held(&ground, "True").await?;
    strategy(&ground, "OnDelete").await?;
    held(&ground, "False").await?;
    strategy(&ground, "RollingUpdate").await?;
    ground.until_condition(ControlPlaneReady, "True", "Ready").await?;
    is(lab, state, own, "fd-b", "b").await?;

    ground.edit(json!({"state": "RollingBack"})).await?;
    ground.until_condition(ControlPlaneReady, "False", "Undone").await?;
    is(lab, state, own, "fd-a", "a").await?;
    alone.finish(&ground).await?;
    ground.leave().await
}

/// As if the pods' health held the migration, or did so no more.
async fn held(ground: &Ground<'_>, status: &str) -> TestResult {
    let condition = json!({"type": "Held", "status": status, "reason": "POD-001", "message": "set by hand", "lastTransitionTime": now()});
    ground.condition("vmi-test", condition).await
}

/// Waits until the set has this state, strategy and failure domain, and every master is on the vCenter.
async fn is(lab: &Lab, state: &str, strategy: &str, domain: &str, place: &str) -> TestResult {
    let wanted = lab.vcenter(place).server.clone();
    let mut cache = lab.watch(&[CONTROL_PLANE_MACHINE_SET, MACHINE]).await;
    cache
        .until(&format!("an {state} control plane machine set for {domain}"), PATIENCE, |cache| {
            let set = cache.get(CONTROL_PLANE_MACHINE_SET, MACHINE_API, "cluster").ok_or("there is none")?;
            let spec = &set.data["spec"];
            let places = &spec["template"]["machines_v1beta1_machine_openshift_io"]["failureDomains"]["vsphere"];
            if spec["state"] != state || spec["strategy"]["type"] != strategy || *places != json!([{"name": domain}]) {
                return Err(spec.to_string());
            }
            let masters: Vec<_> = cache.list(MACHINE).into_iter().filter(|machine| is_master(machine)).collect();
            let there = masters.iter().filter(|master| server(master) == wanted).count();
            if (there, masters.len()) == (3, 3) { Ok(()) } else { Err(format!("{there} of {} masters are there", masters.len())) }
        })
        .await?;
    Ok(())
}
