//! How a hold is released by hand, by whoever gave the migration up: commands made of what was saved when it was taken.

use serde_json::{Value, json};
use vmi_crds::graph::StepName;
use vmi_steps::Migration;

use crate::held::{Held, Place, unescaped};
use crate::ledger;
use crate::steps::{control_plane_set_saved, frozen, unlocked};

const ANNOTATIONS: &str = "/metadata/annotations/";

/// The commands that release what the step holds; none where it holds nothing.
pub fn release(m: &Migration, step: StepName) -> Vec<String> {
    match step {
        StepName::ClusterVersionFrozen => commands(&holds(m, frozen::KEYS)),
        StepName::InfrastructureUnlocked => {
            let keys: Vec<String> = unlocked::keys().filter(|key| m.saved(key).is_some()).collect();
            let rules = "rules come back with the cluster version operator, taken out were";
            (!keys.is_empty()).then(|| format!("{rules}: {}", shown(m, &keys.join(",")))).into_iter().collect()
        }
        StepName::ControlPlaneSetSaved => {
            let mut all = commands(&holds(m, control_plane_set_saved::KEYS));
            let set = m.saved(control_plane_set_saved::SET).filter(|set| set["spec"]["state"] == "Active");
            all.extend(set.map(|_| {
                let edit = format!("oc -n {} edit controlplanemachineset cluster", control_plane_set_saved::NAMESPACE);
                format!("{edit}, to be as it was: {}", shown(m, control_plane_set_saved::SET))
            }));
            all
        }
        _ => Vec::new(),
    }
}

fn holds(m: &Migration, keys: &[&str]) -> Vec<Held> {
    // What cannot be read cannot be told; the Secret that holds it is named all the same wherever it is needed.
    keys.iter().filter_map(|key| ledger::saved(m, key).ok().flatten()).flat_map(|ledger| ledger.holds).collect()
}

/// The command that shows what was saved.
fn shown(m: &Migration, keys: &str) -> String {
    format!("oc -n {} extract secret/{} --keys={keys} --to=-", m.cx.namespace, vmi_steps::saved::secret_name(&m.name()))
}

/// One command for all objects of a kind that are released alike.
fn commands(holds: &[Held]) -> Vec<String> {
    let mut all: Vec<(String, String, Vec<&str>)> = Vec::new();
    for held in holds {
        let (verb, how) = command(held);
        let namespace = if held.namespace.is_empty() { String::new() } else { format!("-n {} ", held.namespace) };
        let begins = format!("oc {namespace}{verb} {}", held.kind.to_lowercase());
        match all.iter_mut().find(|(start, end, _)| *start == begins && *end == how) {
            Some((_, _, names)) => names.push(&held.name),
            None => all.push((begins, how, vec![&held.name])),
        }
    }
    all.into_iter().map(|(begins, how, names)| format!("{begins} {}{how}", names.join(" "))).collect()
}

