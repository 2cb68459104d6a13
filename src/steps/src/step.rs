//! How every step is taken: gate, observe, decide, one act, report; again until there is nothing left to do.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use jiff::Timestamp;
use vmi_crds::graph::StepName;
use vmi_crds::status::{Failure, StepState};
use vmi_crds::turn::{Stopped, Turn, turn};
use vmi_kit::failure::{Stop, failure};

use crate::migration::Migration;
pub use crate::outcome::remember;
use crate::outcome::{begin, deadline, fail, finish, undone, working};
use crate::report::Report;
use crate::writer::Writer;

/// An act that takes longer is told of while it goes on.
const LONG: Duration = Duration::from_millis(500);

/// One step: what it looks at, and how it acts. It never waits inside: whoever looks is woken when something changes.
pub trait Step: Sync {
    /// Its name.
    const NAME: StepName;
    /// How long an attempt may take before it is said that it is stuck. Waiting goes on.
    const DEADLINE: Duration = Duration::from_secs(600);
    /// One act, as data.
    type Act: Send;

    /// Looks, and says what is to be done. Before the start too, for the plan: then as if all before it were done.
    fn observe(&self, m: &Migration) -> impl Future<Output = Result<Seen<Self::Act>, Stop>> + Send;
    /// Looks, and says what is to be taken back.
    fn observe_undo(&self, m: &Migration) -> impl Future<Output = Result<Seen<Self::Act>, Stop>> + Send;
    /// Acts once. Killed at any instant, the next look goes on from what it sees.
    fn act(&self, m: &Migration, act: Self::Act, writer: &mut Writer<'_>) -> impl Future<Output = Result<(), Stop>> + Send;

    /// Of a step that is done: what others have taken away since, if that undoes it.
    fn taken_away(&self, _m: &Migration) -> Option<String> {
        None
    }

    /// Of a step that is done: what others have changed of what it left, if that leaves it done. Told from the cache alone, and only
    /// of objects that the step itself has to look after: copies follow in their own time.
    fn drifted(&self, _m: &Migration) -> Option<String> {
        None
    }

    /// Of a step that is done: the reason it ended with, for when a drift is over.
    fn ended(&self, _m: &Migration) -> &'static str {
        Self::NAME.step().turns_true.last().map_or("Done", |way| way.reason)
    }

    /// How long this attempt may take, where that depends on the vmi.
    fn deadline(&self, _m: &Migration) -> Duration {
        Self::DEADLINE
    }

    /// Commands that show why it is stuck, once its time is up.
    fn stuck(&self, _m: &Migration) -> Vec<String> {
        Vec::new()
    }
}

/// What a look found.
pub enum Seen<A> {
    /// Nothing is left to do.
    Done {
        /// The condition's reason.
        reason: &'static str,
        /// What was found.
        message: String,
    },
    /// Others have to move first.
    Waiting {
        /// Who, and what.
        message: String,
        /// When to look again, if no event will say so.
        until: Option<Timestamp>,
    },
    /// It could go on through the one-way door, and the vmi has to say first that there is no way back.
    Ready {
        /// What comes next.
        message: String,
    },
    /// Something is to be done.
    Todo {
        /// What to do first.
        act: A,
        /// All that is still to be changed, in words.
        changes: Vec<String>,
    },
    /// It cannot be done.
    Failed(Box<Failure>),
}

impl<A> Seen<A> {
    /// Nothing is left to do.
    pub fn done(reason: &'static str, message: impl Into<String>) -> Self {
        Self::Done { reason, message: message.into() }
    }

    /// Others have to move first.
    pub fn waiting(message: impl Into<String>) -> Self {
        Self::Waiting { message: message.into(), until: None }
    }
}

/// When a controller wants to be woken at the latest.
pub type Wake = Option<Timestamp>;

