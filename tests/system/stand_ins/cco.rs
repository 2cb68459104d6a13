//! The stand-in for the cloud credential operator, alone on a real apiserver.

use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use vmi_lab::cache::Cache;
use vmi_lab::kubernetes::{self, CLOUD_CREDENTIAL, CLUSTER_OPERATOR, CREDENTIALS_REQUEST, NAMESPACE, SECRET, condition};
use vmi_lab::standins::cco;

use crate::support::lab::Lab;
use crate::support::openshift::PATIENCE;
use crate::support::suite::TestResult;

const OWN: &str = "openshift-cloud-credential-operator";
const TARGET: &str = "cco-test-target";
const SECRET_NAME: &str = "vsphere-cloud-credentials";
const MANAGER: &str = "cco-test";

pub async fn a_target_follows_keys_added_to_the_root_and_removed_from_it(lab: &Lab) -> TestResult {
    let (mut operator, mut cache) = begin(lab, "").await?;
    write_root(lab, json!({"a.username": "YQ==", "a.password": "YQ=="})).await?;
    request(lab, "copies", TARGET).await?;
    copied(&mut cache, json!({"a.username": "YQ==", "a.password": "YQ=="})).await?;
    let target = cache.get(SECRET, TARGET, SECRET_NAME).ok_or("no target")?;
    assert_eq!(target.annotations()["cloudcredential.openshift.io/credentials-request"], format!("{OWN}/copies"));
    assert_eq!(target.labels()["cloudcredential.openshift.io/credentials-request"], "true");
    let root = kubernetes::get(&lab.client, SECRET, "kube-system", "vsphere-creds").await?.ok_or("no root")?;
    assert_eq!(root.annotations()["cloudcredential.openshift.io/mode"], "passthrough");

    write_root(lab, json!({"a.username": "YQ==", "b.username": "Yg=="})).await?;
    copied(&mut cache, json!({"a.username": "YQ==", "b.username": "Yg=="})).await?;
    let version = kubernetes::get(&lab.client, SECRET, "kube-system", "vsphere-creds").await?.and_then(|root| root.resource_version());
    status(&mut cache, "copies", "the version it copied", |status| {
        status["provisioned"] == true && json!(version) == status["lastSyncCloudCredsSecretResourceVersion"]
    })
    .await?;
    reported(&mut cache, "Available", "True", "AsExpected").await?;
    reported(&mut cache, "Degraded", "False", "AsExpected").await?;
    end(lab, &mut operator, &mut cache).await
}

pub async fn an_edited_target_stays_edited_until_the_root_changes(lab: &Lab) -> TestResult {
    let (mut operator, mut cache) = begin(lab, "Passthrough").await?;
    write_root(lab, json!({"a.username": "YQ=="})).await?;
    request(lab, "edited", TARGET).await?;
    copied(&mut cache, json!({"a.username": "YQ=="})).await?;
    status(&mut cache, "edited", "provisioned", |status| status["provisioned"] == true).await?;
    kubernetes::merge(&lab.client, SECRET, TARGET, SECRET_NAME, &json!({"data": {"extra": "eA=="}})).await?;
    // The event of a second request's copy proves that the operator has looked again since the edit.
    namespace(lab, "cco-test-other").await?;
    request(lab, "other", "cco-test-other").await?;
    status(&mut cache, "other", "provisioned", |status| status["provisioned"] == true).await?;
    let edited = kubernetes::get(&lab.client, SECRET, TARGET, SECRET_NAME).await?.ok_or("no target")?;
    assert_eq!(edited.data["data"], json!({"a.username": "YQ==", "extra": "eA=="}));
    write_root(lab, json!({"a.username": "Yg=="})).await?;
    copied(&mut cache, json!({"a.username": "Yg=="})).await?;
    kubernetes::delete(&lab.client, SECRET, TARGET, SECRET_NAME).await?;
    copied(&mut cache, json!({"a.username": "Yg=="})).await?;
    end(lab, &mut operator, &mut cache).await
}

