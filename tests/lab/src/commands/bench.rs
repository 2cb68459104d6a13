//! `bench`: our vSphere client beside govmomi, the same work against the same simulator in the same run; and our rules beside grep.
//!
//! Each measurement is a process of its own against a fresh simulator; time and memory are what that process says, requests and
//! bytes what the simulator's proxy counted. Ours and the peer's take turns, and the median of each is reported.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};

use super::Failure;
use super::bench_logs;
use super::report::{check_writable, unwritable};
use crate::output;
use crate::pki::Authority;
use crate::tools::{Progress, Tools};
use crate::vcenter::{Control, configured};

const ROUNDS: usize = 3;
/// As many machines as a quick run has at most: enough for every work to be done, too few for a figure to mean anything.
const FEW: usize = 30;
const PEER: &str = "govmomi";
const LOGS: [&str; 2] = [bench_logs::MADE_UP, bench_logs::OF_A_LAB];

/// A piece of work: its name in the report, what our program and the peer call it, and how many machines the vCenter holds.
struct Work {
    name: &'static str,
    ours: &'static str,
    peer: &'static [&'static str],
    machines: usize,
    list: Option<List>,
}

#[derive(Clone, Copy)]
enum List {
    Uuids(usize),
    Objects(usize),
}

const WORKS: &[Work] = &[
    Work { name: "inventory", ours: "inventory", peer: &["inventory"], machines: 100, list: None },
    Work { name: "inventory_10000_vms_there", ours: "inventory", peer: &["inventory"], machines: 10_000, list: None },
    Work { name: "inventory_50000_vms_there", ours: "inventory", peer: &["inventory"], machines: 50_000, list: None },
    Work { name: "inventory_with_10000_vms", ours: "inventory-vms", peer: &["inventory", "--vms", "finder"], machines: 10_000, list: None },
    Work {
        name: "inventory_with_10000_vms_by_view",
        ours: "inventory-vms",
        peer: &["inventory", "--vms", "view"],
        machines: 10_000,
        list: None,
    },
    Work { name: "500_uuids", ours: "uuids", peer: &["uuids", "--parallel", "4"], machines: 1_000, list: Some(List::Uuids(500)) },
    Work { name: "20_tags_on_200_objects", ours: "tags", peer: &["tags"], machines: 1_000, list: Some(List::Objects(200)) },
    Work { name: "1000_small_calls", ours: "calls", peer: &["calls"], machines: 100, list: None },
];

/// What one process did.
#[derive(Clone, Copy, Default)]
struct Measured {
    seconds: f64,
    peak_mb: f64,
    requests: f64,
    bytes: f64,
}

/// A figure of the report, its unit, and where it is.
type Figure = (&'static str, &'static str, fn(&Measured) -> f64);

const FIGURES: [Figure; 4] = [
    ("seconds", "s", |measured| measured.seconds),
    ("requests", "requests", |measured| measured.requests),
    ("received", "bytes", |measured| measured.bytes),
    ("peak_memory", "MB", |measured| measured.peak_mb),
];

