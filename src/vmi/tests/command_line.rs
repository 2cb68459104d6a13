//! The program as it is typed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends by panicking")]

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

const INI: &str = include_str!("../../intent/corpus/good/installer-4-12.ini");
const YAML: &str = include_str!("../../intent/corpus/good/installer-4-18.yaml");

fn vmi() -> Command {
    Command::new(env!("CARGO_BIN_EXE_vmi"))
}

fn run(command: &mut Command, input: &str) -> Output {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A command that does not read may be gone already.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

/// Exit code, standard output, standard error.
fn typed(arguments: &[&str], input: &str) -> (i32, String, String) {
    let output = run(vmi().args(arguments), input);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

const ADD: [&str; 8] = ["cloud-config", "add", "--server", "new.example.com", "--port", "8443", "--datacenter", "dc-new"];

#[test]
fn a_vcenter_added_to_a_cloud_config_can_be_taken_out_again() {
    let (code, added, _) = typed(&ADD, YAML);
    assert_eq!(code, 0);
    let known = vmi_intent::cloud_config::vcenters(&added).unwrap();
    let new = known.iter().find(|vcenter| vcenter.server == "new.example.com").unwrap();
    assert_eq!((new.port, new.datacenters.as_slice()), (8443, &["dc-new".to_owned()][..]));
    assert!(added.contains("openshift-zone") && added.contains("openshift-region"), "{added}");

    let (code, removed, _) = typed(&["cloud-config", "remove", "--server", "new.example.com"], &added);
    assert_eq!(code, 0);
    assert_eq!(vmi_intent::cloud_config::vcenters(&removed), vmi_intent::cloud_config::vcenters(YAML));
}

#[test]
fn ini_is_converted_without_a_change_of_meaning() {
    let (code, converted, _) = typed(&["cloud-config", "convert"], INI);
    assert_eq!(code, 0);
    assert_eq!(vmi_intent::cloud_config::detect(&converted), vmi_intent::cloud_config::Format::Yaml);
    assert_eq!(vmi_intent::cloud_config::vcenters(&converted), vmi_intent::cloud_config::vcenters(INI));
}

#[test]
fn a_refused_edit_exits_with_3_and_prints_only_the_reason() {
    let (code, output, reason) = typed(&ADD, "global:\n\tserver: x\n");
    assert_eq!((code, output.as_str()), (3, ""));
    assert!(reason.starts_with("vmi: line 2: "), "{reason}");

    let server = vmi_intent::cloud_config::vcenters(YAML).unwrap().remove(0).server;
    let (code, output, reason) = typed(&["cloud-config", "remove", "--server", &server], YAML);
    assert_eq!((code, output.as_str()), (3, ""));
    assert!(reason.contains("is the only vCenter"), "{reason}");
}

const LOG: &str = r#"I1116 19:49:46.391861       1 main.go:1] starting
2026-11-16T19:49:36.000000000Z E1116 19:49:36.391891       1 credentialmanager.go:75] credentials not found for server vc-b.example.com
2026-11-16T19:49:47.000000000Z E1116 19:49:47.391891       1 credentialmanager.go:75] credentials not found for server 10.1.2.3
{"level":"error","msg":"credentials not found for server vc, password=hunter2hunter2"}
W1116 19:49:46.391861       1 cloud.go:213] Routes interface was not configured
E1116 19:49:46.391861       1 nodemanager.go:90] error discovering node host-1: No VM found

E1116 19:49:46.391861       1 flux.go:88] the flux capacitor is out of tune"#;

#[test]
fn a_log_is_explained_line_by_line_with_an_object_for_each() {
    let (code, output, told) = typed(&["explain", "--component", "cloud-controller-manager", "--bare-metal", "host-1", "-o", "json"], LOG);
    assert_eq!((code, told.as_str()), (0, ""));
    let objects: Vec<serde_json::Value> = output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let found: Vec<(Option<&str>, &str)> =
        objects.iter().map(|object| (object["rule"].as_str(), object["verdict"].as_str().unwrap())).collect();
    assert_eq!(
        found,
        [
            (None, "unknown"),
            (Some("CCM-001"), "fatal"),
            (Some("CCM-001"), "fatal"),
            (Some("CCM-001"), "fatal"),
            (Some("NOISE-011"), "benign"),
            (Some("CCM-012"), "benign"),
            (None, "unknown"),
            (None, "unknown"),
        ]
    );
    for (object, line) in objects.iter().zip(LOG.lines()) {
        let keys: Vec<&str> = object.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, ["line", "rule", "verdict", "meaning", "remedy"]);
        assert_eq!(object["line"], line.replace("hunter2hunter2", "***"));
    }
    assert!(objects[1]["remedy"].as_str().unwrap().contains("kube-system/vsphere-creds"));
    assert!(objects[7]["meaning"].as_str().unwrap().starts_with("an error that no rule knows"));
}

