//! `rehearse`: the report that docs/lab.md documents, and what is left afterwards.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::Value;
use vmi_lab::tools::{Progress, Tools};

use crate::command_line::Home;
use crate::docs;
use crate::support::command::{self, AS_COMMAND_LINE, Output};
use crate::support::suite::TestResult;

/// The user that every machine has and that may do nothing.
const NOBODY: u32 = 65534;

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().into_iter().flatten().map(|(key, _)| key.as_str()).collect()
}

fn length(value: &Value) -> usize {
    value.as_array().map_or(0, Vec::len)
}

/// Rehearses a shape, holds the report to the documented one, and returns it with what was printed.
async fn rehearse(shape: &str, options: &[&str]) -> TestResult<(Value, Output)> {
    let home = Home::new()?;
    let file = home.path().join("report.json");
    let path = file.display().to_string();
    let output = home.run(&[&["rehearse", shape, "--report", &path], options].concat()).await?.success()?;
    let report: Value = serde_json::from_slice(&fs::read(&file)?)?;

    let documented: Value = serde_json::from_str(&docs::only_block("docs/lab.md", "json report")?)?;
    assert_eq!(keys(&report), keys(&documented));
    assert_eq!(keys(&report["verdict"]), keys(&documented["verdict"]));
    assert_eq!(keys(&report["verdict"]["checks"][0]), keys(&documented["verdict"]["checks"][0]));
    assert_eq!(report["shape"], shape);
    assert_eq!(report["verdict"]["passed"], true, "{report:#}");
    assert!(report["boot_seconds"].as_f64().is_some_and(|seconds| seconds > 0.0), "{report:#}");
    assert!(report["resident_mb"].as_u64().is_some_and(|megabytes| megabytes > 0), "{report:#}");
    assert!(length(&report["real_components"]) >= 11, "{report:#}");
    assert_eq!(length(&report["stand_ins"]), vmi_lab::standins::NAMES.len());
    if !report["migration"].is_null() {
        assert_eq!(keys(&report["migration"]), keys(&documented["migration"]));
        assert_eq!(keys(&report["migration"]["vcenter_requests"]), keys(&documented["migration"]["vcenter_requests"]));
        assert_eq!(keys(&report["migration"]["steps"][0]), keys(&documented["migration"]["steps"][0]));
    }
    assert!(home.processes()?.is_empty());
    assert!(!fs::read_dir(home.path())?.any(|entry| entry.is_ok_and(|entry| entry.path().is_dir())), "a lab's folder is left");
    Ok((report, output))
}

pub async fn a_rehearsal_writes_the_documented_report_and_leaves_no_process() -> TestResult {
    let (report, output) = rehearse("plain", &[]).await?;
    assert!(report["migration"].is_null());
    assert_eq!(length(&report["verdict"]["checks"]), 1);
    assert!(output.stdout.contains("ok      every node is ready"), "{}", output.stdout);
    Ok(())
}

pub async fn a_report_that_cannot_be_written_is_said_so() -> TestResult {
    let home = Home::new()?;
    let path = home.path().join("no/such/folder/report.json").display().to_string();
    let output = home.run(&["rehearse", "plain", "--report", &path]).await?;
    assert_eq!(output.code(), 2, "{}", output.stderr);
    assert!(output.stderr.contains("cannot write the report") && output.stderr.contains(&path), "{}", output.stderr);
    Ok(())
}

pub async fn a_way_back_that_there_is_not_is_said_so() -> TestResult {
    let home = Home::new()?;
    for (arguments, words) in [
        (["rehearse", "native", "--rollback-at", "ClusterThawed"].as_slice(), "there is no way back from \"ClusterThawed\""),
        (&["rehearse", "native", "--keep-source", "--rollback-at", "WorkersReady"], "there is no way back from \"WorkersReady\""),
        (&["rehearse", "plain", "--rollback"], "shape plain has no vCenter to move to"),
        (&["rehearse", "native", "--rollback", "--boot-only"], "cannot be used with"),
    ] {
        let output = home.run(arguments).await?;
        assert_eq!(output.code(), 2, "{}", output.stderr);
        assert!(output.stderr.contains(words), "{}", output.stderr);
    }
    // By this hack/rehearse knows before it builds the operator.
    let output = home.run(&["rehearse", "native", "--rollback-at", "TagsAttached", "--check-words"]).await?;
    assert_eq!((output.code(), output.stdout.as_str()), (0, ""), "{}", output.stderr);
    assert!(home.processes()?.is_empty());
    Ok(())
}

