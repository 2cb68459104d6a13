//! Stands in for the cluster-autoscaler-operator and the cluster autoscaler: each MachineAutoscaler owns its target MachineSet by
//! annotations and gives them up when it goes or turns to another set, and a set is brought within its bounds.
//!
//! Nobody asks how much room pods need: within its bounds a set stays as it is.

use clap::Parser;
use kube::{Client, ResourceExt as _};

use super::{Error, operator_status, release_version, woken};
use crate::cache::Cache;
use crate::cluster::machines::NAMESPACE;
use crate::kubernetes::{self, CLUSTER_AUTOSCALER, CLUSTER_OPERATOR, MACHINE_AUTOSCALER, MACHINE_SET, condition};
use bounds::{Act, Seen};

mod bounds;

const NAME: &str = "cluster-autoscaler";

#[derive(Parser)]
struct Arguments {}

pub async fn run(client: Client, arguments: &[String]) -> Result<(), Error> {
    Arguments::try_parse_from(["autoscaler".to_owned()].iter().chain(arguments))?;
    keep(&client, &release_version()?).await
}

/// Serves MachineAutoscalers, for ever.
pub async fn keep(client: &Client, version: &str) -> ! {
    tracing::info!("stand-in for the cluster-autoscaler-operator and the cluster autoscaler (nobody asks for pods) of release {version}");
    let watched = [(CLUSTER_AUTOSCALER, ""), (MACHINE_AUTOSCALER, NAMESPACE), (MACHINE_SET, NAMESPACE), (CLUSTER_OPERATOR, "")];
    let mut cache = Cache::start(client, &watched).await;
    loop {
        let failed = match pass(client, &cache, version).await {
            Ok(()) => false,
            // Somebody wrote or took it meanwhile; the event of that brings us back.
            Err(error) if error.is_conflict() || error.is_not_found() => false,
            Err(error) => {
                tracing::error!("{error}");
                true
            }
        };
        woken(&mut cache, failed).await;
    }
}

async fn pass(client: &Client, cache: &Cache, version: &str) -> Result<(), kubernetes::Error> {
    let (scalers, sets, cluster) = (cache.list(MACHINE_AUTOSCALER), cache.list(MACHINE_SET), cache.get(CLUSTER_AUTOSCALER, "", "default"));
    let seen = Seen {
        scalers: scalers.iter().map(AsRef::as_ref).collect(),
        sets: sets.iter().map(AsRef::as_ref).collect(),
        cluster: cluster.as_ref().map(|cluster| &cluster.data["spec"]),
    };
    for scaler in &seen.scalers {
        let decided = bounds::serve(scaler, &seen);
        if let Err(why) = &decided {
            tracing::error!("{NAMESPACE}/{}: {why}", scaler.name_any());
        }
        for act in decided.unwrap_or_default() {
            write(client, &act).await?;
        }
    }
    for act in seen.sets.iter().filter_map(|set| bounds::scale(set, seen.cluster)) {
        write(client, &act).await?;
    }
    report(client, cache, version).await
}

async fn write(client: &Client, act: &Act) -> Result<(), kubernetes::Error> {
    match act {
        Act::Set(name, patch) => {
            tracing::info!("MachineSet {name}: {patch}");
            kubernetes::merge(client, MACHINE_SET, NAMESPACE, name, patch).await.map(drop)
        }
        Act::Scaler(name, patch) => kubernetes::merge(client, MACHINE_AUTOSCALER, NAMESPACE, name, patch).await.map(drop),
        Act::ScalerStatus(name, patch) => kubernetes::merge_status(client, MACHINE_AUTOSCALER, NAMESPACE, name, patch).await.map(drop),
    }
}

async fn report(client: &Client, cache: &Cache, version: &str) -> Result<(), kubernetes::Error> {
    let machines = cache.get(CLUSTER_OPERATOR, "", "machine-api");
    let ready = machines.is_some_and(|found| condition(&found, "Available") == "True" && condition(&found, "Degraded") != "True");
    let message = format!("at version {version}");
    let (available, degraded) = match ready {
        true => (("Available", "True", "AsExpected", message.as_str()), ("Degraded", "False", "", "")),
        false => (("Available", "True", "", ""), ("Degraded", "True", "MissingDependency", "machine-api not ready")),
    };
    let conditions = [available, ("Progressing", "False", "", ""), degraded, ("Upgradeable", "True", "", "")];
    const GROUP: &str = "autoscaling.openshift.io";
    let related =
        [(GROUP, "machineautoscalers", NAMESPACE, ""), (GROUP, "clusterautoscalers", NAMESPACE, ""), ("", "namespaces", "", NAMESPACE)];
    operator_status::report(client, NAME, version, &conditions, &related).await
}
