//! MachineAutoscalers and the sets they own.

use serde_json::{Value, json};
use vmi_lab::kubernetes::{self, CLUSTER_AUTOSCALER, CLUSTER_OPERATOR, MACHINE_AUTOSCALER, MACHINE_SET};
use vmi_lab::standins::autoscaler;

use super::{AtWork, MANAGER, VERSION, becomes, reported};
use crate::support::lab::Lab;
use crate::support::openshift::MACHINE_API;
use crate::support::suite::TestResult;

const NAME: &str = "workers";

fn set(name: &str, replicas: u8) -> Value {
    let labels = json!({"set": name});
    json!({"apiVersion": MACHINE_SET.api_version(), "kind": MACHINE_SET.kind, "metadata": {"name": name, "namespace": MACHINE_API},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": {}}}})
}

fn target(name: &str) -> Value {
    json!({"apiVersion": MACHINE_SET.api_version(), "kind": MACHINE_SET.kind, "name": name})
}

async fn install(lab: &Lab) -> TestResult {
    let machine_api = json!({"apiVersion": CLUSTER_OPERATOR.api_version(), "kind": CLUSTER_OPERATOR.kind, "metadata": {"name": "machine-api"},
        "spec": {}, "status": {"conditions": [{"type": "Available", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}});
    let cluster = json!({"apiVersion": CLUSTER_AUTOSCALER.api_version(), "kind": CLUSTER_AUTOSCALER.kind, "metadata": {"name": "default"},
        "spec": {"scaleDown": {"enabled": true}}});
    let scaler = json!({"apiVersion": MACHINE_AUTOSCALER.api_version(), "kind": MACHINE_AUTOSCALER.kind,
        "metadata": {"name": NAME, "namespace": MACHINE_API},
        "spec": {"minReplicas": 1, "maxReplicas": 6, "scaleTargetRef": target("first")}});
    for manifest in [machine_api, set("first", 2), set("second", 0), cluster, scaler] {
        kubernetes::apply(&lab.client, MANAGER, &manifest).await?;
    }
    Ok(())
}

/// Waits until the set has these replicas, and the autoscaler's marks or none of them.
async fn scaled(lab: &Lab, name: &str, replicas: u8, owned: bool) -> TestResult {
    const GROUP_SIZE: &str = "machine.openshift.io/cluster-api-autoscaler-node-group";
    let marks = json!({
        "autoscaling.openshift.io/machineautoscaler": format!("{MACHINE_API}/{NAME}"),
        (format!("{GROUP_SIZE}-min-size")): "1",
        (format!("{GROUP_SIZE}-max-size")): "6",
    });
    becomes(lab, MACHINE_SET, MACHINE_API, name, |set| {
        let annotations = &set["metadata"]["annotations"];
        let marked = marks.as_object().into_iter().flatten().filter(|(key, value)| annotations[key.as_str()] == **value).count();
        let left = marks.as_object().into_iter().flatten().filter(|(key, _)| !annotations[key.as_str()].is_null()).count();
        let as_wanted = if owned { marked == 3 } else { left == 0 };
        if as_wanted && set["spec"]["replicas"] == replicas { Ok(()) } else { Err(format!("{} {annotations}", set["spec"]["replicas"])) }
    })
    .await
}

pub async fn an_autoscaler_owns_its_set_until_it_turns_to_another_or_goes(lab: &Lab) -> TestResult {
    install(lab).await?;
    let client = lab.client.clone();
    let at_work = AtWork::start(async move { autoscaler::keep(&client, VERSION).await });
    scaled(lab, "first", 2, true).await?;
    reported(lab, "cluster-autoscaler", "Degraded", "False").await?;

    let turned = json!({"spec": {"scaleTargetRef": target("second")}});
    kubernetes::merge(&lab.client, MACHINE_AUTOSCALER, MACHINE_API, NAME, &turned).await?;
    scaled(lab, "second", 1, true).await?;
    scaled(lab, "first", 2, false).await?;
    kubernetes::merge(&lab.client, MACHINE_SET, MACHINE_API, "second", &json!({"spec": {"replicas": 9}})).await?;
    scaled(lab, "second", 6, true).await?;

    kubernetes::delete(&lab.client, MACHINE_AUTOSCALER, MACHINE_API, NAME).await?;
    scaled(lab, "second", 6, false).await?;
    let mut cache = lab.watch(&[MACHINE_AUTOSCALER]).await;
    let gone = |cache: &vmi_lab::cache::Cache| cache.get(MACHINE_AUTOSCALER, MACHINE_API, NAME).map_or(Ok(()), |_| Err("held".to_owned()));
    cache.until("the autoscaler to go", crate::support::openshift::PATIENCE, gone).await?;

    drop(at_work);
    for set in ["first", "second"] {
        kubernetes::delete(&lab.client, MACHINE_SET, MACHINE_API, set).await?;
    }
    kubernetes::delete(&lab.client, CLUSTER_AUTOSCALER, "", "default").await?;
    for operator in ["cluster-autoscaler", "machine-api"] {
        kubernetes::delete(&lab.client, CLUSTER_OPERATOR, "", operator).await?;
    }
    Ok(())
}