pub async fn manual_mode_touches_nothing(lab: &Lab) -> TestResult {
    let (mut operator, mut cache) = begin(lab, "Manual").await?;
    write_root(lab, json!({"a.username": "YQ=="})).await?;
    request(lab, "manual", TARGET).await?;
    reported(&mut cache, "Available", "True", "OperatorDisabledByAdmin").await?;
    // Changing the mode back is what makes the operator act: up to then it had every reason but the mode.
    let untouched = kubernetes::get(&lab.client, SECRET, "kube-system", "vsphere-creds").await?.ok_or("no root")?;
    assert!(!untouched.annotations().contains_key("cloudcredential.openshift.io/mode"));
    assert!(kubernetes::get(&lab.client, SECRET, TARGET, SECRET_NAME).await?.is_none());
    mode(lab, "Passthrough").await?;
    copied(&mut cache, json!({"a.username": "YQ=="})).await?;
    reported(&mut cache, "Available", "True", "AsExpected").await?;
    end(lab, &mut operator, &mut cache).await
}

pub async fn without_a_root_a_new_request_fails_and_an_old_one_keeps_its_copy(lab: &Lab) -> TestResult {
    let (mut operator, mut cache) = begin(lab, "").await?;
    write_root(lab, json!({"a.username": "YQ=="})).await?;
    request(lab, "old", TARGET).await?;
    status(&mut cache, "old", "provisioned", |status| status["provisioned"] == true).await?;
    kubernetes::delete(&lab.client, SECRET, "kube-system", "vsphere-creds").await?;
    namespace(lab, "cco-test-other").await?;
    request(lab, "new", "cco-test-other").await?;
    let why = "failed to grant creds: unable to fetch root cloud cred secret: Secret \"vsphere-creds\" not found";
    status(&mut cache, "new", "failing", |status| {
        status["provisioned"] == false && status["conditions"][0]["status"] == "True" && status["conditions"][0]["message"] == why
    })
    .await?;
    reported(&mut cache, "Degraded", "True", "CredentialsFailing").await?;
    let old = kubernetes::get(&lab.client, CREDENTIALS_REQUEST, OWN, "old").await?.ok_or("no request")?;
    assert_eq!(old.data["status"]["provisioned"], true);
    assert_eq!(
        kubernetes::get(&lab.client, SECRET, TARGET, SECRET_NAME).await?.ok_or("no copy")?.data["data"],
        json!({"a.username": "YQ=="})
    );
    write_root(lab, json!({"a.username": "Yg=="})).await?;
    status(&mut cache, "new", "provisioned", |status| status["provisioned"] == true).await?;
    reported(&mut cache, "Degraded", "False", "AsExpected").await?;
    end(lab, &mut operator, &mut cache).await
}

pub async fn a_request_waits_for_its_namespace(lab: &Lab) -> TestResult {
    let (mut operator, mut cache) = begin(lab, "").await?;
    write_root(lab, json!({"a.username": "YQ=="})).await?;
    request(lab, "early", "cco-test-late").await?;
    status(&mut cache, "early", "waiting", |status| status["conditions"][0]["type"] == "MissingTargetNamespace").await?;
    namespace(lab, "cco-test-late").await?;
    status(&mut cache, "early", "provisioned", |status| status["provisioned"] == true && status["conditions"][0]["status"] == "False")
        .await?;
    end(lab, &mut operator, &mut cache).await
}

async fn begin(lab: &Lab, credentials_mode: &str) -> TestResult<(JoinSet<()>, Cache)> {
    for name in [OWN, TARGET] {
        namespace(lab, name).await?;
    }
    mode(lab, credentials_mode).await?;
    let client = lab.client.clone();
    let mut operator = JoinSet::new();
    operator.spawn(async move { cco::keep(&client, "4.21.3").await });
    Ok((operator, lab.watch(&[SECRET, CREDENTIALS_REQUEST, CLUSTER_OPERATOR]).await))
}

