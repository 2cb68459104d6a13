//! The process `cluster-cloud-controller-manager`: the Deployment of the cloud controller manager, and the ClusterOperator.

use std::time::{Duration, Instant};

use kube::api::DynamicObject;
use kube::{Client, ResourceExt};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::{CLOUD_CONF, Failure, MANAGED_NAMESPACE, NAME, Patience, TRUSTED_CA, report};
use crate::cache::Cache;
use crate::kubernetes::{self, CLUSTER_OPERATOR, CONFIG_MAP, DEPLOYMENT, INFRASTRUCTURE, SECRET, condition};
use crate::standins::cloud_config::Generation;
use crate::standins::woken;

const DEPLOYMENT_NAME: &str = "vsphere-cloud-controller-manager";
const CREDENTIALS: &str = "vsphere-cloud-credentials";
const HASH: &str = "operator.openshift.io/config-hash";
const THRESHOLD: Duration = Duration::from_secs(150);

/// How a pass ended.
#[derive(Debug, PartialEq)]
enum Outcome {
    Available,
    Progressing,
    /// The other process has not reported yet: nothing is done and nothing said.
    Waiting,
}

/// Keeps the Deployment and the ClusterOperator, for ever.
pub async fn keep(client: &Client, version: &str, generation: Generation) -> ! {
    tracing::info!("stand-in for the cloud controller manager operator: keeps {MANAGED_NAMESPACE}/{DEPLOYMENT_NAME} for release {version}");
    let watched = [
        (CLUSTER_OPERATOR, ""),
        (INFRASTRUCTURE, ""),
        (CONFIG_MAP, MANAGED_NAMESPACE),
        (SECRET, MANAGED_NAMESPACE),
        (DEPLOYMENT, MANAGED_NAMESPACE),
    ];
    let mut cache = Cache::start(client, &watched).await;
    let mut patience = Patience::new(generation, THRESHOLD);
    loop {
        let outcome = pass(client, &cache, version, generation).await;
        let failed = outcome.is_err();
        let reported = match outcome {
            Ok(outcome) => {
                patience.succeeded();
                report_outcome(client, version, &outcome, towards(&cache, version)).await
            }
            Err(failure) => {
                tracing::error!("Unable to sync operands: {failure}");
                match patience.is_over(&failure, Instant::now()) {
                    true => report_degraded(client, version, &failure, towards(&cache, version)).await,
                    false => Ok(()),
                }
            }
        };
        if let Err(error) = &reported {
            tracing::error!("error syncing ClusterOperatorStatus: {error}");
        }
        woken(&mut cache, failed || reported.is_err()).await;
    }
}

async fn pass(client: &Client, cache: &Cache, version: &str, generation: Generation) -> Result<Outcome, Failure> {
    let Some(infrastructure) = cache.get(INFRASTRUCTURE, "", "cluster") else {
        tracing::info!("Infrastructure cluster does not exist. Skipping...");
        return Ok(Outcome::Available);
    };
    let operator = cache.get(CLUSTER_OPERATOR, "", NAME);
    if !controllers_available(operator.as_deref()).map_err(Failure::Transient)? {
        return Ok(Outcome::Waiting);
    }
    let hash = hash(cache).map_err(Failure::Transient)?;
    let Some(deployment) = cache.get(DEPLOYMENT, MANAGED_NAMESPACE, DEPLOYMENT_NAME) else { return Ok(Outcome::Progressing) };
    let replicas = if infrastructure.data["status"]["controlPlaneTopology"] == "SingleReplica" { 1 } else { 2 };
    if deployment.data["spec"]["template"]["metadata"]["annotations"][HASH] != hash || deployment.data["spec"]["replicas"] != replicas {
        tracing::info!("updating deployment {MANAGED_NAMESPACE}/{DEPLOYMENT_NAME}: {replicas} replicas, config hash {hash}");
        let patch = json!({"spec": {"replicas": replicas, "template": {"metadata": {"annotations": {HASH: hash}}}}});
        kubernetes::merge(client, DEPLOYMENT, MANAGED_NAMESPACE, DEPLOYMENT_NAME, &patch).await?;
        // Said before the roll-out's own events take it back; older releases take it back at once.
        report_outcome(client, version, &Outcome::Progressing, towards(cache, version)).await?;
        return Ok(if generation == Generation::Next { Outcome::Progressing } else { Outcome::Available });
    }
    if generation == Generation::Next { rolled_out(&deployment) } else { Ok(Outcome::Available) }
}

