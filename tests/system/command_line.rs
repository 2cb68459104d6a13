//! The lab's command line: what it says, how it ends, and that nothing outlives a lab.

mod machine;

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

pub use machine::{
    a_program_that_dies_at_start_in_a_pod_is_shown_with_the_end_of_its_log, a_program_that_dies_at_start_is_shown_with_the_end_of_its_log,
    an_address_in_use_is_named, too_little_disk_is_said_before_anything_is_built,
};
use rustix::process::Signal;
use vmi_lab::home::Record;
use vmi_lab::net::{self, Block};
use vmi_lab::process;

use crate::support::command::{self, Output};
use crate::support::lab::Lab;
use crate::support::suite::TestResult;

/// A folder of labs that one test has for itself; whatever still runs in it ends with it.
pub struct Home {
    folder: tempfile::TempDir,
}

impl Home {
    pub fn new() -> TestResult<Home> {
        Ok(Home { folder: tempfile::Builder::new().prefix("vmi-labs-").tempdir()? })
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// `vmi-lab ARGUMENTS` among these labs.
    pub async fn run(&self, arguments: &[&str]) -> TestResult<Output> {
        command::vmi_lab(self.path(), arguments).await
    }

    fn record(&self, name: &str) -> TestResult<Record> {
        Ok(serde_json::from_slice(&fs::read(self.path().join(name).join("lab.json"))?)?)
    }

    /// Processes of any of these labs.
    pub fn processes(&self) -> TestResult<Vec<u32>> {
        let mark = format!("{}={}/", process::MARK, self.path().display());
        let belongs = |pid: &u32| {
            // One that has ended meanwhile does not belong to a lab any more.
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|entry| entry.starts_with(mark.as_bytes()))
        };
        Ok(process::marked(None)?.into_iter().filter(belongs).collect())
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        for pid in self.processes().unwrap_or_default() {
            // Here only after a failed test, which has said what is wrong already.
            let _ = process::signal(pid, Signal::KILL);
            process::wait_until_gone(pid);
        }
    }
}

/// Fails unless the command ended with 2 and said each of `words`.
fn refused(output: &Output, words: &[&str]) {
    assert_eq!(output.code(), 2, "{}{}", output.stdout, output.stderr);
    for word in words {
        assert!(output.stderr.contains(word), "{word:?} is missing in: {}", output.stderr);
    }
}

/// Fails unless nobody listens where the lab in `block` did.
fn nobody_listens(block: Block) -> TestResult {
    for port in [6443, 2379, 2380, 10250] {
        net::check_free(SocketAddr::new(block.control_plane(), port))?;
    }
    Ok(())
}

pub async fn an_unknown_shape_is_refused_with_the_known_ones() -> TestResult {
    let home = Home::new()?;
    for verb in ["up", "rehearse"] {
        refused(&home.run(&[verb, "nativ"]).await?, &["there is no shape \"nativ\"", "native", "legacy-yaml", "plain"]);
    }
    let shapes = home.run(&["shapes"]).await?.success()?;
    for name in vmi_lab::shape::names() {
        assert!(shapes.stdout.lines().any(|line| line.starts_with(name)), "{}", shapes.stdout);
    }
    Ok(())
}

pub async fn a_wrong_name_or_block_is_refused_with_what_is_wanted() -> TestResult {
    let home = Home::new()?;
    for name in ["two words", "under_score", "a-name-of-more-than-24-letters", ""] {
        refused(&home.run(&["up", "plain", "--name", name]).await?, &["cannot be a lab's name", "letters, digits and dashes"]);
    }
    for block in ["127.0", "127.221", "10.31", "nonsense"] {
        refused(&home.run(&["up", "plain", "--net", block]).await?, &[block, "127.N with N from 30 to 220"]);
    }
    refused(&home.run(&["upp", "plain"]).await?, &["upp"]);
    assert!(home.processes()?.is_empty());
    Ok(())
}

