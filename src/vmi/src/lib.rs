//! The command line as a library, so that tests run it without looking for a program.

pub mod client;
pub mod commands;
pub mod logging;
pub mod operator;
mod table;
