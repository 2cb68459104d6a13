//! One life of a container: a process, its log, its end.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::logs::Writer;
use crate::process;

/// What to start. Not printable: the environment may hold secrets.
#[derive(Clone)]
pub(super) struct Launch {
    pub program: PathBuf,
    pub arguments: Vec<String>,
    pub environment: BTreeMap<String, String>,
    pub directory: PathBuf,
    pub mark: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Exit {
    pub code: i32,
    pub signal: Option<i32>,
    pub reason: &'static str,
    pub message: Option<String>,
}

impl Launch {
    /// The command with nothing of the lab's own environment but the mark that ties it to the lab.
    pub fn command(&self, program: &Path, arguments: &[String]) -> io::Result<Command> {
        let mut command = process::tied(&self.mark, program)?;
        command.args(arguments).env_clear().envs(&self.environment).env(process::MARK, &self.mark);
        // A group of its own: what the process leaves behind goes with it, as it would with a container.
        command.current_dir(&self.directory).stdin(Stdio::null()).process_group(0);
        Ok(command)
    }
}

/// Kills what is left of a process group when dropped, also when its task is aborted.
pub(super) struct Group(Option<Pid>);

impl Group {
    pub fn of(child: &Child) -> Group {
        Group(child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw))
    }

    fn kill(&self) {
        if let Some(group) = self.0
            && let Err(error) = kill_process_group(group, Signal::KILL)
            && error != rustix::io::Errno::SRCH
        {
            tracing::warn!(%error, "a container's processes could not be killed");
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Exit {
    /// The end of a container whose process could not even be started.
    pub fn not_started(program: &Path, error: &io::Error) -> Exit {
        Exit { code: 128, signal: None, reason: "StartError", message: Some(format!("cannot run {}: {error}", program.display())) }
    }
}

/// A started process and its unread output.
pub(super) struct Process {
    child: Child,
    group: Group,
    output: Receiver,
}

/// Starts the process. To be called on a worker of the async runtime, see [`process::tied`].
pub(super) fn start(launch: &Launch) -> io::Result<Process> {
    if !launch.program.is_file() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "there is no such program"));
    }
    let (output, printed) = std::io::pipe()?;
    let mut command = launch.command(&launch.program, &launch.arguments)?;
    // The command holds this side's ends of the pipe, and the output only ends when all of them are closed, as they are below.
    let child = command.stdout(printed.try_clone()?).stderr(printed).spawn()?;
    Ok(Process { group: Group::of(&child), child, output: Receiver::from_owned_fd(output.into())? })
}

impl Process {
    pub fn pid(&self) -> u32 {
        self.child.id().unwrap_or(0)
    }

    /// Returns when the process has ended and all it printed is in `log`. A moment sent to `stop` asks it to end by then:
    /// SIGTERM now, SIGKILL at that moment.
    pub async fn end(self, log: Writer, stop: watch::Receiver<Option<Instant>>) -> Exit {
        match self.wait(log, stop).await {
            Ok(status) => exit(status),
            Err(error) => Exit { code: 255, signal: None, reason: "ContainerStatusUnknown", message: Some(error.to_string()) },
        }
    }

    async fn wait(mut self, log: Writer, mut stop: watch::Receiver<Option<Instant>>) -> io::Result<ExitStatus> {
        let mut copying = JoinSet::new();
        copying.spawn(copy_output(self.output, log));
        let mut deadline = None;
        let status = loop {
            tokio::select! {
                status = self.child.wait() => break status?,
                Ok(()) = stop.changed() => {
                    if deadline.is_none() && let Some(pid) = self.child.id() {
                        process::signal(pid, Signal::TERM)?;
                    }
                    deadline = *stop.borrow_and_update();
                }
                () = tokio::time::sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => {
                    self.child.start_kill()?;
                    deadline = None;
                }
            }
        };
        self.group.kill();
        // A process that left the group may keep the pipe open for ever; what the container printed itself is in the pipe by now.
        if tokio::time::timeout(Duration::from_secs(2), copying.join_next()).await.is_err() {
            tracing::warn!("something a container started outlives it and holds its output");
        }
        Ok(status)
    }
}

/// Copies a process's output into its log until the last one who could print has gone.
async fn copy_output(mut output: Receiver, mut log: Writer) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let copied = match output.read(&mut buffer).await {
            Ok(0) => return,
            Ok(read) => log.print(&buffer[..read]),
            Err(error) => Err(error),
        };
        if let Err(error) = copied {
            tracing::error!(%error, "a container's output is lost from here on: is the disk full?");
            return;
        }
    }
}

fn exit(status: ExitStatus) -> Exit {
    use std::os::unix::process::ExitStatusExt as _;
    let signal = status.signal();
    let code = status.code().unwrap_or_else(|| 128 + signal.unwrap_or(0));
    Exit { code, signal, reason: if code == 0 { "Completed" } else { "Error" }, message: None }
}
