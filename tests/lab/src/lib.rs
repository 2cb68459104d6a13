//! A data centre in a box: OpenShift's real machine, control plane and cloud controllers on a real apiserver, two or more
//! simulated vCenters, and named stand-ins for the parts that cannot be built outside OpenShift. docs/lab.md tells its story.

pub mod agent;
pub mod cache;
pub mod cluster;
pub mod commands;
pub mod component;
pub mod control_plane;
pub mod faults;
pub mod health;
pub mod home;
pub mod kubernetes;
pub mod lab;
pub mod migration;
pub mod net;
pub mod nodes;
pub mod output;
pub mod pki;
pub mod process;
pub mod requirements;
pub mod shape;
pub mod side_door;
pub mod standins;
pub mod supervisor;
pub mod tools;
pub mod vcenter;
pub mod yaml;
