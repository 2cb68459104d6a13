//! The part of `bench` about logs: our rules beside `grep` with the same patterns, over a log such as a busy cluster writes and over
//! what the controllers of a lab wrote while it booted, as the apiserver gives it to the operator.
//!
//! Both read the same file and count the lines that fit; that the counts are equal is part of the measurement. The time is that of
//! the processor, since others may use it too.

use std::fmt::Write as _;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, LogParams};
use kube::{Api, ResourceExt};
use rustix::process::{WaitId, WaitIdOptions, waitid};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Failure, kubeconfig};
use crate::migration::operator::cpu_seconds;
use crate::supervisor::{Order, Running};
use crate::tools::Progress;
use crate::{control_plane, home, requirements};

/// Over a log that is made up of what healthy components write.
pub const MADE_UP: &str = "log_matching";
/// Over what was written in a lab.
pub const OF_A_LAB: &str = "log_matching_lab";

const ROUNDS: usize = 5;
const MEGABYTES: usize = 256;
/// Enough for the processor's clock to tick, and to hold every rule's line.
const FEW_MEGABYTES: usize = 8;
const RULES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../controllers/pod-health-watch/rules.yaml");

/// What healthy components write all day; `#` becomes a number.
const ORDINARY: &[&str] = &[
    "I1116 19:49:46.# 1 controller.go:174] c-x7k2p-worker-#: reconciling Machine",
    "I1116 19:49:46.# 1 controller.go:296] c-x7k2p-worker-#: reconciling machine triggers idempotent update",
    "I1116 19:49:46.# 1 reconciler.go:1100] c-x7k2p-worker-#: Updating provider status",
    "I1116 19:49:46.# 1 machine_scope.go:117] c-x7k2p-worker-#: patching machine",
    "I1116 19:49:46.# 27517 search.go:208] Found node 1a3586eb-#-5632-b984-46cfeacaac2a as vm=VirtualMachine:vm-# in vc=vc.example.com and datacenter=dc-a",
    "I1116 19:49:46.# 27517 instances.go:120] instances.InstanceExistsByProviderID() CACHED with 1a3586eb-#-5632-b984-46cfeacaac2a",
    "I1116 19:49:46.# 27517 node_controller.go:271] Update # nodes status took #.#ms.",
    "I1116 19:49:46.# 1 reflector.go:946] \"Watch close\" reflector=\"k8s.io/client-go/informers/factory.go:160\" type=\"*v1.Node\" totalItems=#",
    "I1116 19:49:46.# 1 event.go:377] Event(v1.ObjectReference{Kind:\"Deployment\", Namespace:\"openshift-cluster-csi-drivers\", Name:\"vmware-vsphere-csi-driver-operator\", UID:\"#\"}): type: 'Normal' reason: 'DeploymentUpdated' Updated Deployment.apps/vmware-vsphere-csi-driver-controller -n openshift-cluster-csi-drivers because it changed",
    "{\"level\":\"info\",\"time\":\"2026-11-16T19:49:46.#Z\",\"caller\":\"vanilla/controller.go:2011\",\"msg\":\"ControllerGetCapabilities: called with args {XXX_NoUnkeyedLiteral:{} XXX_unrecognized:[] XXX_sizecache:#}\",\"TraceId\":\"52a1-#\"}",
    "{\"level\":\"info\",\"time\":\"2026-11-16T19:49:46.#Z\",\"caller\":\"syncer/fullsync.go:60\",\"msg\":\"FullSync for VC vc.example.com: # volumes are in sync\",\"TraceId\":\"52a1-#\"}",
    "time=\"2026-11-16T19:49:46Z\" level=info msg=\"reconcile complete\" controller=credreq cr=openshift-cloud-credential-operator/openshift-machine-api-vsphere elapsed=#.#ms",
    "I1116 19:49:46.# 1 vsphere_check.go:302] CheckNodeDiskUUID:c-x7k2p-worker-# passed",
    "I1116 19:49:46.# 1 base_controller.go:130] All VSphereStorageClassController workers have been terminated #",
    "W1116 19:49:46.# 1 warnings.go:70] unknown field \"spec.template.spec.#\"",
];

/// One line in so many is one that a rule knows.
const ONE_IN: usize = 40;

#[derive(Deserialize)]
struct Rule {
    #[serde(default)]
    pattern: String,
    line: String,
}

fn broken(message: &dyn std::fmt::Display) -> Failure {
    Failure { message: format!("the benchmark of logs: {message}"), code: 1 }
}

