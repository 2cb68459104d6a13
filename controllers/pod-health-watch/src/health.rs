//! When the new pods count as healthy: quiet for long enough, and with signs that they do their work.

use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use kube::api::DynamicObject;
use vmi_crds::status::Failure;
use vmi_kit::failure::{failure, look};

use crate::cluster::Worse;
use crate::ledger::{Ledger, Read, Run, Source, Unknown};
use crate::rules::Catalogue;
use crate::trouble;
use crate::view::{PodView, View, time};
use crate::workloads::{CLOUD_CONTROLLER_MANAGER, PROBLEM_DETECTOR};

/// A Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseView {
    /// Its name.
    pub name: String,
    /// Since when its holder has had it; none without a holder.
    pub acquired: Option<Timestamp>,
    /// When it runs out.
    pub expires: Option<Timestamp>,
}

impl LeaseView {
    /// Reads a Lease.
    pub fn of(lease: &DynamicObject) -> Self {
        let spec = &lease.data["spec"];
        let held = spec["holderIdentity"].as_str().is_some_and(|holder| !holder.is_empty());
        let lasts = SignedDuration::from_secs(spec["leaseDurationSeconds"].as_i64().unwrap_or_default());
        let expires = time(&spec["renewTime"]).and_then(|renewed| renewed.checked_add(lasts).ok());
        Self { name: lease.name_any(), acquired: time(&spec["acquireTime"]).filter(|_| held), expires }
    }
}

/// All that is looked at.
pub struct Facts<'a> {
    /// When the pods that had to go were written down.
    pub restarted: Timestamp,
    /// The workloads.
    pub views: &'a [View],
    /// Leases of their namespaces.
    pub leases: &'a [LeaseView],
    /// vCenters that are configured now.
    pub servers: &'a [String],
    /// What the logs told.
    pub ledger: &'a Ledger,
    /// The rules by which they were read.
    pub catalogue: &'a Catalogue,
    /// Operators that are worse than at the start.
    pub worse: &'a [Worse],
    /// What holds the migration.
    pub troubles: &'a [Failure],
    /// Since when no container has ended that did so again and again, and what is said of the last.
    pub crash: Option<&'a (Timestamp, Failure)>,
    /// Rules that the user accepts.
    pub accept: &'a [String],
    /// How long nothing bad may happen.
    pub quiet: SignedDuration,
    /// Now.
    pub now: Timestamp,
}

/// What is missing while logs are not read yet.
pub const UNREAD: &str = "EVD-001";
/// What is missing while the cloud controller manager has not reached every vCenter.
const UNREACHED: &str = "EVD-003";
/// The rule of a server that cannot be reached.
const AWAY: &str = "NET-002";
/// So long nothing bad is told of the way to the vCenters before the manager is asked once more: its only word may be of its start, and
/// a vCenter that was away for a minute has to be back by then. With few nodes it may also start without asking all: it looks for each
/// node in its vCenters in no order, and goes no further than the one that has it.
const CALM: SignedDuration = SignedDuration::from_secs(120);

/// What is found.
#[derive(Debug, PartialEq, Eq)]
pub enum Health {
    /// All is well: why.
    Well(String),
    /// Not yet: what is missing, when to look again, and what is to be said of it once there is no more time.
    NotYet(String, Option<Timestamp>, Box<Failure>),
    /// The same where only the cloud controller manager's word is missing. It asks vCenters when it starts, and one that was away then
    /// not before a node comes: from this time on it is worth while to start it once more.
    Unasked(String, Timestamp, Box<Failure>),
}

/// Whether the new pods are healthy.
pub fn health(facts: &Facts<'_>) -> Health {
    // While it is not over: whoever looks for what is missing may know the errors that no rule knows.
    let with_unknown = |message: String| [message].into_iter().chain(about_unknown(facts)).collect::<Vec<_>>().join("; ");
    match judge(facts) {
        Health::Well(message) => Health::Well(message),
        Health::NotYet(message, until, failure) => Health::NotYet(with_unknown(message), until, failure),
        Health::Unasked(message, calm, failure) => Health::Unasked(with_unknown(message), calm, failure),
    }
}

fn judge(facts: &Facts<'_>) -> Health {
    if let Some(trouble) = facts.troubles.first() {
        return Health::NotYet(format!("held by {}: {}", trouble.rule, trouble.message), None, Box::new(trouble.clone()));
    }
    let missing: Vec<Failure> = missing(facts).into_iter().filter(|missing| !facts.accept.contains(&missing.rule)).collect();
    if let Some(first) = missing.first() {
        let texts: Vec<String> = missing.iter().map(|missing| format!("{} {}", missing.rule, missing.message)).collect();
        let (message, first) = (format!("no sign yet: {}", texts.join("; ")), Box::new(first.clone()));
        return match calm_from(facts).filter(|_| missing.len() == 1 && first.rule == UNREACHED) {
            Some(calm) => Health::Unasked(message, calm, first),
            None => Health::NotYet(message, None, first),
        };
    }
    let (since, breaker) = quiet_since(facts);
    let until = since.checked_add(facts.quiet).unwrap_or(since);
    if facts.now < until {
        let because = match breaker {
            Breaker::None => "the new pods are Ready".to_owned(),
            Breaker::Line(run) => format!("the last line of {} in {}", run.rule, run.source.component),
            Breaker::Crash(crash) => format!("{} was seen last in {}", crash.rule, crash.component.as_deref().unwrap_or_default()),
        };
        let message = format!("quiet since {} UTC, when {because}; well if that lasts until {} UTC", clock(since), clock(until));
        return Health::NotYet(message, Some(until), Box::new(restless(facts, breaker)));
    }
    Health::Well(signs(facts, since))
}

