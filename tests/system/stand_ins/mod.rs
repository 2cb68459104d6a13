//! Each stand-in alone, on a real apiserver where nothing else of OpenShift runs.

pub mod config_operator;
pub mod cvo;
pub mod mco;

use std::time::Duration;

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use vmi_lab::kubernetes::{
    self, CLUSTER_OPERATOR, CLUSTER_VERSION, CONFIG_MAP, CRD, DNS, FEATURE_GATE, INFRASTRUCTURE, Kind, NETWORK, PROXY, condition,
};

use crate::support::lab::Lab;
use crate::support::openshift::PATIENCE;
use crate::support::suite::TestResult;

const MANAGER: &str = "system-test";
const VERSION: &str = "4.21.3";
const CONFIG: &str = "openshift-config";
const MANAGED: &str = "openshift-config-managed";

/// A stand-in at work in this process until it is dropped.
struct AtWork(JoinHandle<()>);

impl AtWork {
    fn start(stand_in: impl Future<Output = ()> + Send + 'static) -> AtWork {
        AtWork(tokio::spawn(stand_in))
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn config(kind: Kind, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": kind.api_version(), "kind": kind.kind, "metadata": {"name": name}, "spec": spec})
}

fn vcenter(server: &str) -> Value {
    json!({"server": server, "datacenters": ["dc"]})
}

fn cloud_provider_config() -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cloud-provider-config", "namespace": CONFIG},
        "data": {"config": "global: {}\n", "ca-bundle.pem": "PEM"}})
}

/// The configuration that an installer leaves.
async fn install(lab: &Lab) -> TestResult {
    let vsphere = json!({"type": "VSphere", "vsphere": {"vcenters": [vcenter("vc-a.example.com")]}});
    let cloud_config = json!({"name": "cloud-provider-config", "key": "config"});
    let mut infrastructure = config(INFRASTRUCTURE, "cluster", &json!({"cloudConfig": cloud_config, "platformSpec": vsphere}));
    infrastructure["status"] = json!({"platformStatus": {"type": "VSphere"}, "infrastructureName": "lab-x7k2p",
        "controlPlaneTopology": "HighlyAvailable", "infrastructureTopology": "HighlyAvailable"});
    for manifest in [
        infrastructure,
        config(NETWORK, "cluster", &json!({"serviceNetwork": ["10.96.0.0/16"], "networkType": "OVNKubernetes"})),
        config(DNS, "cluster", &json!({"baseDomain": "lab.example.com"})),
        config(PROXY, "cluster", &json!({})),
        config(FEATURE_GATE, "cluster", &json!({})),
        config(CLUSTER_VERSION, "version", &json!({"clusterID": "3f2b1c44-6f3c-4c55-9a0b-1d2e3f4a5b6c"})),
        cloud_provider_config(),
    ] {
        kubernetes::apply(&lab.client, MANAGER, &manifest).await?;
    }
    Ok(())
}

/// Takes away what `install` made and what the stand-ins reported.
async fn clean(lab: &Lab) -> TestResult {
    for kind in [INFRASTRUCTURE, NETWORK, DNS, PROXY, FEATURE_GATE] {
        kubernetes::delete(&lab.client, kind, "", "cluster").await?;
    }
    kubernetes::delete(&lab.client, CLUSTER_VERSION, "", "version").await?;
    kubernetes::delete(&lab.client, CONFIG_MAP, CONFIG, "cloud-provider-config").await?;
    kubernetes::delete(&lab.client, CONFIG_MAP, MANAGED, "kube-cloud-config").await?;
    for operator in ["config-operator", "machine-config"] {
        kubernetes::delete(&lab.client, CLUSTER_OPERATOR, "", operator).await?;
    }
    Ok(())
}

/// Waits until an operator's condition reads so, and returns its message.
async fn reported(lab: &Lab, operator: &str, kind: &str, status: &str) -> TestResult<String> {
    let mut cache = lab.watch(&[CLUSTER_OPERATOR]).await;
    let message = cache
        .until(&format!("{operator} to report {kind}={status}"), PATIENCE, |cache| {
            let found = cache.get(CLUSTER_OPERATOR, "", operator).ok_or("it has not reported yet")?;
            if condition(&found, kind) != status {
                return Err(format!("{}", found.data["status"]["conditions"]));
            }
            let conditions = found.data["status"]["conditions"].as_array().cloned().unwrap_or_default();
            Ok(conditions
                .iter()
                .find(|entry| entry["type"] == kind)
                .and_then(|entry| entry["message"].as_str())
                .unwrap_or_default()
                .to_owned())
        })
        .await?;
    Ok(message)
}

/// Waits until one object is as `look` wants it; the error of `look` says what is missing.
async fn becomes<T>(lab: &Lab, kind: Kind, namespace: &str, name: &str, look: impl Fn(&Value) -> Result<T, String>) -> TestResult<T> {
    let mut cache = lab.watch(&[kind]).await;
    let found = cache
        .until(&format!("{} {name}", kind.kind), PATIENCE, |cache| {
            let object = cache.get(kind, namespace, name).ok_or("it does not exist")?;
            look(&json!(*object))
        })
        .await?;
    Ok(found)
}

/// Removes the rules at `pointer` of a CRD and returns the patch that brings them back.
async fn relax(lab: &Lab, name: &str, pointer: &str) -> TestResult<Value> {
    let crd = kubernetes::get(&lab.client, CRD, "", name).await?.ok_or("no such CRD")?;
    let restore = json!({"spec": {"versions": crd.data["spec"]["versions"]}});
    let patch = serde_json::from_value(json!([{"op": "remove", "path": pointer}]))?;
    CRD.api(&lab.client, "").patch(name, &PatchParams::default(), &Patch::Json::<()>(patch)).await?;
    Ok(restore)
}

/// Writes until the apiserver takes it: after a change of a CRD it needs a moment, and no event tells when it has had it.
async fn merge_until_taken(lab: &Lab, kind: Kind, name: &str, patch: &Value) -> TestResult {
    let end = tokio::time::Instant::now() + PATIENCE;
    loop {
        match kubernetes::merge(&lab.client, kind, "", name, patch).await {
            Ok(_) => return Ok(()),
            Err(error) if tokio::time::Instant::now() > end => return Err(error.into()),
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}
