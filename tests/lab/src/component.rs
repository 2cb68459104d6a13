//! A long-running program of the lab, started by the supervisor itself: its process, its log, and what to say when it dies.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};

use crate::process;

pub struct Component {
    pub name: String,
    log: PathBuf,
    child: tokio::process::Child,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot start {name}: {source}")]
    Start { name: String, source: io::Error },
    #[error("{name} ended ({status}); the end of its log {log}:\n{tail}", log = .log.display())]
    Died { name: String, status: ExitStatus, log: PathBuf, tail: String },
}

impl Component {
    /// Starts `program`, tied to this process, with both its outputs in `logs/NAME.log`.
    pub fn start(
        mark: &str,
        logs: &Path,
        name: &str,
        program: &Path,
        arguments: &[String],
        environment: &[(&str, String)],
    ) -> Result<Component, Error> {
        let explain = |source| Error::Start { name: name.to_owned(), source };
        let log = logs.join(format!("{name}.log"));
        let file = OpenOptions::new().create(true).append(true).open(&log).map_err(explain)?;
        let mut command = process::tied(mark, program).map_err(explain)?;
        command.args(arguments).envs(environment.iter().map(|(key, value)| (*key, value.as_str())));
        command.stdin(Stdio::null()).stderr(file.try_clone().map_err(explain)?).stdout(file);
        let child = command.spawn().map_err(explain)?;
        Ok(Component { name: name.to_owned(), log, child })
    }

    /// Returns when the program has ended, which no program of the lab does of itself.
    pub async fn died(&mut self) -> Error {
        match self.child.wait().await {
            Ok(status) => Error::Died { name: self.name.clone(), status, tail: tail(&self.log, 15), log: self.log.clone() },
            Err(source) => Error::Start { name: self.name.clone(), source },
        }
    }

    /// Runs `work`, unless the program ends first.
    pub async fn while_alive<T, E: From<Error>>(&mut self, work: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        tokio::select! {
            result = work => result,
            error = self.died() => Err(error.into()),
        }
    }

    /// Ends the program: SIGTERM, then SIGKILL where it does not listen.
    pub async fn stop(mut self) {
        if let Some(pid) = self.child.id() {
            let _ = process::signal(pid, rustix::process::Signal::TERM);
        }
        if tokio::time::timeout(std::time::Duration::from_secs(3), self.child.wait()).await.is_err() {
            let _ = self.child.kill().await;
        }
    }
}

/// Returns when one of the programs has ended.
pub async fn any_died(components: &mut [Component]) -> Error {
    let deaths = components.iter_mut().map(|component| Box::pin(component.died()));
    futures::future::select_all(deaths).await.0
}

/// The last lines of a file, or why it cannot be read.
pub fn tail(path: &Path, lines: usize) -> String {
    let read = || -> io::Result<String> {
        let mut file = File::open(path)?;
        let length = fs::metadata(path)?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(16 * 1024)))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    match read() {
        Ok(text) if text.trim().is_empty() => "  (empty)".to_owned(),
        Ok(text) => {
            let all: Vec<&str> = text.lines().collect();
            all[all.len().saturating_sub(lines)..].iter().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
        }
        Err(error) => format!("  (cannot be read: {error})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_of_a_log_is_its_last_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.log");
        fs::write(&path, "one\ntwo\nthree\n").unwrap();
        assert_eq!(tail(&path, 2), "  two\n  three");
        assert!(tail(&folder.path().join("none"), 2).contains("cannot be read"));
    }
}
