//! Whether this is a cluster that can be migrated, and whether it holds still.

use vmi_crds::status::Path;

use super::{Check, Finding, Weight, noted_or, unasked, wrong_or};
use crate::facts::{Facts, Object};
use crate::objects::{condition, name};

pub const CHECKS: &[Check] = &[
    Check { id: "CLU-001", about: "the cluster's platform is VSphere", weight: Weight::Blocks, judge: platform },
    Check {
        id: "CLU-002",
        about: "the cluster has an infrastructure name, after which folder and tags are called",
        weight: Weight::Blocks,
        judge: infrastructure_name,
    },
    Check {
        id: "PTH-001",
        about: "the apiserver accepts the target in Infrastructure, by a dry run, at once or after the rules against it are taken away for a while",
        weight: Weight::Blocks,
        judge: path,
    },
    Check {
        id: "PTH-002",
        about: "where rules have to be taken away for a while, the operator may do so: deploy/overlays/legacy is applied, not native",
        weight: Weight::Blocks,
        judge: rights,
    },
    Check {
        id: "CVN-001",
        about: "the ClusterVersion is steady: available, not failing, no update running, the last one completed",
        weight: Weight::Blocks,
        judge: steady,
    },
    Check { id: "CVN-002", about: "the cluster version operator runs", weight: Weight::BlocksUnlessAcknowledged, judge: version_operator },
    Check {
        id: "CVN-003",
        about: "nobody keeps the cluster version operator away from a part of the cluster by overrides",
        weight: Weight::Warns,
        judge: overrides,
    },
    Check {
        id: "MCP-001",
        about: "every MachineConfigPool is Updated and not Degraded",
        weight: Weight::BlocksUnlessAcknowledged,
        judge: pools,
    },
    Check { id: "MCP-002", about: "no MachineConfigPool is paused", weight: Weight::Warns, judge: paused_pools },
];

fn platform(facts: &Facts) -> Finding {
    let found = facts.infrastructure("/spec/platformSpec/type").as_str().unwrap_or_default();
    let line = format!(
        "Infrastructure cluster, spec.platformSpec.type: it is {found:?}, not \"VSphere\"; this operator migrates no other platform"
    );
    wrong_or(if found == "VSphere" { Vec::new() } else { vec![line] }, "VSphere")
}

fn infrastructure_name(facts: &Facts) -> Finding {
    match facts.infrastructure("/status/infrastructureName").as_str() {
        Some(name) if !name.is_empty() => Finding::Passed(name.to_owned()),
        _ => Finding::Wrong(vec![
            "Infrastructure cluster, status.infrastructureName: it is empty; look why the installer's value is gone".to_owned(),
        ]),
    }
}

fn path(facts: &Facts) -> Finding {
    let chosen = match &facts.looked.asked.path {
        Ok(chosen) => chosen,
        Err(why) => return Finding::Wrong(vec![unasked("Infrastructure cluster, by a dry run", why)]),
    };
    match chosen.path {
        Some(Path::Native) => Finding::Passed(format!("native: {}", chosen.reason)),
        Some(Path::Legacy) => Finding::Passed(format!("legacy: {}", chosen.reason)),
        None => Finding::Wrong(vec![chosen.reason.clone()]),
    }
}

fn rights(facts: &Facts) -> Finding {
    match &facts.looked.asked.denied {
        Ok(denied) if denied.is_empty() => Finding::Passed("the operator may do what the path takes".to_owned()),
        Ok(denied) => {
            let list = denied.join(", ");
            let line = format!("the operator may not {list}, which the legacy path takes; apply deploy/overlays/legacy of this release");
            Finding::Wrong(vec![line])
        }
        Err(why) => Finding::Wrong(vec![unasked("what the operator may do", why)]),
    }
}

