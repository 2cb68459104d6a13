//! The cloud configuration's editor against the loader of the real cloud controller manager: whatever is written means exactly what the
//! text meant before, plus or minus one vCenter; whatever that loader refuses or crashes on is refused.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends by panicking")]

mod combinations;
mod corpus;
mod loader;
mod mutations;
mod refusals;
mod words;
