//! The process that holds a lab. `up`, `rehearse` and the tests start it and hear from it, line by line, how far it is.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::signal::unix::{SignalKind, signal};

use crate::home::{self, Record};
use crate::lab::{self, Lab};
use crate::net::Block;
use crate::shape::{self, Shape};
use crate::tools::{self, Progress, Tools};
use crate::{component, net, process, requirements};

/// How long a lab may take to end of itself.
const GRACE: Duration = Duration::from_secs(60);

/// What is wanted.
#[derive(Clone, Debug)]
pub struct Order {
    pub shape: String,
    pub name: String,
    pub block: Option<Block>,
}

/// What the supervisor tells, one JSON object a line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Word {
    Progress(String),
    Ready(Box<Record>),
    Failed { message: String, code: u8 },
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The supervisor's own words, and the exit code it ended with.
    #[error("{message}")]
    Failed { message: String, code: u8 },
    #[error("cannot start the lab's process: {0}")]
    Start(#[from] io::Error),
    #[error("the lab's process ended without a word; the end of its log {log}:\n{tail}", log = .log.display())]
    Silent { log: PathBuf, tail: String },
    #[error(transparent)]
    Home(#[from] home::Error),
}

impl Error {
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Failed { code, .. } => *code,
            Error::Home(home::Error::Running(_)) => 2,
            _ => 1,
        }
    }
}

/// A lab that runs in a process of its own.
pub struct Running {
    pub record: Record,
    child: tokio::process::Child,
}

impl Running {
    /// Starts a lab and returns when it is healthy. A `tied` one ends with this process, the other outlives it.
    pub async fn start(order: &Order, tied: bool, mut tell: impl FnMut(&str)) -> Result<Running, Error> {
        // Before its log is begun anew: a running lab's is still being written.
        if home::read(&order.name).is_ok_and(|record| record.is_some_and(|record| home::is_running(&record))) {
            return Err(home::Error::Running(order.name.clone()).into());
        }
        let own = process::own_binary()?;
        let mark = home::mark(&order.name);
        let mut command = if tied { process::tied(&mark, &own)? } else { detached(&own, &mark) };
        command.env("VMI_LAB_HOME", home::folder());
        command.arg("run").arg(&order.shape).arg("--name").arg(&order.name);
        if let Some(block) = order.block {
            command.arg("--net").arg(format!("127.{}", block.0));
        }
        let log = home::log_of(&order.name);
        std::fs::create_dir_all(home::folder())?;
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(std::fs::File::create(&log)?);
        let mut child = command.spawn()?;
        let Some(stdout) = child.stdout.take() else { return Err(io::Error::other("no output to read").into()) };
        let mut lines = BufReader::new(stdout).lines();
        while let Some(line) = lines.next_line().await? {
            match serde_json::from_str(&line) {
                Ok(Word::Progress(text)) => tell(&text),
                Ok(Word::Ready(record)) => return Ok(Running { record: *record, child }),
                Ok(Word::Failed { message, code }) => {
                    child.wait().await?;
                    // Its programs end with it, but not in the same instant.
                    process::kill_marked(&mark)?;
                    return Err(Error::Failed { message, code });
                }
                Err(_) => tell(&line),
            }
        }
        Err(Error::Silent { tail: component::tail(&log, 15), log })
    }

    /// Ends the lab and leaves nothing behind.
    pub async fn stop(mut self) -> Result<(), Error> {
        if let Some(pid) = self.child.id() {
            process::signal(pid, rustix::process::Signal::TERM)?;
            // What does not end in its own time is ended below, with all that carries its mark.
            if let Ok(ended) = tokio::time::timeout(GRACE, self.child.wait()).await {
                ended?;
            }
        }
        home::forget(&self.record.name)?;
        Ok(())
    }

    /// Lets it run on after this process.
    pub fn leave(self) -> Record {
        self.record
    }
}

fn detached(own: &std::path::Path, mark: &str) -> tokio::process::Command {
    let mut command = tokio::process::Command::new(own);
    // A group of its own: an interrupt on the terminal is not meant for a lab that was left running.
    command.env(process::MARK, mark).process_group(0);
    command
}

/// Ends the lab `record` from outside: asked first, then by force.
pub async fn end(record: &Record) -> Result<(), Error> {
    process::signal(record.supervisor, rustix::process::Signal::TERM)?;
    let pid = record.supervisor;
    // Blocking is what waiting on a foreign process takes; it lasts as long as the shutdown.
    let waited = tokio::task::spawn_blocking(move || process::wait_until_gone(pid)).await;
    if let Err(error) = waited {
        return Err(io::Error::other(error).into());
    }
    home::forget(&record.name)?;
    Ok(())
}

