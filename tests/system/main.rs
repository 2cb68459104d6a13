//! Whole-system tests. `cargo test -p vmi-system-tests --test system -- [quick|ci|full] [WORD...]` runs those of that depth
//! whose names hold one of the words; each shape's lab is booted once and shared by the tests that leave it as it was.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends by panicking")]

mod support;

use std::process::ExitCode;

use support::suite::{self, Suite};

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    // This binary is the lab's own program too: its supervisor, its stand-ins, and the command line under test.
    if vmi_lab::commands::is_for_a_lab(&arguments) || std::env::var_os(support::command::AS_COMMAND_LINE).is_some() {
        return vmi_lab::commands::main(&arguments);
    }
    suite::main(&arguments, all())
}

fn all() -> Suite {
    let mut suite = Suite::default();
    suite
}
