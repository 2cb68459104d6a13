//! The node agent's promises about pods, each kept by real processes. Every test has a namespace of its own.

use std::path::PathBuf;
use std::time::Duration;

use kube::ResourceExt as _;
use kube::api::{DeleteParams, DynamicObject, PostParams};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use vmi_lab::agent::BOOTS;
use vmi_lab::kubernetes::{self, EVENT, NAMESPACE, NODE, POD, SERVICE_ACCOUNT, condition};

use crate::support::lab::Lab;
use crate::support::suite::TestResult;

pub const PATIENCE: Duration = Duration::from_secs(120);
const FOREVER: &str = "while :; do sleep 1000; done";

/// A namespace where pods can be made.
pub async fn namespace(lab: &Lab, name: &str) -> TestResult {
    kubernetes::apply(&lab.client, "test", &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})).await?;
    let mut cache = lab.watch(&[SERVICE_ACCOUNT]).await;
    let account = |cache: &vmi_lab::cache::Cache| cache.get(SERVICE_ACCOUNT, name, "default").map(drop).ok_or_else(|| "none".to_owned());
    cache.until("the default service account", PATIENCE, account).await?;
    Ok(())
}

pub async fn leave(lab: &Lab, namespace: &str) -> TestResult {
    for pod in kubernetes::list(&lab.client, POD, namespace).await? {
        let api = POD.api(&lab.client, namespace);
        match api.delete(&pod.name_any(), &DeleteParams::default().grace_period(1)).await {
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            outcome => drop(outcome?),
        }
    }
    Ok(kubernetes::delete(&lab.client, NAMESPACE, "", namespace).await?)
}

/// Makes a pod, on node-0 unless it says otherwise, and returns it as the apiserver made it.
pub async fn create(lab: &Lab, namespace: &str, name: &str, spec: Value) -> TestResult<DynamicObject> {
    let mut spec = spec;
    if spec.get("nodeName").is_none() {
        spec["nodeName"] = json!("node-0");
    }
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace, "labels": {"app": name}}, "spec": spec});
    Ok(POD.api(&lab.client, namespace).create(&PostParams::default(), &serde_json::from_value(pod)?).await?)
}

/// A container that runs a shell script.
pub fn script(text: &str) -> Value {
    json!({"name": "main", "image": "vmi-lab/shell", "args": ["-c", text]})
}

/// Waits until a pod is as `look` wants it, and returns what `look` returns.
pub async fn until<T>(lab: &Lab, namespace: &str, name: &str, what: &str, look: impl Fn(&DynamicObject) -> Option<T>) -> TestResult<T> {
    let mut cache = lab.watch(&[POD]).await;
    let found = cache.until(what, PATIENCE, |cache| {
        let pod = cache.get(POD, namespace, name).ok_or("there is no such pod")?;
        look(&pod).ok_or_else(|| pod.data["status"].to_string())
    });
    Ok(found.await?)
}

pub async fn until_ready(lab: &Lab, namespace: &str, name: &str) -> TestResult<DynamicObject> {
    until(lab, namespace, name, "the pod to be ready", |pod| (condition(pod, "Ready") == "True").then(|| pod.clone())).await
}

async fn until_gone(lab: &Lab, namespace: &str, name: &str) -> TestResult {
    let mut cache = lab.watch(&[POD]).await;
    let gone = |cache: &vmi_lab::cache::Cache| match cache.get(POD, namespace, name) {
        Some(pod) => Err(pod.data["status"].to_string()),
        None => Ok(()),
    };
    Ok(cache.until("the pod to be gone", PATIENCE, gone).await?)
}

/// The first line a container prints, as soon as it is printed: being ready does not mean that it was.
pub async fn first_line(lab: &Lab, namespace: &str, name: &str) -> TestResult<String> {
    let mut command = lab.kubectl_command();
    command.args(["logs", "-f", "-n", namespace, name, "-c", "main"]).kill_on_drop(true);
    let mut follower = command.stdout(std::process::Stdio::piped()).spawn()?;
    let mut line = String::new();
    let mut output = BufReader::new(follower.stdout.take().ok_or("no output")?);
    tokio::time::timeout(PATIENCE, output.read_line(&mut line)).await??;
    follower.kill().await?;
    Ok(line.trim_end().to_owned())
}

fn main_status(pod: &DynamicObject) -> &Value {
    &pod.data["status"]["containerStatuses"][0]
}

