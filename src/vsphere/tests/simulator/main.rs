//! Promises of the client, kept against the simulator: every call and every fault.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod actions;
mod book;
mod broken;
mod documented;
mod examples;
mod faults;
mod inventory;
mod keeping;
mod limits;
mod logs;
mod lookups;
mod pki;
mod plain;
mod privileges;
mod proxy;
mod secrets;
mod serve;
mod sessions;
mod tags;
mod tls;
mod vcsim;
mod vms;
mod wire;
