//! A vmi as its reader wants to see it, and nothing else: text, JSON and the exit code are made of this.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::ResourceExt as _;
use serde::Serialize;
use vmi_crds::graph::{Request, Step};
use vmi_crds::spec::{SourceRetirement, State};
use vmi_crds::status::{Check, CheckResult, Failure, Path, StepState, StepStatus};
use vmi_crds::{VSphereMigrationInfra, VSphereMigrationInfraStatus};

use super::next;
use crate::commands::Exit;

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct View {
    pub name: String,
    pub namespace: String,
    pub assessment: Assessment,
    pub state: State,
    pub source: String,
    pub target: String,
    pub source_retirement: SourceRetirement,
    pub progress: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<Path>,
    /// Nobody knows as long as nobody has said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub safe_to_stop: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub one_way_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rolling_back_at: Option<Time>,
    /// What happens now, or why nothing does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub now: Option<String>,
    /// What is not as it should be, although nothing has failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub degraded: Option<String>,
    /// Checks that did not end well.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Check>,
    pub steps: Vec<StepView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// How it stands, the first that is true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) enum Assessment {
    Completed,
    RolledBack,
    Failed,
    Abandoned,
    Blocked,
    /// A plan stands and waits to be started.
    Planned,
    Planning,
    Held,
    Running,
    Paused,
    RollingBack,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct StepView {
    pub number: String,
    pub name: String,
    pub state: StepState,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    pub message: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct FailureView {
    /// Its number and name, where a step has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    pub attempts: i32,
    #[serde(flatten)]
    pub what: Failure,
}

impl View {
    pub fn of(vmi: &VSphereMigrationInfra, now: Timestamp) -> Self {
        let nothing = VSphereMigrationInfraStatus::default();
        let status = vmi.status.as_ref().unwrap_or(&nothing);
        let plan = status.plan.clone().unwrap_or_default();
        let steps = steps(vmi, status, now);
        let assessment = Assessment::of(vmi.spec.state, status);
        let done = steps.iter().filter(|step| step.state == StepState::Done).count();
        let summary = status.summary.as_ref();
        let targets = || vmi.spec.vcenters.iter().map(|vcenter| vcenter.server.as_str()).collect::<Vec<_>>().join(", ");
        Self {
            name: vmi.name_any(),
            namespace: vmi.namespace().unwrap_or_default(),
            assessment,
            state: vmi.spec.state,
            source: summary.map_or_else(|| source(vmi, status), |summary| summary.source.clone()),
            target: summary.map_or_else(targets, |summary| summary.target.clone()),
            source_retirement: vmi.spec.source_retirement,
            progress: summary.map_or_else(|| format!("{done}/{}", steps.len()), |summary| summary.progress.clone()),
            plan: plan.hash.clone(),
            path: plan.path,
            safe_to_stop: match summary {
                Some(summary) => Some(summary.safe_to_stop),
                // Nothing has been changed yet.
                None => status.started_at.is_none().then_some(true),
            },
            started_at: status.started_at.clone(),
            one_way_at: status.one_way_at.clone(),
            rolling_back_at: status.rolling_back_at.clone(),
            now: at_hand(status, &steps),
            degraded: told_if_true(status, "Degraded"),
            checks: plan.checks.iter().filter(|check| check.result != CheckResult::Passed).cloned().collect(),
            failure: failure(status, &steps),
            next: next::of(vmi, assessment, &plan),
            steps,
        }
    }

    pub fn exit(&self) -> Exit {
        match self.assessment {
            Assessment::Failed => Exit::Failed,
            Assessment::Blocked => Exit::Blocked,
            Assessment::Planned => Exit::ChangesPending,
            _ => Exit::Ok,
        }
    }

    /// Whether nothing will change any more.
    pub fn is_over(&self) -> bool {
        matches!(self.assessment, Assessment::Completed | Assessment::RolledBack | Assessment::Abandoned)
    }
}

impl Assessment {
    fn of(state: State, status: &VSphereMigrationInfraStatus) -> Self {
        let is = |name: &str| condition(status, name).is_some_and(|condition| condition.status == "True");
        let failed = status.failure.is_some() || status.steps.iter().any(|step| step.state == StepState::Failed);
        let plan = status.plan.as_ref();
        match state {
            _ if is("Completed") => Self::Completed,
            _ if is("RolledBack") => Self::RolledBack,
            // Who gave it up knows why.
            State::Abandoned => Self::Abandoned,
            _ if failed => Self::Failed,
            _ if plan.is_some_and(|plan| !plan.blocking.is_empty()) => Self::Blocked,
            State::Pending if plan.is_some_and(|plan| plan.hash.is_some()) => Self::Planned,
            State::Pending => Self::Planning,
            State::Paused => Self::Paused,
            State::RollingBack => Self::RollingBack,
            State::Running if is("Held") => Self::Held,
            State::Running => Self::Running,
        }
    }
}

fn condition<'a>(status: &'a VSphereMigrationInfraStatus, name: &str) -> Option<&'a Condition> {
    status.conditions.iter().find(|condition| condition.type_ == name)
}

