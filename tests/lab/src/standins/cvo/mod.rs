//! Stands in for the cluster-version-operator: while it runs, CRDs, Deployments and whatever else the payload holds are put back
//! to what the payload says, unless ClusterVersion overrides them, and ClusterVersion's status is kept.
//!
//! The real one goes over its payload every two to four minutes; this one acts at once, or with `--resync` every so many
//! seconds. Its own Deployment it leaves alone: the real one, scaled to nothing, is gone before it would look.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use kube::Client;
use kube::api::DynamicObject;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Error, operator_status, release_version, requests, woken};
use crate::cache::Cache;
use crate::kubernetes::{self, CLUSTER_OPERATOR, CLUSTER_VERSION, DEPLOYMENT, FEATURE_GATE, Kind};
use cluster_version::{Failure, Release};
use payload::{Manifest, Payload};

mod cluster_version;
pub mod payload;
mod restore;

const OWN_NAMESPACE: &str = "openshift-cluster-version";
const OWN_NAME: &str = "cluster-version-operator";

#[derive(Parser)]
struct Arguments {
    /// A folder of manifests: what the release consists of.
    #[arg(long)]
    payload: PathBuf,
    /// Seconds between two looks at the cluster; 0 means to act on every change at once.
    #[arg(long, default_value_t = 0)]
    resync: u64,
}

pub async fn run(client: Client, arguments: &[String]) -> Result<(), Error> {
    let arguments = Arguments::try_parse_from(["cvo".to_owned()].iter().chain(arguments))?;
    let payload = Payload::read(&arguments.payload)?;
    keep(&client, &payload, &release_version()?, Duration::from_secs(arguments.resync)).await
}

/// Keeps the cluster as the payload says until the payload contradicts itself.
pub async fn keep(client: &Client, payload: &Payload, version: &str, resync: Duration) -> Result<(), Error> {
    tracing::info!(
        "stand-in for the cluster version operator: keeps {} manifests of release {version}, resync {resync:?}",
        payload.manifests.len()
    );
    let mut watched: Vec<(Kind, &str)> = vec![(CLUSTER_VERSION, ""), (CLUSTER_OPERATOR, ""), (FEATURE_GATE, "")];
    for manifest in &payload.manifests {
        let wanted = (manifest.kind, manifest.namespace.as_str());
        if !watched.contains(&wanted) {
            watched.push(wanted);
        }
    }
    let mut cache = Cache::start(client, &watched).await;
    let mut keeper = Keeper { client, defaulted: HashMap::new() };
    loop {
        let feature_gate = cache.get(FEATURE_GATE, "", "cluster");
        let feature_set = feature_gate.as_ref().and_then(|gate| gate.data["spec"]["featureSet"].as_str()).unwrap_or_default();
        let manifests = payload.made_for(feature_set)?;
        let release = Release { version, image: &format!("vmi-lab/release:{version}"), hash: &payload.hash };
        let failed = keeper.pass(&cache, &manifests, &release).await;
        next_pass(&mut cache, resync, failed).await;
    }
}

/// Waits for a reason to look again. Between two looks of a paced operator only ClusterVersion's own change is one, as with the
/// real one.
async fn next_pass(cache: &mut Cache, resync: Duration, failed: bool) {
    if resync.is_zero() {
        return woken(cache, failed).await;
    }
    let generation = |cache: &Cache| cache.get(CLUSTER_VERSION, "", "version").and_then(|version| version.metadata.generation);
    let (seen, due) = (generation(cache), Instant::now() + resync);
    while generation(cache) == seen {
        if tokio::time::timeout_at(due, cache.changed()).await.is_err() {
            return;
        }
    }
}

struct Keeper<'a> {
    client: &'a Client,
    /// What the apiserver makes of each manifest, asked for once.
    defaulted: HashMap<String, Value>,
}

