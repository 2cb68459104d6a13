//! Step 13: the source's sets lose their machines, a few at a time, and go where the cluster's admission asks for it.

use std::collections::BTreeMap;
use std::time::Duration;

use kube::ResourceExt;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use vmi_crds::graph::StepName;
use vmi_crds::turn::rolling_back;
use vmi_kit::kind::{ADMISSION_POLICY, MACHINE, MACHINE_SET, NODE, VOLUME_ATTACHMENT};
use vmi_kit::{Stop, failure};
use vmi_steps::change::{self, Act, Change};
use vmi_steps::{Migration, Seen, Step, Writer};

use super::workers;
use super::{failed, few, machines_of, planning, progress, sets, stuck, waiting};
use crate::leaving::{self, Leaving, scaled};
use crate::ramp::{self, Growing};
use crate::successors;
use crate::view::{NAMESPACE, Object, is_master, node_name, phase, replicas, server};
use crate::wanted::of_the_source;

/// The key under which the sets are saved.
const SETS: &str = "machine-sets";
/// Where it is, no failure domain leaves Infrastructure while a set names it, even one without machines.
const POLICY: &str = "vsphere-failure-domain-in-use-by-machineset";

/// The source's sets as they were.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Saved {
    sets: Vec<SavedSet>,
    /// The nodes of all machines that leave, by name: a Machine may be gone before its Node is.
    nodes: Vec<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct SavedSet {
    name: String,
    labels: Value,
    annotations: Value,
    spec: Value,
}

impl SavedSet {
    fn of(set: &Object) -> Self {
        Self { name: set.name_any(), labels: json!(set.labels()), annotations: json!(set.annotations()), spec: set.data["spec"].clone() }
    }

    fn replicas(&self) -> i64 {
        self.spec["replicas"].as_i64().unwrap_or(1)
    }

    /// The set as it was, with no machine yet.
    fn empty(&self) -> Value {
        let mut spec = self.spec.clone();
        spec["replicas"] = json!(0);
        json!({
            "apiVersion": MACHINE_SET.api_version(), "kind": MACHINE_SET.kind,
            "metadata": {"name": self.name, "namespace": NAMESPACE, "labels": self.labels, "annotations": self.annotations}, "spec": spec,
        })
    }
}

/// Step 13.
pub struct SourceWorkersRemoved;

impl Step for SourceWorkersRemoved {
    const NAME: StepName = StepName::SourceWorkersRemoved;
    type Act = Change;

    async fn observe(&self, m: &Migration) -> Result<Seen<Change>, Stop> {
        let found = of_the_source(&sets(m), &m.sources(), &m.uid());
        let Some(saved) = saved(m)? else {
            let open = unreplaced(m)?;
            return Ok(if open.is_empty() {
                first(m, &found)
            } else {
                Seen::waiting(format!("no machine leaves the source before the target has its sets: {}", few(&open)))
            });
        };
        let (known, since): (Vec<Object>, Vec<Object>) = found.into_iter().partition(|set| saved.has(set));
        let all: Vec<Leaving> = known.into_iter().map(|set| Leaving { machines: machines_of(m, &set), set }).collect();
        if let Some(todo) = change::todo(leaving::changes(&all, i64::from(m.spec().rollout.draining))) {
            return Ok(todo);
        }
        let machines = machines_on_the_source(m);
        let (lone, leave): (Vec<Object>, Vec<Object>) = machines.into_iter().partition(is_nobodys);
        let mut open: Vec<String> = lone.iter().map(by_hand).collect();
        open.extend(leaving::told(m, &leave));
        let left = leaving::left_of(&saved.nodes, &m.list(NODE, ""), &m.list(VOLUME_ATTACHMENT, ""));
        open.extend(left.iter().map(|left| format!("{left} is still there")));
        open.extend(
            since.iter().map(|set| format!("MachineSet {} was made on the source by somebody else since: delete it", set.name_any())),
        );
        if !open.is_empty() {
            return Ok(Seen::waiting(format!("waits for the source's machines to leave: {}", few(&open))));
        }
        Ok(deleted(m, &all, &saved))
    }

