//! Standard output, whose reader may leave early, as `head` does: what is left to say is then said to nobody, and the command goes
//! on to its own end.

use std::fmt::Display;
use std::io::{self, Write as _};

/// Prints a line.
pub fn line(text: impl Display) {
    told(writeln!(io::stdout(), "{text}"));
}

/// Prints bytes as they are.
pub fn raw(bytes: &[u8]) {
    told(io::stdout().write_all(bytes));
}

fn told(result: io::Result<()>) {
    match result {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => eprintln!("vmi-lab: cannot write to standard output: {error}"),
        _ => {}
    }
}