/// Whether both controllers of the other process work; an error where one says that it does not.
fn controllers_available(operator: Option<&DynamicObject>) -> Result<bool, String> {
    let Some(operator) = operator else { return Ok(false) };
    let controllers = ["CloudConfigController", "TrustedCABundleControllerController"];
    let mut degraded = Vec::new();
    for kind in controllers.map(|controller| format!("{controller}Degraded")) {
        if condition(operator, &kind) == "True" {
            let conditions = operator.data["status"]["conditions"].as_array().into_iter().flatten();
            let message = conditions.filter(|entry| entry["type"] == kind).find_map(|entry| entry["message"].as_str()).unwrap_or_default();
            degraded.push(format!("{kind} condition is set to True: {message}"));
        }
    }
    if !degraded.is_empty() {
        return Err(format!("failed to apply resources because {}", degraded.join("; ")));
    }
    Ok(controllers.iter().all(|controller| condition(operator, &format!("{controller}Available")) == "True"))
}

/// Over everything the real pod template mounts.
fn hash(cache: &Cache) -> Result<String, String> {
    let data = |kind, name: &str| {
        let object = cache.get(kind, MANAGED_NAMESPACE, name);
        let object = object.ok_or_else(|| format!("error calculating configuration hash: {} {name:?} not found", kind.kind))?;
        Ok::<_, String>(object.data["data"].clone())
    };
    let sources = [data(CONFIG_MAP, TRUSTED_CA)?, data(CONFIG_MAP, CLOUD_CONF)?, data(SECRET, CREDENTIALS)?];
    Ok(digest(&sources))
}