    async fn observe_undo(&self, m: &Migration) -> Result<Seen<Change>, Stop> {
        let saved = saved(m)?.unwrap_or_default();
        let (mut changes, mut there, mut all, mut coming, mut lost) = (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for set in &saved.sets {
            let Some(live) = m.get(MACHINE_SET, NAMESPACE, &set.name) else {
                let words = vec![format!("MachineSet {}: made again as it was, for {} machines", set.name, set.replicas())];
                changes.push(Change { act: Act::Create(MACHINE_SET, set.empty()), words });
                continue;
            };
            let seen = progress(m, &live, &BTreeMap::new());
            all.push(Growing { place: "", wanted: set.replicas(), asked: replicas(&live), up: seen.up });
            coming.extend(seen.coming);
            lost.extend(seen.failed);
            there.push(live);
        }
        if let Some(todo) = change::todo(changes) {
            return Ok(todo);
        }
        if !lost.is_empty() {
            return Err(failed(&lost).into());
        }
        if let Some(todo) =
            ramp::next(&all, i64::from(m.spec().rollout.batch), false).and_then(|(at, to)| change::todo(vec![scaled(&there[at], to)]))
        {
            return Ok(todo);
        }
        if ramp::done(&all) {
            return Ok(Seen::done("Undone", "the source's sets have their machines again, and all of them serve"));
        }
        Ok(Seen::waiting(waiting(&all, &coming, "the source")))
    }

    async fn act(&self, _m: &Migration, act: Change, writer: &mut Writer<'_>) -> Result<(), Stop> {
        act.make(writer).await
    }

    fn deadline(&self, m: &Migration) -> Duration {
        let saved = saved(m).ok().flatten().unwrap_or_default();
        let (sets, rollout) = (saved.sets.iter().map(SavedSet::replicas), &m.spec().rollout);
        if rolling_back(&m.vmi) {
            return ramp::patience(sets.sum(), i64::from(rollout.batch));
        }
        leaving::patience(sets.max().unwrap_or_default(), i64::from(rollout.draining))
    }

    fn stuck(&self, _m: &Migration) -> Vec<String> {
        let mut all = stuck();
        all.push("oc get poddisruptionbudgets --all-namespaces".to_owned());
        all.push("oc get volumeattachments".to_owned());
        all
    }
}

impl Saved {
    fn has(&self, set: &Object) -> bool {
        self.sets.iter().any(|saved| saved.name == set.name_any())
    }
}

fn saved(m: &Migration) -> Result<Option<Saved>, Stop> {
    let Some(value) = m.saved(SETS) else { return Ok(None) };
    serde_json::from_value(value).map(Some).map_err(|error| {
        let secret = format!("{}/{}", m.cx.namespace, vmi_steps::saved::secret_name(&m.name()));
        let text = format!("key {SETS} of Secret {secret}, which holds the source's MachineSets, cannot be read: {error}");
        failure("ROL-004", text, "was it edited, or written by another release? put back what it was, then resume").into()
    })
}

/// Workers that are on a source, whoever made them.
fn machines_on_the_source(m: &Migration) -> Vec<Object> {
    let sources = m.sources();
    let there = |machine: &Object| !is_master(machine) && sources.iter().any(|source| source == server(machine));
    let mut machines: Vec<Object> = m.list(MACHINE, NAMESPACE).into_iter().filter(there).collect();
    machines.sort_by_key(|machine| machine.metadata.name.clone());
    machines
}

/// Whether the machine stays until somebody deletes it: no set made it, so none lets it go.
fn is_nobodys(machine: &Object) -> bool {
    machine.metadata.deletion_timestamp.is_none() && !machine.owner_references().iter().any(|owner| owner.kind == MACHINE_SET.kind)
}

fn by_hand(machine: &Object) -> String {
    format!("Machine {} is {}, and no set made it: delete it by hand", machine.name_any(), phase(machine))
}

/// The Node that a machine became or, where it may still join, will become: on vSphere it is called as its Machine is, whose name the
/// machine API gives the virtual machine as hostname.
fn node_of(machine: &Object) -> String {
    node_name(machine).map_or_else(|| machine.name_any(), str::to_owned)
}

/// What of the source nothing on the target stands for any more. Asked before the first machine leaves: then there is still a choice.
fn unreplaced(m: &Migration) -> Result<Vec<String>, Stop> {
    if planning(m) {
        return Ok(Vec::new());
    }
    Ok(successors::lacking(&workers::asked_for(m)?, &sets(m), &workers::made_since(m)))
}

/// Everything is saved before anything leaves.
fn first(m: &Migration, found: &[Object]) -> Seen<Change> {
    let machines = machines_on_the_source(m);
    if found.is_empty() && machines.is_empty() {
        return Seen::done("Removed", "no MachineSet and no worker is on the source");
    }
    let saved = Saved { sets: found.iter().map(SavedSet::of).collect(), nodes: machines.iter().map(node_of).collect() };
    let goes = if deleted_here(m) { ", then deleted" } else { "" };
    let words = |set: &Object| {
        format!("MachineSet {}: from {} machines to none, {} at once{goes}", set.name_any(), replicas(set), m.spec().rollout.draining)
    };
    let change = Change { act: Act::Save(SETS.to_owned(), json!(saved)), words: found.iter().map(words).collect() };
    let alone =
        || Seen::waiting(format!("waits for workers that no set made to be deleted by hand: {}", few(&leaving::told(m, &machines))));
    if planning(m) && found.is_empty() { alone() } else { change::todo(vec![change]).unwrap_or_else(alone) }
}

/// Whether an empty set is still in the way of what comes next.
fn deleted_here(m: &Migration) -> bool {
    m.get(ADMISSION_POLICY, "", POLICY).is_some()
}

fn deleted(m: &Migration, all: &[Leaving], saved: &Saved) -> Seen<Change> {
    let count = saved.sets.len();
    if !deleted_here(m) {
        return Seen::done(
            "Removed",
            format!("{count} sets have no machines on the source any more; the empty sets go with the rest of it"),
        );
    }
    let delete = |leaving: &Leaving| {
        let words = vec![format!("MachineSet {}: deleted", leaving.set.name_any())];
        Change { act: Act::Delete(MACHINE_SET, leaving.set.clone()), words }
    };
    let open = all.iter().filter(|leaving| leaving.set.metadata.deletion_timestamp.is_none());
    change::todo(open.map(delete).collect()).unwrap_or_else(|| {
        if all.is_empty() {
            Seen::done("Removed", format!("{count} sets and their machines are gone from the source"))
        } else {
            Seen::waiting("waits for the source's empty sets to be gone")
        }
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends by panicking")]

    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_machine_that_has_not_joined_yet_is_waited_for_as_the_node_it_would_become() {
        let machine = |status: Value| Arc::new(serde_json::from_value(json!({"metadata": {"name": "m"}, "status": status})).unwrap());
        assert_eq!(node_of(&machine(json!({"phase": "Running", "nodeRef": {"name": "n"}}))), "n");
        assert_eq!(node_of(&machine(json!({"phase": "Provisioned"}))), "m");
    }

    #[test]
    fn only_a_machine_that_no_set_made_and_nobody_deletes_waits_for_a_hand() {
        let machine =
            |metadata: Value| Arc::new(serde_json::from_value(json!({"metadata": metadata, "status": {"phase": "Running"}})).unwrap());
        let owner = |kind: &str| json!([{"apiVersion": "v1", "kind": kind, "name": "o", "uid": "u"}]);
        let lone = machine(json!({"name": "m", "ownerReferences": owner("Cluster")}));
        assert!(is_nobodys(&lone));
        assert_eq!(by_hand(&lone), "Machine m is Running, and no set made it: delete it by hand");
        assert!(!is_nobodys(&machine(json!({"name": "m", "ownerReferences": owner("MachineSet")}))));
        assert!(!is_nobodys(&machine(json!({"name": "m", "deletionTimestamp": "2026-01-01T00:00:00Z"}))), "it leaves already");
    }
}
