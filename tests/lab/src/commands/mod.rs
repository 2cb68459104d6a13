//! The command line: one file per command with something to say.

mod bench;
mod bench_logs;
mod fault;
mod logs;
mod rehearse;
mod report;
mod status;
mod up;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use vmi_crds::spec::SourceRetirement;

use crate::net::Block;
use crate::supervisor::{self, Order};
use crate::tools::Tools;
use crate::{control_plane, faults, home, migration, output, process, shape, standins, tools, vcenter};

/// A data centre in a box: OpenShift's real controllers and simulated vCenters on one machine.
#[derive(Parser)]
#[command(name = "vmi-lab", disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Boot a lab and leave it running
    Up {
        shape: String,
        /// What to call it [default: the shape's name]
        #[arg(long)]
        name: Option<String>,
        /// Its block of loopback addresses, as 127.N [default: a free one]
        #[arg(long)]
        net: Option<String>,
    },
    /// Show what runs
    Status {
        #[arg(long)]
        name: Option<String>,
    },
    /// Print the log of a program or container
    Logs {
        component: String,
        #[arg(long)]
        name: Option<String>,
    },
    /// Break something in a running lab, and lift it again
    Fault {
        #[command(subcommand)]
        verb: fault::Verb,
        #[arg(long, global = true)]
        name: Option<String>,
    },
    /// Fill a vCenter of a running lab with virtual machines that can only be looked at
    Crowd {
        vcenter: String,
        count: u32,
        #[arg(long)]
        name: Option<String>,
    },
    /// End a lab and leave nothing behind, also after a crash
    Down {
        #[arg(long)]
        name: Option<String>,
        /// Every lab of this user
        #[arg(long)]
        all: bool,
    },
    /// List the shapes a lab can have
    Shapes,
    /// Print the path of a lab's kubeconfig
    Kubeconfig {
        #[arg(long)]
        name: Option<String>,
    },
    /// Run kubectl against a lab
    Kubectl {
        #[arg(long)]
        name: Option<String>,
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Boot a lab, move its cluster to the second vCenter, and look at the cluster itself
    Rehearse {
        #[arg(default_value = "native")]
        shape: String,
        /// Grow the cluster by the second vCenter instead, and keep the first
        #[arg(long)]
        keep_source: bool,
        /// Turn back on the way, and compare the cluster with how it was before
        #[arg(long, conflicts_with = "boot_only")]
        rollback: bool,
        /// The step at which to turn back, by the name of its condition [default: PodsHealthy]
        #[arg(long, value_name = "STEP", conflicts_with = "boot_only")]
        rollback_at: Option<String>,
        /// Boot the lab and check it, but do not migrate
        #[arg(long)]
        boot_only: bool,
        /// Write the report, JSON, to this file
        #[arg(long)]
        report: Option<PathBuf>,
        /// Leave the lab running
        #[arg(long)]
        keep: bool,
        /// Only look whether these words make sense
        #[arg(long, hide = true)]
        check_words: bool,
    },
    /// Measure the vSphere client beside govmomi
    Bench {
        /// Only these, such as 500_uuids or log_matching [default: all]
        cases: Vec<String>,
        /// Write the report, JSON, to this file
        #[arg(long)]
        report: Option<PathBuf>,
        /// Once and with few machines: shows that every figure is there, and says nothing about speed
        #[arg(long)]
        quick: bool,
    },
    /// Build what is missing of the programs the lab runs, and list them
    Tools {
        /// Copy them, with OpenShift's manifests, into a folder for VMI_TOOLS
        #[arg(long)]
        export: Option<PathBuf>,
        /// Print the path of one program, building it first if need be
        #[arg(long, conflicts_with = "export")]
        print: Option<String>,
    },
    #[command(hide = true)]
    Run {
        shape: String,
        #[arg(long)]
        name: String,
        #[arg(long)]
        net: Option<String>,
    },
    #[command(hide = true)]
    StandIn {
        name: String,
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
}

/// What ended a command, and its exit code: 2 where another input or machine is wanted, 1 where something broke.
struct Failure {
    message: String,
    code: u8,
}

impl Failure {
    fn of(error: &dyn std::error::Error, code: u8) -> Failure {
        Failure { message: error.to_string(), code }
    }
}

macro_rules! failures {
    ($($error:ty => $code:expr),* $(,)?) => { $(impl From<$error> for Failure {
        fn from(error: $error) -> Failure {
            let code: fn(&$error) -> u8 = $code;
            Failure::of(&error, code(&error))
        }
    })* };
}

failures! {
    home::Error => |_| 2,
    shape::Error => |_| 2,
    crate::requirements::Error => |_| 2,
    crate::net::Error => |_| 2,
    tools::Error => tools::Error::exit_code,
    supervisor::Error => supervisor::Error::exit_code,
    control_plane::Error => |_| 1,
    crate::kubernetes::Error => |_| 1,
    standins::Error => |_| 1,
    faults::Error => |error| if error.is_input() { 2 } else { 1 },
    vcenter::Error => |error| if matches!(error, vcenter::Error::Refused { .. }) { 2 } else { 1 },
    migration::operator::Error => |_| 2,
    migration::Error => |_| 1,
    std::io::Error => |_| 1,
}

/// Whether these arguments are one of the verbs that a lab starts its own processes with.
pub fn is_for_a_lab(arguments: &[OsString]) -> bool {
    arguments.get(1).is_some_and(|verb| ["exec", "run", "stand-in"].iter().any(|known| verb == known))
}

/// Runs the command line `arguments`, the first of which is the program itself.
pub fn main(arguments: &[OsString]) -> ExitCode {
    // Not a command for people, and every process of a lab comes this way: no parser, no runtime, straight to the point.
    if let Some((parent, program, rest)) = exec_arguments(arguments) {
        let error = process::exec(parent, Path::new(program), rest);
        eprintln!("cannot start {}: {error}", Path::new(program).display());
        return ExitCode::from(127);
    }
    let parsed = match Arguments::try_parse_from(arguments) {
        Ok(parsed) => parsed,
        Err(error) => {
            let code = u8::try_from(error.exit_code()).unwrap_or(2);
            // Nothing can be said where even this cannot be printed.
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    let filter = tracing_subscriber::EnvFilter::try_from_env("VMI_LAB_LOG").unwrap_or_else(|_| "info,kube=warn".into());
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(false).init();
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("cannot start: {error}");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(command(parsed.command)) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            eprintln!("vmi-lab: {}", failure.message);
            ExitCode::from(failure.code)
        }
    }
}

fn exec_arguments(arguments: &[OsString]) -> Option<(u32, &OsString, &[OsString])> {
    match arguments {
        [_, verb, parent, program, rest @ ..] if verb == process::EXEC => Some((parent.to_str()?.parse().ok()?, program, rest)),
        _ => None,
    }
}

async fn command(command: Command) -> Result<u8, Failure> {
    match command {
        Command::Up { shape, name, net } => up::up(order(shape, name, net.as_deref())?).await?,
        Command::Status { name } => status::status(name.as_deref()).await?,
        Command::Logs { component, name } => logs::logs(&home::choose(name.as_deref())?, &component).await?,
        Command::Fault { verb, name } => fault::fault(&home::choose(name.as_deref())?, &verb).await?,
        Command::Crowd { vcenter, count, name } => {
            let control = vcenter::Control { socket: home::of(&home::choose(name.as_deref())?.name).join("vcsim.sock") };
            control.post(&format!("/vcenters/{vcenter}/crowd"), &serde_json::json!({"count": count})).await?;
        }
        Command::Down { name, all } => up::down(name.as_deref(), all).await?,
        Command::Shapes => {
            for name in shape::names() {
                output::line(format_args!("{name:<14} {}", shape::Shape::named(name)?.about));
            }
        }
        Command::Kubeconfig { name } => output::line(format_args!("{}", kubeconfig(&home::choose(name.as_deref())?).display())),
        Command::Kubectl { name, arguments } => return kubectl(&home::choose(name.as_deref())?, &arguments).await,
        Command::Rehearse { shape, keep_source, rollback, rollback_at, boot_only, report, keep, check_words } => {
            let source = if keep_source { SourceRetirement::Keep } else { SourceRetirement::Remove };
            let way = rehearse::Way::of(source, rollback, rollback_at.as_deref(), boot_only)?;
            let (shape, way) = rehearse::asked(&shape, way, report.as_deref())?;
            if !check_words {
                return rehearse::rehearse(&shape, source, way, report.as_deref(), keep).await;
            }
        }
        Command::Bench { cases, report, quick } => bench::bench(&cases, report.as_deref(), quick).await?,
        Command::Tools { export: _, print: Some(name) } => tools::print(&name).await?,
        Command::Tools { export, print: None } => tools::command(export).await?,
        Command::Run { shape, name, net } => return Ok(supervisor::run(&order(shape, Some(name), net.as_deref())?).await),
        Command::StandIn { name, arguments } => {
            let path = std::env::var_os("KUBECONFIG").map(PathBuf::from).unwrap_or_default();
            standins::run(&name, control_plane::client(&path).await?, &arguments).await?;
        }
    }
    Ok(0)
}

fn order(shape: String, name: Option<String>, net: Option<&str>) -> Result<Order, Failure> {
    shape::Shape::named(&shape)?;
    let block = net.map(Block::parse).transpose()?;
    let name = name.unwrap_or_else(|| shape.clone());
    home::check_name(&name)?;
    Ok(Order { name, shape, block })
}

fn kubeconfig(record: &home::Record) -> PathBuf {
    home::of(&record.name).join("kubeconfig")
}

async fn kubectl(record: &home::Record, arguments: &[OsString]) -> Result<u8, Failure> {
    let program = Tools::prepare_one("kubectl", &mut tools::Progress::stderr()).await?;
    let status = tokio::process::Command::new(program).args(arguments).env("KUBECONFIG", kubeconfig(record)).status().await?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}
