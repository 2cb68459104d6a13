//! Replaces pods: which, in which order, and when all are new.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use vmi_crds::status::Failure;
use vmi_kit::failure::{failure, look};

use crate::view::{PodView, View};

/// How long a workload may be without any pod before that is an error: while it is rolled out it may be so for a moment.
const WITHOUT_ANY: SignedDuration = SignedDuration::from_secs(120);

/// The pods that have to go, written down before the first of them is deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Round {
    /// When it was written.
    pub since: Timestamp,
    /// Their UIDs.
    pub uids: BTreeSet<String>,
    /// UIDs of others that ended again and again before the start: they are no worse for doing so still.
    #[serde(default)]
    pub ailing: BTreeSet<String>,
}

/// What is to be done.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// Write down which pods have to go.
    Save(Round),
    /// Delete this pod.
    Delete {
        /// Where it is.
        namespace: &'static str,
        /// Its name.
        pod: String,
    },
    /// Others have to move: who.
    Wait {
        /// Who, and what.
        message: String,
        /// When that becomes an error.
        until: Option<Timestamp>,
    },
    /// It cannot be done.
    Fail(Box<Failure>),
    /// All are new.
    Done(String),
}

/// What is to be done about the workloads that are replaced.
pub fn next(views: &[View], round: Option<&Round>, now: Timestamp) -> Next {
    let replaced = || views.iter().filter(|view| view.workload.restart.is_some());
    let wanted = || replaced().filter_map(|view| Some((view, view.wanted.filter(|wanted| *wanted > 0)?)));
    let empty = || wanted().map(|(view, _)| view).filter(|view| view.pods.is_empty());
    for view in empty() {
        let next = without_any(view, now);
        // While others replace its pods, those that come are new anyway. As long as nobody knows why there are none, nothing is deleted.
        if view.short_since.is_none() || matches!(next, Next::Fail(_)) {
            return next;
        }
    }
    let Some(round) = round else {
        let uids = replaced().flat_map(|view| view.pods.iter().map(|pod| pod.uid.clone())).collect();
        return Next::Save(Round { since: now, uids, ailing: BTreeSet::new() });
    };
    if let Some((namespace, pod)) = stays(views, &round.uids) {
        return Next::Delete { namespace, pod };
    }
    if let Some((view, pod)) = old(views, &round.uids).next() {
        return wait(format!("waits for pod {} to end", view.pod(pod)));
    }
    if let Some(view) = empty().next() {
        return without_any(view, now);
    }
    for (view, wanted) in wanted() {
        let new = || view.pods.iter().filter(|pod| !pod.leaves);
        let ready = new().filter(|pod| pod.ready).count() as u64;
        if ready < wanted {
            let why = new().find(|pod| !pod.ready).map_or_else(|| "the next one is not made yet".to_owned(), |pod| not_ready(view, pod));
            return wait(format!("waits for {}: {ready} of {wanted} new pods are Ready; {why}", view.workload));
        }
    }
    Next::Done(told(views))
}

/// Pods of these UIDs that are replaced and still there.
fn old<'a>(views: &'a [View], uids: &'a BTreeSet<String>) -> impl Iterator<Item = (&'a View, &'a PodView)> {
    let replaced = views.iter().filter(|view| view.workload.restart.is_some());
    replaced.flat_map(move |view| view.pods.iter().filter(|pod| uids.contains(&pod.uid)).map(move |pod| (view, pod)))
}

/// The namespace and name of the first of them that nobody has deleted yet.
pub fn stays(views: &[View], uids: &BTreeSet<String>) -> Option<(&'static str, String)> {
    let (view, pod) = old(views, uids).find(|(_, pod)| !pod.leaves)?;
    Some((view.workload.namespace, pod.name.clone()))
}

/// Pods that are not replaced and end again and again since before the start: `before` are those that were seen to then; one that was
/// not looked at then has not been Ready since.
pub fn ailing(views: &[View], before: &BTreeSet<String>, started: Option<Timestamp>) -> BTreeSet<String> {
    let watched = views.iter().filter(|view| view.workload.restart.is_none()).flat_map(|view| &view.pods);
    let since_before = |pod: &PodView| pod.crash_loops().is_some() && !pod.ready && pod.since.zip(started).is_some_and(|(a, b)| a < b);
    watched.filter(|pod| before.contains(&pod.uid) || since_before(pod)).map(|pod| pod.uid.clone()).collect()
}

/// What would be replaced, in words that stay the same while pods come and go.
pub fn changes(views: &[View]) -> Vec<String> {
    let there = views.iter().filter(|view| view.wanted.is_some());
    there.filter_map(|view| Some(format!("delete the pods of {}, since {}", view.workload, view.workload.restart?))).collect()
}

fn wait(message: String) -> Next {
    Next::Wait { message, until: None }
}

fn without_any(view: &View, now: Timestamp) -> Next {
    let limit = view.short_since.and_then(|since| since.checked_add(WITHOUT_ANY).ok());
    if limit.is_none_or(|limit| now < limit) {
        let message = format!("waits for {}, which has no pod at the moment", view.workload);
        return Next::Wait { message, until: limit };
    }
    let workload = view.workload;
    let text = format!("{workload} wants pods and has none: there is nothing to replace, and nobody does its work");
    let found = failure("POD-001", text, "find out why no pod is made, then set spec.state to Paused and to Running again");
    let commands = [
        format!("oc -n {} describe {} {}", workload.namespace, workload.kind.kind.to_lowercase(), workload.name),
        format!("oc -n {} get events --sort-by=.lastTimestamp", workload.namespace),
    ];
    Next::Fail(Box::new(Failure { component: Some(workload.component.to_owned()), ..look(found, commands) }))
}

/// Why a pod is not Ready, as far as it tells.
pub fn not_ready(view: &View, pod: &PodView) -> String {
    match pod.waits.first() {
        Some((container, reason, _)) => format!("container {container} of pod {} waits: {reason}", view.pod(pod)),
        None => format!("pod {} is not Ready yet", view.pod(pod)),
    }
}

fn told(views: &[View]) -> String {
    let replaced = || views.iter().filter(|view| view.workload.restart.is_some());
    let names = |fits: &dyn Fn(&View) -> bool| -> String {
        replaced().filter(|view| fits(view)).map(|view| view.workload.component).collect::<Vec<_>>().join(", ")
    };
    let mut text = format!("new pods are Ready: {}", names(&|view| view.wanted.is_some_and(|wanted| wanted > 0)));
    for (what, found) in [("not installed", names(&|view| view.wanted.is_none())), ("scaled to 0", names(&|view| view.wanted == Some(0)))] {
        if !found.is_empty() {
            text.push_str(&format!("; {what}: {found}"));
        }
    }
    text
}

#[cfg(test)]
mod tests;
