//! The lab's command line, as a user runs it.

use std::path::Path;
use std::process::{ExitStatus, Stdio};

use crate::support::suite::TestResult;

/// Makes this test binary behave as the `vmi-lab` program.
pub const AS_COMMAND_LINE: &str = "VMI_LAB_AS_COMMAND_LINE";

/// What a command left.
pub struct Output {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Output {
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or(-1)
    }

    /// Fails, with all the command said, unless it ended well.
    pub fn success(self) -> TestResult<Output> {
        if self.status.success() {
            return Ok(self);
        }
        Err(format!("ended with {}\nstdout:\n{}\nstderr:\n{}", self.status, self.stdout, self.stderr).into())
    }
}

/// Runs `vmi-lab ARGUMENTS` with its labs below `home`.
pub async fn vmi_lab(home: &Path, arguments: &[&str]) -> TestResult<Output> {
    run(vmi_lab_command(home)?.args(arguments)).await
}

/// `vmi-lab`, to be given arguments.
pub fn vmi_lab_command(home: &Path) -> TestResult<tokio::process::Command> {
    let mut command = tokio::process::Command::new(vmi_lab::process::own_binary()?);
    command.env(AS_COMMAND_LINE, "1").env("VMI_LAB_HOME", home);
    Ok(command)
}

pub async fn run(command: &mut tokio::process::Command) -> TestResult<Output> {
    let output = command.stdin(Stdio::null()).kill_on_drop(true).output().await?;
    Ok(Output {
        status: output.status,
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}
