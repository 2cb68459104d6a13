//! Makes the cluster's own configuration know the target: steps 4 (credentials), 7 (Infrastructure) and 8 (cloud configuration).
//!
//! Consumes: ControlPlaneSetSaved for 4; ClusterVersionFrozen, InfrastructureUnlocked, TagsAttached and FolderCreated for 7.
//! Produces: CredentialsAdded, InfrastructureExtended, CloudConfigExtended.
//! Touches: [`TOUCHES`]. Copies that operators make are waited for and never written, but for a component's secret that nobody else
//! would write.
//! Undo: what was written is taken back where it still stands as it was written; what others changed since stays and is named.
//! Gives up when: a secret, the cloud configuration or Infrastructure cannot be extended as it stands, or a follower does not follow.

#![deny(missing_docs)]

mod cloud_config;
mod credentials;
mod fingerprint;
mod infrastructure;

use vmi_crds::graph::Controller as Name;
use vmi_kit::kind::{CONFIG_MAP, CONTROL_PLANE_MACHINE_SET, CONTROLLER_CONFIG, INFRASTRUCTURE, MACHINE, SECRET};
use vmi_kit::{OWN, Stop, Touch, reads};
use vmi_site::followers;
use vmi_site::source::MACHINES;
use vmi_steps::step::sooner;
use vmi_steps::{Controller, Migration, Report, Wake, take};

pub use cloud_config::CloudConfigExtended;
pub use credentials::CredentialsAdded;
pub use infrastructure::InfrastructureExtended;

/// All it reads and writes besides the vmi.
pub const TOUCHES: &[Touch] = &[
    reads(SECRET).within(OWN).writes(&["create", "patch"]),
    reads(CONFIG_MAP).within(OWN),
    vmi_site::credentials::TOUCHES[0],
    vmi_site::credentials::TOUCHES[1],
    vmi_site::credentials::TOUCHES[2],
    vmi_site::credentials::TOUCHES[3],
    vmi_site::credentials::TOUCHES[4],
    vmi_site::credentials::TOUCHES[5],
    vmi_site::credentials::TOUCHES[6],
    vmi_site::credentials::TOUCHES[7],
    reads(INFRASTRUCTURE).named("cluster").writes(&["update"]),
    reads(CONTROLLER_CONFIG).named(followers::CONTROLLER_CONFIG_NAME),
    // A source that Infrastructure does not describe is described by the machines that live there.
    reads(MACHINE).within(MACHINES),
    // One that was made of that description goes with it.
    reads(CONTROL_PLANE_MACHINE_SET).within(MACHINES).writes(&["delete"]),
    // Infrastructure says which one it is.
    reads(CONFIG_MAP).within(cloud_config::NAMESPACE),
    reads(CONFIG_MAP).within(cloud_config::NAMESPACE).named("cloud-provider-config").writes(&["update"]),
    reads(CONFIG_MAP).within(followers::COPIES[0].namespace).named(followers::COPIES[0].name),
    reads(CONFIG_MAP).within(followers::COPIES[1].namespace).named(followers::COPIES[1].name),
];

/// The controller.
pub struct ConfigRewrite;

impl Controller for ConfigRewrite {
    const NAME: Name = Name::ConfigRewrite;
    const TOUCHES: &'static [Touch] = TOUCHES;

    async fn reconcile(&self, m: &Migration, report: &mut Report) -> Result<Wake, Stop> {
        let credentials = take(&CredentialsAdded, m, report).await?;
        let infrastructure = take(&InfrastructureExtended, m, report).await?;
        let cloud_config = take(&CloudConfigExtended, m, report).await?;
        Ok(sooner(credentials, sooner(infrastructure, cloud_config)))
    }
}
