//! The sole writer of what sums a migration up: when it started, where it stands, whether it is over.
//!
//! Consumes: every condition and step of the vmi, Infrastructure (the sources, once), MachineConfigPools (Completed).
//! Produces: Progressing, Degraded, Paused, Completed, RolledBack, Abandoned; summary, source, startedAt, oneWayAt, rollingBackAt, failure.
//! Touches: the vmi's finalizer, the Lease vmi-active and the saved Secret, all in its own namespace.
//! Undo: nothing to undo. Gives up: never; it only tells.

use jiff::Timestamp;
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use vmi_crds::graph::{self, StepName};
use vmi_crds::spec::{SourceRetirement, State};
use vmi_crds::turn::{rolling_back, undone};
use vmi_crds::{VSphereMigrationInfra, safety};
use vmi_kit::failure::overtaken;
use vmi_kit::kind::{INFRASTRUCTURE, LEASE, MACHINE_CONFIG_POOL, SECRET};
use vmi_kit::{OWN, Stop, Touch, reads};
use vmi_steps::{Controller, Migration, Report, Wake, active, saved, writes};

use super::words;

/// Keeps a vmi from being deleted while the cluster is neither here nor there.
const FINALIZER: &str = "config.openshift.io/vmi";

/// Sums up.
pub struct Summary;

impl Controller for Summary {
    const NAME: graph::Controller = graph::Controller::Summary;
    const TOUCHES: &'static [Touch] = &[
        reads(INFRASTRUCTURE).named("cluster"),
        reads(MACHINE_CONFIG_POOL),
        reads(LEASE).within(OWN).named(active::NAME),
        reads(SECRET).within(OWN).writes(&["patch"]),
    ];
    const FIELDS: &'static [&'static str] =
        &["summary", "source", "startedAt", "oneWayAt", "rollingBackAt", "failure", "graphVersion", "observedGeneration"];

    async fn reconcile(&self, m: &Migration, report: &mut Report) -> Result<Wake, Stop> {
        let vmi = m.vmi.as_ref();
        hold_on(m).await?;
        mark_times(m, report);
        let outcome = outcome(m);
        conditions(m, report, &outcome);
        let (state, safe) = safety::cluster_state(vmi);
        let (step, done, all) = words::progress(vmi);
        report.set(
            "summary",
            json!({
                "step": step, "progress": format!("{done}/{all}"), "safeToStop": safe,
                "source": m.sources().join(","), "target": m.targets().join(","),
            }),
        );
        report.set("observedGeneration", json!(vmi.metadata.generation));
        match words::first_failure(vmi) {
            Some(failure) => report.set("failure", json!(failure)),
            None => report.unset("failure"),
        }
        tracing::trace!(state, "summed up");
        if outcome.over() || deleted_before_the_start(vmi) {
            // First everybody has to see that it is over.
            report.apply(&m.cx).await?;
            let_go(m).await?;
        }
        Ok(None)
    }
}

/// How a migration ended, if it did.
struct Outcome {
    completed: Result<String, String>,
    rolled_back: Result<String, String>,
    abandoned: Option<String>,
}

impl Outcome {
    fn over(&self) -> bool {
        self.completed.is_ok() || self.rolled_back.is_ok() || self.abandoned.is_some()
    }
}

fn outcome(m: &Migration) -> Outcome {
    let vmi = m.vmi.as_ref();
    let abandoned =
        (vmi.spec.state == State::Abandoned).then(|| words::left_behind(vmi, |step| vmi_cluster_freeze::by_hand::release(m, step)));
    Outcome { completed: completed(m), rolled_back: rolled_back(vmi), abandoned }
}

fn completed(m: &Migration) -> Result<String, String> {
    if m.vmi.is_true("Completed") {
        return Ok("the cluster has the target, and every hold is released".to_owned());
    }
    if !m.vmi.is_true(StepName::ClusterThawed.as_str()) {
        return Err(format!("{} is not done", StepName::ClusterThawed));
    }
    let updated = |pool: &&std::sync::Arc<kube::api::DynamicObject>| {
        let conditions = pool.data["status"]["conditions"].as_array();
        conditions.into_iter().flatten().any(|condition| condition["type"] == "Updated" && condition["status"] == "True")
    };
    let pools = m.list(MACHINE_CONFIG_POOL, "");
    let late: Vec<String> = pools.iter().filter(|pool| !updated(pool)).map(|pool| pool.name_any()).collect();
    if late.is_empty() {
        Ok("the cluster has the target, and every hold is released".to_owned())
    } else {
        Err(format!("waits for the MachineConfigPools {} to be updated", late.join(", ")))
    }
}

