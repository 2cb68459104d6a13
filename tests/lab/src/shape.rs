//! Shapes: what a lab consists of, as small data files in tests/lab/shapes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use vmi_crds::spec::Volumes;

/// One kind of cluster.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Shape {
    #[serde(skip)]
    pub name: String,
    pub about: String,
    /// Which generation of OpenShift's CRDs and stand-ins.
    pub generation: Generation,
    /// The version ClusterVersion tells.
    pub version: String,
    #[serde(default)]
    pub feature_set: String,
    /// Gates that are on beyond those of the default feature set.
    #[serde(default)]
    pub gates: Vec<String>,
    /// Whether the admission policies stand that protect failure domains in use.
    #[serde(default)]
    pub in_use_policies: bool,
    pub failure_domains: FailureDomains,
    pub cloud_config: CloudConfig,
    /// The `nodes` section of a cloud config in YAML, as a user adds it by hand.
    #[serde(default)]
    pub cloud_config_nodes: BTreeMap<String, String>,
    /// The cloud credential operator's mode; in `Manual` the installer's user made the secrets.
    #[serde(default)]
    pub credentials_mode: String,
    pub vcenters: Vec<Vcenter>,
    pub control_plane: u8,
    pub machine_sets: Vec<MachineSet>,
    /// Nodes that belong to no machine.
    #[serde(default)]
    pub plain_nodes: u8,
    /// Nodes without a machine and a providerID beside those that have both.
    #[serde(default)]
    pub bare_metal_nodes: u8,
    /// Whether the storage driver's parts run.
    #[serde(default)]
    pub storage: bool,
    /// Operators that are degraded from the beginning.
    #[serde(default)]
    pub degraded_operators: Vec<String>,
    /// A file in tests/lab/manifests with more objects.
    #[serde(default)]
    pub objects: Option<String>,
    /// What a rehearsal's vmi says of volumes.
    #[serde(default)]
    pub volumes: Volumes,
    /// More of a large cluster, as objects alone.
    #[serde(default)]
    pub written: Option<Written>,
    /// Never migrated.
    #[serde(default)]
    pub boot_only: bool,
}

/// How many of each.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Written {
    pub machines: u16,
    pub pods: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Generation {
    #[serde(rename = "4.21")]
    V4_21,
    #[serde(rename = "next")]
    Next,
}

impl Generation {
    pub fn name(self) -> &'static str {
        match self {
            Generation::V4_21 => "4.21",
            Generation::Next => "next",
        }
    }
}

/// How the installer wrote the source's failure domains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FailureDomains {
    /// Named by the user, with tags in the vCenter.
    Named,
    /// The installer's single `generated-failure-domain`, without tags.
    Generated,
    /// Not at all: Infrastructure has no platformSpec.vsphere.
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CloudConfig {
    Yaml,
    /// As installers up to 4.16 wrote it, with a `[Workspace]`.
    Ini,
}

/// A simulated vCenter; the first of a shape is the one the cluster runs on.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vcenter {
    pub name: String,
    /// One compute cluster each.
    pub zones: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MachineSet {
    pub name: String,
    pub replicas: u8,
    /// Of its nodes.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    #[serde(default)]
    pub taints: Vec<Taint>,
    #[serde(default)]
    pub data_disks: Vec<DataDisk>,
    /// Of the set itself, as are the next three.
    #[serde(default)]
    pub set_labels: BTreeMap<String, String>,
    #[serde(default)]
    pub set_annotations: BTreeMap<String, String>,
    #[serde(default)]
    pub delete_policy: Option<String>,
    #[serde(default)]
    pub min_ready_seconds: Option<u8>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Taint {
    pub key: String,
    #[serde(default)]
    pub value: String,
    pub effect: String,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DataDisk {
    pub name: String,
    #[serde(rename = "sizeGiB")]
    pub size: u16,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("there is no shape {name:?}; there are: {known}", known = names().join(", "))]
    Unknown { name: String },
    #[error("shape {name}: {reason}")]
    Broken { name: String, reason: String },
}

const FILES: &[(&str, &str)] = &[
    ("native", include_str!("../shapes/native.yaml")),
    ("legacy-yaml", include_str!("../shapes/legacy-yaml.yaml")),
    ("legacy-ini", include_str!("../shapes/legacy-ini.yaml")),
    ("multi-zone", include_str!("../shapes/multi-zone.yaml")),
    ("rich", include_str!("../shapes/rich.yaml")),
    ("manual-cco", include_str!("../shapes/manual-cco.yaml")),
    ("two-targets", include_str!("../shapes/two-targets.yaml")),
    ("ancient", include_str!("../shapes/ancient.yaml")),
    ("unlisted", include_str!("../shapes/unlisted.yaml")),
    ("large", include_str!("../shapes/large.yaml")),
    ("plain", include_str!("../shapes/plain.yaml")),
];

pub fn names() -> Vec<&'static str> {
    FILES.iter().map(|(name, _)| *name).collect()
}

impl Shape {
    pub fn named(name: &str) -> Result<Shape, Error> {
        let Some((_, text)) = FILES.iter().find(|(known, _)| *known == name) else {
            return Err(Error::Unknown { name: name.to_owned() });
        };
        let shape: Shape =
            serde_saphyr::from_str(text).map_err(|error| Error::Broken { name: name.to_owned(), reason: error.to_string() })?;
        Ok(Shape { name: name.to_owned(), ..shape })
    }

    /// Whether it can be grown by its second vCenter.
    pub fn can_grow(&self) -> bool {
        self.has_openshift() && !self.boot_only
    }

    /// Whether OpenShift's parts run in it, or only the bare control plane.
    pub fn has_openshift(&self) -> bool {
        !self.vcenters.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_can_be_read() {
        for name in names() {
            assert_eq!(Shape::named(name).unwrap().name, name);
        }
    }

    #[test]
    fn an_unknown_shape_is_refused_with_the_known_ones() {
        let message = Shape::named("nativ").unwrap_err().to_string();
        assert_eq!(
            message,
            "there is no shape \"nativ\"; there are: native, legacy-yaml, legacy-ini, multi-zone, rich, manual-cco, two-targets, ancient, unlisted, large, plain"
        );
    }
}
