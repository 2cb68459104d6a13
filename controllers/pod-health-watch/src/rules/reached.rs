//! Which fatal rules would hold a migration by what one log says, counted as the operator counts.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::Rule;
use crate::ledger::{Ledger, Source, Weight};
use crate::lines;

/// What one log has come to.
#[derive(Default)]
pub struct Reached {
    ledger: Ledger,
    last: Option<Timestamp>,
    rules: BTreeSet<String>,
}

impl Reached {
    /// A line that the rule fits. One without a time has that of the line before it; where none has a time, only how often they come
    /// can be told.
    pub fn add(&mut self, rule: &Rule, line: &[u8]) {
        self.last = lines::time(line).or(self.last);
        let enough = if self.last.is_some() { Weight::Holds } else { Weight::Breaks };
        let changed = self.ledger.bad(&THE_ONLY, rule, self.last.unwrap_or_default(), String::new);
        if changed && self.ledger.runs().any(|run| run.rule == rule.id && run.weight >= enough) {
            self.rules.insert(rule.id.clone());
        }
    }

    /// Whether lines of the rule came often and long enough at some time.
    pub fn holds(&self, rule: &str) -> bool {
        self.rules.contains(rule)
    }
}

/// All lines are of one log.
const THE_ONLY: Source = Source { uid: String::new(), container: "", component: "", namespace: "", pod: String::new() };

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Catalogue;

    fn holds(rule: &str, lines: &[String]) -> bool {
        let rule = Catalogue::built_in().rule(rule).unwrap();
        let mut reached = Reached::default();
        for line in lines {
            reached.add(rule, line.as_bytes());
        }
        reached.holds(&rule.id)
    }

    fn every(seconds: u32, times: u32, line: fn(u32, u32) -> String) -> Vec<String> {
        (0..times).map(|time| line(time * seconds / 60, time * seconds % 60)).collect()
    }

    fn klog(minute: u32, second: u32) -> String {
        format!("E1116 19:{minute:02}:{second:02}.391861   27517 x.go:1] x")
    }

    fn stamped(minute: u32, second: u32) -> String {
        format!("2026-11-16T19:{minute:02}:{second:02}.391861000Z it says so")
    }

    fn json(minute: u32, second: u32) -> String {
        format!(r#"{{"level":"error","time":"2026-11-16T19:{minute:02}:{second:02}.391861Z","msg":"x"}}"#)
    }

    fn logfmt(minute: u32, second: u32) -> String {
        format!(r#"time="2026-11-16T19:{minute:02}:{second:02}Z" level=error msg="x""#)
    }

    #[test]
    fn a_rule_is_reached_as_often_and_as_long_as_it_says_by_the_times_of_the_lines() {
        for line in [klog, stamped, json, logfmt] {
            assert!(!holds("CCM-006", &every(1, 4, line)) && holds("CCM-006", &every(1, 5, line)), "{}", line(0, 0));
            assert!(!holds("CCM-006", &every(121, 9, line)), "{}", line(0, 0));
            assert!(!holds("CCM-001", &every(3, 4, line)) && holds("CCM-001", &every(4, 4, line)), "{}", line(0, 0));
            assert!(holds("CCM-009", &every(1, 1, line)), "{}", line(0, 0));
        }
    }

    #[test]
    fn where_lines_have_no_time_it_is_reached_by_how_often_they_come() {
        let plain = |_, _| "it says so".to_owned();
        assert!(!holds("NET-002", &every(0, 2, plain)) && holds("NET-002", &every(0, 3, plain)));
    }

    #[test]
    fn what_was_reached_once_stays_so() {
        assert!(holds("CCM-006", &[every(1, 5, klog), vec![klog(30, 0)]].concat()));
    }
}
