//! The pattern of a rule. Almost none of the built-in ones ever meets a line that may fit it, and compiled all of them take
//! megabytes: each is compiled when the first such line comes.

use std::sync::OnceLock;

use regex::bytes::{Regex, RegexBuilder};

/// What a rule's automaton may take: it is built as lines need it, and a line reaches it only with the rule's words in it.
const AUTOMATON: usize = 1 << 16;

/// A regular expression, compiled or to be compiled.
#[derive(Debug)]
pub struct Pattern {
    text: String,
    compiled: OnceLock<Option<Regex>>,
}

impl Pattern {
    /// One of the user's, which had to be compiled to see whether it is one.
    pub fn ready(regex: Regex) -> Self {
        Self { text: String::new(), compiled: OnceLock::from(Some(regex)) }
    }

    /// One of the built-in ones; a test compiles them all.
    pub fn when_needed(text: &str) -> Self {
        Self { text: text.to_owned(), compiled: OnceLock::new() }
    }

    /// Whether the line holds it.
    pub fn fits(&self, line: &[u8]) -> bool {
        let compile = || regex(&self.text, true).inspect_err(|error| tracing::error!(pattern = self.text, %error, "a rule is broken")).ok();
        self.compiled.get_or_init(compile).as_ref().is_some_and(|regex| regex.is_match(line))
    }
}

/// Bytes, since a log may hold anything.
pub fn regex(pattern: &str, any_case: bool) -> Result<Regex, regex::Error> {
    RegexBuilder::new(pattern).unicode(false).case_insensitive(any_case).dfa_size_limit(AUTOMATON).build()
}
