//! What lines in logs mean: the rules of `rules.yaml`, with those of the vmi before them.

mod nodes;
mod page;
mod pattern;
mod reached;
mod severity;
mod words;

use std::time::Duration;

pub use page::page;
pub(crate) use page::seconds;
pub use reached::Reached;
use regex::bytes::Regex;
use serde::Deserialize;
use vmi_crds::period::Period;
use vmi_crds::spec::{LogPattern, Verdict};

use self::pattern::{Pattern, regex};
use self::words::{Places, Words};

const BUILT_IN: &str = include_str!("../rules.yaml");
/// The component of a rule for all.
const ANY: &str = "any";
/// So much of a line fits into a failure.
const QUOTED: usize = 300;

/// What a line means.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// What conditions, metrics and `spec.health.accept` call it.
    pub id: String,
    /// Whose log, or `any`.
    pub component: String,
    /// Whether it counts.
    pub verdict: Verdict,
    /// A regular expression that the line holds; none for errors that no other rule knows.
    #[serde(default)]
    pub pattern: String,
    /// Whether it is about one node, which has to be vSphere's.
    #[serde(default)]
    pub node: bool,
    /// Whether its line does not name that node.
    #[serde(default)]
    nameless: bool,
    /// What it means.
    pub meaning: String,
    /// Why it happens.
    #[serde(default)]
    pub cause: String,
    /// What to do.
    #[serde(default)]
    pub remedy: String,
    #[serde(default)]
    times: Option<u32>,
    #[serde(default)]
    within: Option<Period>,
    #[serde(default)]
    lasting: Option<Period>,
    #[serde(default)]
    clear: Option<Period>,
    #[serde(default)]
    line: String,
    #[serde(default)]
    #[cfg_attr(not(test), allow(dead_code, reason = "read by tests, and by people"))]
    near: String,
}

const TIMES: u32 = 3;
const TIMES_TRANSIENT: u32 = 1;
const WITHIN: Duration = Duration::from_secs(300);
const CLEAR: Duration = Duration::from_secs(600);

impl Rule {
    /// How often it has to come before it counts.
    pub fn times(&self) -> u32 {
        self.times.unwrap_or(if self.verdict == Verdict::Transient { TIMES_TRANSIENT } else { TIMES })
    }

    /// A line that comes later than this after the last one begins a new count.
    pub fn within(&self) -> Duration {
        self.within.as_ref().map_or(WITHIN, Period::duration)
    }

    /// How long it has to last before it counts.
    pub fn lasting(&self) -> Duration {
        self.lasting.as_ref().map_or(Duration::ZERO, Period::duration)
    }

    /// How long after the last line it still counts.
    pub fn clear(&self) -> Duration {
        self.clear.as_ref().map_or(CLEAR, Period::duration)
    }

    /// Whether a line that it fits counts, since it is not about a node that is not vSphere's. Where it names no node, it may be about
    /// any of them.
    pub fn concerns(&self, line: &[u8], not_vspheres: &[String]) -> bool {
        let is_not_vspheres = if self.nameless { !not_vspheres.is_empty() } else { nodes::names_one_of(line, not_vspheres) };
        !(self.node && is_not_vspheres)
    }

    /// How often and for how long it has to come before it counts, in words.
    pub fn threshold(&self) -> String {
        page::threshold(self)
    }

    /// Without a component it is about all of them.
    fn is_about(&self, component: Option<&str>) -> bool {
        component.is_none_or(|component| self.component == component || self.component == ANY)
    }

    /// A rule of the vmi's, by its place there.
    fn of_the_user(place: usize, pattern: &LogPattern) -> Self {
        Self {
            id: format!("USR-{:03}", place + 1),
            component: pattern.component.clone(),
            verdict: pattern.verdict,
            pattern: pattern.pattern.clone(),
            node: false,
            nameless: false,
            meaning: format!("spec.health.patterns[{place}] of the vmi says that this line is a failure"),
            cause: "as whoever wrote the pattern knows".to_owned(),
            remedy: "mend what the line names, or change the pattern".to_owned(),
            times: Some(1),
            within: None,
            lasting: None,
            clear: None,
            line: String::new(),
            near: String::new(),
        }
    }
}

/// Why the rules cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BadRules {
    /// The file is broken.
    #[error("rules.yaml cannot be read: {0}")]
    Unreadable(#[from] serde_saphyr::Error),
    /// A pattern is broken.
    #[error("the pattern of rule {0} is no regular expression: {1}")]
    Pattern(String, regex::Error),
    /// What is to be said of errors that no rule knows is missing.
    #[error("rules.yaml has no rule without a pattern, for errors that no other rule knows")]
    NothingForUnknown,
}

