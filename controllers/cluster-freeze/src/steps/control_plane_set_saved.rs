//! Step 3: nothing replaces, removes or rebuilds machines or reboots nodes of its own accord while the migration lasts.

use jiff::Timestamp;
use kube::ResourceExt;
use serde_json::{Value, json};
use vmi_crds::graph::{StepName, StepName::ControlPlaneReady};
use vmi_kit::kind::{
    CLUSTER_AUTOSCALER, CONTROL_PLANE_MACHINE_SET, MACHINE, MACHINE_CONFIG_POOL, MACHINE_CONFIGURATION, MACHINE_HEALTH_CHECK,
};
use vmi_kit::{Stop, failure};
use vmi_steps::change::{self, Act, Change};
use vmi_steps::{Migration, Seen, Step, Writer};

use super::planning;
use crate::control_plane_set::{self, Back, Next, Saved};
use crate::ledger::{self, Release};
use crate::machines::{self, Reboots};

/// Where machines and what looks after them live.
pub const NAMESPACE: &str = "openshift-machine-api";
const HEALTH_CHECKS: &str = "machine-health-checks";
const AUTOSCALER: &str = "cluster-autoscaler";
const BOOT_IMAGES: &str = "boot-images";
const POLICY: &str = "node-disruption-policy";
const POOLS: &str = "machine-config-pools";
/// What this step saves besides the control plane machine set, in the order of its release.
pub const KEYS: &[&str] = &[HEALTH_CHECKS, AUTOSCALER, BOOT_IMAGES, POLICY, POOLS];
/// Under which the control plane machine set is saved.
pub const SET: &str = "cpms";
const SET_GONE: &str = "cpms-deleted";
const SET_OBJECT: &str = "ControlPlaneMachineSet openshift-machine-api/cluster";

/// Step 3.
pub struct ControlPlaneSetSaved;

impl Step for ControlPlaneSetSaved {
    const NAME: StepName = StepName::ControlPlaneSetSaved;
    type Act = Change;

    async fn observe(&self, m: &Migration) -> Result<Seen<Change>, Stop> {
        let mut changes = changes(m)?;
        let reboots = reboots(m)?;
        if reboots == Reboots::ByPools {
            changes.extend(ledger::take(m, POOLS, || machines::pools(&m.list(MACHINE_CONFIG_POOL, "")))?);
        }
        let set = set(m)?;
        changes.extend(set_change(m, &set));
        if let Some(todo) = change::todo(changes) {
            return Ok(todo);
        }
        match (set, reboots) {
            (Next::Wait(message, until), _) if !planning(m) => Ok(Seen::Waiting { message: message.to_owned(), until }),
            (_, Reboots::Unsure(until)) if !planning(m) => {
                let message = format!(
                    "waits for the machine config operator to show in the status of MachineConfiguration cluster that a change of {} needs no reboot",
                    machines::CLOUD_CONFIG_FILE
                );
                Ok(Seen::Waiting { message, until: Some(until) })
            }
            (Next::Done(reason, message), reboots) => Ok(Seen::done(reason, format!("{message}; {}", held(m, &reboots)))),
            _ => Ok(Seen::waiting("is looked at again")),
        }
    }

    async fn observe_undo(&self, m: &Migration) -> Result<Seen<Change>, Stop> {
        if let Some(rolling) = rolling(m)? {
            return Ok(rolling);
        }
        let mut release = Release::of(m, KEYS.iter().copied())?;
        let (object, saved) = (m.get(CONTROL_PLANE_MACHINE_SET, NAMESPACE, "cluster"), saved_set(m)?);
        match (control_plane_set::back(object.as_deref(), saved.as_ref()), object, saved) {
            (Back::Update, Some(object), Some(saved)) => {
                let operations = json!([
                    {"op": "test", "path": "/metadata/resourceVersion", "value": object.metadata.resource_version},
                    {"op": "replace", "path": "/spec", "value": saved.spec},
                ]);
                let words = vec![format!("{SET_OBJECT}: spec as it was, state {}", saved.spec["state"])];
                release.changes.push(Change { act: Act::Patch(CONTROL_PLANE_MACHINE_SET, object, operations), words });
            }
            (Back::Create, _, Some(saved)) => {
                let body = json!({
                    "apiVersion": CONTROL_PLANE_MACHINE_SET.api_version(), "kind": CONTROL_PLANE_MACHINE_SET.kind,
                    "metadata": {"name": "cluster", "namespace": NAMESPACE, "labels": saved.labels, "annotations": saved.annotations},
                    "spec": saved.spec,
                });
                let words = vec![format!("{SET_OBJECT}: made as it was")];
                release.changes.push(Change { act: Act::Create(CONTROL_PLANE_MACHINE_SET, body), words });
            }
            (Back::Wait, _, _) if release.changes.is_empty() => {
                return Ok(Seen::waiting(format!("waits for the deleted {SET_OBJECT} to be gone, to put back what was saved")));
            }
            (Back::Conflict, _, _) => {
                release.conflicts.push(format!("{SET_OBJECT} is Active and not what was saved: somebody else made it so; left so"));
            }
            _ => {}
        }
        let todo = change::todo(std::mem::take(&mut release.changes));
        Ok(todo.unwrap_or_else(|| {
            release.undone("health checks, autoscaler, boot images, reboots and the control plane machine set are as they were")
        }))
    }

    async fn act(&self, _m: &Migration, act: Change, writer: &mut Writer<'_>) -> Result<(), Stop> {
        act.make(writer).await
    }
}

