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
    let told = leaving::told(m, all.iter().flat_map(|leaving| &leaving.machines));
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

fn is_empty(leaving: &Leaving) -> bool {
    leaving.machines.is_empty() && replicas(&leaving.set) == 0 && leaving.set.metadata.deletion_timestamp.is_none()
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
