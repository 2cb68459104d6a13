//! Step 11: on the target every set of the source has one of its own, and its machines serve.

use std::time::Duration;

use kube::ResourceExt;
use serde_json::json;
use vmi_crds::graph::StepName;
use vmi_crds::spec::SourceRetirement;
use vmi_crds::turn::rolling_back;
use vmi_kit::kind::{MACHINE_AUTOSCALER, MACHINE_SET};
use vmi_kit::{Stop, failure};
use vmi_steps::change::{self, Act, Change};
use vmi_steps::{Migration, Seen, Step, Writer};

use super::{failed, few, left_out, planning, progress, sets, stuck, waiting, workers_undo};
use crate::leaving::{self, scaled};
use crate::ramp::{self, Growing};
use crate::successors;
use crate::view::{NAMESPACE, Object, replicas};
use crate::wanted::{DOMAIN, Known, SOURCE_SET, Wanted, is_ours, stands_for, wanted};

/// Step 11.
pub struct WorkersReady;

impl Step for WorkersReady {
    const NAME: StepName = StepName::WorkersReady;
    type Act = Change;

    async fn observe(&self, m: &Migration) -> Result<Seen<Change>, Stop> {
        let wanted = asked_for(m)?;
        let mut made = Vec::new();
        let mut changes = Vec::new();
        for set in &wanted {
            match there(m, set)? {
                Some(object) => made.push((set, object)),
                None => changes.push(making(set)),
            }
        }
        if planning(m) {
            changes.extend(retargeted(m, &wanted));
        }
        if let Some(todo) = change::todo(changes) {
            return Ok(todo);
        }
        if let Some(open) = growing(m, &made)? {
            return Ok(open);
        }
        let ready = || Seen::done("Ready", told(m, &wanted));
        Ok(change::todo(retargeted(m, &wanted)).unwrap_or_else(ready))
    }

    async fn observe_undo(&self, m: &Migration) -> Result<Seen<Change>, Stop> {
        Ok(workers_undo::observe(m))
    }

    async fn act(&self, _m: &Migration, act: Change, writer: &mut Writer<'_>) -> Result<(), Stop> {
        act.make(writer).await
    }

    fn drifted(&self, m: &Migration) -> Option<String> {
        let wanted = asked_for(m).ok()?;
        let gone = successors::gone(&wanted, &sets(m), &made_since(m));
        let lines: Vec<String> = gone.iter().map(|set| format!("MachineSet {} on {} is gone", set.name, set.server)).collect();
        (!lines.is_empty()).then(|| format!("{} (oc -n {NAMESPACE} get machinesets)", few(&lines)))
    }

    fn deadline(&self, m: &Migration) -> Duration {
        let asked_for = asked_for(m).unwrap_or_default();
        let asked_for = asked_for.iter().map(|set| set.replicas);
        if rolling_back(&m.vmi) {
            // An autoscaler may have made one larger; while it shrinks, what was asked for keeps its time from shrinking with it.
            let ours = sets(m).into_iter().filter(|set| is_ours(set, &m.uid()));
            let largest = asked_for.chain(ours.map(|set| replicas(&set))).max().unwrap_or_default();
            return leaving::patience(largest, i64::from(m.spec().rollout.draining));
        }
        ramp::patience(asked_for.sum(), i64::from(m.spec().rollout.batch))
    }

    fn stuck(&self, _m: &Migration) -> Vec<String> {
        stuck()
    }
}

/// The sets that were made after this step was done, by name.
pub fn made_since(m: &Migration) -> Vec<String> {
    let done = m.vmi.step(StepName::WorkersReady).and_then(|step| step.finished_at.as_ref()).map(|time| time.0);
    let since = |set: &Object| set.metadata.creation_timestamp.as_ref().zip(done).is_some_and(|(made, done)| made.0 > done);
    sets(m).iter().filter(|set| since(set)).map(|set| set.name_any()).collect()
}

/// What is to be on the target.
pub fn asked_for(m: &Migration) -> Result<Vec<Wanted>, Stop> {
    let id = m.infrastructure_id().ok_or_else(|| Stop::again("Infrastructure cluster has no status.infrastructureName"))?;
    let (sets, sources, uid) = (sets(m), m.sources(), m.uid());
    let known = Known { spec: m.spec(), sets: &sets, sources: &sources, uid: &uid, infrastructure_id: &id };
    let next = "make a MachineSet on the source that the new ones are to be like, then resume";
    wanted(&known).map_err(|why| failure("ROL-003", why, next).into())
}