fn steady(facts: &Facts) -> Finding {
    let Some(version) = &facts.cluster.version else {
        return Finding::Wrong(vec!["there is no ClusterVersion version; is this OpenShift?".to_owned()]);
    };
    let mut lines = Vec::new();
    let wait = "see oc describe clusterversion, and wait or mend it";
    for (kind, bad) in
        [("Available", "False"), ("Failing", "True"), ("Progressing", "True"), ("Invalid", "True"), ("ReleaseAccepted", "False")]
    {
        let found = condition(version, kind);
        let status = found["status"].as_str().unwrap_or_default();
        // These two have to be there; the others are absent from a healthy cluster.
        let unknown = status != "True" && status != "False" && ["Available", "Progressing"].contains(&kind);
        // Which operator may be degraded, and which may not, is for other checks to say.
        let of_operators =
            kind == "Failing" && ["ClusterOperatorDegraded", "ClusterOperatorsDegraded"].iter().any(|reason| found["reason"] == *reason);
        if (status == bad && !of_operators) || unknown {
            let message = found["message"].as_str().unwrap_or("not there");
            lines.push(format!("ClusterVersion version, condition {kind}: {status} ({message}); {wait}"));
        }
    }
    let history = &version.data["status"]["history"][0];
    if history["state"] != "Completed" {
        let (state, to) = (history["state"].as_str().unwrap_or("missing"), history["version"].as_str().unwrap_or("?"));
        lines.push(format!("ClusterVersion version, status.history[0]: the update to {to} is {state}, not Completed; {wait}"));
    }
    let running = version.data["status"]["desired"]["version"].as_str().unwrap_or_default();
    wrong_or(lines, format!("{running}, steady"))
}

fn version_operator(facts: &Facts) -> Finding {
    let deployment = "Deployment openshift-cluster-version/cluster-version-operator";
    let Some(found) = &facts.cluster.version_operator else {
        return Finding::Wrong(vec![format!("{deployment}: not there; what the cluster says of itself is stale without it")]);
    };
    // A Deployment without the field means one.
    let wanted = found.data["spec"]["replicas"].as_i64().unwrap_or(1);
    let line = || {
        format!(
            "{deployment}, spec.replicas: 0; somebody stopped it, and what the cluster says of itself is stale: find out who, and scale it to 1"
        )
    };
    wrong_or((wanted == 0).then(line).into_iter().collect(), "it runs")
}

fn overrides(facts: &Facts) -> Finding {
    let list = facts.cluster.version.as_ref().and_then(|version| version.data["spec"]["overrides"].as_array());
    let unmanaged = list.into_iter().flatten().filter(|one| one["unmanaged"] == true);
    let lines = unmanaged.map(|one| {
        let text = |key: &str| one[key].as_str().unwrap_or_default();
        format!("ClusterVersion version, spec.overrides: {} {} is unmanaged; it is left so", text("kind"), text("name"))
    });
    noted_or(lines.collect(), "none")
}

fn pools(facts: &Facts) -> Finding {
    let Some(pools) = &facts.cluster.pools else { return Finding::Passed("this cluster has no MachineConfigPools".to_owned()) };
    let lines = pools.iter().filter_map(|pool| {
        let is = |kind: &str| condition(pool, kind)["status"].as_str().unwrap_or("missing").to_owned();
        let (updated, degraded) = (is("Updated"), is("Degraded"));
        let bad = updated != "True" || degraded != "False";
        bad.then(|| {
            format!("MachineConfigPool {}: Updated is {updated}, Degraded is {degraded}; wait until it has settled, or mend it", name(pool))
        })
    });
    wrong_or(lines.collect(), format!("{} pools, all updated", pools.len()))
}