/// The case of the report. A quick one judges a small log once, with vmi as it is built for tests: it shows that the counts are equal.
pub async fn case(name: &str, quick: bool, progress: &mut Progress) -> Result<Value, Failure> {
    let rules = std::fs::read_to_string(RULES)?;
    let rules: Vec<Rule> = serde_saphyr::from_str(&rules).map_err(|error| broken(&error))?;
    let size = if quick { FEW_MEGABYTES } else { MEGABYTES } * 1_000_000;
    let log = if name == OF_A_LAB { repeated(&of_a_lab(progress).await?, size) } else { text(&rules, size) };
    let folder = std::env::temp_dir().join(format!("vmi-bench-logs-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let measured = in_folder(name, quick, (&rules, &log), &folder, progress).await;
    std::fs::remove_dir_all(&folder)?;
    measured
}

async fn in_folder(
    name: &str,
    quick: bool,
    (rules, text): (&[Rule], &str),
    folder: &Path,
    progress: &mut Progress,
) -> Result<Value, Failure> {
    let (log, patterns) = (folder.join("log"), folder.join("patterns"));
    std::fs::write(&log, text)?;
    let known: Vec<&str> = rules.iter().map(|rule| rule.pattern.as_str()).filter(|pattern| !pattern.is_empty()).collect();
    std::fs::write(&patterns, known.join("\n"))?;
    progress.line(if quick { "building vmi" } else { "building vmi as it is shipped" });
    let vmi = our_program(quick).await?;
    let rounds = if quick { 1 } else { ROUNDS };
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 1..=rounds {
        progress.status(&format!("{name} {round}/{rounds}"));
        let mut explain = Command::new(&vmi);
        let mine = measured(explain.args(["explain", "--component", "any"]), &log)?;
        let mut grep = Command::new("grep");
        let other = measured(grep.args(["-c", "-i", "-E", "-f"]).arg(&patterns).env("LC_ALL", "C"), &log)?;
        let (found, wanted) = (fitting(&mine.1), other.1.trim().parse::<u64>().ok());
        if found.is_none() || found != wanted {
            return Err(broken(&format!("vmi finds {found:?} lines that fit a rule, and grep {wanted:?}")));
        }
        ours.push(text.len() as f64 / 1e6 / mine.0);
        theirs.push(text.len() as f64 / 1e6 / other.0);
    }
    progress.clear();
    let (ours, peer) = (median(ours), median(theirs));
    Ok(json!({"name": name, "ours": ours, "peer": peer, "peer_name": "grep", "unit": "MB/s", "better": "higher"}))
}

/// All that is in the logs of a lab that has just booted.
async fn of_a_lab(progress: &mut Progress) -> Result<String, Failure> {
    requirements::check(&home::folder())?;
    let order = Order { shape: "native".to_owned(), name: format!("bench-{}", std::process::id()), block: None };
    let running = Running::start(&order, true, |step| progress.line(step)).await?;
    let client = control_plane::client(&kubeconfig(&running.record)).await?;
    let mut text = String::new();
    for pod in Api::<Pod>::all(client.clone()).list(&ListParams::default()).await.map_err(|error| broken(&error))? {
        let api: Api<Pod> = Api::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
        for container in pod.spec.iter().flat_map(|spec| &spec.containers) {
            let asked = LogParams { container: Some(container.name.clone()), timestamps: true, ..LogParams::default() };
            text.push_str(&api.logs(&pod.name_any(), &asked).await.map_err(|error| broken(&error))?);
        }
    }
    running.stop().await?;
    Ok(text)
}

fn repeated(log: &str, size: usize) -> String {
    log.repeat(size / log.len().max(1) + 1)
}

/// A log of ordinary lines, and among them each rule's in turn.
fn text(rules: &[Rule], size: usize) -> String {
    let mut text = String::with_capacity(size + 1024);
    let mut number = 0_usize;
    while text.len() < size {
        number += 1;
        let line = if number.is_multiple_of(ONE_IN) {
            rules.get(number / ONE_IN % rules.len()).map_or("", |rule| rule.line.as_str())
        } else {
            ORDINARY[number % ORDINARY.len()]
        };
        for (place, part) in line.split('#').enumerate() {
            if place > 0 {
                // Writing to a String cannot fail.
                let _ = write!(text, "{}", number.wrapping_mul(2_654_435_761) % 1_000_000);
            }
            text.push_str(part);
        }
        text.push('\n');
    }
    text
}

/// Processor seconds, and what it said.
fn measured(command: &mut Command, log: &Path) -> Result<(f64, String), Failure> {
    let mut child = command.stdin(File::open(log)?).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let mut output = String::new();
    if let Some(stdout) = child.stdout.as_mut() {
        std::io::Read::read_to_string(stdout, &mut output)?;
    }
    // Ended but not forgotten: what it has used can still be read.
    let id = rustix::process::Pid::from_child(&child);
    waitid(WaitId::Pid(id), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).map_err(std::io::Error::from)?;
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id()))?;
    child.wait()?;
    Ok((cpu_seconds(&stat), output))
}

/// How many lines fit a rule, by the last line of `vmi explain`: `9 lines: 1 fatal, 2 transient, 3 benign, 3 errors ...`.
fn fitting(output: &str) -> Option<u64> {
    let (_, counts) = output.trim_end().lines().last()?.split_once(": ")?;
    let number = |part: &str| part.split(' ').next()?.parse::<u64>().ok();
    counts.split(", ").take(3).map(number).sum()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// Builds it the way it is shipped, or as the tests have built it already.
async fn our_program(quick: bool) -> Result<PathBuf, Failure> {
    let of: &[&str] = if quick { &["--workspace"] } else { &["--profile", "lean", "--package", "vmi"] };
    super::bench::built(&[of, &["--bin", "vmi"]].concat(), "vmi").await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_read_from_the_last_line() {
        assert_eq!(fitting("fatal CCM-001, once: x\n9 lines: 1 fatal, 2 transient, 3 benign, 3 errors that no rule knows\n"), Some(6));
        assert_eq!(fitting("something else\n"), None);
    }

    #[test]
    fn the_log_is_as_large_as_is_said_and_holds_every_rules_line() {
        let rules: Vec<Rule> = serde_saphyr::from_str(&std::fs::read_to_string(RULES).unwrap()).unwrap();
        let text = text(&rules, 2_000_000);
        assert!((2_000_000..2_010_000).contains(&text.len()));
        assert!(rules.iter().all(|rule| text.contains(&rule.line)));
    }
}