/// What stands before the object, and what after it.
fn command(held: &Held) -> (&'static str, String) {
    match &held.place {
        Place::Field(pointer) if pointer == "/spec/replicas" => {
            ("scale", format!(" --replicas={}", held.was.as_ref().and_then(Value::as_i64).unwrap_or(1)))
        }
        Place::Field(pointer) if pointer.starts_with(ANNOTATIONS) && held.was.is_none() => {
            ("annotate", format!(" {}-", unescaped(pointer.trim_start_matches(ANNOTATIONS))))
        }
        Place::Field(pointer) => {
            // Nothing is left around it where nothing was: an empty object may mean something else than none.
            let pointer = held.made.as_ref().filter(|_| held.was.is_none()).unwrap_or(pointer);
            let value = held.was.clone().unwrap_or_default();
            let body = pointer.split('/').skip(1).collect::<Vec<_>>().into_iter().rfold(value, |body, name| json!({unescaped(name): body}));
            ("patch", format!(" --type=merge -p '{}'", body.to_string().replace('\'', r"'\''")))
        }
        Place::Entry { list, .. } => {
            let list = list.trim_start_matches('/').replace('/', ".");
            let label = held.label();
            let what = match &held.was {
                None => format!("take {label} out of {list}"),
                Some(was) => format!("make {label} in {list} what it was, {was}"),
            };
            ("edit", format!(" and {what}"))
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends by panicking")]

    use std::sync::Arc;

    use kube::api::DynamicObject;
    use serde_json::Map;
    use vmi_kit::kind::{CLUSTER_AUTOSCALER, CLUSTER_VERSION, DEPLOYMENT, MACHINE_CONFIGURATION};

    use super::*;
    use crate::machines;

    fn object(body: Value) -> DynamicObject {
        serde_json::from_value(body).unwrap()
    }

    #[test]
    fn every_kind_of_hold_is_released_by_a_command_that_can_be_pasted() {
        let operator =
            json!({"metadata": {"name": "cluster-version-operator", "namespace": "openshift-cluster-version"}, "spec": {"replicas": 1}});
        let scaled = Held::field(DEPLOYMENT, &object(operator), "/spec/replicas", Some(json!(0))).unwrap();
        assert_eq!(commands(&[scaled]), ["oc -n openshift-cluster-version scale deployment cluster-version-operator --replicas=1"]);

        let check = |name: &str| Arc::new(object(json!({"metadata": {"name": name, "namespace": "openshift-machine-api"}, "spec": {}})));
        let paused = machines::health_checks(&[check("workers"), check("infra")]);
        assert_eq!(commands(&paused), ["oc -n openshift-machine-api annotate machinehealthcheck infra workers cluster.x-k8s.io/paused-"]);

        let pool = |name: &str| Arc::new(object(json!({"metadata": {"name": name}, "spec": {"paused": false}})));
        let held = machines::pools(&[pool("worker"), pool("master")]);
        assert_eq!(commands(&held), [r#"oc patch machineconfigpool master worker --type=merge -p '{"spec":{"paused":false}}'"#]);

        let autoscaler = |spec: Value| {
            Held::field(
                CLUSTER_AUTOSCALER,
                &object(json!({"metadata": {"name": "default"}, "spec": spec})),
                "/spec/scaleDown/enabled",
                Some(json!(false)),
            )
            .unwrap()
        };
        let told = commands(&[autoscaler(json!({"scaleDown": {"enabled": true}}))]);
        assert_eq!(told, [r#"oc patch clusterautoscaler default --type=merge -p '{"spec":{"scaleDown":{"enabled":true}}}'"#]);
        let told = commands(&[autoscaler(json!({}))]);
        assert_eq!(told, [r#"oc patch clusterautoscaler default --type=merge -p '{"spec":{"scaleDown":null}}'"#], "silent as it was");
    }

    #[test]
    fn of_a_list_only_the_own_entry_is_to_be_taken_out() {
        let configuration = object(json!({"metadata": {"name": "cluster"}, "spec": {}}));
        let policy = machines::no_reboot(&configuration).unwrap();
        let told = commands(&[policy]);
        assert_eq!(
            told,
            [r#"oc edit machineconfiguration cluster and take "/etc/kubernetes/cloud.conf" out of spec.nodeDisruptionPolicy.files"#]
        );
        let by = Map::from_iter([("name".to_owned(), json!("x"))]);
        let version = object(json!({"metadata": {"name": "version"}, "spec": {"overrides": [{"name": "x", "unmanaged": false}]}}));
        let held = Held::entry(CLUSTER_VERSION, &version, "/spec/overrides", by, Some(json!({"name": "x", "unmanaged": true}))).unwrap();
        let told = commands(&[held]);
        assert_eq!(told, [r#"oc edit clusterversion version and make "x" in spec.overrides what it was, {"name":"x","unmanaged":false}"#]);
    }

    #[test]
    fn a_quote_in_what_was_there_does_not_end_the_command() {
        let body = json!({"metadata": {"name": "cluster"}, "spec": {"note": "it's"}});
        let held = Held::field(MACHINE_CONFIGURATION, &object(body), "/spec/note", None).unwrap();
        assert_eq!(commands(&[held]), [r#"oc patch machineconfiguration cluster --type=merge -p '{"spec":{"note":"it'\''s"}}'"#]);
    }
}
