//! Step 12: the control plane machine set is told to be on the target, and rolls there master by master; on the way back to the source.

use std::time::Duration;

use kube::ResourceExt;
use serde_json::{Value, json};
use vmi_crds::graph::StepName;
use vmi_intent::control_plane_set::{domains, of_masters, on_domains};
use vmi_intent::provider::{self, is_in};
use vmi_intent::source_domain;
use vmi_kit::kind::{CLUSTER_OPERATOR, CONTROL_PLANE_MACHINE_SET, MACHINE};
use vmi_kit::{Stop, failure};
use vmi_steps::change::{self, Act, Change};
use vmi_steps::{Migration, Seen, Step, Writer};

use super::{failed, few, left_out, planning, stuck};
use crate::joining;
use crate::leaving;
use crate::plane::{Goal, Next, Saved, complete, next, sick_member};
use crate::view::{NAMESPACE, Object, SIGNING_REQUEST, creation, is_master, phase, server};

/// What step 3 saved of the set.
const SAVED: &str = "cpms";
pub const OBJECT: &str = "ControlPlaneMachineSet openshift-machine-api/cluster";
/// A new etcd member has to catch up before the old one goes.
const A_MASTER: Duration = Duration::from_secs(3600);

/// Step 12.
pub struct ControlPlaneReady;

impl Step for ControlPlaneReady {
    const NAME: StepName = StepName::ControlPlaneReady;
    type Act = Change;

    async fn observe(&self, m: &Migration) -> Result<Seen<Change>, Stop> {
        let servers = m.targets().into_iter().map(str::to_owned).collect();
        let named = m.spec().control_plane.as_ref().map(|plane| plane.failure_domains.clone());
        let named = named.unwrap_or_else(|| m.spec().failure_domains.iter().map(|domain| domain.name.clone()).collect());
        let base = before(m)?;
        roll(m, &Goal { spec: on_domains(&base.spec, &named), servers, ..base }, "Ready")
    }

    async fn observe_undo(&self, m: &Migration) -> Result<Seen<Change>, Stop> {
        let mut base = before(m)?;
        // What was saved says itself where the masters were.
        if m.saved(SAVED).is_none() {
            base.spec = on_domains(&base.spec, &source_domains(m));
        }
        roll(m, &Goal { servers: m.sources(), ..base }, "Undone")
    }

    async fn act(&self, _m: &Migration, act: Change, writer: &mut Writer<'_>) -> Result<(), Stop> {
        act.make(writer).await
    }

    fn deadline(&self, m: &Migration) -> Duration {
        A_MASTER * u32::try_from(masters(m).len().max(3)).unwrap_or(3)
    }

    fn stuck(&self, _m: &Migration) -> Vec<String> {
        let mut all = stuck();
        all.push("oc -n openshift-machine-api get controlplanemachineset cluster -o yaml".to_owned());
        all.push("oc get clusteroperator etcd control-plane-machine-set -o yaml".to_owned());
        all
    }
}

/// The control plane machine set.
pub fn set(m: &Migration) -> Option<Object> {
    m.get(CONTROL_PLANE_MACHINE_SET, NAMESPACE, "cluster")
}

fn masters(m: &Migration) -> Vec<Object> {
    let mut masters: Vec<Object> = m.list(MACHINE, NAMESPACE).into_iter().filter(|machine| is_master(machine)).collect();
    masters.sort_by_key(|object| object.name_any());
    masters
}

/// The set as it was before the migration, and what becomes of it in the end.
fn before(m: &Migration) -> Result<Goal, Stop> {
    let live = set(m);
    if let Some(value) = m.saved(SAVED) {
        let saved: Saved = serde_json::from_value(value).map_err(|error| {
            let secret = format!("{}/{}", m.cx.namespace, vmi_steps::saved::secret_name(&m.name()));
            let text = format!("key {SAVED} of Secret {secret}, which holds the control plane machine set, cannot be read: {error}");
            Stop::from(failure("ROL-004", text, "was it edited, or written by another release? put back what it was, then resume"))
        })?;
        return Ok(saved.goal());
    }
    match live {
        // It is saved only once the migration has started.
        Some(set) if planning(m) => Ok(Saved::of(&set).goal()),
        Some(set) => Ok(Goal { spec: set.data["spec"].clone(), ..Goal::default() }),
        None => {
            let masters = masters(m);
            let first = masters.first().ok_or_else(|| Stop::again("there is no Machine of the control plane"))?;
            let spec = of_masters(&serde_json::to_value(first.as_ref()).map_err(Stop::again)?, masters.len());
            Ok(Goal { spec, ..Goal::default() })
        }
    }
}

