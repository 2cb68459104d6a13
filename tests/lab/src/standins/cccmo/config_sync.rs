//! The process `config-sync-controllers`: the transformed cloud config and the trusted certificates.

use std::time::{Duration, Instant};

use kube::Client;
use kube::api::DynamicObject;
use serde_json::{Map, Value, json};

use super::trusted_ca;
use super::{CLOUD_CONF, Failure, MANAGED_NAMESPACE, Patience, report};
use crate::cache::Cache;
use crate::kubernetes::{self, CONFIG_MAP, FEATURE_GATE, INFRASTRUCTURE, NETWORK, PROXY};
use crate::standins::cloud_config::{self, Generation, Panic, transform};
use crate::standins::{config_operator, requests, woken};

const SOURCE_NAMESPACE: &str = "openshift-config";
const SHARED: (&str, &str) = ("openshift-config-managed", "kube-cloud-config");
const KEY: &str = "cloud.conf";
const THRESHOLD: Duration = Duration::from_secs(120);

/// Keeps cloud-conf and ccm-trusted-ca, for ever.
pub async fn keep(client: &Client, version: &str, generation: Generation) -> ! {
    tracing::info!(
        "stand-in for the cloud controller manager operator's config sync: keeps {MANAGED_NAMESPACE}/{CLOUD_CONF} for release {version}"
    );
    let watched = [
        (INFRASTRUCTURE, ""),
        (NETWORK, ""),
        (PROXY, ""),
        (FEATURE_GATE, ""),
        (CONFIG_MAP, SOURCE_NAMESPACE),
        (CONFIG_MAP, SHARED.0),
        (CONFIG_MAP, MANAGED_NAMESPACE),
    ];
    let mut cache = Cache::start(client, &watched).await;
    let mut config = Controller::new(client, version, generation, "CloudConfigController", "Cloud Config Controller");
    let mut trust = Controller::new(client, version, generation, "TrustedCABundleControllerController", "Trusted CA Bundle Controller");
    loop {
        let synced = sync_config(client, &cache, version, generation).await;
        let failed = config.settle(synced).await;
        let trusted = trusted_ca::sync(client, &cache).await;
        let failed = trust.settle(trusted).await || failed;
        woken(&mut cache, failed).await;
    }
}

/// One of the two controllers of this process, by the names it reports under.
struct Controller<'c> {
    client: &'c Client,
    version: &'c str,
    prefix: &'static str,
    title: &'static str,
    patience: Patience,
}

impl<'c> Controller<'c> {
    fn new(client: &'c Client, version: &'c str, generation: Generation, prefix: &'static str, title: &'static str) -> Self {
        Controller { client, version, prefix, title, patience: Patience::new(generation, THRESHOLD) }
    }

    /// Reports how a pass went and returns whether it must be tried again without an event.
    async fn settle(&mut self, outcome: Result<(), Failure>) -> bool {
        let failure = match outcome {
            Ok(()) => None,
            Err(failure) if failure.is_conflict() => return false,
            Err(failure) => Some(failure),
        };
        let degraded = match &failure {
            None => {
                self.patience.succeeded();
                false
            }
            Some(Failure::Panic(panic)) if self.patience.generation == Generation::V4_17 => crash(*panic),
            Some(failure) => {
                if let Failure::Panic(panic) = failure {
                    tracing::error!(%panic, "Observed a panic");
                }
                if self.gives_up_on(failure) {
                    tracing::error!(
                        "{}Reconciler: terminal error, setting degraded: {failure}",
                        self.prefix.trim_end_matches("Controller")
                    );
                } else {
                    tracing::error!(controller = self.prefix, "Reconciler error: {failure}");
                }
                if !self.patience.is_over(failure, Instant::now()) {
                    return true;
                }
                true
            }
        };
        match self.report(degraded).await {
            Ok(()) => failure.is_some_and(|failure| !self.gives_up_on(&failure)),
            Err(error) => {
                tracing::error!("failed to set conditions: {error}");
                true
            }
        }
    }

