//! Every check: a small pure look at the facts. All of them run, none stops another. An id is public and never changes its meaning.

mod asked;
mod cluster;
mod config;
mod credentials;
mod domains;
mod history;
mod machines;
mod nearest;
mod operators;
#[cfg(test)]
pub(crate) mod sample;
mod templates;
mod topology;
mod unmoved;
mod vcenters;

use vmi_crds::status::{Check as Reported, CheckResult};
use vmi_kit::text::cut;

use crate::facts::Facts;

/// One check.
pub struct Check {
    /// Its id.
    pub id: &'static str,
    /// What it makes sure of.
    pub about: &'static str,
    /// What becomes of the migration if it is not so.
    pub weight: Weight,
    /// Looks.
    pub judge: fn(&Facts) -> Finding,
}

/// What becomes of a migration when a check finds something wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// It does not start.
    Blocks,
    /// It does not start unless the user takes it on by `spec.acknowledged`.
    BlocksUnlessAcknowledged,
    /// It starts all the same.
    Warns,
}

/// What a check found.
#[derive(Debug, PartialEq, Eq)]
pub enum Finding {
    /// All is well: what was looked at.
    Passed(String),
    /// Worth knowing, and never in the way.
    Noted(Vec<String>),
    /// Not as it should be: each with the field, what was found instead, and what to do.
    Wrong(Vec<String>),
}

/// A check with what it found.
pub struct Judged {
    /// The check.
    pub id: &'static str,
    /// How it ended.
    pub result: CheckResult,
    /// What it says, a line each.
    pub lines: Vec<String>,
}

const THEMES: &[&[Check]] = &[
    asked::CHECKS,
    domains::CHECKS,
    cluster::CHECKS,
    operators::CHECKS,
    config::CHECKS,
    credentials::CHECKS,
    vcenters::CHECKS,
    topology::CHECKS,
    templates::CHECKS,
    machines::CHECKS,
    unmoved::CHECKS,
    history::CHECKS,
];

/// Every check.
pub fn all() -> impl Iterator<Item = &'static Check> {
    THEMES.iter().copied().flatten()
}

/// Runs every check.
pub fn judge(facts: &Facts) -> Vec<Judged> {
    all().map(|check| judged(check, (check.judge)(facts), &facts.spec.acknowledged)).collect()
}

fn judged(check: &Check, finding: Finding, acknowledged: &[String]) -> Judged {
    let taken_on = acknowledged.iter().any(|id| id == check.id);
    let (result, mut lines) = match (finding, check.weight) {
        (Finding::Passed(text), _) => (CheckResult::Passed, vec![text]),
        (Finding::Noted(lines), _) | (Finding::Wrong(lines), Weight::Warns) => (CheckResult::Warning, lines),
        (Finding::Wrong(lines), Weight::BlocksUnlessAcknowledged) if taken_on => (CheckResult::Acknowledged, lines),
        (Finding::Wrong(lines), _) => (CheckResult::Blocking, lines),
    };
    if result == CheckResult::Blocking && taken_on {
        lines.push(format!("{} cannot be acknowledged", check.id));
    }
    Judged { id: check.id, result, lines }
}

impl Judged {
    /// As it stands in the status; the plan's ConfigMap has all of it.
    pub fn reported(&self) -> Reported {
        Reported { id: self.id.to_owned(), result: self.result, message: cut(&self.lines.join("; "), 512) }
    }
}

/// Wrong if there is something to say, else passed.
pub(crate) fn wrong_or(lines: Vec<String>, passed: impl Into<String>) -> Finding {
    if lines.is_empty() { Finding::Passed(passed.into()) } else { Finding::Wrong(lines) }
}

/// Noted if there is something to say, else passed.
pub(crate) fn noted_or(lines: Vec<String>, passed: impl Into<String>) -> Finding {
    if lines.is_empty() { Finding::Passed(passed.into()) } else { Finding::Noted(lines) }
}

/// What the apiserver did not tell; it is asked again in a moment.
pub(crate) fn unasked(what: &str, why: &str) -> String {
    format!("{what}: could not be looked at: {why}; it is tried again, look at the apiserver and at the operator's rights if it stays")
}