#[test]
fn a_log_is_explained_for_people_with_each_rule_once_and_the_gravest_first() {
    let (code, output, _) = typed(&["explain", "--component", "ccm", "--bare-metal", "host-1"], LOG);
    assert_eq!(code, 0);
    assert!(output.starts_with("fatal CCM-001, 3 times: its Secret has no user name and password"), "{output}");
    assert!(output.ends_with("\n8 lines: 3 fatal, 0 transient, 2 benign, 1 errors that no rule knows\n"), "{output}");
    assert!(output.contains("\n  remedy  put both keys") && !output.contains("hunter2"), "{output}");
}

/// What a cloud controller manager writes when all is well: it logs in without credentials first, two callers meet while the Secret is
/// read for the first time, and a new node has no UUID yet.
const HEALTHY_START: &str = r#"I1116 19:49:44.798312     316 config.go:79] ReadConfig YAML succeeded
E1116 19:49:44.806040     316 cloud.go:79] ReadNsxtConfig failed: 1:1: expected section header
E1116 19:49:44.806199     316 cloud.go:88] ReadRouteConfig failed: 1:1: expected section header
E1116 19:49:45.065334     316 core.go:93] Failed to start service controller: the cloud provider does not support external load balancers
W1116 19:49:45.066334     316 credentialmanager.go:85] Cannot get secret vsphere-creds in namespace kube-system. error: "secret \"vsphere-creds\" not found"
I1116 19:49:45.158278     316 reflector.go:439] "Caches populated" type="*v1.Secret" reflector="k8s.io/client-go@v0.34.4/tools/cache/reflector.go:290"
I1116 19:49:45.183320     316 connection.go:159] SessionManager.Login with username ""
E1116 19:49:45.187575     316 connection.go:69] Failed to create govmomi client. err: ServerFaultCode: Cannot complete login due to an incorrect user name or password.
I1116 19:49:45.187603     316 connectionmanager.go:151] Invalid credentials. Fetching credentials from secrets. vcServer=vc.example.com credentialHolder=Global
E1116 19:49:45.187610     316 credentialmanager.go:75] credentials not found for server vc.example.com
E1116 19:49:45.187613     316 credentialmanager.go:75] credentials not found for server vc.example.com
E1116 19:49:45.187618     316 credentialmanager.go:75] credentials not found for server vc.example.com
I1116 19:49:45.187628     316 credentialmanager.go:179] parseSecret using k8s secret
I1116 19:49:45.206045     316 connection.go:159] SessionManager.Login with username "openshift-a@vsphere.local"
I1116 19:49:45.240387     316 search.go:208] Found node 1a3586eb-4fd2-5632-b984-46cfeacaac2a as vm=VirtualMachine:vm-43 in vc=vc.example.com and datacenter=dc-a
E1116 19:49:46.187575     316 connection.go:69] Failed to create govmomi client. err: ServerFaultCode: Cannot complete login due to an incorrect user name or password.
I1116 19:49:46.187603     316 connectionmanager.go:151] Invalid credentials. Fetching credentials from secrets. vcServer=vc-b.example.com credentialHolder=Global
I1116 19:49:46.240387     316 connectionmanager.go:186] vCenter connect vc-b.example.com succeeded.
E1116 19:49:49.592950     316 nodemanager.go:90] error discovering node worker-1: nodeID is empty
"#;

#[test]
fn nothing_in_a_start_that_goes_well_is_called_fatal_and_when_it_would_be_is_told() {
    let explain = ["explain", "--component", "cloud-controller-manager"];
    let (code, output, _) = typed(&explain, HEALTHY_START);
    assert_eq!(code, 0);
    assert!(output.ends_with("\n19 lines: 0 fatal, 7 transient, 5 benign, 0 errors that no rule knows\n"), "{output}");
    assert!(output.lines().all(|line| !line.starts_with("fatal")), "{output}");
    assert!(output.contains("transient CCM-006, 2 times: a vCenter refuses its user name or password\n"), "{output}");
    assert!(output.contains("\n  holds   a migration once it has come 5 times, each within 2m\n"), "{output}");
    assert!(output.contains("\n  holds   a migration once it has come 3 times, each within 5m, for 10s\n"), "{output}");

    // A password that stays refused is told first, before what is still open.
    let refused = HEALTHY_START.lines().find(|line| line.contains("incorrect user name")).unwrap();
    let (_, output, _) = typed(&explain, &format!("{HEALTHY_START}{}", format!("{refused}\n").repeat(5)));
    assert!(output.starts_with("fatal CCM-006, 7 times: ") && output.contains("\ntransient CCM-001, 3 times: "), "{output}");
    assert!(output.ends_with("\n24 lines: 7 fatal, 5 transient, 5 benign, 0 errors that no rule knows\n"), "{output}");
}

