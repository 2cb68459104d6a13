//! Which sets are made of those that are asked for: in which failure domain each is, and what it is called. No two are called the same.

use sha2::{Digest, Sha256};

/// The name of a machine, which is its node's too, has at most 63 characters, six of which its set's controller adds.
pub const LONGEST: usize = 57;

/// A set that is asked for.
pub struct Asked<'a> {
    /// What it is called on the source or, where it is added, what it is to be called.
    pub name: &'a str,
    /// The failure domains it is spread over; none where it goes to the one whose turn it is.
    pub domains: Vec<&'a str>,
}

/// How the new sets are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Called {
    /// By the set of the source each stands for and its failure domain.
    ByPlace,
    /// As they are asked for, but for those that are spread.
    AsAsked,
}

/// A set to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned<'a> {
    /// What it is called.
    pub name: String,
    /// Which of those asked for it is made for.
    pub of: usize,
    /// Which of its parts it is, and how many there are.
    pub part: (usize, usize),
    /// The failure domain it is in.
    pub domain: &'a str,
}

/// Every set to be made. A name that two would have, or that one of `others` has, gets a part that only its set and failure domain
/// decide: whichever else comes or goes, it stays.
pub fn planned<'a>(asked: &[Asked<'a>], domains: &[&'a str], called: Called, others: &[&str]) -> Vec<Planned<'a>> {
    let mut all = Vec::new();
    let mut said = Vec::new();
    for (of, set) in asked.iter().enumerate() {
        let turn = domains.get(of % domains.len().max(1)).copied().unwrap_or_default();
        let spread = if set.domains.is_empty() { vec![turn] } else { set.domains.clone() };
        for (index, domain) in spread.iter().copied().enumerate() {
            let as_asked = called == Called::AsAsked && spread.len() == 1;
            let name = if as_asked { set.name.to_owned() } else { name(set.name, domain) };
            all.push(Planned { name, of, part: (index, spread.len()), domain });
            said.push(as_asked);
        }
    }
    let plain: Vec<String> = all.iter().map(|set| set.name.clone()).collect();
    for (at, set) in all.iter_mut().enumerate().filter(|(at, _)| !said[*at]) {
        let twin = plain.iter().enumerate().any(|(other, name)| other != at && *name == set.name);
        if twin || others.contains(&set.name.as_str()) {
            // Neither a set nor a failure domain has a slash in its name, so no two pairs are told by the same text.
            set.name = with_sum(&set.name, &format!("{}/{}", asked[set.of].name, set.domain));
        }
    }
    all
}

/// What the set that comes from `source` is called in the failure domain, if nothing else is called so.
pub fn name(source: &str, domain: &str) -> String {
    let plain = |character: char| if character.is_ascii_alphanumeric() { character.to_ascii_lowercase() } else { '-' };
    let domain: String = domain.chars().map(plain).collect();
    let domain = domain.trim_matches('-');
    let whole = format!("{source}-{domain}");
    if whole.len() <= LONGEST { whole } else { with_sum(&whole, &whole) }
}

/// Whether machines can be called after a set of this name: an RFC 1123 label with room for a machine's own part.
pub fn suits_machines(name: &str) -> bool {
    let plain = |character: char| character.is_ascii_lowercase() || character.is_ascii_digit() || character == '-';
    (1..=LONGEST).contains(&name.len()) && name.chars().all(plain) && !name.starts_with('-') && !name.ends_with('-')
}

/// As much of the name as there is room for, and a part that the text decides.
fn with_sum(name: &str, text: &str) -> String {
    let sum: String = Sha256::digest(text).iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    let kept: String = name.chars().take(LONGEST - 9).collect();
    format!("{}-{sum}", kept.trim_end_matches(['-', '.']))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked<'a>(name: &'a str, domains: &[&'a str]) -> Asked<'a> {
        Asked { name, domains: domains.to_vec() }
    }

    fn names(asked: &[Asked<'_>], called: Called, others: &[&str]) -> Vec<String> {
        planned(asked, &["us-east", "east"], called, others).into_iter().map(|set| set.name).collect()
    }

    #[test]
    fn names_leave_room_for_a_machines_own_part_and_never_meet() {
        assert_eq!(name("id-worker-0", "fd-b"), "id-worker-0-fd-b");
        assert_eq!(name("id-worker-0", "Rack 7/East_"), "id-worker-0-rack-7-east");
        let long = "x".repeat(80);
        let (one, other) = (name(&long, "fd-b"), name(&long, "fd-c"));
        assert_eq!((one.len(), other.len()), (57, 57));
        assert_ne!(one, other);
    }

    #[test]
    fn two_sets_that_would_be_called_the_same_are_told_apart_whichever_is_asked_for_first() {
        let (one, other) = (|| asked("id-worker", &["us-east"]), || asked("id-worker-us", &["east"]));
        let both = names(&[one(), other()], Called::ByPlace, &[]);
        let turned = names(&[other(), one()], Called::ByPlace, &[]);
        assert_eq!(both, [turned[1].clone(), turned[0].clone()]);
        assert_ne!(both[0], both[1]);
        assert!(both.iter().all(|name| name.starts_with("id-worker-us-east-") && suits_machines(name)), "{both:?}");
        assert_eq!(names(&[one()], Called::ByPlace, &[]), ["id-worker-us-east"]);
        assert_eq!(names(&[one()], Called::ByPlace, &["id-worker-us-east"]), both[..1], "a set of the source is called so");
        let long = "x".repeat(70);
        let (wide, mixed) = (asked(&long, &["fd_b", "fd-b"]), asked("w", &["East", "east"]));
        for set in [wide, mixed] {
            let all = names(&[set], Called::ByPlace, &[]);
            assert!(all[0] != all[1] && all.iter().all(|name| suits_machines(name)), "{all:?}");
        }
    }

    #[test]
    fn a_set_that_is_added_is_called_as_it_is_asked_for_and_one_that_is_spread_makes_way() {
        let all = names(&[asked("w", &["us-east", "east"]), asked("w-east", &[])], Called::AsAsked, &[]);
        assert_eq!((all[0].as_str(), all[2].as_str()), ("w-us-east", "w-east"));
        assert!(all[1].starts_with("w-east-"), "{all:?}");
        let domains: Vec<&str> = planned(&[asked("a", &[]), asked("b", &[]), asked("c", &[])], &["x", "y"], Called::AsAsked, &[])
            .iter()
            .map(|set| set.domain)
            .collect();
        assert_eq!(domains, ["x", "y", "x"]);
    }

    #[test]
    fn a_name_suits_machines_if_they_can_be_called_after_it() {
        let long = "x".repeat(LONGEST);
        for good in ["w", "id-worker-0", "0", &long] {
            assert!(suits_machines(good), "{good}");
        }
        for bad in ["", "Worker", "w_0", "w.0", "-w", "w-", "ü", &"x".repeat(LONGEST + 1)] {
            assert!(!suits_machines(bad), "{bad}");
        }
    }
}
