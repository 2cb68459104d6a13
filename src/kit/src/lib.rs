//! The ground that the operator stands on: what every controller works with, whatever its steps are.
//!
//! One event's way: a watch of a kind that a controller touches ([`touch`], [`kind`]) tells the [`cache`], and the cache whoever waits for
//! that kind. What they need besides is in the [`Context`]: the cluster, the vmis as last read, whether this process leads ([`leader`]),
//! and what it shares of the vCenters ([`vcenters`], [`trial`]). Whoever cannot go on says why with a [`Stop`].

#![deny(missing_docs)]

mod answers;
pub mod cache;
pub mod context;
pub mod denials;
pub mod failure;
pub mod kind;
pub mod lane;
pub mod leader;
pub mod metrics;
pub mod text;
pub mod touch;
pub mod trial;
pub mod vcenters;

pub use context::Context;
pub use failure::{Stop, failure};
pub use kind::Kind;
pub use touch::{OWN, Touch, reads};