/// Takes everything away again, the requests while the operator can still let them go.
async fn end(lab: &Lab, operator: &mut JoinSet<()>, cache: &mut Cache) -> TestResult {
    mode(lab, "").await?;
    for request in kubernetes::list(&lab.client, CREDENTIALS_REQUEST, OWN).await? {
        kubernetes::delete(&lab.client, CREDENTIALS_REQUEST, OWN, &request.name_any()).await?;
    }
    cache
        .until("requests and their secrets to go", PATIENCE, |cache| {
            let left =
                cache.list(CREDENTIALS_REQUEST).len() + cache.list(SECRET).iter().filter(|secret| secret.name_any() == SECRET_NAME).count();
            if left == 0 { Ok(()) } else { Err(format!("{left} left")) }
        })
        .await?;
    operator.shutdown().await;
    kubernetes::delete(&lab.client, SECRET, "kube-system", "vsphere-creds").await?;
    kubernetes::delete(&lab.client, CLOUD_CREDENTIAL, "", "cluster").await?;
    Ok(kubernetes::delete(&lab.client, CLUSTER_OPERATOR, "", "cloud-credential").await?)
}

async fn namespace(lab: &Lab, name: &str) -> TestResult {
    if kubernetes::get(&lab.client, NAMESPACE, "", name).await?.is_none() {
        apply(lab, json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})).await?;
    }
    Ok(())
}

async fn mode(lab: &Lab, mode: &str) -> TestResult {
    apply(
        lab,
        json!({
            "apiVersion": "operator.openshift.io/v1", "kind": "CloudCredential", "metadata": {"name": "cluster"},
            "spec": {"credentialsMode": mode, "managementState": "Managed"},
        }),
    )
    .await
}

async fn write_root(lab: &Lab, data: Value) -> TestResult {
    let metadata = json!({"name": "vsphere-creds", "namespace": "kube-system"});
    apply(lab, json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata, "data": data})).await
}

async fn request(lab: &Lab, name: &str, namespace: &str) -> TestResult {
    apply(
        lab,
        json!({
            "apiVersion": "cloudcredential.openshift.io/v1", "kind": "CredentialsRequest", "metadata": {"name": name, "namespace": OWN},
            "spec": {
                "secretRef": {"name": SECRET_NAME, "namespace": namespace},
                "providerSpec": {"apiVersion": "cloudcredential.openshift.io/v1", "kind": "VSphereProviderSpec"},
            },
        }),
    )
    .await
}

async fn apply(lab: &Lab, manifest: Value) -> TestResult {
    kubernetes::apply(&lab.client, MANAGER, &manifest).await?;
    Ok(())
}

async fn copied(cache: &mut Cache, data: Value) -> TestResult {
    let waited = cache.until("the copy to match the root", PATIENCE, |cache| {
        let target = cache.get(SECRET, TARGET, SECRET_NAME).ok_or("no target")?;
        if target.data["data"] == data { Ok(()) } else { Err("other data".to_owned()) }
    });
    Ok(waited.await?)
}

async fn status(cache: &mut Cache, name: &str, what: &str, holds: impl Fn(&Value) -> bool) -> TestResult {
    let what = format!("request {name}: {what}");
    let waited = cache.until(&what, PATIENCE, |cache| {
        let request = cache.get(CREDENTIALS_REQUEST, OWN, name).ok_or("no request")?;
        let status = &request.data["status"];
        if holds(status) { Ok(()) } else { Err(status.to_string()) }
    });
    Ok(waited.await?)
}

async fn reported(cache: &mut Cache, kind: &str, wanted: &str, reason: &str) -> TestResult {
    let what = format!("{kind} {wanted} {reason}");
    let waited = cache.until(&what, PATIENCE, |cache| {
        let operator = cache.get(CLUSTER_OPERATOR, "", "cloud-credential").ok_or("no ClusterOperator")?;
        let matches = condition(&operator, kind) == wanted && reason_of(&operator, kind) == reason;
        if matches { Ok(()) } else { Err(operator.data["status"].to_string()) }
    });
    Ok(waited.await?)
}

fn reason_of<'a>(operator: &'a DynamicObject, kind: &str) -> &'a str {
    let conditions = operator.data["status"]["conditions"].as_array().into_iter().flatten();
    conditions.filter(|condition| condition["type"] == kind).find_map(|condition| condition["reason"].as_str()).unwrap_or_default()
}
