//! What would replace, remove or rebuild machines or reboot nodes while the migration lasts, and how each is held.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::{Map, Value, json};
use vmi_crds::status::Pool;
use vmi_kit::kind::{CLUSTER_AUTOSCALER, MACHINE_CONFIG_POOL, MACHINE_CONFIGURATION, MACHINE_HEALTH_CHECK};

use crate::held::Held;

/// It looks after spot instances, which vSphere does not have.
const HARMLESS_CHECK: &str = "machine-api-termination-handler";
const PAUSED: &str = "/metadata/annotations/cluster.x-k8s.io~1paused";

/// The file that changes on every node with the cloud configuration; nothing on a node reads it.
pub const CLOUD_CONFIG_FILE: &str = "/etc/kubernetes/cloud.conf";
const POLICY: &str = "/spec/nodeDisruptionPolicy/files";
/// How long the machine config operator has to show that it knows the policy; older ones never do.
const POLICY_SHOWN_WITHIN: SignedDuration = SignedDuration::from_secs(60);

/// Health checks that are not paused yet: they would replace machines whose nodes are away for a while.
pub fn health_checks(checks: &[Arc<DynamicObject>]) -> Vec<Held> {
    let paused = |check: &DynamicObject| check.annotations().contains_key("cluster.x-k8s.io/paused");
    let open = checks.iter().filter(|check| check.name_any() != HARMLESS_CHECK && !paused(check));
    let mut holds: Vec<Held> = open.filter_map(|check| Held::field(MACHINE_HEALTH_CHECK, check, PAUSED, Some(json!("")))).collect();
    holds.sort_by(|one, other| one.name.cmp(&other.name));
    holds
}

/// An autoscaler that removes machines: also one that is silent about it, since that is its own default.
pub fn autoscaler(autoscaler: &DynamicObject) -> Option<Held> {
    let scale_down = &autoscaler.data["spec"]["scaleDown"];
    let removes = scale_down.is_null() || scale_down["enabled"] == true;
    removes.then(|| Held::field(CLUSTER_AUTOSCALER, autoscaler, "/spec/scaleDown/enabled", Some(json!(false)))).flatten()
}

/// Boot images that are kept up to date, which rewrites the templates of machine sets; and, where that cannot be turned off, why.
pub fn boot_images(configuration: &DynamicObject) -> Result<Option<Held>, &'static str> {
    let (spec, status) = (&configuration.data["spec"], &configuration.data["status"]);
    let managers = |of: &Value| of["machineManagers"].as_array().cloned().unwrap_or_default();
    // Where the owner says nothing the operator's own choice is in the status.
    let said = spec.get("managedBootImages").filter(|said| !said.is_null());
    let managers = managers(said.unwrap_or(&status["managedBootImagesStatus"]));
    if managers.iter().all(|manager| manager["selection"]["mode"] == "None") {
        return Ok(None);
    }
    if status["bootImageSkewEnforcementStatus"]["mode"] == "Automatic" {
        return Err("boot images stay managed: with skew enforcement Automatic the API refuses to turn them off");
    }
    let off: Vec<Value> = managers
        .iter()
        .map(|manager| json!({"apiGroup": manager["apiGroup"], "resource": manager["resource"], "selection": {"mode": "None"}}))
        .collect();
    Ok(Held::field(MACHINE_CONFIGURATION, configuration, "/spec/managedBootImages", Some(json!({"machineManagers": off}))))
}

/// The wish that a changed cloud configuration does nothing to a node; without it every node is drained and rebooted.
pub fn no_reboot(configuration: &DynamicObject) -> Option<Held> {
    let by = Map::from_iter([("path".to_owned(), json!(CLOUD_CONFIG_FILE))]);
    Held::entry(MACHINE_CONFIGURATION, configuration, POLICY, by, Some(no_reboot_entry()))
}

fn no_reboot_entry() -> Value {
    json!({"path": CLOUD_CONFIG_FILE, "actions": [{"type": "None"}]})
}

