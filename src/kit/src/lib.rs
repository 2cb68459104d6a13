//! What every controller of a migration shares.
//!
//! One event's way: a watch tells the [`cache`], which wakes the controllers that touch the kind ([`driver`]); each looks at every
//! vmi once, takes its steps in order ([`step`]): is it its turn ([`vmi_crds::turn`])? what is there ([`step::Step::observe`])? one act,
//! through the fence ([`writer`]); and applies what it owns of the status ([`report`]). That write is the next controller's event.

#![deny(missing_docs)]

pub mod active;
pub mod cache;
pub mod calls;
pub mod change;
pub mod context;
pub mod denials;
pub mod drift;
pub mod driver;
pub mod failure;
pub mod kind;
mod lane;
pub mod leader;
pub mod metrics;
pub mod migration;
mod outcome;
pub mod report;
pub mod saved;
pub mod step;
pub mod text;
pub mod touch;
pub mod trial;
pub mod vcenters;
pub mod writer;
pub mod writes;

pub use context::Context;
pub use driver::Controller;
pub use failure::{Stop, failure};
pub use kind::Kind;
pub use migration::Migration;
pub use report::Report;
pub use step::{Seen, Step, Wake, take};
pub use touch::{OWN, Touch, reads};
pub use writer::Writer;
