//! Holds still whatever would work against the migration, and lets it go again exactly as it was.
//!
//! Consumes: PreflightPassed and status.plan.path; for the thaw the last step asked for and status.oneWayAt.
//! Produces: ClusterVersionFrozen, InfrastructureUnlocked, ControlPlaneSetSaved, ClusterThawed.
//! Touches: [`ClusterFreeze::TOUCHES`]. The cluster version operator, ClusterVersion and the two CRDs are written on the legacy path only.
//! Undo: each hold is released by what was saved of it; what somebody else changed meanwhile is left and told.
//! Gives up when: there is no cluster version operator to hold (FRZ-002), the addition is refused for another reason than the rules
//! (FRZ-003), what was saved is lost or cannot be read (FRZ-004, FRZ-005); a hold that others take away is FRZ-001.

pub mod by_hand;
mod control_plane_set;
mod held;
mod ledger;
mod machines;
mod rules;
mod steps;

use vmi_crds::graph::StepName;
use vmi_crds::status::StepState;
use vmi_kit::kind::{
    CLUSTER_AUTOSCALER, CLUSTER_VERSION, CONTROL_PLANE_MACHINE_SET, CONTROLLER_CONFIG, CRD, DEPLOYMENT, INFRASTRUCTURE, MACHINE,
    MACHINE_CONFIG_POOL, MACHINE_CONFIGURATION, MACHINE_HEALTH_CHECK, POD, SECRET,
};
use vmi_kit::{OWN, Stop, Touch, reads};
use vmi_site::followers;
use vmi_steps::step::sooner;
use vmi_steps::{Controller, Migration, Report, Wake, take};

use steps::control_plane_set_saved::{self, ControlPlaneSetSaved};
use steps::frozen::{self, ClusterVersionFrozen};
use steps::thawed::ClusterThawed;
use steps::unlocked::InfrastructureUnlocked;

/// The controller of steps 1, 2, 3 and 15.
pub struct ClusterFreeze;

const HOLDS: [StepName; 3] = [StepName::ClusterVersionFrozen, StepName::InfrastructureUnlocked, StepName::ControlPlaneSetSaved];

impl Controller for ClusterFreeze {
    const NAME: vmi_crds::graph::Controller = vmi_crds::graph::Controller::ClusterFreeze;
    const TOUCHES: &'static [Touch] = &[
        reads(SECRET).within(OWN).writes(&["create", "patch"]),
        reads(DEPLOYMENT).within(frozen::NAMESPACE).named(frozen::NAME).writes(&["patch"]),
        reads(POD).within(frozen::NAMESPACE),
        reads(CLUSTER_VERSION).named("version").writes(&["patch"]),
        reads(CRD).named(rules::LOCKED[0].0).writes(&["patch"]),
        reads(CRD).named(rules::LOCKED[1].0).writes(&["patch"]),
        // Written in dry runs only.
        reads(INFRASTRUCTURE).named("cluster").writes(&["update"]),
        reads(CONTROLLER_CONFIG).named(followers::CONTROLLER_CONFIG_NAME).writes(&["update"]),
        reads(CONTROL_PLANE_MACHINE_SET).within(control_plane_set_saved::NAMESPACE).writes(&["create", "patch", "delete"]),
        reads(MACHINE).within(control_plane_set_saved::NAMESPACE),
        reads(MACHINE_HEALTH_CHECK).within(control_plane_set_saved::NAMESPACE).writes(&["patch"]),
        reads(CLUSTER_AUTOSCALER).named("default").writes(&["patch"]),
        reads(MACHINE_CONFIGURATION).named("cluster").writes(&["patch"]),
        reads(MACHINE_CONFIG_POOL).writes(&["patch"]),
    ];

    async fn reconcile(&self, m: &Migration, report: &mut Report) -> Result<Wake, Stop> {
        // By what this process has reported, not by what its cache has seen of that.
        let begun = !matches!(report.step(StepName::ClusterThawed).state, StepState::Waiting | StepState::NotRequested);
        let thawing = begun && m.vmi.seen().one_way_at.is_some();
        let mut wake = take(&ClusterVersionFrozen { thawing }, m, report).await?;
        wake = sooner(wake, take(&InfrastructureUnlocked { thawing }, m, report).await?);
        wake = sooner(wake, take(&ControlPlaneSetSaved, m, report).await?);
        wake = sooner(wake, take(&ClusterThawed, m, report).await?);
        if report.condition_is(StepName::ClusterThawed.as_str(), "True") {
            for hold in HOLDS {
                released(hold, report);
            }
        }
        Ok(wake)
    }
}

/// Says that the hold is released, also of one that others had taken away meanwhile: nothing is left to be mended of that.
fn released(hold: StepName, report: &mut Report) {
    let message = "was held while the migration lasted and is released";
    report.condition(hold.as_str(), "False", "Thawed", message);
    let entry = report.step(hold);
    if entry.state != StepState::Done {
        entry.state = StepState::Done;
        entry.finished_at = Some(Report::now());
        message.clone_into(&mut entry.message);
    }
    entry.failure = None;
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends by panicking")]

    use serde_json::json;
    use vmi_crds::VSphereMigrationInfra;
    use vmi_kit::failure;

    use super::*;

    #[test]
    fn a_hold_that_was_taken_away_fails_no_more_once_everything_is_released() {
        let vmi: VSphereMigrationInfra = serde_json::from_value(json!({
            "apiVersion": "config.openshift.io/v1alpha1", "kind": "VSphereMigrationInfra", "metadata": {"name": "m"},
            "spec": {"vcenters": [], "failureDomains": [], "credentialsSecret": {"name": "x"}, "sourceRetirement": "Keep"},
        }))
        .unwrap();
        let mut report = Report::of(&vmi, ClusterFreeze::NAME, &[]);
        let entry = report.step(StepName::ClusterVersionFrozen);
        entry.state = StepState::Failed;
        entry.failure = Some(failure("FRZ-001", "somebody scaled it up", "find out who"));
        "somebody scaled it up".clone_into(&mut entry.message);
        released(StepName::ClusterVersionFrozen, &mut report);
        let entry = report.step(StepName::ClusterVersionFrozen);
        assert_eq!((entry.state, entry.failure.is_none()), (StepState::Done, true));
        assert!(!entry.message.contains("scaled it up"), "{}", entry.message);
        assert_eq!(report.reason(StepName::ClusterVersionFrozen.as_str()), Some("Thawed"));
    }
}