/// The set, where it is made already. One that somebody else made under its name stays theirs.
fn there(m: &Migration, wanted: &Wanted) -> Result<Option<Object>, Stop> {
    let Some(set) = m.get(MACHINE_SET, NAMESPACE, &wanted.name) else { return Ok(None) };
    if stands_for(&set, wanted) {
        return Ok(Some(set));
    }
    let name = &wanted.name;
    let text = if is_ours(&set, &m.uid()) {
        let says = |key: &str| set.annotations().get(key).cloned().unwrap_or_default();
        let (source, domain) = (says(SOURCE_SET), says(DOMAIN));
        format!(
            "MachineSet {name} is to be made in failure domain {}, but that of this name stands for {source:?} in {domain:?}",
            wanted.domain
        )
    } else {
        format!("MachineSet {name} is to be made, but somebody else has made one of that name")
    };
    Err(failure("ROL-001", text, "rename or delete it, then set spec.state to Paused and to Running again").into())
}

fn making(set: &Wanted) -> Change {
    let mut words = vec![format!(
        "MachineSet {}: made like {} in failure domain {} on {}, for {} machines",
        set.name, set.source, set.domain, set.server, set.replicas
    )];
    words.extend(left_out(&format!("MachineSet {}", set.name), &set.left_out));
    Change { act: Act::Create(MACHINE_SET, set.object.clone()), words }
}

/// What is left to be done or waited for until all machines serve; none where they do.
fn growing(m: &Migration, made: &[(&Wanted, Object)]) -> Result<Option<Seen<Change>>, Stop> {
    let (mut all, mut coming, mut lost) = (Vec::new(), Vec::new(), Vec::new());
    for (wanted, set) in made {
        let seen = progress(m, set, &wanted.labels);
        all.push(Growing { place: &wanted.domain, wanted: wanted.replicas, asked: replicas(set), up: seen.up });
        coming.extend(seen.coming);
        lost.extend(seen.failed);
    }
    if !lost.is_empty() {
        return Err(failed(&lost).into());
    }
    if let Some((at, to)) = ramp::next(&all, i64::from(m.spec().rollout.batch), true) {
        return Ok(change::todo(vec![scaled(&made[at].1, to)]));
    }
    Ok((!ramp::done(&all)).then(|| Seen::waiting(waiting(&all, &coming, "the target"))))
}

/// Autoscalers that still look after a set of the source that has one on the target now. In Keep both stay.
fn retargeted(m: &Migration, wanted: &[Wanted]) -> Vec<Change> {
    if m.spec().source_retirement == SourceRetirement::Keep {
        return Vec::new();
    }
    let autoscalers = m.list(MACHINE_AUTOSCALER, NAMESPACE);
    let turned = |autoscaler: &Object| {
        let target = target_of(autoscaler)?;
        let mut sets = wanted.iter().filter(|set| set.source == target);
        let mut change = retarget(autoscaler, target, &sets.next()?.name);
        // Preflight refuses that; it may have been made since.
        let others: Vec<&str> = sets.map(|set| set.name.as_str()).collect();
        if !others.is_empty() {
            let called = autoscaler.name_any();
            change.words.push(format!("MachineAutoscaler {called}: nothing scales {}, which were one set before", others.join(", ")));
        }
        Some(change)
    };
    autoscalers.iter().filter_map(turned).collect()
}

/// The MachineSet that an autoscaler looks after.
pub fn target_of(autoscaler: &Object) -> Option<&str> {
    let target = &autoscaler.data["spec"]["scaleTargetRef"];
    target["name"].as_str().filter(|_| target["kind"] == "MachineSet")
}

/// An autoscaler that looks after another set; its bounds stay.
pub fn retarget(autoscaler: &Object, from: &str, to: &str) -> Change {
    let operations = json!([
        {"op": "test", "path": "/metadata/uid", "value": autoscaler.metadata.uid},
        {"op": "test", "path": "/spec/scaleTargetRef/name", "value": from},
        {"op": "replace", "path": "/spec/scaleTargetRef/name", "value": to},
    ]);
    let words = vec![format!("MachineAutoscaler {}: looks after MachineSet {to} instead of {from}", autoscaler.name_any())];
    Change { act: Act::Patch(MACHINE_AUTOSCALER, autoscaler.clone(), operations), words }
}

fn told(m: &Migration, wanted: &[Wanted]) -> String {
    let machines: i64 = wanted.iter().map(|set| set.replicas).sum();
    format!("{} sets have {machines} machines on {}, and all of them serve", wanted.len(), m.targets().join(", "))
}
