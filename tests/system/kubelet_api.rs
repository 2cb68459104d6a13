//! What reaches pods from outside: `kubectl logs` and the apiserver's way to Services, both through the egress proxy.

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use vmi_lab::kubernetes::{self, POD};

use crate::node_agent::{create, first_line, leave, namespace, script, until_ready};
use crate::support::asking;
use crate::support::lab::Lab;
use crate::support::suite::TestResult;

pub async fn kubectl_logs_shows_what_a_container_printed_and_when(lab: &Lab) -> TestResult {
    let ns = "agent-logs";
    namespace(lab, ns).await?;
    create(lab, ns, "talker", json!({"containers": [script("echo one; echo two >&2; echo three; while :; do sleep 1000; done")]})).await?;
    until_ready(lab, ns, "talker").await?;
    let mut follower = lab.kubectl_command().args(["logs", "-f", "-n", ns, "talker"]).stdout(std::process::Stdio::piped()).spawn()?;
    let mut output = follower.stdout.take().ok_or("no output")?;
    let mut all = vec![0; "one\ntwo\nthree\n".len()];
    output.read_exact(&mut all).await?;
    assert_eq!(all, b"one\ntwo\nthree\n");
    follower.kill().await?;
    let logs = async |more: &[&str]| -> TestResult<String> {
        Ok(lab.kubectl(&[&["logs", "-n", ns, "talker"], more].concat()).await?.success()?.stdout)
    };
    assert_eq!(logs(&["--tail=1"]).await?, "three\n");
    assert_eq!(logs(&["--limit-bytes=5"]).await?, "one\nt");
    assert_eq!(logs(&["--since=1h"]).await?, "one\ntwo\nthree\n");
    let timed = logs(&["--timestamps"]).await?;
    let second = timed.lines().nth(1).and_then(|line| line.strip_suffix(" two")).ok_or("no second line")?;
    assert_eq!(logs(&[&format!("--since-time={second}")]).await?.lines().last(), Some("three"));
    let refused = lab.kubectl(&["logs", "-n", ns, "talker", "--previous"]).await?;
    assert!(refused.stderr.contains("previous terminated container \"main\" in pod \"talker\" not found"), "{}", refused.stderr);
    leave(lab, ns).await
}

pub async fn following_a_log_ends_with_the_container(lab: &Lab) -> TestResult {
    let ns = "agent-follow";
    namespace(lab, ns).await?;
    let wait = "until test -f $(LAB_VOLUME_STATE)/done; do sleep 0.1; done; echo the end";
    let pod = json!({
        "restartPolicy": "Never",
        "volumes": [{"name": "state", "emptyDir": {}}],
        "containers": [script(&format!("echo $(LAB_VOLUME_STATE)/done; {wait}"))],
    });
    create(lab, ns, "ender", pod).await?;
    until_ready(lab, ns, "ender").await?;
    let path = first_line(lab, ns, "ender").await?;
    let follower = lab.kubectl_command().args(["logs", "-f", "-n", ns, "ender"]).stdout(std::process::Stdio::piped()).spawn()?;
    std::fs::write(&path, "")?;
    let said = follower.wait_with_output().await?;
    assert!(said.status.success());
    assert_eq!(String::from_utf8_lossy(&said.stdout), format!("{path}\nthe end\n"));
    leave(lab, ns).await
}

pub async fn a_service_leads_to_its_ready_pod(lab: &Lab) -> TestResult {
    let ns = "agent-service";
    namespace(lab, ns).await?;
    let server = json!({
        "name": "main", "image": "vmi-lab/etcd",
        "ports": [{"name": "client", "containerPort": 2379}, {"name": "peer", "containerPort": 2380}],
        "args": [
            "--data-dir=$(LAB_VOLUME_DATA)", "--unsafe-no-fsync=true",
            "--listen-client-urls=http://$(LAB_ADDRESS):$(LAB_PORT_CLIENT)", "--advertise-client-urls=http://$(LAB_ADDRESS):$(LAB_PORT_CLIENT)",
            "--listen-peer-urls=http://$(LAB_ADDRESS):$(LAB_PORT_PEER)",
        ],
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "client"}, "timeoutSeconds": 30},
    });
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "store", "namespace": ns},
        "spec": {"selector": {"app": "store"}, "ports": [{"port": 80, "targetPort": "client"}]}});
    let created = kubernetes::apply(&lab.client, "test", &service).await?;
    create(lab, ns, "store", json!({"volumes": [{"name": "data", "emptyDir": {}}], "containers": [server]})).await?;
    until_ready(lab, ns, "store").await?;
    let address = created.data["spec"]["clusterIP"].as_str().ok_or("the service has no address")?;
    // The apiserver dials a webhook's Service by its address.
    answers(lab, address, 80, "/version", "etcdserver").await?;
    let answer = lab.kubectl(&["get", "--raw", &format!("/api/v1/namespaces/{ns}/pods/store:2379/proxy/version")]).await?.success()?;
    assert!(answer.stdout.contains("etcdserver"), "{}", answer.stdout);
    kubernetes::delete(&lab.client, POD, ns, "store").await?;
    answers(lab, address, 80, "/version", &format!("HTTP/1.1 502 no ready pod stands behind service {ns}/store")).await?;
    leave(lab, ns).await
}

/// Waits until what comes through the egress proxy holds `expected`. The proxy learns of pods by a watch of its own, a moment
/// sooner or later than this test.
async fn answers(lab: &Lab, host: &str, port: u16, path: &str, expected: &str) -> TestResult {
    asking::until("an answer through the egress proxy", async || {
        let answer = through_egress(lab, host, port, path).await?;
        if answer.contains(expected) { Ok(()) } else { Err(format!("wanted {expected:?}, got {answer}").into()) }
    })
    .await
}

/// Asks the egress proxy, as the apiserver would, for a connection, and gets `path` through it.
async fn through_egress(lab: &Lab, host: &str, port: u16, path: &str) -> TestResult<String> {
    let mut stream = UnixStream::connect(lab.folder().join("egress.sock")).await?;
    let connect = format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    let get = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    // In one piece: a proxy that refuses the first closes, and may do so before a second has been read.
    stream.write_all(format!("{connect}{get}").as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

pub async fn a_pod_speaks_to_the_apiserver_as_its_service_account(lab: &Lab) -> TestResult {
    let ns = "agent-identity";
    namespace(lab, ns).await?;
    let container =
        json!({"name": "main", "image": "vmi-lab/kubectl", "args": ["auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"]});
    create(lab, ns, "who", json!({"restartPolicy": "Never", "containers": [container]})).await?;
    crate::node_agent::until(lab, ns, "who", "the pod to end", |pod| {
        ["Succeeded", "Failed"].iter().any(|phase| pod.data["status"]["phase"] == *phase).then_some(())
    })
    .await?;
    let said = lab.kubectl(&["logs", "-n", ns, "who"]).await?.success()?;
    assert_eq!(said.stdout, format!("system:serviceaccount:{ns}:default"));
    leave(lab, ns).await
}

pub async fn exec_is_refused_with_a_sentence(lab: &Lab) -> TestResult {
    let ns = "agent-exec";
    namespace(lab, ns).await?;
    create(lab, ns, "closed", json!({"containers": [script("while :; do sleep 1000; done")]})).await?;
    until_ready(lab, ns, "closed").await?;
    let refused = lab.kubectl(&["exec", "-n", ns, "closed", "--", "true"]).await?;
    assert_ne!(refused.code(), 0);
    assert!(refused.stderr.contains("has no exec"), "{}", refused.stderr);
    leave(lab, ns).await
}