fn source(vmi: &VSphereMigrationInfra, status: &VSphereMigrationInfraStatus) -> String {
    let pinned = status.source.as_ref().map(|source| &source.servers);
    pinned.or(vmi.spec.source.as_ref().map(|source| &source.servers)).map(|servers| servers.join(", ")).unwrap_or_default()
}

/// Every step the vmi asks for, also those of which no controller has said anything yet.
fn steps(vmi: &VSphereMigrationInfra, status: &VSphereMigrationInfraStatus, now: Timestamp) -> Vec<StepView> {
    let request = Request::of(&vmi.spec);
    let is_true = |name: &str| condition(status, name).is_some_and(|condition| condition.status == "True");
    // On the way back, and once given up, nothing waits for its turn any more.
    let goes_on = status.rolling_back_at.is_none() && !matches!(vmi.spec.state, State::RollingBack | State::Abandoned);
    let waits = |step: &Step| {
        let names: Vec<&str> = step.still_waits_for(request, |name| is_true(name.as_str())).iter().map(|name| name.as_str()).collect();
        if names.is_empty() { String::new() } else { format!("waits for {}", names.join(", ")) }
    };
    request
        .steps()
        .map(|step| {
            let reported = status.steps.iter().find(|reported| reported.name == step.name.as_str());
            let state = reported.map_or(StepState::Waiting, |reported| reported.state);
            let said = reported.map(|reported| reported.message.clone()).unwrap_or_default();
            StepView {
                number: step.number.to_owned(),
                name: step.name.to_string(),
                state,
                seconds: reported.and_then(|reported| seconds(reported, now)),
                message: if said.is_empty() && state == StepState::Waiting && goes_on { waits(step) } else { said },
            }
        })
        .collect()
}

fn seconds(step: &StepStatus, now: Timestamp) -> Option<f64> {
    let began = step.started_at.as_ref()?.0;
    let ended = match step.state {
        StepState::Active => now,
        _ => step.finished_at.as_ref()?.0,
    };
    // The clock of who looks may be behind that of who wrote.
    Some(ended.duration_since(began).as_secs_f64().max(0.0))
}

fn told(status: &VSphereMigrationInfraStatus, name: &str) -> Option<String> {
    let condition = condition(status, name).filter(|condition| !condition.message.is_empty())?;
    Some(format!("{}: {}", condition.reason, condition.message))
}

fn told_if_true(status: &VSphereMigrationInfraStatus, name: &str) -> Option<String> {
    condition(status, name).filter(|condition| condition.status == "True").and_then(|_| told(status, name))
}

/// What happens now: what was left for others to release, the hold, the step being taken, or what is said of the whole.
fn at_hand(status: &VSphereMigrationInfraStatus, steps: &[StepView]) -> Option<String> {
    let active = || {
        let step = steps.iter().find(|step| step.state == StepState::Active)?;
        let message = if step.message.is_empty() { String::new() } else { format!(": {}", step.message) };
        Some(format!("{} {}{message}", step.number, step.name))
    };
    told_if_true(status, "Abandoned")
        .or_else(|| told_if_true(status, "Held").map(|held| format!("held, {held}")))
        .or_else(active)
        .or_else(|| told(status, "Progressing"))
}

fn failure(status: &VSphereMigrationInfraStatus, steps: &[StepView]) -> Option<FailureView> {
    let failing = steps.iter().find_map(|view| {
        let step = status.steps.iter().find(|step| step.name == view.name)?;
        Some((view, step, step.failure.clone()?))
    });
    match failing {
        Some((view, step, what)) => {
            Some(FailureView { step: Some(format!("{} {}", view.number, view.name)), attempts: step.attempts, what })
        }
        None => status.failure.clone().map(|what| FailureView { step: None, attempts: 0, what }),
    }
}
