//! What can go wrong before the lab has its programs, told to whoever has to put it right.

use std::io;
use std::path::{Path, PathBuf};

/// A program or manifest that could not be had.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("go {wanted} or newer is wanted to build the lab's programs and there is none: {reason}; {OTHER_WAY}")]
    NoGo { wanted: String, reason: String },
    #[error("go {wanted} or newer is wanted to build the lab's programs, this is {found}; {OTHER_WAY}")]
    OldGo { wanted: String, found: String },
    #[error("VMI_TOOLS={}: {missing} is not there; fill the folder with `vmi-lab tools --export {}` where go is at hand", folder.display(), folder.display())]
    NotReady { folder: PathBuf, missing: String },
    #[error("there is no program `{name}`; known are {known}")]
    Unknown { name: String, known: String },
    #[error("no place to keep built programs: set VMI_CACHE to a folder (neither XDG_CACHE_HOME nor HOME is set)")]
    NoCache,
    #[error(
        "the Go modules could not be fetched, tried {tries} times; look at the network and at GOPROXY (`go env GOPROXY`); go said:\n{said}"
    )]
    Network { tries: u32, said: String },
    #[error("`{command}` failed in {}:\n{said}", folder.display())]
    Go { command: String, folder: PathBuf, said: String },
    #[error("{}: {reason}", path.display())]
    Content { path: PathBuf, reason: String },
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
}

const OTHER_WAY: &str = "install it from https://go.dev/dl, or set VMI_TOOLS to a folder that `vmi-lab tools --export DIR` filled";

impl Error {
    /// 2 where the caller's machine or input has to change first, 1 where something failed on the way.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::NoGo { .. } | Error::OldGo { .. } | Error::NotReady { .. } | Error::Unknown { .. } | Error::NoCache => 2,
            Error::Network { .. } | Error::Go { .. } | Error::Content { .. } | Error::File { .. } => 1,
        }
    }

    pub(super) fn content(path: &Path, reason: impl Into<String>) -> Error {
        Error::Content { path: path.to_owned(), reason: reason.into() }
    }
}

/// Names the file in an I/O error: on its own it says no more than "not found".
pub(super) trait At<T> {
    fn at(self, path: &Path) -> Result<T, Error>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, path: &Path) -> Result<T, Error> {
        self.map_err(|source| Error::File { path: path.to_owned(), source })
    }
}
