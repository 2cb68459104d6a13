//! `vmi`, which also answers to `kubectl-vmi`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    vmi::commands::main(&arguments)
}