impl Keeper<'_> {
    /// One look at everything; true where something could not be written.
    async fn pass(&mut self, cache: &Cache, manifests: &[&Manifest], release: &Release<'_>) -> bool {
        let cluster_version = cache.get(CLUSTER_VERSION, "", "version");
        let overrides = cluster_version.as_ref().map_or(Value::Null, |version| version.data["spec"]["overrides"].clone());
        let mut refused = None;
        // Somebody wrote an object meanwhile: no failure, but it must be looked at again.
        let mut overtaken = false;
        for manifest in manifests {
            let own = manifest.kind == DEPLOYMENT && manifest.namespace == OWN_NAMESPACE && manifest.name == OWN_NAME;
            if own || cluster_version::unmanaged(&overrides, manifest) {
                continue;
            }
            match self.keep(cache, manifest).await {
                Ok(()) => {}
                Err(error) if error.is_conflict() => overtaken = true,
                Err(error) => {
                    tracing::error!("error running apply for {}: {error}", manifest.what());
                    refused.get_or_insert(could_not_update(manifest, &error));
                }
            }
        }
        let Some(cluster_version) = cluster_version else {
            tracing::warn!("there is no ClusterVersion \"version\" to report to");
            return overtaken || refused.is_some();
        };
        let failure = refused.clone().or_else(|| cluster_version::unhealthy(&cache.list(CLUSTER_OPERATOR)));
        let status = cluster_version::status(&cluster_version, release, refused.is_none(), failure.as_ref(), &operator_status::now());
        if status == cluster_version.data["status"] {
            return overtaken || refused.is_some();
        }
        let mut updated = cluster_version.as_ref().clone();
        updated.data["status"] = status;
        match requests::replace_status(self.client, CLUSTER_VERSION, &updated).await {
            Ok(_) => overtaken || refused.is_some(),
            Err(error) if error.is_conflict() => true,
            Err(error) => {
                tracing::error!("{error}");
                true
            }
        }
    }

    async fn keep(&mut self, cache: &Cache, manifest: &Manifest) -> Result<(), kubernetes::Error> {
        let Some(existing) = cache.get(manifest.kind, &manifest.namespace, &manifest.name) else {
            tracing::info!("{} not found, creating", manifest.what());
            requests::create(self.client, manifest.kind, &manifest.body).await?;
            return Ok(());
        };
        if manifest.create_only() || existing.metadata.deletion_timestamp.is_some() {
            return Ok(());
        }
        let wanted = self.defaulted(manifest, &existing).await?;
        let before = whole(&existing);
        let Some(after) = restore::restored(manifest.kind, &before, wanted) else { return Ok(()) };
        tracing::info!("Updating {} due to diff: {}", manifest.what(), restore::differences(&before, &after, 5).join(" "));
        let object = serde_json::from_value(after).map_err(|error| unreadable(manifest, error))?;
        requests::replace(self.client, manifest.kind, &object).await?;
        Ok(())
    }

    /// The manifest with the apiserver's defaults, so that comparing it with what is stored shows real differences only.
    async fn defaulted(&mut self, manifest: &Manifest, existing: &DynamicObject) -> Result<&Value, kubernetes::Error> {
        let key = manifest.file.clone() + &manifest.what();
        if !self.defaulted.contains_key(&key) {
            let mut object: DynamicObject = serde_json::from_value(manifest.body.clone()).map_err(|error| unreadable(manifest, error))?;
            object.metadata = existing.metadata.clone();
            let mut wanted = whole(&requests::would_store(self.client, manifest.kind, &object).await?);
            wanted["metadata"] = manifest.body["metadata"].clone();
            wanted["status"] = Value::Null;
            self.defaulted.insert(key.clone(), wanted);
        }
        Ok(&self.defaulted[&key])
    }
}

/// The object as one JSON value.
fn whole(object: &DynamicObject) -> Value {
    let mut value = object.data.clone();
    value["metadata"] = json!(object.metadata);
    value
}

fn unreadable(manifest: &Manifest, error: serde_json::Error) -> kubernetes::Error {
    let source = Box::new(kube::Error::SerdeError(error));
    kubernetes::Error::Request { verb: "read", kind: manifest.kind.kind.to_owned(), name: manifest.name.clone(), source }
}

fn could_not_update(manifest: &Manifest, error: &kubernetes::Error) -> Failure {
    let words = error.status().map_or_else(|| error.to_string(), |status| status.message.clone());
    let (reason, summary) = match error.status().map(|status| status.code) {
        Some(404) => ("UpdatePayloadResourceNotFound", "some resources could not be updated"),
        Some(403) => ("UpdatePayloadResourceForbidden", "the server is rejecting updates"),
        Some(422) => ("UpdatePayloadResourceInvalid", "some cluster configuration is invalid"),
        Some(_) => ("UpdatePayloadClusterError", "the control plane is reporting an internal error"),
        None => ("UpdatePayloadClusterDown", "the control plane is down or not responding"),
    };
    Failure { reason, message: format!("Could not update {}: {words}", manifest.what()), summary: summary.to_owned() }
}
