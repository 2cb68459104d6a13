//! Stands in for the cluster-storage-operator: the driver's object is there, and what the driver's operator says of it becomes
//! the ClusterOperator `storage`.

use clap::Parser;
use kube::Client;
use serde_json::{Value, json};

use super::DRIVER;
use crate::cache::Cache;
use crate::kubernetes::{self, CLUSTER_CSI_DRIVER};
use crate::standins::{Error, operator_status, release_version, woken};

#[derive(Parser)]
struct Arguments {}

pub async fn run(client: Client, arguments: &[String]) -> Result<(), Error> {
    Arguments::try_parse_from(["storage-operator".to_owned()].iter().chain(arguments))?;
    keep(&client, &release_version()?).await
}

pub async fn keep(client: &Client, version: &str) -> ! {
    tracing::info!("stand-in for the cluster-storage-operator of release {version}");
    let mut cache = Cache::start(client, &[(CLUSTER_CSI_DRIVER, "")]).await;
    loop {
        let failed = match pass(client, &cache, version).await {
            Err(error) if !error.is_conflict() => {
                tracing::error!("{error}");
                true
            }
            _ => false,
        };
        woken(&mut cache, failed).await;
    }
}

async fn pass(client: &Client, cache: &Cache, version: &str) -> Result<(), kubernetes::Error> {
    let Some(driver) = cache.get(CLUSTER_CSI_DRIVER, "", DRIVER) else {
        let driver = json!({"apiVersion": CLUSTER_CSI_DRIVER.api_version(), "kind": CLUSTER_CSI_DRIVER.kind,
            "metadata": {"name": DRIVER}, "spec": {"managementState": "Managed", "logLevel": "Normal", "operatorLogLevel": "Normal"}});
        return kubernetes::apply(client, "cluster-storage-operator", &driver).await.map(drop);
    };
    let (degraded, message) = degraded(&driver.data["status"]["conditions"]);
    let reason = if degraded { "VSphereCSIDriverOperatorCR_Degraded" } else { "AsExpected" };
    let conditions = [
        ("Available", "True", "AsExpected", "All is well"),
        ("Progressing", "False", "AsExpected", "All is well"),
        ("Degraded", if degraded { "True" } else { "False" }, reason, message.as_str()),
        ("Upgradeable", "True", "AsExpected", "All is well"),
    ];
    let related = [("", "namespaces", "", super::STORAGE), ("", "namespaces", "", super::DRIVERS)];
    operator_status::report(client, "storage", version, &conditions, &related).await
}

/// What the driver's conditions come to, in the storage operator's words.
fn degraded(conditions: &Value) -> (bool, String) {
    let bad = conditions
        .as_array()
        .into_iter()
        .flatten()
        .filter(|condition| condition["type"].as_str().is_some_and(|kind| kind.ends_with("Degraded")) && condition["status"] == "True");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let lines: Vec<String> = bad
        .map(|condition| format!("VSphereCSIDriverOperatorCRDegraded: {}: {}", text(&condition["type"]), text(&condition["message"])))
        .collect();
    if lines.is_empty() { (false, "All is well".to_owned()) } else { (true, lines.join("\n")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_degrades_the_driver_degrades_storage_with_its_words() {
        let conditions = json!([
            {"type": "VMwareVSphereControllerDegraded", "status": "False"},
            {"type": "VMwareVSphereOperatorCheckDegraded", "status": "True", "message": "node x"},
        ]);
        assert_eq!(
            degraded(&conditions),
            (true, "VSphereCSIDriverOperatorCRDegraded: VMwareVSphereOperatorCheckDegraded: node x".to_owned())
        );
        assert!(!degraded(&Value::Null).0);
    }
}
