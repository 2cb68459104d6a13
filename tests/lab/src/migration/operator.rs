//! The operator as a process of the lab: started under its own account, killed, started again, and never left behind.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use super::{ACCOUNT, NAMESPACE, Site, account};
use crate::component::{self, Component};

/// Names the operator's program where it is not beside this one.
pub const BINARY: &str = "VMI_BINARY";
/// Short, so that a killed operator's successor does not wait for minutes: duration, renewal and retry in seconds.
const LEASE: &str = "4,3,1";
/// What the kernel counts processor time in; part of its interface, and the same everywhere.
const TICKS_PER_SECOND: f64 = 100.0;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("there is no operator to rehearse with: {looked}; build it with `cargo build --package vmi`, or name it in {BINARY}", looked = .0.iter().map(|path| format!("no {}", path.display())).collect::<Vec<_>>().join(", "))]
    NoBinary(Vec<PathBuf>),
    #[error("{BINARY} names {path}, which is no file", path = .0.display())]
    NotAFile(PathBuf),
    #[error(transparent)]
    Component(#[from] component::Error),
    #[error("cannot end the operator: {0}")]
    End(io::Error),
}

/// The operator's program: the one that VMI_BINARY names, or the one that was built beside this one.
pub fn binary() -> Result<PathBuf, Error> {
    let own = std::env::current_exe().unwrap_or_default();
    find(std::env::var_os(BINARY).map(PathBuf::from), &own)
}

fn find(named: Option<PathBuf>, own: &Path) -> Result<PathBuf, Error> {
    if let Some(path) = named.filter(|path| !path.as_os_str().is_empty()) {
        // Absolute, for the operator is started from wherever this program is.
        let path = std::path::absolute(&path).unwrap_or(path);
        return if path.is_file() { Ok(path) } else { Err(Error::NotAFile(path)) };
    }
    // Programs of tests are one folder further down than the others.
    let looked: Vec<PathBuf> = own.ancestors().skip(1).take(2).map(|folder| folder.join("vmi")).collect();
    looked.iter().find(|path| path.is_file()).cloned().ok_or(Error::NoBinary(looked))
}

/// How to start an operator.
#[derive(Clone, Debug)]
pub struct Options {
    /// By which it knows itself again after a restart; also the name of its log.
    pub identity: String,
    /// Added to its environment, `VMI_EXIT_AFTER_WRITE` for one.
    pub environment: Vec<(&'static str, String)>,
    /// Where its health and metrics are, for those who ask.
    pub admin: Option<Admin>,
    /// How long its lease lasts, is tried to be renewed, and how often, in seconds.
    pub lease: &'static str,
}

/// An address, and the folder of the certificate that is shown there.
#[derive(Clone, Debug)]
pub struct Admin {
    pub address: SocketAddr,
    pub certificate: PathBuf,
}

impl Default for Options {
    fn default() -> Options {
        Options { identity: ACCOUNT.to_owned(), environment: Vec::new(), admin: None, lease: LEASE }
    }
}

/// A running operator; it ends with this process.
pub struct Operator {
    component: Component,
    pub log: PathBuf,
}

/// What a process has used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// The most memory that was resident at once.
    pub peak_kb: u64,
    pub cpu_seconds: f64,
}

impl Operator {
    /// Starts the operator in `site` with the rights of its service account, which has to be there.
    pub async fn start(site: &Site, options: &Options) -> Result<Operator, super::Error> {
        let program = binary()?;
        let kubeconfig = account::kubeconfig(&site.client, &site.folder, site.block, NAMESPACE, ACCOUNT).await?;
        let mut arguments = ["operator", "--namespace", NAMESPACE, "--lease", options.lease].map(str::to_owned).to_vec();
        arguments.extend(match &options.admin {
            Some(Admin { address, certificate }) => vec![format!("--admin={address}"), format!("--certificate={}", certificate.display())],
            // Port 0: nobody asks it, and two operators must not meet.
            None => vec![format!("--admin={}:0", site.block.control_plane())],
        });
        let mut environment = options.environment.clone();
        environment.push(("KUBECONFIG", kubeconfig.display().to_string()));
        environment.push(("VMI_IDENTITY", options.identity.clone()));
        let logs = site.folder.join("logs");
        let component = Component::start(&site.mark, &logs, &options.identity, &program, &arguments, &environment).map_err(Error::from)?;
        Ok(Operator { component, log: logs.join(format!("{}.log", options.identity)) })
    }

