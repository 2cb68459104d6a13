//! What will be done, and how the cluster was before.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What will be done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct Plan {
    /// Stands for all changes of the plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), regex(pattern = "^[0-9a-f]{8,64}$"))]
    pub hash: Option<String>,

    /// Stands for the changes that take the source away.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), regex(pattern = "^[0-9a-f]{8,64}$"))]
    pub removal_hash: Option<String>,

    /// Whether the cluster takes a vCenter more as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<Path>,

    /// Why it is that path.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub path_reason: Option<String>,

    /// Every check that was made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 96))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["id"]))]
    pub checks: Vec<Check>,

    /// Ids of the checks that keep the migration from starting.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 96), inner(length(max = 9)))]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub blocking: Vec<String>,
}

/// Whether a cluster takes a vCenter more as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Path {
    /// It does.
    Native,
    /// Only after the rules against it are taken away for a while.
    Legacy,
}

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// Its id.
    #[schemars(length(max = 9), regex(pattern = "^[A-Z]{2,5}-[0-9]{3}$"))]
    pub id: String,

    /// How it ended.
    pub result: CheckResult,

    /// What was looked at and what was found instead.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 512))]
    pub message: String,
}

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CheckResult {
    /// Well.
    Passed,
    /// Not well, but the migration can start.
    Warning,
    /// The migration does not start.
    Blocking,
    /// It would block, but the user takes it on.
    Acknowledged,
}

/// How the cluster was at the start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct Baseline {
    /// Operators.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub cluster_operators: Vec<ClusterOperator>,

    /// MachineConfigPools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub pools: Vec<Pool>,

    /// The vSphere CSI driver, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub csi_driver: Option<CsiDriver>,
}

/// An operator at the start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClusterOperator {
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Whether it was available.
    pub available: bool,
    /// Whether it was degraded.
    pub degraded: bool,
}

/// A MachineConfigPool at the start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pool {
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Whether all its nodes had its configuration.
    pub updated: bool,
    /// Whether it was degraded.
    pub degraded: bool,
    /// Whether somebody had paused it.
    pub paused: bool,
}

/// The vSphere CSI driver at the start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CsiDriver {
    /// Whether its operator manages it.
    #[schemars(length(max = 32))]
    pub management_state: String,

    /// Conditions of it that already told of trouble.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(max = 128)))]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub troubled: Vec<String>,
}

/// How many machines of a role are in a phase on a vCenter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct Machines {
    /// Such as master or worker.
    #[schemars(length(min = 1, max = 63))]
    pub role: String,
    /// The vCenter.
    #[schemars(length(min = 1, max = 255))]
    pub vcenter: String,
    /// Such as Running.
    #[schemars(length(min = 1, max = 32))]
    pub phase: String,
    /// How many.
    #[schemars(range(min = 0))]
    pub count: i32,
}
