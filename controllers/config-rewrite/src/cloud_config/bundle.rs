//! Certificates in a text, one after the other: which are missing, and taken out again.

use std::collections::BTreeSet;

const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";

/// The text with the certificates of `more` that it lacks, and how many those are.
pub fn joined(text: &str, more: &str) -> (String, usize) {
    let mut known: BTreeSet<String> = certificates(text).iter().map(|block| identity(block)).collect();
    let missing: Vec<&str> = certificates(more).into_iter().filter(|block| known.insert(identity(block))).collect();
    let mut joined = text.to_owned();
    for block in &missing {
        if !joined.is_empty() && !joined.ends_with('\n') {
            joined.push('\n');
        }
        joined.push_str(block);
        joined.push('\n');
    }
    (joined, missing.len())
}

/// The text without the certificates of `more` that `before` had not.
pub fn without(text: &str, more: &str, before: &str) -> String {
    let had: BTreeSet<String> = certificates(before).iter().map(|block| identity(block)).collect();
    let gone: BTreeSet<String> =
        certificates(more).iter().map(|block| identity(block)).filter(|certificate| !had.contains(certificate)).collect();
    let mut rest = text.to_owned();
    for block in certificates(text).into_iter().filter(|block| gone.contains(&identity(block))) {
        let line = format!("{block}\n");
        rest = if rest.contains(&line) { rest.replace(&line, "") } else { rest.replace(block, "") };
    }
    rest
}

fn certificates(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(BEGIN) {
        let Some(length) = rest[start..].find(END) else { break };
        let end = start + length + END.len();
        found.push(&rest[start..end]);
        rest = &rest[end..];
    }
    found
}

/// Line breaks are a matter of taste.
fn identity(block: &str) -> String {
    block.chars().filter(|letter| !letter.is_whitespace()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn certificate(body: &str) -> String {
        format!("{BEGIN}\n{body}\n{END}\n")
    }

    #[test]
    fn only_what_is_missing_is_appended_each_once() {
        let (one, two) = (certificate("AAAA"), certificate("BBBB"));
        assert_eq!(joined(&one, &format!("# two\n{two}{two}{one}")), (format!("{one}{two}"), 1));
        assert_eq!(joined(one.trim_end(), &two), (format!("{one}{two}"), 1));
        assert_eq!(joined("", &one), (one.clone(), 1));
        let wrapped = one.replace("AAAA", "AA\nAA");
        assert_eq!(joined(&wrapped, &one), (wrapped.clone(), 0), "the same certificate, wrapped elsewhere");
    }

    #[test]
    fn only_what_was_appended_is_taken_out() {
        let (one, two, three) = (certificate("AAAA"), certificate("BBBB"), certificate("CCCC"));
        let all = format!("{one}# by hand\n{two}{three}");
        assert_eq!(without(&all, &format!("{one}{two}"), &one), format!("{one}# by hand\n{three}"));
        assert_eq!(without(&all, "", &one), all);
    }

    #[test]
    fn a_certificate_without_an_end_is_none() {
        assert_eq!(joined("", &format!("{BEGIN}\nAAAA\n")), (String::new(), 0));
    }
}