fn paused_pools(facts: &Facts) -> Finding {
    let paused = |pool: &&Object| pool.data["spec"]["paused"] == true;
    let pools = facts.cluster.pools.iter().flatten().filter(paused);
    let lines = pools
        .map(|pool| format!("MachineConfigPool {}: paused; it stays so, and its nodes do not get what the migration changes", name(pool)));
    wrong_or(lines.collect(), "none is paused")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::sample::{self, says};
    use serde_json::json;

    #[test]
    fn another_platform_and_a_nameless_cluster_are_refused() {
        let facts = sample::changed(|cluster| sample::set(&mut cluster.infrastructure, "/spec/platformSpec/type", json!("AWS")));
        says(&platform(&facts), &["spec.platformSpec.type: it is \"AWS\""]);
        let facts = sample::changed(|cluster| sample::set(&mut cluster.infrastructure, "/status/infrastructureName", json!("")));
        says(&infrastructure_name(&facts), &["status.infrastructureName: it is empty"]);
    }

    #[test]
    fn a_refused_dry_run_is_told_in_the_apiservers_own_words() {
        let facts = sample::chosen(None, "spec.platformSpec: no such luck");
        says(&path(&facts), &["spec.platformSpec: no such luck"]);
        assert_eq!(path(&sample::chosen(Some(Path::Legacy), "R6")), Finding::Passed("legacy: R6".to_owned()));
    }

    #[test]
    fn rights_that_the_path_takes_and_nobody_granted_are_named_with_the_overlay_that_grants_them() {
        let patch = "patch Deployment openshift-cluster-version/cluster-version-operator";
        let facts = sample::asked_for(|asked| asked.denied = Ok(vec![patch.to_owned()]));
        says(&rights(&facts), &["the operator may not patch Deployment openshift-cluster-version", "apply deploy/overlays/legacy"]);
        says(&rights(&sample::asked_for(|asked| asked.denied = Err("gone".to_owned()))), &["could not be looked at: gone"]);
    }

    #[test]
    fn a_cluster_version_that_moves_or_fails_is_refused() {
        for (kind, status, refused) in [
            ("Progressing", "True", true),
            ("Progressing", "Unknown", true),
            ("Available", "False", true),
            ("Failing", "True", true),
            ("Failing", "Unknown", false),
            ("Invalid", "True", true),
            ("Upgradeable", "False", false),
        ] {
            let facts = sample::changed(|cluster| sample::set_condition(&mut cluster.version, kind, status));
            let found = steady(&facts);
            assert_eq!(matches!(found, Finding::Wrong(_)), refused, "{kind}={status}: {found:?}");
        }
        for (reason, refused) in
            [("ClusterOperatorDegraded", false), ("ClusterOperatorsDegraded", false), ("ClusterOperatorNotAvailable", true)]
        {
            let facts = sample::changed(|cluster| {
                sample::set_condition(&mut cluster.version, "Failing", "True");
                sample::set_reason(&mut cluster.version, "Failing", reason);
            });
            assert_eq!(matches!(steady(&facts), Finding::Wrong(_)), refused, "{reason}");
        }
        let facts = sample::changed(|cluster| sample::set(&mut cluster.version, "/status/history/0/state", json!("Partial")));
        says(&steady(&facts), &["status.history[0]: the update to 4.23.0 is Partial"]);
        says(&steady(&sample::changed(|cluster| cluster.version = None)), &["no ClusterVersion"]);
    }

    #[test]
    fn a_stopped_or_missing_version_operator_is_refused() {
        let facts = sample::changed(|cluster| sample::set(&mut cluster.version_operator, "/spec/replicas", json!(0)));
        says(&version_operator(&facts), &["spec.replicas: 0"]);
        says(&version_operator(&sample::changed(|cluster| cluster.version_operator = None)), &["not there"]);
    }

    #[test]
    fn overrides_of_others_are_noted_and_never_block() {
        let list =
            json!([{"kind": "Deployment", "name": "etcd-operator", "unmanaged": true}, {"kind": "X", "name": "y", "unmanaged": false}]);
        let facts = sample::changed(|cluster| sample::set(&mut cluster.version, "/spec/overrides", list));
        let Finding::Noted(lines) = overrides(&facts) else { panic!() };
        assert!(lines.len() == 1 && lines[0].contains("Deployment etcd-operator is unmanaged"), "{lines:?}");
    }

    #[test]
    fn a_pool_that_has_not_settled_is_refused_and_a_paused_one_is_told() {
        for (kind, status) in [("Updated", "False"), ("Degraded", "True"), ("Updated", "Unknown")] {
            let facts = sample::changed(|cluster| sample::pool(cluster, kind, status));
            says(&pools(&facts), &["MachineConfigPool worker", &format!("{kind} is {status}")]);
        }
        assert!(matches!(pools(&sample::changed(|cluster| cluster.pools = None)), Finding::Passed(_)));
        let facts = sample::changed(|cluster| {
            let pools = cluster.pools.as_mut().unwrap();
            let mut first = Some(pools.remove(0));
            sample::set(&mut first, "/spec/paused", json!(true));
            pools.extend(first);
        });
        says(&paused_pools(&facts), &["MachineConfigPool worker: paused"]);
    }
}
