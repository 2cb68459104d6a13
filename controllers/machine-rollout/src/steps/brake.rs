//! The brake of step 12: while the migration is paused, or held on its way forward, the control plane machine set replaces no machine.

use kube::api::DynamicObject;
use serde_json::json;
use vmi_crds::VSphereMigrationInfra;
use vmi_crds::graph::StepName;
use vmi_crds::spec::State;
use vmi_crds::status::StepState;
use vmi_crds::turn::{rolling_back, turn};
use vmi_kit::Stop;
use vmi_steps::{Migration, Report, Writer};

use super::control_plane::{OBJECT, replace, set};

const NAME: StepName = StepName::ControlPlaneReady;
const CANNOT: &str = "cannot brake";

/// Whether the set is at work and has to stop. Nothing holds the way back: it is what makes a cluster well again that is held.
fn is_to_stop(vmi: &VSphereMigrationInfra, step: StepState, set: &DynamicObject) -> bool {
    let stops = vmi.spec.state == State::Paused || (vmi.is_true("Held") && !rolling_back(vmi));
    let spec = &set.data["spec"];
    let rolls = set.metadata.deletion_timestamp.is_none() && spec["state"] == "Active" && spec["strategy"]["type"] != "OnDelete";
    matches!(step, StepState::Active | StepState::Failed) && stops && rolls
}

/// The brake is level: it looks at what is, each time.
pub async fn brake(m: &Migration, report: &mut Report) -> Result<(), Stop> {
    let step = report.step(NAME).state;
    let Some(set) = set(m).filter(|set| is_to_stop(&m.vmi, step, set)) else {
        braked(report);
        return Ok(());
    };
    let mut writer = Writer::new(m, NAME, turn(&m.vmi, NAME));
    let words = format!("{OBJECT}: strategy OnDelete, so that no machine is replaced meanwhile");
    let outcome = replace(set, "/spec/strategy", &json!({"type": "OnDelete"}), words).make(&mut writer).await;
    for line in writer.done() {
        report.log(NAME, line);
    }
    match &outcome {
        Ok(()) => braked(report),
        // The vmi has changed meanwhile, and is looked at again.
        Err(Stop::Fenced(_)) => {}
        Err(why) => told(&m.vmi, report, why),
    }
    outcome
}

/// Nobody comes as far as the steps meanwhile, so it is said here: whoever paused believes that nothing moves.
fn told(vmi: &VSphereMigrationInfra, report: &mut Report, why: &Stop) {
    let next = match why {
        Stop::Failed(failure) | Stop::Refused(_, failure) => format!("; {}", failure.next),
        Stop::Again(_) | Stop::Fenced(_) => String::new(),
    };
    let message = format!("{CANNOT}: {why}{next}; its machines are replaced meanwhile; it is tried again");
    report.step(NAME).message = vmi_kit::text::cut(&message, 1024);
    let stopped = if vmi.spec.state == State::Paused { "Paused" } else { "Held" };
    let reason = report.step(NAME).failure.as_ref().map_or(stopped.to_owned(), |failure| failure.rule.clone());
    report.condition(NAME.as_str(), "False", &reason, &message);
}

/// A step that failed is looked at in silence: it says again why it failed. Any other has words of its own with the next look.
fn braked(report: &mut Report) {
    if !report.step(NAME).message.starts_with(CANNOT) {
        return;
    }
    if let Some(failure) = report.step(NAME).failure.clone() {
        let message = format!("{}; {}", failure.message, failure.next);
        report.step(NAME).message = vmi_kit::text::cut(&message, 1024);
        report.condition(NAME.as_str(), "False", &failure.rule, &message);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends by panicking")]

    use vmi_crds::graph::Controller;
    use vmi_kit::failure;

    use super::*;

    fn vmi(state: &str, held: &str, turned: bool) -> VSphereMigrationInfra {
        let then = "2026-01-02T03:04:05Z";
        let held = json!({"type": "Held", "status": held, "reason": "r", "message": "m", "lastTransitionTime": then});
        let vmi = json!({"apiVersion": "config.openshift.io/v1alpha1", "kind": "VSphereMigrationInfra", "metadata": {"name": "m"},
            "spec": {"state": state, "credentialsSecret": {"name": "s"}, "vcenters": [], "failureDomains": []},
            "status": {"startedAt": then, "rollingBackAt": turned.then_some(then), "conditions": [held]}});
        serde_json::from_value(vmi).unwrap()
    }

    fn machine_set(state: &str, strategy: &str) -> DynamicObject {
        serde_json::from_value(json!({"metadata": {"name": "cluster"}, "spec": {"state": state, "strategy": {"type": strategy}}})).unwrap()
    }

    #[test]
    fn a_pause_brakes_either_way_and_an_unwell_cluster_only_the_way_forward() {
        for (state, held, turned, stops) in [
            ("Running", "False", false, false),
            ("Running", "True", false, true),
            // It is asked for, and nobody has noted yet since when.
            ("RollingBack", "True", false, false),
            ("RollingBack", "True", true, false),
            ("Paused", "False", false, true),
            ("Paused", "True", true, true),
        ] {
            let stopped = is_to_stop(&vmi(state, held, turned), StepState::Active, &machine_set("Active", "RollingUpdate"));
            assert_eq!(stopped, stops, "{state}, Held is {held}, going back: {turned}");
        }
    }

    #[test]
    fn only_a_set_that_this_step_has_set_in_motion_is_braked() {
        for (step, state, strategy, stops) in [
            (StepState::Failed, "Active", "RollingUpdate", true),
            (StepState::Done, "Active", "RollingUpdate", false),
            (StepState::Active, "Inactive", "RollingUpdate", false),
            (StepState::Active, "Active", "OnDelete", false),
        ] {
            let stopped = is_to_stop(&vmi("Paused", "False", false), step, &machine_set(state, strategy));
            assert_eq!(stopped, stops, "{step:?} {state} {strategy}");
        }
    }

    #[test]
    fn what_keeps_the_brake_is_told_until_it_holds() {
        let mut vmi = vmi("Paused", "False", false);
        let mut report = Report::of(&vmi, Controller::MachineRollout, &[]);
        report.step(NAME).state = StepState::Active;
        told(&vmi, &mut report, &failure("API-403", "not allowed to patch it", "apply deploy/overlays again").into());
        let message =
            "cannot brake: not allowed to patch it; apply deploy/overlays again; its machines are replaced meanwhile; it is tried again";
        assert_eq!((report.message(NAME.as_str()), report.reason(NAME.as_str())), (Some(message), Some("Paused")));
        assert_eq!(report.step(NAME).message, message);
        // One that has failed is not told anew by whoever looks at it.
        vmi.spec.state = State::Running;
        report.step(NAME).failure = Some(failure("ROL-002", "Machine m has failed", "delete it"));
        told(&vmi, &mut report, &Stop::again("somebody else changed it meanwhile"));
        assert_eq!(report.reason(NAME.as_str()), Some("ROL-002"));
        braked(&mut report);
        assert_eq!(report.message(NAME.as_str()), Some("Machine m has failed; delete it"));
    }
}
