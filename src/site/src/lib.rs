//! What a migration finds on site, where more than one controller needs it: the vCenters and how to log in to them ([`vcenter`]), the
//! secrets of the cluster and of its components ([`credentials`]), those that copy its configuration by themselves ([`followers`]), and
//! a source that Infrastructure does not describe ([`source`]).
//!
//! One event's way: a step that is woken by a Secret or a ConfigMap asks here what it means. Nothing is written and nothing kept here:
//! what is in the cluster is read from the cache, a client of a vCenter has a password that this vCenter has accepted, and what goes
//! wrong is said as the step will report it.

#![deny(missing_docs)]

pub mod credentials;
pub mod followers;
pub mod source;
pub mod vcenter;
