//! The figures of a migration: how long it took, how long it had to take, and what the operator used meanwhile.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::audit::Event;
use super::operator::Usage;
use super::timeline::{Timeline, seconds};
use super::witness::Seen;
use super::{Error, Site};

/// What the operator calls itself to vCenters.
const USER_AGENT: &str = "vmi-operator/";

/// The report's `migration`; what a migration that broke off does not have is `null`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figures {
    pub seconds: Option<f64>,
    pub floor_seconds: f64,
    pub asleep_seconds: f64,
    pub handover_median_ms: Option<f64>,
    pub handover_max_ms: Option<f64>,
    pub rss_peak_mb: f64,
    pub cpu_seconds: f64,
    pub vcenter_requests: VcenterRequests,
    pub apiserver_requests: usize,
    pub steps: Vec<StepFigure>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct VcenterRequests {
    pub source: u64,
    pub target: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepFigure {
    pub name: &'static str,
    pub seconds: f64,
    pub own_seconds: f64,
}

/// What a migration is measured by.
pub struct Measured<'a> {
    /// The audit log since the operator was started.
    pub events: &'a [Event],
    /// The operator's account.
    pub user: &'a str,
    pub seen: &'a Seen,
    /// Seconds that pods have to be quiet.
    pub quiet: f64,
    pub usage: Usage,
    pub vcenter_requests: VcenterRequests,
}

impl Figures {
    pub fn of(measured: &Measured<'_>) -> Figures {
        let timeline = Timeline::of(measured.events, measured.user);
        let ended = timeline.turned_true("Completed").or_else(|| timeline.turned_true("RolledBack"));
        let mut handovers: Vec<f64> = timeline.handovers().into_iter().map(|(_, seconds)| rounded(seconds * 1_000.0)).collect();
        handovers.sort_by(f64::total_cmp);
        Figures {
            seconds: timeline.running.zip(ended).map(|(from, to)| rounded(seconds(from, to))),
            floor_seconds: rounded(floor(&timeline, measured.seen, measured.quiet)),
            asleep_seconds: rounded(timeline.asleep(measured.quiet, measured.seen)),
            handover_median_ms: handovers.get(handovers.len() / 2).copied(),
            handover_max_ms: handovers.last().copied(),
            rss_peak_mb: rounded(measured.usage.peak_kb as f64 * 1_024.0 / 1_000_000.0),
            cpu_seconds: rounded(measured.usage.cpu_seconds),
            vcenter_requests: measured.vcenter_requests,
            apiserver_requests: requests(measured.events, measured.user, ended.unwrap_or(Timestamp::MAX)),
            steps: timeline
                .steps(measured.quiet, measured.seen)
                .into_iter()
                .map(|(name, seconds, own)| StepFigure { name, seconds: rounded(seconds), own_seconds: rounded(own) })
                .collect(),
        }
    }
}

/// Thousandths are all that anybody reads. The sum of nothing is minus zero, which nobody wants to read.
fn rounded(value: f64) -> f64 {
    (value * 1_000.0).round() / 1_000.0 + 0.0
}

/// Requests of an account until some moment; a watch, which is told of twice, counts once.
fn requests(events: &[Event], user: &str, until: Timestamp) -> usize {
    let counts = |event: &&Event| event.user.username == user && event.received <= until;
    let mut ids: Vec<&str> = events.iter().filter(counts).map(|event| event.id.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    ids.len()
}

/// The time that no operator could have saved: from each first deletion of a pod until the last new pod was Ready and had been
/// quiet for as long as is wanted, and the last lease was held again; and while machines came and went.
fn floor(timeline: &Timeline<'_>, seen: &Seen, quiet: f64) -> f64 {
    let phase = |restart: &super::timeline::Restart| {
        let (from, to) = (restart.deleted, restart.judged);
        let last = |moments: &mut dyn Iterator<Item = Timestamp>| {
            moments.filter(|at| (from..=to).contains(at)).map(|at| seconds(from, at)).fold(0.0, f64::max)
        };
        let ready = last(&mut seen.ready.iter().filter(|(namespace, _)| restart.namespaces.contains(namespace)).map(|(_, at)| *at));
        // Others replace pods too when their configuration changes, and the leases of those are waited for all the same.
        let held = last(&mut seen.taken.iter().copied());
        held.max(ready + quiet).min(seconds(from, to))
    };
    timeline.restarts().iter().map(phase).sum::<f64>() + timeline.machine_work()
}

/// How many calls the operator has made so far, by the name of the vCenter.
pub async fn calls(site: &Site) -> Result<BTreeMap<String, u64>, Error> {
    Ok(count(&site.control.get("/calls").await?))
}

fn count(calls: &Value) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for call in calls.as_array().into_iter().flatten() {
        if call["client"].as_str().is_some_and(|client| client.starts_with(USER_AGENT)) {
            *counts.entry(call["vcenter"].as_str().unwrap_or_default().to_owned()).or_default() += call["count"].as_u64().unwrap_or(0);
        }
    }
    counts
}

/// What was called between two counts.
pub fn called(site: &Site, before: &BTreeMap<String, u64>, after: &BTreeMap<String, u64>) -> VcenterRequests {
    let of = |name: &str| after.get(name).unwrap_or(&0).saturating_sub(*before.get(name).unwrap_or(&0));
    VcenterRequests { source: of(&site.source.name), target: site.targets().iter().map(|target| of(&target.name)).sum() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::audit::tests::event;
    use super::*;

    #[test]
    fn a_watch_counts_once_and_what_others_ask_or_what_comes_later_does_not() {
        let pods = json!({"resource": "pods"});
        let mut begun = event("me", "watch", "/pods", &pods, 200, 1);
        begun.stage = "ResponseStarted".to_owned();
        let ended = event("me", "watch", "/pods", &pods, 200, 1);
        let events = [begun, ended, event("me", "get", "/pods/x", &pods, 200, 2), event("you", "get", "/pods/x", &pods, 200, 3)];
        assert_eq!(requests(&events, "me", Timestamp::MAX), 2);
        assert_eq!(requests(&events, "me", Timestamp::from_millisecond(1).unwrap()), 1);
    }

    #[test]
    fn only_the_operators_calls_are_counted() {
        let call = |vcenter: &str, client: &str, count: u64| json!({"vcenter": vcenter, "client": client, "count": count});
        let calls = json!([
            call("a", "vmi-operator/0.1.0", 3),
            call("a", "vmi-operator/0.1.0", 2),
            call("a", "vmi-lab/0.1.0", 9),
            call("b", "govmomi", 4)
        ]);
        assert_eq!(count(&calls), BTreeMap::from([("a".to_owned(), 5)]));
    }

    #[test]
    fn a_migration_that_never_began_has_no_seconds() {
        let seen = Seen::default();
        let measured = Measured {
            events: &[],
            user: "me",
            seen: &seen,
            quiet: 5.0,
            usage: Usage { peak_kb: 10_000, cpu_seconds: 0.25 },
            vcenter_requests: VcenterRequests::default(),
        };
        let report = json!(Figures::of(&measured));
        assert!(report["seconds"].is_null() && report["handover_max_ms"].is_null(), "{report}");
        assert_eq!((report["rss_peak_mb"].as_f64(), report["cpu_seconds"].as_f64()), (Some(10.24), Some(0.25)));
    }
}
