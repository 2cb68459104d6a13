//! Follows a migration by a watch until it ends, or until it has come as far as somebody wants.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use vmi_crds::VSphereMigrationInfra;
use vmi_crds::graph::StepName;
use vmi_crds::status::StepState;

use super::request::NAME;
use super::view::View;
use super::{NAMESPACE, Site};
use crate::cache::{Cache, GaveUp};
use crate::kubernetes::VMI;

/// How often a live view is drawn again, so that its seconds count.
const REDRAW: Duration = Duration::from_secs(1);

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the vmi {NAMESPACE}/{NAME} is not what the CRD promises: {0}")]
    Unreadable(serde_json::Error),
    #[error("the plan blocks the start: {0}")]
    Blocked(String),
}

/// How a migration ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    Completed,
    RolledBack,
    Abandoned,
    /// A step failed and does not go on by itself: which, and why.
    Failed(String),
}

/// How the migration ended, if it has.
pub fn end(vmi: &VSphereMigrationInfra) -> Option<End> {
    for (condition, end) in [("Completed", End::Completed), ("RolledBack", End::RolledBack), ("Abandoned", End::Abandoned)] {
        if is_true(vmi, condition) {
            return Some(end);
        }
    }
    let failed = vmi.status.iter().flat_map(|status| &status.steps).find(|step| step.state == StepState::Failed)?;
    is_true(vmi, "Degraded").then(|| {
        let why = failed.failure.as_ref().map_or(failed.message.clone(), |failure| {
            let line = failure.line.as_ref().map_or(String::new(), |line| format!(": {line}"));
            format!("{} ({}){line}", failure.message, failure.rule)
        });
        End::Failed(format!("{} failed: {why}", failed.name))
    })
}

fn is_true(vmi: &VSphereMigrationInfra, condition: &str) -> bool {
    vmi.status.iter().flat_map(|status| &status.conditions).any(|entry| entry.type_ == condition && entry.status == "True")
}

/// How far a step is.
pub fn state(vmi: &VSphereMigrationInfra, step: StepName) -> StepState {
    let steps = vmi.status.iter().flat_map(|status| &status.steps);
    steps.into_iter().find(|status| status.name == step.as_str()).map_or(StepState::Waiting, |status| status.state)
}

/// Where the migration stands, for somebody who will not wait any longer.
fn standing(vmi: Option<&VSphereMigrationInfra>) -> String {
    let Some(vmi) = vmi else { return "there is no vmi".to_owned() };
    let steps: Vec<_> = vmi.status.iter().flat_map(|status| &status.steps).collect();
    let at_hand = [StepState::Failed, StepState::Active].iter().find_map(|state| steps.iter().find(|step| step.state == *state));
    let held = vmi.condition("Held").filter(|held| held.status == "True");
    let held = held.map_or_else(String::new, |held| format!("; held by {}: {}", held.reason, held.message));
    match at_hand.or(steps.iter().find(|step| step.state == StepState::Waiting)) {
        Some(step) => format!("step {} {} is {:?}: {}{held}", step.number, step.name, step.state, step.message),
        None => "no step was reported: is the operator running, and is it the leader?".to_owned(),
    }
}

/// The vmi of the rehearsal as a cache has it.
fn read(cache: &Cache) -> Result<Option<VSphereMigrationInfra>, Error> {
    let Some(object) = cache.get(VMI, NAMESPACE, NAME) else { return Ok(None) };
    serde_json::from_value(json!(*object)).map(Some).map_err(Error::Unreadable)
}

/// Shows the migration in `view` until `enough` has what it wants of it. Gives up after `deadline`, saying where it stands.
pub async fn follow<T>(
    site: &Site,
    view: &mut View,
    what: &str,
    deadline: Duration,
    mut enough: impl FnMut(&VSphereMigrationInfra) -> Option<T>,
) -> Result<T, super::Error> {
    let mut cache = Cache::start(&site.client, &[(VMI, NAMESPACE)]).await;
    let end = tokio::time::Instant::now() + deadline;
    loop {
        let vmi = read(&cache)?;
        if let Some(vmi) = &vmi {
            view.show(vmi, Timestamp::now());
            if let Some(found) = enough(vmi) {
                return Ok(found);
            }
        }
        let wake = if view.is_live() { end.min(tokio::time::Instant::now() + REDRAW) } else { end };
        let woken = tokio::time::timeout_at(wake, cache.changed()).await;
        if woken.is_err() && tokio::time::Instant::now() >= end {
            return Err(GaveUp { what: what.to_owned(), waited: deadline, missing: standing(vmi.as_ref()) }.into());
        }
    }
}

/// Steps that were taken more than once, which nobody wanted.
pub fn taken_again(vmi: &VSphereMigrationInfra) -> Vec<String> {
    let steps = vmi.status.iter().flat_map(|status| &status.steps);
    steps.filter(|step| step.attempts > 1).map(|step| format!("{} {} times", step.name, step.attempts)).collect()
}

/// Waits until the operator has planned what is asked for; fails where a check blocks it.
pub async fn planned(site: &Site, view: &mut View, deadline: Duration) -> Result<(), super::Error> {
    follow(site, view, "the plan", deadline, |vmi| {
        let plan = vmi.status.as_ref()?.plan.as_ref()?;
        match plan.blocking.is_empty() {
            false => Some(Err(Error::Blocked(plan.blocking.join(", ")))),
            true => plan.hash.as_ref().map(|_| Ok(())),
        }
    })
    .await??;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::view::tests::{step, vmi};
    use super::*;

    fn condition(name: &str) -> serde_json::Value {
        json!({"type": name, "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2026-01-02T03:04:05Z"})
    }

    #[test]
    fn a_migration_ends_when_its_summary_says_so() {
        assert_eq!(end(&vmi(&json!({}))), None);
        for (name, wanted) in [("Completed", End::Completed), ("RolledBack", End::RolledBack), ("Abandoned", End::Abandoned)] {
            assert_eq!(end(&vmi(&json!({"conditions": [condition(name)]}))), Some(wanted));
        }
    }

    #[test]
    fn a_failed_step_ends_it_only_together_with_degraded() {
        let mut failed = step("TagsAttached", "Failed", "no way");
        assert_eq!(end(&vmi(&json!({"steps": [failed]}))), None);
        assert_eq!(end(&vmi(&json!({"conditions": [condition("Degraded")]}))), None);
        let both = vmi(&json!({"conditions": [condition("Degraded")], "steps": [failed]}));
        assert_eq!(end(&both), Some(End::Failed("TagsAttached failed: no way".to_owned())));
        failed["failure"] = json!({"rule": "TAG-001", "message": "vCenter b refused", "clusterState": "", "safeToStop": true, "next": ""});
        let explained = vmi(&json!({"conditions": [condition("Degraded")], "steps": [failed]}));
        assert_eq!(end(&explained), Some(End::Failed("TagsAttached failed: vCenter b refused (TAG-001)".to_owned())));
    }

    #[test]
    fn who_gives_up_says_which_step_and_why() {
        assert_eq!(standing(None), "there is no vmi");
        let active =
            vmi(&json!({"steps": [step("PreflightPassed", "Done", ""), step("TagsAttached", "Active", "vCenter b does not answer")]}));
        assert_eq!(standing(Some(&active)), "step 1 TagsAttached is Active: vCenter b does not answer");
        assert!(standing(Some(&vmi(&json!({})))).contains("is the operator running"));
    }
}
