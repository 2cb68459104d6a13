//! `vmi crd`.

use super::{Exit, Failure, print};

/// Print the vmi's CustomResourceDefinition, to be piped into `oc apply -f -`
#[derive(clap::Args)]
pub struct Crd {}

impl Crd {
    pub(super) fn run(&self) -> Result<Exit, Failure> {
        print(vmi_crds::CRD_YAML)?;
        Ok(Exit::Ok)
    }
}
