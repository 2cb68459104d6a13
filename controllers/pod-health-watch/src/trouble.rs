//! What holds a migration: lines in logs, pods that do not run, operators that are worse than before, an update. Each explained.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use vmi_crds::spec::Verdict;
use vmi_crds::status::Failure;
use vmi_kit::failure::{failure, look};
use vmi_kit::kind::{DAEMON_SET, DEPLOYMENT};
use vmi_steps::step::{Wake, sooner};

use crate::cluster::{VERSION, Worse};
use crate::ledger::{Run, Weight};
use crate::restart::not_ready;
use crate::rules::{self, Catalogue, Judged};
use crate::view::{PodView, View};
use crate::workloads::Workload;

/// An operator that is degraded for a moment is not yet a reason to stop.
const OPERATOR: SignedDuration = SignedDuration::from_secs(120);
const NOT_READY: SignedDuration = SignedDuration::from_secs(300);
const IMAGE: SignedDuration = SignedDuration::from_secs(60);
/// How long after its end a container that took too much memory counts.
const STARVED: SignedDuration = SignedDuration::from_secs(600);

/// All that is looked at.
pub struct Facts<'a> {
    /// What the logs told.
    pub runs: Vec<Run>,
    /// The rules by which they were read.
    pub catalogue: &'a Catalogue,
    /// The workloads.
    pub views: &'a [View],
    /// Nodes that are not vSphere's.
    pub not_vspheres: &'a [String],
    /// UIDs of pods that ended again and again before the start.
    pub ailing: &'a BTreeSet<String>,
    /// Operators that are worse than at the start.
    pub worse: &'a [Worse],
    /// The update that was begun since the start.
    pub update: Option<String>,
    /// Rules that the user accepts.
    pub accept: &'a [String],
    /// When the pods that had to go were written down.
    pub restarted: Timestamp,
    /// Now.
    pub now: Timestamp,
}

/// What holds the migration, the oldest first, and when that may change without an event.
pub fn troubles(facts: &Facts<'_>) -> (Vec<Failure>, Wake) {
    let mut found: Vec<(Timestamp, Failure)> = Vec::new();
    let mut wake: Wake = None;
    let mut consider = |since: Option<Timestamp>, limit: SignedDuration, failure: Failure| {
        // Whoever wrote that down may have a clock that is ahead of ours.
        let since = since.map_or(facts.now, |since| since.min(facts.now));
        let counts = since.checked_add(limit).unwrap_or(since);
        if counts <= facts.now {
            found.push((since, failure));
        } else {
            wake = sooner(wake, Some(counts));
        }
    };
    for (view, pod) in counted(facts) {
        if let Some((limit, failure)) = of_pod(facts, view, pod) {
            consider(pod.since, limit, failure);
        }
    }
    for worse in facts.worse {
        let limit = if worse.gone { SignedDuration::ZERO } else { OPERATOR };
        consider(worse.since, limit, of_operator(facts.catalogue, worse));
    }
    if let Some(update) = &facts.update {
        consider(None, SignedDuration::ZERO, of_update(update));
    }
    let mut until = |clear: Option<Timestamp>, since: Timestamp, failure: Failure| {
        if clear.is_some_and(|clear| clear > facts.now) {
            wake = sooner(wake, clear);
            found.push((since, failure));
        }
    };
    for (view, pod) in counted(facts) {
        if let Some((container, when)) = pod.starved.as_ref().filter(|(_, when)| *when >= facts.restarted) {
            until(when.checked_add(STARVED).ok(), *when, of_starved(view, pod, container));
        }
    }
    for run in facts.runs.iter().filter(|run| run.weight == Weight::Holds) {
        let Some(rule) = facts.catalogue.rule(&run.rule) else { continue };
        let clear = SignedDuration::try_from(rule.clear()).ok().and_then(|clear| run.last.checked_add(clear).ok());
        until(clear, run.first, of_run(facts.catalogue, run));
    }
    let mended = counted(facts).filter_map(|(_, pod)| pod.crashes(facts.now)?.1).min();
    found.retain(|(_, failure)| !facts.accept.contains(&failure.rule));
    found.sort_by(|(a, one), (b, other)| (a, &one.rule, &one.message).cmp(&(b, &other.rule, &other.message)));
    (found.into_iter().map(|(_, failure)| failure).collect(), sooner(wake, mended))
}

