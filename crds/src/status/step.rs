//! The history of a step, and why it failed.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema;

/// The history of a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct StepStatus {
    /// The type of its condition.
    #[schemars(length(min = 1, max = 64))]
    pub name: String,

    /// Its number in the documentation, such as 7 or 14a.
    #[schemars(length(min = 1, max = 4))]
    pub number: String,

    /// Who takes it.
    #[schemars(length(min = 1, max = 63))]
    pub controller: String,

    /// How far it is.
    pub state: StepState,

    /// How often it was begun.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub attempts: i32,

    /// When it was begun last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub started_at: Option<MicroTime>,

    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub finished_at: Option<MicroTime>,

    /// The generation of the spec that this is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,

    /// What or whom it waits for, or how it ended.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 1024))]
    pub message: String,

    /// What it will change or has changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 30), inner(length(max = 160)))]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub changes: Vec<String>,

    /// How many changes are not listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub more_changes: Option<i32>,

    /// Its last words, the newest at the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20), inner(length(max = 200)))]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub log: Vec<String>,

    /// Credentials that a vCenter refused and that nobody tries again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub refused_credentials: Vec<RefusedCredentials>,

    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

/// How far a step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum StepState {
    /// Its turn has not come.
    Waiting,
    /// It is being taken, or taken back.
    Active,
    /// Its condition is true.
    Done,
    /// It cannot go on by itself.
    Failed,
    /// It was taken back.
    Undone,
    /// The vmi does not ask for it.
    NotRequested,
}

/// Credentials that a vCenter refused, by the version of the Secret they were in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RefusedCredentials {
    /// The vCenter that refused them.
    #[schemars(length(min = 1, max = 255))]
    pub server: String,

    /// The UID of the Secret.
    #[schemars(length(min = 1, max = 64))]
    pub uid: String,

    /// The Secret's version.
    #[schemars(length(min = 1, max = 64))]
    pub resource_version: String,
}

/// What went wrong, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct Failure {
    /// The id of the rule or check that says so.
    #[schemars(length(max = 9), regex(pattern = "^[A-Z]{2,5}-[0-9]{3}$"))]
    pub rule: String,

    /// What happened and why.
    #[schemars(length(max = 1024))]
    pub message: String,

    /// The part of the cluster it happened in.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub component: Option<String>,

    /// The pod, as namespace/name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 317))]
    pub pod: Option<String>,

    /// The container.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub container: Option<String>,

    /// The line of its log.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 300))]
    pub line: Option<String>,

    /// Commands that show more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), inner(length(max = 300)))]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub look: Vec<String>,

    /// The state the cluster is in.
    #[schemars(length(max = 512))]
    pub cluster_state: String,

    /// Whether the cluster can stay so.
    pub safe_to_stop: bool,

    /// What to do next.
    #[schemars(length(max = 512))]
    pub next: String,
}