pub async fn without_an_operator_a_rehearsal_does_not_even_boot() -> TestResult {
    let home = Home::new()?;
    let missing = home.path().join("no-such-operator");
    let mut command = command::vmi_lab_command(home.path())?;
    let output = command::run(command.args(["rehearse", "native"]).env("VMI_BINARY", &missing)).await?;
    assert_eq!(output.code(), 2, "{}", output.stderr);
    assert!(output.stderr.contains(&format!("VMI_BINARY names {}", missing.display())), "{}", output.stderr);
    assert!(home.processes()?.is_empty());
    Ok(())
}

pub async fn a_native_boot_ends_well() -> TestResult {
    boot("native").await
}

pub async fn a_legacy_boot_ends_well() -> TestResult {
    boot("legacy-yaml").await
}

async fn boot(shape: &str) -> TestResult {
    let (report, output) = rehearse(shape, &["--boot-only"]).await?;
    assert!(report["migration"].is_null());
    assert_eq!(length(&report["verdict"]["checks"]), 6, "{report:#}");
    assert!(output.stdout.contains("6 Running on vCenter a"), "{}", output.stdout);
    Ok(())
}

pub async fn a_native_move_ends_well() -> TestResult {
    whole("native", &[], 20).await
}

pub async fn a_legacy_move_ends_well() -> TestResult {
    whole("legacy-yaml", &[], 20).await
}

pub async fn a_native_growth_ends_well() -> TestResult {
    whole("native", &["--keep-source"], 12).await
}

pub async fn a_legacy_growth_ends_well() -> TestResult {
    whole("legacy-yaml", &["--keep-source"], 12).await
}

pub async fn a_rehearsal_of_an_old_configuration_ends_well() -> TestResult {
    whole("legacy-ini", &["--keep-source"], 12).await
}

pub async fn a_rehearsal_with_zones_ends_well() -> TestResult {
    whole("multi-zone", &["--keep-source"], 12).await
}

pub async fn a_rich_rehearsal_ends_well() -> TestResult {
    whole("rich", &["--keep-source"], 12).await
}

pub async fn a_rehearsal_with_secrets_made_by_hand_ends_well() -> TestResult {
    whole("manual-cco", &["--keep-source"], 12).await
}

pub async fn a_rich_move_ends_well() -> TestResult {
    whole("rich", &[], 20).await
}

pub async fn a_move_of_an_old_configuration_ends_well() -> TestResult {
    whole("legacy-ini", &[], 20).await
}

pub async fn a_move_with_zones_ends_well() -> TestResult {
    whole("multi-zone", &[], 20).await
}

pub async fn a_move_with_secrets_made_by_hand_ends_well() -> TestResult {
    whole("manual-cco", &[], 20).await
}

pub async fn a_move_to_two_vcenters_ends_well() -> TestResult {
    whole("two-targets", &[], 20).await
}

pub async fn a_growth_by_two_vcenters_ends_well() -> TestResult {
    whole("two-targets", &["--keep-source"], 12).await
}

pub async fn an_ancient_move_ends_well() -> TestResult {
    whole("ancient", &[], 20).await
}

pub async fn an_ancient_growth_ends_well() -> TestResult {
    whole("ancient", &["--keep-source"], 12).await
}

pub async fn a_move_of_a_cluster_that_may_begin_with_one_vcenter_only_ends_well() -> TestResult {
    whole("unlisted", &[], 20).await
}

pub async fn a_growth_of_a_cluster_that_may_begin_with_one_vcenter_only_ends_well() -> TestResult {
    whole("unlisted", &["--keep-source"], 12).await
}

pub async fn a_large_boot_ends_well() -> TestResult {
    let (report, output) = rehearse("large", &[]).await?;
    assert!(report["migration"].is_null());
    assert!(output.stdout.contains("505 Running on vCenter a"), "{}", output.stdout);
    assert!(output.stdout.contains("ok      every written pod is there"), "{}", output.stdout);
    Ok(())
}

