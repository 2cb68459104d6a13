//! How the migration is to go.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::period::Period;
use crate::rules;

/// What the operator shall do now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum State {
    /// Check and plan only.
    #[default]
    Pending,
    /// Migrate.
    Running,
    /// Act no more, but go on observing.
    Paused,
    /// Go back to where it began.
    RollingBack,
    /// Act no more and leave everything as it is, for good.
    Abandoned,
}

/// Whether the source vCenter leaves the cluster at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SourceRetirement {
    /// The cluster moves, and nothing of it names the source any more.
    #[default]
    Remove,
    /// The cluster grows by the target.
    Keep,
}

/// How the cluster version operator is kept away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Freeze {
    /// It is scaled to nothing.
    #[default]
    ScaleDown,
    /// It runs, but the two CRDs are not its own meanwhile.
    Overrides,
}

/// What to do about PersistentVolumes that live on the source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Volumes {
    /// Do not start.
    #[default]
    Refuse,
    /// List them by claim and leave them.
    Ignore,
}

/// Whether the plan has to be approved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Approval {
    /// It is carried out as it is.
    #[default]
    Automatic,
    /// Nothing changes until approvedPlan is its hash.
    Manual,
}

/// Where the credentials for the target vCenters are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CredentialsSecret {
    /// A Secret in the vmi's namespace, with the keys `SERVER.username` and `SERVER.password` for each target.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// Whom to trust besides the system's roots and the cluster's trust bundle.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Trust {
    /// A ConfigMap in the vmi's namespace with certificates under `ca-bundle.crt`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub ca_bundle: Option<String>,

    /// Certificates known by their thumbprints.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 3))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["server"]))]
    pub thumbprints: Vec<Thumbprint>,

    /// Trust anybody. The plan says so.
    #[serde(default)]
    pub insecure: bool,
}

/// A certificate known by its thumbprint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Thumbprint {
    /// The vCenter that shows the certificate.
    #[schemars(length(min = 1, max = 255))]
    pub server: String,

    /// SHA-256 of the certificate, in hexadecimal digits, with or without colons.
    #[schemars(length(max = 95), regex(pattern = "^[0-9A-Fa-f]{2}(:?[0-9A-Fa-f]{2}){31}$"))]
    pub sha256: String,
}

/// Where to move from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Source {
    /// vCenters, as Infrastructure names them.
    #[schemars(length(min = 1, max = 2), inner(length(min = 1, max = 255)))]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub servers: Vec<String>,
}

/// A MachineSet that is not simply carried over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineSet {
    /// In Remove the source's MachineSet, in Keep the one to be made.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,

    /// The target failure domains it is spread over.
    // More would let the rule that looks each of them up cost an apiserver too much.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), inner(length(min = 1, max = 256)))]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub failure_domains: Vec<String>,

    /// How many machines; without it as many as the source's set has.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1000))]
    pub replicas: Option<i32>,
}

/// Where the control plane goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ControlPlane {
    /// Target failure domains.
    #[schemars(length(min = 1, max = 32), inner(length(min = 1, max = 256)))]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub failure_domains: Vec<String>,
}

/// How many machines are made and drained at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Rollout {
    /// New machines per batch, after one in each failure domain has come up.
    #[schemars(range(min = 1, max = 100))]
    pub batch: i32,

    /// Source machines of a set that drain at once.
    #[schemars(range(min = 1, max = 10))]
    pub draining: i32,
}

impl Default for Rollout {
    fn default() -> Self {
        Self { batch: 10, draining: 1 }
    }
}

/// When pods count as healthy, and what their logs mean.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-validations" = rules::of_health()))]
pub struct Health {
    /// How long nothing bad may happen.
    pub quiet_period: Period,

    /// How long to wait for that.
    pub deadline: Period,

    /// Judgements that come before the built-in ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["component", "pattern"]))]
    pub patterns: Vec<LogPattern>,

    /// Ids of rules whose failures no longer hold the migration up.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(max = 9), regex(pattern = "^[A-Z]{2,5}-[0-9]{3}$")))]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub accept: Vec<String>,
}

impl Default for Health {
    fn default() -> Self {
        Self { quiet_period: Period::minutes(5), deadline: Period::minutes(30), patterns: Vec::new(), accept: Vec::new() }
    }
}

/// What a line in a log means.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogPattern {
    /// Whose log.
    #[schemars(length(min = 1, max = 63))]
    pub component: String,

    /// A regular expression that the line holds.
    #[schemars(length(min = 1, max = 256))]
    pub pattern: String,

    /// What it means.
    pub verdict: Verdict,
}

/// What a line in a log means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It does not get better by itself.
    Fatal,
    /// It may happen for a while.
    Transient,
    /// It means nothing.
    Benign,
}
