//! What changed between two looks, a line each: for pipes, files and the logs of pipelines.

use super::text;
use super::view::{StepView, View};
use vmi_crds::status::StepState;

/// Everything that is news, in the order of the steps. At the first look that is all that is not simply waiting.
pub(super) fn changes(before: Option<&View>, after: &View) -> Vec<String> {
    let mut lines = Vec::new();
    if before.is_none_or(|before| (before.assessment, before.state) != (after.assessment, after.state)) {
        lines.push(text::header(after));
    }
    for step in &after.steps {
        let news = match before.and_then(|before| before.steps.iter().find(|known| known.name == step.name)) {
            Some(known) => (known.state, &known.message) != (step.state, &step.message),
            None => step.state != StepState::Waiting,
        };
        if news {
            lines.push(format!("{}/{}: {}", after.namespace, after.name, step_line(step)));
        }
    }
    if let Some(failure) = &after.failure
        && before.and_then(|before| before.failure.as_ref()) != Some(failure)
    {
        let what = &failure.what;
        lines.push(format!("{}/{}: failure {}: {}; next: {}", after.namespace, after.name, what.rule, what.message, what.next));
    }
    lines
}

fn step_line(step: &StepView) -> String {
    let over = matches!(step.state, StepState::Done | StepState::Failed | StepState::Undone);
    let time = step.seconds.filter(|_| over).map(|seconds| format!(" after {}", text::duration(seconds))).unwrap_or_default();
    let message = if step.message.is_empty() { String::new() } else { format!(": {}", step.message) };
    format!("{} {} {:?}{time}{message}", step.number, step.name, step.state)
}
