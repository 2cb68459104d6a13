//! Shapes: what a lab consists of, as small data files in tests/lab/shapes.

use serde::Deserialize;

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
    pub vcenters: Vec<Vcenter>,
    pub control_plane: u8,
    pub machine_sets: Vec<MachineSet>,
    /// Nodes that belong to no machine.
    #[serde(default)]
    pub plain_nodes: u8,
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
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CloudConfig {
    Yaml,
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
#[serde(deny_unknown_fields)]
pub struct MachineSet {
    pub name: String,
    pub replicas: u8,
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
        assert_eq!(message, "there is no shape \"nativ\"; there are: native, legacy-yaml, plain");
    }
}
