//! A client for the parts of vSphere that a migration between vCenters needs: sessions, inventory, folders, tags,
//! privileges, tasks. SOAP (`/sdk`) for the inventory, REST for tags.
//!
//! - One session per vCenter, shared by all callers, made when needed, ended when idle and at the end. A refused password
//!   is sent exactly once.
//! - The inventory in one read, whatever its size.
//! - Failures are types with the server's own words and the operation id under which vCenter logged the call.
//! - Every call is one structured event (target `vsphere::call`) and stays in a bounded memory, [`Calls`]. Passwords, cookies
//!   and session ids are nowhere in any output, at any level.
//!
//! It speaks to vCenter 7.0.2, 8.0 and 9.0. It is tested against a simulator and has never been run against a real vCenter.
//!
//! Begin at [`Client`].

#![deny(missing_docs)]

mod about;
mod bodies;
mod certificate;
mod client;
mod error;
mod fault;
mod find;
mod folder;
#[cfg(test)]
mod fuzz;
mod groups;
mod http;
mod inventory;
mod keeper;
mod login;
mod pool;
mod privileges;
mod proxy;
mod reference;
mod refusals;
mod rest;
mod retrieve;
mod secret;
mod session;
mod settings;
mod soap;
mod spelling;
mod tags;
mod task;
mod trust;
mod turns;
mod uuid;
mod vm;
mod wire;
mod xml;

pub use about::{About, Clock};
pub use certificate::{Certificate, NotAThumbprint, Thumbprint};
pub use client::Client;
pub use error::{Error, Fault, Result};
pub use find::Identity;
pub use folder::EnsuredFolder;
pub use groups::HostGroup;
pub use inventory::{
    Cluster, Datacenter, Datastore, Folder, Host, Inventory, Network, Node, Reach, ResourcePool, Seen, Unreadable, Vm, Want, escape_name,
    only_one,
};
pub use keeper::KeepAlive;
pub use pool::Pool;
pub use privileges::Missing;
pub use proxy::Proxy;
pub use reference::{Kind, NotAReference, Ref};
pub use refusals::Refusals;
pub use secret::Secret;
pub use settings::{Credentials, Deadlines, Endpoint, Settings};
pub use tags::{Cardinality, Category, CategorySpec, Tag, Tags};
pub use task::Progress;
pub use trust::Trust;
pub use uuid::{NotAUuid, Uuid};
pub use vm::VmDetails;
pub use wire::{Call, Calls};