    pub fn id(&self) -> Option<u32> {
        self.component.id()
    }

    /// Runs `work`, unless the operator ends first, which it never does of itself.
    pub async fn while_alive<T>(&mut self, work: impl Future<Output = Result<T, super::Error>>) -> Result<T, super::Error> {
        tokio::select! {
            result = work => result,
            error = self.component.died() => Err(Error::from(error).into()),
        }
    }

    /// Returns how it ended, when it has: with VMI_EXIT_AFTER_WRITE it kills itself.
    pub async fn ended(&mut self) -> Result<ExitStatus, Error> {
        self.component.ended().await.map_err(Error::End)
    }

    /// Ends it as a crash would.
    pub async fn kill(&mut self) -> Result<(), Error> {
        self.component.kill().await.map_err(Error::End)
    }

    /// Ends it as a rollout would.
    pub async fn stop(self) {
        self.component.stop().await;
    }

    /// What it has used; nothing once it has ended.
    pub fn usage(&self) -> Usage {
        let Some(pid) = self.component.id() else { return Usage::default() };
        let read = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
        usage(&read("status"), &read("stat"))
    }
}

/// Reads /proc/PID/status and /proc/PID/stat.
fn usage(status: &str, stat: &str) -> Usage {
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak_kb = peak.and_then(|rest| rest.trim().trim_end_matches("kB").trim().parse().ok()).unwrap_or(0);
    Usage { peak_kb, cpu_seconds: cpu_seconds(stat) }
}

/// Processor time, by /proc/PID/stat.
pub fn cpu_seconds(stat: &str) -> f64 {
    // The name, in parentheses, may hold anything; the numbers after it are the 3rd field and on.
    let numbers: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks: f64 = [11, 12].iter().filter_map(|index| numbers.get(*index)?.parse::<f64>().ok()).sum();
    ticks / TICKS_PER_SECOND
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_operator_is_found_beside_this_program_or_one_folder_up() {
        let folder = tempfile::tempdir().unwrap();
        let deps = folder.path().join("deps");
        fs::create_dir(&deps).unwrap();
        fs::write(folder.path().join("vmi"), "").unwrap();
        for own in [folder.path().join("vmi-lab"), deps.join("system-1234")] {
            assert_eq!(find(None, &own).unwrap(), folder.path().join("vmi"));
        }
    }

    #[test]
    fn a_missing_operator_is_said_with_how_to_get_one() {
        let folder = tempfile::tempdir().unwrap();
        let message = find(None, &folder.path().join("deps/vmi-lab")).unwrap_err().to_string();
        assert!(message.contains(&folder.path().join("vmi").display().to_string()), "{message}");
        assert!(message.contains("cargo build --package vmi") && message.contains(BINARY), "{message}");
    }

    #[test]
    fn a_named_operator_is_taken_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let (there, gone) = (folder.path().join("other"), folder.path().join("gone"));
        fs::write(&there, "").unwrap();
        fs::write(folder.path().join("vmi"), "").unwrap();
        assert_eq!(find(Some(there.clone()), &folder.path().join("vmi-lab")).unwrap(), there);
        assert!(find(Some(gone), &folder.path().join("vmi-lab")).unwrap_err().to_string().contains("which is no file"));
    }

    #[test]
    fn usage_is_read_whatever_the_process_is_called() {
        let stat = "42 (a ) b) S 1 42 42 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 4 0 1 2 3";
        assert_eq!(usage("Name:\tvmi\nVmHWM:\t   20480 kB\n", stat), Usage { peak_kb: 20480, cpu_seconds: 3.0 });
    }
}
