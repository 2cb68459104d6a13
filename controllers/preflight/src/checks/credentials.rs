//! Users and passwords: those of the targets in the Secret the vmi names, those of the sources in the cluster's own.

use vmi_intent::secret::{self, Refused};

use super::{Check, Finding, Weight, not_looked_at, wrong_or};
use crate::facts::{Cause, Facts};

pub const CHECKS: &[Check] = &[
    Check {
        id: "CRD-001",
        about: "no vCenter refuses the user and password; one that was refused is never tried again until the Secret changes",
        weight: Weight::Blocks,
        judge: accepted,
    },
    Check {
        id: "CRD-002",
        about: "the Secret is there and has user name and password of every target",
        weight: Weight::Blocks,
        judge: pairs,
    },
    Check {
        id: "CRD-003",
        about: "no user name or password is empty, holds a line break, or is no text",
        weight: Weight::Blocks,
        judge: clean,
    },
    Check {
        id: "CRD-004",
        about: "every user name names its domain, as the storage driver wants it",
        weight: Weight::Blocks,
        judge: domains,
    },
    Check {
        id: "CRD-005",
        about: "the cluster's own Secret kube-system/vsphere-creds, where there is one, can take a pair more",
        weight: Weight::Blocks,
        judge: root_secret,
    },
    Check { id: "CRD-006", about: "the cluster has user name and password of every source", weight: Weight::Blocks, judge: sources },
];

fn at(facts: &Facts) -> String {
    format!("spec.credentialsSecret.name: Secret {}", facts.spec.credentials_secret.name)
}

fn accepted(facts: &Facts) -> Finding {
    let all: Vec<&str> = facts.targets().chain(facts.sources.iter().map(String::as_str)).collect();
    let refused = |server: &&str| facts.trouble(server).filter(|trouble| trouble.cause == Cause::Refused);
    let lines: Vec<String> = all.iter().filter_map(refused).map(|trouble| trouble.text.clone()).collect();
    let open = not_looked_at(facts, all.iter());
    if lines.is_empty() && !open.is_empty() { Finding::Noted(open) } else { wrong_or(lines, "every login is accepted") }
}

fn pairs(facts: &Facts) -> Finding {
    let at = at(facts);
    let Some(data) = &facts.cluster.credentials else {
        return Finding::Wrong(vec![format!("{at}: not there; create it in the vmi's namespace with SERVER.username and SERVER.password")]);
    };
    let keys = || data.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
    let lines = facts.targets().filter_map(|server| match secret::pair(data, server) {
        Ok(None) => Some(format!("{at}: it has neither {server}.username nor {server}.password, but the keys {}; add both", keys())),
        Err(half @ Refused::Half { .. }) => Some(format!("{at}: {half}; found {}", keys())),
        Ok(Some(_)) | Err(_) => None,
    });
    wrong_or(lines.collect(), format!("{} has a pair for every target", facts.spec.credentials_secret.name))
}

fn clean(facts: &Facts) -> Finding {
    let Some(data) = &facts.cluster.credentials else { return Finding::Noted(vec!["not checked: see CRD-002".to_owned()]) };
    let lines = facts.targets().filter_map(|server| match secret::pair(data, server) {
        Err(refused @ (Refused::Empty { .. } | Refused::Newline { .. } | Refused::NotText { .. })) => {
            Some(format!("{}: {refused}", at(facts)))
        }
        _ => None,
    });
    wrong_or(lines.collect(), "all are clean texts")
}

fn domains(facts: &Facts) -> Finding {
    let Some(data) = &facts.cluster.credentials else { return Finding::Noted(vec!["not checked: see CRD-002".to_owned()]) };
    let lines = facts.targets().filter_map(|server| {
        let pair = secret::pair(data, server).ok().flatten().filter(|pair| !pair.names_domain())?;
        Some(format!("{}, key {server}.username: {:?} names no domain; write user@domain or DOMAIN\\user", at(facts), pair.username()))
    });
    wrong_or(lines.collect(), "every user names a domain")
}

fn root_secret(facts: &Facts) -> Finding {
    let (Some(root), Some(own)) = (&facts.cluster.root_secret, &facts.cluster.credentials) else {
        return Finding::Passed("nothing to be extended".to_owned());
    };
    let lines = facts.targets().filter_map(|server| {
        let pair = secret::pair(own, server).ok().flatten()?;
        let refused = secret::merge(root, server, &pair).err()?;
        Some(format!("Secret kube-system/vsphere-creds: {refused}; correct it there first"))
    });
    let mut lines: Vec<String> = lines.collect();
    lines.dedup();
    wrong_or(lines, "kube-system/vsphere-creds can be extended")
}

fn sources(facts: &Facts) -> Finding {
    let missing = |server: &String| facts.trouble(server).filter(|trouble| trouble.cause == Cause::Credentials);
    wrong_or(facts.sources.iter().filter_map(missing).map(|trouble| trouble.text.clone()).collect(), "the cluster has them")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::sample::{self, SOURCE, TARGET, says};

    #[test]
    fn a_missing_secret_a_missing_pair_and_half_a_pair_are_told_apart() {
        says(&pairs(&sample::changed(|cluster| cluster.credentials = None)), &["spec.credentialsSecret.name: Secret target: not there"]);
        let facts = sample::credentials(&[("c.example.com.username", "u"), ("c.example.com.password", "p")]);
        says(
            &pairs(&facts),
            &["neither b.example.com.username nor b.example.com.password, but the keys c.example.com.password, c.example.com.username"],
        );
        let facts = sample::credentials(&[("b.example.com.username", "u@d")]);
        says(&pairs(&facts), &["key b.example.com.password is missing"]);
    }

    #[test]
    fn a_line_break_an_empty_value_and_a_user_without_domain_are_refused() {
        let facts = sample::credentials(&[("b.example.com.username", "u@d"), ("b.example.com.password", "p\n")]);
        says(&clean(&facts), &["key b.example.com.password holds a line break"]);
        let facts = sample::credentials(&[("b.example.com.username", ""), ("b.example.com.password", "p")]);
        says(&clean(&facts), &["key b.example.com.username is empty"]);
        let facts = sample::credentials(&[("b.example.com.username", "root"), ("b.example.com.password", "p")]);
        says(&domains(&facts), &["key b.example.com.username: \"root\" names no domain"]);
    }

    #[test]
    fn keys_of_others_in_the_users_secret_are_no_trouble_and_in_the_clusters_they_are() {
        let facts = sample::credentials(&[("b.example.com.username", "u@d"), ("b.example.com.password", "p"), ("note", "x")]);
        assert!(matches!(pairs(&facts), Finding::Passed(_)));
        let facts = sample::changed(|cluster| {
            cluster.root_secret.as_mut().unwrap().insert("note".to_owned(), b"x".to_vec());
        });
        says(&root_secret(&facts), &["Secret kube-system/vsphere-creds: key note belongs to no vCenter"]);
    }

    #[test]
    fn a_refused_password_and_a_source_without_one_are_told() {
        says(&accepted(&sample::silent(TARGET, Cause::Refused)), &["trouble with b.example.com"]);
        says(&sources(&sample::silent(SOURCE, Cause::Credentials)), &["trouble with a.example.com"]);
    }
}