fn infrastructure_domains(m: &Migration) -> Vec<Value> {
    let infrastructure = m.infrastructure();
    let listed = infrastructure.as_ref().map(|object| &object.data["spec"]["platformSpec"]["vsphere"]["failureDomains"]);
    listed.and_then(Value::as_array).cloned().unwrap_or_default()
}

fn names<'a>(domains: impl Iterator<Item = &'a Value>) -> Vec<String> {
    domains.filter_map(|domain| domain["name"].as_str()).map(str::to_owned).collect()
}

fn source_domains(m: &Migration) -> Vec<String> {
    let sources = m.sources();
    let there = |domain: &&Value| sources.iter().any(|source| domain["server"] == source.as_str());
    names(infrastructure_domains(m).iter().filter(there))
}

/// One look: what to do next, or what is waited for.
fn roll(m: &Migration, goal: &Goal, reason: &'static str) -> Result<Seen<Change>, Stop> {
    let (set, masters) = (set(m), masters(m));
    let etcd = m.get(CLUSTER_OPERATOR, "", "etcd");
    let rolled = set.as_ref().map(|set| complete(set, &masters, goal, etcd.as_deref()));
    let act = next(set.as_deref(), &masters, goal, rolled == Some(Ok(())));
    let lost: Vec<String> = masters.iter().filter(|master| phase(master) == "Failed").map(told).collect();
    if !lost.is_empty() && act == Next::Wait {
        return Err(failed(&lost).into());
    }
    let change = match (act, set) {
        (Next::Done, _) => {
            return Ok(Seen::done(reason, format!("{} control plane machines serve on {}", masters.len(), goal.servers.join(", "))));
        }
        (Next::Wait, _) | (_, None) if act != Next::Create => {
            let mut waits = rolling(m, &masters, goal, rolled);
            waits.extend(sick_member(etcd.as_deref()).filter(|sick| !waits.contains(sick)));
            return Ok(Seen::waiting(waits.join("; ")));
        }
        // It knows where to and was only braked.
        (Next::Update, Some(set)) if set.data["spec"]["state"] == "Active" && domains(&set.data["spec"]) == domains(&goal.spec) => {
            let words = format!("{OBJECT}: strategy RollingUpdate, so that its machines are replaced again");
            replace(set, "/spec/strategy", &json!({"type": "RollingUpdate"}), words)
        }
        (Next::Update, Some(set)) => {
            let words = format!(
                "{OBJECT}: failure domains from {} to {}, Active, RollingUpdate: {} machines are replaced one after the other",
                listed(&set.data["spec"]),
                listed(&goal.spec),
                masters.len()
            );
            let dropped = left_out(OBJECT, &dropped(&set.data["spec"], &goal.spec));
            let missing = goal.missing(&set);
            let put_back = (!missing.is_empty()).then(|| format!("{OBJECT}: labels and annotations that it had before put back"));
            let mut change = replace_and(set, "/spec", &goal.spec("RollingUpdate"), missing, words);
            change.words.extend(dropped.into_iter().chain(put_back));
            change
        }
        (Next::PutBack, Some(set)) => {
            let strategy = goal.end.clone().unwrap_or_default();
            let words = format!("{OBJECT}: strategy {} put back", strategy["type"].as_str().unwrap_or_default());
            replace(set, "/spec/strategy", &strategy, words)
        }
        (Next::Delete, Some(set)) => {
            let words = vec![format!("{OBJECT}: deleted, since it was not at work before; its operator makes an inactive one")];
            Change { act: Act::Delete(CONTROL_PLANE_MACHINE_SET, set), words }
        }
        _ => creating(m, &masters, goal)?,
    };
    Ok(change::todo(vec![change]).unwrap_or_else(|| Seen::waiting("is looked at again")))
}

/// What the set says of machines that only the source knows, and will not say any more.
fn dropped(now: &Value, next: &Value) -> Vec<String> {
    let provider = |spec: &Value| spec["template"]["machines_v1beta1_machine_openshift_io"]["spec"]["providerSpec"]["value"].clone();
    let stays = provider::left_out(&provider(next));
    provider::left_out(&provider(now)).into_iter().filter(|field| !stays.contains(field)).collect()
}