/// What a pod of the workload was replaced by, if pods are wanted of it.
fn replaced<'a>(facts: &'a Facts<'_>) -> impl Iterator<Item = &'a View> {
    facts.views.iter().filter(|view| view.workload.restart.is_some() && view.wanted.is_some_and(|wanted| wanted > 0))
}

fn of_component<'a>(facts: &'a Facts<'_>, component: &str) -> Option<&'a View> {
    replaced(facts).find(|view| view.workload.component == component)
}

fn missing(facts: &Facts<'_>) -> Vec<Failure> {
    let mut found = Vec::new();
    let unread: Vec<(&_, &Read)> = facts.ledger.unread().collect();
    if let Some((source, read)) = unread.first() {
        let why = if let Read::Not(error) = read { format!(" ({error})") } else { String::new() };
        let text = format!(
            "{} logs are not read yet, first that of {}/{}, container {}{why}",
            unread.len(),
            source.namespace,
            source.pod,
            source.container
        );
        let command = format!("oc -n {} logs {} -c {}", source.namespace, source.pod, source.container);
        found.push(lacks(UNREAD, text, "see that the pod's node answers", [command]));
    }
    for view in replaced(facts) {
        let created = view.pods.iter().filter_map(|pod| pod.created).min();
        let held = |name: &str| facts.leases.iter().any(|lease| lease.name == name && is_held(lease, created, facts.now));
        let lost: Vec<&str> = view.workload.leases.iter().copied().filter(|name| !held(name)).collect();
        if !lost.is_empty() {
            let namespace = view.workload.namespace;
            let text = format!("no new pod of {} holds the Lease {} in {namespace}", view.workload, lost.join(", "));
            // The Lease itself may not even be there.
            let commands = ["pods", "leases"].map(|kind| format!("oc -n {namespace} get {kind}"));
            found.push(lacks("EVD-002", text, "see what its pods wait for", commands));
        }
    }
    if let Some(view) = of_component(facts, CLOUD_CONTROLLER_MANAGER) {
        let reached = reached(facts, view);
        let silent: Vec<&str> =
            facts.servers.iter().map(String::as_str).filter(|server| !reached.iter().any(|other| other == server)).collect();
        if !silent.is_empty() {
            let text = format!("the new cloud controller manager has not reached {} yet", silent.join(", "));
            let labels = view.workload.labels.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",");
            let command = format!("oc -n {} logs -l {labels} --prefix --tail=-1", view.workload.namespace);
            found.push(lacks(UNREACHED, text, "see what it says of the vCenter, and delete its pods once that answers: they ask when they start, and then not before a node comes", [command]));
        }
    }
    if let Some(view) = of_component(facts, PROBLEM_DETECTOR)
        && !view.pods.iter().any(|pod| pod.tells(facts.ledger.news(&pod.uid).round))
    {
        let command = format!("oc -n {} logs deployment/{}", view.workload.namespace, view.workload.name);
        let text = "the new problem detector has not finished a round of checks yet".to_owned();
        found.push(lacks("EVD-004", text, "see what its checks wait for", [command]));
    }
    if let Some(worse) = facts.worse.iter().find(|worse| !facts.accept.iter().any(|id| id == worse.rule)) {
        let text = format!("{} is worse than at the start: {}", worse.object, worse.says);
        let command = worse.shown().unwrap_or_else(|| "oc get clusteroperators".to_owned());
        found.push(lacks("EVD-005", text, "mend what it says", [command]));
    }
    found
}

fn is_held(lease: &LeaseView, created: Option<Timestamp>, now: Timestamp) -> bool {
    // A holder's name is not its pod's where pods share the host's network; but one of the old pods had it before any new one was
    // made. When its containers were started says less: that is written down later, sometimes after they have taken the lease.
    let new = created.zip(lease.acquired).is_some_and(|(created, acquired)| acquired >= created);
    new && lease.expires.is_some_and(|expires| now < expires)
}

fn reached(facts: &Facts<'_>, view: &View) -> Vec<String> {
    let told = |pod: &PodView| -> Vec<String> {
        let news = facts.ledger.news(&pod.uid).servers;
        news.into_iter().filter(|(_, at)| pod.tells(Some(*at))).map(|(server, _)| server).collect()
    };
    let mut servers: Vec<String> = view.pods.iter().flat_map(told).collect();
    servers.sort();
    servers.dedup();
    servers
}

