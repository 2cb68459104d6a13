//! Storage on vSphere as its stand-ins play it, in whole labs.

use std::process::Stdio;

use base64::Engine as _;
use kube::ResourceExt as _;
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use vmi_lab::faults::{Fault, Faults};
use vmi_lab::kubernetes::{
    self, CLUSTER_CSI_DRIVER, CLUSTER_OPERATOR, DAEMON_SET, DEPLOYMENT, EVENT, MACHINE, POD, SECRET, STORAGE_CLASS, VOLUME_ATTACHMENT,
    condition,
};

use crate::support::lab::Lab;
use crate::support::openshift::{MACHINE_API, PATIENCE};
use crate::support::suite::TestResult;

const DRIVERS: &str = "openshift-cluster-csi-drivers";

/// The driver's configuration, as it is.
async fn driver_config(lab: &Lab) -> TestResult<String> {
    let secret = kubernetes::get(&lab.client, SECRET, DRIVERS, "vsphere-csi-config-secret").await?.ok_or("no configuration")?;
    let text = secret.data["data"]["cloud.conf"].as_str().unwrap_or_default();
    Ok(String::from_utf8(base64::engine::general_purpose::STANDARD.decode(text)?)?)
}

pub async fn the_drivers_configuration_has_the_source_and_its_pods_follow_it(lab: &Lab) -> TestResult {
    let text = driver_config(lab).await?;
    let server = &lab.vcenter("a").server;
    for words in ["cluster-id = \"lab-x7k2p\"", &format!("[VirtualCenter \"{server}\"]"), "datacenters = dc-a"] {
        assert!(text.contains(words), "{words} is missing");
    }
    assert!(!text.contains("topology-categories"), "there is one failure domain");
    let mut hashes = Vec::new();
    for (kind, name) in [(DEPLOYMENT, "vmware-vsphere-csi-driver-controller"), (DAEMON_SET, "vmware-vsphere-csi-driver-node")] {
        let workload = kubernetes::get(&lab.client, kind, DRIVERS, name).await?.ok_or("no workload")?;
        let annotations = &workload.data["spec"]["template"]["metadata"]["annotations"];
        hashes.push(annotations["operator.openshift.io/dep-vsphere-csi-config-secret"].clone());
    }
    assert!(hashes[0].is_string() && hashes[0] == hashes[1], "{hashes:?}");
    Ok(())
}

pub async fn several_failure_domains_turn_topology_on(lab: &Lab) -> TestResult {
    let text = driver_config(lab).await?;
    assert!(text.contains("topology-categories = openshift-zone,openshift-region"));
    Ok(())
}

pub async fn a_bare_metal_node_degrades_storage_with_its_name(lab: &Lab) -> TestResult {
    let storage = kubernetes::get(&lab.client, CLUSTER_OPERATOR, "", "storage").await?.ok_or("no operator")?;
    assert_eq!(condition(&storage, "Degraded"), "True");
    let said = storage.data["status"]["conditions"].to_string();
    assert!(
        said.contains("VSphereCSIDriverOperatorCRDegraded: VMwareVSphereOperatorCheckDegraded") && said.contains("bare-metal-0"),
        "{said}"
    );
    let driver = kubernetes::get(&lab.client, CLUSTER_CSI_DRIVER, "", "csi.vsphere.vmware.com").await?.ok_or("no driver")?;
    assert_eq!(condition(&driver, "VMwareVSphereControllerDegraded"), "False", "it reaches its vCenters");
    Ok(())
}

/// Has the volume of vSphere's driver attached to a node, waits until its status is as wanted, and gives it up again.
async fn attached_to(lab: &Lab, node: &str, wanted: impl Fn(&serde_json::Value) -> bool) -> TestResult {
    let name = "lab-attachment";
    let attachment = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": {"name": name},
        "spec": {"attacher": "csi.vsphere.vmware.com", "nodeName": node, "source": {"persistentVolumeName": "pvc-orders"}},
    });
    kubernetes::apply(&lab.client, "system-test", &attachment).await?;
    let mut cache = lab.watch(&[VOLUME_ATTACHMENT]).await;
    let told = cache.until("the volume's attachment", PATIENCE, |cache| {
        let found = cache.get(VOLUME_ATTACHMENT, "", name).ok_or("it is not there")?;
        if wanted(&found.data["status"]) { Ok(()) } else { Err(found.data["status"].to_string()) }
    });
    let told = told.await;
    kubernetes::delete(&lab.client, VOLUME_ATTACHMENT, "", name).await?;
    let gone = |cache: &vmi_lab::cache::Cache| cache.get(VOLUME_ATTACHMENT, "", name).map_or(Ok(()), |_| Err("it is held".to_owned()));
    cache.until("the volume to be let go", PATIENCE, gone).await?;
    Ok(told?)
}

