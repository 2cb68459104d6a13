//! Stands in for the cluster-config-operator: `openshift-config-managed/kube-cloud-config` follows the ConfigMap and key that
//! Infrastructure names. All its keys are copied; the named one becomes `cloud.conf`. A missing key is no error to the real
//! operator (its consumers complain), a missing ConfigMap is.

use clap::Parser;
use kube::Client;
use serde_json::{Map, Value, json};

use super::{Error, operator_status, release_version, requests, woken};
use crate::cache::Cache;
use crate::kubernetes::{self, CONFIG_MAP, FEATURE_GATE, INFRASTRUCTURE};

const SOURCE_NAMESPACE: &str = "openshift-config";
const TARGET_NAMESPACE: &str = "openshift-config-managed";
const TARGET_NAME: &str = "kube-cloud-config";
const TARGET_KEY: &str = "cloud.conf";
const DAY2_GATE: &str = "VSphereMultiVCenterDay2";

#[derive(Parser)]
struct Arguments {}

/// What is to become of kube-cloud-config.
#[derive(Debug, PartialEq)]
enum Decision {
    /// Not ours: the cluster-cloud-controller-manager-operator owns it, or there is no Infrastructure yet.
    LeaveAlone,
    Remove,
    Hold {
        data: Value,
        binary_data: Value,
    },
    Fail(String),
}

pub async fn run(client: Client, arguments: &[String]) -> Result<(), Error> {
    Arguments::try_parse_from(["config-operator".to_owned()].iter().chain(arguments))?;
    keep(&client, &release_version()?).await
}

/// Keeps kube-cloud-config and the ClusterOperator, for ever.
pub async fn keep(client: &Client, version: &str) -> ! {
    tracing::info!("stand-in for the cluster-config-operator: keeps {TARGET_NAMESPACE}/{TARGET_NAME} for release {version}");
    let watched = [(INFRASTRUCTURE, ""), (FEATURE_GATE, ""), (CONFIG_MAP, SOURCE_NAMESPACE), (CONFIG_MAP, TARGET_NAMESPACE)];
    let mut cache = Cache::start(client, &watched).await;
    loop {
        let failure = match pass(client, &cache, version).await {
            Ok(()) => None,
            // The target changed under our hands; its event is on the way.
            Err(Failure::Request(error)) if error.is_conflict() => None,
            Err(failure) => Some(failure.to_string()),
        };
        let reported = report(client, version, failure.as_deref()).await;
        if let Err(error) = &reported {
            tracing::error!("{error}");
        }
        woken(&mut cache, failure.is_some() || reported.is_err()).await;
    }
}

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("{0}")]
    Decided(String),
    #[error(transparent)]
    Request(#[from] kubernetes::Error),
}

async fn pass(client: &Client, cache: &Cache, version: &str) -> Result<(), Failure> {
    let infrastructure = cache.get(INFRASTRUCTURE, "", "cluster");
    let gates = cache.get(FEATURE_GATE, "", "cluster");
    let day2 = gates.is_some_and(|gates| gate_enabled(&gates.data, version, DAY2_GATE));
    let name = infrastructure.as_ref().and_then(|object| object.data["spec"]["cloudConfig"]["name"].as_str()).unwrap_or_default();
    let source = cache.get(CONFIG_MAP, SOURCE_NAMESPACE, name);
    let decision = decide(infrastructure.as_ref().map(|object| &object.data), day2, source.as_ref().map(|object| &object.data));
    let target = cache.get(CONFIG_MAP, TARGET_NAMESPACE, TARGET_NAME);
    match (decision, target) {
        (Decision::LeaveAlone, _) | (Decision::Remove, None) => Ok(()),
        (Decision::Fail(why), _) => Err(Failure::Decided(why)),
        (Decision::Remove, Some(_)) => {
            tracing::info!("{TARGET_NAMESPACE}/{TARGET_NAME} is no longer required and is deleted");
            Ok(kubernetes::delete(client, CONFIG_MAP, TARGET_NAMESPACE, TARGET_NAME).await?)
        }
        (Decision::Hold { data, binary_data }, None) => {
            tracing::info!("creating {TARGET_NAMESPACE}/{TARGET_NAME}");
            let metadata = json!({"name": TARGET_NAME, "namespace": TARGET_NAMESPACE});
            let manifest = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data, "binaryData": binary_data});
            requests::create(client, CONFIG_MAP, &manifest).await?;
            Ok(())
        }
        (Decision::Hold { data, binary_data }, Some(target)) => {
            if field(&target.data, "data") == data && field(&target.data, "binaryData") == binary_data {
                return Ok(());
            }
            tracing::info!("updating {TARGET_NAMESPACE}/{TARGET_NAME} from {SOURCE_NAMESPACE}/{name}");
            let mut updated = target.as_ref().clone();
            updated.data["data"] = data;
            updated.data["binaryData"] = binary_data;
            requests::replace(client, CONFIG_MAP, &updated).await?;
            Ok(())
        }
    }
}

fn decide(infrastructure: Option<&Value>, day2: bool, source: Option<&Value>) -> Decision {
    let Some(infrastructure) = infrastructure else { return Decision::LeaveAlone };
    if day2 && platform(infrastructure) == "VSphere" {
        return Decision::LeaveAlone;
    }
    let reference = &infrastructure["spec"]["cloudConfig"];
    let name = reference["name"].as_str().unwrap_or_default();
    let key = reference["key"].as_str().unwrap_or_default();
    let (mut data, mut binary_data) = match (name, source) {
        ("", _) => (json!({}), json!({})),
        (name, None) => return Decision::Fail(format!("configmaps \"{name}\" not found")),
        (_, Some(source)) => (field(source, "data"), field(source, "binaryData")),
    };
    let entry = data.as_object_mut().and_then(|map| map.remove(key));
    let binary_entry = binary_data.as_object_mut().and_then(|map| map.remove(key));
    if let Some(text) = entry {
        data[TARGET_KEY] = text;
    } else if let Some(bytes) = binary_entry {
        binary_data[TARGET_KEY] = bytes;
    }
    if data == json!({}) && binary_data == json!({}) { Decision::Remove } else { Decision::Hold { data, binary_data } }
}

