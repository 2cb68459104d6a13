//! Faults that consist of objects: what stands in the way is really there, and the real controllers stumble over it.

use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

use super::board::NAMESPACE;
use super::{Error, Fault};
use crate::cluster::{MANAGER, config};
use crate::kubernetes::{self, DEPLOYMENT, NODE, POD_DISRUPTION_BUDGET};
use crate::nodes;

const BLOCKER: &str = "drain-blocker";
const MASTER: &str = "node-role.kubernetes.io/master";
/// A control plane Node that belongs to no Machine.
pub const UNMANAGED: &str = "vmi-lab-unmanaged-master";

pub(super) async fn make(client: &Client, fault: &Fault) -> Result<(), Error> {
    match fault {
        Fault::DrainBlocked => {
            let all = kubernetes::list(client, NODE, "").await?;
            let workers = all.iter().filter(|node| !node.labels().contains_key(MASTER)).count();
            for object in blockers(workers) {
                kubernetes::apply(client, MANAGER, &object).await?;
            }
        }
        Fault::CpmsDegraded => {
            // Nothing may run there: the node agent would have to start it.
            nodes::register(client, UNMANAGED, &[("vmi-lab/fault", "true")], "master").await?;
            let status = nodes::node_status("00000000-0000-4000-8000-0000000000ff", true, config::KUBERNETES);
            nodes::report(client, UNMANAGED, &status, 1).await?;
        }
        _ => {}
    }
    Ok(())
}

pub(super) async fn remove(client: &Client, fault: &Fault) -> Result<(), Error> {
    match fault {
        Fault::DrainBlocked => {
            kubernetes::delete(client, POD_DISRUPTION_BUDGET, NAMESPACE, BLOCKER).await?;
            kubernetes::delete(client, DEPLOYMENT, NAMESPACE, BLOCKER).await?;
        }
        Fault::CpmsDegraded => kubernetes::delete(client, NODE, "", UNMANAGED).await?,
        _ => {}
    }
    Ok(())
}

/// A pod on each of so many workers, none of which may be evicted: on all but masters, also where a taint keeps others away.
fn blockers(workers: usize) -> [Value; 2] {
    let labels = json!({"app": BLOCKER});
    [
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": BLOCKER, "namespace": NAMESPACE},
            "spec": {
                "replicas": workers, "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {
                    "terminationGracePeriodSeconds": 1,
                    "tolerations": [{"operator": "Exists"}],
                    "affinity": {
                        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                            {"matchExpressions": [{"key": MASTER, "operator": "DoesNotExist"}]},
                        ]}},
                        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": labels}},
                        ]},
                    },
                    "containers": [{"name": "blocker", "image": "vmi-lab/shell", "args": ["-c", "exec sleep infinity"]}],
                }},
            },
        }),
        json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": BLOCKER, "namespace": NAMESPACE},
            "spec": {"maxUnavailable": 0, "selector": {"matchLabels": labels}},
        }),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blocker_goes_wherever_it_is_counted_and_nowhere_else() {
        let [deployment, _] = blockers(4);
        assert_eq!(deployment["spec"]["replicas"], 4);
        let pod = &deployment["spec"]["template"]["spec"];
        // Without a key, an effect or a value it fits every taint there is.
        assert_eq!(pod["tolerations"], json!([{"operator": "Exists"}]));
        let terms = &pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"];
        assert_eq!(*terms, json!([{"matchExpressions": [{"key": MASTER, "operator": "DoesNotExist"}]}]));
    }
}
