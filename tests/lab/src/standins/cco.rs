//! Stands in for the cloud credential operator on vSphere: every CredentialsRequest's secret becomes a copy of the root secret.
//!
//! vSphere knows passthrough only. In mode Manual nothing is touched. Mode Mint is not valid there: the root secret is not
//! marked then, but one that was marked before is still copied. Between two syncs a target that somebody edits stays edited:
//! the real operator copies again only when the root secret, the request or the target's existence changed, or after an hour.

mod copy;
mod status;

use std::sync::Arc;

use clap::Parser;
use kube::api::DynamicObject;
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

use self::copy::{Copy, Mode};
use super::{Error, operator_status, release_version, requests, woken};
use crate::cache::Cache;
use crate::kubernetes::{
    self, CLOUD_CREDENTIAL, CLUSTER_VERSION, CONFIG_MAP, CREDENTIALS_REQUEST, INFRASTRUCTURE, NAMESPACE, SECRET, full_name,
};

const OWN_NAMESPACE: &str = "openshift-cloud-credential-operator";
const LEGACY_CONFIG: &str = "cloud-credential-operator-config";
const ROOT: (&str, &str) = ("kube-system", "vsphere-creds");
const MODE_ANNOTATION: &str = "cloudcredential.openshift.io/mode";
/// The label and the annotation of a target secret have the same name.
const TARGET_MARK: &str = "cloudcredential.openshift.io/credentials-request";
const FINALIZER: &str = "cloudcredential.openshift.io/deprovision";

#[derive(Parser)]
struct Arguments {}

pub async fn run(client: Client, arguments: &[String]) -> Result<(), Error> {
    Arguments::try_parse_from(["cco".to_owned()].iter().chain(arguments))?;
    keep(&client, &release_version()?).await
}

/// Keeps the target secrets, the requests' status and the ClusterOperator, for ever.
pub async fn keep(client: &Client, version: &str) -> ! {
    tracing::info!("stand-in for the cloud credential operator: copies {}/{} for release {version}", ROOT.0, ROOT.1);
    let watched = [
        (CREDENTIALS_REQUEST, ""),
        (SECRET, ""),
        (NAMESPACE, ""),
        (CLOUD_CREDENTIAL, ""),
        (CONFIG_MAP, OWN_NAMESPACE),
        (CLUSTER_VERSION, ""),
    ];
    let mut cache = Cache::start(client, &watched).await;
    loop {
        let failed = match pass(client, &cache, version).await {
            Ok(()) => false,
            // Somebody else wrote it meanwhile; the event that says so is on the way.
            Err(error) if error.is_conflict() => false,
            Err(error) => {
                tracing::error!("{error}");
                true
            }
        };
        woken(&mut cache, failed).await;
    }
}

async fn pass(client: &Client, cache: &Cache, version: &str) -> Result<(), kubernetes::Error> {
    let Some(configuration) = cache.get(CLOUD_CREDENTIAL, "", "cluster") else {
        tracing::error!("error checking if operator is disabled: CloudCredential.operator.openshift.io \"cluster\" not found");
        return Ok(());
    };
    let legacy = cache.get(CONFIG_MAP, OWN_NAMESPACE, LEGACY_CONFIG);
    let disabled = legacy.is_some_and(|legacy| legacy.data["data"]["disabled"] == "true");
    let mode = Mode::of(configuration.data["spec"]["credentialsMode"].as_str().unwrap_or_default(), disabled);
    let mut requests = cache.list(CREDENTIALS_REQUEST);
    requests.sort_by_key(|request| full_name(request));
    match &mode {
        Mode::Manual => tracing::info!("operator set to disabled / manual mode"),
        Mode::Conflict(_) => tracing::error!("configuration conflict between legacy configmap and operator config"),
        Mode::Passthrough | Mode::Mint => {
            annotate_root(client, cache, &mode).await?;
            // Read, not watched: a change of Infrastructure makes the next sync a full one but starts none.
            let infrastructure = kubernetes::get(client, INFRASTRUCTURE, "", "cluster").await?;
            let infrastructure = infrastructure.and_then(|object| object.resource_version()).unwrap_or_default();
            for request in &requests {
                reconcile(client, cache, request, &infrastructure).await?;
            }
        }
    }
    // What this pass wrote comes back as events, and the next pass reports on that.
    let root_exists = cache.get(SECRET, ROOT.0, ROOT.1).is_some();
    let cluster_version = cache.get(CLUSTER_VERSION, "", "version");
    let upgradeable = status::upgradeable(&mode, root_exists, &configuration, cluster_version.as_ref().map(|object| &object.data));
    status::report(client, version, &mode, &requests, upgradeable).await
}