fn rolled_back(vmi: &VSphereMigrationInfra) -> Result<String, String> {
    if vmi.is_true("RolledBack") {
        return Ok("everything that was changed has been taken back".to_owned());
    }
    if !rolling_back(vmi) {
        return Err("the migration does not go back".to_owned());
    }
    let left: Vec<&str> = vmi
        .request()
        .steps()
        .filter(|step| step.name.undo_rank().is_some() && !undone(vmi, step.name))
        .map(|step| step.name.as_str())
        .collect();
    if left.is_empty() {
        Ok("everything that was changed has been taken back".to_owned())
    } else {
        Err(format!("still to be undone: {}", left.join(", ")))
    }
}

fn conditions(m: &Migration, report: &mut Report, outcome: &Outcome) {
    let vmi = m.vmi.as_ref();
    let is = |truth: bool| if truth { "True" } else { "False" };
    let told = |result: &Result<String, String>| result.clone().unwrap_or_else(|why| why);
    report.condition(
        "Completed",
        is(outcome.completed.is_ok()),
        if outcome.completed.is_ok() { "Done" } else { "NotYet" },
        &told(&outcome.completed),
    );
    let reason = if outcome.rolled_back.is_ok() {
        "Done"
    } else if rolling_back(vmi) {
        "InProgress"
    } else {
        "NotAsked"
    };
    report.condition("RolledBack", is(outcome.rolled_back.is_ok()), reason, &told(&outcome.rolled_back));
    let abandoned = outcome.abandoned.as_deref();
    report.condition(
        "Abandoned",
        is(abandoned.is_some()),
        if abandoned.is_some() { "Abandoned" } else { "NotAsked" },
        abandoned.unwrap_or("the migration was not abandoned"),
    );
    let paused = vmi.spec.state == State::Paused;
    let text = if paused {
        "spec.state is Paused: nothing is changed until it is Running or RollingBack again"
    } else {
        "the migration is not paused"
    };
    report.condition("Paused", is(paused), if paused { "Asked" } else { "NotAsked" }, text);
    let (status, reason, message) = words::degraded(vmi);
    report.condition("Degraded", status, &reason, &message);
    let (status, reason, message) = progressing(m, outcome);
    report.condition("Progressing", status, reason, &message);
}

fn progressing(m: &Migration, outcome: &Outcome) -> (&'static str, &'static str, String) {
    let vmi = m.vmi.as_ref();
    if outcome.over() {
        return ("False", "Over", "the migration is over".to_owned());
    }
    let holder = m.get(LEASE, &m.cx.namespace, active::NAME);
    let other = holder.as_ref().and_then(|lease| lease.data["spec"]["holderIdentity"].as_str()).filter(|uid| *uid != m.uid());
    match vmi.spec.state {
        State::Pending => ("False", "Pending", "spec.state is Pending: checked and planned, nothing is changed".to_owned()),
        State::Paused => ("False", "Paused", "spec.state is Paused".to_owned()),
        _ if vmi.seen().started_at.is_none() && other.is_some() => {
            let name = m.cx.vmis().iter().find(|vmi| vmi.uid().as_deref() == other).map(|vmi| vmi.name_any());
            ("False", "AnotherMigrationActive", format!("waits for the migration {} to end", name.as_deref().or(other).unwrap_or_default()))
        }
        _ if words::first_failure(vmi).is_some() => ("False", "Failed", "a step has failed: see Degraded".to_owned()),
        State::RollingBack => ("True", "RollingBack", words::progress(vmi).0),
        _ => ("True", "Running", words::progress(vmi).0),
    }
}

