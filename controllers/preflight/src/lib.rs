//! Preflight, step 0: looks at everything before anything is changed, and starts the migration.
//!
//! Consumes: the spec; the changes the other controllers plan (`steps[].changes`, once their `observedGeneration` is current).
//! Produces: condition PreflightPassed, `status.plan` (checks, path, hash; removalHash once SourceWorkersRemoved is True and approval is
//! Manual), `status.baseline` at the start, ConfigMap `vmi-NAME-plan`.
//! Touches: [`Preflight::TOUCHES`]; it writes the plan's ConfigMap and the Lease `vmi-active`, and tries Infrastructure by dry runs.
//! Undo: none, it changes nothing.
//! Gives up: never. What blocks is looked at again when it may have changed; True latches.

#![deny(missing_docs)]

mod baseline;
mod checks;
mod facts;
mod gather;
mod objects;
mod page;
mod plan;
mod publish;
mod requests;
mod start;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::json;
use vmi_crds::graph::{Controller as Name, StepName};
use vmi_crds::spec::{Approval, State};
use vmi_crds::status::{Plan, StepState};
use vmi_crds::turn::turn;
use vmi_kit::kind::{
    CLUSTER_CSI_DRIVER, CLUSTER_OPERATOR, CLUSTER_VERSION, CONFIG_MAP, CONTROL_PLANE_MACHINE_SET, CRD, CREDENTIALS_REQUEST, DAEMON_SET,
    DEPLOYMENT, INFRASTRUCTURE, LEASE, MACHINE, MACHINE_CONFIG_POOL, MACHINE_SET, NODE, PERSISTENT_VOLUME, SECRET,
};
use vmi_kit::{OWN, Stop, Touch, reads};
use vmi_site::vcenter::{MACHINE_API_SECRET, ROOT_SECRET, TRUST_BUNDLE};
use vmi_steps::{Controller, Migration, Report, Wake, Writer, active};

use checks::Judged;
use facts::Looked;
use gather::{CSI_DRIVER, CSI_NODES, MACHINES, VERSION_OPERATOR};
pub use page::checks as page_of_checks;
use start::{Question, Verdict};

const STEP: StepName = StepName::PreflightPassed;
/// Nothing tells of changes in a vCenter: it is looked at again after this long,
const FRESH: Duration = Duration::from_secs(600);
/// or after this long while what is asked of it keeps the migration from starting, or it is about to start.
const FRESH_AT_THE_START: Duration = Duration::from_secs(60);
/// What the apiserver did not tell, or a right that it denied, is asked for again after this long.
const AGAIN: Duration = Duration::from_secs(5);
/// Checks that judge what had to be asked for.
const ASKED_FOR: &[&str] = &["CLK", "PRV", "PTH", "SRC", "TAG", "TLS", "TOP", "VCT", "VER", "VOL"];

/// Looks at everything before anything is changed, and starts the migration.
#[derive(Default)]
pub struct Preflight {
    remembered: Mutex<BTreeMap<String, Remembered>>,
}

/// What was asked for, until it may have changed.
struct Remembered {
    key: String,
    at: Instant,
    /// When the apiserver was asked; it may have been asked again since.
    asked_at: Instant,
    blocked: bool,
    looked: Arc<Looked>,
}

impl Remembered {
    fn age_left(&self, state: State) -> Option<Duration> {
        let fresh = if self.blocked || state == State::Running { FRESH_AT_THE_START } else { FRESH };
        fresh.checked_sub(self.at.elapsed())
    }

    /// Until when what the apiserver said is good for.
    fn asked_left(&self) -> Option<Duration> {
        if self.looked.asked.lacks() { AGAIN.checked_sub(self.asked_at.elapsed()) } else { Some(Duration::MAX) }
    }
}

