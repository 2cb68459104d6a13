//! What is known of one line, for a reader.

use serde::Serialize;
use vmi_crds::spec::Verdict;

use crate::rules::{Catalogue, Judged};

/// What a line means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Explanation<'a> {
    /// The rule that fits, if one does.
    pub rule: Option<&'a str>,
    /// What it says of the line.
    pub verdict: Word,
    /// What the line means.
    pub meaning: &'a str,
    /// What to do.
    pub remedy: &'a str,
}

/// A verdict, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Word {
    /// Does not get better by itself.
    Fatal,
    /// May happen for a while.
    Transient,
    /// Means nothing.
    Benign,
    /// No rule fits.
    Unknown,
}

impl Word {
    /// As it is printed.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fatal => "fatal",
            Self::Transient => "transient",
            Self::Benign => "benign",
            Self::Unknown => "unknown",
        }
    }
}

const NOT_VSPHERES: &str = "about a node that is not vSphere's";
const UNKNOWN_ERROR: &str = "an error that no rule knows; only a burst of them would hold a migration, as UNK-001";

/// What is known of a line of the component's log, where these nodes are not vSphere's; without a component all rules are tried.
pub fn explain<'a>(catalogue: &'a Catalogue, component: Option<&str>, not_vspheres: &[String], line: &[u8]) -> Explanation<'a> {
    let (rule, verdict, meaning, remedy) = match catalogue.judge(component, line) {
        Judged::Known(rule) if !rule.concerns(line, not_vspheres) => (Some(rule.id.as_str()), Word::Benign, NOT_VSPHERES, ""),
        Judged::Known(rule) => {
            let verdict = match rule.verdict {
                Verdict::Fatal => Word::Fatal,
                Verdict::Transient => Word::Transient,
                Verdict::Benign => Word::Benign,
            };
            (Some(rule.id.as_str()), verdict, rule.meaning.as_str(), rule.remedy.as_str())
        }
        Judged::UnknownError => (None, Word::Unknown, UNKNOWN_ERROR, catalogue.unknown().remedy.as_str()),
        Judged::Nothing => (None, Word::Unknown, "", ""),
    };
    Explanation { rule, verdict, meaning, remedy }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explained(line: &str) -> (Option<&'static str>, &'static str) {
        let explained = explain(Catalogue::built_in(), Some("cloud-controller-manager"), &["host-1".to_owned()], line.as_bytes());
        (explained.rule, explained.verdict.as_str())
    }

    #[test]
    fn bare_metal_is_muted_by_the_nodes_name_and_nothing_else_is() {
        let line = |node: &str| format!("E1116 19:49:46.3 1 nodemanager.go:90] error discovering node {node}: No VM found");
        assert_eq!(explained(&line("host-1")), (Some("CCM-012"), "benign"));
        assert_eq!(explained(&line("host-10")), (Some("CCM-012"), "fatal"));
        assert_eq!(explained("E1116 19:49:46.3 1 a.go:1] host-1: Unknown secret key x"), (Some("CCM-003"), "fatal"));
    }

    #[test]
    fn a_line_without_a_rule_is_unknown_and_an_error_among_them_is_told() {
        let of = |line: &str| explain(Catalogue::built_in(), None, &[], line.as_bytes()).meaning;
        assert_eq!(explained("I1116 19:49:46.3 1 a.go:1] in tune"), (None, "unknown"));
        assert_eq!(explained("E1116 19:49:46.3 1 a.go:1] out of tune"), (None, "unknown"));
        assert_eq!((of("I1116 19:49:46.3 1 a.go:1] in tune"), of("E1116 19:49:46.3 1 a.go:1] out of tune")), ("", UNKNOWN_ERROR));
    }
}
