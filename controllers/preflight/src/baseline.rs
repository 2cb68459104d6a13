//! How the cluster is at the start: only what is worse than that counts later.

use vmi_crds::status::{Baseline, ClusterOperator, CsiDriver, Pool};

use crate::facts::{Cluster, Object};
use crate::objects::{condition, name};

/// As many as the status takes.
const OPERATORS: usize = 64;
const LIST: usize = 32;

/// The cluster as it is.
pub fn baseline(cluster: &Cluster) -> Baseline {
    let is = |object: &Object, kind: &str| condition(object, kind)["status"] == "True";
    let operator = |object: &Object| ClusterOperator {
        name: name(object).to_owned(),
        available: is(object, "Available"),
        degraded: is(object, "Degraded"),
    };
    let pool = |object: &Object| Pool {
        name: name(object).to_owned(),
        updated: is(object, "Updated"),
        degraded: is(object, "Degraded"),
        paused: object.data["spec"]["paused"] == true,
    };
    let mut operators: Vec<ClusterOperator> = cluster.operators.iter().map(operator).collect();
    operators.sort_by(|one, other| one.name.cmp(&other.name));
    operators.truncate(OPERATORS);
    let mut pools: Vec<Pool> = cluster.pools.iter().flatten().map(pool).collect();
    pools.sort_by(|one, other| one.name.cmp(&other.name));
    pools.truncate(LIST);
    Baseline { cluster_operators: operators, pools, csi_driver: cluster.csi_driver.as_ref().map(csi_driver) }
}

fn csi_driver(driver: &Object) -> CsiDriver {
    let conditions = driver.data["status"]["conditions"].as_array();
    let troubled = conditions.into_iter().flatten().filter_map(|condition| {
        let (kind, status) = (condition["type"].as_str()?, condition["status"].as_str()?);
        let bad = (kind.ends_with("Degraded") && status == "True")
            || ((kind.ends_with("Available") || kind.ends_with("Upgradeable")) && status == "False");
        bad.then(|| vmi_kit::text::cut(kind, 128))
    });
    let mut troubled: Vec<String> = troubled.take(LIST).collect();
    troubled.sort();
    troubled.dedup();
    let state = driver.data["spec"]["managementState"].as_str().unwrap_or_default();
    CsiDriver { management_state: vmi_kit::text::cut(state, 32), troubled }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::sample;
    use serde_json::json;

    #[test]
    fn the_baseline_tells_what_was_not_well_and_nothing_of_what_was() {
        let facts = sample::changed(|cluster| {
            sample::operator(cluster, "storage", "Degraded", "True");
            sample::pool(cluster, "Updated", "False");
            cluster.csi_driver = Some(sample::object(&json!({
                "metadata": {"name": "csi.vsphere.vmware.com"}, "spec": {"managementState": "Managed"},
                "status": {"conditions": [
                    {"type": "VMwareVSphereControllerDegraded", "status": "True"}, {"type": "XAvailable", "status": "True"},
                    {"type": "YUpgradeable", "status": "False"},
                ]},
            })));
        });
        let found = baseline(&facts.cluster);
        let ill: Vec<&str> =
            found.cluster_operators.iter().filter(|one| one.degraded || !one.available).map(|one| one.name.as_str()).collect();
        assert_eq!(ill, ["storage"]);
        assert_eq!(found.cluster_operators.len(), 7);
        assert_eq!(found.pools, [Pool { name: "worker".to_owned(), updated: false, degraded: false, paused: false }]);
        let driver = found.csi_driver.unwrap();
        assert_eq!(
            (driver.management_state.as_str(), driver.troubled),
            ("Managed", vec!["VMwareVSphereControllerDegraded".to_owned(), "YUpgradeable".to_owned()])
        );
    }
}
