//! Whether what the user asks for can be done at all: which vCenters, and what is to move.

mod sets;

use super::nearest::found;
use super::{Check, Finding, Weight, not_looked_at, wrong_or};
use crate::facts::{Facts, Object};

const MOST_VCENTERS: usize = 3;

pub const CHECKS: &[Check] = &[
    Check {
        id: "MOV-002",
        about: "every entry of `spec.machineSets` is a MachineSet of the source, or where the source is kept one that is not there yet and that machines can be called after; no set to be made has the name of another",
        weight: Weight::Blocks,
        judge: sets::judge,
    },
    Check {
        id: "SRC-001",
        about: "there is a source besides the targets, and Infrastructure lists each source that is named",
        weight: Weight::Blocks,
        judge: sources,
    },
    Check {
        id: "SRC-002",
        about: "there are at most 3 vCenters, those of Infrastructure and the targets together",
        weight: Weight::Blocks,
        judge: count,
    },
    Check { id: "SRC-003", about: "no target is a source in another spelling", weight: Weight::Blocks, judge: spelling },
    Check {
        id: "SRC-004",
        about: "no target is a source, or another target, under another name (by instanceUuid)",
        weight: Weight::Blocks,
        judge: same_vcenter,
    },
];

fn sources(facts: &Facts) -> Finding {
    let listed = facts.listed_servers();
    if facts.sources.is_empty() {
        return Finding::Wrong(no_source(facts, &listed));
    }
    let unknown = |server: &&String| !listed.is_empty() && !listed.contains(&server.as_str());
    let lines = facts.sources.iter().filter(unknown).map(|server| {
        let instead = found(server, listed.iter().copied());
        format!("spec.source.servers: Infrastructure does not list {server}; {instead}; spell it as there")
    });
    wrong_or(lines.collect(), format!("from {}", facts.sources.join(", ")))
}

/// Nothing is left to move from: the target is the source, or nobody has told which one the source is.
fn no_source(facts: &Facts, listed: &[&str]) -> Vec<String> {
    let mut places: Vec<&str> = facts.cluster.machines.iter().filter_map(|machine| place(machine)).collect();
    places.sort_unstable();
    places.dedup();
    let on = if places.is_empty() { String::new() } else { format!(" (its machines are on {})", places.join(", ")) };
    let seen = if listed.is_empty() { "no vCenter".to_owned() } else { listed.join(", ") };
    let mut wrong: Vec<&str> = facts.targets().filter(|server| listed.contains(server)).collect();
    if wrong.is_empty() {
        return vec![format!("spec.source.servers: no source: Infrastructure lists {seen}; name the vCenter the cluster runs on{on}")];
    }
    // A cluster may have been grown by one of them: to name that is no mistake.
    if wrong.iter().any(|server| places.contains(server)) {
        wrong.retain(|server| places.contains(server));
    }
    let line = |server: &str| {
        format!(
            "spec.vcenters[{server}].server: it is where the cluster runs already: Infrastructure lists {seen}{on}, and nothing is left to move from; name the vCenter to move to"
        )
    };
    wrong.into_iter().map(line).collect()
}

/// The vCenter a Machine is on.
fn place(machine: &Object) -> Option<&str> {
    machine.data["spec"]["providerSpec"]["value"]["workspace"]["server"].as_str()
}

fn count(facts: &Facts) -> Finding {
    let mut all: Vec<&str> = facts.listed_servers();
    all.extend(facts.sources.iter().map(String::as_str));
    all.extend(facts.targets());
    all.sort_unstable();
    all.dedup();
    let line = || {
        let names = all.join(", ");
        format!(
            "spec.vcenters: with those of Infrastructure there would be {} vCenters, {names}; a cluster takes {MOST_VCENTERS} at most: name fewer",
            all.len()
        )
    };
    wrong_or((all.len() > MOST_VCENTERS).then(line).into_iter().collect(), format!("{} vCenters", all.len()))
}

fn spelling(facts: &Facts) -> Finding {
    let twin = |server: &str| facts.sources.iter().find(|source| source.eq_ignore_ascii_case(server));
    let lines = facts.targets().filter_map(|server| {
        let source = twin(server)?;
        Some(format!("spec.vcenters[{server}].server: it is the source {source}; name the vCenter to move to"))
    });
    wrong_or(lines.collect(), "targets and sources differ")
}

