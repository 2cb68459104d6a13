//! The cluster's operators: those a migration leans on have to be well.

use super::{Check, Finding, Weight, wrong_or};
use crate::facts::{Facts, Object};
use crate::objects::{condition, name};

/// A migration does not start while one of these is not well.
pub const LEANED_ON: &[&str] =
    &["cloud-controller-manager", "control-plane-machine-set", "etcd", "kube-apiserver", "machine-api", "machine-config"];

pub const CHECKS: &[Check] = &[
    Check {
        id: "OPR-001",
        about: "etcd, kube-apiserver, machine-api, cloud-controller-manager, control-plane-machine-set and machine-config are available and not degraded",
        weight: Weight::BlocksUnlessAcknowledged,
        judge: leaned_on,
    },
    Check { id: "OPR-002", about: "all other operators are available and not degraded", weight: Weight::Warns, judge: others },
];

fn leaned_on(facts: &Facts) -> Finding {
    let operators = &facts.cluster.operators;
    let missing = LEANED_ON.iter().filter(|wanted| operators.iter().all(|operator| name(operator) != **wanted));
    let mut lines: Vec<String> =
        missing.map(|operator| format!("ClusterOperator {operator}: not there; nobody can say whether it is well")).collect();
    lines.extend(operators.iter().filter(|operator| LEANED_ON.contains(&name(operator))).filter_map(trouble));
    wrong_or(lines, "all of them are well")
}

fn others(facts: &Facts) -> Finding {
    let operators = facts.cluster.operators.iter().filter(|operator| !LEANED_ON.contains(&name(operator)));
    wrong_or(operators.filter_map(trouble).collect(), "all of them are well")
}

fn trouble(operator: &Object) -> Option<String> {
    let (available, degraded) = (condition(operator, "Available"), condition(operator, "Degraded"));
    let status = |found: &serde_json::Value| found["status"].as_str().unwrap_or("missing").to_owned();
    let (is_available, is_degraded) = (status(available), status(degraded));
    if is_available == "True" && is_degraded == "False" {
        return None;
    }
    let told = if is_available == "True" { degraded } else { available };
    let words = told["message"].as_str().filter(|words| !words.is_empty()).unwrap_or("it does not say why");
    let name = name(operator);
    Some(format!(
        "ClusterOperator {name}: Available is {is_available}, Degraded is {is_degraded}: {words}; see oc describe clusteroperator {name}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::sample::{self, says};

    #[test]
    fn an_operator_that_is_leaned_on_blocks_and_any_other_warns() {
        for (operator, kind, status) in
            [("etcd", "Degraded", "True"), ("machine-config", "Available", "False"), ("machine-api", "Degraded", "Unknown")]
        {
            let facts = sample::changed(|cluster| sample::operator(cluster, operator, kind, status));
            says(&leaned_on(&facts), &[&format!("ClusterOperator {operator}"), &format!("{kind} is {status}")]);
            assert!(matches!(others(&facts), Finding::Passed(_)));
        }
        let facts = sample::changed(|cluster| sample::operator(cluster, "storage", "Degraded", "True"));
        assert!(matches!(leaned_on(&facts), Finding::Passed(_)));
        says(&others(&facts), &["ClusterOperator storage", "Degraded is True"]);
    }

    #[test]
    fn an_operator_that_is_missing_is_not_taken_for_well() {
        let facts = sample::changed(|cluster| cluster.operators.retain(|operator| name(operator) != "etcd"));
        says(&leaned_on(&facts), &["ClusterOperator etcd: not there"]);
    }
}
