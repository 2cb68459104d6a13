//! Pods of the real controllers, run as processes.

use std::time::Duration;

use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde_json::json;
use vmi_lab::kubernetes::{self, POD, condition};
use vmi_lab::{home, process};

use crate::support::lab::Lab;
use crate::support::openshift::{MACHINE_API, PATIENCE};
use crate::support::suite::TestResult;

const CCM: &str = "openshift-cloud-controller-manager";

pub async fn a_deleted_pod_comes_back_as_a_new_process(lab: &Lab) -> TestResult {
    let program = "control-plane-machine-set-operator";
    let before = running(lab, program)?;
    assert_eq!(before.len(), 1, "{before:?}");
    let pod = find(lab, MACHINE_API, program).await?;
    kubernetes::delete(&lab.client, POD, MACHINE_API, &pod.name_any()).await?;
    replaced(lab, MACHINE_API, program, &[pod.uid().unwrap_or_default()]).await?;
    let after = running(lab, program)?;
    assert_eq!(after.len(), 1, "{after:?}");
    assert_ne!(before, after);
    Ok(())
}

pub async fn a_wrong_password_shows_the_real_line_in_the_logs_of_the_cloud_controller_manager(lab: &Lab) -> TestResult {
    let fault = lab.control.post("/vcenters/a/faults", &json!({"kind": "password", "password": "changed-meanwhile"})).await?;
    restart(lab, CCM, "vsphere-cloud-controller-manager").await?;
    // It tries without credentials first, by design; the refusal that counts comes after it has read the Secret.
    let seen = logs_until(lab, |text| {
        let after = text.split("Fetching credentials from secrets").nth(1).unwrap_or_default();
        after.contains("Cannot complete login due to an incorrect user name or password")
    })
    .await;
    lab.control.delete(&format!("/vcenters/a/faults/{}", fault["id"])).await?;
    restart(lab, CCM, "vsphere-cloud-controller-manager").await?;
    seen
}

/// Deletes every pod of a workload and waits for as many new ones.
async fn restart(lab: &Lab, namespace: &str, prefix: &str) -> TestResult {
    let pods = kubernetes::list(&lab.client, POD, namespace).await?;
    let old: Vec<_> = pods.iter().filter(|pod| pod.name_any().starts_with(prefix)).collect();
    let uids: Vec<String> = old.iter().filter_map(|pod| pod.uid()).collect();
    assert!(!uids.is_empty(), "no pod of {prefix}");
    for pod in old {
        kubernetes::delete(&lab.client, POD, namespace, &pod.name_any()).await?;
    }
    replaced(lab, namespace, prefix, &uids).await
}

/// Waits until pods of that name are Ready and none of the old ones is left.
async fn replaced(lab: &Lab, namespace: &str, prefix: &str, old: &[String]) -> TestResult {
    let mut cache = lab.watch(&[POD]).await;
    cache
        .until(&format!("{prefix} to be replaced"), PATIENCE, |cache| {
            let pods: Vec<_> = cache
                .list(POD)
                .into_iter()
                .filter(|pod| pod.namespace().as_deref() == Some(namespace) && pod.name_any().starts_with(prefix))
                .collect();
            if pods.iter().any(|pod| old.contains(&pod.uid().unwrap_or_default())) {
                return Err("an old one is still there".to_owned());
            }
            if pods.len() < old.len() || pods.iter().any(|pod| condition(pod, "Ready") != "True") {
                return Err(format!("{} new ones, not all ready", pods.len()));
            }
            Ok(())
        })
        .await?;
    Ok(())
}

async fn find(lab: &Lab, namespace: &str, prefix: &str) -> TestResult<DynamicObject> {
    let pods = kubernetes::list(&lab.client, POD, namespace).await?;
    Ok(pods.into_iter().find(|pod| pod.name_any().starts_with(prefix)).ok_or_else(|| format!("no pod {prefix}"))?)
}

/// Processes of the lab that run this program.
pub fn running(lab: &Lab, program: &str) -> TestResult<Vec<u32>> {
    let mut found = Vec::new();
    for pid in process::marked(Some(&home::mark(&lab.record.name)))? {
        let path = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        if path.file_name().is_some_and(|name| name == program) {
            found.push(pid);
        }
    }
    Ok(found)
}

/// Follows the logs of the cloud controller manager with kubectl until they satisfy `enough`.
async fn logs_until(lab: &Lab, enough: impl Fn(&str) -> bool) -> TestResult {
    use tokio::io::AsyncReadExt as _;
    let mut child = lab
        .kubectl_command()
        .args(["logs", "-n", CCM, "-l", "k8s-app=vsphere-cloud-controller-manager", "--tail=-1", "-f"])
        .stdout(std::process::Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut stdout = child.stdout.take().ok_or("no output")?;
    let mut text = Vec::new();
    let read = async {
        let mut chunk = vec![0; 65536];
        loop {
            let count = stdout.read(&mut chunk).await?;
            text.extend_from_slice(&chunk[..count]);
            if enough(&String::from_utf8_lossy(&text)) {
                return Ok(());
            }
            if count == 0 {
                return Err("the logs ended".into());
            }
        }
    };
    let found: TestResult = match tokio::time::timeout(Duration::from_secs(120), read).await {
        Ok(result) => result,
        Err(_elapsed) => Err("not within 120 s".into()),
    };
    found.map_err(|error| format!("{error}; the log so far:\n{}", String::from_utf8_lossy(&text)).into())
}
