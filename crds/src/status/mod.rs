//! What the operator reports. Each field has one writer, which applies all of its fields at once. So what one writer owns as a whole is
//! `atomic`: who owns which part of it would be kept and compared at each write, and that is most of what a write costs the apiserver.

mod plan;
mod step;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use plan::{Baseline, Check, CheckResult, ClusterOperator, CsiDriver, Machines, Path, Plan, Pool};
pub use step::{Failure, RefusedCredentials, StepState, StepStatus};

use crate::{rules, schema};

/// How the migration is going.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::of_the_status()))]
pub struct VSphereMigrationInfraStatus {
    /// A condition for each step, and those that sum the migration up. Each has one writer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,

    /// The history of each step, under the name of its condition.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub steps: Vec<StepStatus>,

    /// What will be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plan>,

    /// How the cluster was at the start: only what is worse than that counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Baseline>,

    /// How many machines are where.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["role", "vcenter", "phase"]))]
    pub machines: Vec<Machines>,

    /// All of it in a line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,

    /// The source vCenters, decided at the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<PinnedSource>,

    /// When the cluster was first changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub started_at: Option<Time>,

    /// Since when there is no way back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub one_way_at: Option<Time>,

    /// Since when the migration goes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub rolling_back_at: Option<Time>,

    /// The failure of the first step that fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,

    /// The version of the order of steps that the migration follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub graph_version: Option<i32>,

    /// The generation of the spec that this is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
}

/// The migration in a line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct Summary {
    /// The step at hand.
    #[schemars(length(max = 128))]
    pub step: String,

    /// How many steps of how many are done.
    #[schemars(length(max = 64))]
    pub progress: String,

    /// Whether the cluster can stay as it is now.
    pub safe_to_stop: bool,

    /// The source vCenters.
    #[schemars(length(max = 600))]
    pub source: String,

    /// The target vCenters.
    #[schemars(length(max = 600))]
    pub target: String,
}

/// The source vCenters, decided at the start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct PinnedSource {
    /// As Infrastructure names them.
    #[schemars(length(min = 1, max = 3), inner(length(min = 1, max = 255)))]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub servers: Vec<String>,
}
