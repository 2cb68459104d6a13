//! Step 7: the target's vCenters and failure domains in Infrastructure, together and after the source's, and the machine config
//! operator's copy of them.

mod extend;
mod remnant;
mod retract;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use kube::api::DynamicObject;
use serde_json::Value;
use vmi_crds::graph::{SOURCE_KEPT, StepName};
use vmi_crds::status::Failure;
use vmi_kit::failure::look;
use vmi_kit::kind::{CONTROL_PLANE_MACHINE_SET, INFRASTRUCTURE};
use vmi_kit::{Stop, failure};
use vmi_site::followers;
use vmi_site::source::{MACHINES, Source};
use vmi_steps::{Migration, Seen, Step, Writer};

use self::extend::{Extended, Wanted, extend};
use self::retract::{Retracted, Saved, retract};
use crate::cloud_config::CloudConfigExtended;

const SAVED: &str = "infrastructure";
const SET: &str = "ControlPlaneMachineSet openshift-machine-api/cluster";
/// How the API says that a list which was not there takes one vCenter at first.
const ONE_AT_FIRST: &str = "vcenters can have at most 1 item when configured post-install";
/// How the policies say that a machine, a set or the control plane's set still names a failure domain.
const IN_USE: &str = "still in use";

/// Step 7.
pub struct InfrastructureExtended;

/// One change of Infrastructure.
pub enum Act {
    /// Adds the target.
    Extend {
        /// As it is.
        infrastructure: Arc<DynamicObject>,
        /// What is asked for.
        wanted: Box<Wanted>,
        /// What it becomes.
        extended: Box<Extended>,
    },
    /// Takes the target away.
    Retract {
        /// As it is.
        infrastructure: Arc<DynamicObject>,
        /// What it becomes.
        spec: Value,
        /// What it becomes where that is forbidden.
        source_kept: Option<Value>,
    },
    /// Deletes the control plane machine set that was made of the source's description.
    Forget(Arc<DynamicObject>),
}

impl Step for InfrastructureExtended {
    const NAME: StepName = StepName::InfrastructureExtended;
    type Act = Act;

    async fn observe(&self, m: &Migration) -> Result<Seen<Act>, Stop> {
        let infrastructure = current(m)?;
        let spec = &infrastructure.data["spec"];
        let wanted = wanted(m, spec)?;
        let extended = extend(spec, &wanted).map_err(|unfit| {
            let next = "make Infrastructure and the vmi say the same, or write a vmi that asks for something else";
            shown(failure("INF-001", format!("Infrastructure cluster cannot take the target: {unfit}"), next))
        })?;
        if let Some(extended) = extended {
            let changes = extended.changes.clone();
            return Ok(Seen::Todo { act: Act::Extend { infrastructure, wanted: Box::new(wanted), extended: Box::new(extended) }, changes });
        }
        Ok(match followers::together(vec![followers::controller_config(m, &infrastructure)]) {
            Err(behind) => Seen::waiting(format!("waits for {behind}")),
            Ok(missing) => Seen::done(self.ended(m), format!("Infrastructure lists {}{missing}", m.targets().join(", "))),
        })
    }