fn listed(spec: &Value) -> String {
    let names = domains(spec);
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

fn provider_spec(master: &Object) -> &Value {
    &master.data["spec"]["providerSpec"]["value"]
}

/// The failure domains as they will be listed once Infrastructure is extended: where it does not describe the source, that is done then.
fn described(mut listed: Vec<Value>, sources: &[String], masters: &[Object]) -> Vec<Value> {
    if !listed.iter().any(|domain| sources.iter().any(|source| domain["server"] == source.as_str())) {
        listed.extend(masters.first().and_then(|master| source_domain::failure_domain(provider_spec(master)).ok()));
    }
    listed
}

/// Its operator takes a new one only for the masters as they are; it moves nothing until it is told where to.
fn creating(m: &Migration, masters: &[Object], goal: &Goal) -> Result<Change, Stop> {
    let mut listed = infrastructure_domains(m);
    if planning(m) {
        listed = described(listed, &m.sources(), masters);
    }
    let used = |domain: &&Value| masters.iter().any(|master| is_in(&provider_spec(master)["workspace"], domain));
    let now = names(listed.iter().filter(used));
    if now.is_empty() {
        let text = "no failure domain in Infrastructure is where a control plane machine is, string by string".to_owned();
        return Err(failure("ROL-005", text, "correct the failure domain that should be the masters', then resume").into());
    }
    let words = vec![format!("{OBJECT}: made for the masters as they are, in {}, to be moved then", now.join(", "))];
    let spec = Goal { spec: on_domains(&goal.spec, &now), ..goal.clone() }.spec("OnDelete");
    let body = json!({
        "apiVersion": CONTROL_PLANE_MACHINE_SET.api_version(), "kind": CONTROL_PLANE_MACHINE_SET.kind,
        "metadata": {"name": "cluster", "namespace": NAMESPACE, "labels": goal.labels, "annotations": goal.annotations}, "spec": spec,
    });
    Ok(Change { act: Act::Create(CONTROL_PLANE_MACHINE_SET, body), words })
}

/// Written only if nobody has changed the spec since it was seen; its status changes all the time.
pub fn replace(set: Object, path: &str, value: &Value, words: String) -> Change {
    replace_and(set, path, value, Vec::new(), words)
}

fn replace_and(set: Object, path: &str, value: &Value, more: Vec<Value>, words: String) -> Change {
    let mut operations = vec![
        json!({"op": "test", "path": "/metadata/uid", "value": set.metadata.uid}),
        json!({"op": "test", "path": "/metadata/generation", "value": set.metadata.generation}),
        json!({"op": "replace", "path": path, "value": value}),
    ];
    operations.extend(more);
    Change { act: Act::Patch(CONTROL_PLANE_MACHINE_SET, set, Value::Array(operations)), words: vec![words] }
}

fn told(master: &Object) -> String {
    let error = master.data["status"]["errorMessage"].as_str().map(|text| format!(" ({text})")).unwrap_or_default();
    format!("Machine {} is {} on {}{error}", master.name_any(), phase(master), server(master))
}

/// How far it is, machine by machine.
fn rolling(m: &Migration, masters: &[Object], goal: &Goal, rolled: Option<Result<(), String>>) -> Vec<String> {
    let there = masters.iter().filter(|master| phase(master) == "Running" && goal.servers.iter().any(|wanted| wanted == server(master)));
    let missing = rolled.and_then(Result::err).unwrap_or_else(|| "its operator makes the inactive control plane machine set".to_owned());
    let (count, servers) = (there.count(), goal.servers.join(", "));
    let going = masters.iter().filter(|master| phase(master) == "Deleting");
    let requests = m.list(SIGNING_REQUEST, "");
    let coming = |master: &Object| {
        let made = if phase(master) == "Provisioning" { creation(master) } else { String::new() };
        told(master) + &made + &joining::pending(master, &requests)
    };
    let mut lines: Vec<String> = masters.iter().filter(|master| phase(master) != "Deleting").map(coming).collect();
    lines.extend(leaving::told(m, going));
    vec![format!("{count} control plane machines serve on {servers}: {}", few(&lines)), missing]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends by panicking")]

    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_source_that_nobody_describes_is_planned_with_as_if_it_were() {
        let workspace = json!({"server": "a", "datacenter": "dc", "datastore": "/dc/datastore/d", "folder": "/dc/vm/id",
            "resourcePool": "/dc/host/c/Resources"});
        let value = json!({"template": "rhcos", "network": {"devices": [{"networkName": "n"}]}, "workspace": workspace});
        let master: Object =
            Arc::new(serde_json::from_value(json!({"metadata": {"name": "m"}, "spec": {"providerSpec": {"value": value}}})).unwrap());
        let (sources, masters) = (["a".to_owned()], [master]);
        let found = |listed: &[Value]| names(described(listed.to_vec(), &sources, &masters).iter());
        let (of_the_source, of_another) = (json!({"name": "fd-a", "server": "a"}), json!({"name": "fd-z", "server": "z"}));
        assert_eq!(found(&[]), [source_domain::NAME]);
        assert_eq!(found(std::slice::from_ref(&of_another)), ["fd-z", source_domain::NAME]);
        assert_eq!(found(&[of_the_source, of_another]), ["fd-a", "fd-z"], "what is listed counts");
        assert!(is_in(&workspace, &described(Vec::new(), &sources, &masters)[0]), "the masters are found in it");
    }
}
