//! The status as text. Colour, where asked for, only repeats what the words say.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use vmi_crds::spec::SourceRetirement;
use vmi_crds::status::{CheckResult, Path, StepState};

use super::view::{FailureView, StepView, View};
use crate::table;

/// More of a message would make the table unreadable; what is being done now stands in full above it.
const MESSAGE: usize = 100;

const RED: &str = "\x1b[31m";
const GREEN: &str = "\x1b[32m";
const YELLOW: &str = "\x1b[33m";
const PLAIN: &str = "\x1b[0m";

/// One after the other, with an empty line between.
pub(super) fn all(views: &[View], colour: bool) -> String {
    views.iter().map(|view| one(view, colour)).collect::<Vec<_>>().join("\n")
}

pub(super) fn one(view: &View, colour: bool) -> String {
    let mut lines = vec![header(view), String::new()];
    lines.extend(table::lines(&facts(view)));
    lines.push(String::new());
    lines.extend(step_lines(&view.steps, colour));
    if !view.checks.is_empty() {
        lines.push(String::new());
        lines.extend(checks(view));
    }
    if let Some(failure) = &view.failure {
        lines.push(String::new());
        lines.extend(failure_block(failure, colour));
    }
    if let Some(next) = &view.next {
        lines.extend([String::new(), format!("Next: {next}")]);
    }
    lines.join("\n") + "\n"
}

pub(super) fn header(view: &View) -> String {
    let source = if view.source.is_empty() { "its vCenter" } else { &view.source };
    let way = match view.source_retirement {
        SourceRetirement::Remove => format!("{source} -> {}", view.target),
        SourceRetirement::Keep => format!("{source} + {}", view.target),
    };
    format!("{}/{}: {:?}, {} steps done, {way}", view.namespace, view.name, view.assessment, view.progress)
}

fn facts(view: &View) -> Vec<Vec<String>> {
    let plan = view.plan.as_ref().map(|hash| match view.path {
        Some(Path::Native) => format!("{hash}, the cluster takes a second vCenter as it is"),
        Some(Path::Legacy) => format!("{hash}, rules of the cluster have to be relaxed meanwhile"),
        None => hash.clone(),
    });
    let since = |time: &Option<Time>| time.as_ref().map(|time| time.0.to_string());
    let safe = match view.safe_to_stop {
        Some(true) => "yes",
        Some(false) => "no",
        None => "unknown, nobody has said so yet",
    };
    [
        ("State", Some(format!("{:?}", view.state))),
        ("Plan", plan),
        ("Started", since(&view.started_at)),
        ("Going back", since(&view.rolling_back_at)),
        ("One-way", since(&view.one_way_at)),
        ("Safe to stop", Some(safe.to_owned())),
        ("Now", view.now.clone()),
        ("Degraded", view.degraded.clone()),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some(vec![name.to_owned(), value?]))
    .collect()
}

fn step_lines(steps: &[StepView], colour: bool) -> Vec<String> {
    let head = ["#", "STEP", "STATE", "TIME", "MESSAGE"].map(str::to_owned).to_vec();
    let rows = steps.iter().map(|step| {
        let time = step.seconds.map_or_else(|| "-".to_owned(), duration);
        vec![step.number.clone(), step.name.clone(), format!("{:?}", step.state), time, shortened(&step.message)]
    });
    let lines = table::lines(&std::iter::once(head).chain(rows).collect::<Vec<_>>());
    let colours = std::iter::once(None).chain(steps.iter().map(|step| colour_of(step.state)));
    lines.into_iter().zip(colours).map(|(line, wanted)| paint(&line, wanted.filter(|_| colour))).collect()
}

fn colour_of(state: StepState) -> Option<&'static str> {
    match state {
        StepState::Done => Some(GREEN),
        StepState::Active => Some(YELLOW),
        StepState::Failed => Some(RED),
        StepState::Waiting | StepState::Undone | StepState::NotRequested => None,
    }
}

fn paint(line: &str, colour: Option<&str>) -> String {
    colour.map_or_else(|| line.to_owned(), |colour| format!("{colour}{line}{PLAIN}"))
}

fn shortened(message: &str) -> String {
    let first = message.lines().next().unwrap_or_default();
    if first.chars().count() <= MESSAGE && first.len() == message.len() {
        return first.to_owned();
    }
    format!("{}...", first.chars().take(MESSAGE - 3).collect::<String>())
}

/// As people say it: 0.2s, 41s, 3m10s, 1h02m.
pub(super) fn duration(seconds: f64) -> String {
    if seconds < 9.95 {
        return format!("{seconds:.1}s");
    }
    let whole = seconds.round() as u64;
    match (whole / 3600, whole / 60 % 60, whole % 60) {
        (0, 0, seconds) => format!("{seconds}s"),
        (0, minutes, seconds) => format!("{minutes}m{seconds:02}s"),
        (hours, minutes, _) => format!("{hours}h{minutes:02}m"),
    }
}

fn checks(view: &View) -> Vec<String> {
    let rows = view.checks.iter().map(|check| {
        let result = match check.result {
            CheckResult::Blocking => "blocks",
            CheckResult::Warning => "warning",
            CheckResult::Acknowledged => "taken on",
            CheckResult::Passed => "passed",
        };
        vec![check.id.clone(), result.to_owned(), check.message.clone()]
    });
    let head = ["CHECK", "RESULT", "FOUND"].map(str::to_owned).to_vec();
    table::lines(&std::iter::once(head).chain(rows).collect::<Vec<_>>())
}

fn failure_block(failure: &FailureView, colour: bool) -> Vec<String> {
    let what = &failure.what;
    let step = failure.step.as_ref().map_or_else(|| "The migration failed".to_owned(), |step| format!("Step {step} failed"));
    let attempts = if failure.attempts > 1 { format!(" after {} attempts", failure.attempts) } else { String::new() };
    let mut rows = vec![("What happened", format!("{step}{attempts}")), ("Why", format!("{}: {}", what.rule, what.message))];
    let place = [("component", &what.component), ("pod", &what.pod), ("container", &what.container)];
    let place: Vec<String> = place.into_iter().filter_map(|(name, value)| Some(format!("{name} {}", value.as_ref()?))).collect();
    if !place.is_empty() {
        rows.push(("Where", place.join(", ")));
    }
    rows.extend(what.line.iter().map(|line| ("Line", line.clone())));
    rows.extend(what.look.iter().enumerate().map(|(place, command)| (if place == 0 { "Look" } else { "" }, command.clone())));
    rows.push(("Cluster", what.cluster_state.clone()));
    rows.push(("Safe to stop", if what.safe_to_stop { "yes" } else { "no" }.to_owned()));
    rows.push(("Do next", what.next.clone()));
    let rows: Vec<Vec<String>> = rows.into_iter().map(|(name, value)| vec![name.to_owned(), value]).collect();
    let mut lines = table::lines(&rows);
    if let Some(first) = lines.first_mut() {
        *first = paint(first, Some(RED).filter(|_| colour));
    }
    lines
}
