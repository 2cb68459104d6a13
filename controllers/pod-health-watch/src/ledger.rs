//! What the logs have told so far. Bounded: a flood of lines is one entry.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use regex::bytes::{Regex, RegexSet};
use vmi_crds::spec::Verdict;

use crate::rules::{BadRules, Rule};
use crate::workloads::{CLOUD_CONTROLLER_MANAGER, PROBLEM_DETECTOR};

const MOST_RUNS: usize = 256;
const MOST_SERVERS: usize = 16;
/// The same good news again need not be told before.
const LONG_SINCE: SignedDuration = SignedDuration::from_secs(5);

/// The log of a container of a watched pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source {
    /// The pod's UID: a pod of the same name made later is another one.
    pub uid: String,
    /// The container.
    pub container: &'static str,
    /// What rules call the workload.
    pub component: &'static str,
    /// The pod's namespace.
    pub namespace: &'static str,
    /// The pod's name.
    pub pod: String,
}

/// Lines of one rule from one log that followed each other closely.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The rule's id.
    pub rule: String,
    /// Where it was read.
    pub source: Source,
    /// The first line's time.
    pub first: Timestamp,
    /// The last line's time.
    pub last: Timestamp,
    /// How many lines.
    pub count: u32,
    /// The first line, as it may be quoted.
    pub line: String,
    /// How far it has come.
    pub weight: Weight,
}

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// Too few lines to mean anything.
    Nothing,
    /// It breaks the quiet.
    Breaks,
    /// It holds the migration.
    Holds,
}

/// How far a log was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Read {
    /// Not to its end yet.
    Begun,
    /// To its end at least once.
    ToTheEnd,
    /// It cannot be read.
    Not(String),
}

/// Good news, by the pod that told it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct News {
    /// vCenters in which something was looked for and answered, and when last.
    pub servers: BTreeMap<String, Timestamp>,
    /// When a round of checks came to its end last.
    pub round: Option<Timestamp>,
}

/// What the logs have told so far.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    runs: BTreeMap<(Source, String), Run>,
    news: BTreeMap<String, News>,
    read: BTreeMap<Source, Read>,
    unknown: BTreeMap<Source, Unknown>,
}

/// Errors of one log that no rule knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// How many.
    pub count: u64,
    /// The first, as it may be quoted.
    pub line: String,
}

impl Ledger {
    /// A line that the rule fits. Whether that may change a judgement.
    pub fn bad(&mut self, source: &Source, rule: &Rule, at: Timestamp, quote: impl FnOnce() -> String) -> bool {
        let key = (source.clone(), rule.id.clone());
        let within = SignedDuration::try_from(rule.within()).unwrap_or(SignedDuration::MAX);
        let goes_on = self.runs.get(&key).is_some_and(|run| at.duration_since(run.last) <= within);
        if !goes_on {
            let first = Run {
                rule: rule.id.clone(),
                source: source.clone(),
                first: at,
                last: at,
                count: 0,
                line: quote(),
                weight: Weight::Nothing,
            };
            self.runs.insert(key.clone(), first);
            self.forget_the_oldest();
        }
        let Some(run) = self.runs.get_mut(&key) else { return false };
        let before = run.weight;
        run.count = run.count.saturating_add(1);
        run.last = run.last.max(at);
        run.weight = weight(rule, run);
        run.weight != before
    }

    /// A line that calls itself an error, and that no rule knows: counted, to be shown.
    pub fn unknown(&mut self, source: &Source, quote: impl FnOnce() -> String) {
        self.unknown.entry(source.clone()).or_insert_with(|| Unknown { count: 0, line: quote() }).count += 1;
    }

    /// Errors that no rule knows, by log.
    pub fn unknowns(&self) -> impl Iterator<Item = (&Source, &Unknown)> {
        self.unknown.iter()
    }

    /// A line that tells of something good. Whether that is new: also what was long since told, perhaps by a process that has ended.
    pub fn good(&mut self, source: &Source, sign: &Sign<'_>, at: Timestamp) -> bool {
        let news = self.news.entry(source.uid.clone()).or_default();
        let before = match sign {
            Sign::Reached(server) if news.servers.len() < MOST_SERVERS || news.servers.contains_key(*server) => {
                news.servers.insert((*server).to_owned(), at)
            }
            Sign::Reached(_) => return false,
            Sign::RoundEnded => news.round.replace(at),
        };
        before.is_none_or(|before| at.duration_since(before) >= LONG_SINCE)
    }