/// The shapes with more than one failure domain on a side: each further one brings tags and folders of its own.
const SEVERAL_DOMAINS: [&str; 2] = ["multi-zone", "two-targets"];
/// What a move may ask of both vCenters together, however many virtual machines they have.
const MOST_VCENTER_REQUESTS: u64 = 48;

async fn whole(shape: &str, options: &[&str], count: usize) -> TestResult {
    let (report, output) = rehearse(shape, options).await?;
    let migration = &report["migration"];
    let positive = |value: &Value| value.as_f64().is_some_and(|number| number > 0.0);
    for figure in ["seconds", "floor_seconds", "rss_peak_mb", "cpu_seconds", "apiserver_requests"] {
        assert!(positive(&migration[figure]), "{figure}: {report:#}");
    }
    let requests = |side: &str| migration["vcenter_requests"][side].as_u64().unwrap_or_default();
    let (source, target) = (requests("source"), requests("target"));
    assert!(source > 0 && target > 0, "{report:#}");
    assert!(SEVERAL_DOMAINS.contains(&shape) || source + target <= MOST_VCENTER_REQUESTS, "{source} and {target} requests: {report:#}");
    let steps: Vec<&str> = migration["steps"].as_array().into_iter().flatten().filter_map(|step| step["name"].as_str()).collect();
    assert_eq!((steps.len(), steps.last()), (count, Some(&"ClusterThawed")), "{report:#}");
    assert!(output.stderr.contains("InfrastructureExtended"), "no view: {}", output.stderr);
    Ok(())
}

pub async fn a_native_rehearsal_that_is_turned_back_ends_where_it_began() -> TestResult {
    back("native").await
}

pub async fn a_legacy_rehearsal_that_is_turned_back_ends_where_it_began() -> TestResult {
    back("legacy-yaml").await
}

async fn back(shape: &str) -> TestResult {
    let (_, output) = rehearse(shape, &["--rollback"]).await?;
    assert!(output.stdout.contains("ok      the cluster and both vCenters are as before"), "{}", output.stdout);
    assert!(output.stderr.contains("turning back at PodsHealthy"), "{}", output.stderr);
    Ok(())
}

/// The first port that anybody may listen on.
fn first_free_port() -> TestResult<u16> {
    Ok(fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start")?.trim().parse()?)
}

pub async fn without_root_the_vcenters_listen_on_a_port_that_anybody_may_use() -> TestResult {
    let wanted = if first_free_port()? <= 443 { 443 } else { 8443 };
    if !rustix::process::getuid().is_root() {
        // Then every lab is one without root, and any will do.
        let (_, output) = rehearse("native", &["--boot-only"]).await?;
        assert!(output.stdout.contains(&format!(":{wanted}\n")), "{}", output.stdout);
        return Ok(());
    }
    let folder = tempfile::Builder::new().prefix("vmi-nobody-").tempdir()?;
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))?;
    // Neither the checkout's programs nor root's cache are for everybody's eyes.
    let program = folder.path().join("vmi-lab");
    fs::copy(vmi_lab::process::own_binary()?, &program)?;
    let tools = folder.path().join("tools");
    Tools::prepare(&mut Progress::stderr()).await?.export(&tools)?;
    let labs = folder.path().join("labs");
    fs::create_dir(&labs)?;
    std::os::unix::fs::chown(&labs, Some(NOBODY), Some(NOBODY))?;
    for shape in ["plain", "native"] {
        let output = as_nobody(&program, &tools, &labs, &["rehearse", shape, "--boot-only"]).await?.success()?;
        let there = output.stdout.lines().filter(|line| line.contains("vCenter") && line.ends_with(&format!(":{wanted}"))).count();
        assert_eq!(there, if shape == "plain" { 0 } else { 2 }, "{}", output.stdout);
    }
    Ok(())
}

async fn as_nobody(program: &Path, tools: &Path, labs: &Path, arguments: &[&str]) -> TestResult<Output> {
    let mut command = tokio::process::Command::new(program);
    command.uid(NOBODY).gid(NOBODY).current_dir(labs).args(arguments);
    command.env(AS_COMMAND_LINE, "1").env("VMI_LAB_HOME", labs).env("VMI_TOOLS", tools).env("HOME", labs);
    command::run(&mut command).await
}