fn pid(pod: &DynamicObject) -> Option<u32> {
    main_status(pod)["containerID"].as_str()?.strip_prefix("process://")?.parse().ok()
}

fn is_running(pid: u32) -> bool {
    std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty())
}

pub async fn a_pod_runs_as_a_process_that_ends_with_it(lab: &Lab) -> TestResult {
    let ns = "agent-process";
    namespace(lab, ns).await?;
    create(lab, ns, "one", json!({"containers": [script(FOREVER)]})).await?;
    let pod = until_ready(lab, ns, "one").await?;
    let pid = pid(&pod).ok_or("no process")?;
    assert!(is_running(pid));
    let status = &pod.data["status"];
    assert_eq!(status["phase"], "Running");
    assert_eq!(status["hostIP"], "10.0.0.1");
    assert!(status["podIP"].as_str().is_some_and(|ip| !ip.starts_with("127.")), "a loopback address would be refused in EndpointSlices");
    assert!(status["startTime"].is_string());
    for (name, expected) in [("Initialized", "True"), ("ContainersReady", "True")] {
        assert_eq!(condition(&pod, name), expected, "{name}");
    }
    let api = POD.api(&lab.client, ns);
    api.delete("one", &DeleteParams::default().grace_period(1)).await?;
    until_gone(lab, ns, "one").await?;
    assert!(!is_running(pid));
    leave(lab, ns).await
}

pub async fn a_deleted_container_may_end_in_its_own_way_within_its_grace_period(lab: &Lab) -> TestResult {
    let ns = "agent-grace";
    namespace(lab, ns).await?;
    let polite = "trap 'echo goodbye; exit 0' TERM; echo hello; while :; do sleep 1000 & wait; done";
    create(lab, ns, "polite", json!({"terminationGracePeriodSeconds": 300, "containers": [script(polite)]})).await?;
    until_ready(lab, ns, "polite").await?;
    let mut follower = lab.kubectl_command().args(["logs", "-f", "-n", ns, "polite"]).stdout(std::process::Stdio::piped()).spawn()?;
    let mut output = follower.stdout.take().ok_or("no output")?;
    let mut hello = [0; "hello\n".len()];
    output.read_exact(&mut hello).await?;
    kubernetes::delete(&lab.client, POD, ns, "polite").await?;
    until_gone(lab, ns, "polite").await?;
    let mut said = String::new();
    output.read_to_string(&mut said).await?;
    assert_eq!(said, "goodbye\n");
    follower.wait().await?;

    let deaf = "trap '' TERM; while :; do sleep 1000; done";
    create(lab, ns, "deaf", json!({"terminationGracePeriodSeconds": 1, "containers": [script(deaf)]})).await?;
    let pid = pid(&until_ready(lab, ns, "deaf").await?).ok_or("no process")?;
    kubernetes::delete(&lab.client, POD, ns, "deaf").await?;
    until_gone(lab, ns, "deaf").await?;
    assert!(!is_running(pid));
    leave(lab, ns).await
}

pub async fn a_crashing_container_backs_off_and_keeps_its_previous_log(lab: &Lab) -> TestResult {
    let ns = "agent-crash";
    namespace(lab, ns).await?;
    let mut container = script("echo falling over; exit 7");
    container["terminationMessagePolicy"] = json!("FallbackToLogsOnError");
    create(lab, ns, "crash", json!({"containers": [container]})).await?;
    let pod = until(lab, ns, "crash", "the crash loop", |pod| {
        (main_status(pod)["state"]["waiting"]["reason"] == "CrashLoopBackOff").then(|| pod.clone())
    })
    .await?;
    let status = main_status(&pod);
    let message = status["state"]["waiting"]["message"].as_str().unwrap_or_default();
    assert!(message.starts_with("back-off 10s restarting failed container=main pod=crash_agent-crash("), "{message}");
    assert_eq!(status["restartCount"], 1);
    assert_eq!(status["lastState"]["terminated"]["exitCode"], 7);
    assert_eq!(status["lastState"]["terminated"]["message"], "falling over\n");
    assert_eq!(pod.data["status"]["phase"], "Running");
    assert_eq!(condition(&pod, "Ready"), "False");
    let previous = lab.kubectl(&["logs", "-n", ns, "crash", "--previous"]).await?.success()?;
    assert_eq!(previous.stdout, "falling over\n");
    leave(lab, ns).await
}

