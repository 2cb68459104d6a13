//! The command line.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use crate::process;

/// Runs the command line `arguments`, the first of which is the program itself.
pub fn main(arguments: &[OsString]) -> ExitCode {
    // Not a command for people, and every process of a lab comes this way: no parser, no runtime, straight to the point.
    if let Some((parent, program, rest)) = exec_arguments(arguments) {
        let error = process::exec(parent, Path::new(program), rest);
        eprintln!("cannot start {}: {error}", Path::new(program).display());
        return ExitCode::from(127);
    }
    ExitCode::from(2)
}

fn exec_arguments(arguments: &[OsString]) -> Option<(u32, &OsString, &[OsString])> {
    match arguments {
        [_, verb, parent, program, rest @ ..] if verb == process::EXEC => Some((parent.to_str()?.parse().ok()?, program, rest)),
        _ => None,
    }
}
