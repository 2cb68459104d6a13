//! Prepares the vCenters: tags that tell regions and zones apart and say whose things are, and folders for machines.
//!
//! Consumes: PreflightPassed to ControlPlaneSetSaved and CredentialsAdded, by the order of the steps; failure domains of the
//! vmi's spec (target) and of Infrastructure (source).
//! Produces: TagsAttached, FolderCreated.
//! Touches: [`VcenterPrep::TOUCHES`] in the cluster; in the vCenters the categories openshift-region, openshift-zone and
//! openshift-INFRAID, their tags, and the folders of the target's failure domains.
//! Undo: detaches and deletes what it has saved as its own and nobody else uses; the rest is listed and left.
//! Gives up when: a place is not there, an object has another tag of a category that allows one, a category of others does not
//! fit, a source has no failure domain, or a vCenter refuses.

mod domains;
mod failures;
mod look;
mod memory;
mod missing;
mod record;
mod steps;
mod wanted;

use vmi_crds::graph::Controller as Name;
use vmi_kit::kind::{CONFIG_MAP, INFRASTRUCTURE, MACHINE, SECRET};
use vmi_kit::{OWN, Stop, Touch, reads};
use vmi_site::source::MACHINES;
use vmi_site::vcenter::{MACHINE_API_SECRET, ROOT_SECRET, TRUST_BUNDLE};
use vmi_steps::step::sooner;
use vmi_steps::{Controller, Migration, Report, Wake, calls};

use crate::memory::Memory;
use crate::steps::folder_created::FolderCreated;
use crate::steps::tags_attached::TagsAttached;

/// Steps 5 and 6.
#[derive(Default)]
pub struct VcenterPrep {
    memory: Memory,
}

impl Controller for VcenterPrep {
    const NAME: Name = Name::VcenterPrep;
    const TOUCHES: &'static [Touch] = &[
        reads(INFRASTRUCTURE).named("cluster"),
        reads(MACHINE).within(MACHINES),
        reads(SECRET).within(ROOT_SECRET.0).named(ROOT_SECRET.1),
        reads(SECRET).within(MACHINE_API_SECRET.0).named(MACHINE_API_SECRET.1),
        reads(CONFIG_MAP).within(TRUST_BUNDLE.0).named(TRUST_BUNDLE.1),
        reads(SECRET).within(OWN).writes(&["create", "patch"]),
        reads(CONFIG_MAP).within(OWN).writes(&["create", "patch"]),
    ];

    async fn reconcile(&self, m: &Migration, report: &mut Report) -> Result<Wake, Stop> {
        let tags = calls::take(&TagsAttached { memory: &self.memory }, m, report).await?;
        let folder = calls::take(&FolderCreated { memory: &self.memory }, m, report).await?;
        Ok(sooner(tags, folder))
    }
}
