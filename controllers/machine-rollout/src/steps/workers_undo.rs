//! The way back of step 11: autoscalers look after the source's sets again, and the sets that were made go with their machines.

use kube::ResourceExt;
use vmi_crds::spec::Volumes;
use vmi_intent::volumes::{is_in_one_of, of_vsphere};
use vmi_kit::kind::{MACHINE_AUTOSCALER, MACHINE_SET, PERSISTENT_VOLUME};
use vmi_steps::change::{self, Act, Change};
use vmi_steps::{Migration, Seen};

use super::workers::{retarget, target_of};
use super::{few, machines_of, sets};
use crate::leaving::{self, Leaving};
use crate::view::{NAMESPACE, Object, replicas};
use crate::wanted::{SOURCE_SET, is_ours};

pub fn observe(m: &Migration) -> Seen<Change> {
    let volumes = volumes_on_the_target(m);
    if m.spec().volumes == Volumes::Refuse && !volumes.is_empty() {
        return Seen::waiting(format!(
            "PersistentVolumes were made on the target since, which nobody reaches once its machines are gone: {}; move their data, or set \
             spec.volumes to Ignore to leave them",
            few(&volumes)
        ));
    }
    let ours: Vec<Object> = sets(m).into_iter().filter(|set| is_ours(set, &m.uid())).collect();
    let all: Vec<Leaving> = ours.into_iter().map(|set| Leaving { machines: machines_of(m, &set), set }).collect();
    let mut changes = turned_back(m, &all);
    changes.extend(leaving::changes(&all, i64::from(m.spec().rollout.draining)));
    changes.extend(all.iter().filter(|leaving| is_empty(leaving)).map(deleted));
    if let Some(todo) = change::todo(changes) {
        return todo;
    }
    if all.is_empty() {
        return Seen::done("Undone", "the machines that were made on the target are gone, and their sets");
    }
    let mut told = leaving::told(m, all.iter().flat_map(|leaving| &leaving.machines));
    told.extend(all.iter().filter_map(untold));
    let told = if told.is_empty() { "their sets are being deleted".to_owned() } else { few(&told) };
    Seen::waiting(format!("waits for the machines on the target to leave: {told}"))
}

/// Each by the claim it is bound to.
fn volumes_on_the_target(m: &Migration) -> Vec<String> {
    let places: Vec<(&str, &str)> = m.spec().failure_domains.iter().map(|domain| (domain.region.as_str(), domain.zone.as_str())).collect();
    let volumes = m.list(PERSISTENT_VOLUME, "");
    let here = volumes.iter().filter(|volume| is_in_one_of(&volume.data["spec"], &places));
    here.filter_map(|volume| of_vsphere(&volume.data["spec"], &volume.name_any())).collect()
}

/// Whether the set is to have no machine and nobody sees one.
fn looks_empty(leaving: &Leaving) -> bool {
    leaving.machines.is_empty() && replicas(&leaving.set) == 0 && leaving.set.metadata.deletion_timestamp.is_none()
}

/// Whether its controller knows that it is to have none, and has none: it may have made one a moment ago that nobody sees yet, and a
/// machine whose set is deleted leaves without a word.
fn is_told_empty(set: &Object) -> bool {
    let status = &set.data["status"];
    set.metadata.generation.is_some_and(|generation| status["observedGeneration"] == generation)
        && status["replicas"].as_i64().unwrap_or_default() == 0
}

fn is_empty(leaving: &Leaving) -> bool {
    looks_empty(leaving) && is_told_empty(&leaving.set)
}

/// What is waited for where only the word of the set's controller is missing. It comes at once, or that controller does not run, and
/// then no machine would leave either.
fn untold(leaving: &Leaving) -> Option<String> {
    (looks_empty(leaving) && !is_told_empty(&leaving.set)).then(|| {
        format!(
            "the machine set controller has yet to say in the status of MachineSet {} that it has none (oc -n {NAMESPACE} logs \
             deploy/machine-api-controllers -c machineset-controller); if it never does, delete the set by hand",
            leaving.set.name_any()
        )
    })
}

fn deleted(leaving: &Leaving) -> Change {
    let words = vec![format!("MachineSet {}: deleted", leaving.set.name_any())];
    Change { act: Act::Delete(MACHINE_SET, leaving.set.clone()), words }
}

/// Autoscalers that look after a set that goes. One that somebody turned to another set since is theirs.
fn turned_back(m: &Migration, all: &[Leaving]) -> Vec<Change> {
    let autoscalers = m.list(MACHINE_AUTOSCALER, NAMESPACE);
    let back = |autoscaler: &Object| {
        let target = target_of(autoscaler)?;
        let set = all.iter().find(|leaving| leaving.set.name_any() == target)?;
        Some(retarget(autoscaler, target, set.set.annotations().get(SOURCE_SET)?))
    };
    autoscalers.iter().filter_map(back).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends by panicking")]

    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;

    fn leaving(replicas: i64, status: &Value) -> Leaving {
        let set = json!({"metadata": {"name": "w-x", "generation": 4}, "spec": {"replicas": replicas}, "status": status});
        Leaving { set: Arc::new(serde_json::from_value(set).unwrap()), machines: Vec::new() }
    }

    #[test]
    fn a_set_is_empty_only_by_the_word_of_its_controller_and_that_word_is_waited_for_aloud() {
        for (status, empty) in [
            (json!({"observedGeneration": 4, "replicas": 0}), true),
            (json!({"observedGeneration": 4}), true),
            (json!({"observedGeneration": 3, "replicas": 0}), false),
            (json!({"observedGeneration": 4, "replicas": 1}), false),
            (Value::Null, false),
        ] {
            let leaving = leaving(0, &status);
            assert_eq!(is_empty(&leaving), empty, "{status}");
            let told = untold(&leaving).unwrap_or_default();
            assert_eq!(told.starts_with("the machine set controller has yet to say in the status of MachineSet w-x"), !empty, "{told}");
        }
        let told = json!({"observedGeneration": 4, "replicas": 0});
        assert!(!is_empty(&leaving(1, &told)) && untold(&leaving(1, &told)).is_none(), "it is to have one");
    }
}