pub async fn a_name_never_leads_out_of_the_folder_of_labs() -> TestResult {
    let home = Home::new()?;
    let labs = home.path().join("labs");
    let beside = home.path().join("beside");
    fs::create_dir(&labs)?;
    fs::create_dir(&beside)?;
    for name in ["../beside", "..", "."] {
        for verb in [["up", "plain"].as_slice(), &["down"], &["status"], &["logs", "etcd"], &["kubeconfig"]] {
            let arguments = [verb, &["--name", name]].concat();
            refused(&command::vmi_lab(&labs, &arguments).await?, &["cannot be a lab's name"]);
        }
    }
    assert!(beside.exists() && labs.exists());
    assert_eq!(fs::read_dir(home.path())?.count(), 2);
    Ok(())
}

pub async fn up_says_what_to_type_next_and_down_leaves_nothing() -> TestResult {
    let home = Home::new()?;
    let up = home.run(&["up", "plain"]).await?.success()?;
    let kubeconfig = home.path().join("plain/kubeconfig").display().to_string();
    for words in ["lab plain is up after", &kubeconfig, "next:", "vmi-lab kubectl get nodes", "vmi-lab status", "vmi-lab down"] {
        assert!(up.stdout.contains(words), "{words:?} is missing in: {}", up.stdout);
    }
    let block = home.record("plain")?.block;
    refused(&home.run(&["up", "plain"]).await?, &["a lab named \"plain\" is running already", "down --name plain"]);

    let down = home.run(&["down"]).await?.success()?;
    assert!(down.stdout.contains("lab plain is gone"), "{}", down.stdout);
    assert!(home.processes()?.is_empty());
    assert!(!home.path().join("plain").exists());
    nobody_listens(block)?;

    refused(&home.run(&["down"]).await?, &["no lab is running"]);
    refused(&home.run(&["down", "--name", "plain"]).await?, &["there is no lab \"plain\""]);
    refused(&home.run(&["kubeconfig"]).await?, &["no lab is running"]);
    let status = home.run(&["status"]).await?.success()?;
    assert!(status.stdout.contains("no lab is running"), "{}", status.stdout);
    Ok(())
}

pub async fn two_labs_run_side_by_side_and_do_not_see_each_other() -> TestResult {
    let home = Home::new()?;
    let (left, right) = tokio::try_join!(home.run(&["up", "plain", "--name", "left"]), home.run(&["up", "plain", "--name", "right"]))?;
    left.success()?;
    right.success()?;
    assert_ne!(home.record("left")?.block, home.record("right")?.block);

    home.run(&["kubectl", "--name", "left", "create", "namespace", "only-left"]).await?.success()?;
    home.run(&["kubectl", "--name", "left", "get", "namespace", "only-left"]).await?.success()?;
    let other = home.run(&["kubectl", "--name", "right", "get", "namespace", "only-left"]).await?;
    assert_eq!(other.code(), 1, "{}", other.stdout);
    assert!(other.stderr.contains("NotFound"), "{}", other.stderr);

    refused(&home.run(&["kubeconfig"]).await?, &["2 labs run", "left, right"]);
    let status = home.run(&["status"]).await?.success()?;
    assert!(status.stdout.contains("lab left:") && status.stdout.contains("lab right:"), "{}", status.stdout);

    home.run(&["down", "--name", "left"]).await?.success()?;
    home.run(&["kubectl", "get", "nodes"]).await?.success()?;
    home.run(&["down", "--all"]).await?.success()?;
    assert!(home.processes()?.is_empty());
    Ok(())
}

/// Boots a plain lab named `first` and kills its supervisor.
async fn crashed(home: &Home) -> TestResult<Record> {
    home.run(&["up", "plain", "--name", "first"]).await?.success()?;
    let record = home.record("first")?;
    process::signal(record.supervisor, Signal::KILL)?;
    Ok(record)
}