/// The last crash of those that came again and again, explained, and since when there was none: no quiet is older than that.
pub fn last_crash(facts: &Facts<'_>) -> Option<(Timestamp, Failure)> {
    let crashed = counted(facts).filter_map(|(view, pod)| Some((pod.looped.as_ref()?, view, pod)));
    let ((container, since), view, pod) = crashed.max_by_key(|((_, since), _, _)| *since)?;
    Some((*since, of_crashes(facts, view, pod, container)))
}

/// Pods whose state tells of the migration.
fn counted<'a>(facts: &'a Facts<'_>) -> impl Iterator<Item = (&'a View, &'a PodView)> {
    let pods = facts.views.iter().flat_map(|view| view.pods.iter().map(move |pod| (view, pod)));
    pods.filter(|(view, pod)| {
        // Of a workload that runs on every node: what it needs of a vCenter it never had on a host of bare metal. A pod of any other
        // may be anywhere, and its crash is its workload's.
        let elsewhere = view.workload.kind == DAEMON_SET && facts.not_vspheres.contains(&pod.node);
        !(pod.leaves || elsewhere || facts.ailing.contains(&pod.uid))
    })
}

/// A run of lines, explained.
pub fn of_run(catalogue: &Catalogue, run: &Run) -> Failure {
    let source = &run.source;
    let pod = format!("{}/{}", source.namespace, source.pod);
    let rule = catalogue.rule(&run.rule);
    let (meaning, cause, remedy) = rule.map_or(("", "", ""), |rule| (&rule.meaning, &rule.cause, &rule.remedy));
    let since = run.first.strftime("%H:%M:%S");
    let text = format!("{}: {meaning} (since {since} UTC, pod {pod}, container {}); cause: {cause}", source.component, source.container);
    // Nobody tells that it is mended: the line only does not come any more.
    let over = rule.filter(|_| run.weight == Weight::Holds).map_or_else(String::new, |rule| {
        let clear = rules::seconds(rule.clear());
        format!(
            "; then `oc -n {} delete pod {}` ends the hold, else it ends {clear} after the last such line",
            source.namespace, source.pod
        )
    });
    let next = format!("{remedy}{over}; or name {} in spec.health.accept to go on in spite of it", run.rule);
    let commands = [
        format!("oc -n {} logs {} -c {}", source.namespace, source.pod, source.container),
        format!("oc -n {} describe pod {}", source.namespace, source.pod),
    ];
    Failure {
        component: Some(source.component.to_owned()),
        pod: Some(pod),
        container: Some(source.container.to_owned()),
        line: Some(run.line.clone()),
        ..look(failure(&run.rule, text, next), commands)
    }
}

fn of_pod(facts: &Facts<'_>, view: &View, pod: &PodView) -> Option<(SignedDuration, Failure)> {
    let Workload { component, containers, .. } = view.workload;
    let name = view.pod(pod);
    let stuck = |reasons: &[&str]| pod.waits.iter().find(|(_, reason, _)| reasons.contains(&reason.as_str()));
    let (rule, limit, text, container, next) = if let Some((container, reason, message)) = stuck(&["ImagePullBackOff", "ErrImagePull"]) {
        let text = format!("{component}: the image of container {container} of pod {name} cannot be had ({reason}: {message})");
        ("POD-003", IMAGE, text, container.clone(), "see that the node reaches the registry and may pull the image")
    } else if let Some((container, _)) = pod.crashes(facts.now) {
        return Some((SignedDuration::ZERO, of_crashes(facts, view, pod, container)));
    } else if !pod.ready && view.workload.kind == DEPLOYMENT {
        let text = format!("{component}: {} for minutes", not_ready(view, pod));
        ("POD-004", NOT_READY, text, containers.first().map(|name| (*name).to_owned()).unwrap_or_default(), "its events say what it lacks")
    } else {
        return None;
    };
    Some((limit, about_pod(rule, view, pod, &container, text, next)))
}

