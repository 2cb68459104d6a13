//! The subcommands, a module each. A new one is a `mod`, a line in [`Command`] and a line in [`Command::run`].

mod cloud_config;
mod crd;
mod explain;
mod graph;
mod operator;
mod status;

use std::error::Error;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

/// Moves a running OpenShift cluster from one vCenter to another
#[derive(Parser)]
#[command(name = "vmi", version, disable_help_subcommand = true, subcommand_required = true, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Operator(operator::Operator),
    Status(status::Status),
    Graph(graph::Graph),
    Crd(crd::Crd),
    CloudConfig(cloud_config::CloudConfig),
    Explain(explain::Explain),
}

impl Command {
    fn run(self) -> Result<Exit, Failure> {
        match self {
            Self::Operator(command) => command.run(),
            Self::Status(command) => command.run(),
            Self::Graph(command) => command.run(),
            Self::Crd(command) => command.run(),
            Self::CloudConfig(command) => command.run(),
            Self::Explain(command) => command.run(),
        }
    }
}

/// How a command ends, the graver the later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Exit {
    Ok = 0,
    /// The question could not be asked, or not be answered.
    Error = 1,
    ChangesPending = 2,
    Blocked = 3,
    Failed = 4,
}

/// Why a command ended without an answer.
pub(crate) struct Failure {
    message: String,
    exit: Exit,
}

impl Failure {
    fn refused(reason: &impl Error) -> Self {
        Self { message: reason.to_string(), exit: Exit::Blocked }
    }
}

impl<E: Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self { message: with_causes(&error), exit: Exit::Error }
    }
}

/// An error and what is behind it. Clients tell only there why a connection failed.
fn with_causes(error: &dyn Error) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        if !message.contains(&text) {
            message = format!("{message}: {text}");
        }
        cause = error.source();
    }
    message
}

/// Runs the command line `arguments`, the first of which is the program itself.
pub fn main(arguments: &[OsString]) -> ExitCode {
    let exit = match parse(arguments) {
        Ok(arguments) => arguments.command.run(),
        Err(error) => {
            // Not clap's own code: it says 2, which here means that changes are pending.
            let exit = if error.use_stderr() { Exit::Error } else { Exit::Ok };
            // Nothing can be said where even this cannot be printed.
            let _ = error.print();
            Ok(exit)
        }
    };
    let exit = exit.unwrap_or_else(|failure| {
        eprintln!("vmi: {}", failure.message);
        failure.exit
    });
    ExitCode::from(exit as u8)
}

fn parse(arguments: &[OsString]) -> Result<Arguments, clap::Error> {
    let program = arguments.first().and_then(|program| Path::new(program).file_name());
    let typed = if program.is_some_and(|name| name == "kubectl-vmi") { "kubectl vmi" } else { "vmi" };
    let matches = Arguments::command().bin_name(typed).try_get_matches_from(arguments)?;
    Arguments::from_arg_matches(&matches)
}

/// Writes to standard output. Whoever reads may stop early, as `head` does: then there is nobody left to tell anything.
fn print(text: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        result => result,
    }
}
