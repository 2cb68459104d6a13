//! Reading a vmi: what it asks for, and how far it is. A vmi that nobody has reported on yet reads like one of which nothing is done.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::graph::{Request, StepName};
use crate::status::{StepState, StepStatus};
use crate::{VSphereMigrationInfra, VSphereMigrationInfraStatus};

static EMPTY: VSphereMigrationInfraStatus = VSphereMigrationInfraStatus {
    conditions: Vec::new(),
    steps: Vec::new(),
    plan: None,
    baseline: None,
    machines: Vec::new(),
    summary: None,
    source: None,
    started_at: None,
    one_way_at: None,
    rolling_back_at: None,
    failure: None,
    graph_version: None,
    observed_generation: None,
};

impl VSphereMigrationInfra {
    /// Its status, empty where there is none yet.
    pub fn seen(&self) -> &VSphereMigrationInfraStatus {
        self.status.as_ref().unwrap_or(&EMPTY)
    }

    /// What it asks for.
    pub fn request(&self) -> Request {
        Request::of(&self.spec)
    }

    /// A condition.
    pub fn condition(&self, name: &str) -> Option<&Condition> {
        self.seen().conditions.iter().find(|condition| condition.type_ == name)
    }

    /// Whether a condition is True.
    pub fn is_true(&self, name: &str) -> bool {
        self.condition(name).is_some_and(|condition| condition.status == "True")
    }

    /// The history of a step.
    pub fn step(&self, name: StepName) -> Option<&StepStatus> {
        self.seen().steps.iter().find(|step| step.name == name.as_str())
    }

    /// How far a step is.
    pub fn step_state(&self, name: StepName) -> StepState {
        self.step(name).map_or(StepState::Waiting, |step| step.state)
    }

    /// Whether the step has ever done something.
    pub fn begun(&self, name: StepName) -> bool {
        !matches!(self.step_state(name), StepState::Waiting | StepState::NotRequested)
    }

    /// Whether nothing more will be done.
    pub fn over(&self) -> bool {
        ["Completed", "RolledBack", "Abandoned"].iter().any(|name| self.is_true(name))
    }
}