#[test]
fn a_log_of_a_component_that_nobody_watches_is_judged_by_all_rules_and_that_is_said() {
    let (code, output, told) = typed(&["explain", "--component", "keepalived", "-o", "json"], LOG);
    assert_eq!(code, 0);
    assert!(told.starts_with("vmi: keepalived is none of cloud-controller-manager, machine-api, "), "{told}");
    assert!(output.contains("CCM-001"), "{output}");
}

#[test]
fn the_definition_is_printed_as_it_is_installed() {
    assert_eq!(typed(&["crd"], ""), (0, vmi_crds::CRD_YAML.to_owned(), String::new()));
}

#[test]
fn the_graph_is_printed_in_every_format() {
    for (format, begins) in
        [("text", "#    CONDITION"), ("json", "{\n  \"version\": 1,"), ("dot", "digraph vmi {"), ("markdown", "<!-- Generated")]
    {
        let (code, output, _) = typed(&["graph", "-o", format], "");
        assert_eq!(code, 0);
        assert!(output.starts_with(begins), "{output}");
        assert!(output.contains("CloudConfigExtended"), "{output}");
    }
    assert_eq!(typed(&["graph"], "").1, typed(&["graph", "-o", "text"], "").1);
}

#[test]
fn a_wrong_word_exits_with_1_because_2_means_pending_changes() {
    let table: [(&[&str], &str); 5] = [
        (&["explain"], "--component"),
        (&["plod"], "Usage: vmi"),
        (&[], "Usage: vmi"),
        (&["graph", "-o", "xml"], "text, json, dot, markdown"),
        (&["cloud-config", "add", "--server", "x"], "--datacenter"),
    ];
    for (wrong, told) in table {
        let (code, output, reason) = typed(wrong, "");
        assert_eq!((code, output.as_str()), (1, ""), "{wrong:?}");
        assert!(reason.contains(told), "{reason}");
    }
    assert_eq!(typed(&["--help"], "").0, 0);
}

#[test]
fn without_a_cluster_status_says_how_to_name_one() {
    let empty = tempfile::tempdir().unwrap();
    let mut command = vmi();
    command.arg("status").env("KUBECONFIG", empty.path().join("none")).env_remove("KUBERNETES_SERVICE_HOST");
    let output = run(&mut command, "");
    assert_eq!(output.status.code(), Some(1));
    let reason = String::from_utf8(output.stderr).unwrap();
    assert!(reason.starts_with("vmi: no cluster to talk to: ") && reason.contains("KUBECONFIG"), "{reason}");
}

#[test]
fn an_apiserver_that_does_not_answer_is_named_with_the_cause() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kubeconfig");
    // Nobody listens there: the port was free a moment ago, and nobody else is told of it.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let config = serde_json::json!({
        "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": format!("http://127.0.0.1:{port}")}}], "users": [{"name": "u", "user": {}}]});
    std::fs::write(&file, config.to_string()).unwrap();
    let mut command = vmi();
    // A proxy in the environment must not keep it from asking directly.
    command
        .args(["status", "-n", "here"])
        .env("KUBECONFIG", &file)
        .env("HTTPS_PROXY", "http://127.0.0.1:1")
        .env("HTTP_PROXY", "http://127.0.0.1:1");
    let output = run(&mut command, "");
    assert_eq!(output.status.code(), Some(1));
    let reason = String::from_utf8(output.stderr).unwrap();
    assert!(reason.starts_with("vmi: cannot read the vmis in here: ") && reason.contains("refused"), "{reason}");
}

#[test]
fn as_a_plugin_of_kubectl_it_does_the_same_and_names_itself_so() {
    let folder = tempfile::tempdir().unwrap();
    let plugin = folder.path().join("kubectl-vmi");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_vmi"), &plugin).unwrap();
    let output = run(Command::new(&plugin).arg("crd"), "");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), vmi_crds::CRD_YAML);
    let output = run(Command::new(&plugin).args(["graph", "--wrong"]), "");
    assert!(String::from_utf8(output.stderr).unwrap().contains("Usage: kubectl vmi graph"));
}

#[test]
fn a_reader_that_stops_early_is_no_failure() {
    let mut child = vmi().args(["graph", "-o", "json"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap().as_str()), (Some(0), ""));
}