/// A map field, empty where it is missing.
fn field(object: &Value, name: &str) -> Value {
    object.get(name).filter(|value| value.is_object()).cloned().unwrap_or_else(|| Value::Object(Map::new()))
}

/// The platform of an Infrastructure, from the deprecated field on clusters that never got the newer one.
pub fn platform(infrastructure: &Value) -> &str {
    let status = &infrastructure["status"];
    status["platformStatus"]["type"].as_str().filter(|kind| !kind.is_empty()).or(status["platform"].as_str()).unwrap_or_default()
}

/// Whether FeatureGate `cluster` lists `gate` as enabled for the release `version`.
pub fn gate_enabled(feature_gate: &Value, version: &str, gate: &str) -> bool {
    let releases = feature_gate["status"]["featureGates"].as_array().into_iter().flatten();
    releases
        .filter(|release| release["version"] == version)
        .flat_map(|release| release["enabled"].as_array().into_iter().flatten())
        .any(|enabled| enabled["name"] == gate)
}

async fn report(client: &Client, version: &str, failure: Option<&str>) -> Result<(), kubernetes::Error> {
    if let Some(failure) = failure {
        tracing::error!("KubeCloudConfigController reconciliation failed: {failure}");
    }
    let message = failure.map(|failure| format!("KubeCloudConfigControllerDegraded: {failure}"));
    let degraded = match &message {
        Some(message) => ("Degraded", "True", "KubeCloudConfigController_SyncError", message.as_str()),
        None => ("Degraded", "False", "AsExpected", "All is well"),
    };
    let conditions = [
        ("Available", "True", "AsExpected", "All is well"),
        ("Progressing", "False", "AsExpected", "All is well"),
        degraded,
        ("Upgradeable", "True", "AsExpected", "All is well"),
    ];
    let related = [
        ("operator.openshift.io", "configs", "", "cluster"),
        ("", "namespaces", "", "openshift-config"),
        ("", "namespaces", "", "openshift-config-operator"),
    ];
    operator_status::report(client, "config-operator", version, &conditions, &related).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn infrastructure(name: &str, key: &str) -> Value {
        json!({"spec": {"cloudConfig": {"name": name, "key": key}}, "status": {"platformStatus": {"type": "VSphere"}}})
    }

    fn hold(data: Value, binary_data: Value) -> Decision {
        Decision::Hold { data, binary_data }
    }

    #[test]
    fn kube_cloud_config_holds_every_key_and_the_named_one_as_cloud_conf() {
        let named = infrastructure("cloud-provider-config", "config");
        let source = json!({"data": {"config": "global: {}", "ca-bundle.pem": "PEM"}});
        let cases = [
            ("all keys are copied", &named, source, hold(json!({"cloud.conf": "global: {}", "ca-bundle.pem": "PEM"}), json!({}))),
            (
                "another key",
                &infrastructure("cloud-provider-config", "vsphere.conf"),
                json!({"data": {"vsphere.conf": "[Global]"}}),
                hold(json!({"cloud.conf": "[Global]"}), json!({})),
            ),
            ("bytes", &named, json!({"binaryData": {"config": "AAE="}}), hold(json!({}), json!({"cloud.conf": "AAE="}))),
            ("a missing key is no error", &named, json!({"data": {"other": "x"}}), hold(json!({"other": "x"}), json!({}))),
            ("nothing at all", &named, json!({}), Decision::Remove),
        ];
        for (what, infrastructure, source, expected) in cases {
            assert_eq!(decide(Some(infrastructure), false, Some(&source)), expected, "{what}");
        }
    }

    #[test]
    fn what_cannot_be_copied_is_left_removed_or_reported() {
        let named = infrastructure("cloud-provider-config", "config");
        let source = json!({"data": {"config": "x"}});
        assert_eq!(decide(None, false, Some(&source)), Decision::LeaveAlone, "no Infrastructure yet");
        assert_eq!(decide(Some(&named), true, Some(&source)), Decision::LeaveAlone, "with the gate another operator owns it");
        assert_eq!(decide(Some(&infrastructure("", "")), false, None), Decision::Remove, "no cloud config");
        let missing = "configmaps \"cloud-provider-config\" not found".to_owned();
        assert_eq!(decide(Some(&named), false, None), Decision::Fail(missing));
    }

    #[test]
    fn a_gate_counts_only_for_the_release_that_runs() {
        let gates = json!({"status": {"featureGates": [
            {"version": "4.22.0", "enabled": [{"name": "VSphereMultiVCenterDay2"}], "disabled": []},
            {"version": "4.21.0", "enabled": [{"name": "Other"}], "disabled": [{"name": "VSphereMultiVCenterDay2"}]},
        ]}});
        assert!(gate_enabled(&gates, "4.22.0", DAY2_GATE));
        assert!(!gate_enabled(&gates, "4.21.0", DAY2_GATE));
        assert!(!gate_enabled(&json!({}), "4.21.0", DAY2_GATE));
    }

    #[test]
    fn the_platform_is_read_from_either_field() {
        assert_eq!(platform(&json!({"status": {"platform": "None", "platformStatus": {"type": "VSphere"}}})), "VSphere");
        assert_eq!(platform(&json!({"status": {"platform": "VSphere"}})), "VSphere");
        assert_eq!(platform(&json!({})), "");
    }
}