/// The same for the same keys and values, in whatever order an apiserver sends them.
fn digest(sources: &[Value]) -> String {
    let mut digest = Sha256::new();
    for source in sources {
        let mut sorted = source.as_object().cloned().unwrap_or_else(Map::new);
        sorted.sort_keys();
        digest.update(Value::Object(sorted).to_string());
    }
    // Lower-case letters and digits, as an annotation that people compare by eye should be.
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn rolled_out(deployment: &DynamicObject) -> Result<Outcome, Failure> {
    let status = &deployment.data["status"];
    let observed = status["observedGeneration"].as_i64().unwrap_or_default() >= deployment.metadata.generation.unwrap_or_default();
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let progressing = conditions.filter(|condition| condition["type"] == "Progressing").find_map(|condition| condition["reason"].as_str());
    match progressing {
        Some("ProgressDeadlineExceeded") if observed => {
            let name = deployment.name_any();
            Err(Failure::Transient(format!("deployment {name} rollout stalled: ProgressDeadlineExceeded")))
        }
        Some("NewReplicaSetAvailable") if observed => Ok(Outcome::Available),
        _ => Ok(Outcome::Progressing),
    }
}

/// Whether the ClusterOperator shows another release than this one.
fn towards(cache: &Cache, version: &str) -> bool {
    let operator = cache.get(CLUSTER_OPERATOR, "", NAME);
    operator.is_none_or(|operator| operator.data["status"]["versions"] != json!([{"name": "operator", "version": version}]))
}

async fn report_outcome(client: &Client, version: &str, outcome: &Outcome, towards: bool) -> Result<(), kubernetes::Error> {
    let upgradeable = ("Upgradeable", "True", "AsExpected", "");
    match outcome {
        Outcome::Waiting => Ok(()),
        Outcome::Progressing => {
            let message = if towards { format!("Progressing towards operator: {version}") } else { String::new() };
            let reason = if towards { "SyncingResources" } else { "AsExpected" };
            report(client, version, &[("Progressing", "True", reason, &message), upgradeable]).await
        }
        Outcome::Available => {
            let message = format!("Cluster Cloud Controller Manager Operator is available at {version}");
            let conditions = [
                ("Available", "True", "AsExpected", message.as_str()),
                ("Progressing", "False", "AsExpected", ""),
                ("Degraded", "False", "AsExpected", ""),
                upgradeable,
            ];
            report(client, version, &conditions).await
        }
    }
}

async fn report_degraded(client: &Client, version: &str, failure: &Failure, towards: bool) -> Result<(), kubernetes::Error> {
    let doing = if towards { "Failed when progressing towards" } else { "Failed to resync for" };
    // The real operator prints the error with a verb meant for numbers.
    let message = format!("{doing} operator: {version} because &{{%!e(string={failure})}}");
    report(client, version, &[("Degraded", "True", "SyncingFailed", &message), ("Upgradeable", "False", "AsExpected", "")]).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> DynamicObject {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn the_hash_follows_every_key_and_value_but_not_their_order() {
        let config = |text: &str| [json!({"cloud.conf": text, "x": "1"}), json!({"p": "cA=="})];
        let base = digest(&config("a"));
        assert_eq!(base.len(), 64);
        assert_eq!(base, digest(&[json!({"x": "1", "cloud.conf": "a"}), json!({"p": "cA=="})]));
        assert_ne!(base, digest(&config("b")));
        assert_ne!(base, digest(&[json!({"cloud.conf": "a", "x": "1"}), json!({"p": "cA==", "q": "cA=="})]));
        assert_ne!(base, digest(&[json!({"cloud.conf": "a"}), json!({"x": "1", "p": "cA=="})]));
    }

    #[test]
    fn nothing_is_applied_before_both_controllers_work() {
        let operator = |conditions: &[(&str, &str)]| {
            let conditions: Vec<Value> =
                conditions.iter().map(|(kind, status)| json!({"type": kind, "status": status, "message": "m"})).collect();
            object(json!({"metadata": {}, "status": {"conditions": conditions}}))
        };
        let (config, trust) = (("CloudConfigControllerAvailable", "True"), ("TrustedCABundleControllerControllerAvailable", "True"));
        assert_eq!(controllers_available(None), Ok(false));
        assert_eq!(controllers_available(Some(&operator(&[config]))), Ok(false));
        assert_eq!(controllers_available(Some(&operator(&[config, trust]))), Ok(true));
        assert_eq!(
            controllers_available(Some(&operator(&[("CloudConfigControllerDegraded", "True"), trust]))),
            Err("failed to apply resources because CloudConfigControllerDegraded condition is set to True: m".to_owned())
        );
    }

    #[test]
    fn a_deployment_has_rolled_out_when_its_controller_says_so_of_this_generation() {
        let deployment = |generation: i64, reason: &str| {
            object(json!({
                "metadata": {"name": "d", "generation": generation},
                "status": {"observedGeneration": 2, "conditions": [{"type": "Progressing", "reason": reason}]},
            }))
        };
        assert_eq!(rolled_out(&deployment(2, "NewReplicaSetAvailable")).unwrap(), Outcome::Available);
        assert_eq!(rolled_out(&deployment(3, "NewReplicaSetAvailable")).unwrap(), Outcome::Progressing);
        assert_eq!(rolled_out(&deployment(2, "ReplicaSetUpdated")).unwrap(), Outcome::Progressing);
        assert!(rolled_out(&deployment(2, "ProgressDeadlineExceeded")).is_err());
        assert_eq!(rolled_out(&object(json!({"metadata": {}}))).unwrap(), Outcome::Progressing);
    }
}