    /// From 4.23 on, what only a changed object can cure is not tried again without one.
    fn gives_up_on(&self, failure: &Failure) -> bool {
        self.patience.generation == Generation::Next && matches!(failure, Failure::Terminal(_))
    }

    async fn report(&self, degraded: bool) -> Result<(), kubernetes::Error> {
        let (available, wrong, reason, how) = match degraded {
            true => ("False", "True", "SyncingFailed", "failed to sync cloud config"),
            false => ("True", "False", "AsExpected", "works as expected"),
        };
        let message = format!("{} {how}", self.title);
        let kinds = [format!("{}Available", self.prefix), format!("{}Degraded", self.prefix)];
        let conditions = [(kinds[0].as_str(), available, reason, message.as_str()), (kinds[1].as_str(), wrong, reason, message.as_str())];
        report(self.client, self.version, &conditions).await
    }
}

/// Up to 4.17 nothing catches the panic: the process ends as a Go program does, and the kubelet starts it again.
fn crash(panic: Panic) -> ! {
    eprintln!("Observed a panic in reconciler: {panic}");
    eprintln!("panic: {panic} [recovered]\n\tpanic: {panic}\n\ngoroutine 1 [running]:");
    eprintln!("github.com/openshift/cluster-cloud-controller-manager-operator/pkg/cloud/vsphere.setVirtualCenters(...)");
    std::process::exit(2)
}

async fn sync_config(client: &Client, cache: &Cache, version: &str, generation: Generation) -> Result<(), Failure> {
    let next = generation == Generation::Next;
    let Some(infrastructure) = cache.get(INFRASTRUCTURE, "", "cluster") else {
        tracing::error!("infrastructure resource not found");
        let missing = Failure::Transient("Infrastructure.config.openshift.io \"cluster\" not found".to_owned());
        return if next { Ok(()) } else { Err(missing) };
    };
    let network = cache.get(NETWORK, "", "cluster");
    let network = network.ok_or_else(|| Failure::Transient("Network.config.openshift.io \"cluster\" not found".to_owned()))?;
    if infrastructure.data["status"]["platformStatus"].is_null() {
        return Err(Failure::Terminal("platformStatus is required".to_owned()));
    }
    let gates = cache.get(FEATURE_GATE, "", "cluster");
    let owns_shared = next && gates.is_some_and(|gates| config_operator::gate_enabled(&gates.data, version, "VSphereMultiVCenterDay2"));
    let name = infrastructure.data["spec"]["cloudConfig"]["name"].as_str().unwrap_or_default();
    let source = cache.get(CONFIG_MAP, SOURCE_NAMESPACE, name);
    let mut content = prepare(source.as_deref(), &infrastructure.data["spec"]["cloudConfig"], owns_shared).map_err(Failure::Terminal)?;
    let text = content.data[KEY].as_str().unwrap_or_default();
    let transformed = transform(text, &infrastructure.data, Some(&network.data), generation).map_err(|error| match error {
        cloud_config::Error::Panic(panic) => Failure::Panic(panic),
        error if next => Failure::Terminal(format!("failed to transform cloud config: {error}")),
        error => Failure::Terminal(error.to_string()),
    })?;
    content.data[KEY] = json!(transformed);
    if owns_shared {
        content.store(client, cache, SHARED).await?;
    }
    Ok(content.store(client, cache, (MANAGED_NAMESPACE, CLOUD_CONF)).await?)
}

/// What a ConfigMap holds.
#[derive(Debug, PartialEq)]
pub struct Content {
    pub data: Value,
    pub binary_data: Value,
}

impl Content {
    pub async fn store(&self, client: &Client, cache: &Cache, (namespace, name): (&str, &str)) -> Result<(), kubernetes::Error> {
        let Some(existing) = cache.get(CONFIG_MAP, namespace, name) else {
            tracing::info!("creating {namespace}/{name}");
            let metadata = json!({"name": name, "namespace": namespace});
            let manifest =
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": self.data, "binaryData": self.binary_data});
            return requests::create(client, CONFIG_MAP, &manifest).await.map(|_| ());
        };
        if field(&existing, "data") == self.data && field(&existing, "binaryData") == self.binary_data {
            return Ok(());
        }
        tracing::info!("updating {namespace}/{name}");
        let mut updated = existing.as_ref().clone();
        updated.data["data"] = self.data.clone();
        updated.data["binaryData"] = self.binary_data.clone();
        requests::replace(client, CONFIG_MAP, &updated).await.map(|_| ())
    }
}

