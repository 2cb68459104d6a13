//! The logs of containers: what a process prints, line by line with the time it was printed, and readers that follow by being
//! told of new lines. A file holds `TIME F LINE`, or `TIME P PIECE` for a piece of a line too long to wait for.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use tokio::sync::watch;

/// Longer lines are kept in pieces of this size, as container runtimes do.
const LONGEST_PIECE: usize = 16 * 1024;

/// Fixed width, so that times compare as text.
pub(super) fn stamp(time: Timestamp) -> String {
    format!("{time:.9}")
}

#[derive(Clone, Copy, Default)]
pub(super) struct Progress {
    pub length: u64,
    pub ended: bool,
}

/// One life's log, as its readers see it.
#[derive(Clone)]
pub(super) struct Log {
    pub path: PathBuf,
    pub progress: watch::Receiver<Progress>,
}

/// One life's log, as its process writes it. Dropping it ends the log.
pub(super) struct Writer {
    file: File,
    unfinished: Vec<u8>,
    progress: watch::Sender<Progress>,
}

/// Starts a log at `path`.
pub(super) fn start(path: &Path) -> io::Result<(Writer, Log)> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let file = File::create(path)?;
    let (progress, readers) = watch::channel(Progress::default());
    Ok((Writer { file, unfinished: Vec::new(), progress }, Log { path: path.to_owned(), progress: readers }))
}

impl Writer {
    /// Takes what the process printed. The write goes to the page cache and is as quick as handing it to another thread.
    pub fn print(&mut self, bytes: &[u8]) -> io::Result<()> {
        let now = stamp(Timestamp::now());
        let mut lines = Vec::with_capacity(bytes.len() + 64);
        for &byte in bytes {
            if byte == b'\n' {
                self.finish(&mut lines, &now, 'F');
            } else {
                self.unfinished.push(byte);
                if self.unfinished.len() == LONGEST_PIECE {
                    self.finish(&mut lines, &now, 'P');
                }
            }
        }
        self.write(&lines)
    }

    fn finish(&mut self, lines: &mut Vec<u8>, now: &str, tag: char) {
        lines.extend_from_slice(format!("{now} {tag} ").as_bytes());
        lines.append(&mut self.unfinished);
        lines.push(b'\n');
    }

    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        self.file.write_all(lines)?;
        let written = lines.len() as u64;
        self.progress.send_modify(|progress| progress.length += written);
        Ok(())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if !self.unfinished.is_empty() {
            let mut lines = Vec::new();
            // Without a line end at its end, as the process left it.
            self.finish(&mut lines, &stamp(Timestamp::now()), 'P');
            if let Err(error) = self.write(&lines) {
                tracing::warn!(%error, "the last line of a container's log is lost");
            }
        }
        self.progress.send_modify(|progress| progress.ended = true);
    }
}

/// Where to find a container's logs: namespace, pod, container.
type Key = (String, String, String);

/// The logs of every container that ran in a pod that still exists: this life's and the one's before.
#[derive(Default)]
pub(super) struct LogBook(Mutex<HashMap<Key, Lives>>);

struct Lives {
    uid: String,
    current: Log,
    previous: Option<Log>,
}

impl LogBook {
    /// Enters the log of a new life; the one before becomes the previous one, and the one before that is removed.
    pub fn enter(&self, namespace: &str, pod: &str, container: &str, uid: &str, log: Log) {
        let key = (namespace.to_owned(), pod.to_owned(), container.to_owned());
        let mut book = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut previous = None;
        if let Some(lives) = book.remove(&key).filter(|lives| lives.uid == uid) {
            if let Some(Err(error)) = lives.previous.map(|oldest| std::fs::remove_file(&oldest.path)) {
                tracing::debug!(%error, "an old log could not be removed");
            }
            previous = Some(lives.current);
        }
        book.insert(key, Lives { uid: uid.to_owned(), current: log, previous });
    }

    pub fn find(&self, namespace: &str, pod: &str, container: &str, previous: bool) -> Option<Log> {
        let book = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let lives = book.get(&(namespace.to_owned(), pod.to_owned(), container.to_owned()))?;
        if previous { lives.previous.clone() } else { Some(lives.current.clone()) }
    }

    pub fn forget(&self, uid: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|_, lives| lives.uid != uid);
    }
}
