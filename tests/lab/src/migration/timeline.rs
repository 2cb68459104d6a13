//! A migration as the audit log tells it: every write into the vmi, by whom, when, and what it said of which step.

mod idle;

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use vmi_crds::graph::{Controller, Request, STEPS, Step, StepName};
use vmi_crds::spec::SourceRetirement;

use super::audit::Event;
use super::witness::Seen;
use super::{NAMESPACE, request};

/// What followers of the operator write; the operator waits for these.
const AWAITED: &[&str] = &[
    "secrets",
    "configmaps",
    "controllerconfigs",
    "clusteroperators",
    "machineconfigpools",
    "machineconfigurations",
    "deployments",
    "replicasets",
    "pods",
    "customresourcedefinitions",
    "controlplanemachinesets",
    "machines",
    "machinesets",
    "nodes",
];

/// Steps that watch pods.
const JUDGED: [StepName; 3] = [StepName::PodsHealthy, StepName::PodsHealthyAfterDetach, StepName::PodsHealthyAfterRemoval];
/// Steps in which machines come and go.
const OF_MACHINES: [StepName; 3] = [StepName::WorkersReady, StepName::ControlPlaneReady, StepName::SourceWorkersRemoved];

/// One write into the vmi's status.
struct Report {
    received: Timestamp,
    answered: Timestamp,
    manager: String,
    holds: Vec<String>,
    steps: HashMap<String, String>,
}

/// The vmi of a rehearsal from the moment it was set to Running.
pub struct Timeline<'a> {
    events: &'a [Event],
    user: &'a str,
    pub running: Option<Timestamp>,
    asked: Request,
    reports: Vec<Report>,
}

/// Pods were replaced, and then judged.
pub struct Restart {
    /// When the first of them was deleted.
    pub deleted: Timestamp,
    /// When the judgement was reported.
    pub judged: Timestamp,
    pub namespaces: Vec<String>,
}

pub fn seconds(from: Timestamp, to: Timestamp) -> f64 {
    to.duration_since(from).as_secs_f64()
}