/// Whether nodes still take the cloud configuration over by the policy: without it the rest of them would be drained and rebooted.
pub fn rolling(m: &Migration) -> Result<Option<Seen<Change>>, Stop> {
    if Release::of(m, [POLICY])?.changes.is_empty() {
        return Ok(None);
    }
    let before = m.vmi.seen().baseline.as_ref().map(|baseline| baseline.pools.as_slice()).unwrap_or_default();
    let rolling = machines::rolling(&m.list(MACHINE_CONFIG_POOL, ""), before);
    let message = || format!("waits for the MachineConfigPools {} to be updated while no node has to reboot for it", rolling.join(", "));
    Ok((!rolling.is_empty()).then(|| Seen::waiting(message())))
}

/// What is left to be changed until everything is held whose way of being held is not in doubt.
pub fn changes(m: &Migration) -> Result<Vec<Change>, Stop> {
    let configuration = m.get(MACHINE_CONFIGURATION, "", "cluster");
    let configuration = configuration.as_deref();
    // The policy first: others need a while to take note of it.
    let mut all = ledger::take(m, POLICY, || configuration.and_then(machines::no_reboot).into_iter().collect())?;
    all.extend(ledger::take(m, BOOT_IMAGES, || {
        configuration.and_then(|configuration| machines::boot_images(configuration).ok().flatten()).into_iter().collect()
    })?);
    all.extend(ledger::take(m, HEALTH_CHECKS, || machines::health_checks(&m.list(MACHINE_HEALTH_CHECK, NAMESPACE)))?);
    let autoscaler = m.get(CLUSTER_AUTOSCALER, "", "default");
    all.extend(ledger::take(m, AUTOSCALER, || autoscaler.and_then(|autoscaler| machines::autoscaler(&autoscaler)).into_iter().collect())?);
    Ok(all)
}

/// How reboots are held. Once the pools are, they stay so.
fn reboots(m: &Migration) -> Result<Reboots, Stop> {
    if ledger::saved(m, POOLS)?.is_some() {
        return Ok(Reboots::ByPools);
    }
    let now = Timestamp::now();
    // Where the policy was there before us nothing was saved, and the step's own beginning counts.
    let began = m.vmi.step(StepName::ControlPlaneSetSaved).and_then(|step| step.started_at.as_ref()).map_or(now, |time| time.0);
    let asked = ledger::saved(m, POLICY)?.map_or(began, |ledger| ledger.saved_at);
    Ok(machines::reboots(m.get(MACHINE_CONFIGURATION, "", "cluster").as_deref(), asked, now))
}

/// What to do with the control plane machine set. In Keep it is left alone unless the control plane is named.
fn set(m: &Migration) -> Result<Next, Stop> {
    if !m.vmi.request().asks_for(ControlPlaneReady.step()) {
        return Ok(Next::Done("LeftAlone", "the control plane machine set is left alone: the vmi does not name the control plane"));
    }
    let gone = m.saved(SET_GONE).and_then(|time| serde_json::from_value(time).ok());
    let machines = m.list(MACHINE, NAMESPACE);
    let master = |machine: &&std::sync::Arc<kube::api::DynamicObject>| {
        machine.labels().get("machine.openshift.io/cluster-api-machine-role").is_some_and(|role| role == "master")
    };
    let masters: Vec<&Value> = machines.iter().filter(master).map(|machine| &machine.data["spec"]["providerSpec"]["value"]).collect();
    let infrastructure = m.infrastructure();
    let spec = infrastructure.as_ref().map_or(&Value::Null, |infrastructure| &infrastructure.data["spec"]);
    let generated = control_plane_set::can_be_generated(&masters, spec);
    let object = m.get(CONTROL_PLANE_MACHINE_SET, NAMESPACE, "cluster");
    Ok(control_plane_set::next(object.as_deref(), saved_set(m)?.as_ref(), gone, generated, Timestamp::now()))
}

fn saved_set(m: &Migration) -> Result<Option<Saved>, Stop> {
    let Some(value) = m.saved(SET) else { return Ok(None) };
    serde_json::from_value(value).map(Some).map_err(|error| {
        let secret = format!("{}/{}", m.cx.namespace, vmi_steps::saved::secret_name(&m.name()));
        let text = format!("key {SET} of Secret {secret}, which holds the control plane machine set, cannot be read: {error}");
        failure("FRZ-005", text, "was it edited, or written by another release? put back what it was, then resume").into()
    })
}

fn set_change(m: &Migration, next: &Next) -> Option<Change> {
    let object = m.get(CONTROL_PLANE_MACHINE_SET, NAMESPACE, "cluster");
    let (act, words) = match next {
        Next::Save(saved) => {
            let rolls = saved.spec["state"] == "Active";
            let words = rolls.then(|| format!("{SET_OBJECT}: saved and deleted")).into_iter().collect();
            (Act::Save(SET.to_owned(), json!(saved)), words)
        }
        Next::Delete => (Act::Delete(CONTROL_PLANE_MACHINE_SET, object?), vec![format!("{SET_OBJECT}: deleted")]),
        Next::NoteGone => (Act::Save(SET_GONE.to_owned(), json!(Timestamp::now())), Vec::new()),
        Next::Wait(..) | Next::Done(..) => return None,
    };
    Some(Change { act, words })
}

/// What is held how, for the condition's message.
fn held(m: &Migration, reboots: &Reboots) -> String {
    let reboots = match reboots {
        Reboots::ByPools if m.cx.cache.serves(MACHINE_CONFIG_POOL) => "reboots are held by paused machine config pools",
        Reboots::ByPools => "the machine config operator is not installed, so nothing reboots nodes",
        Reboots::ByPolicy | Reboots::Unsure(_) => "reboots are held by the node disruption policy",
    };
    let boot_images = m.get(MACHINE_CONFIGURATION, "", "cluster").and_then(|configuration| machines::boot_images(&configuration).err());
    boot_images.map_or_else(|| reboots.to_owned(), |why| format!("{reboots}; {why}"))
}