    async fn observe_undo(&self, m: &Migration) -> Result<Seen<Act>, Stop> {
        let servers = m.targets();
        let Some(saved) = m.saved(SAVED) else {
            return Ok(Seen::done("Undone", format!("Infrastructure was not changed for {}", servers.join(", "))));
        };
        let saved: Saved = serde_json::from_value(saved).map_err(|error| {
            let text = format!("what was saved of Infrastructure cannot be read: {error}");
            failure("INF-004", text, "take the target out of Infrastructure by hand, then set spec.state to Abandoned")
        })?;
        let infrastructure = current(m)?;
        let spec = &infrastructure.data["spec"];
        let Retracted { spec: next, source_kept, left, changes } = retract(spec, &saved, &given(m)?);
        if let Some(next) = next {
            return Ok(Seen::Todo { act: Act::Retract { infrastructure, spec: next, source_kept }, changes });
        }
        if let Some(remnant) = remnant(m, spec) {
            if remnant.metadata.deletion_timestamp.is_some() {
                return Ok(Seen::waiting(format!("waits for the deleted {SET} to be gone")));
            }
            let changes = vec![format!("{SET}: deleted, since it was made for failure domains that are gone")];
            return Ok(Seen::Todo { act: Act::Forget(remnant), changes });
        }
        let mut all = vec![followers::controller_config(m, &infrastructure)];
        all.extend(followers::copies_forgot(m, &named_nowhere(m, spec)));
        Ok(match followers::together(all) {
            Err(behind) => Seen::waiting(format!("waits for {behind}")),
            Ok(_) if !left.is_empty() => Seen::done("UndoneWithConflict", format!("in Infrastructure this stays: {}", left.join("; "))),
            Ok(_) if retract::source_stands(spec, &saved) => {
                Seen::done(SOURCE_KEPT, "Infrastructure describes the source, which it did not before; the API does not let that go")
            }
            Ok(missing) => Seen::done("Undone", format!("Infrastructure is as it was before {}{missing}", servers.join(", "))),
        })
    }

    async fn act(&self, _m: &Migration, act: Act, writer: &mut Writer<'_>) -> Result<(), Stop> {
        match act {
            Act::Extend { infrastructure, wanted, extended } => add(&infrastructure, &wanted, &extended, writer).await,
            Act::Retract { infrastructure, spec, source_kept } => take_away(&infrastructure, spec, source_kept, writer).await,
            Act::Forget(set) => {
                writer.delete(CONTROL_PLANE_MACHINE_SET, &set, &format!("delete {SET}, whose failure domains are gone")).await
            }
        }
    }

    fn drifted(&self, m: &Migration) -> Option<String> {
        let what = extend::lost(&m.infrastructure()?.data["spec"], &given(m).ok()?)?;
        Some(format!("{what} (oc get infrastructure cluster -o yaml)"))
    }

    fn ended(&self, m: &Migration) -> &'static str {
        if m.saved(SAVED).is_some() { "Extended" } else { "AlreadyThere" }
    }

    fn stuck(&self, _m: &Migration) -> Vec<String> {
        followers::look_at_controller_config().into_iter().chain(followers::look_at_copies()).collect()
    }
}

async fn add(infrastructure: &DynamicObject, wanted: &Wanted, extended: &Extended, writer: &mut Writer<'_>) -> Result<(), Stop> {
    let before = infrastructure.data["spec"]["platformSpec"]["vsphere"].clone();
    let saved = serde_json::to_value(Saved { before, source: wanted.source.clone() }).map_err(Stop::again)?;
    writer.save(SAVED, &saved).await?;
    let servers: Vec<&str> = wanted.vcenters.iter().map(extend::key).collect();
    let what = format!("add vCenters {} and their failure domains to Infrastructure cluster", servers.join(", "));
    let made = match writer.replace(INFRASTRUCTURE, with_spec(infrastructure, extended.spec.clone()), &what).await {
        Err(Stop::Failed(refused)) if refused.message.contains(ONE_AT_FIRST) => match &extended.source_only {
            // The target follows with the next look.
            Some(first) => {
                writer
                    .replace(INFRASTRUCTURE, with_spec(infrastructure, first.clone()), "describe the source in Infrastructure cluster")
                    .await?;
                return Ok(());
            }
            None => return Err(shown(*refused)),
        },
        Err(Stop::Failed(refused)) => return Err(shown(*refused)),
        made => made?,
    };
    match extend(&made.data["spec"], wanted) {
        Ok(None) => Ok(()),
        lost => {
            let why = lost.err().map_or_else(|| "a part of it is gone".to_owned(), |unfit| unfit.to_string());
            let text = format!("the apiserver did not keep what was written into Infrastructure cluster: {why}");
            Err(shown(failure("INF-003", text, "leave out of the vmi what this release's Infrastructure does not know")))
        }
    }
}

