//! How the steps of a migration are taken, the same way by every controller.
//!
//! One event's way: the cache of the kit wakes the controllers that touch the kind ([`driver`]); each looks at every vmi once
//! ([`migration`]), takes its steps in order ([`step`]): is it its turn ([`vmi_crds::turn`])? what is there ([`step::Step::observe`])? one
//! act ([`change`]), through the fence ([`writer`]), what it changes saved before ([`saved`]); and applies what it owns of the status
//! ([`report`]). That write is the next controller's event.

#![deny(missing_docs)]

pub mod active;
pub mod calls;
pub mod change;
pub mod drift;
pub mod driver;
pub mod migration;
mod outcome;
pub mod report;
pub mod saved;
pub mod step;
pub mod writer;
pub mod writes;

pub use driver::Controller;
pub use migration::Migration;
pub use report::Report;
pub use step::{Seen, Step, Wake, take};
pub use writer::Writer;
