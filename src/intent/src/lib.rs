//! What the migration wants to be written, decided without a cluster: every function here takes text or objects and gives text or
//! objects back. No client, no clock, no async; the controllers bring those.

pub mod cloud_config;
pub mod control_plane_set;
pub mod credentials_requests;
pub mod infrastructure;
pub mod machine_sets;
pub mod nodes;
pub mod places;
pub mod provider;
pub mod secret;
pub mod set_names;
pub mod source_domain;
pub mod volumes;