fn same_vcenter(facts: &Facts) -> Finding {
    let uuid = |server: &str| facts.vcenter(server).map(|vcenter| vcenter.instance_uuid.as_str()).filter(|uuid| !uuid.is_empty());
    let targets: Vec<&str> = facts.targets().collect();
    let mut lines = Vec::new();
    for (at, server) in targets.iter().enumerate() {
        let Some(own) = uuid(server) else { continue };
        let others = facts.sources.iter().map(String::as_str).chain(targets[..at].iter().copied());
        for other in others.filter(|other| uuid(other) == Some(own)) {
            let line = format!(
                "spec.vcenters[{server}].server: it is the same vCenter as {other}, both have the instanceUuid {own}; name another vCenter"
            );
            lines.push(line);
        }
    }
    if lines.is_empty() {
        let all = targets.iter().copied().chain(facts.sources.iter().map(String::as_str));
        let open = not_looked_at(facts, all);
        if !open.is_empty() {
            return Finding::Noted(open);
        }
    }
    wrong_or(lines, "every instanceUuid differs")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::sample::{self, SOURCE, TARGET, says};
    use serde_json::json;

    #[test]
    fn a_source_that_is_not_listed_or_not_there_is_told_with_those_that_are() {
        let mut facts = sample::good();
        facts.sources = vec!["a.example.org".to_owned()];
        says(&sources(&facts), &["spec.source.servers: Infrastructure does not list a.example.org; found a.example.com"]);
        facts.sources = Vec::new();
        facts.spec.vcenters = vec![sample::vcenter(SOURCE)];
        let words = ["spec.vcenters[a.example.com].server: it is where the cluster runs already", "Infrastructure lists a.example.com"];
        says(&sources(&facts), &words);
        let on = |server: &str| {
            sample::object(
                &serde_json::json!({"metadata": {"name": "m"}, "spec": {"providerSpec": {"value": {"workspace": {"server": server}}}}}),
            )
        };
        let mut facts = sample::changed(|cluster| cluster.machines = vec![on("a.example.com"), on("a.example.com")]);
        facts.sources = Vec::new();
        let listed = |servers: &[&str]| json!(servers.iter().map(|server| json!({"server": server})).collect::<Vec<_>>());
        // Of a cluster that was grown and is to be moved to both, one is where it runs.
        sample::set(&mut facts.cluster.infrastructure, "/spec/platformSpec/vsphere/vcenters", listed(&[SOURCE, TARGET]));
        facts.spec.vcenters = vec![sample::vcenter(SOURCE), sample::vcenter(TARGET)];
        says(
            &sources(&facts),
            &["spec.vcenters[a.example.com].server: ", "(its machines are on a.example.com), and nothing is left to move from"],
        );
        assert!(matches!(sources(&facts), Finding::Wrong(lines) if lines.len() == 1));
        sample::set(&mut facts.cluster.infrastructure, "/spec/platformSpec/vsphere/vcenters", listed(&[]));
        says(
            &sources(&facts),
            &["spec.source.servers: no source", "name the vCenter the cluster runs on (its machines are on a.example.com)"],
        );
    }

    #[test]
    fn a_fourth_vcenter_is_refused_with_all_names() {
        let mut facts = sample::good();
        facts.spec.vcenters.push(sample::vcenter("c.example.com"));
        assert!(matches!(count(&facts), Finding::Passed(_)));
        facts.sources.push("z.example.com".to_owned());
        says(&count(&facts), &["spec.vcenters: with those of Infrastructure there would be 4 vCenters", "z.example.com"]);
    }

    #[test]
    fn the_source_as_target_is_found_by_spelling_and_by_instance() {
        let mut facts = sample::good();
        facts.spec.vcenters[0].server = "A.Example.com".to_owned();
        says(&spelling(&facts), &["spec.vcenters[A.Example.com].server: it is the source a.example.com"]);
        let facts = sample::seen(TARGET, |vcenter| vcenter.instance_uuid = format!("uuid of {SOURCE}"));
        says(&same_vcenter(&facts), &["spec.vcenters[b.example.com].server: it is the same vCenter as a.example.com"]);
    }
}