async fn take_away(infrastructure: &DynamicObject, spec: Value, kept: Option<Value>, writer: &mut Writer<'_>) -> Result<(), Stop> {
    let what = "take the target out of Infrastructure cluster";
    let mut outcome = writer.replace(INFRASTRUCTURE, with_spec(infrastructure, spec), what).await;
    if let (Err(Stop::Failed(_)), Some(kept)) = (&outcome, kept) {
        outcome = writer.replace(INFRASTRUCTURE, with_spec(infrastructure, kept), &format!("{what} and keep the source in it")).await;
    }
    match outcome {
        Ok(_) => Ok(()),
        // Whoever uses it may leave; a failure would have to be resumed by hand.
        Err(Stop::Failed(refused)) if refused.message.contains(IN_USE) => {
            Err(Stop::again(format!("waits for whoever uses the target's failure domains to leave: {}", refused.message)))
        }
        Err(Stop::Failed(refused)) => Err(shown(*refused)),
        Err(stop) => Err(stop),
    }
}

fn current(m: &Migration) -> Result<Arc<DynamicObject>, Stop> {
    m.infrastructure().ok_or_else(|| Stop::again("there is no Infrastructure cluster to be seen"))
}

/// The control plane machine set, where it is there only because of what Infrastructure said meanwhile.
fn remnant(m: &Migration, spec: &Value) -> Option<Arc<DynamicObject>> {
    let started = m.vmi.seen().started_at.as_ref().map(|time| time.0);
    m.get(CONTROL_PLANE_MACHINE_SET, MACHINES, "cluster").filter(|set| remnant::is_remnant(set, spec, started))
}

fn with_spec(infrastructure: &DynamicObject, spec: Value) -> DynamicObject {
    let mut next = infrastructure.clone();
    next.data["spec"] = spec;
    next
}

fn shown(found: Failure) -> Stop {
    look(found, ["oc get infrastructure cluster -o yaml".to_owned()]).into()
}

/// What the vmi asks for.
fn given(m: &Migration) -> Result<Wanted, Stop> {
    let spec = m.spec();
    let values = |list: Result<Value, serde_json::Error>| -> Result<Vec<Value>, Stop> {
        serde_json::from_value(list.map_err(Stop::again)?).map_err(Stop::again)
    };
    Ok(Wanted {
        vcenters: values(serde_json::to_value(&spec.vcenters))?,
        failure_domains: values(serde_json::to_value(&spec.failure_domains))?,
        node_networking: spec.node_networking.as_ref().map(serde_json::to_value).transpose().map_err(Stop::again)?,
        source: Source::default(),
    })
}

/// What the vmi asks for, and what Infrastructure lacks of the source.
fn wanted(m: &Migration, spec: &Value) -> Result<Wanted, Stop> {
    let mut wanted = given(m)?;
    wanted.source = Source::lacking(m, spec).map_err(|why| {
        let next = "describe the source in Infrastructure by hand: its vCenter and one failure domain, then resume";
        shown(failure("INF-002", format!("Infrastructure does not describe the source, and no machine tells: {why}"), next))
    })?;
    for vcenter in &mut wanted.source.vcenters {
        if let Some(port) = CloudConfigExtended::unusual_port(m, extend::key(vcenter)) {
            vcenter["port"] = port.into();
        }
    }
    Ok(wanted)
}

/// Targets that neither Infrastructure nor the cloud configuration names any more: nor may a copy of the two.
fn named_nowhere<'a>(m: &'a Migration, spec: &Value) -> Vec<&'a str> {
    let configured = CloudConfigExtended::servers(m);
    let listed = extend::items(spec, "vcenters");
    let named = |server: &str| configured.iter().any(|name| name == server) || listed.iter().any(|vcenter| vcenter["server"] == server);
    m.targets().into_iter().filter(|server| !named(server)).collect()
}
