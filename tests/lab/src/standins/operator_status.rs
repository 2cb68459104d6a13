//! Conditions as OpenShift's operators keep them, and the ClusterOperator each of them answers for.

use kube::Client;
use serde_json::{Value, json};

use super::requests;
use crate::kubernetes::{self, CLUSTER_OPERATOR, Error};

/// Type, status, reason, message; an empty reason or message is left out.
pub type Condition<'a> = (&'a str, &'a str, &'a str, &'a str);

/// Group, resource, namespace, name of what must-gather should collect; an empty name means all of them.
pub type Related<'a> = (&'a str, &'a str, &'a str, &'a str);

/// Writes what an operator reports into its ClusterOperator, which is created if need be; writes only what changed.
pub async fn report(
    client: &Client,
    name: &str,
    version: &str,
    conditions: &[Condition<'_>],
    related: &[Related<'_>],
) -> Result<(), Error> {
    loop {
        let written = match kubernetes::get(client, CLUSTER_OPERATOR, "", name).await? {
            None => {
                let bare =
                    json!({"apiVersion": "config.openshift.io/v1", "kind": "ClusterOperator", "metadata": {"name": name}, "spec": {}});
                requests::create(client, CLUSTER_OPERATOR, &bare).await.map(|_| false)
            }
            Some(mut operator) => {
                let wanted = status(&operator.data["status"], version, conditions, related, &now());
                if wanted == operator.data["status"] {
                    return Ok(());
                }
                operator.data["status"] = wanted;
                requests::replace_status(client, CLUSTER_OPERATOR, &operator).await.map(|_| true)
            }
        };
        match written {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            // Somebody else wrote it meanwhile: take theirs and add ours.
            Err(error) if error.is_conflict() => {}
            Err(error) => return Err(error),
        }
    }
}

fn status(existing: &Value, version: &str, conditions: &[Condition<'_>], related: &[Related<'_>], now: &str) -> Value {
    let mut status = if existing.is_object() { existing.clone() } else { json!({}) };
    status["conditions"] = with_conditions(&existing["conditions"], conditions, now);
    status["versions"] = json!([{"name": "operator", "version": version}]);
    status["relatedObjects"] = related.iter().map(|object| reference(*object)).collect();
    status
}

fn reference((group, resource, namespace, name): Related<'_>) -> Value {
    let mut reference = json!({"group": group, "resource": resource, "name": name});
    if !namespace.is_empty() {
        reference["namespace"] = json!(namespace);
    }
    reference
}

/// `existing` with `wanted` in it. The time of a condition moves only when its status does, and conditions that are not named stay.
pub fn with_conditions(existing: &Value, wanted: &[Condition<'_>], now: &str) -> Value {
    let mut conditions = existing.as_array().cloned().unwrap_or_default();
    for &(kind, status, reason, message) in wanted {
        let place = conditions.iter().position(|condition| condition["type"] == kind);
        let since = place
            .map(|place| &conditions[place])
            .filter(|before| before["status"] == status)
            .and_then(|before| before["lastTransitionTime"].as_str())
            .unwrap_or(now);
        let mut condition = json!({"type": kind, "status": status, "lastTransitionTime": since});
        for (field, text) in [("reason", reason), ("message", message)] {
            if !text.is_empty() {
                condition[field] = json!(text);
            }
        }
        match place {
            Some(place) => conditions[place] = condition,
            None => conditions.push(condition),
        }
    }
    Value::Array(conditions)
}

/// `existing` without the condition `kind`.
pub fn without_condition(existing: &Value, kind: &str) -> Value {
    existing.as_array().into_iter().flatten().filter(|condition| condition["type"] != kind).cloned().collect()
}

/// This moment as Kubernetes writes it, in whole seconds.
pub fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const EARLIER: &str = "2026-01-01T00:00:00Z";
    const NOW: &str = "2026-02-02T00:00:00Z";

    #[test]
    fn a_condition_keeps_its_time_until_its_status_changes() {
        let before = json!([{"type": "Degraded", "status": "False", "lastTransitionTime": EARLIER, "reason": "AsExpected"}]);
        let cases = [
            ("False", "AsExpected", "", EARLIER),
            ("False", "Other", "new words", EARLIER),
            ("True", "Broken", "new words", NOW),
            ("Unknown", "", "", NOW),
        ];
        for (status, reason, message, since) in cases {
            let after = with_conditions(&before, &[("Degraded", status, reason, message)], NOW);
            let mut expected = json!({"type": "Degraded", "status": status, "lastTransitionTime": since});
            if !reason.is_empty() {
                expected["reason"] = json!(reason);
            }
            if !message.is_empty() {
                expected["message"] = json!(message);
            }
            assert_eq!(after, json!([expected]), "{status} {reason:?} {message:?}");
        }
    }

    #[test]
    fn conditions_that_are_not_named_stay() {
        let before = json!([{"type": "CloudControllerOwner", "status": "True", "lastTransitionTime": EARLIER}]);
        let after = with_conditions(&before, &[("Available", "True", "AsExpected", "")], NOW);
        assert_eq!(after[0], before[0]);
        assert_eq!(after[1], json!({"type": "Available", "status": "True", "lastTransitionTime": NOW, "reason": "AsExpected"}));
        assert_eq!(without_condition(&after, "Available"), before);
    }

    #[test]
    fn the_same_report_twice_changes_nothing() {
        let conditions = [("Available", "True", "AsExpected", "All is well"), ("Degraded", "False", "", "")];
        let related = [("", "namespaces", "", "openshift-config"), ("cloudcredential.openshift.io", "credentialsrequests", "ns", "")];
        let once = status(&json!({"extension": {"master": "all 3 nodes"}}), "4.21.0", &conditions, &related, EARLIER);
        assert_eq!(once["extension"]["master"], "all 3 nodes", "what else the status holds stays");
        assert_eq!(once["relatedObjects"][1]["namespace"], "ns");
        assert_eq!(status(&once, "4.21.0", &conditions, &related, NOW), once);
    }
}
