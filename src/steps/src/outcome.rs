//! What is said of a step: that it began, what it does, how it ended, and that it is stuck.

use jiff::Timestamp;
use vmi_crds::VSphereMigrationInfra;
use vmi_crds::graph::StepName;
use vmi_crds::status::{Failure, RefusedCredentials, StepState};
use vmi_crds::turn::{Turn, rolling_back};
use vmi_kit::failure::{Stop, failure};

use crate::migration::Migration;
use crate::report::Report;
use crate::step::{Step, Wake};

pub(crate) fn begin(m: &Migration, report: &mut Report, name: StepName, direction: &Turn) {
    let undoing = *direction == Turn::Back;
    let already = report.reason(name.as_str()) == Some("Undoing");
    let entry = report.step(name);
    let fresh = entry.state != StepState::Active || entry.started_at.is_none() || (undoing && !already);
    if fresh {
        entry.state = StepState::Active;
        entry.attempts += 1;
        entry.started_at = Some(Report::now());
        entry.finished_at = None;
        entry.failure = None;
        if undoing {
            entry.changes.clear();
        } else if entry.attempts == 1
            && let Some(waited) = handed_over(m, name)
        {
            m.cx.metrics.handover.observe(waited.as_secs_f64());
        }
    }
}

/// How long ago the last of another controller's steps that this one waits for was done.
fn handed_over(m: &Migration, name: StepName) -> Option<jiff::SignedDuration> {
    let others = name.step().waits_for.iter().filter(|before| before.step().controller != name.step().controller);
    let opened = others.filter_map(|before| Some(m.vmi.step(*before)?.finished_at.as_ref()?.0)).max()?;
    Some(Timestamp::now().duration_since(opened).max(jiff::SignedDuration::ZERO))
}

pub(crate) fn working(report: &mut Report, name: StepName, direction: &Turn, message: &str) {
    report.step(name).message = vmi_kit::text::cut(message, 1024);
    let reason = if *direction == Turn::Back { "Undoing" } else { "InProgress" };
    report.condition(name.as_str(), "False", reason, message);
}

pub(crate) fn finish(m: &Migration, report: &mut Report, name: StepName, reason: &str, message: &str) {
    let entry = report.step(name);
    entry.state = StepState::Done;
    entry.finished_at = Some(Report::now());
    entry.message = vmi_kit::text::cut(message, 1024);
    entry.failure = None;
    report.condition(name.as_str(), "True", reason, message);
    m.cx.event(&m.vmi, name, reason, message, false);
}

pub(crate) fn undone(m: &Migration, report: &mut Report, name: StepName, reason: &str, message: &str) {
    let entry = report.step(name);
    entry.state = StepState::Undone;
    entry.finished_at = Some(Report::now());
    entry.message = vmi_kit::text::cut(message, 1024);
    entry.failure = None;
    report.condition(name.as_str(), "False", reason, message);
    m.cx.event(&m.vmi, name, reason, message, false);
}

/// A way back that is paused cannot be turned round: what is resumed there is the way back.
fn resumed_as(vmi: &VSphereMigrationInfra, next: &str) -> String {
    if rolling_back(vmi) { next.replace("to Paused and to Running again", "to Paused and to RollingBack again") } else { next.to_owned() }
}

pub(crate) fn fail(m: &Migration, report: &mut Report, name: StepName, reason: &str, mut found: Failure) {
    if found.cluster_state.is_empty() {
        let (state, safe) = vmi_crds::safety::cluster_state(&m.vmi);
        found.cluster_state = state;
        found.safe_to_stop = safe;
    }
    if found.look.is_empty() {
        found.look = vec![format!("oc -n {} describe vspheremigrationinfra.config.openshift.io {}", m.cx.namespace, m.name())];
    }
    found.next = resumed_as(&m.vmi, &found.next);
    let message = format!("{}; {}", found.message, found.next);
    let entry = report.step(name);
    let known = entry.failure.as_ref() == Some(&found) && entry.state == StepState::Failed;
    entry.state = StepState::Failed;
    entry.message = vmi_kit::text::cut(&message, 1024);
    entry.failure = Some(found);
    report.condition(name.as_str(), "False", reason, &message);
    if !known {
        report.log(name, &message);
        tracing::error!(step = %name, vmi = m.name(), rule = reason, "{message}");
        m.cx.event(&m.vmi, name, reason, &message, true);
    }
}

/// Keeps credentials that a vCenter refused, so that nobody tries them again; in the vmi before anything else is written, for this
/// process may be the last to know.
pub async fn remember(m: &Migration, report: &mut Report, name: StepName, credentials: RefusedCredentials) -> Result<(), Stop> {
    let refused = &mut report.step(name).refused_credentials;
    if refused.contains(&credentials) {
        return Ok(());
    }
    refused.push(credentials);
    let surplus = refused.len().saturating_sub(16);
    refused.drain(..surplus);
    report.apply(&m.cx).await
}

/// Says that a step is stuck once its time is up, and until then when that will be.
pub(crate) fn deadline<S: Step>(step: &S, m: &Migration, report: &mut Report, waits_for: &str) -> Wake {
    let name = S::NAME;
    let began = report.step(name).started_at.as_ref().map(|time| time.0)?;
    let allowed = step.deadline(m);
    let end = began.checked_add(jiff::SignedDuration::try_from(allowed).ok()?).ok()?;
    if Timestamp::now() < end {
        return Some(end);
    }
    let text = format!("not done after {} minutes: {waits_for}", allowed.as_secs() / 60);
    let found = failure("STL-001", text, "mend what it waits for, then set spec.state to Paused and to Running again");
    fail(m, report, name, "STL-001", vmi_kit::failure::look(found, step.stuck(m)));
    None
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn vmi(state: &str, turned: &Value) -> VSphereMigrationInfra {
        let vmi = json!({"apiVersion": "config.openshift.io/v1alpha1", "kind": "VSphereMigrationInfra", "metadata": {"name": "m"},
            "spec": {"state": state, "credentialsSecret": {"name": "s"}, "vcenters": [], "failureDomains": []},
            "status": {"startedAt": "2026-01-02T03:04:05Z", "rollingBackAt": turned}});
        serde_json::from_value(vmi).unwrap()
    }

    #[test]
    fn on_the_way_back_nobody_is_told_to_set_a_state_that_is_refused_there() {
        let (next, then) = ("mend it, then set spec.state to Paused and to Running again to go on", json!("2026-01-02T03:04:06Z"));
        assert_eq!(resumed_as(&vmi("Running", &Value::Null), next), next);
        for back in [vmi("RollingBack", &Value::Null), vmi("RollingBack", &then), vmi("Paused", &then)] {
            assert_eq!(resumed_as(&back, next), "mend it, then set spec.state to Paused and to RollingBack again to go on");
        }
    }
}