pub async fn a_pod_that_is_not_restarted_ends_as_succeeded_or_failed(lab: &Lab) -> TestResult {
    let ns = "agent-once";
    namespace(lab, ns).await?;
    for (name, text, phase) in [("well", "exit 0", "Succeeded"), ("badly", "exit 3", "Failed")] {
        create(lab, ns, name, json!({"restartPolicy": "Never", "containers": [script(text)]})).await?;
        let done = |pod: &DynamicObject| (pod.data["status"]["phase"] == phase).then(|| pod.clone());
        let pod = until(lab, ns, name, phase, done).await?;
        assert_eq!(condition(&pod, "Ready"), "False");
        assert_eq!(main_status(&pod)["restartCount"], 0);
    }
    leave(lab, ns).await
}

pub async fn init_containers_run_one_after_the_other_before_the_rest(lab: &Lab) -> TestResult {
    let ns = "agent-init";
    namespace(lab, ns).await?;
    let step = |name: &str, text: &str| json!({"name": name, "image": "vmi-lab/shell", "args": ["-c", text]});
    let pod = json!({
        "volumes": [{"name": "notes", "emptyDir": {}}],
        "initContainers": [
            step("first", "sleep 1; echo first >> $(LAB_VOLUME_NOTES)/order"),
            step("second", "echo second >> $(LAB_VOLUME_NOTES)/order"),
        ],
        "containers": [script("echo `cat $(LAB_VOLUME_NOTES)/order`; while :; do sleep 1000; done")],
    });
    create(lab, ns, "steps", pod).await?;
    until_ready(lab, ns, "steps").await?;
    assert_eq!(first_line(lab, ns, "steps").await?, "first second");
    leave(lab, ns).await
}

pub async fn a_pod_waits_for_its_secret_and_sees_it_change(lab: &Lab) -> TestResult {
    let ns = "agent-secret";
    namespace(lab, ns).await?;
    let read = "echo $(LAB_VOLUME_LOGIN)/user; while :; do sleep 1000; done";
    create(lab, ns, "reader", json!({"volumes": [{"name": "login", "secret": {"secretName": "login"}}], "containers": [script(read)]}))
        .await?;
    let missing = "MountVolume.SetUp failed for volume \"login\" : secret \"login\" not found";
    until(lab, ns, "reader", "the missing secret to be named", |pod| {
        let waiting = &main_status(pod)["state"]["waiting"];
        (waiting["reason"] == "ContainerCreating" && waiting["message"] == missing).then_some(())
    })
    .await?;
    let mut events = lab.watch(&[EVENT]).await;
    let told = |cache: &vmi_lab::cache::Cache| {
        let told = cache.list(EVENT).iter().any(|event| event.data["reason"] == "FailedMount" && event.data["message"] == missing);
        told.then_some(()).ok_or_else(|| "no such event".to_owned())
    };
    events.until("the FailedMount event", PATIENCE, told).await?;
    let secret = |user: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login", "namespace": ns}, "stringData": {"user": user}});
    kubernetes::apply(&lab.client, "test", &secret("root")).await?;
    until_ready(lab, ns, "reader").await?;
    let path = PathBuf::from(first_line(lab, ns, "reader").await?);
    assert_eq!(std::fs::read_to_string(&path)?, "root");
    kubernetes::apply(&lab.client, "test", &secret("somebody")).await?;
    until_file(&path, "somebody").await?;
    leave(lab, ns).await
}