/// With what the container said last before it ended, as far as a rule knows it.
fn of_crashes(facts: &Facts<'_>, view: &View, pod: &PodView, container: &str) -> Failure {
    let text = format!("{}: container {container} of pod {} ends again and again", view.workload.component, view.pod(pod));
    let next = "its log before the last end says why; mend that";
    let fatal = |run: &&Run| facts.catalogue.rule(&run.rule).is_some_and(|rule| rule.verdict == Verdict::Fatal);
    let its_own = facts.runs.iter().filter(|run| run.source.uid == pod.uid && run.source.container == container);
    let Some((run, rule)) = its_own.filter(fatal).max_by_key(|run| run.last).and_then(|run| Some((run, facts.catalogue.rule(&run.rule)?)))
    else {
        return about_pod("POD-002", view, pod, container, text, next);
    };
    let text = format!("{text}; its log says {}: {}; cause: {}", rule.id, rule.meaning, rule.cause);
    Failure { line: Some(run.line.clone()), ..about_pod("POD-002", view, pod, container, text, &rule.remedy) }
}

fn of_starved(view: &View, pod: &PodView, container: &str) -> Failure {
    let text =
        format!("{}: container {container} of pod {} took more memory than it may and was ended", view.workload.component, view.pod(pod));
    about_pod("POD-005", view, pod, container, text, "see what it does so much of, and on a small node what else runs there")
}

fn about_pod(rule: &str, view: &View, pod: &PodView, container: &str, text: String, next: &str) -> Failure {
    let Workload { component, namespace, .. } = view.workload;
    let name = &pod.name;
    let more = if ["POD-002", "POD-005"].contains(&rule) {
        format!("oc -n {namespace} logs {name} -c {container} --previous")
    } else if pod.has_log(container) {
        format!("oc -n {namespace} logs {name} -c {container}")
    } else {
        format!("oc -n {namespace} get events --field-selector involvedObject.name={name}")
    };
    let commands = [format!("oc -n {namespace} describe pod {name}"), more];
    let found = look(failure(rule, text, format!("{next}; or name {rule} in spec.health.accept to go on in spite of it")), commands);
    Failure { component: Some((*component).to_owned()), pod: Some(view.pod(pod)), container: Some(container.to_owned()), ..found }
}

fn of_operator(catalogue: &Catalogue, worse: &Worse) -> Failure {
    let mut text = format!("{} is worse than at the start: {}", worse.object, worse.says);
    let mut remedy = "mend what it says";
    // What operators say of themselves is often what their logs say.
    if let Judged::Known(rule) = catalogue.judge(None, worse.says.as_bytes())
        && rule.verdict != Verdict::Benign
    {
        text.push_str(&format!("; that is {}: {}; cause: {}", rule.id, rule.meaning, rule.cause));
        remedy = &rule.remedy;
    }
    let next = format!("{remedy}; or name {} in spec.health.accept to go on in spite of it", worse.rule);
    look(failure(worse.rule, text, next), worse.shown().into_iter().chain(["oc get clusteroperators".to_owned()]))
}

fn of_update(update: &str) -> Failure {
    let text = format!("{update} while the migration runs: both replace nodes and configuration");
    let next = "take the update back (oc adm upgrade --clear), or let it end; or name UPG-001 in spec.health.accept";
    look(failure("UPG-001", text, next), [format!("oc get clusterversion {VERSION} -o yaml"), "oc adm upgrade".to_owned()])
}

#[cfg(test)]
mod tests;
