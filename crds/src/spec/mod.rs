//! What a user asks for.
#![allow(clippy::duplicated_attributes, reason = "several columns have the same type and priority")]

mod options;
mod platform;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use options::{
    Approval, ControlPlane, CredentialsSecret, Freeze, Health, LogPattern, MachineSet, Rollout, Source, SourceRetirement, State,
    Thumbprint, Trust, Verdict, Volumes,
};
pub use platform::{
    FailureDomain, HostGroup, NodeNetworking, NodeNetworkingSpec, RegionAffinity, RegionAffinityType, Topology, VCenter, ZoneAffinity,
    ZoneAffinityType,
};

use crate::rules;

/// The vCenter to move to, and how.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "config.openshift.io",
    version = "v1alpha1",
    kind = "VSphereMigrationInfra",
    plural = "vspheremigrationinfra",
    singular = "vspheremigrationinfra",
    shortname = "vmi",
    shortname = "vmig",
    namespaced,
    schema = "manual",
    status = "crate::status::VSphereMigrationInfraStatus",
    derive = "PartialEq",
    doc = "The migration of a cluster from one vCenter to another.",
    printcolumn(name = "State", type_ = "string", json_path = ".spec.state"),
    printcolumn(name = "Step", type_ = "string", json_path = ".status.summary.step"),
    printcolumn(name = "Progress", type_ = "string", json_path = ".status.summary.progress"),
    printcolumn(name = "Safe-Stop", type_ = "boolean", json_path = ".status.summary.safeToStop"),
    printcolumn(name = "Source", type_ = "string", json_path = ".status.summary.source"),
    printcolumn(name = "Target", type_ = "string", json_path = ".status.summary.target"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Path", type_ = "string", json_path = ".status.plan.path", priority = 1),
    printcolumn(name = "Plan", type_ = "string", json_path = ".status.plan.hash", priority = 1),
    printcolumn(name = "Held", type_ = "string", json_path = r#".status.conditions[?(@.type=="Held")].status"#, priority = 1)
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::of_the_spec()))]
pub struct VSphereMigrationInfraSpec {
    /// What the operator shall do now. Pending only checks and plans.
    #[serde(default)]
    pub state: State,

    /// The target vCenters, as in Infrastructure; together with the sources there are at most three.
    #[schemars(length(min = 1, max = 2))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["server"]))]
    pub vcenters: Vec<VCenter>,

    /// The target failure domains, as in Infrastructure. None repeats the name or the region and zone of a source's.
    #[schemars(length(min = 1, max = 32))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub failure_domains: Vec<FailureDomain>,

    /// As in Infrastructure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_networking: Option<NodeNetworking>,

    /// The Secret with the credentials for the target vCenters.
    pub credentials_secret: CredentialsSecret,

    /// Whom to trust besides the system's roots and the cluster's trust bundle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust: Option<Trust>,

    /// Where to move from. Without it: the vCenters in Infrastructure that are no target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,

    /// In Remove, what differs from carrying over each source MachineSet as it is; in Keep, the sets to add.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub machine_sets: Vec<MachineSet>,

    /// Where the control plane goes. Without it: in Remove to all target domains, in Keep nowhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane: Option<ControlPlane>,

    /// Whether the source vCenter leaves the cluster at the end.
    #[serde(default)]
    pub source_retirement: SourceRetirement,

    /// How the cluster version operator is kept away, where it has to be.
    #[serde(default)]
    pub freeze: Freeze,

    /// What to do about PersistentVolumes that live on the source.
    #[serde(default)]
    pub volumes: Volumes,

    /// How many machines are made and drained at once.
    #[serde(default)]
    pub rollout: Rollout,

    /// Whether the plan has to be approved.
    #[serde(default)]
    pub approval: Approval,

    /// The hash of the plan that is approved: status.plan.hash, later status.plan.removalHash.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), regex(pattern = "^[0-9a-f]{8,64}$"))]
    pub approved_plan: Option<String>,

    /// When pods count as healthy, and what their logs mean.
    #[serde(default)]
    pub health: Health,

    /// Ids of blocking checks that the user takes on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(max = 9), regex(pattern = "^[A-Z]{2,5}-[0-9]{3}$")))]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub acknowledged: Vec<String>,
}