/// A quick run does everything once with few machines and our side as it is built for tests: it shows that the report is whole.
pub async fn bench(only: &[String], report: Option<&Path>, quick: bool) -> Result<(), Failure> {
    let wanted = |name: &str| only.is_empty() || only.iter().any(|one| one == name);
    let known = || WORKS.iter().map(|work| work.name).chain(LOGS);
    if let Some(unknown) = only.iter().find(|one| known().all(|name| name != *one)) {
        let known = known().collect::<Vec<_>>().join(", ");
        return Err(Failure { message: format!("there is no case {unknown:?}; there are: {known}"), code: 2 });
    }
    if let Some(path) = report {
        check_writable(path)?;
    }
    let mut progress = Progress::stderr();
    let tools = Tools::prepare(&mut progress).await?;
    progress.line("building our side");
    let ours = our_program(quick).await?;
    let (rounds, most) = if quick { (1, FEW) } else { (ROUNDS, usize::MAX) };
    let mut cases = Vec::new();
    output::line(format_args!("{:<44} {:>12} {:>12} {:>8}", "", "vmi", PEER, "ratio"));
    for work in WORKS.iter().filter(|work| wanted(work.name)) {
        let (mut mine, mut theirs) = (Vec::new(), Vec::new());
        for round in 1..=rounds {
            progress.status(&format!("{} {round}/{rounds}", work.name));
            let ours_first = round % 2 == 1;
            for ours_now in [ours_first, !ours_first] {
                let site = Site::start(tools.path("vcsim")?, work, most).await?;
                if ours_now {
                    mine.push(site.run(site.our_command(&ours, work), "vmi-bench").await?);
                } else {
                    theirs.push(site.run(site.peer_command(tools.path("bench")?, work), "govmomi-bench").await?);
                }
            }
        }
        progress.clear();
        for (figure, unit, of) in FIGURES {
            let (ours, peer) = (median(&mine, of), median(&theirs, of));
            let name = format!("{}.{figure}", work.name);
            output::line(format_args!("{name:<44} {ours:>12.3} {peer:>12.3} {:>8.2}", ours / peer));
            cases.push(json!({"name": name, "ours": ours, "peer": peer, "peer_name": PEER, "unit": unit, "better": "lower"}));
        }
    }
    // A lab is not booted in seconds; that vmi and grep find the same lines, the log that is made up shows too.
    for name in LOGS.into_iter().filter(|name| wanted(name) && !(quick && *name == bench_logs::OF_A_LAB)) {
        let logs = bench_logs::case(name, quick, &mut progress).await?;
        let figure = |key: &str| logs[key].as_f64().unwrap_or_default();
        let (ours, peer) = (figure("ours"), figure("peer"));
        output::line(format_args!("{name:<44} {ours:>12.1} {peer:>12.1} {:>8.2}  MB/s, beside grep", ours / peer));
        cases.push(logs);
    }
    if let Some(path) = report {
        std::fs::write(path, format!("{:#}\n", json!({"cases": cases}))).map_err(|error| unwritable(path, &error))?;
    }
    Ok(())
}