pub async fn a_killed_lab_leaves_no_process_and_no_port_after_the_next_up() -> TestResult {
    let home = Home::new()?;
    let first = crashed(&home).await?;
    // The same block: this boots only where all that the first one held is free again.
    let block = format!("127.{}", first.block.0);
    home.run(&["up", "plain", "--name", "second", "--net", &block]).await?.success()?;
    assert!(process::marked(Some(&home.path().join("first").display().to_string()))?.is_empty());
    assert!(!home.path().join("first").exists());
    home.run(&["down"]).await?.success()?;
    assert!(home.processes()?.is_empty());
    Ok(())
}

pub async fn a_killed_lab_leaves_no_process_and_no_port_after_down() -> TestResult {
    let home = Home::new()?;
    let first = crashed(&home).await?;
    let down = home.run(&["down"]).await?.success()?;
    assert!(down.stdout.contains("lab first is gone"), "{}", down.stdout);
    assert!(home.processes()?.is_empty());
    assert!(!home.path().join("first").exists());
    nobody_listens(first.block)
}

/// `vmi-lab ARGUMENTS` for the shared lab.
async fn in_shared(lab: &Lab, verb: &[&str]) -> TestResult<Output> {
    let mut arguments = verb.to_vec();
    arguments.splice(1..1, ["--name", lab.record.name.as_str()]);
    command::vmi_lab(&vmi_lab::home::folder(), &arguments).await
}

pub async fn status_tells_where_a_lab_is_and_how_it_is(lab: &Lab) -> TestResult {
    let status = in_shared(lab, &["status"]).await?.success()?.stdout;
    let block = format!("127.{}.0.0/16", lab.record.block.0);
    let kubeconfig = lab.folder().join("kubeconfig").display().to_string();
    for words in ["lab plain: shape plain", &block, "up, booted in", "MB resident", &kubeconfig, "2 of 2 ready"] {
        assert!(status.contains(words), "{words:?} is missing in: {status}");
    }
    let printed = in_shared(lab, &["kubeconfig"]).await?.success()?.stdout;
    assert_eq!(printed.trim(), kubeconfig);
    Ok(())
}

pub async fn a_reader_that_leaves_early_is_no_failure(lab: &Lab) -> TestResult {
    for arguments in
        [&["status", "--name", &lab.record.name] as &[&str], &["shapes"], &["logs", "kube-apiserver", "--name", &lab.record.name]]
    {
        let (reader, writer) = std::io::pipe()?;
        drop(reader);
        let mut command = command::vmi_lab_command(&vmi_lab::home::folder())?;
        let output = command.args(arguments).stdout(writer).stderr(std::process::Stdio::piped()).spawn()?.wait_with_output().await?;
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "{arguments:?}: {} {said}", output.status);
    }
    Ok(())
}

pub async fn logs_shows_any_component_and_names_those_there_are(lab: &Lab) -> TestResult {
    let log = in_shared(lab, &["logs", "kube-apiserver"]).await?.success()?.stdout;
    assert!(log.contains("Serving securely on"), "not the log of an apiserver: {log:.300}");
    let audit = in_shared(lab, &["logs", "audit"]).await?.success()?.stdout;
    assert!(audit.contains("audit.k8s.io"), "{audit:.300}");
    refused(&in_shared(lab, &["logs", "kubelet"]).await?, &["there is no component \"kubelet\"", "etcd", "kube-scheduler"]);
    Ok(())
}

pub async fn kubectl_speaks_to_the_lab_and_passes_its_exit_code_on(lab: &Lab) -> TestResult {
    let nodes = in_shared(lab, &["kubectl", "get", "nodes", "-o", "name"]).await?.success()?.stdout;
    assert_eq!(nodes, "node/node-0\nnode/node-1\n");
    let wrong = in_shared(lab, &["kubectl", "get", "nonsense"]).await?;
    assert_eq!(wrong.code(), 1, "{}", wrong.stderr);
    Ok(())
}
