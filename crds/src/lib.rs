//! The vmi (`vspheremigrationinfra.config.openshift.io`): what a user asks for ([`spec`]), what the operator reports ([`status`]),
//! and in which order the steps of a migration are taken and taken back ([`graph`]).
//!
//! What can be told from a vmi alone is told here: how far it is (its methods), whose turn it is ([`turn`]), and whether the cluster can
//! be left as it is ([`safety`]). A controller asks for its turn before it looks at anything else, and once more, of the vmi as it is
//! then, before it writes.
//!
//! Everything that an apiserver can refuse by itself, it refuses: the bounds stand at the fields, the rules in [`rules`].

#![deny(missing_docs)]

pub mod graph;
pub mod period;
mod reading;
pub mod rules;
pub mod safety;
pub mod schema;
pub mod spec;
pub mod status;
pub mod turn;

pub use spec::{VSphereMigrationInfra, VSphereMigrationInfraSpec};
pub use status::VSphereMigrationInfraStatus;

/// The CustomResourceDefinition, as it is installed.
pub const CRD_YAML: &str = include_str!("../yaml/vspheremigrationinfra.yaml");
