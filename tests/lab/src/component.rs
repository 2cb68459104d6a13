//! A long-running program of the lab, started by the supervisor itself: its process, its log, and what to say when it dies.

pub mod pods;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};

use crate::process;

pub struct Component {
    pub name: String,
    log: PathBuf,
    child: tokio::process::Child,
    recipe: Recipe,
}

/// How to start it once more.
struct Recipe {
    mark: String,
    program: PathBuf,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot start {name}: {source}")]
    Start { name: String, source: io::Error },
    #[error("{name} ended ({status}); the end of its log {log}:\n{tail}", log = .log.display())]
    Died { name: String, status: ExitStatus, log: PathBuf, tail: String },
    #[error("{name} of pod {pod} ended whenever it was started, {times} times by now ({exit}); the end of its log, which is below {folder}:\n{tail}", folder = .folder.display())]
    Crashes { name: String, pod: String, times: i64, exit: String, folder: PathBuf, tail: String },
}

/// How much of a log is shown with a death.
const SHOWN: usize = 15;

impl Recipe {
    fn spawn(&self, log: &Path) -> io::Result<tokio::process::Child> {
        let file = OpenOptions::new().create(true).append(true).open(log)?;
        let mut command = process::tied(&self.mark, &self.program)?;
        // What the lab runs is on this machine's loopback addresses: a proxy that the environment names cannot know them.
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"] {
            command.env_remove(name);
        }
        command.args(&self.arguments).envs(self.environment.iter().map(|(key, value)| (key, value)));
        command.stdin(Stdio::null()).stderr(file.try_clone()?).stdout(file);
        command.spawn()
    }
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
        let log = logs.join(format!("{name}.log"));
        let recipe = Recipe {
            mark: mark.to_owned(),
            program: program.to_owned(),
            arguments: arguments.to_vec(),
            environment: environment.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect(),
        };
        let child = recipe.spawn(&log).map_err(|source| Error::Start { name: name.to_owned(), source })?;
        Ok(Component { name: name.to_owned(), log, child, recipe })
    }

    /// Ends the program as a crash would and starts it again after `pause`.
    pub async fn restart(&mut self, pause: std::time::Duration) -> Result<(), Error> {
        let explain = |source| Error::Start { name: self.name.clone(), source };
        self.child.kill().await.map_err(explain)?;
        tokio::time::sleep(pause).await;
        self.child = self.recipe.spawn(&self.log).map_err(explain)?;
        Ok(())
    }

    /// Returns when the program has ended, which no program of the lab does of itself.
    pub async fn died(&mut self) -> Error {
        match self.child.wait().await {
            Ok(status) => Error::Died { name: self.name.clone(), status, tail: tail(&self.log, SHOWN), log: self.log.clone() },
            Err(source) => Error::Start { name: self.name.clone(), source },
        }
    }

    /// Its process; none once it has ended and been waited for.
    pub fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Returns how the program ended, when it has.
    pub async fn ended(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Ends the program as a crash would: SIGKILL, no time to say anything.
    pub async fn kill(&mut self) -> io::Result<()> {
        self.child.kill().await
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
    last_lines(read(), lines)
}

fn last_lines(text: Result<String, impl std::fmt::Display>, lines: usize) -> String {
    match text {
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
