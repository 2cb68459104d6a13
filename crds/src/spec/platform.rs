//! The target as Infrastructure describes it: the names, patterns and bounds are those of VSpherePlatformSpec.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::rules;

/// A vCenter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VCenter {
    /// Its name or address, spelled exactly so wherever it is named.
    #[schemars(length(min = 1, max = 255))]
    #[schemars(extend("anyOf" = [{"format": "ipv4"}, {"format": "ipv6"}, {"format": "hostname"}]))]
    pub server: String,

    /// 443 where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 32767))]
    pub port: Option<i32>,

    /// The datacenters that the cluster uses.
    #[schemars(length(min = 1, max = 32), inner(length(min = 1, max = 256)))]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub datacenters: Vec<String>,
}

/// A part of a vCenter that machines are spread over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::of_a_failure_domain()))]
pub struct FailureDomain {
    /// What machines and MachineSets call it.
    #[schemars(length(min = 1, max = 256))]
    pub name: String,

    /// The name of its tag in the category openshift-region.
    #[schemars(length(min = 1, max = 80))]
    pub region: String,

    /// The name of its tag in the category openshift-zone.
    #[schemars(length(min = 1, max = 80))]
    pub zone: String,

    /// The vCenter it is in.
    #[schemars(length(min = 1, max = 255))]
    pub server: String,

    /// What a region is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region_affinity: Option<RegionAffinity>,

    /// What a zone is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone_affinity: Option<ZoneAffinity>,

    /// Where in the vCenter it is.
    pub topology: Topology,
}

/// What a region is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RegionAffinity {
    /// The kind of object that carries the region's tag.
    #[serde(rename = "type")]
    pub type_: RegionAffinityType,
}

/// The kind of object that carries the region's tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RegionAffinityType {
    /// Each region is a datacenter.
    Datacenter,
    /// Each region is a cluster.
    ComputeCluster,
}

/// What a zone is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::of_a_zone_affinity()))]
pub struct ZoneAffinity {
    /// The kind of object that carries the zone's tag.
    #[serde(rename = "type")]
    pub type_: ZoneAffinityType,

    /// The hosts of the zone, where it is a group of hosts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_group: Option<HostGroup>,
}

/// The kind of object that carries the zone's tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ZoneAffinityType {
    /// Each zone is a cluster.
    ComputeCluster,
    /// Each zone is a group of hosts in a cluster.
    HostGroup,
}

/// A zone made of some hosts of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostGroup {
    /// The group that machines join.
    #[schemars(length(min = 1, max = 80))]
    pub vm_group: String,

    /// The group of hosts they run on.
    #[schemars(length(min = 1, max = 80))]
    pub host_group: String,

    /// The rule that binds the one to the other.
    #[schemars(length(min = 1, max = 80))]
    pub vm_host_rule: String,
}

/// Where in a vCenter a failure domain is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Topology {
    /// The datacenter.
    #[schemars(length(min = 1, max = 80))]
    pub datacenter: String,

    /// The path of the cluster.
    #[schemars(length(max = 2048), regex(pattern = "^/.*?/host/.*?"))]
    pub compute_cluster: String,

    /// The names of the port groups.
    #[schemars(length(min = 1, max = 10), inner(length(min = 1, max = 80)))]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub networks: Vec<String>,

    /// The path of the datastore.
    #[schemars(length(max = 2048), regex(pattern = "^/.*?/datastore/.*?"))]
    pub datastore: String,

    /// The path of the resource pool.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048), regex(pattern = "^/.*?/host/.*?/Resources.*"))]
    pub resource_pool: Option<String>,

    /// The path of the folder for the machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048), regex(pattern = "^/.*?/vm/.*?"))]
    pub folder: Option<String>,

    /// The path of the template that machines are cloned from.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 2048), regex(pattern = "^/.*?/vm/.*?"))]
    pub template: Option<String>,
}

/// Which of its addresses a node is known by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeNetworking {
    /// From outside the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external: Option<NodeNetworkingSpec>,

    /// From inside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub internal: Option<NodeNetworkingSpec>,
}

/// How one of a node's addresses is chosen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeNetworkingSpec {
    /// Networks that the address is in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[schemars(extend("items" = {"type": "string", "format": "cidr", "maxLength": 64}, "x-kubernetes-list-type" = "set"))]
    pub network_subnet_cidr: Vec<String>,

    /// The port group that the address is on.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub network: Option<String>,

    /// Networks that the address is not in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[schemars(extend("items" = {"type": "string", "format": "cidr", "maxLength": 64}, "x-kubernetes-list-type" = "atomic"))]
    pub exclude_network_subnet_cidr: Vec<String>,
}