/// What nobody could look at, because a vCenter did not let us; the check that says why blocks.
pub(crate) fn not_looked_at(facts: &Facts, servers: impl Iterator<Item = impl AsRef<str>>) -> Vec<String> {
    let silent = servers.filter(|server| facts.vcenter(server.as_ref()).is_none());
    silent.map(|server| format!("not checked in {}: see VCT-001, TLS-003, CRD-001 and CRD-002", server.as_ref())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHECK: Check =
        Check { id: "TST-001", about: "", weight: Weight::BlocksUnlessAcknowledged, judge: |_| Finding::Passed(String::new()) };

    fn result(weight: Weight, finding: Finding, acknowledged: &[&str]) -> CheckResult {
        let acknowledged: Vec<String> = acknowledged.iter().map(|id| (*id).to_owned()).collect();
        judged(&Check { weight, ..CHECK }, finding, &acknowledged).result
    }

    #[test]
    fn only_what_may_be_acknowledged_and_is_stops_blocking() {
        let wrong = || Finding::Wrong(vec!["bad".to_owned()]);
        for (weight, acknowledged, want) in [
            (Weight::Blocks, &[][..], CheckResult::Blocking),
            (Weight::Blocks, &["TST-001"][..], CheckResult::Blocking),
            (Weight::BlocksUnlessAcknowledged, &["TST-002"][..], CheckResult::Blocking),
            (Weight::BlocksUnlessAcknowledged, &["TST-001"][..], CheckResult::Acknowledged),
            (Weight::Warns, &[][..], CheckResult::Warning),
        ] {
            assert_eq!(result(weight, wrong(), acknowledged), want, "{weight:?} {acknowledged:?}");
        }
        assert_eq!(result(Weight::Blocks, Finding::Noted(Vec::new()), &[]), CheckResult::Warning);
        assert_eq!(result(Weight::Blocks, Finding::Passed(String::new()), &["TST-001"]), CheckResult::Passed);
    }

    #[test]
    fn ids_are_well_formed_and_nobody_shares_one() {
        let mut ids: Vec<&str> = all().map(|check| check.id).collect();
        for id in &ids {
            let (letters, digits) = id.split_once('-').unwrap();
            assert!((2..=5).contains(&letters.len()) && letters.bytes().all(|byte| byte.is_ascii_uppercase()), "{id}");
            assert!(digits.len() == 3 && digits.bytes().all(|byte| byte.is_ascii_digit()), "{id}");
        }
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), count);
        assert!(count <= 96, "the status takes 96 checks");
    }

    #[test]
    fn a_good_cluster_passes_every_check() {
        for judged in judge(&sample::good()) {
            assert_eq!(judged.result, CheckResult::Passed, "{}: {:?}", judged.id, judged.lines);
        }
    }

    #[test]
    fn a_vcenter_that_does_not_answer_leaves_checks_open_but_never_passed_by_silence() {
        let facts = sample::silent(sample::TARGET, crate::facts::Cause::Connection);
        let judged = judge(&facts);
        let blocking: Vec<&str> = judged.iter().filter(|one| one.result == CheckResult::Blocking).map(|one| one.id).collect();
        assert_eq!(blocking, ["VCT-001"]);
        let open = judged.iter().filter(|one| one.lines.iter().any(|line| line.starts_with("not checked in")));
        assert!(open.count() > 8);
    }

    #[test]
    fn what_the_apiserver_does_not_tell_blocks_in_its_own_check_and_stops_no_other() {
        let facts = sample::asked_for(|asked| {
            asked.path = Err("the dry run of Infrastructure: try again later".to_owned());
            asked.volumes = Err("the apiserver: persistentvolumes is forbidden".to_owned());
        });
        let judged = judge(&facts);
        assert_eq!(judged.len(), all().count());
        let blocking: Vec<&Judged> = judged.iter().filter(|one| one.result == CheckResult::Blocking).collect();
        assert_eq!(blocking.iter().map(|one| one.id).collect::<Vec<_>>(), ["PTH-001", "VOL-001"]);
        for (one, words) in blocking.iter().zip(["could not be looked at: the dry run", "could not be looked at: the apiserver"]) {
            assert!(one.lines[0].contains(words), "{:?}", one.lines);
        }
    }

    #[test]
    fn the_page_of_checks_lists_every_check() {
        let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/checks.md");
        let page = crate::page::checks();
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&file, &page).unwrap();
        }
        let stored = std::fs::read_to_string(&file).unwrap();
        assert!(stored == page, "docs/checks.md is not what the checks say: run UPDATE_GOLDEN=1 cargo test -p vmi-preflight");
    }
}