/// The earlier of two.
pub fn sooner(a: Wake, b: Wake) -> Wake {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// Takes a step as far as it can go now.
pub async fn take<S: Step>(step: &S, m: &Migration, report: &mut Report) -> Result<Wake, Stop> {
    let name = S::NAME;
    match turn(&m.vmi, name) {
        Turn::NotRequested => {
            report.step(name).state = StepState::NotRequested;
            report.condition(name.as_str(), "Unknown", "NotRequested", "the vmi does not ask for this step");
            Ok(None)
        }
        Turn::Plan => plan(step, m, report).await,
        Turn::Waits(whom) => {
            let message = format!("waits for {whom}");
            crate::drift::look(step, m, report);
            let entry = report.step(name);
            if m.vmi.spec.state == vmi_crds::spec::State::Paused {
                try_anew(entry);
            }
            entry.message.clone_from(&message);
            if !report.condition_is(name.as_str(), "True") && !m.vmi.begun(name) {
                report.condition(name.as_str(), "False", "Waiting", &message);
            }
            Ok(None)
        }
        Turn::Rests => rest(step, m, report),
        Turn::Stopped(why) => stopped(step, m, report, why).await,
        Turn::Forward => go(step, m, report, Turn::Forward).await,
        Turn::Back => go(step, m, report, Turn::Back).await,
    }
}

async fn plan<S: Step>(step: &S, m: &Migration, report: &mut Report) -> Result<Wake, Stop> {
    let name = S::NAME;
    let (message, changes) = match step.observe(m).await {
        Ok(Seen::Todo { changes, .. }) => (format!("would make {} changes", changes.len()), changes),
        Ok(Seen::Done { message, .. } | Seen::Waiting { message, .. } | Seen::Ready { message }) => (message, Vec::new()),
        Ok(Seen::Failed(failure)) | Err(Stop::Failed(failure)) => (failure.message, Vec::new()),
        Err(Stop::Refused(credentials, failure)) => {
            remember(m, report, name, credentials).await?;
            (failure.message, Vec::new())
        }
        Err(stop) => return Err(stop),
    };
    report.changes(name, &changes);
    let entry = report.step(name);
    entry.state = StepState::Waiting;
    entry.message = vmi_kit::text::cut(&message, 1024);
    report.condition(name.as_str(), "False", "NotStarted", &format!("the migration has not started; {message}"));
    Ok(None)
}

fn rest<S: Step>(step: &S, m: &Migration, report: &mut Report) -> Result<Wake, Stop> {
    let name = S::NAME;
    // A spec edit only restamps what is done.
    let (status, reason, message) = match m.vmi.condition(name.as_str()) {
        Some(condition) => (condition.status.clone(), condition.reason.clone(), condition.message.clone()),
        None => ("False".to_owned(), "Waiting".to_owned(), "nothing was done".to_owned()),
    };
    report.step(name);
    let lost = if status == "True" && !m.vmi.over() { step.taken_away(m) } else { None };
    match lost {
        Some(what) => {
            let found =
                failure("FRZ-001", what, "find out who took it away, then set spec.state to Paused and to Running again to take it back");
            fail(m, report, name, "TakenAway", found);
        }
        None if report.condition_is(name.as_str(), &status) || m.vmi.over() => {
            report.condition(name.as_str(), &status, &reason, &message);
            crate::drift::look(step, m, report);
        }
        // The cached vmi is older than what this process has reported.
        None => {}
    }
    Ok(None)
}

async fn stopped<S: Step>(step: &S, m: &Migration, report: &mut Report, why: Stopped) -> Result<Wake, Stop> {
    let name = S::NAME;
    let paused = m.vmi.spec.state == vmi_crds::spec::State::Paused;
    let text = match why {
        Stopped::Failed if !paused => return look(step, m, report).await,
        Stopped::Held => "the migration is held: see the condition Held".to_owned(),
        Stopped::Paused | Stopped::Failed => "paused by spec.state; nothing is changed meanwhile".to_owned(),
    };
    crate::drift::look(step, m, report);
    // A new attempt begins when the user resumes.
    let entry = report.step(name);
    if entry.state == StepState::Failed || why == Stopped::Paused {
        try_anew(entry);
    }
    entry.message.clone_from(&text);
    if !report.condition_is(name.as_str(), "True") {
        report.condition(name.as_str(), "False", if why == Stopped::Held { "Held" } else { "Paused" }, &text);
    }
    Ok(None)
}

/// What is at work or has failed begins a new attempt when it is its turn again.
fn try_anew(entry: &mut vmi_crds::status::StepStatus) {
    if matches!(entry.state, StepState::Active | StepState::Failed) {
        entry.state = StepState::Active;
        entry.failure = None;
        entry.started_at = None;
    }
}

/// A step that failed is still looked at, either way: what was mended by hand, or accepted, counts.
async fn look<S: Step>(step: &S, m: &Migration, report: &mut Report) -> Result<Wake, Stop> {
    let back = vmi_crds::turn::rolling_back(&m.vmi);
    let seen = if back { step.observe_undo(m).await } else { step.observe(m).await };
    match seen {
        Ok(Seen::Done { reason, message }) if back => undone(m, report, S::NAME, reason, &message),
        Ok(Seen::Done { reason, message }) => finish(m, report, S::NAME, reason, &message),
        Ok(Seen::Waiting { until, .. }) => return Ok(until),
        // Something else is in the way now, and that is what has to be said.
        Ok(Seen::Failed(failure)) if report.reason(S::NAME.as_str()) != Some(&failure.rule) => {
            fail(m, report, S::NAME, &failure.rule.clone(), *failure);
        }
        // Or more of the same, such as another machine that has failed meanwhile.
        Err(Stop::Failed(failure)) => fail(m, report, S::NAME, &failure.rule.clone(), *failure),
        Err(Stop::Refused(credentials, _)) => remember(m, report, S::NAME, credentials).await?,
        _ => {}
    }
    Ok(None)
}

async fn go<S: Step>(step: &S, m: &Migration, report: &mut Report, direction: Turn) -> Result<Wake, Stop> {
    let name = S::NAME;
    begin(m, report, name, &direction);
    loop {
        let seen = match direction {
            Turn::Back => step.observe_undo(m).await,
            _ => step.observe(m).await,
        };
        let stop = match seen {
            Ok(Seen::Done { reason, message }) => {
                if direction == Turn::Back {
                    undone(m, report, name, reason, &message);
                } else {
                    finish(m, report, name, reason, &message);
                }
                return Ok(None);
            }
            Ok(Seen::Waiting { message, until }) => {
                working(report, name, &direction, &message);
                return Ok(sooner(until, deadline(step, m, report, &message)));
            }
            Ok(Seen::Ready { message }) => {
                working(report, name, &direction, &message);
                report.condition(name.as_str(), "False", "Ready", &message);
                return Ok(None);
            }
            Ok(Seen::Failed(failure)) => Stop::Failed(failure),
            Ok(Seen::Todo { act, changes }) => {
                if report.step(name).changes.is_empty() || direction == Turn::Back {
                    report.changes(name, &changes);
                }
                working(report, name, &direction, changes.first().map_or("acting", String::as_str));
                // Others have to know that this step has begun before it changes anything. Once they do, what it does is told
                // when that takes long, and else with the next word it waits or is done with.
                if !report.has_told(name) {
                    report.apply(&m.cx).await?;
                }
                let mut writer = Writer::new(m, name, direction.clone());
                let outcome = {
                    let mut acting = pin!(step.act(m, act, &mut writer));
                    match tokio::time::timeout(LONG, &mut acting).await {
                        Ok(outcome) => outcome,
                        // Whoever looks meanwhile sees what takes so long.
                        Err(_) => {
                            let told = report.apply(&m.cx).await;
                            let outcome = acting.await;
                            told.and(outcome)
                        }
                    }
                };
                for line in writer.done() {
                    report.log(name, line);
                }
                match outcome {
                    Ok(()) => continue,
                    Err(stop) => stop,
                }
            }
            Err(stop) => stop,
        };
        return match stop {
            Stop::Failed(failure) => {
                fail(m, report, name, &failure.rule.clone(), *failure);
                Ok(None)
            }
            Stop::Refused(credentials, failure) => {
                remember(m, report, name, credentials).await?;
                fail(m, report, name, &failure.rule.clone(), *failure);
                Ok(None)
            }
            Stop::Again(why) => {
                working(report, name, &direction, &why);
                deadline(step, m, report, &why);
                Err(Stop::Again(why))
            }
            Stop::Fenced(why) => Err(Stop::Fenced(why)),
        };
    }
}
