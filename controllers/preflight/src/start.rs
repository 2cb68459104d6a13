//! Whether the migration starts now, and if not, what it waits for.

use vmi_crds::spec::{Approval, State};

/// What it depends on.
pub struct Question<'a> {
    /// What the operator shall do.
    pub state: State,
    /// Whether the vmi was deleted: then it only has to go.
    pub deleted: bool,
    /// Checks that keep the migration from starting, each with its words.
    pub blocking: &'a [String],
    /// Steps that are not planned yet.
    pub unplanned: &'a [String],
    /// Whether the plan has to be approved.
    pub approval: Approval,
    /// The plan that is.
    pub approved: Option<&'a str>,
    /// The plan as it is now.
    pub hash: &'a str,
    /// What changed since the approved plan.
    pub drift: &'a [String],
    /// Where the whole plan can be read.
    pub plan: &'a str,
}

/// Whether the migration starts now.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All but the Lease is there.
    Start,
    /// Not yet.
    Not {
        /// The condition's reason.
        reason: &'static str,
        /// What or whom it waits for.
        message: String,
    },
}

/// Decides.
pub fn decide(question: &Question<'_>) -> Verdict {
    let Question { hash, plan, .. } = question;
    let not = |reason: &'static str, message: String| Verdict::Not { reason, message };
    if question.deleted {
        return not("Deleted", "the vmi was deleted before it started, nothing was changed".to_owned());
    }
    if !question.blocking.is_empty() {
        let count = match question.blocking.len() {
            1 => "1 check blocks".to_owned(),
            count => format!("{count} checks block"),
        };
        return not("Blocked", format!("{count}, nothing was changed: {}", question.blocking.join("; ")));
    }
    if !question.unplanned.is_empty() {
        return not("ChecksRunning", format!("every check passed; waits until these steps are planned: {}", question.unplanned.join(", ")));
    }
    let manual = question.approval == Approval::Manual;
    let approved = !manual || question.approved == Some(hash);
    match question.state {
        State::Running if approved => Verdict::Start,
        State::Running => not("AwaitingApproval", awaiting(question)),
        State::Paused => not("Paused", format!("every check passed; paused before the start, plan {hash} in {plan}")),
        _ if !approved => {
            let message =
                format!("every check passed; to start set spec.state to Running and spec.approvedPlan to {hash}, which stands for {plan}");
            not("NotStarted", message)
        }
        _ => not("NotStarted", format!("every check passed; to start plan {hash} in {plan} set spec.state to Running")),
    }
}

fn awaiting(question: &Question<'_>) -> String {
    let Question { hash, plan, drift, .. } = question;
    let Some(approved) = question.approved else {
        return format!("every check passed; waits for approval: read {plan}, then set spec.approvedPlan to {hash}");
    };
    let changed = if drift.is_empty() { "what that one said is not known here".to_owned() } else { drift.join("; ") };
    format!(
        "waits for approval: the plan is {hash}, approved is {approved}; the difference: {changed}; read {plan}, then set spec.approvedPlan to {hash}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(question: &Question<'_>) -> (&'static str, String) {
        match decide(question) {
            Verdict::Start => ("Start", String::new()),
            Verdict::Not { reason, message } => (reason, message),
        }
    }

    const READY: Question<'_> = Question {
        state: State::Running,
        deleted: false,
        blocking: &[],
        unplanned: &[],
        approval: Approval::Automatic,
        approved: None,
        hash: "0123456789abcdef",
        drift: &[],
        plan: "ConfigMap vmi-m-plan",
    };

    #[test]
    fn a_migration_starts_only_when_running_planned_approved_and_nothing_blocks() {
        let blocking = ["TOP-003: no such datastore".to_owned()];
        let unplanned = ["TagsAttached (vcenter-prep)".to_owned()];
        for (question, want, words) in [
            (Question { ..READY }, "Start", ""),
            (Question { deleted: true, ..READY }, "Deleted", "nothing was changed"),
            (Question { state: State::Pending, ..READY }, "NotStarted", "set spec.state to Running"),
            (Question { state: State::Paused, ..READY }, "Paused", "paused before the start"),
            (Question { state: State::RollingBack, ..READY }, "NotStarted", ""),
            (Question { blocking: &blocking, ..READY }, "Blocked", "TOP-003: no such datastore"),
            (Question { blocking: &blocking, state: State::Pending, ..READY }, "Blocked", "nothing was changed"),
            (Question { unplanned: &unplanned, ..READY }, "ChecksRunning", "TagsAttached (vcenter-prep)"),
            (Question { approval: Approval::Manual, ..READY }, "AwaitingApproval", "set spec.approvedPlan to 0123456789abcdef"),
            (Question { approval: Approval::Manual, approved: Some("0123456789abcdef"), ..READY }, "Start", ""),
            (Question { approval: Approval::Manual, approved: Some("ffff"), ..READY }, "AwaitingApproval", "is not known here"),
            (
                Question { approval: Approval::Manual, approved: Some("ffff"), drift: &["+ 6 x: y".to_owned()], ..READY },
                "AwaitingApproval",
                "+ 6 x: y",
            ),
            (
                Question { approval: Approval::Manual, state: State::Pending, ..READY },
                "NotStarted",
                "spec.approvedPlan to 0123456789abcdef",
            ),
        ] {
            let (found, message) = reason(&question);
            assert_eq!(found, want, "{message}");
            assert!(message.contains(words), "{message}");
        }
    }
}
