//! What stops a move late: while the control plane is replaced, while the source's workers leave, and when there is no way back.

use serde_json::json;
use vmi_crds::VSphereMigrationInfra;
use vmi_crds::graph::StepName::{self, ControlPlaneReady, PodsHealthyAfterDetach, SourceWorkersRemoved};
use vmi_crds::spec::SourceRetirement;
use vmi_crds::status::StepState;
use vmi_lab::faults::Fault;
use vmi_lab::migration::{moved, watch};

use super::underway::Underway;
use crate::support::lab::Lab;
use crate::support::openshift::{MACHINE_API, passed};
use crate::support::suite::TestResult;

/// A lab of its own: a cluster that was moved stays where it is.
pub async fn a_move_stops_for_a_stuck_member_a_degraded_control_plane_a_blocked_drain_and_crashes_after_the_last_way_back_and_is_completed()
-> TestResult {
    let lab = Lab::start("native", "late-faults").await?;
    let result = late_faults(&lab).await;
    lab.stop().await?;
    result
}

async fn late_faults(lab: &Lab) -> TestResult {
    let (mut migration, no_folder) = Underway::standing(lab, SourceRetirement::Remove).await?;
    migration.faults.lift(&no_folder).await?;
    migration.resume().await?;

    migration.until("the control plane's turn", begun(ControlPlaneReady)).await?;
    let no_vote = migration.faults.add(&Fault::EtcdMemberStuck).await?;
    let member = migration.stops("OPR-001", None).await?;
    assert!(member.message.contains("etcd") && member.message.contains("is unhealthy"), "{member:?}");
    migration.faults.lift(&no_vote).await?;
    migration.until("the member to vote", |vmi| (!vmi.is_true("Held")).then_some(())).await?;
    let degraded = migration.faults.add(&Fault::CpmsDegraded).await?;
    // Its operator says so of itself, and so does its log.
    let set = "control-plane-machine-set";
    let failure = migration.stops_by(&[("OPR-001", None), ("CPMS-003", Some(set))]).await?;
    assert!(failure.message.contains(set) && failure.message.contains("a node has no machine"), "{failure:?}");
    assert!(failure.next.contains("oc get nodes -l node-role.kubernetes.io/master"), "{failure:?}");
    let blocked = migration.faults.add(&Fault::DrainBlocked).await?;
    migration.faults.lift(&degraded).await?;
    migration.restart_pods(MACHINE_API, "control-plane-machine-set-operator").await?;

    let culprit = "PodDisruptionBudget vmi-lab/drain-blocker";
    let kept = |vmi: &VSphereMigrationInfra| vmi.step(SourceWorkersRemoved)?.message.contains(culprit).then_some(());
    migration.until("a drain that is blocked", kept).await?;
    migration.hours_pass(SourceWorkersRemoved).await?;
    let stuck = migration.stops("STL-001", None).await?;
    assert!(stuck.message.contains(culprit), "{stuck:?}");
    migration.faults.lift(&blocked).await?;
    migration.resume().await?;

    migration.until("the look at pods without the source", begun(PodsHealthyAfterDetach)).await?;
    let crashes = migration.faults.add(&Fault::MachineControllerCrashLoop).await?;
    migration.stops("POD-002", Some("machine-api")).await?;
    let failed = |vmi: &VSphereMigrationInfra| (watch::state(vmi, PodsHealthyAfterDetach) == StepState::Failed).then_some(());
    migration.health(&json!({"deadline": "31s"})).await?;
    migration.until("the end of its time", failed).await?;
    let crashing = migration.stops("POD-002", Some("machine-api")).await?;
    assert!(crashing.next.contains("spec.health.accept"), "{crashing:?}");
    // Who accepts the one is told of the next: nobody holds the lease.
    migration.health(&json!({"accept": ["POD-002"]})).await?;
    migration.stops("EVD-002", None).await?;
    migration.health(&json!({"deadline": "5m", "accept": ["POD-002", "EVD-002"]})).await?;
    migration.until("the way on", |vmi| vmi.is_true(PodsHealthyAfterDetach.as_str()).then_some(())).await?;
    migration.faults.lift(&crashes).await?;

    let (site, before, operator) = migration.completed().await?;
    let checks = moved::verdict(&site, &before).await?;
    operator.stop().await;
    passed(&checks)
}

fn begun(step: StepName) -> impl FnMut(&VSphereMigrationInfra) -> Option<()> {
    move |vmi| (watch::state(vmi, step) == StepState::Active).then_some(())
}