/// Writes down the moments that are written once.
fn mark_times(m: &Migration, report: &mut Report) {
    let vmi = m.vmi.as_ref();
    let now = || json!(Timestamp::from_second(Timestamp::now().as_second()).unwrap_or_default());
    if report.field("startedAt").is_none() && vmi.is_true(StepName::PreflightPassed.as_str()) {
        report.set("startedAt", now());
        report.set("source", json!({"servers": m.sources()}));
        report.set("graphVersion", json!(graph::VERSION));
    }
    if report.field("rollingBackAt").is_none() && vmi.spec.state == State::RollingBack && vmi.seen().started_at.is_some() {
        report.set("rollingBackAt", now());
    }
    // Written by this process, which did not hear of it, or by one before: what is left out of a report is deleted.
    if report.field("oneWayAt").is_none()
        && let Some(at) = &vmi.seen().one_way_at
    {
        report.set("oneWayAt", json!(at));
    }
    // The door: only if nobody has asked for the way back since this version of the vmi was read.
    let ready =
        |name: StepName| vmi.condition(name.as_str()).is_some_and(|condition| condition.status == "False" && condition.reason == "Ready");
    let door = if vmi.spec.source_retirement == SourceRetirement::Keep { StepName::ClusterThawed } else { StepName::SourceDetached };
    let held = door == StepName::SourceDetached && vmi.is_true("Held");
    if report.field("oneWayAt").is_none() && ready(door) && !held && vmi.spec.state == State::Running && !rolling_back(vmi) {
        report.set("oneWayAt", now());
        report.only_at(vmi.resource_version());
    }
}

/// From the moment it is to run, a vmi cannot vanish: what it holds would stay held.
async fn hold_on(m: &Migration) -> Result<(), Stop> {
    let vmi = m.vmi.as_ref();
    let wanted = vmi.spec.state == State::Running && !vmi.over() && vmi.metadata.deletion_timestamp.is_none();
    if wanted && !vmi.finalizers().iter().any(|finalizer| finalizer == FINALIZER) {
        let mut all = vmi.finalizers().to_vec();
        all.push(FINALIZER.to_owned());
        set_finalizers(m, &all).await?;
    }
    Ok(())
}

/// Whether the vmi was deleted while it still waited to start: it never will, and holds nothing.
fn deleted_before_the_start(vmi: &VSphereMigrationInfra) -> bool {
    let started = vmi.seen().started_at.is_some() || vmi.is_true(StepName::PreflightPassed.as_str());
    vmi.metadata.deletion_timestamp.is_some() && !started
}

/// Lets go of everything that only a migration that runs needs.
async fn let_go(m: &Migration) -> Result<(), Stop> {
    let _writing = m.cx.vcenters.trials().write(Vec::new()).await;
    let vmi = m.vmi.as_ref();
    let lease = m.get(LEASE, &m.cx.namespace, active::NAME);
    if lease.is_some_and(|lease| lease.data["spec"]["holderIdentity"] == m.uid().as_str()) {
        active::release(&m.cx.client, &m.cx.namespace, &m.uid()).await?;
    }
    let name = saved::secret_name(&m.name());
    let secret = m.get(SECRET, &m.cx.namespace, &name);
    if secret.is_some_and(|secret| saved::unfinished_owner(&secret) == Some(m.uid().as_str())) {
        let patch = json!({"metadata": {"annotations": {saved::FINISHED: "true"}}});
        SECRET.api(&m.cx.client, &m.cx.namespace).patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        writes::counted();
    }
    if vmi.finalizers().iter().any(|finalizer| finalizer == FINALIZER) {
        let rest: Vec<String> = vmi.finalizers().iter().filter(|finalizer| *finalizer != FINALIZER).cloned().collect();
        set_finalizers(m, &rest).await?;
    }
    Ok(())
}

async fn set_finalizers(m: &Migration, finalizers: &[String]) -> Result<(), Stop> {
    let _writing = m.cx.vcenters.trials().write(Vec::new()).await;
    // Not bound to the vmi's version: at the start all controllers report at once, and each report makes another one.
    let patch = serde_json::from_value(json!([
        {"op": "test", "path": "/metadata/uid", "value": m.uid()},
        {"op": "test", "path": "/metadata/finalizers", "value": m.vmi.metadata.finalizers},
        {"op": "add", "path": "/metadata/finalizers", "value": finalizers},
    ]));
    let patch: json_patch::Patch = patch.map_err(|error| Stop::again(format!("a patch that cannot be written: {error}")))?;
    let api = kube::Api::<VSphereMigrationInfra>::namespaced(m.cx.client.clone(), &m.cx.namespace);
    match api.patch(&m.name(), &PatchParams::default(), &Patch::Json::<()>(patch)).await {
        Ok(_) => {
            writes::counted();
            Ok(())
        }
        // Somebody wrote meanwhile: that wakes us again.
        Err(kube::Error::Api(answer)) if answer.code == 404 || overtaken(&answer) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
