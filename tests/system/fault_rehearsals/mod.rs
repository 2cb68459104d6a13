//! Migrations that meet one fault after the other: each has to stop with the right rule and a hint that works when it is pasted, is
//! then mended as the hint says, and is carried to its end. One lab and one migration take several faults, since booting takes longest.

mod control_plane;
mod mistakes;
mod underway;
mod workers;

use std::time::Duration;

use vmi_crds::graph::StepName;
use vmi_crds::spec::SourceRetirement;
use vmi_crds::status::StepState;
use vmi_lab::faults::{Calls, Fault};
use vmi_lab::migration::{request, verdict};

use crate::support::lab::Lab;
use crate::support::openshift::{MACHINE_API, passed};
use crate::support::suite::TestResult;
pub use control_plane::a_move_stops_for_a_stuck_member_a_degraded_control_plane_a_blocked_drain_and_crashes_after_the_last_way_back_and_is_completed;
pub use mistakes::a_growth_stops_for_a_wrong_password_a_foreign_key_and_a_missing_datacenter_and_is_completed;
use underway::Underway;
pub use workers::a_move_stops_for_a_missing_tag_category_a_lost_template_and_a_node_that_never_joins_and_is_completed;

/// A lab of its own: a growth that was completed is not taken back.
pub async fn a_growth_stops_for_a_certificate_crashes_and_a_killed_manager_but_not_for_a_minute_of_503_and_is_completed() -> TestResult {
    let lab = Lab::start("native", "four-faults").await?;
    let result = four_faults(&lab).await;
    lab.stop().await?;
    result
}

async fn four_faults(lab: &Lab) -> TestResult {
    let target = || "b".to_owned();
    let (mut growth, no_folder) = Underway::standing(lab, SourceRetirement::Keep).await?;

    let certificate = growth.faults.add(&Fault::Certificate { vcenter: target() }).await?;
    growth.faults.lift(&no_folder).await?;
    growth.restart().await?;
    growth.resume().await?;
    let failure = growth.stops("VCT-003", None).await?;
    assert!(failure.next.contains("spec.trust.caBundle"), "{failure:?}");

    let crashes = growth.faults.add(&Fault::MachineControllerCrashLoop).await?;
    growth.faults.lift(&certificate).await?;
    growth.resume().await?;
    let failure = growth.stops("POD-002", Some("machine-api")).await?;
    assert_eq!(failure.container.as_deref(), Some("machine-controller"));

    let killed = growth.faults.add(&Fault::CcmKilled).await?;
    growth.faults.lift(&crashes).await?;
    // A new pod is believed at once; the old one would have to run well for a while.
    growth.restart_pods(MACHINE_API, "machine-api-controllers").await?;
    growth.stops("POD-002", Some("cloud-controller-manager")).await?;
    // The manager asks a vCenter that has no machines only when it starts, and a new one starts while that is away.
    let unavailable = growth.faults.add(&Fault::Status { vcenter: target(), code: 503, calls: Calls::default() }).await?;
    growth.faults.lift(&killed).await?;
    growth.restart_pods("openshift-cloud-controller-manager", "vsphere-cloud-controller-manager").await?;
    let unreached = |vmi: &vmi_crds::VSphereMigrationInfra| {
        let step = vmi.step(StepName::PodsHealthy).filter(|step| step.state == StepState::Active)?;
        (!vmi.is_true("Held") && step.message.contains("EVD-003")).then_some(())
    };
    growth.until("a manager that has not reached the target", unreached).await?;
    growth.does_not_stop_for(Duration::from_secs(60)).await?;
    growth.faults.lift(&unavailable).await?;
    let (site, before, operator) = growth.completed().await?;
    let vmi = request::get(&site).await?;
    let log = vmi.step(StepName::PodsHealthy).map(|step| step.log.clone()).unwrap_or_default();
    let again = |line: &&String| line.contains("delete pod openshift-cloud-controller-manager/") && line.contains(" once more: ");
    assert_eq!(log.iter().filter(again).count(), 2, "each pod of the manager is asked once more, and that is told: {log:#?}");
    let checks = verdict::growth(&site, &before).await?;
    operator.stop().await;
    passed(&checks)
}