/// Pools that are not paused yet.
pub fn pools(pools: &[Arc<DynamicObject>]) -> Vec<Held> {
    let open = pools.iter().filter(|pool| pool.data["spec"]["paused"] != true);
    let mut holds: Vec<Held> = open.filter_map(|pool| Held::field(MACHINE_CONFIG_POOL, pool, "/spec/paused", Some(json!(true)))).collect();
    holds.sort_by(|one, other| one.name.cmp(&other.name));
    holds
}

/// Pools whose nodes still take a changed configuration over. One that had not got there before the start is not waited for.
pub fn rolling(pools: &[Arc<DynamicObject>], before: &[Pool]) -> Vec<String> {
    let updating = |pool: &DynamicObject| {
        let conditions = pool.data["status"]["conditions"].as_array();
        conditions.into_iter().flatten().any(|condition| condition["type"] == "Updating" && condition["status"] == "True")
    };
    let late_before = |name: &str| before.iter().any(|pool| pool.name == name && !pool.updated);
    let open = pools.iter().filter(|pool| pool.data["spec"]["paused"] != true && updating(pool));
    let mut names: Vec<String> = open.map(|pool| pool.name_any()).filter(|name| !late_before(name)).collect();
    names.sort_unstable();
    names
}

/// How reboots are held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reboots {
    /// By the policy, which the operator knows.
    ByPolicy,
    /// By the policy, once the operator shows that it knows it; until when that is waited for.
    Unsure(Timestamp),
    /// By pausing the pools.
    ByPools,
}

