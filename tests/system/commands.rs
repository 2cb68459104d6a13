//! `vmi` in a cluster: what it shows, and what its account may do there.

mod account;

use std::fs::File;
use std::io::Read as _;
use std::process::Stdio;

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

use crate::support::command::{self, Output};
use crate::support::lab::Lab;
use crate::support::openshift::PATIENCE;
use crate::support::suite::TestResult;
use crate::vmi_crd::{create, install, is, leave, report, sample};

pub use account::{
    on_the_legacy_path_the_account_may_also_relax_the_rules, on_the_native_path_the_account_may_do_what_it_needs_and_no_more,
};

/// Makes this test binary behave as the `vmi` program.
pub const AS_VMI: &str = "VMI_AS_COMMAND_LINE";

fn vmi(lab: &Lab, arguments: &[&str]) -> TestResult<Command> {
    let mut command = Command::new(vmi_lab::process::own_binary()?);
    command.env(AS_VMI, "1").env("KUBECONFIG", lab.folder().join("kubeconfig")).args(arguments).kill_on_drop(true);
    Ok(command)
}

async fn typed(lab: &Lab, arguments: &[&str]) -> TestResult<Output> {
    command::run(&mut vmi(lab, arguments)?).await
}

fn step(name: &str, number: &str, controller: &str, state: &str) -> Value {
    json!({"name": name, "number": number, "controller": controller, "state": state})
}

pub async fn status_shows_a_vmi_and_exits_as_it_stands(lab: &Lab) -> TestResult {
    let status = ["status", "-n", "default"];
    let absent = typed(lab, &status).await?;
    assert_eq!(absent.code(), 1);
    assert!(absent.stderr.contains("vmi crd | oc apply -f -"), "{}", absent.stderr);

    install(lab).await?;
    let empty = typed(lab, &status).await?;
    assert_eq!((empty.code(), empty.stdout.as_str()), (0, "there is no vmi in default\n"));
    let unknown = typed(lab, &["status", "moving", "-n", "default"]).await?;
    assert_eq!((unknown.code(), unknown.stdout.as_str()), (1, ""));
    assert!(unknown.stderr.contains("there is no vmi moving in default"), "{}", unknown.stderr);

    create(lab, "moving", &sample(), false).await?;
    report(lab, "moving", &json!({"plan": {"hash": "0123abcd", "path": "native"}})).await?;
    let planned = typed(lab, &["status", "moving", "-n", "default"]).await?;
    assert_eq!(planned.code(), 2, "{}", planned.stderr);
    assert!(planned.stdout.starts_with("default/moving: Planned, 0/20 steps done, a.example.com -> b.example.com\n"), "{}", planned.stdout);

    create(lab, "other", &sample(), false).await?;
    report(lab, "other", &json!({"plan": {"blocking": ["ETC-001"]}})).await?;
    let both = typed(lab, &status).await?;
    assert_eq!(both.code(), 3, "{}", both.stderr);
    assert!(both.stdout.contains("default/moving: Planned") && both.stdout.contains("default/other: Blocked"), "{}", both.stdout);
    let read: Value = serde_json::from_str(&typed(lab, &["status", "-n", "default", "-o", "json"]).await?.stdout)?;
    assert_eq!((&read[0]["name"], &read[0]["plan"], &read[1]["name"]), (&json!("moving"), &json!("0123abcd"), &json!("other")));

    report(lab, "other", &json!({"steps": [step("PreflightPassed", "0", "preflight", "Failed")]})).await?;
    assert_eq!(typed(lab, &status).await?.code(), 4);
    leave(lab).await
}

/// A `vmi status --watch` and the lines it prints.
struct Following {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Following {
    fn start(lab: &Lab, arguments: &[&str]) -> TestResult<Following> {
        let mut child = vmi(lab, arguments)?.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let lines = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
        Ok(Following { child, lines })
    }