impl<'a> Timeline<'a> {
    /// Reads `events`, which are in the order of their answers; `user` is the operator's account.
    pub fn of(events: &'a [Event], user: &'a str) -> Timeline<'a> {
        let of_the_vmi = |event: &&Event| {
            let object = &event.object_ref;
            object.resource == "vspheremigrationinfra" && object.namespace == NAMESPACE && object.name == request::NAME && event.is_write()
        };
        let running = events.iter().filter(of_the_vmi).find(|event| event.request_object["spec"]["state"] == "Running");
        let running = running.map(|event| event.received);
        let reports = events
            .iter()
            .filter(of_the_vmi)
            .filter(|event| event.object_ref.subresource == "status" && running.is_some_and(|running| event.answered >= running))
            .map(Report::of)
            .collect();
        let kept = events.iter().filter(of_the_vmi).any(|event| event.request_object["spec"]["sourceRetirement"] == "Keep");
        let retirement = if kept { SourceRetirement::Keep } else { SourceRetirement::Remove };
        let asked = Request { retirement, machine_sets: false, control_plane: false };
        Timeline { events, user, running, asked, reports }
    }

    /// When a condition was first reported True.
    pub fn turned_true(&self, condition: &str) -> Option<Timestamp> {
        self.reports.iter().find(|report| report.holds.iter().any(|held| held == condition)).map(|report| report.answered)
    }

    /// The first report by the step's own controller in which it is in one of these states.
    fn reported(&self, step: &Step, states: &[&str]) -> Option<&Report> {
        let manager = step.controller.field_manager();
        let said = |report: &&Report| {
            report.manager == manager && report.steps.get(step.name.as_str()).is_some_and(|state| states.contains(&state.as_str()))
        };
        self.reports.iter().find(said)
    }

    /// When the step was first said to be taken, and when to be done.
    fn taken(&self, step: &Step) -> Option<(Timestamp, Timestamp)> {
        let begun = self.reported(step, &["Active", "Done"])?;
        let done = self.reported(step, &["Done"])?;
        Some((begun.received, done.received))
    }

    /// How long each step that was taken took, and how much of it was the operator's own: each stretch between two things that
    /// happened belongs to whoever ended it.
    pub fn steps(&self, quiet: f64, seen: &Seen) -> Vec<(&'static str, f64, f64)> {
        let told = |step: &Step| {
            let (begun, done) = self.taken(step)?;
            let by_others =
                self.awaited().map(|event| event.answered).chain(self.quiet_end(step.name, quiet, seen)).chain(seen.taken.iter().copied());
            let all = self.acts().map(|act| (act.answered, true)).chain(by_others.map(|at| (at, false)));
            let mut happened: Vec<(Timestamp, bool)> = all.filter(|(at, _)| (begun..=done).contains(at)).collect();
            happened.push((done, true));
            happened.sort_unstable();
            let starts = std::iter::once(begun).chain(happened.iter().map(|(at, _)| *at));
            let own = starts.zip(&happened).filter(|(_, (_, own))| *own).map(|(from, (to, _))| seconds(from, *to)).sum();
            Some((step.name.as_str(), seconds(begun, done), own))
        };
        STEPS.iter().filter_map(told).collect()
    }

    /// Writes of the operator outside the vmi, leases aside.
    fn acts(&self) -> impl Iterator<Item = &Event> {
        self.own().filter(|event| event.is_write())
    }

    /// What the operator asked for or wrote. With the vmi and the leases it deals whatever the step.
    fn own(&self) -> impl Iterator<Item = &Event> {
        let always = |event: &Event| ["leases", "vspheremigrationinfra"].contains(&event.object_ref.resource.as_str());
        self.events.iter().filter(move |event| event.user.username == self.user && !always(event))
    }

    /// The seconds between a condition that turns True and the first word of the controller that waited for it, step by step: it says
    /// so before it acts.
    pub fn handovers(&self) -> Vec<(&'static str, f64)> {
        let between = |(step, seconds, gate): (&Step, f64, Controller)| (gate != step.controller).then_some((step.name.as_str(), seconds));
        self.beginnings().into_iter().filter_map(between).collect()
    }

    /// The seconds that each step took to begin once its last gate was open, and whose gate that was.
    fn beginnings(&self) -> Vec<(&'static Step, f64, Controller)> {
        let begun = |step: &'static Step| {
            let told = self.reported(step, &["Active", "Done", "Failed"])?.received;
            let gates = step.waits_for.iter().filter(|gate| self.asked.asks_for(gate.step()));
            let opened: Option<Vec<_>> = gates.map(|gate| Some((self.turned_true(gate.as_str())?, gate.step().controller))).collect();
            // A controller takes one step after the other, also where the first is no gate of the second.
            let taken_before = STEPS.iter().filter(|other| other.controller == step.controller && other.name < step.name);
            let busy = taken_before.filter_map(|other| Some((self.taken(other)?.1, step.controller))).filter(|(until, _)| *until <= told);
            let (opened, gate) = opened?.into_iter().chain(busy).max_by_key(|(at, _)| *at)?;
            // Whoever waits may be woken before the answer to the write that wakes it has been given.
            Some((step, seconds(opened, told).max(0.0), gate))
        };
        STEPS.iter().filter(|step| self.asked.asks_for(step)).filter_map(begun).collect()
    }

    /// Writes of others to what the operator waits for. A node's own reports that it is alive are nothing to wait for.
    fn awaited(&self) -> impl Iterator<Item = &Event> {
        self.events.iter().filter(|event| {
            let object = &event.object_ref;
            let alive = object.resource == "nodes" && object.subresource == "status";
            event.user.username != self.user && event.is_write() && AWAITED.contains(&object.resource.as_str()) && !alive
        })
    }

    /// When pods had been quiet for long enough, by their own word since when they are Ready.
    fn quiet_end(&self, step: StepName, quiet: f64, seen: &Seen) -> Option<Timestamp> {
        JUDGED.contains(&step).then_some(())?;
        let (_, done) = self.taken(step.step())?;
        let quiet = SignedDuration::from_secs_f64(quiet);
        let ends = seen.since.iter().filter_map(|since| since.checked_add(quiet).ok());
        ends.filter(|end| *end <= done).max()
    }

    /// The seconds in which machines came and went: in each step that replaces them, from the operator's first word to a set or a machine
    /// on, each stretch between two things that happened, where a word about a machine ended it.
    pub fn machine_work(&self) -> f64 {
        let resource = |event: &&Event, of: &[&str]| of.contains(&event.object_ref.resource.as_str());
        let work = |step: StepName| {
            let (begun, done) = self.taken(step.step())?;
            let within = |at: &Timestamp| (begun..=done).contains(at);
            let told_machines = |act: &&Event| resource(act, &["machinesets", "controlplanemachinesets", "machines"]);
            let first = self.acts().filter(told_machines).map(|act| act.received).find(within)?;
            let of_machines = self.awaited().filter(|event| resource(event, &["machines", "nodes"]));
            let all = self.acts().map(|act| (act.answered, true)).chain(of_machines.map(|event| (event.answered, false)));
            let mut happened: Vec<(Timestamp, bool)> = all.filter(|(at, _)| within(at) && *at >= first).collect();
            happened.sort_unstable();
            // The first act is where it begins, and no stretch of the operator's.
            let starts = std::iter::once(first).chain(happened.iter().skip(1).map(|(at, _)| *at));
            Some(starts.zip(happened.iter().skip(1)).filter(|(_, (_, own))| !own).map(|(from, (to, _))| seconds(from, *to)).sum::<f64>())
        };
        OF_MACHINES.into_iter().filter_map(work).sum()
    }

    /// Every time that pods were replaced and then judged.
    pub fn restarts(&self) -> Vec<Restart> {
        let first = |step: StepName, state: &str| {
            self.reports.iter().find(|report| report.steps.get(step.as_str()).is_some_and(|found| found == state))
        };
        let judged = JUDGED.into_iter().flat_map(|step| ["Done", "Undone"].map(|state| first(step, state)));
        let mut judged: Vec<Timestamp> = judged.flatten().map(|report| report.received).collect();
        judged.sort_unstable();
        let mut found = Vec::new();
        let mut after = self.running;
        for judged in judged {
            let deletions = self.acts().filter(|act| {
                act.verb == "delete"
                    && act.object_ref.resource == "pods"
                    && after.is_some_and(|after| act.received > after)
                    && act.received < judged
            });
            let deletions: Vec<&Event> = deletions.collect();
            if let Some(first) = deletions.first() {
                let namespaces = deletions.iter().map(|act| act.object_ref.namespace.clone()).collect();
                found.push(Restart { deleted: first.received, judged, namespaces });
                after = Some(judged);
            }
        }
        found
    }
}

impl Report {
    fn of(event: &Event) -> Report {
        let status = &event.request_object["status"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let entries = |field: &str| status[field].as_array().into_iter().flatten();
        Report {
            received: event.received,
            answered: event.answered,
            manager: event.field_manager().unwrap_or_default().to_owned(),
            holds: entries("conditions").filter(|entry| entry["status"] == "True").map(|entry| text(&entry["type"])).collect(),
            steps: entries("steps").map(|step| (text(&step["name"]), text(&step["state"]))).collect(),
        }
    }
}

#[cfg(test)]
#[path = "timeline_tests.rs"]
mod tests;