pub async fn a_volume_is_attached_and_let_go(lab: &Lab) -> TestResult {
    let machines = kubernetes::list(&lab.client, MACHINE, MACHINE_API).await?;
    let worker = machines.iter().map(kube::ResourceExt::name_any).find(|name| name.contains("worker")).ok_or("no worker")?;
    attached_to(lab, &worker, |status| status["attached"] == true && status["attachError"].is_null()).await
}

pub async fn a_volume_is_not_attached_to_a_node_that_is_no_virtual_machine(lab: &Lab) -> TestResult {
    let why = "CSINode bare-metal-0 does not contain driver csi.vsphere.vmware.com";
    attached_to(lab, "bare-metal-0", |status| status["attached"] == false && status["attachError"]["message"] == why).await
}

const STORAGE: &str = "openshift-cluster-storage-operator";
const DETECTOR: &str = "vsphere-problem-detector-operator";

async fn problem_detector(lab: &Lab) -> TestResult<kube::api::DynamicObject> {
    let pods = kubernetes::list(&lab.client, POD, STORAGE).await?;
    Ok(pods.into_iter().find(|pod| pod.name_any().starts_with(DETECTOR)).ok_or("no pod")?)
}

pub async fn the_problem_detector_finishes_a_round_and_names_the_node_without_an_id(lab: &Lab) -> TestResult {
    let log = round(lab).await?;
    for words in [
        "stand-in for the vsphere-problem-detector",
        "] CheckInfraConfig passed",
        "] CheckDatacenterConsistency passed",
        "] CheckAccountPermissions passed",
        "] CheckZoneTags passed",
        "] CheckTaskPermissions passed",
        "] CheckFolderPermissions passed",
        "] CheckDefaultDatastore passed",
        "] CheckStorageClasses checked 0 storage classes, 0 problems found\n",
        "] CheckStorageClasses passed",
        "] CheckHostGroups passed",
        "] Finished running all vSphere specific checks in the cluster",
        "] failed to run checks: VMUUID is not set for node bare-metal-0\n",
        "] Scheduled the next check in ",
    ] {
        assert!(log.contains(words), "{words:?} is missing in: {log}");
    }
    Ok(())
}

pub async fn what_the_problem_detector_found_is_in_events_and_metrics(lab: &Lab) -> TestResult {
    round(lab).await?;
    said(lab, "SucceededVSphereCheckInfraConfig", "Check succeeded").await?;
    said(lab, "FailedVSphereCheckNodeProviderID", "VMUUID is not set for node bare-metal-0").await?;

    let metrics = metrics(lab).await?;
    let node = lab.kubectl(&["get", "nodes", "-l", "node-role.kubernetes.io/master", "-o", "jsonpath={.items[0].metadata.name}"]);
    let node = node.await?.success()?.stdout;
    let of_node = |check: &str| format!("vsphere_node_check_errors{{check=\"{check}\",node=\"{node}\"}} 0");
    for series in [
        "vsphere_cluster_check_errors{check=\"CheckInfraConfig\"} 0".to_owned(),
        of_node("CheckNodeDiskUUID"),
        of_node("CheckNodeProviderID"),
        of_node("CheckComputeClusterPermissions"),
        of_node("CheckResourcePoolPermissions"),
        // Three of the control plane, two workers, one of infra and one with a GPU; nothing has ever turned tracking on.
        "vsphere_vm_cbt_checks{cbt=\"disabled\"} 7\n".to_owned(),
        "vsphere_sync_errors{reason=\"SyncError\"} 1".to_owned(),
        "vsphere_sync_errors{reason=\"InvalidCredentials\"} 0".to_owned(),
        "vsphere_sync_errors{reason=\"UsernameWithoutDomain\"} 0".to_owned(),
        "vsphere_vcenter_info{version=\"8.0.3\"".to_owned(),
        "vsphere_zonal_volumes_total 0".to_owned(),
    ] {
        assert!(metrics.contains(&series), "{series} is missing in: {metrics}");
    }
    Ok(())
}