    /// The next line, without its time.
    async fn line(&mut self) -> TestResult<String> {
        let line = timeout(PATIENCE, self.lines.next_line()).await??.ok_or("it has ended")?;
        let (time, told) = line.split_once(' ').ok_or("no time")?;
        assert!(time.ends_with('Z') && time.len() == "2026-01-02T03:04:05Z".len(), "{line}");
        Ok(told.to_owned())
    }
}

pub async fn status_follows_a_migration_line_by_line_and_ends_with_it(lab: &Lab) -> TestResult {
    install(lab).await?;
    let mut spec = sample();
    spec["state"] = json!("Running");
    create(lab, "moving", &spec, false).await?;
    let mut following = Following::start(lab, &["status", "moving", "-n", "default", "--watch"])?;
    assert_eq!(following.line().await?, "default/moving: Running, 0/20 steps done, a.example.com -> b.example.com");

    report(lab, "moving", &json!({"steps": [step("PreflightPassed", "0", "preflight", "Active")]})).await?;
    assert_eq!(following.line().await?, "default/moving: 0 PreflightPassed Active");
    let done = json!({"steps": [step("PreflightPassed", "0", "preflight", "Done")], "conditions": [is("PreflightPassed")]});
    report(lab, "moving", &done).await?;
    assert_eq!(following.line().await?, "default/moving: 0 PreflightPassed Done");
    assert_eq!(following.line().await?, "default/moving: 1 ClusterVersionFrozen Waiting");

    report(lab, "moving", &json!({"conditions": [is("PreflightPassed"), is("Completed")]})).await?;
    assert!(following.line().await?.starts_with("default/moving: Completed, "));
    assert_eq!(timeout(PATIENCE, following.lines.next_line()).await??, None);
    assert_eq!(timeout(PATIENCE, following.child.wait()).await??.code(), Some(0));
    leave(lab).await
}

/// Both ends of a terminal: who looks at it, and who prints there.
fn terminal() -> TestResult<(File, File)> {
    let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    grantpt(&screen)?;
    unlockpt(&screen)?;
    let program = rustix::fs::open(ptsname(&screen, Vec::new())?.as_c_str(), OFlags::RDWR | OFlags::NOCTTY, Mode::empty())?;
    Ok((screen.into(), program.into()))
}

/// All that is printed until nobody has the terminal open any more, which reads as an error.
fn everything(mut screen: File) -> String {
    let mut shown = Vec::new();
    let mut part = [0; 4096];
    while let Ok(length @ 1..) = screen.read(&mut part) {
        shown.extend_from_slice(&part[..length]);
    }
    String::from_utf8_lossy(&shown).into_owned()
}

pub async fn on_a_terminal_the_status_is_redrawn_in_colour(lab: &Lab) -> TestResult {
    install(lab).await?;
    let mut spec = sample();
    spec["state"] = json!("Running");
    create(lab, "moving", &spec, false).await?;
    let done = json!({"steps": [step("PreflightPassed", "0", "preflight", "Done")]});
    report(lab, "moving", &done).await?;

    let (screen, program) = terminal()?;
    let mut command = vmi(lab, &["status", "moving", "-n", "default", "--watch"])?;
    command.stdin(Stdio::null()).stdout(program.try_clone()?).stderr(program);
    let mut child = command.spawn()?;
    // It holds the other end open, too.
    drop(command);
    let reader = tokio::task::spawn_blocking(move || everything(screen));
    // The end comes with the migration's, whenever the program has come to look.
    report(lab, "moving", &json!({"conditions": [is("Completed")]})).await?;
    assert_eq!(timeout(PATIENCE, child.wait()).await??.code(), Some(0));
    let shown = timeout(PATIENCE, reader).await??;
    let last = shown.rsplit("\x1b[H\x1b[2J").next().unwrap_or_default();
    assert_ne!(last, shown, "it was never redrawn");
    assert!(last.starts_with("default/moving: Completed, "), "{last}");
    assert!(last.contains("\x1b[32m0 "), "what is done is not green: {last}");
    leave(lab).await
}