impl Controller for Preflight {
    const NAME: Name = Name::Preflight;
    const FIELDS: &'static [&'static str] = &["plan", "baseline"];
    const TOUCHES: &'static [Touch] = &[
        // Tried by dry runs, never changed.
        reads(INFRASTRUCTURE).named("cluster").writes(&["update"]),
        reads(CLUSTER_VERSION).named("version"),
        reads(CLUSTER_OPERATOR),
        reads(MACHINE_CONFIG_POOL),
        reads(CLUSTER_CSI_DRIVER).named(CSI_DRIVER),
        reads(DEPLOYMENT).within(VERSION_OPERATOR.0).named(VERSION_OPERATOR.1),
        reads(MACHINE).within(MACHINES),
        reads(MACHINE_SET).within(MACHINES),
        reads(CONTROL_PLANE_MACHINE_SET).within(MACHINES),
        reads(NODE),
        reads(DAEMON_SET).within(CSI_NODES.0).named(CSI_NODES.1),
        reads(CREDENTIALS_REQUEST),
        reads(PERSISTENT_VOLUME).unwatched(),
        reads(CRD).named("infrastructures.config.openshift.io").unwatched(),
        reads(CRD).named("controllerconfigs.machineconfiguration.openshift.io").unwatched(),
        reads(CONFIG_MAP).within("openshift-config"),
        reads(CONFIG_MAP).within(TRUST_BUNDLE.0).named(TRUST_BUNDLE.1),
        reads(CONFIG_MAP).within(OWN).writes(&["create", "update"]),
        reads(SECRET).within(ROOT_SECRET.0).named(ROOT_SECRET.1),
        reads(SECRET).within(MACHINE_API_SECRET.0).named(MACHINE_API_SECRET.1),
        reads(SECRET).within(OWN),
        // Watched, so that the next migration starts as soon as the last one gives it back.
        reads(LEASE).within(OWN).named(active::NAME).writes(&["create", "delete"]),
    ];

    async fn reconcile(&self, m: &Migration, report: &mut Report) -> Result<Wake, Stop> {
        let latched = report.condition_is(STEP.as_str(), "True") || m.vmi.seen().started_at.is_some();
        if latched || m.vmi.over() || m.spec().state == State::Abandoned {
            self.remembered().remove(&m.uid());
            rest(m, report);
            return plan_removal(m, report).await.map(|()| None);
        }
        if report.reason(STEP.as_str()).is_none() {
            let message = "the checks are being made";
            report.step(STEP).message = message.to_owned();
            report.condition(STEP.as_str(), "False", "ChecksRunning", message);
            report.apply(&m.cx).await?;
        }
        let looked = self.look(m, report).await?;
        let facts = gather::facts(m, looked);
        let judged = checks::judge(&facts);
        let wake = self.judged(m, &judged);
        let verdict = planned(m, report, &facts, &judged).await?;
        conclude(m, report, &facts, verdict).await?;
        Ok(wake)
    }
}

