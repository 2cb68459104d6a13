//! The board on which the faults of a cluster stand: a ConfigMap with an entry each. Whoever has to break something watches it.

use kube::Client;
use serde_json::{Value, json};

use super::{Error, Fault, objects};
use crate::cache::Cache;
use crate::kubernetes::{self, CONFIG_MAP};

/// Where the lab keeps what is not OpenShift's.
pub const NAMESPACE: &str = "vmi-lab";
const NAME: &str = "faults";

/// An empty board, and the namespace it is in.
pub fn empty() -> [Value; 2] {
    [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME, "namespace": NAMESPACE}}),
    ]
}

/// What a cache that watches ConfigMaps in [`NAMESPACE`] knows to be in force.
pub fn seen(cache: &Cache) -> Vec<Fault> {
    let Some(board) = cache.get(CONFIG_MAP, NAMESPACE, NAME) else { return Vec::new() };
    let entries = board.data["data"].as_object().into_iter().flatten();
    entries.filter_map(|(_, text)| serde_json::from_str(text.as_str()?).ok()).collect()
}

/// A watch on the board alone.
pub async fn watch(client: &Client) -> Cache {
    Cache::start(client, &[(CONFIG_MAP, NAMESPACE)]).await
}

pub(super) async fn list(client: &Client) -> Result<Vec<(String, Fault)>, Error> {
    let board = kubernetes::get(client, CONFIG_MAP, NAMESPACE, NAME).await?;
    let entries = board.map(|board| board.data["data"].clone()).unwrap_or_default();
    let read = |(key, text): (&String, &Value)| match serde_json::from_str(text.as_str().unwrap_or_default()) {
        Ok(fault) => Ok((key.clone(), fault)),
        Err(source) => Err(Error::Board { key: key.clone(), source }),
    };
    entries.as_object().into_iter().flatten().map(read).collect()
}

/// Puts a fault on the board, after the objects it consists of.
pub async fn put(client: &Client, fault: &Fault) -> Result<String, Error> {
    objects::make(client, fault).await?;
    let id = id(fault);
    set(client, &id, &json!(json!(fault).to_string())).await?;
    Ok(id)
}

/// Takes a fault off the board, and what it consists of away.
pub async fn take(client: &Client, id: &str) -> Result<(), Error> {
    for (listed, fault) in list(client).await? {
        if listed == id {
            objects::remove(client, &fault).await?;
        }
    }
    set(client, id, &Value::Null).await
}

async fn set(client: &Client, id: &str, entry: &Value) -> Result<(), Error> {
    kubernetes::merge(client, CONFIG_MAP, NAMESPACE, NAME, &json!({"data": {id: entry}})).await?;
    Ok(())
}

/// What a fault is lifted by: its kind, and what it is about where there can be several of the kind.
pub fn id(fault: &Fault) -> String {
    let kind = json!(fault)["kind"].as_str().unwrap_or_default().to_owned();
    match fault {
        Fault::NeverJoins { prefix } if !prefix.is_empty() => format!("{kind}.{prefix}"),
        Fault::CrashLoop { namespace, workload, container } if container.is_empty() => format!("{kind}.{namespace}.{workload}"),
        Fault::CrashLoop { namespace, workload, container } => format!("{kind}.{namespace}.{workload}.{container}"),
        _ => kind,
    }
}

/// Whether a container of this pod ends as soon as it starts.
pub fn crashes(faults: &[Fault], namespace: &str, pod: &str, container: &str) -> bool {
    let hit =
        |(of, workload, only): (&str, &str, &str)| of == namespace && pod.starts_with(workload) && (only.is_empty() || only == container);
    faults.iter().any(|fault| match fault {
        Fault::CrashLoop { namespace, workload, container } => hit((namespace, workload, container)),
        Fault::MachineControllerCrashLoop => hit(("openshift-machine-api", "machine-api-controllers", "machine-controller")),
        Fault::CcmKilled => hit(("openshift-cloud-controller-manager", "vsphere-cloud-controller-manager", "")),
        _ => false,
    })
}

/// Whether a machine of this name stays away.
pub fn stays_away(faults: &[Fault], name: &str) -> bool {
    faults.iter().any(|fault| matches!(fault, Fault::NeverJoins { prefix } if name.starts_with(prefix.as_str())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_faults_of_a_kind_have_ids_of_their_own() {
        let crash = |namespace: &str, container: &str| Fault::CrashLoop {
            namespace: namespace.into(),
            workload: "w".into(),
            container: container.into(),
        };
        assert_eq!(id(&crash("n", "")), "crash-loop.n.w");
        assert_eq!(id(&crash("m", "")), "crash-loop.m.w");
        assert_eq!(id(&crash("n", "c")), "crash-loop.n.w.c");
        assert_eq!(id(&Fault::NeverJoins { prefix: "lab-worker".into() }), "never-joins.lab-worker");
        assert_eq!(id(&Fault::NeverJoins { prefix: String::new() }), "never-joins");
        assert_eq!(id(&Fault::EtcdMemberStuck), "etcd-member-stuck");
    }

    #[test]
    fn only_the_containers_that_a_fault_names_crash() {
        let faults = [Fault::MachineControllerCrashLoop];
        let hit = |pod: &str, container: &str| crashes(&faults, "openshift-machine-api", pod, container);
        assert!(hit("machine-api-controllers-abc", "machine-controller"));
        assert!(!hit("machine-api-controllers-abc", "nodelink-controller"));
        assert!(!hit("control-plane-machine-set-operator-abc", "machine-controller"));
        assert!(crashes(&[Fault::CcmKilled], "openshift-cloud-controller-manager", "vsphere-cloud-controller-manager-x", "any"));
    }

    #[test]
    fn a_machine_stays_away_by_the_beginning_of_its_name() {
        let faults = [Fault::NeverJoins { prefix: "lab-worker".into() }];
        assert!(stays_away(&faults, "lab-worker-b-1") && !stays_away(&faults, "lab-master-0"));
    }
}