/// What is known of a line.
#[derive(Clone, Copy, Debug)]
pub enum Judged<'a> {
    /// A rule fits.
    Known(&'a Rule),
    /// It calls itself an error, and no rule fits.
    UnknownError,
    /// Neither.
    Nothing,
}

/// All rules, ready to judge lines.
#[derive(Debug)]
pub struct Catalogue {
    rules: Vec<Rule>,
    patterns: Vec<Pattern>,
    words: Words,
    unknown: Rule,
    secrets: Regex,
    /// Patterns of the vmi that cannot be used, and why.
    pub unusable: Vec<String>,
}

impl Catalogue {
    /// The built-in rules, after the user's.
    pub fn new(patterns: &[LogPattern]) -> Result<Self, BadRules> {
        let mut built_in: Vec<Rule> = serde_saphyr::from_str(BUILT_IN)?;
        let unknown = built_in.pop_if(|last| last.pattern.is_empty()).ok_or(BadRules::NothingForUnknown)?;
        let room = Places::MOST.saturating_sub(built_in.len());
        let (mut rules, mut compiled, mut unusable) = (Vec::new(), Vec::new(), Vec::new());
        for (place, pattern) in patterns.iter().enumerate() {
            match regex(&pattern.pattern, false) {
                Ok(_) if place >= room => unusable.push(format!("spec.health.patterns[{place}] is one too many")),
                Ok(regex) => {
                    rules.push(Rule::of_the_user(place, pattern));
                    compiled.push(Pattern::ready(regex));
                }
                Err(error) => unusable.push(format!("spec.health.patterns[{place}] is no regular expression: {error}")),
            }
        }
        for rule in built_in {
            compiled.push(Pattern::when_needed(&rule.pattern));
            rules.push(rule);
        }
        let words = Words::of(rules.iter().map(|rule| rule.pattern.as_str()));
        let secrets = regex(SECRETS, true).map_err(|error| BadRules::Pattern("(secrets)".to_owned(), error))?;
        Ok(Self { rules, patterns: compiled, words, unknown, secrets, unusable })
    }

    /// What is known of a line of the component's log; without a component all rules are tried.
    pub fn judge(&self, component: Option<&str>, line: &[u8]) -> Judged<'_> {
        let fits = |place: &usize| self.patterns.get(*place).is_some_and(|pattern| pattern.fits(line));
        let is_about = |place: &usize| self.rules.get(*place).is_some_and(|rule| rule.is_about(component));
        let places = self.words.of_line(line);
        let known = if places.is_empty() { None } else { places.iter().find(|place| is_about(place) && fits(place)) };
        match known {
            Some(place) => self.rules.get(place).map_or(Judged::Nothing, Judged::Known),
            None if severity::is_error(line) => Judged::UnknownError,
            None => Judged::Nothing,
        }
    }

    /// The rule of this id.
    pub fn rule(&self, id: &str) -> Option<&Rule> {
        self.rules.iter().chain([&self.unknown]).find(|rule| rule.id == id)
    }

    /// The rule of errors that no other rule knows.
    pub fn unknown(&self) -> &Rule {
        &self.unknown
    }

    /// All rules with a pattern, in the order in which they decide.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The line as it may be quoted: short, and without what nobody else may read.
    pub fn quote(&self, line: &[u8]) -> String {
        shortened(self.masked(line).trim())
    }

    /// The line without what nobody else may read.
    pub fn masked(&self, line: &[u8]) -> String {
        let masked = self.secrets.replace_all(line, b"${before}${before2}${before3}***".as_slice());
        String::from_utf8_lossy(&masked).into_owned()
    }
}

/// Without its middle where it is too long: who speaks stands at the start of a line, and the cause of all at its end.
fn shortened(line: &str) -> String {
    if line.len() <= QUOTED {
        return line.to_owned();
    }
    let start = vmi_kit::text::cut(line, QUOTED / 3);
    let mut end = line.len() - (QUOTED - start.len());
    while !line.is_char_boundary(end) {
        end += 1;
    }
    format!("{start}{}", &line[end..])
}

const SECRETS: &str = concat!(
    r#"(?P<before>(?:password|passwd|pwd|token|secret|api[_-]?key|soap_session|session[_ -]?id|cookie)\\*"?\s*[=:]\s*\\*"?)[^\s"\\,;&}]+"#,
    r"|(?P<before2>(?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{6,}",
    r"|(?P<before3>://[^\s/:@]+:)[^\s/@]+",
);

#[cfg(test)]
mod tests;
