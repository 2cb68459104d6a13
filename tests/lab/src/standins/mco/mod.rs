//! Stands in for the machine-config-operator: ControllerConfig follows Infrastructure and the cloud configuration under its own
//! CRD's rules, what the nodes are to run is rendered from it, nodes are brought there one by one, pools say how their nodes are,
//! and the node disruption policy reaches the status and is honoured.
//!
//! Only one file is rendered, /etc/kubernetes/cloud.conf, and a reboot is a count on the Node by which its containers start again.

use std::collections::BTreeMap;

use clap::Parser;
use futures::StreamExt;
use kube::api::DynamicObject;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

use super::{Error, operator_status, release_version, requests, woken};
use crate::cache::Cache;
use crate::kubernetes::{
    self, CONFIG_MAP, CONTROLLER_CONFIG, CRD, DNS, INFRASTRUCTURE, Kind, MACHINE_CONFIG, MACHINE_CONFIG_POOL, MACHINE_CONFIGURATION,
    NETWORK, NODE, PROXY, full_name,
};
use controller_config::Sources;

mod controller_config;
mod disruption_policy;
mod drain;
mod pools;
mod rollout;

const CRD_NAME: &str = "controllerconfigs.machineconfiguration.openshift.io";
const MANAGED: &str = "openshift-config-managed";

#[derive(Parser)]
struct Arguments {}

/// Which of the operator's tasks could not be done, and why.
struct TaskFailed {
    task: &'static str,
    why: String,
}

pub async fn run(client: Client, arguments: &[String]) -> Result<(), Error> {
    Arguments::try_parse_from(["mco".to_owned()].iter().chain(arguments))?;
    keep(&client, &release_version()?).await
}

/// Keeps ControllerConfig, pools and MachineConfiguration, for ever.
pub async fn keep(client: &Client, version: &str) -> ! {
    tracing::info!(
        "stand-in for the machine-config-operator (one file is rendered, and a reboot starts the node's containers again) of release {version}"
    );
    let mut drains = tokio::task::JoinSet::<()>::new();
    let own = client.clone();
    drains.spawn(async move { drain::keep(&own).await });
    let kinds = [INFRASTRUCTURE, NETWORK, DNS, PROXY, NODE, CONTROLLER_CONFIG, MACHINE_CONFIG_POOL, MACHINE_CONFIGURATION, MACHINE_CONFIG];
    let mut watched: Vec<(Kind, &str)> = kinds.iter().map(|kind| (*kind, "")).collect();
    watched.extend([(CONFIG_MAP, MANAGED), (CONFIG_MAP, "kube-system")]);
    let mut cache = Cache::start(client, &watched).await;
    // Its rules decide what may be written: when they change, what was refused is tried again.
    let rules = watcher::Config::default().fields(&format!("metadata.name={CRD_NAME}"));
    let mut rules = std::pin::pin!(watcher(CRD.api(client, ""), rules).default_backoff());
    loop {
        let failed = pass(client, &cache, version).await;
        tokio::select! {
            () = woken(&mut cache, failed) => {}
            Some(_) = rules.next() => {}
        }
    }
}

/// One look at everything; true where something has to be tried again.
async fn pass(client: &Client, cache: &Cache, version: &str) -> bool {
    let tasks = operator_tasks(client, cache, version).await;
    let rolled = roll_out(client, cache).await;
    let statuses = write_statuses(client, cache, version).await;
    let reported = report(client, version, tasks.as_ref().err()).await;
    let mut failed = tasks.is_err();
    for result in [rolled, statuses, reported] {
        match result {
            Ok(()) => {}
            // Somebody wrote it meanwhile; the event of that write brings us back.
            Err(error) if error.is_conflict() => {}
            Err(error) => {
                tracing::error!("{error}");
                failed = true;
            }
        }
    }
    failed
}

