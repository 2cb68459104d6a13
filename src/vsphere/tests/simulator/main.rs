//! Promises of the client, kept against the simulator: every call and every fault.

mod actions;
mod documented;
mod faults;
mod inventory;
mod limits;
mod lookups;
mod pki;
mod privileges;
mod proxy;
mod secrets;
mod serve;
mod sessions;
mod tags;
mod tls;
mod vcsim;
mod wire;
