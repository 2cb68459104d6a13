//! kube-cloud-config follows its source.

use serde_json::{Value, json};
use vmi_lab::kubernetes::{self, CONFIG_MAP, FEATURE_GATE, INFRASTRUCTURE};
use vmi_lab::standins::config_operator;

use super::{AtWork, CONFIG, MANAGED, MANAGER, VERSION, becomes, clean, cloud_provider_config, config, install, reported};
use crate::support::lab::Lab;
use crate::support::suite::TestResult;

fn at_work(lab: &Lab) -> AtWork {
    let client = lab.client.clone();
    AtWork::start(async move { config_operator::keep(&client, VERSION).await })
}

async fn kube_cloud_config(lab: &Lab, expected: &Value) -> TestResult {
    becomes(lab, CONFIG_MAP, MANAGED, "kube-cloud-config", |map| {
        if map["data"] == *expected { Ok(()) } else { Err(format!("it holds {}", map["data"])) }
    })
    .await
}

pub async fn kube_cloud_config_follows_its_source_with_all_its_keys(lab: &Lab) -> TestResult {
    install(lab).await?;
    let at_work = at_work(lab);
    kube_cloud_config(lab, &json!({"cloud.conf": "global: {}\n", "ca-bundle.pem": "PEM"})).await?;

    let edit = json!({"data": {"config": "vcenter: {}\n", "ca-bundle.pem": null}});
    kubernetes::merge(&lab.client, CONFIG_MAP, CONFIG, "cloud-provider-config", &edit).await?;
    kube_cloud_config(lab, &json!({"cloud.conf": "vcenter: {}\n"})).await?;

    let by_hand = json!({"data": {"cloud.conf": "mine", "extra": "mine"}});
    kubernetes::merge(&lab.client, CONFIG_MAP, MANAGED, "kube-cloud-config", &by_hand).await?;
    kube_cloud_config(lab, &json!({"cloud.conf": "vcenter: {}\n"})).await?;
    drop(at_work);
    clean(lab).await
}

pub async fn a_missing_source_degrades_the_config_operator_until_it_is_back(lab: &Lab) -> TestResult {
    install(lab).await?;
    kubernetes::delete(&lab.client, CONFIG_MAP, CONFIG, "cloud-provider-config").await?;
    let at_work = at_work(lab);
    let message = reported(lab, "config-operator", "Degraded", "True").await?;
    assert_eq!(message, "KubeCloudConfigControllerDegraded: configmaps \"cloud-provider-config\" not found");
    kubernetes::apply(&lab.client, MANAGER, &cloud_provider_config()).await?;
    reported(lab, "config-operator", "Degraded", "False").await?;

    let none = json!({"spec": {"cloudConfig": {"name": "", "key": ""}}});
    kubernetes::merge(&lab.client, INFRASTRUCTURE, "", "cluster", &none).await?;
    let mut maps = lab.watch(&[CONFIG_MAP]).await;
    let gone = |cache: &vmi_lab::cache::Cache| match cache.get(CONFIG_MAP, MANAGED, "kube-cloud-config") {
        None => Ok(()),
        Some(map) => Err(format!("it holds {}", map.data["data"])),
    };
    maps.until("kube-cloud-config to go with its source", crate::support::openshift::PATIENCE, gone).await?;
    drop(at_work);
    clean(lab).await
}

pub async fn with_the_day_2_gate_kube_cloud_config_is_left_to_another_operator(lab: &Lab) -> TestResult {
    install(lab).await?;
    let mut gates = config(FEATURE_GATE, "cluster", &json!({}));
    let enabled = json!([{"name": "VSphereMultiVCenterDay2"}]);
    gates["status"] = json!({"featureGates": [{"version": VERSION, "enabled": enabled, "disabled": []}]});
    kubernetes::apply(&lab.client, MANAGER, &gates).await?;
    let at_work = at_work(lab);
    // It reports after it has looked.
    reported(lab, "config-operator", "Available", "True").await?;
    let map = kubernetes::get(&lab.client, CONFIG_MAP, MANAGED, "kube-cloud-config").await?;
    assert!(map.is_none(), "{map:?}");
    drop(at_work);
    clean(lab).await
}