/// Files have no events that work everywhere, so this looks, ten times a second.
async fn until_file(path: &std::path::Path, content: &str) -> TestResult {
    let look = async {
        while std::fs::read_to_string(path).is_ok_and(|text| text != content) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(PATIENCE, look).await?;
    assert_eq!(std::fs::read_to_string(path)?, content);
    Ok(())
}

pub async fn readiness_follows_its_probe(lab: &Lab) -> TestResult {
    let ns = "agent-ready";
    namespace(lab, ns).await?;
    let mut container = script("echo $(LAB_VOLUME_STATE)/ready; while :; do sleep 1000; done");
    container["readinessProbe"] = json!({"exec": {"command": ["/bin/sh", "-c", "test -f $LAB_VOLUME_STATE/ready"]}, "periodSeconds": 1, "failureThreshold": 1, "timeoutSeconds": 30});
    create(lab, ns, "probed", json!({"volumes": [{"name": "state", "emptyDir": {}}], "containers": [container]})).await?;
    let unready = |pod: &DynamicObject| {
        let running = main_status(pod)["state"]["running"].is_object() && main_status(pod)["started"] == true;
        (running && condition(pod, "Ready") == "False").then_some(())
    };
    until(lab, ns, "probed", "the pod to run without being ready", unready).await?;
    let path = PathBuf::from(first_line(lab, ns, "probed").await?);
    std::fs::write(&path, "")?;
    until_ready(lab, ns, "probed").await?;
    std::fs::remove_file(&path)?;
    until(lab, ns, "probed", "the pod to be unready again", unready).await?;
    leave(lab, ns).await
}

pub async fn a_failing_liveness_probe_restarts_the_container(lab: &Lab) -> TestResult {
    let ns = "agent-live";
    namespace(lab, ns).await?;
    let mut container = script(FOREVER);
    container["livenessProbe"] = json!({"exec": {"command": ["/bin/sh", "-c", "echo too weak; exit 1"]}, "periodSeconds": 1, "failureThreshold": 2, "timeoutSeconds": 30});
    create(lab, ns, "weak", json!({"terminationGracePeriodSeconds": 1, "containers": [container]})).await?;
    let restarted = |pod: &DynamicObject| (main_status(pod)["restartCount"].as_i64() >= Some(1)).then_some(());
    until(lab, ns, "weak", "the restart", restarted).await?;
    leave(lab, ns).await
}

pub async fn a_rebooted_node_starts_its_containers_again(lab: &Lab) -> TestResult {
    let ns = "agent-reboot";
    namespace(lab, ns).await?;
    let boots = |count: &str| json!({"metadata": {"annotations": {BOOTS: count}}});
    let node = kubernetes::get(&lab.client, NODE, "", "node-1").await?.ok_or("no node-1")?;
    let count: u32 = node.annotations().get(BOOTS).and_then(|count| count.parse().ok()).unwrap_or(1);
    kubernetes::merge(&lab.client, NODE, "", "node-1", &boots(&count.to_string())).await?;
    create(lab, ns, "steady", json!({"nodeName": "node-1", "containers": [script(FOREVER)]})).await?;
    let before = pid(&until_ready(lab, ns, "steady").await?);
    kubernetes::merge(&lab.client, NODE, "", "node-1", &boots(&(count + 1).to_string())).await?;
    let again = |pod: &DynamicObject| (main_status(pod)["restartCount"] == 1 && condition(pod, "Ready") == "True").then(|| pid(pod));
    let after = until(lab, ns, "steady", "the container to be started again", again).await?;
    assert_ne!(before, after);
    leave(lab, ns).await
}

pub async fn a_lost_node_takes_its_pods_along(lab: &Lab) -> TestResult {
    let ns = "agent-lost";
    namespace(lab, ns).await?;
    kubernetes::apply(&lab.client, "test", &json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "short-lived"}})).await?;
    create(lab, ns, "victim", json!({"nodeName": "short-lived", "terminationGracePeriodSeconds": 3600, "containers": [script(FOREVER)]}))
        .await?;
    let pid = pid(&until_ready(lab, ns, "victim").await?).ok_or("no process")?;
    kubernetes::delete(&lab.client, NODE, "", "short-lived").await?;
    until_gone(lab, ns, "victim").await?;
    assert!(!is_running(pid));
    leave(lab, ns).await
}

pub async fn what_cannot_run_says_why(lab: &Lab) -> TestResult {
    let ns = "agent-refused";
    namespace(lab, ns).await?;
    let mut unknown = script("");
    unknown["image"] = json!("quay.example/nobody/knows:this");
    let mut part = script("");
    part["volumeMounts"] = json!([{"name": "state", "mountPath": "/x", "subPath": "y"}]);
    for (name, container, reason, word) in [
        ("image", unknown, "ImagePullBackOff", "the lab has no program for it"),
        ("subpath", part, "CreateContainerConfigError", "has no subPath"),
    ] {
        create(lab, ns, name, json!({"volumes": [{"name": "state", "emptyDir": {}}], "containers": [container]})).await?;
        until(lab, ns, name, reason, |pod| {
            let waiting = &main_status(pod)["state"]["waiting"];
            let says = waiting["message"].as_str().is_some_and(|message| message.contains(word));
            (waiting["reason"] == reason && says).then_some(())
        })
        .await?;
    }
    leave(lab, ns).await
}