/// A map field, empty where it is missing.
fn field(object: &DynamicObject, name: &str) -> Value {
    object.data.get(name).filter(|value| value.is_object()).cloned().unwrap_or_else(|| Value::Object(Map::new()))
}

/// The source's content with the text to transform under `cloud.conf`: that key wins over the one Infrastructure names.
fn prepare(source: Option<&DynamicObject>, reference: &Value, owns_shared: bool) -> Result<Content, String> {
    let name = reference["name"].as_str().unwrap_or_default();
    let Some(source) = source else {
        tracing::warn!("cloud-config {SOURCE_NAMESPACE}/{name} is not found");
        let key = reference["key"].as_str().unwrap_or_default();
        let data = match (owns_shared, key) {
            // The only content with which the owner of the shared ConfigMap begins.
            (true, _) if !name.is_empty() => json!({KEY: "global: {}\nvcenter: {}\n"}),
            (_, "") => json!({KEY: ""}),
            (_, key) => return Err(format!("key {key} specified in infra resource does not exist in source configmap /")),
        };
        return Ok(Content { data, binary_data: json!({}) });
    };
    let (mut data, binary_data) = (field(source, "data"), field(source, "binaryData"));
    if data.get(KEY).is_none() {
        data[KEY] = json!("");
        let key = reference["key"].as_str().unwrap_or_default();
        if !key.is_empty() {
            let named = data.as_object_mut().and_then(|data| data.remove(key));
            data[KEY] = named.ok_or_else(|| {
                format!("key {key} specified in infra resource does not exist in source configmap {SOURCE_NAMESPACE}/{name}")
            })?;
        }
    }
    Ok(Content { data, binary_data })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_taken_from_cloud_conf_or_else_from_the_named_key() {
        let named = json!({"name": "cloud-provider-config", "key": "config"});
        let unnamed = json!({"name": "cloud-provider-config", "key": ""});
        let missing = "key config specified in infra resource does not exist in source configmap openshift-config/cloud-provider-config";
        let cases = [
            ("the named key", &named, json!({"config": "A", "ca-bundle.pem": "P"}), Ok(json!({"cloud.conf": "A", "ca-bundle.pem": "P"}))),
            ("cloud.conf wins", &named, json!({"config": "A", "cloud.conf": "B"}), Ok(json!({"cloud.conf": "B", "config": "A"}))),
            ("no such key", &named, json!({"other": "A"}), Err(missing.to_owned())),
            ("no key named", &unnamed, json!({"config": "A"}), Ok(json!({"cloud.conf": "", "config": "A"}))),
        ];
        for (what, reference, data, expected) in cases {
            let source = serde_json::from_value(json!({"metadata": {}, "data": data})).unwrap();
            assert_eq!(prepare(Some(&source), reference, false).map(|content| content.data), expected, "{what}");
        }
    }

    #[test]
    fn without_a_source_only_the_owner_of_the_shared_config_begins_anew() {
        let named = json!({"name": "cloud-provider-config", "key": "config"});
        let nothing = json!({"name": "", "key": ""});
        assert_eq!(prepare(None, &named, true).unwrap().data, json!({"cloud.conf": "global: {}\nvcenter: {}\n"}));
        assert_eq!(prepare(None, &nothing, true).unwrap().data, json!({"cloud.conf": ""}));
        assert_eq!(prepare(None, &nothing, false).unwrap().data, json!({"cloud.conf": ""}));
        assert_eq!(
            prepare(None, &named, false).unwrap_err(),
            "key config specified in infra resource does not exist in source configmap /"
        );
    }
}