/// How reboots are held, given the configuration, if there is any, and when the policy was asked for.
pub fn reboots(configuration: Option<&DynamicObject>, asked: Timestamp, now: Timestamp) -> Reboots {
    let Some(configuration) = configuration else { return Reboots::ByPools };
    let shown = configuration.data.pointer("/status/nodeDisruptionPolicyStatus/clusterPolicies/files").and_then(Value::as_array);
    if shown.into_iter().flatten().any(|file| file["path"] == CLOUD_CONFIG_FILE && file["actions"] == no_reboot_entry()["actions"]) {
        return Reboots::ByPolicy;
    }
    match asked.checked_add(POLICY_SHOWN_WITHIN) {
        Ok(until) if now < until => Reboots::Unsure(until),
        _ => Reboots::ByPools,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends by panicking")]

    use super::*;

    fn object(body: Value) -> DynamicObject {
        serde_json::from_value(body).unwrap()
    }

    fn names(holds: &[Held]) -> Vec<&str> {
        holds.iter().map(|held| held.name.as_str()).collect()
    }

    #[test]
    fn pools_that_roll_are_told_but_those_that_are_paused_or_were_late_before() {
        let pool = |name: &str, paused: bool, updating: &str| {
            let status = json!({"conditions": [{"type": "Updated", "status": "True"}, {"type": "Updating", "status": updating}]});
            Arc::new(object(json!({"metadata": {"name": name}, "spec": {"paused": paused}, "status": status})))
        };
        let before = |name: &str, updated: bool| Pool { name: name.to_owned(), updated, degraded: false, paused: false };
        let pools =
            [pool("worker", false, "True"), pool("master", false, "True"), pool("held", true, "True"), pool("done", false, "False")];
        assert_eq!(rolling(&pools, &[before("master", true), before("worker", true)]), ["master", "worker"]);
        assert_eq!(rolling(&pools, &[before("master", false), before("worker", true)]), ["worker"]);
        assert_eq!(rolling(&pools[2..], &[]), Vec::<String>::new());
    }

    #[test]
    fn health_checks_that_were_paused_before_or_do_no_harm_are_not_held() {
        let check = |name: &str, annotations: Value| Arc::new(object(json!({"metadata": {"name": name, "annotations": annotations}})));
        let paused = json!({"cluster.x-k8s.io/paused": "by hand"});
        let checks = [check("b", json!({})), check("a", json!({"x": "y"})), check("paused", paused), check(HARMLESS_CHECK, json!({}))];
        assert_eq!(names(&health_checks(&checks)), ["a", "b"]);
    }

    #[test]
    fn an_autoscaler_is_held_unless_it_removes_nothing() {
        let hold = |spec: Value| autoscaler(&object(json!({"metadata": {"name": "default"}, "spec": spec})));
        assert_eq!(hold(json!({"scaleDown": {"enabled": false}})), None);
        assert_eq!(hold(json!({"scaleDown": {"delayAfterAdd": "10m"}})), None, "not enabled means off");
        assert_eq!(hold(json!({"scaleDown": {"enabled": true, "delayAfterAdd": "10m"}})).unwrap().was, Some(json!(true)));
        assert_eq!(hold(json!({})).unwrap().made.as_deref(), Some("/spec/scaleDown"));
    }

    #[test]
    fn boot_images_are_turned_off_where_they_are_on_by_wish_or_by_default_and_may_be() {
        let manager = |mode: &str| json!({"machineManagers": [{"apiGroup": "machine.openshift.io", "resource": "machinesets", "selection": {"mode": mode}}]});
        let hold =
            |spec: Value, status: Value| boot_images(&object(json!({"metadata": {"name": "cluster"}, "spec": spec, "status": status})));
        assert_eq!(hold(json!({}), json!({})), Ok(None));
        assert_eq!(hold(json!({"managedBootImages": manager("None")}), json!({"managedBootImagesStatus": manager("All")})), Ok(None));
        let by_default = hold(json!({}), json!({"managedBootImagesStatus": manager("All")})).unwrap().unwrap();
        assert_eq!((by_default.was, by_default.ours), (None, Some(manager("None"))));
        let by_wish = hold(json!({"managedBootImages": manager("All")}), json!({})).unwrap().unwrap();
        assert_eq!((by_wish.was, by_wish.ours), (Some(manager("All")), Some(manager("None"))));
        let enforced = json!({"managedBootImagesStatus": manager("All"), "bootImageSkewEnforcementStatus": {"mode": "Automatic"}});
        assert!(hold(json!({}), enforced).is_err());
    }

    #[test]
    fn pools_that_were_paused_before_are_not_held() {
        let pool = |name: &str, spec: Value| Arc::new(object(json!({"metadata": {"name": name}, "spec": spec})));
        let all = [pool("worker", json!({})), pool("master", json!({"paused": false})), pool("infra", json!({"paused": true}))];
        let held = pools(&all);
        assert_eq!(names(&held), ["master", "worker"]);
        assert_eq!((held[0].was.clone(), held[1].was.clone()), (Some(json!(false)), None));
    }

    #[test]
    fn reboots_are_held_by_the_policy_if_it_is_shown_in_time_and_else_by_the_pools() {
        let asked: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let after = |seconds| asked + SignedDuration::from_secs(seconds);
        let shows = |files: Value| {
            object(
                json!({"metadata": {"name": "cluster"}, "status": {"nodeDisruptionPolicyStatus": {"clusterPolicies": {"files": files}}}}),
            )
        };
        let reboot = json!([{"path": CLOUD_CONFIG_FILE, "actions": [{"type": "Reboot"}]}]);
        assert_eq!(reboots(None, asked, asked), Reboots::ByPools);
        assert_eq!(reboots(Some(&shows(json!([no_reboot_entry()]))), asked, after(600)), Reboots::ByPolicy);
        assert_eq!(reboots(Some(&shows(reboot.clone())), asked, after(59)), Reboots::Unsure(after(60)));
        assert_eq!(reboots(Some(&shows(reboot)), asked, after(60)), Reboots::ByPools);
        assert_eq!(reboots(Some(&object(json!({"metadata": {"name": "cluster"}}))), asked, after(61)), Reboots::ByPools);
    }

    #[test]
    fn the_policy_is_asked_for_once_and_replaces_another_for_the_same_file() {
        let with = |files: Value| object(json!({"metadata": {"name": "cluster"}, "spec": {"nodeDisruptionPolicy": {"files": files}}}));
        assert_eq!(no_reboot(&with(json!([no_reboot_entry()]))), None);
        let drain = json!({"path": CLOUD_CONFIG_FILE, "actions": [{"type": "Drain"}]});
        assert_eq!(no_reboot(&with(json!([drain]))).unwrap().was, Some(drain));
    }
}