/// The operator's tasks in its own order; the first that fails ends the round.
async fn operator_tasks(client: &Client, cache: &Cache, version: &str) -> Result<(), TaskFailed> {
    let spec = rendered_spec(cache, version).map_err(|why| TaskFailed { task: "RenderConfig", why })?;
    if cache.get(MACHINE_CONFIGURATION, "", "cluster").is_none() {
        let manifest = json!({"apiVersion": "operator.openshift.io/v1", "kind": "MachineConfiguration",
            "metadata": {"name": "cluster"}, "spec": {"managementState": "Managed"}});
        let applied = kubernetes::apply(client, "machine-config-operator", &manifest).await.map(|_| ());
        done("MachineConfiguration", applied)?;
    }
    for manifest in pools::built_in() {
        let name = manifest["metadata"]["name"].as_str().unwrap_or_default();
        let existing = cache.get(MACHINE_CONFIG_POOL, "", name);
        let restored = existing.as_ref().and_then(|pool| pools::restored(pool, &manifest));
        done("MachineConfigPools", write(client, MACHINE_CONFIG_POOL, existing.is_none().then_some(&manifest), restored.as_ref()).await)?;
    }
    let existing = cache.get(CONTROLLER_CONFIG, "", controller_config::NAME);
    let manifest = json!({"apiVersion": CONTROLLER_CONFIG.api_version(), "kind": CONTROLLER_CONFIG.kind, "spec": spec,
        "metadata": {"name": controller_config::NAME,
            "annotations": {"machineconfiguration.openshift.io/generated-by-version": version}}});
    let changed = existing.as_ref().and_then(|config| {
        let merged = controller_config::merged(&config.data["spec"], &spec);
        (merged != config.data["spec"]).then(|| {
            let mut changed = config.as_ref().clone();
            changed.data["spec"] = merged;
            changed
        })
    });
    let written = write(client, CONTROLLER_CONFIG, existing.is_none().then_some(&manifest), changed.as_ref()).await;
    if let Err(error) = &written {
        tracing::error!("Failed to update ControllerConfig: {}", words(error));
    }
    done("MachineConfigController", written)
}

fn rendered_spec(cache: &Cache, version: &str) -> Result<Value, String> {
    let find = |kind: Kind| cache.get(kind, "", "cluster");
    let needed = |kind: Kind| find(kind).ok_or_else(|| format!("{}.{} \"cluster\" not found", kind.plural, kind.group));
    let root_ca = cache.get(CONFIG_MAP, "kube-system", "kube-root-ca.crt");
    let root_ca = root_ca.as_ref().and_then(|map| map.data["data"]["ca.crt"].as_str()).filter(|text| !text.is_empty());
    controller_config::spec(&Sources {
        infrastructure: &*needed(INFRASTRUCTURE)?,
        network: &*needed(NETWORK)?,
        dns: &*needed(DNS)?,
        proxy: find(PROXY).as_deref(),
        cloud_config: cache.get(CONFIG_MAP, MANAGED, "kube-cloud-config").as_deref(),
        root_ca: root_ca.ok_or("configmap \"kube-root-ca.crt\" in kube-system has no ca.crt yet")?,
        release_image: &format!("vmi-lab/release:{version}"),
    })
}

/// Renders what the pools are to run, and brings their nodes a step further.
async fn roll_out(client: &Client, cache: &Cache) -> Result<(), kubernetes::Error> {
    let Some(controller_config) = cache.get(CONTROLLER_CONFIG, "", controller_config::NAME) else { return Ok(()) };
    let configs: BTreeMap<String, Value> = cache.list(MACHINE_CONFIG).iter().map(|config| (config.name_any(), json!(**config))).collect();
    let policy = cache.get(MACHINE_CONFIGURATION, "", "cluster").map(|found| found.data["status"]["nodeDisruptionPolicyStatus"].clone());
    let nodes = cache.list(NODE);
    for pool in cache.list(MACHINE_CONFIG_POOL) {
        let wanted = rollout::rendered(&pool.name_any(), &controller_config.data);
        let name = wanted["metadata"]["name"].as_str().unwrap_or_default();
        if !configs.contains_key(name) {
            write(client, MACHINE_CONFIG, Some(&wanted), None).await?;
        }
        if pool.data["spec"]["configuration"]["name"] != name {
            tracing::info!("pool {}: now targeting {name}", pool.name_any());
            let patch = json!({"spec": {"configuration": {"name": name}}});
            kubernetes::merge(client, MACHINE_CONFIG_POOL, "", &pool.name_any(), &patch).await?;
            continue;
        }
        let members = pools::members(&pool, nodes.iter().map(AsRef::as_ref));
        let view = rollout::Pool {
            pool: &pool,
            nodes: &members,
            configs: &configs,
            policy: policy.as_ref().unwrap_or(&Value::Null),
            ready: pools::is_ready,
        };
        for (node, patch) in rollout::steps(&view) {
            tracing::info!("node {node}: {patch}");
            kubernetes::merge(client, NODE, "", &node, &patch).await?;
        }
    }
    Ok(())
}