/// From when on it is worth while to ask the vCenters once more, if nothing bad comes meanwhile: the cloud controller manager's pods
/// have nothing to say against them, and nobody tells of a server that is away.
fn calm_from(facts: &Facts<'_>) -> Option<Timestamp> {
    let pods = &of_component(facts, CLOUD_CONTROLLER_MANAGER)?.pods;
    if pods.iter().any(|pod| !pod.ready || pod.leaves) {
        return None;
    }
    let its_own = |run: &Run| pods.iter().any(|pod| pod.uid == run.source.uid) && run.rule != facts.catalogue.unknown().id;
    let bad = facts.ledger.last(|run| its_own(run) || run.rule == AWAY);
    pods.iter().filter_map(|pod| pod.since).max()?.max(bad.unwrap_or(Timestamp::MIN)).checked_add(CALM).ok()
}

/// What ended the quiet last, since the new pods are Ready.
#[derive(Clone, Copy)]
enum Breaker<'a> {
    None,
    Line(&'a Run),
    Crash(&'a Failure),
}

fn quiet_since<'a>(facts: &'a Facts<'_>) -> (Timestamp, Breaker<'a>) {
    let ready = replaced(facts).flat_map(|view| &view.pods).filter_map(|pod| pod.since).max();
    let ready = ready.unwrap_or(facts.restarted).max(facts.restarted);
    let run = facts.ledger.runs().filter(|run| !facts.accept.contains(&run.rule)).max_by_key(|run| run.last);
    let run = run.map(|run| (run.last, Breaker::Line(run)));
    // Also of a pod that is not replaced: between two crashes it may be Ready, and its log has nothing that a rule knows.
    let crash = facts.crash.filter(|(_, crash)| !facts.accept.contains(&crash.rule)).map(|(since, crash)| (*since, Breaker::Crash(crash)));
    let last = run.into_iter().chain(crash).max_by_key(|(when, _)| *when);
    last.filter(|(when, _)| *when > ready).unwrap_or((ready, Breaker::None))
}

fn restless(facts: &Facts<'_>, breaker: Breaker<'_>) -> Failure {
    match breaker {
        Breaker::Line(run) => trouble::of_run(facts.catalogue, run),
        Breaker::Crash(crash) => crash.clone(),
        Breaker::None => {
            lacks("EVD-006", "the new pods were not Ready long enough to be judged".to_owned(), "give spec.health.deadline more time", [])
        }
    }
}

fn lacks<const N: usize>(rule: &str, text: String, next: &str, commands: [String; N]) -> Failure {
    look(failure(rule, text, format!("{next}; or name {rule} in spec.health.accept to go on without it")), commands)
}

fn signs(facts: &Facts<'_>, since: Timestamp) -> String {
    let mut signs = vec![format!("quiet since {} UTC", clock(since))];
    let leases: usize = replaced(facts).map(|view| view.workload.leases.len()).sum();
    signs.push(format!("{leases} leases held by new pods"));
    if let Some(view) = of_component(facts, CLOUD_CONTROLLER_MANAGER) {
        signs.push(format!("the cloud controller manager reached {}", reached(facts, view).join(", ")));
    }
    if of_component(facts, PROBLEM_DETECTOR).is_some() {
        signs.push("the problem detector finished a round".to_owned());
    }
    signs.push("operators no worse than at the start".to_owned());
    signs.extend(unknown(facts));
    if !facts.accept.is_empty() {
        signs.push(format!("accepted: {}", facts.accept.join(", ")));
    }
    signs.join("; ")
}

/// Errors that no rule knows: they hold nothing, but whoever reads on may know them.
fn unknown(facts: &Facts<'_>) -> Option<String> {
    let all: u64 = facts.ledger.unknowns().map(|(_, unknown)| unknown.count).sum();
    let most = facts.ledger.unknowns().max_by_key(|(_, unknown)| unknown.count)?;
    Some(told_unknown(&all.to_string(), most))
}

/// The same in words that stay the same while few more come: the vmi is not written for each of them.
fn about_unknown(facts: &Facts<'_>) -> Option<String> {
    let all: u64 = facts.ledger.unknowns().map(|(_, unknown)| unknown.count).sum();
    let most = facts.ledger.unknowns().max_by_key(|(_, unknown)| unknown.count.checked_ilog10())?;
    let magnitude = 10u64.saturating_pow(all.checked_ilog10()?);
    Some(told_unknown(&format!("{magnitude} or more"), most))
}

fn told_unknown(how_many: &str, (source, most): (&Source, &Unknown)) -> String {
    let line = vmi_kit::text::cut(&most.line, 200);
    format!("{how_many} errors that no rule knows, most in pod {}/{}, the first of them: {line}", source.namespace, source.pod)
}

fn clock(time: Timestamp) -> impl std::fmt::Display {
    time.strftime("%H:%M:%S")
}

#[cfg(test)]
mod tests;