impl Preflight {
    fn remembered(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Remembered>> {
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What had to be asked for: as remembered while it is fresh, else asked for again.
    async fn look(&self, m: &Migration, report: &mut Report) -> Result<Arc<Looked>, Stop> {
        let key = gather::key(m);
        let fresh = |known: &&Remembered| known.key == key && known.age_left(m.spec().state).is_some();
        let known =
            self.remembered().get(&m.uid()).filter(fresh).map(|known| (Arc::clone(&known.looked), known.at, known.asked_left().is_some()));
        let (looked, at) = match known {
            Some((looked, _, true)) => return Ok(looked),
            // The vCenters have said all they were asked for.
            Some((looked, at, false)) => (Looked { asked: gather::ask(m).await, vcenters: Arc::clone(&looked.vcenters) }, at),
            None => (gather::look(m, report).await?, Instant::now()),
        };
        let looked = Arc::new(looked);
        let known = Remembered { key, at, asked_at: Instant::now(), blocked: false, looked: Arc::clone(&looked) };
        self.remembered().insert(m.uid(), known);
        Ok(looked)
    }

    /// Notes whether what was asked for blocks, and says when it is to be asked for again.
    fn judged(&self, m: &Migration, judged: &[Judged]) -> Wake {
        let mut remembered = self.remembered();
        let known = remembered.get_mut(&m.uid())?;
        known.blocked = plan::blocking(judged).iter().any(|id| ASKED_FOR.iter().any(|theme| id.starts_with(theme)));
        let left = known.age_left(m.spec().state).unwrap_or_default().min(known.asked_left().unwrap_or_default());
        Timestamp::now().checked_add(jiff::SignedDuration::try_from(left).ok()?).ok()
    }
}

/// Writes the plan, and says whether the migration starts.
async fn planned(m: &Migration, report: &mut Report, facts: &facts::Facts, judged: &[Judged]) -> Result<Verdict, Stop> {
    // A path that could not be looked at is still the one that was chosen before, and PTH-001 blocks.
    let (path, path_reason) = match &facts.looked.asked.path {
        Ok(chosen) => (chosen.path, chosen.reason.clone()),
        Err(why) => (m.path(), format!("could not be looked at: {why}")),
    };
    let changes = plan::changes(&m.vmi);
    let mut unplanned = plan::unplanned(&m.vmi);
    if m.path() != path {
        // The others plan by the path, and do not know this one yet.
        unplanned.push("the path was chosen just now".to_owned());
    }
    let hash = unplanned.is_empty().then(|| plan::hash(&changes));
    let blocking = plan::blocking(judged);
    let written = Plan {
        hash: hash.clone(),
        removal_hash: None,
        path,
        path_reason: Some(vmi_kit::text::cut(&path_reason, 1024)),
        checks: judged.iter().map(Judged::reported).collect(),
        blocking: blocking.clone(),
    };
    report.set("plan", json!(written));
    let text = plan::text(judged, path, &path_reason, hash.as_deref(), &changes);
    let drift = publish::publish(m, STEP, &text, hash.as_deref(), &changes).await?;
    if !drift.since_last.is_empty() {
        report.log(STEP, &format!("the plan changed: {}", drift.since_last.join("; ")));
    }
    let worded: Vec<String> = judged
        .iter()
        .filter(|one| blocking.iter().any(|id| id == one.id))
        .map(|one| format!("{}: {}", one.id, one.lines.join(", ")))
        .collect();
    let place = format!("ConfigMap {}/{}", m.cx.namespace, publish::name(m));
    Ok(start::decide(&Question {
        state: m.spec().state,
        deleted: m.vmi.metadata.deletion_timestamp.is_some(),
        blocking: &worded,
        unplanned: &unplanned,
        approval: m.spec().approval,
        approved: m.spec().approved_plan.as_deref(),
        hash: hash.as_deref().unwrap_or_default(),
        drift: &drift.since_approved,
        plan: &place,
    }))
}

async fn conclude(m: &Migration, report: &mut Report, facts: &facts::Facts, verdict: Verdict) -> Result<(), Stop> {
    let (reason, message) = match verdict {
        Verdict::Not { reason, message } => (reason, message),
        Verdict::Start => match start(m).await? {
            Ok(()) => {
                passed(m, report, facts);
                return Ok(());
            }
            Err(holder) => ("AnotherMigrationActive", format!("every check passed; waits for the migration {holder}, which has not ended")),
        },
    };
    let running = m.spec().state == State::Running;
    let entry = report.step(STEP);
    entry.state = if running { StepState::Active } else { StepState::Waiting };
    if running && entry.started_at.is_none() {
        entry.started_at = Some(Report::now());
        entry.attempts = 1;
    }
    entry.failure = None;
    entry.message = vmi_kit::text::cut(&message, 1024);
    if report.reason(STEP.as_str()) != Some(reason) {
        report.log(STEP, &format!("{reason}: {message}"));
        if reason != "ChecksRunning" {
            m.cx.event(&m.vmi, STEP, reason, &message, reason == "Blocked");
        }
    }
    report.condition(STEP.as_str(), "False", reason, &message);
    Ok(())
}

/// Takes the Lease, or says whose it is.
async fn start(m: &Migration) -> Result<Result<(), String>, Stop> {
    let _writing = Writer::new(m, STEP, turn(&m.vmi, STEP)).fence().await?;
    let (client, namespace) = (&m.cx.client, m.cx.namespace.as_str());
    let holder = match active::take(client, namespace, &m.uid()).await? {
        Ok(()) => return Ok(Ok(())),
        Err(holder) => holder,
    };
    let api: kube::Api<vmi_crds::VSphereMigrationInfra> = kube::Api::namespaced(client.clone(), namespace);
    let all = api.list(&kube::api::ListParams::default()).await?;
    let known = all.items.iter().find(|vmi| vmi.metadata.uid.as_deref() == Some(holder.as_str()));
    if let Some(vmi) = known {
        return Ok(Err(vmi.metadata.name.clone().unwrap_or_default()));
    }
    // Whose it was is gone, and what it may have saved blocks by itself.
    active::release(client, namespace, &holder).await?;
    Err(Stop::again(format!("released the Lease {} of a migration that is gone (UID {holder})", active::NAME)))
}

fn passed(m: &Migration, report: &mut Report, facts: &facts::Facts) {
    report.set("baseline", json!(baseline::baseline(&facts.cluster)));
    let message = format!("every check passed, and the migration started on the {} path", path_name(facts));
    let entry = report.step(STEP);
    let now = Report::now();
    entry.state = StepState::Done;
    entry.attempts = entry.attempts.max(1);
    entry.started_at.get_or_insert(now.clone());
    entry.finished_at = Some(now);
    entry.failure = None;
    entry.message.clone_from(&message);
    report.log(STEP, &message);
    report.condition(STEP.as_str(), "True", "Passed", &message);
    m.cx.event(&m.vmi, STEP, "Passed", &message, false);
}

fn path_name(facts: &facts::Facts) -> String {
    let chosen = facts.looked.asked.path.as_ref().ok();
    chosen.and_then(|chosen| chosen.path).map(|path| format!("{path:?}").to_lowercase()).unwrap_or_default()
}

/// Before the source is taken away the plan of that has to be approved too, by a hash of its own.
async fn plan_removal(m: &Migration, report: &mut Report) -> Result<(), Stop> {
    let due = m.spec().approval == Approval::Manual
        && m.vmi.is_true(StepName::SourceWorkersRemoved.as_str())
        && m.vmi.seen().one_way_at.is_none()
        && !m.vmi.over();
    let Some(mut plan) = report.field("plan").filter(|_| due).cloned() else { return Ok(()) };
    let changes = plan::removal(&m.vmi);
    let hash = plan::hash(&changes);
    publish::publish_removal(m, STEP, &hash, &changes).await?;
    plan["removalHash"] = json!(hash);
    report.set("plan", plan);
    Ok(())
}

/// A spec edit only restamps what is done.
fn rest(m: &Migration, report: &mut Report) {
    let Some(condition) = m.vmi.condition(STEP.as_str()) else { return };
    report.step(STEP);
    // A cached vmi may be older than what this process has reported.
    if report.condition_is(STEP.as_str(), &condition.status) {
        report.condition(STEP.as_str(), &condition.status, &condition.reason, &condition.message);
    }
}
