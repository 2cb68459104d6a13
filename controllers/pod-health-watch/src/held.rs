//! The condition Held: whether the cluster is well enough for the migration to go on.

use vmi_crds::graph::StepName;
use vmi_crds::status::{Failure, StepState};
use vmi_steps::{Migration, Report};

const HELD: &str = "Held";

/// On what ground it is said.
pub struct Known<'a> {
    /// Whether pods were replaced, so that there is something to judge.
    pub judged: bool,
    /// Whether some logs are not read to their end yet.
    pub unread: bool,
    /// What the user asks to look for and nobody can.
    pub unusable: &'a [String],
}

/// Says what holds the migration, if anything does, and explains it in the history of the step that watches.
/// While logs are still being read, as by a new process, nobody knows that what held the migration has passed.
pub fn tell(m: &Migration, report: &mut Report, known: &Known<'_>, troubles: &[Failure]) {
    let name = watching(m);
    let before = report.reason(HELD).unwrap_or_default().to_owned();
    let was_held = report.condition_is(HELD, "True");
    // One that is told already stays in front: several at once must not take turns.
    let trouble = troubles.iter().find(|trouble| was_held && trouble.rule == before).or_else(|| troubles.first());
    let entry = report.step(name);
    let failed = entry.state == StepState::Failed;
    let Some(trouble) = trouble else {
        if was_held && known.unread {
            return;
        }
        if !failed {
            entry.failure = None;
        }
        // By what this process said last: the vmi it looks at may be older than that.
        let (reason, message) = match before.as_str() {
            _ if was_held => ("Cleared", format!("{before} no longer holds the migration")),
            "Cleared" => ("Cleared", report.message(HELD).unwrap_or_default().to_owned()),
            _ => ("NothingWrong", nothing_wrong(known)),
        };
        report.condition(HELD, "False", reason, &message);
        if was_held {
            report.log(name, &message);
            m.cx.event(&m.vmi, name, reason, &message, false);
        }
        return;
    };
    let (cluster_state, safe_to_stop) = vmi_crds::safety::cluster_state(&m.vmi);
    let trouble = Failure { cluster_state, safe_to_stop, ..trouble.clone() };
    let message = format!("{}; {}", trouble.message, trouble.next);
    if !(was_held && before == trouble.rule) {
        tracing::error!(vmi = m.name(), rule = trouble.rule, line = trouble.line, "{message}");
        report.log(name, &message);
        m.cx.event(&m.vmi, name, &trouble.rule, &message, true);
    }
    report.condition(HELD, "True", &trouble.rule, &message);
    if !failed {
        report.step(name).failure = Some(trouble);
    }
}

fn nothing_wrong(known: &Known<'_>) -> String {
    let mut text = if known.judged { "nothing holds the migration" } else { "nothing is judged before pods are replaced" }.to_owned();
    for pattern in known.unusable {
        text.push_str("; ");
        text.push_str(pattern);
    }
    text
}

/// The last step that watches and has begun.
fn watching(m: &Migration) -> StepName {
    let steps = [StepName::PodsHealthyAfterRemoval, StepName::PodsHealthyAfterDetach];
    steps.into_iter().find(|name| m.vmi.begun(*name)).unwrap_or(StepName::PodsHealthy)
}
