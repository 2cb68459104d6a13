//! What others have made of a step that is done. It is shown and never put right: whoever changed it may have had a reason.

use vmi_crds::VSphereMigrationInfra;
use vmi_crds::graph::StepName;
use vmi_crds::spec::{SourceRetirement, State};
use vmi_crds::turn::rolling_back;
use vmi_kit::text::cut;

use crate::migration::Migration;
use crate::report::Report;
use crate::step::Step;

/// The reason of a condition that is True although what it stands for has been changed since.
pub const REASON: &str = "Drifted";
/// How much of what differs is told, so that what to do about it is told too.
const TOLD: usize = 700;

/// Whether anybody still looks at what a step that is done left behind: until the migration itself takes those objects over, behind
/// the door without return or on the way back.
pub fn is_looked_for(vmi: &VSphereMigrationInfra) -> bool {
    let taken_over = match vmi.spec.source_retirement {
        SourceRetirement::Remove => vmi.seen().one_way_at.is_some(),
        // Nothing else takes them over: they stay when the last hold is released.
        SourceRetirement::Keep => vmi.is_true(StepName::ClusterThawed.as_str()),
    };
    !taken_over && !rolling_back(vmi) && !vmi.over() && vmi.spec.state != State::Abandoned
}

/// Says of a step that is done whether it still stands as it was left. Its own message stays in the step's history meanwhile.
pub(crate) fn look<S: Step>(step: &S, m: &Migration, report: &mut Report) {
    let name = S::NAME;
    if !report.condition_is(name.as_str(), "True") {
        return;
    }
    let looked_for = is_looked_for(&m.vmi);
    let shown = report.reason(name.as_str()) == Some(REASON);
    let found = if looked_for { step.drifted(m) } else { None };
    match found {
        Some(what) => {
            let message = told(&m.vmi, &what);
            let known = shown && report.message(name.as_str()) == Some(message.as_str());
            report.condition(name.as_str(), "True", REASON, &message);
            if !known {
                report.log(name, &what);
                tracing::warn!(step = %name, vmi = m.name(), "{message}");
                m.cx.event(&m.vmi, name, REASON, &message, true);
            }
        }
        None if shown => {
            let (reason, message) = (step.ended(m), report.step(name).message.clone());
            report.condition(name.as_str(), "True", reason, &message);
            if looked_for {
                report.log(name, "it stands again as it was left");
                m.cx.event(&m.vmi, name, reason, &message, false);
            }
        }
        None => {}
    }
}

/// What differs, and what to do about it.
fn told(vmi: &VSphereMigrationInfra, what: &str) -> String {
    let back = if vmi.seen().one_way_at.is_none() { ", or set spec.state to RollingBack" } else { "" };
    format!("{}; the operator leaves it so and the migration goes on: put it back by hand{back}", cut(what, TOLD))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn vmi(spec: &Value, status: &Value) -> VSphereMigrationInfra {
        let mut all = json!({"state": "Running", "credentialsSecret": {"name": "s"}, "vcenters": [], "failureDomains": []});
        all.as_object_mut().unwrap().extend(spec.as_object().cloned().unwrap());
        let mut seen = json!({"startedAt": "2026-01-02T03:04:05Z"});
        seen.as_object_mut().unwrap().extend(status.as_object().cloned().unwrap());
        let vmi = json!({"apiVersion": "config.openshift.io/v1alpha1", "kind": "VSphereMigrationInfra",
            "metadata": {"name": "m"}, "spec": all, "status": seen});
        serde_json::from_value(vmi).unwrap()
    }

    #[test]
    fn a_finished_step_is_looked_after_until_the_migration_takes_its_objects_over() {
        let done = |name: &str| {
            let condition =
                json!({"type": name, "status": "True", "reason": "Done", "message": "m", "lastTransitionTime": "2026-01-02T03:04:05Z"});
            json!({"conditions": [condition]})
        };
        let (keep, remove) = (json!({"sourceRetirement": "Keep"}), json!({"sourceRetirement": "Remove"}));
        let door = json!({"oneWayAt": "2026-01-02T03:04:05Z"});
        let turned = json!({"rollingBackAt": "2026-01-02T03:04:05Z"});
        let in_state = |state: &str| json!({"sourceRetirement": "Keep", "state": state});
        for (what, spec, status, wanted) in [
            ("a growth runs", &keep, json!({}), true),
            ("a move runs", &remove, json!({}), true),
            ("a pause stops acts, not observation", &in_state("Paused"), json!({}), true),
            ("behind a move's door the source leaves the same objects", &remove, door.clone(), false),
            ("a growth's thaw writes none of them", &keep, door, true),
            ("when it has ended nobody looks any more", &keep, done("ClusterThawed"), false),
            ("on the way back they are taken over", &in_state("RollingBack"), json!({}), false),
            ("also while that is paused", &in_state("Paused"), turned, false),
            ("it is over", &remove, done("Completed"), false),
            ("it is given up", &in_state("Abandoned"), json!({}), false),
        ] {
            assert_eq!(is_looked_for(&vmi(spec, &status)), wanted, "{what}");
        }
    }

    #[test]
    fn what_to_do_is_told_however_much_differs_and_the_way_back_only_where_there_is_one() {
        let much = "x".repeat(5000);
        let before = told(&vmi(&json!({}), &json!({})), &much);
        assert!(before.len() < 1024 && before.ends_with("or set spec.state to RollingBack"), "{before}");
        let behind = told(&vmi(&json!({}), &json!({"oneWayAt": "2026-01-02T03:04:05Z"})), "gone");
        assert!(behind.starts_with("gone; ") && behind.ends_with("put it back by hand"), "{behind}");
    }
}