fn median(measured: &[Measured], of: fn(&Measured) -> f64) -> f64 {
    let mut values: Vec<f64> = measured.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// Builds the example `work` of the client the way the operator is shipped, or as the tests have built it already.
async fn our_program(quick: bool) -> Result<PathBuf, Failure> {
    let of: &[&str] = if quick { &["--workspace"] } else { &["--profile", "lean", "--package", "vsphere"] };
    built(&[of, &["--example", "work"]].concat(), "work").await
}

/// Builds a program, and asks cargo where it went.
pub(super) async fn built(what: &[&str], name: &str) -> Result<PathBuf, Failure> {
    let output = tokio::process::Command::new("cargo")
        .args(["build", "--quiet", "--message-format", "json"])
        .args(what)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stderr(Stdio::inherit())
        .output()
        .await?;
    let built = output.stdout.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    let found =
        built.filter(|message| message["target"]["name"] == name).find_map(|message| message["executable"].as_str().map(PathBuf::from));
    found.ok_or_else(|| Failure { message: format!("cargo could not build {name}"), code: 1 })
}

/// A simulator with one vCenter, for one measurement.
struct Site {
    folder: PathBuf,
    address: String,
    control: Control,
    list: PathBuf,
    _simulator: tokio::process::Child,
}

const USER: &str = "bench@vsphere.local";
const PASSWORD: &str = "not-a-secret";

impl Site {
    async fn start(program: &Path, work: &Work, most: usize) -> Result<Site, Failure> {
        let broken = |message: String| Failure { message: format!("the benchmark's simulator: {message}"), code: 1 };
        let folder = std::env::temp_dir().join(format!("vmi-bench-{}", std::process::id()));
        if folder.exists() {
            std::fs::remove_dir_all(&folder)?;
        }
        std::fs::create_dir_all(&folder)?;
        let authority = Authority::new("bench-ca").map_err(|error| broken(error.to_string()))?;
        let pair = authority.server("bench", &["127.0.0.1"]).map_err(|error| broken(error.to_string()))?;
        for (name, text) in [("ca.pem", &authority.certificate), ("server.crt", &pair.certificate), ("server.key", &pair.key)] {
            std::fs::write(folder.join(name), text)?;
        }
        let socket = folder.join("control.sock");
        let config = json!({"control": socket, "vcenters": [{
            "name": "bench", "listen": "127.0.0.1:0", "certificate": folder.join("server.crt"), "key": folder.join("server.key"),
            "username": USER, "password": PASSWORD, "version": "8.0.3", "instanceUuid": "5a5e0000-0000-4000-8000-00000000beac",
            "datacenters": [{
                "name": "dc", "datastores": ["ds-1", "ds-2"], "networks": ["net-1", "net-2"], "folders": ["a/b", "c"],
                "clusters": [{"name": "cluster-1", "hosts": 8, "resourcePools": ["pool-1"]}, {"name": "cluster-2", "hosts": 8}],
                "templates": [{"name": "template", "hardware": "vmx-19", "diskGiB": 16}],
            }],
            "synthetic": work.machines.min(most),
        }]});
        let file = folder.join("vcsim.json");
        std::fs::write(&file, config.to_string())?;
        let mut simulator = tokio::process::Command::new(program)
            .arg("--config")
            .arg(&file)
            .stdout(Stdio::piped())
            .env("TMPDIR", &folder)
            .kill_on_drop(true)
            .spawn()?;
        let address = configured(&mut simulator).await.map_err(broken)?;
        let control = Control { socket };
        let list = folder.join("list");
        if let Some(wanted) = work.list {
            let machines = control.get("/vms").await.map_err(|error| broken(error.to_string()))?;
            std::fs::write(&list, listed(&machines, wanted))?;
        }
        Ok(Site { folder, address, control, list, _simulator: simulator })
    }

    fn our_command(&self, program: &Path, work: &Work) -> tokio::process::Command {
        let mut command = tokio::process::Command::new(program);
        command.args([work.ours, &self.address]).arg(self.folder.join("ca.pem"));
        command.env("VCENTER_USER", USER).env("VCENTER_PASSWORD", PASSWORD);
        if work.list.is_some() {
            command.arg(&self.list);
        }
        command
    }

    fn peer_command(&self, program: &Path, work: &Work) -> tokio::process::Command {
        let mut command = tokio::process::Command::new(program);
        command.args(work.peer).arg("--url").arg(format!("https://{}/sdk", self.address)).arg("--ca").arg(self.folder.join("ca.pem"));
        command.args(["--username", USER, "--password", PASSWORD]);
        if work.list.is_some() {
            command.arg("--file").arg(&self.list);
        }
        command
    }

    async fn run(&self, mut command: tokio::process::Command, client: &str) -> Result<Measured, Failure> {
        let broken = |message: String| Failure { message: format!("the benchmark of {client}: {message}"), code: 1 };
        let output = command.stdin(Stdio::null()).output().await?;
        if !output.status.success() {
            return Err(broken(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
        }
        let said: Value = serde_json::from_slice(&output.stdout).map_err(|error| broken(error.to_string()))?;
        let calls = self.control.get("/calls").await.map_err(|error| broken(error.to_string()))?;
        let sum = |key: &str| -> f64 {
            let own =
                calls.as_array().into_iter().flatten().filter(|call| call["client"].as_str().is_some_and(|name| name.contains(client)));
            own.filter_map(|call| call[key].as_f64()).sum()
        };
        let measured = Measured {
            seconds: said["seconds"].as_f64().unwrap_or_default(),
            peak_mb: said["peakMb"].as_f64().unwrap_or_default(),
            requests: sum("count"),
            bytes: sum("bytesOut"),
        };
        if measured.requests == 0.0 {
            return Err(broken("the simulator saw no call of it".to_owned()));
        }
        Ok(measured)
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        // The next site begins with an empty folder of the same name; what the last one leaves is litter, not an error.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// UUIDs or objects of the first machines that are no templates, one a line.
fn listed(machines: &Value, wanted: List) -> String {
    let all = machines.as_array().into_iter().flatten().filter(|machine| machine["template"] != true);
    let text = |machine: &Value, key: &str| machine[key].as_str().unwrap_or_default().to_owned();
    let lines: Vec<String> = match wanted {
        List::Uuids(count) => all.take(count).map(|machine| text(machine, "uuid")).collect(),
        List::Objects(count) => all.take(count).map(|machine| format!("VirtualMachine:{}", text(machine, "reference"))).collect(),
    };
    lines.join("\n")
}
