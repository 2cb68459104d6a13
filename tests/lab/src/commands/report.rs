//! Reports are wanted at the end of long commands: that they cannot be written is said at the beginning.

use std::fs;
use std::io;
use std::path::Path;

use super::Failure;

/// Fails now where the report could not be written later. What an earlier command wrote there stays until then.
pub fn check_writable(path: &Path) -> Result<(), Failure> {
    let before = path.exists();
    fs::OpenOptions::new().create(true).append(true).open(path).map_err(|error| unwritable(path, &error))?;
    if before { Ok(()) } else { fs::remove_file(path).map_err(|error| unwritable(path, &error)) }
}

pub fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure { message: format!("cannot write the report {}: {error}", path.display()), code: 2 }
}
