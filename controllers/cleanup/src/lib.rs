//! Takes the source out of the cluster: steps 14a (out of Infrastructure and the cloud configuration, through the one-way door) and
//! 14d (out of the secrets and of everything else that names it).
//!
//! Consumes: ClusterVersionFrozen, InfrastructureUnlocked, SourceWorkersRemoved, status.plan.removalHash and status.oneWayAt for 14a;
//! PodsHealthyAfterDetach for 14d.
//! Produces: SourceDetached, SourceRemoved; Secret `vmi-NAME-metadata` and ConfigMap `vmi-NAME-leftovers`.
//! Touches: [`TOUCHES`]. Copies that operators make are waited for and never written.
//! Undo: none. Before the door nothing is written; behind it there is no way back, and a restarted process finishes what was begun.
//! Gives up when: the apiserver refuses the source's removal (CLN-001), the cloud configuration cannot be edited (CLN-002), or
//! somebody still names the source after the deadline.

#![deny(missing_docs)]

mod detach;
mod earlier;
mod leftovers;
mod metadata;
mod remove;
mod shell;
mod topology;
mod users;

use vmi_crds::graph::Controller as Name;
use vmi_kit::kind::{
    CLUSTER_CSI_DRIVER, CLUSTER_VERSION, CONFIG_MAP, CONTROL_PLANE_MACHINE_SET, CONTROLLER_CONFIG, INFRASTRUCTURE, MACHINE, MACHINE_SET,
    NODE, PERSISTENT_VOLUME, SECRET,
};
use vmi_kit::{OWN, Stop, Touch, reads};
use vmi_site::{credentials, followers};
use vmi_steps::step::sooner;
use vmi_steps::{Controller, Migration, Report, Wake, take};

pub use detach::SourceDetached;
pub use remove::SourceRemoved;

/// Where Machines live.
const MACHINES: &str = "openshift-machine-api";
/// Where the cloud configuration is.
const CLOUD_CONFIG: &str = "openshift-config";

/// All it reads and writes besides the vmi.
pub const TOUCHES: &[Touch] = &[
    reads(SECRET).within(OWN).writes(&["create", "patch"]),
    reads(CONFIG_MAP).within(OWN).writes(&["create", "patch"]),
    credentials::TOUCHES[0],
    credentials::TOUCHES[1],
    credentials::TOUCHES[2],
    credentials::TOUCHES[3],
    credentials::TOUCHES[4],
    credentials::TOUCHES[5],
    credentials::TOUCHES[6],
    credentials::TOUCHES[7],
    reads(SECRET).within(topology::CSI_CONFIG.0).named(topology::CSI_CONFIG.1),
    reads(CLUSTER_CSI_DRIVER).named(topology::DRIVER).writes(&["patch"]),
    reads(CLUSTER_VERSION).named("version"),
    reads(INFRASTRUCTURE).named("cluster").writes(&["update"]),
    reads(CONTROLLER_CONFIG).named(followers::CONTROLLER_CONFIG_NAME),
    // Infrastructure says which one it is.
    reads(CONFIG_MAP).within(CLOUD_CONFIG),
    reads(CONFIG_MAP).within(CLOUD_CONFIG).named("cloud-provider-config").writes(&["update"]),
    reads(CONFIG_MAP).within(followers::COPIES[0].namespace).named(followers::COPIES[0].name),
    reads(CONFIG_MAP).within(followers::COPIES[1].namespace).named(followers::COPIES[1].name),
    reads(MACHINE).within(MACHINES),
    reads(MACHINE_SET).within(MACHINES).writes(&["delete"]),
    reads(CONTROL_PLANE_MACHINE_SET).within(MACHINES),
    reads(NODE),
    reads(PERSISTENT_VOLUME),
];

/// The controller.
pub struct Cleanup;

impl Controller for Cleanup {
    const NAME: Name = Name::Cleanup;
    const TOUCHES: &'static [Touch] = TOUCHES;

    async fn reconcile(&self, m: &Migration, report: &mut Report) -> Result<Wake, Stop> {
        let detached = take(&SourceDetached, m, report).await?;
        let removed = take(&SourceRemoved, m, report).await?;
        Ok(sooner(detached, removed))
    }
}

/// Whether the migration has not started: then a step says what it would change, as if all before it were done.
fn planning(m: &Migration) -> bool {
    m.vmi.seen().started_at.is_none()
}