fn say(word: &Word) {
    // Once the lab is up nobody listens any more; that is no reason to end it.
    if let Ok(line) = serde_json::to_string(word) {
        let _ = writeln!(io::stdout(), "{line}");
    }
}

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Shape(#[from] shape::Error),
    #[error(transparent)]
    Home(#[from] home::Error),
    #[error(transparent)]
    Requirements(#[from] requirements::Error),
    #[error(transparent)]
    Tools(#[from] tools::Error),
    #[error(transparent)]
    Lab(#[from] lab::Error),
    #[error("interrupted")]
    Interrupted,
}

impl Failure {
    /// 2 where another input or another machine is wanted, 1 where something broke.
    fn code(&self) -> u8 {
        match self {
            Failure::Shape(_) | Failure::Requirements(_) | Failure::Home(_) => 2,
            Failure::Tools(error) => error.exit_code(),
            Failure::Lab(error) if is_address(error) || is_death(error) => 2,
            Failure::Lab(_) | Failure::Interrupted => 1,
        }
    }
}

fn is_address(error: &lab::Error) -> bool {
    use crate::control_plane::Error as Plane;
    matches!(error, lab::Error::Net(net::Error::InUse { .. }) | lab::Error::ControlPlane(Plane::Net(net::Error::InUse { .. })))
}

fn is_death(error: &lab::Error) -> bool {
    use crate::control_plane::Error as Plane;
    matches!(
        error,
        lab::Error::Component(_) | lab::Error::ControlPlane(Plane::Component(_)) | lab::Error::Vcenter(crate::vcenter::Error::Component(_))
    )
}

/// Runs a lab until it is told to end; the body of the hidden command `run`.
pub async fn run(order: &Order) -> u8 {
    let mut terminate = match (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) {
        (Ok(terminate), Ok(interrupt)) => (terminate, interrupt),
        (Err(error), _) | (_, Err(error)) => {
            say(&Word::Failed { message: format!("cannot listen for signals: {error}"), code: 1 });
            return 1;
        }
    };
    let mut interrupted = std::pin::pin!(async {
        tokio::select! { _ = terminate.0.recv() => (), _ = terminate.1.recv() => () }
    });
    let boot = async {
        let mut progress = Progress::stderr();
        let shape = Shape::named(&order.shape)?;
        requirements::check(&home::folder())?;
        let tools = Tools::prepare(&mut progress).await?;
        let record = home::reserve(&order.name, &order.shape, order.block)?;
        Ok::<_, Failure>(Lab::boot(record, &shape, &tools, &mut |text| say(&Word::Progress(text.to_owned()))).await?)
    };
    let booted = tokio::select! {
        booted = boot => booted,
        () = &mut interrupted => Err(Failure::Interrupted),
    };
    let mut lab = match booted {
        Ok(lab) => lab,
        Err(failure) => {
            say(&Word::Failed { message: failure.to_string(), code: failure.code() });
            return failure.code();
        }
    };
    say(&Word::Ready(Box::new(lab.record.clone())));
    let code = tokio::select! {
        () = &mut interrupted => 0,
        error = lab.watch_over() => {
            tracing::error!(%error, "the lab cannot go on");
            1
        }
    };
    lab.stop().await;
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_memory_or_disk_an_address_in_use_and_a_death_at_start_end_with_2() {
        let crashes = component::Error::Crashes {
            name: "machineset-controller".to_owned(),
            pod: "openshift-machine-api/machine-api-controllers-1".to_owned(),
            times: 3,
            exit: "exit code 3".to_owned(),
            folder: PathBuf::from("/labs/native/pods"),
            tail: String::new(),
        };
        for failure in [
            Failure::Requirements(requirements::Error::Memory { available: 900 }),
            Failure::Requirements(requirements::Error::Disk { folder: PathBuf::from("/labs"), available: 20 }),
            Failure::Lab(net::Error::InUse { address: ([127, 40, 1, 2], 443).into() }.into()),
            Failure::Lab(crashes.into()),
        ] {
            assert_eq!(failure.code(), 2, "{failure}");
        }
        let missing = crate::cache::GaveUp { what: "a boot".to_owned(), waited: GRACE, missing: "a node".to_owned() };
        assert_eq!(Failure::Lab(missing.into()).code(), 1);
    }
}