async fn annotate_root(client: &Client, cache: &Cache, mode: &Mode) -> Result<(), kubernetes::Error> {
    if *mode == Mode::Mint {
        tracing::error!("operator config value of \"Mint\" is invalid");
        return Ok(());
    }
    let Some(root) = cache.get(SECRET, ROOT.0, ROOT.1) else { return Ok(()) };
    if root.annotations().get(MODE_ANNOTATION).is_some_and(|mode| mode == "passthrough") {
        return Ok(());
    }
    tracing::info!("Cloud creds will be used as-is (passthrough)");
    let mut annotated = root.as_ref().clone();
    annotated.annotations_mut().insert(MODE_ANNOTATION.to_owned(), "passthrough".to_owned());
    requests::replace(client, SECRET, &annotated).await?;
    Ok(())
}

async fn reconcile(client: &Client, cache: &Cache, request: &Arc<DynamicObject>, infrastructure: &str) -> Result<(), kubernetes::Error> {
    let before = &request.data["status"];
    let now = operator_status::now();
    if !copy::is_for_vsphere(request) {
        return write_status(client, request, status::ignored(before, &now)).await;
    }
    let target = &request.data["spec"]["secretRef"];
    let (namespace, name) = (target["namespace"].as_str().unwrap_or_default(), target["name"].as_str().unwrap_or_default());
    let mut finalized = request.as_ref().clone();
    if request.metadata.deletion_timestamp.is_some() {
        if request.finalizers().iter().any(|finalizer| finalizer == FINALIZER) {
            tracing::info!("{} is deleted, and its secret {namespace}/{name} with it", full_name(request));
            kubernetes::delete(client, SECRET, namespace, name).await?;
            finalized.finalizers_mut().retain(|finalizer| finalizer != FINALIZER);
            requests::replace(client, CREDENTIALS_REQUEST, &finalized).await?;
        }
        return Ok(());
    }
    if !request.finalizers().iter().any(|finalizer| finalizer == FINALIZER) {
        finalized.finalizers_mut().push(FINALIZER.to_owned());
        requests::replace(client, CREDENTIALS_REQUEST, &finalized).await?;
        return Ok(());
    }
    if cache.get(NAMESPACE, "", namespace).is_none() {
        tracing::warn!("secret namespace {namespace} does not yet exist");
        return write_status(client, request, status::namespace_missing(before, namespace, &now)).await;
    }
    let found = status::namespace_found(before, namespace, &now);
    let root = cache.get(SECRET, ROOT.0, ROOT.1).filter(|root| root.annotations().contains_key(MODE_ANNOTATION));
    let root_version = root.as_ref().and_then(|root| root.resource_version());
    let existing = cache.get(SECRET, namespace, name);
    if !copy::sync_is_due(request, &found, root_version.as_deref(), infrastructure, existing.is_some()) {
        return Ok(());
    }
    let decided = copy::decide(cache.get(SECRET, ROOT.0, ROOT.1).as_deref(), existing.as_deref());
    if decided == Copy::Write {
        let data = root.as_ref().map(|root| root.data["data"].clone()).unwrap_or_default();
        write_target(client, request, existing.as_deref(), (namespace, name), data).await?;
    }
    if let Copy::Fail { condition, why } = &decided {
        tracing::error!("{}: error syncing credentials: {why}; errored with condition: {condition}", full_name(request));
    }
    let synced = status::synced(found, &decided, request.metadata.generation.unwrap_or_default(), root_version, infrastructure, &now);
    write_status(client, request, synced).await
}

/// The target's data become the root's: what else it held is gone.
async fn write_target(
    client: &Client,
    request: &DynamicObject,
    existing: Option<&DynamicObject>,
    (namespace, name): (&str, &str),
    data: Value,
) -> Result<(), kubernetes::Error> {
    tracing::info!("{}: secret {namespace}/{name} is {}", full_name(request), if existing.is_some() { "updated" } else { "created" });
    let Some(existing) = existing else {
        let metadata = json!({
            "name": name, "namespace": namespace,
            "labels": {TARGET_MARK: "true"}, "annotations": {TARGET_MARK: full_name(request)},
        });
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata, "data": data});
        return requests::create(client, SECRET, &secret).await.map(|_| ());
    };
    let mut secret = existing.clone();
    secret.labels_mut().insert(TARGET_MARK.to_owned(), "true".to_owned());
    secret.annotations_mut().insert(TARGET_MARK.to_owned(), full_name(request));
    secret.data["data"] = data;
    requests::replace(client, SECRET, &secret).await.map(|_| ())
}

async fn write_status(client: &Client, request: &DynamicObject, status: Value) -> Result<(), kubernetes::Error> {
    if request.data["status"] == status {
        return Ok(());
    }
    let mut updated = request.clone();
    updated.data["status"] = status;
    requests::replace_status(client, CREDENTIALS_REQUEST, &updated).await.map(|_| ())
}