    /// How far a log was read. Whether that is new.
    pub fn read(&mut self, source: &Source, read: Read) -> bool {
        let news = self.read.get(source) != Some(&read);
        self.read.insert(source.clone(), read);
        news
    }

    /// Forgets all that a log told: it is read again from its start, or its pod is gone.
    pub fn forget(&mut self, source: &Source) {
        self.runs.retain(|(from, _), _| from != source);
        self.read.remove(source);
        self.unknown.remove(source);
        if !self.read.keys().any(|other| other.uid == source.uid) {
            self.news.remove(&source.uid);
        }
    }

    /// Runs that mean something.
    pub fn runs(&self) -> impl Iterator<Item = &Run> {
        self.runs.values().filter(|run| run.weight > Weight::Nothing)
    }

    /// The time of the last line of all runs that fit, also of those that mean nothing yet.
    pub fn last(&self, fits: impl Fn(&Run) -> bool) -> Option<Timestamp> {
        self.runs.values().filter(|run| fits(run)).map(|run| run.last).max()
    }

    /// What good a pod's logs told.
    pub fn news(&self, uid: &str) -> News {
        self.news.get(uid).cloned().unwrap_or_default()
    }

    /// Logs that were not read to their end yet.
    pub fn unread(&self) -> impl Iterator<Item = (&Source, &Read)> {
        self.read.iter().filter(|(_, read)| **read != Read::ToTheEnd)
    }

    fn forget_the_oldest(&mut self) {
        if self.runs.len() > MOST_RUNS
            && let Some(oldest) = self.runs.iter().min_by_key(|(_, run)| run.last).map(|(key, _)| key.clone())
        {
            self.runs.remove(&oldest);
        }
    }
}

fn weight(rule: &Rule, run: &Run) -> Weight {
    let lasted = run.last.duration_since(run.first) >= SignedDuration::try_from(rule.lasting()).unwrap_or(SignedDuration::MAX);
    match rule.verdict {
        Verdict::Benign => Weight::Nothing,
        _ if run.count < rule.times() => Weight::Nothing,
        Verdict::Transient if lasted => Weight::Breaks,
        Verdict::Transient => Weight::Nothing,
        Verdict::Fatal if lasted => Weight::Holds,
        Verdict::Fatal => Weight::Breaks,
    }
}

/// Something good that a line tells.
#[derive(Debug, PartialEq, Eq)]
pub enum Sign<'a> {
    /// A vCenter answered.
    Reached(&'a str),
    /// A round of checks came to its end.
    RoundEnded,
}

/// Lines that tell of something good.
#[derive(Debug)]
pub struct Signs {
    any: RegexSet,
    reached: Regex,
}

const REACHED: &str = r"vCenter connect (\S+) succeeded|(?:Found node|Did not find node) .* in vc=(\S+) and datacenter=|Error while looking for vm=.* in vc=(\S+) and datacenter=.*: No VM found";
const ROUND_ENDED: &str = "Finished running all vSphere specific checks in the cluster";

impl Signs {
    /// Ready to read.
    pub fn new() -> Result<Self, BadRules> {
        let bad = |error| BadRules::Pattern("(good signs)".to_owned(), error);
        let any = regex::bytes::RegexSetBuilder::new([REACHED, ROUND_ENDED]).unicode(false).build().map_err(bad)?;
        let reached = regex::bytes::RegexBuilder::new(REACHED).unicode(false).build().map_err(bad)?;
        Ok(Self { any, reached })
    }

    /// What good the line of a component's log tells.
    pub fn of<'a>(&self, component: &str, line: &'a [u8]) -> Option<Sign<'a>> {
        if ![CLOUD_CONTROLLER_MANAGER, PROBLEM_DETECTOR].contains(&component) {
            return None;
        }
        let found = self.any.matches(line);
        if component == PROBLEM_DETECTOR {
            return found.matched(1).then_some(Sign::RoundEnded);
        }
        if !found.matched(0) {
            return None;
        }
        let captured = self.reached.captures(line)?;
        let server = captured.iter().skip(1).flatten().next()?.as_bytes();
        std::str::from_utf8(server).ok().map(Sign::Reached)
    }
}

#[cfg(test)]
mod tests;
