//! What the operator did while there was nothing to do, or should have been something: how long it slept, and what it asked for meanwhile.

use jiff::{SignedDuration, Timestamp};
use vmi_crds::graph::{Controller, STEPS, Step, StepName};

use super::{JUDGED, OF_MACHINES, Timeline, seconds};
use crate::migration::audit::Event;
use crate::migration::witness::Seen;

/// Before a write an object is read again; that is no waiting.
const MAKING_SURE: SignedDuration = SignedDuration::from_secs(1);

impl Timeline<'_> {
    /// The seconds in which everything that the operator waited for was done and it did nothing, as far as the audit log tells: from
    /// each open gate to the first word of the step; within a step from what another did to the operator's next act, and from the
    /// last thing that happened to the report that it is done; but for the time in which the apiserver owed it an answer. What the
    /// controllers do in a vCenter is not in that log, so steps that work there, and that look there before they say that they
    /// begin, count with their hand-overs alone.
    pub fn asleep(&self, quiet: f64, seen: &Seen) -> f64 {
        let told = |when: &'static str| move |(step, seconds): &(&str, f64)| tracing::debug!(step, seconds, "asleep {when}");
        let within = STEPS.iter().filter(|step| !works_in_vcenters(step.name)).filter_map(|step| {
            let (begun, done) = self.taken(step)?;
            let by_others =
                self.awaited().map(|event| event.answered).chain(self.quiet_end(step.name, quiet, seen)).chain(seen.taken.clone());
            let by_others = by_others.map(|at| (at, at, false));
            let acts = self.acts().map(|act| (act.received, act.answered, true));
            let mut happened: Vec<_> = acts.chain(by_others).filter(|(_, at, _)| (begun..=done).contains(at)).collect();
            happened.sort_unstable_by_key(|(_, at, _)| *at);
            let (mut last, mut after_another, mut sum) = (begun, false, 0.0);
            for (received, answered, own) in happened {
                if own && after_another && received > last {
                    sum += seconds(last, received) - self.owed(step, last, received);
                }
                (last, after_another) = (answered, !own);
            }
            Some((step.name.as_str(), sum + seconds(last, done) - self.owed(step, last, done)))
        });
        let within: f64 = within.inspect(told("within")).map(|(_, seconds)| seconds).sum();
        let sleeps = |(step, _, gate): &(&Step, f64, Controller)| *gate != step.controller || !works_in_vcenters(step.name);
        let before = self.beginnings().into_iter().filter(sleeps).map(|(step, seconds, _)| (step.name.as_str(), seconds));
        within + before.inspect(told("before its beginning")).map(|(_, seconds)| seconds).sum::<f64>()
    }

    /// The seconds between the two in which the operator had asked something, tried a dry run or reported of the step, and had no answer
    /// yet: an apiserver that was told of a changed CRD takes its time for the first one.
    fn owed(&self, step: &Step, from: Timestamp, to: Timestamp) -> f64 {
        let followed = |event: &Event| event.verb == "watch" || event.object_ref.subresource == "log";
        let asked = self.own().filter(|event| !event.is_write() && !followed(event)).map(|event| (event.received, event.answered));
        let manager = step.controller.field_manager();
        let reported = self.reports.iter().filter(|report| report.manager == manager).map(|report| (report.received, report.answered));
        let asked = asked.chain(reported).map(|(received, answered)| (received.max(from), answered.min(to)));
        let mut asked: Vec<(Timestamp, Timestamp)> = asked.filter(|(received, answered)| received < answered).collect();
        asked.sort_unstable();
        let mut counted = from;
        let mut sum = 0.0;
        for (received, answered) in asked {
            sum += seconds(received.max(counted), answered).max(0.0);
            counted = counted.max(answered);
        }
        sum
    }

    /// What the operator asked the apiserver for while others had to move: in the steps that do little but wait, before, between and after
    /// its acts, but for what comes right before one, by which it makes sure. Watches and leases aside, with the list by which a watch
    /// that ended begins anew, and the logs of pods, which are followed; it may look for a kind that is not served, for no event tells
    /// of that, and reads the vmi again when it has lost the lead.
    pub fn asked_while_waiting(&self) -> Vec<String> {
        let asks = |event: &&Event| {
            ["get", "list"].contains(&event.verb.as_str()) && event.object_ref.subresource != "log" && event.response_status.code != 404
        };
        let mut asked = Vec::new();
        for step in OF_MACHINES.into_iter().chain(JUDGED) {
            let Some((begun, done)) = self.taken(step.step()) else { continue };
            let acts: Vec<&Event> = self.acts().filter(|act| (begun..=done).contains(&act.answered)).collect();
            let starts = std::iter::once(begun).chain(acts.iter().map(|act| act.answered));
            let ends = acts.iter().map(|act| act.received - MAKING_SURE).chain([done]);
            let waits: Vec<_> = starts.zip(ends).map(|(from, to)| from..to).collect();
            let asked_then = self.own().filter(asks).filter(|event| waits.iter().any(|waits| waits.contains(&event.received)));
            let asked_then = asked_then.filter(|event| !self.begins_a_watch(event));
            asked.extend(asked_then.map(|event| format!("{step}: {}", event.spoken())));
        }
        asked
    }

    /// Whether a watch of the same follows at once.
    fn begins_a_watch(&self, list: &Event) -> bool {
        let at_once = list.answered..=list.answered + MAKING_SURE;
        let follows = |event: &Event| event.verb == "watch" && event.object_ref == list.object_ref && at_once.contains(&event.received);
        list.verb == "list" && self.own().any(follows)
    }
}

/// Steps whose work is done in vCenters, where the audit log does not reach.
fn works_in_vcenters(step: StepName) -> bool {
    [StepName::PreflightPassed, StepName::TagsAttached, StepName::FolderCreated].contains(&step)
}
