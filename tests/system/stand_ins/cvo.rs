//! What the payload says is so, while the cluster version operator runs.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use vmi_lab::kubernetes::{self, CLUSTER_OPERATOR, CLUSTER_VERSION, CONFIG_MAP, CRD, DEPLOYMENT, FEATURE_GATE};
use vmi_lab::standins::cvo::{self, payload::Payload};

use super::{AtWork, MANAGER, VERSION, becomes, clean, install, relax};
use crate::support::lab::Lab;
use crate::support::openshift::{MACHINE_API, PATIENCE};
use crate::support::suite::TestResult;

const RULES: &str = "/spec/versions/0/schema/openAPIV3Schema/x-kubernetes-validations";
const FEATURE_SET: &str = "release.openshift.io/feature-set";

/// A CRD with a rule, as sparse as the apiserver takes it.
fn crd(plural: &str, kind: &str, rule: &str, annotations: &Value) -> Value {
    let schema = json!({"type": "object", "x-kubernetes-validations": [{"rule": rule, "message": "refused"}]});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.test.example.com"), "annotations": annotations},
        "spec": {"group": "test.example.com", "scope": "Cluster", "names": {"plural": plural, "kind": kind},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}})
}

/// A Deployment that no node takes.
fn deployment() -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "payload-test", "namespace": MACHINE_API},
        "spec": {"selector": {"matchLabels": {"app": "payload-test"}}, "template": {
            "metadata": {"labels": {"app": "payload-test"}},
            "spec": {"nodeSelector": {"test.example.com/nowhere": ""}, "containers": [{"name": "x", "image": "vmi-lab/shell",
                "env": [{"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]}]}}}})
}

fn owned_by_others() -> Value {
    let annotations = json!({"release.openshift.io/create-only": "true"});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"key": "from the payload"},
        "metadata": {"name": "payload-test", "namespace": MACHINE_API, "annotations": annotations}})
}

fn payload(folder: &Path, manifests: &[Value]) -> TestResult {
    for (number, manifest) in manifests.iter().enumerate() {
        std::fs::write(folder.join(format!("{number:02}.json")), manifest.to_string())?;
    }
    Ok(())
}

fn at_work(lab: &Lab, folder: &Path) -> TestResult<AtWork> {
    let (client, payload) = (lab.client.clone(), Payload::read(folder)?);
    Ok(AtWork::start(async move {
        let ended = cvo::keep(&client, &payload, VERSION, Duration::ZERO).await;
        println!("the cluster version operator ended: {ended:?}");
    }))
}

async fn remove_payload(lab: &Lab) -> TestResult {
    let mut crds = lab.watch(&[CRD]).await;
    for plural in ["gadgets", "widgets"] {
        let name = format!("{plural}.test.example.com");
        kubernetes::delete(&lab.client, CRD, "", &name).await?;
        // One that is on its way out would be taken for the next test's.
        crds.until("the CRD to go", PATIENCE, |cache| cache.get(CRD, "", &name).map_or(Ok(()), |_| Err(format!("{name} is there"))))
            .await?;
    }
    kubernetes::delete(&lab.client, DEPLOYMENT, MACHINE_API, "payload-test").await?;
    kubernetes::delete(&lab.client, CONFIG_MAP, MACHINE_API, "payload-test").await?;
    clean(lab).await
}

async fn version_reports(lab: &Lab, kind: &str, status: &str, reason: &str) -> TestResult {
    becomes(lab, CLUSTER_VERSION, "", "version", |version| {
        let conditions = version["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let found = conditions.iter().find(|entry| entry["type"] == kind).cloned().unwrap_or_default();
        let reads = (found["status"].as_str().unwrap_or_default(), found["reason"].as_str().unwrap_or_default());
        if reads == (status, reason) { Ok(()) } else { Err(format!("{kind} reads {found}")) }
    })
    .await
}

/// Waits until the rule of a CRD is `expected`.
async fn has_rule(lab: &Lab, plural: &str, expected: &str) -> TestResult<i64> {
    becomes(lab, CRD, "", &format!("{plural}.test.example.com"), |crd| {
        let rule = crd.pointer(&format!("{RULES}/0/rule")).cloned().unwrap_or_default();
        if rule == expected { Ok(crd["metadata"]["generation"].as_i64().unwrap_or_default()) } else { Err(format!("its rule is {rule}")) }
    })
    .await
}

pub async fn what_the_payload_holds_is_made_and_put_back(lab: &Lab) -> TestResult {
    install(lab).await?;
    let folder = tempfile::tempdir()?;
    payload(folder.path(), &[crd("widgets", "Widget", "true", &json!({})), deployment(), owned_by_others()])?;
    let at_work = at_work(lab, folder.path())?;
    version_reports(lab, "Available", "True", "").await?;
    assert_eq!(has_rule(lab, "widgets", "true").await?, 1);

    let mine = json!({"data": {"key": "mine"}});
    kubernetes::merge(&lab.client, CONFIG_MAP, MACHINE_API, "payload-test", &mine).await?;
    relax(lab, "widgets.test.example.com", RULES).await?;
    // Made, relaxed, put back, and nothing else: what the apiserver added by default was never taken for a difference.
    assert_eq!(has_rule(lab, "widgets", "true").await?, 3);

    let restarted = json!({"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "now"}}});
    let edit = json!({"spec": {"replicas": 0, "template": restarted}});
    kubernetes::merge(&lab.client, DEPLOYMENT, MACHINE_API, "payload-test", &edit).await?;
    let found = becomes(lab, DEPLOYMENT, MACHINE_API, "payload-test", |found| {
        if found["spec"]["replicas"] == 1 { Ok(found.clone()) } else { Err(format!("{} replicas", found["spec"]["replicas"])) }
    })
    .await?;
    assert_eq!(found["metadata"]["generation"], 3, "made, edited, put back");
    assert_eq!(found["spec"]["template"]["metadata"]["annotations"]["kubectl.kubernetes.io/restartedAt"], "now");
    let map = kubernetes::get(&lab.client, CONFIG_MAP, MACHINE_API, "payload-test").await?.ok_or("no ConfigMap")?;
    assert_eq!(map.data["data"]["key"], "mine", "create-only means that");
    drop(at_work);
    remove_payload(lab).await
}

pub async fn an_override_keeps_the_version_operator_away_and_blocks_upgrades(lab: &Lab) -> TestResult {
    install(lab).await?;
    let folder = tempfile::tempdir()?;
    payload(folder.path(), &[crd("gadgets", "Gadget", "true", &json!({})), crd("widgets", "Widget", "true", &json!({}))])?;
    let at_work = at_work(lab, folder.path())?;
    // Widgets may still be those of the test before, on their way out.
    has_rule(lab, "gadgets", "true").await?;
    has_rule(lab, "widgets", "true").await?;

    let overrides = json!([{"kind": "CustomResourceDefinition", "group": "apiextensions.k8s.io", "namespace": "",
        "name": "gadgets.test.example.com", "unmanaged": true}]);
    kubernetes::merge(&lab.client, CLUSTER_VERSION, "", "version", &json!({"spec": {"overrides": overrides}})).await?;
    version_reports(lab, "Upgradeable", "False", "ClusterVersionOverridesSet").await?;
    becomes(lab, CLUSTER_VERSION, "", "version", |version| {
        let (seen, is) = (&version["status"]["observedGeneration"], &version["metadata"]["generation"]);
        if seen == is { Ok(()) } else { Err(format!("it has seen generation {seen} of {is}")) }
    })
    .await?;

    relax(lab, "gadgets.test.example.com", RULES).await?;
    relax(lab, "widgets.test.example.com", RULES).await?;
    // Gadgets come before widgets in the payload: had it put them back, it would have done so by now.
    has_rule(lab, "widgets", "true").await?;
    let gadgets = kubernetes::get(&lab.client, CRD, "", "gadgets.test.example.com").await?.ok_or("no CRD")?;
    assert_eq!(json!(gadgets).pointer(RULES), None);

    kubernetes::merge(&lab.client, CLUSTER_VERSION, "", "version", &json!({"spec": {"overrides": null}})).await?;
    has_rule(lab, "gadgets", "true").await?;
    version_reports(lab, "Upgradeable", "", "").await?;
    drop(at_work);
    remove_payload(lab).await
}

pub async fn a_cluster_has_the_crds_of_its_feature_set(lab: &Lab) -> TestResult {
    install(lab).await?;
    let folder = tempfile::tempdir()?;
    let default = crd("widgets", "Widget", "true", &json!({FEATURE_SET: "Default"}));
    let preview = crd("widgets", "Widget", "1 == 1", &json!({FEATURE_SET: "TechPreviewNoUpgrade"}));
    payload(folder.path(), &[default, preview])?;
    let at_work = at_work(lab, folder.path())?;
    has_rule(lab, "widgets", "true").await?;
    let feature_set = json!({"spec": {"featureSet": "TechPreviewNoUpgrade"}});
    kubernetes::merge(&lab.client, FEATURE_GATE, "", "cluster", &feature_set).await?;
    has_rule(lab, "widgets", "1 == 1").await?;
    drop(at_work);
    remove_payload(lab).await
}

pub async fn a_degraded_operator_makes_the_cluster_version_fail(lab: &Lab) -> TestResult {
    install(lab).await?;
    let folder = tempfile::tempdir()?;
    payload(folder.path(), &[crd("widgets", "Widget", "true", &json!({}))])?;
    let condition = |kind: &str, status: &str| json!({"type": kind, "status": status, "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let operator = |degraded: &str| {
        let conditions = [condition("Available", "True"), condition("Degraded", degraded)];
        json!({"apiVersion": "config.openshift.io/v1", "kind": "ClusterOperator", "metadata": {"name": "payload-test"}, "spec": {},
            "status": {"conditions": conditions}})
    };
    kubernetes::apply(&lab.client, MANAGER, &operator("True")).await?;
    let at_work = at_work(lab, folder.path())?;
    version_reports(lab, "Failing", "True", "ClusterOperatorDegraded").await?;
    version_reports(lab, "Available", "True", "").await?;
    kubernetes::apply(&lab.client, MANAGER, &operator("False")).await?;
    version_reports(lab, "Failing", "False", "").await?;
    drop(at_work);
    kubernetes::delete(&lab.client, CLUSTER_OPERATOR, "", "payload-test").await?;
    remove_payload(lab).await
}
