//! What becomes of the pairs in one secret: pure.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use vmi_intent::secret::{self, Data, Outcome, Pair, Refused};

use crate::fingerprint;

/// The pair of each target.
pub type Pairs = BTreeMap<String, Pair>;

/// What is remembered of a secret before its first change, by server.
pub type Saved = BTreeMap<String, SavedPair>;

/// What is remembered of one server's pair. No way of printing shows it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedPair {
    /// As it was, encoded as in the Secret; none where there was no whole pair.
    before: Option<[String; 2]>,
    /// Tells whether a pair is still the one that was written.
    wrote: String,
}

/// The data with every pair in it; none if they are there already.
pub fn added(data: &Data, wanted: &Pairs) -> Result<Option<Data>, Refused> {
    let mut changed = None;
    for (server, pair) in wanted {
        if let Outcome::Changed(next) = secret::merge(changed.as_ref().unwrap_or(data), server, pair)? {
            changed = Some(next);
        }
    }
    Ok(changed)
}

/// Whether every pair is there.
pub fn holds(data: &Data, wanted: &Pairs) -> bool {
    wanted.iter().all(|(server, pair)| secret::pair(data, server).is_ok_and(|found| found.as_ref() == Some(pair)))
}

/// What to remember before the pairs are written.
pub fn remembered(data: &Data, wanted: &Pairs, salt: &str) -> Saved {
    let one = |(server, pair): (&String, &Pair)| {
        let before = raw(data, server).map(|[username, password]| [STANDARD.encode(username), STANDARD.encode(password)]);
        let wrote = fingerprint::of(salt, &[pair.username().as_bytes(), pair.password().as_bytes()]);
        (server.clone(), SavedPair { before, wrote })
    };
    wanted.iter().map(one).collect()
}

/// Servers whose pair is gone, and those whose pair is another than was written. Of a secret that was not written, only what is gone.
pub fn lost<'a>(data: &Data, saved: Option<&Saved>, targets: &[&'a str], wanted: &Pairs, salt: &str) -> (Vec<&'a str>, Vec<&'a str>) {
    let (mut gone, mut changed) = (Vec::new(), Vec::new());
    for server in targets {
        let written = saved.and_then(|saved| saved.get(*server));
        match (raw(data, server), written) {
            (None, _) => gone.push(*server),
            (Some(found), Some(written)) if !is_ours(found, written, wanted.get(*server), salt) => changed.push(*server),
            _ => {}
        }
    }
    (gone, changed)
}

/// Whether it is the pair that was written, or that of the vmi's own Secret: the password may have been renewed since.
fn is_ours([username, password]: [&Vec<u8>; 2], written: &SavedPair, wanted: Option<&Pair>, salt: &str) -> bool {
    fingerprint::of(salt, &[username, password]) == written.wrote
        || wanted.is_some_and(|pair| pair.username().as_bytes() == username && pair.password().as_bytes() == password)
}

/// What the way back makes of a secret.
#[derive(PartialEq, Eq)]
pub struct TakenBack {
    /// The data as they should be; none if they are.
    pub data: Option<Data>,
    /// Servers whose pair somebody else changed since; it stays.
    pub changed_by_others: Vec<String>,
}

/// Takes back what was written where it still stands.
pub fn taken_back(data: &Data, saved: &Saved, wanted: &Pairs, salt: &str) -> TakenBack {
    let mut rest = data.clone();
    let mut changed_by_others = Vec::new();
    for (server, written) in saved {
        let Some([username, password]) = raw(data, server) else { continue };
        let before = written
            .before
            .as_ref()
            .and_then(|[username, password]| Some([STANDARD.decode(username).ok()?, STANDARD.decode(password).ok()?]));
        let ours = is_ours([username, password], written, wanted.get(server), salt);
        match before {
            Some([old_username, old_password]) if old_username == *username && old_password == *password => {}
            before if ours => {
                let [username, password] = keys(server);
                match before {
                    Some([old_username, old_password]) => rest.extend([(username, old_username), (password, old_password)]),
                    None => rest.retain(|key, _| *key != username && *key != password),
                }
            }
            _ => changed_by_others.push(server.clone()),
        }
    }
    TakenBack { data: (rest != *data).then_some(rest), changed_by_others }
}

fn keys(server: &str) -> [String; 2] {
    [format!("{server}.username"), format!("{server}.password")]
}

