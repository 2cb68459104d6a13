//! What ClusterVersion `version` says about a cluster that runs its release, and which objects its owner took out of the
//! payload's hands.

use std::sync::Arc;

use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::{Value, json};

use super::payload::Manifest;
use crate::kubernetes::condition;
use crate::standins::operator_status::{Condition, with_conditions, without_condition};

/// Why the cluster is not as the release wants it.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    pub reason: &'static str,
    pub message: String,
    /// The same in a few words.
    pub summary: String,
}

pub struct Release<'a> {
    pub version: &'a str,
    pub image: &'a str,
    pub hash: &'a str,
}

/// Whether the owner of the cluster said that this object is not the payload's.
pub fn unmanaged(overrides: &Value, manifest: &Manifest) -> bool {
    overrides.as_array().into_iter().flatten().any(|entry| {
        entry["unmanaged"] == true
            && entry["kind"] == manifest.kind.kind
            && entry["group"].as_str().unwrap_or_default() == manifest.kind.group
            && entry["namespace"].as_str().unwrap_or_default() == manifest.namespace
            && entry["name"] == manifest.name.as_str()
    })
}

/// What the ClusterOperators say against the cluster: one that is not available weighs more than one that is degraded, and a
/// condition that is missing counts as bad.
pub fn unhealthy(operators: &[Arc<DynamicObject>]) -> Option<Failure> {
    let named = |bad: &dyn Fn(&DynamicObject) -> bool| -> Vec<String> {
        let mut names: Vec<String> = operators.iter().filter(|operator| bad(operator)).map(|operator| operator.name_any()).collect();
        names.sort();
        names
    };
    let unavailable = named(&|operator| condition(operator, "Available") != "True");
    let degraded = named(&|operator| condition(operator, "Degraded") != "False");
    match (unavailable.as_slice(), degraded.as_slice()) {
        ([], []) => None,
        ([], [name]) => Some(Failure {
            reason: "ClusterOperatorDegraded",
            message: format!("Cluster operator {name} is degraded"),
            summary: format!("the cluster operator {name} is degraded"),
        }),
        ([], names) => Some(Failure {
            reason: "ClusterOperatorsDegraded",
            message: format!("Cluster operators {} are degraded", names.join(", ")),
            summary: "some cluster operators are degraded".to_owned(),
        }),
        ([name], _) => Some(Failure {
            reason: "ClusterOperatorNotAvailable",
            message: format!("Cluster operator {name} is not available"),
            summary: format!("the cluster operator {name} is not available"),
        }),
        (names, _) => Some(Failure {
            reason: "ClusterOperatorsNotAvailable",
            message: format!("Cluster operators {} are not available", names.join(", ")),
            summary: "some cluster operators are not available".to_owned(),
        }),
    }
}

/// The status of `cluster_version` after a pass over the payload. `applied` says whether that pass could write all it wanted.
pub fn status(cluster_version: &DynamicObject, release: &Release<'_>, applied: bool, failure: Option<&Failure>, now: &str) -> Value {
    let (spec, existing) = (&cluster_version.data["spec"], &cluster_version.data["status"]);
    let &Release { version, image, hash } = release;
    let mut status = if existing.is_object() { existing.clone() } else { json!({}) };
    status["observedGeneration"] = json!(cluster_version.metadata.generation.unwrap_or_default());
    status["versionHash"] = json!(hash);
    status["desired"] = json!({"version": version, "image": image});
    // Required by the CRD, and null where no update service was asked.
    if status.get("availableUpdates").is_none() {
        status["availableUpdates"] = Value::Null;
    }
    status["history"] = history(&existing["history"], release, applied, now);
    let completed = status["history"][0]["state"] == "Completed";

    let loaded = format!("Payload loaded version=\"{version}\" image=\"{image}\" architecture=\"amd64\"");
    let done = format!("Done applying {version}");
    let progress = match (failure, completed) {
        (None, _) => format!("Cluster version is {version}"),
        (Some(failure), true) => format!("Error while reconciling {version}: {}", failure.summary),
        (Some(failure), false) => format!("Unable to apply {version}: {}", failure.summary),
    };
    let reason = failure.map_or("", |failure| failure.reason);
    let message = failure.map_or("", |failure| failure.message.as_str());
    let truth = |value: bool| if value { "True" } else { "False" };
    let mut conditions: Vec<Condition<'_>> = vec![
        ("RetrievedUpdates", "False", "NoChannel", "The update channel has not been configured."),
        ("ReleaseAccepted", "True", "PayloadLoaded", &loaded),
        ("ImplicitlyEnabledCapabilities", "False", "AsExpected", "Capabilities match configured spec"),
        ("Available", truth(completed), "", if completed { &done } else { "" }),
        ("Failing", truth(failure.is_some()), reason, message),
        ("Progressing", truth(!completed), reason, &progress),
    ];
    let mut before = existing["conditions"].clone();
    let overridden = spec["overrides"].as_array().into_iter().flatten().any(|entry| entry["unmanaged"] == true);
    if overridden {
        let words = "Disabling ownership via cluster version overrides prevents upgrades. Please remove overrides before continuing.";
        conditions.push(("Upgradeable", "False", "ClusterVersionOverridesSet", words));
    } else {
        before = without_condition(&before, "Upgradeable");
    }
    status["conditions"] = with_conditions(&before, &conditions, now);
    status
}

fn history(existing: &Value, release: &Release<'_>, applied: bool, now: &str) -> Value {
    let mut entries = existing.as_array().cloned().unwrap_or_default();
    if entries.first().is_none_or(|last| last["version"] != release.version || last["image"] != release.image) {
        let entry = json!({"version": release.version, "image": release.image, "state": "Partial", "startedTime": now,
            "completionTime": null, "verified": false});
        entries.insert(0, entry);
    }
    if applied && entries[0]["state"] != "Completed" {
        entries[0]["state"] = json!("Completed");
        entries[0]["completionTime"] = json!(now);
    }
    Value::Array(entries)
}

#[cfg(test)]
#[path = "cluster_version_tests.rs"]
mod tests;