/// Fails unless an Event of the detector has said this.
async fn said(lab: &Lab, reason: &str, message: &str) -> TestResult {
    let events = kubernetes::list(&lab.client, EVENT, STORAGE).await?;
    let told: Vec<&serde_json::Value> =
        events.iter().filter(|event| event.data["reason"] == reason).map(|event| &event.data["message"]).collect();
    assert!(told.iter().any(|told| **told == message), "{reason}: {told:?}");
    Ok(())
}

/// What the detector's metrics are now.
async fn metrics(lab: &Lab) -> TestResult<String> {
    let pod = problem_detector(lab).await?;
    let ports: serde_json::Value = serde_json::from_str(pod.annotations().get("vmi-lab/ports").ok_or("no ports")?)?;
    get(ports["8444"].as_str().ok_or("no port for metrics")?, "/metrics").await
}

/// Has a new detector make a round, whatever those before it met, and returns its log. Its Events are written by then.
async fn round(lab: &Lab) -> TestResult<String> {
    let mut cache = lab.watch(&[POD]).await;
    let old = problem_detector(lab).await?.name_any();
    kubernetes::delete(&lab.client, POD, STORAGE, &old).await?;
    let running = cache.until("a new problem detector", PATIENCE, |cache| {
        let of_detector = |pod: &&std::sync::Arc<kube::api::DynamicObject>| pod.name_any().starts_with(DETECTOR);
        match cache.list(POD).iter().filter(of_detector).map(|pod| (pod.name_any(), condition(pod, "Ready"))).collect::<Vec<_>>().as_slice()
        {
            [(name, ready)] if *name != old && *ready == "True" => Ok(name.clone()),
            others => Err(format!("{others:?}")),
        }
    });
    let pod = running.await?;
    let mut following = lab.kubectl_command().args(["logs", "-f", "-n", STORAGE, &pod]).stdout(Stdio::piped()).spawn()?;
    let mut lines = BufReader::new(following.stdout.take().ok_or("no output")?).lines();
    let read = async {
        let mut log = String::new();
        while let Some(line) = lines.next_line().await? {
            log += &format!("{line}\n");
            if line.contains("] Scheduled the next check in ") {
                return Ok::<_, Box<dyn std::error::Error + Send + Sync>>(log);
            }
        }
        Err(format!("the log ended before the round: {log}").into())
    };
    tokio::time::timeout(PATIENCE, read).await?
}

pub async fn the_problem_detector_says_what_is_denied_and_which_class_names_nothing(lab: &Lab) -> TestResult {
    let faults = Faults::of(&lab.record).await?;
    let denied = Fault::Privileges { vcenter: "a".to_owned(), missing: vec!["VApp.Import".to_owned()], object: String::new() };
    let denied = faults.add(&denied).await?;
    let classes = [("lab-nowhere", json!({"datastoreurl": "ds:///nowhere/"})), ("lab-plain", json!({"csi.storage.k8s.io/fstype": "xfs"}))];
    for (name, parameters) in &classes {
        let class = json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
            "provisioner": "csi.vsphere.vmware.com", "parameters": parameters,
        });
        kubernetes::apply(&lab.client, "system-test", &class).await?;
    }
    let broken = round(lab).await?;
    let counted = metrics(lab).await?;
    faults.lift(&denied).await?;
    for (name, _) in &classes {
        kubernetes::delete(&lab.client, STORAGE_CLASS, "", name).await?;
    }
    let mended = round(lab).await?;

    for (check, words) in [
        ("CheckAccountPermissions", "missing privileges for folder: VApp.Import"),
        ("CheckComputeClusterPermissions", "missing privileges for compute cluster cluster-a: VApp.Import"),
        ("CheckStorageClasses", "StorageClass lab-nowhere: unable to find datastore with URL ds:///nowhere/"),
    ] {
        assert!(
            broken.lines().any(|line| line.contains(check) && line.ends_with(&format!(" failed: {words}"))),
            "{words} is missing in: {broken}"
        );
        assert!(!mended.contains(words), "{words} is still in: {mended}");
    }
    said(lab, "FailedVSphereCheckStorageClasses", "StorageClass lab-nowhere: unable to find datastore with URL ds:///nowhere/").await?;
    for series in ["vsphere_datastore_total{type=\"other\"} 1\n", "vsphere_cluster_check_errors{check=\"CheckStorageClasses\"} 1\n"] {
        assert!(counted.contains(series), "{series} is missing in: {counted}");
    }
    Ok(())
}

/// An HTTP GET of the plainest kind.
async fn get(address: &str, path: &str) -> TestResult<String> {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut stream = tokio::net::TcpStream::connect(address).await?;
    stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n").as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}
