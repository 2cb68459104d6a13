//! A control plane machine set that came of the failure domains which the migration wrote for the source. Pure.

use jiff::Timestamp;
use kube::api::DynamicObject;
use serde_json::Value;
use vmi_intent::control_plane_set::domains;

use super::extend::{items, key};

/// Whether the set was made since the start, does nothing, and names a failure domain that Infrastructure does not have any more: its
/// operator made it from the masters and the domains, complains of it now, and makes it anew where it still can.
pub fn is_remnant(set: &DynamicObject, infrastructure: &Value, started: Option<Timestamp>) -> bool {
    let made = set.metadata.creation_timestamp.as_ref().map(|time| time.0);
    let since = started.zip(made).is_some_and(|(started, made)| made >= started);
    let listed = items(infrastructure, "failureDomains");
    let spec = &set.data["spec"];
    since && spec["state"] != "Active" && domains(spec).iter().any(|name| listed.iter().all(|domain| key(domain) != name))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends by panicking")]

    use serde_json::json;

    use super::*;

    #[test]
    fn only_an_idle_set_that_was_made_since_the_start_for_a_domain_that_is_gone_came_of_the_migration() {
        let at = |time: &str| -> Timestamp { time.parse().unwrap() };
        let (before, start, after) = (at("2026-01-01T00:00:00Z"), at("2026-01-01T01:00:00Z"), at("2026-01-01T02:00:00Z"));
        let made = |state: &str, domains: Value, time: Timestamp| -> DynamicObject {
            let template =
                json!({"machines_v1beta1_machine_openshift_io": {"failureDomains": {"platform": "VSphere", "vsphere": domains}}});
            let metadata = json!({"name": "cluster", "creationTimestamp": time});
            serde_json::from_value(json!({"metadata": metadata, "spec": {"state": state, "template": template}})).unwrap()
        };
        let named = || json!([{"name": "migration-source"}]);
        let none = json!({"platformSpec": {"type": "VSphere"}});
        let kept = json!({"platformSpec": {"vsphere": {"failureDomains": [{"name": "migration-source"}]}}});
        for (set, infrastructure, started, want, why) in [
            (made("Inactive", named(), after), &none, Some(start), true, "nothing is left of what it was made from"),
            (made("Inactive", named(), after), &kept, Some(start), false, "its domain stays"),
            (made("Inactive", named(), before), &none, Some(start), false, "it was there before"),
            (made("Active", named(), after), &none, Some(start), false, "somebody put it to work"),
            (made("Inactive", json!([]), after), &none, Some(start), false, "it names no domain"),
            (made("Inactive", named(), after), &none, None, false, "nothing has begun"),
        ] {
            assert_eq!(is_remnant(&set, infrastructure, started), want, "{why}");
        }
    }
}