/// What the controllers beside the operator say: they go on while the operator is stuck.
async fn write_statuses(client: &Client, cache: &Cache, version: &str) -> Result<(), kubernetes::Error> {
    let now = operator_status::now();
    if let Some(config) = cache.get(CONTROLLER_CONFIG, "", controller_config::NAME) {
        write_status(client, CONTROLLER_CONFIG, &config, controller_config::status(&config, version, &now)).await?;
    }
    if let Some(configuration) = cache.get(MACHINE_CONFIGURATION, "", "cluster") {
        let mut status = configuration.data["status"].as_object().cloned().unwrap_or_default();
        let policy = disruption_policy::policy_status(&configuration.data["spec"]["nodeDisruptionPolicy"]);
        status.insert("nodeDisruptionPolicyStatus".to_owned(), policy);
        status.insert("observedGeneration".to_owned(), json!(configuration.metadata.generation));
        write_status(client, MACHINE_CONFIGURATION, &configuration, Value::Object(status)).await?;
    }
    let nodes = cache.list(NODE);
    for pool in cache.list(MACHINE_CONFIG_POOL) {
        let members = pools::members(&pool, nodes.iter().map(AsRef::as_ref));
        write_status(client, MACHINE_CONFIG_POOL, &pool, pools::status(&pool, &members, &now)).await?;
    }
    Ok(())
}

async fn write_status(client: &Client, kind: Kind, object: &DynamicObject, status: Value) -> Result<(), kubernetes::Error> {
    if object.data["status"] == status {
        return Ok(());
    }
    tracing::info!("updating the status of {} {}", kind.kind, full_name(object));
    let mut updated = object.clone();
    updated.data["status"] = status;
    requests::replace_status(client, kind, &updated).await.map(|_| ())
}

async fn write(client: &Client, kind: Kind, new: Option<&Value>, changed: Option<&DynamicObject>) -> Result<(), kubernetes::Error> {
    if let Some(manifest) = new {
        tracing::info!("{} {} not found, creating", kind.kind, manifest["metadata"]["name"].as_str().unwrap_or_default());
        requests::create(client, kind, manifest).await?;
    } else if let Some(object) = changed {
        tracing::info!("updating {} {}", kind.kind, full_name(object));
        requests::replace(client, kind, object).await?;
    }
    Ok(())
}

/// The apiserver's own words where it answered.
fn words(error: &kubernetes::Error) -> String {
    error.status().map_or_else(|| error.to_string(), |status| status.message.clone())
}

/// A conflict is not a failure: the other's write brings an event, and with it the next try.
fn done(task: &'static str, result: Result<(), kubernetes::Error>) -> Result<(), TaskFailed> {
    match result {
        Err(error) if !error.is_conflict() => Err(TaskFailed { task, why: words(&error) }),
        _ => Ok(()),
    }
}

async fn report(client: &Client, version: &str, failed: Option<&TaskFailed>) -> Result<(), kubernetes::Error> {
    let deployed = format!("Cluster has deployed [{{operator {version}}}]");
    let reason = failed.map_or_else(String::new, |failed| format!("{}Failed", failed.task));
    let message = failed.map_or_else(String::new, |failed| format!("Failed to resync {version} because: {}", failed.why));
    let progress = if failed.is_some() { format!("Error while reconciling {version}") } else { format!("Cluster version is {version}") };
    let conditions = [
        ("Available", "True", "AsExpected", deployed.as_str()),
        ("Progressing", "False", "", progress.as_str()),
        ("Degraded", if failed.is_some() { "True" } else { "False" }, reason.as_str(), message.as_str()),
        ("Upgradeable", "True", "AsExpected", ""),
        ("EvaluationConditionsDetected", "False", "AsExpected", ""),
    ];
    const GROUP: &str = "machineconfiguration.openshift.io";
    let related = [
        ("", "namespaces", "", "openshift-machine-config-operator"),
        (GROUP, "machineconfigpools", "", ""),
        (GROUP, "controllerconfigs", "", ""),
        ("operator.openshift.io", "machineconfigurations", "", ""),
        ("", "nodes", "", ""),
    ];
    operator_status::report(client, "machine-config", version, &conditions, &related).await
}
