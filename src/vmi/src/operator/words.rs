//! A migration in words.

use vmi_crds::VSphereMigrationInfra;
use vmi_crds::graph::{Controller, STEPS, Step, StepName, Undo};
use vmi_crds::status::{Failure, StepState};
use vmi_crds::turn::{rolling_back, undone};
use vmi_steps::drift;

/// The step at hand, how many are done, and of how many.
pub fn progress(vmi: &VSphereMigrationInfra) -> (String, usize, usize) {
    let steps: Vec<&Step> = vmi.request().steps().collect();
    let shown = |step: Option<&&Step>, end: &str| step.map_or_else(|| end.to_owned(), |step| format!("{} {}", step.number, step.name));
    if rolling_back(vmi) {
        let mut begun: Vec<&Step> = steps.iter().copied().filter(|step| step.name.undo_rank().is_some() && vmi.begun(step.name)).collect();
        begun.sort_by_key(|step| step.name.undo_rank());
        let done = begun.iter().filter(|step| undone(vmi, step.name)).count();
        return (shown(begun.iter().find(|step| !undone(vmi, step.name)), "all undone"), done, begun.len());
    }
    let taken = |step: &&&Step| vmi.step_state(step.name) == StepState::Done || vmi.is_true(step.name.as_str());
    let done = steps.iter().filter(taken).count();
    (shown(steps.iter().find(|step| !taken(step)), "all done"), done, steps.len())
}

/// The failure of the first step that failed.
pub fn first_failure(vmi: &VSphereMigrationInfra) -> Option<&Failure> {
    let failed = |step: &&Step| vmi.step_state(step.name) == StepState::Failed;
    STEPS.iter().find(failed).and_then(|step| vmi.step(step.name)?.failure.as_ref())
}

/// The condition Degraded: a step has failed, or else one that is done does not stand as it was left.
pub fn degraded(vmi: &VSphereMigrationInfra) -> (&'static str, String, String) {
    if let Some(failure) = first_failure(vmi) {
        return ("True", failure.rule.clone(), format!("{}; {}", failure.message, failure.next));
    }
    let drifted = STEPS.iter().find_map(|step| {
        let condition = vmi.condition(step.name.as_str())?;
        (condition.status == "True" && condition.reason == drift::REASON).then(|| format!("{}: {}", step.name, condition.message))
    });
    match drifted {
        Some(message) => ("True", drift::REASON.to_owned(), message),
        None => ("False", "AsExpected".to_owned(), "no step has failed".to_owned()),
    }
}

/// What an abandoned migration leaves: what it holds with the commands that release it, then what it made.
pub fn left_behind(vmi: &VSphereMigrationInfra, by_hand: impl Fn(StepName) -> Vec<String>) -> String {
    let stands = |step: &&Step| vmi.begun(step.name) && vmi.step_state(step.name) != StepState::Undone;
    let (mut holds, mut made) = (Vec::new(), Vec::new());
    for step in vmi.request().steps().filter(stands) {
        match step.undo {
            Undo::By(_) if step.controller == Controller::ClusterFreeze => {
                holds.extend(by_hand(step.name).into_iter().map(|command| format!("{} {command}", step.number)));
            }
            Undo::By(_) => made.push(format!("{} {}", step.number, step.name)),
            Undo::RunsAgain | Undo::Never(_) => {}
        }
    }
    let part = |title: &str, list: &[String]| if list.is_empty() { String::new() } else { format!("; {title}: {}", list.join("; ")) };
    if holds.is_empty() && made.is_empty() {
        return "abandoned; nothing was left changed".to_owned();
    }
    // The cluster version operator stands first, since a message has an end, and is let go last, since it puts right what is left.
    let held = part("still held, released with (1 last)", &holds);
    format!("abandoned{held}{}", part("left standing (vmi graph tells how to undo it)", &made))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn vmi(steps: &[(StepName, &str)], conditions: &Value) -> VSphereMigrationInfra {
        let step = |(name, state): &(StepName, &str)| {
            let failure =
                json!({"rule": "API-422", "message": "refused", "next": "mend it", "look": [], "clusterState": "", "safeToStop": true});
            let row = name.step();
            json!({"name": name.as_str(), "number": row.number, "controller": row.controller.as_str(), "state": state,
                "failure": if *state == "Failed" { failure } else { Value::Null }})
        };
        let mut vmi: Value = serde_saphyr::from_str(include_str!("../../golden/status/new.yaml")).unwrap();
        vmi["spec"]["sourceRetirement"] = json!("Keep");
        vmi["status"] =
            json!({"startedAt": "2026-01-02T03:04:05Z", "steps": steps.iter().map(step).collect::<Vec<_>>(), "conditions": conditions});
        serde_json::from_value(vmi).unwrap()
    }

    #[test]
    fn a_drift_degrades_a_migration_that_goes_on_and_a_failure_says_more() {
        let drifted = json!([{"type": "InfrastructureExtended", "status": "True", "reason": "Drifted", "message": "it is gone; put it back",
            "lastTransitionTime": "2026-01-02T03:04:05Z"}]);
        let done = (StepName::InfrastructureExtended, "Done");
        let degraded = |steps: &[(StepName, &str)], conditions: &Value| {
            let (status, reason, message) = super::degraded(&vmi(steps, conditions));
            (status, reason, message)
        };
        assert_eq!(degraded(&[done], &json!([])).0, "False");
        let told = ("True", "Drifted".to_owned(), "InfrastructureExtended: it is gone; put it back".to_owned());
        assert_eq!(degraded(&[done], &drifted), told);
        let failed = (StepName::PodsHealthy, "Failed");
        assert_eq!(degraded(&[done, failed], &drifted), ("True", "API-422".to_owned(), "refused; mend it".to_owned()));
    }

    #[test]
    fn what_is_held_is_left_with_its_commands_and_what_was_made_with_its_name() {
        use StepName::{ClusterVersionFrozen, ControlPlaneSetSaved, CredentialsAdded, FolderCreated, InfrastructureUnlocked, TagsAttached};
        let by_hand = |step: StepName| match step {
            ClusterVersionFrozen => vec!["oc scale".to_owned()],
            ControlPlaneSetSaved => vec!["oc annotate".to_owned(), "oc patch".to_owned()],
            // On the native path nothing is taken out.
            _ => Vec::new(),
        };
        let done = [ClusterVersionFrozen, InfrastructureUnlocked, ControlPlaneSetSaved, CredentialsAdded].map(|step| (step, "Done"));
        let steps = [&done[..], &[(TagsAttached, "Undone"), (FolderCreated, "Waiting")]].concat();
        assert_eq!(
            left_behind(&vmi(&steps, &json!([])), by_hand),
            "abandoned; still held, released with (1 last): 1 oc scale; 3 oc annotate; 3 oc patch; \
             left standing (vmi graph tells how to undo it): 4 CredentialsAdded"
        );
        let undone = done.map(|(step, _)| (step, "Undone"));
        assert_eq!(left_behind(&vmi(&undone, &json!([])), by_hand), "abandoned; nothing was left changed");
    }
}
