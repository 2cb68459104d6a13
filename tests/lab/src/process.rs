//! Processes that never outlive the lab they belong to.
//!
//! Every process is started through this program's own `exec` command, which asks the kernel for a SIGKILL when its parent dies
//! and then becomes the wanted program. A lab killed with -9 takes its whole tree along. What escapes even so is found by the
//! mark that each process carries in its environment.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal};

/// The environment variable that names the lab a process belongs to.
pub const MARK: &str = "VMI_LAB";

/// The hidden command of [`exec`].
pub const EXEC: &str = "exec";

/// A command for `program` that is killed when this process dies and is known as belonging to the lab `mark`.
///
/// The kernel ties a child to the *thread* that made it: spawn from the async runtime's workers, never from `spawn_blocking`.
pub fn tied(mark: &str, program: &Path) -> io::Result<tokio::process::Command> {
    let mut command = tokio::process::Command::new(own_binary()?);
    command.arg(EXEC).arg(std::process::id().to_string()).arg(program).env(MARK, mark).kill_on_drop(true);
    Ok(command)
}

/// This program's own file. Where it was replaced on disk while running, the running one is still reachable through /proc.
pub fn own_binary() -> io::Result<PathBuf> {
    let path = std::env::current_exe()?;
    if path.exists() { Ok(path) } else { Ok(PathBuf::from(format!("/proc/{}/exe", std::process::id()))) }
}

/// Becomes `program` after tying itself to `parent`; only returns if that failed.
pub fn exec(parent: u32, program: &Path, arguments: &[OsString]) -> io::Error {
    if let Err(error) = rustix::process::set_parent_process_death_signal(Some(Signal::KILL)) {
        return error.into();
    }
    // The parent may have died before the signal was asked for: then nobody would ever send it.
    if std::os::unix::process::parent_id() != parent {
        return io::Error::other("the lab ended before this process began");
    }
    std::process::Command::new(program).args(arguments).exec()
}

/// Processes, other than this one, that carry `mark`, or any lab's mark where it is `None`.
pub fn marked(mark: Option<&str>) -> io::Result<Vec<u32>> {
    let own = std::process::id();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        if pid == own {
            continue;
        }
        // Gone meanwhile, or another user's: neither is ours.
        let Ok(environment) = fs::read(format!("/proc/{pid}/environ")) else { continue };
        let prefix = format!("{MARK}=");
        let carried = environment.split(|byte| *byte == 0).find_map(|entry| entry.strip_prefix(prefix.as_bytes()));
        let belongs = match (carried, mark) {
            (Some(carried), Some(mark)) => carried == mark.as_bytes(),
            (Some(_), None) => true,
            (None, _) => false,
        };
        if belongs {
            found.push(pid);
        }
    }
    Ok(found)
}

/// Sends `signal` to a process; that it is gone already is fine.
pub fn signal(pid: u32, signal: Signal) -> io::Result<()> {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return Ok(()) };
    match rustix::process::kill_process(pid, signal) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Kills every process that carries `mark` and returns how many there were. Looks again until none is left, for a dying parent
/// may have started one more.
pub fn kill_marked(mark: &str) -> io::Result<usize> {
    let mut killed = 0;
    loop {
        let pids: Vec<u32> = marked(Some(mark))?.into_iter().filter(|pid| !is_zombie(*pid)).collect();
        if pids.is_empty() {
            return Ok(killed);
        }
        for pid in &pids {
            signal(*pid, Signal::KILL)?;
            wait_until_gone(*pid);
        }
        killed += pids.len();
    }
}

fn is_zombie(pid: u32) -> bool {
    // A zombie has no memory left, so its environment reads empty and its command line too.
    fs::read(format!("/proc/{pid}/cmdline")).map_or(true, |line| line.is_empty())
}

/// Returns when the process has ended (a zombie counts as ended), watched through a pidfd.
pub fn wait_until_gone(pid: u32) {
    let Some(raw) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return };
    let Ok(handle) = rustix::process::pidfd_open(raw, rustix::process::PidfdFlags::empty()) else { return };
    let mut poll = [rustix::event::PollFd::new(&handle, rustix::event::PollFlags::IN)];
    // A process in the kernel's hands may take its time after SIGKILL; ten seconds are more than any needs.
    let _ = rustix::event::poll(&mut poll, Some(&rustix::event::Timespec { tv_sec: 10, tv_nsec: 0 }));
}

/// Resident memory of a process in kilobytes, 0 if it is gone.
pub fn resident_kb(pid: u32) -> u64 {
    let Ok(status) = fs::read_to_string(format!("/proc/{pid}/status")) else { return 0 };
    status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|rest| rest.trim().trim_end_matches("kB").trim().parse().ok())
        .unwrap_or(0)
}