fn raw<'a>(data: &'a Data, server: &str) -> Option<[&'a Vec<u8>; 2]> {
    let [username, password] = keys(server);
    Some([data.get(&username)?, data.get(&password)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    const SALT: &str = "uid";

    fn data(entries: &[(&str, &str)]) -> Data {
        entries.iter().map(|(key, value)| ((*key).to_owned(), value.as_bytes().to_vec())).collect()
    }

    fn wanted(password: &str) -> Pairs {
        Pairs::from([("b".to_owned(), Pair::new("b", "user@b", password).unwrap())])
    }

    const SOURCE: [(&str, &str); 2] = [("a.username", "user@a"), ("a.password", "secret-a")];

    fn with(username: &str, password: &str) -> Data {
        let mut all = data(&SOURCE);
        all.extend(data(&[("b.username", username), ("b.password", password)]));
        all
    }

    #[test]
    fn a_pair_is_added_whole_and_the_others_stay() {
        let next = added(&data(&SOURCE), &wanted("new")).unwrap().unwrap();
        assert!(next == with("user@b", "new"));
        assert!(holds(&next, &wanted("new")) && !holds(&data(&SOURCE), &wanted("new")));
        assert!(added(&next, &wanted("new")).unwrap().is_none(), "nothing is left to do");
    }

    #[test]
    fn a_stale_password_is_replaced_and_comes_back() {
        let stale = with("user@b", "old");
        let next = added(&stale, &wanted("new")).unwrap().unwrap();
        let saved = remembered(&stale, &wanted("new"), SALT);
        let back = taken_back(&next, &saved, &wanted("new"), SALT);
        assert!(back.data == Some(stale) && back.changed_by_others.is_empty());
    }

    #[test]
    fn a_secret_with_a_foreign_key_is_not_written() {
        let mut foreign = data(&SOURCE);
        foreign.extend(data(&[("note", "x")]));
        assert_eq!(added(&foreign, &wanted("new")).unwrap_err(), Refused::Foreign { key: "note".to_owned() });
    }

    #[test]
    fn what_was_absent_before_is_absent_again() {
        let saved = remembered(&data(&SOURCE), &wanted("new"), SALT);
        let back = taken_back(&with("user@b", "new"), &saved, &wanted("new"), SALT);
        assert!(back.data == Some(data(&SOURCE)) && back.changed_by_others.is_empty());
        let again = taken_back(&data(&SOURCE), &saved, &wanted("new"), SALT);
        assert!(again.data.is_none() && again.changed_by_others.is_empty(), "twice is once");
    }

    #[test]
    fn half_a_pair_never_comes_back() {
        let mut half = data(&SOURCE);
        half.extend(data(&[("b.username", "user@b")]));
        let saved = remembered(&half, &wanted("new"), SALT);
        assert!(taken_back(&with("user@b", "new"), &saved, &wanted("new"), SALT).data == Some(data(&SOURCE)));
    }

    #[test]
    fn a_pair_that_somebody_else_changed_since_stays_and_is_named() {
        let saved = remembered(&data(&SOURCE), &wanted("new"), SALT);
        let back = taken_back(&with("user@b", "theirs"), &saved, &wanted("new"), SALT);
        assert!(back.data.is_none());
        assert_eq!(back.changed_by_others, ["b"]);
    }

    #[test]
    fn a_password_renewed_in_the_meantime_is_still_known_as_ours() {
        let saved = remembered(&data(&SOURCE), &wanted("new"), SALT);
        for standing in ["new", "newer"] {
            let back = taken_back(&with("user@b", standing), &saved, &wanted("newer"), SALT);
            assert!(back.data == Some(data(&SOURCE)) && back.changed_by_others.is_empty(), "{standing}");
        }
    }

    #[test]
    fn a_pair_that_is_gone_or_another_is_told_but_not_one_that_was_renewed() {
        let saved = remembered(&data(&SOURCE), &wanted("new"), SALT);
        let look = |data: &Data, saved: Option<&Saved>| lost(data, saved, &["b"], &wanted("newer"), SALT);
        type Lost<'a> = (Vec<&'a str>, Vec<&'a str>);
        let (fine, gone, changed): (Lost<'_>, Lost<'_>, Lost<'_>) = ((vec![], vec![]), (vec!["b"], vec![]), (vec![], vec!["b"]));
        assert_eq!(look(&with("user@b", "new"), Some(&saved)), fine);
        assert_eq!(look(&with("user@b", "newer"), Some(&saved)), fine, "renewed in the vmi's own Secret too");
        assert_eq!(look(&with("user@b", "theirs"), Some(&saved)), changed);
        assert_eq!(look(&data(&SOURCE), Some(&saved)), gone);
        assert_eq!(look(&with("user@b", "theirs"), None), fine, "what was there before the migration is its owner's");
        assert_eq!(look(&data(&SOURCE), None), gone);
    }

    #[test]
    fn what_is_remembered_holds_no_password_that_was_not_there_before() {
        let text = serde_json::to_string(&remembered(&data(&SOURCE), &wanted("new"), SALT)).unwrap();
        assert!(!text.contains("new") && !text.contains(&STANDARD.encode("new")) && text.contains("\"before\":null"), "{text}");
    }
}
