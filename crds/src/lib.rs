//! The vmi (`vspheremigrationinfra.config.openshift.io`): what a user asks for ([`spec`]), what the operator reports ([`status`]),
//! and in which order the steps of a migration are taken and taken back ([`graph`]).
//!
//! Everything that an apiserver can refuse by itself, it refuses: the bounds stand at the fields, the rules in [`rules`].

#![deny(missing_docs)]

pub mod graph;
pub mod period;
pub mod rules;
pub mod schema;
pub mod spec;
pub mod status;

pub use spec::{VSphereMigrationInfra, VSphereMigrationInfraSpec};
pub use status::VSphereMigrationInfraStatus;

/// The CustomResourceDefinition, as it is installed.
pub const CRD_YAML: &str = include_str!("../yaml/vspheremigrationinfra.yaml");
