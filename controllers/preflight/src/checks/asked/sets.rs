//! Whether the MachineSets that are asked for can be made: of those that are there, and by names that are free.

use vmi_crds::spec::SourceRetirement;
use vmi_intent::set_names::{Asked, Called, LONGEST, planned, suits_machines};

use super::super::nearest::found;
use super::super::{Finding, wrong_or};
use crate::facts::{Facts, Object};
use crate::objects::name;

pub fn judge(facts: &Facts) -> Finding {
    let named = facts.spec.machine_sets.iter().filter_map(|set| wrong(facts, &set.name));
    let lines = named.chain(taken(facts)).collect();
    wrong_or(lines, format!("{} entries", facts.spec.machine_sets.len()))
}

fn keep(facts: &Facts) -> bool {
    facts.spec.source_retirement == SourceRetirement::Keep
}

/// Sets on a source, by name.
fn on_the_source(facts: &Facts) -> Vec<&str> {
    let server = |set: &Object| {
        set.data["spec"]["template"]["spec"]["providerSpec"]["value"]["workspace"]["server"].as_str().unwrap_or_default().to_owned()
    };
    let mut names: Vec<&str> = facts.cluster.machine_sets.iter().filter(|set| facts.sources.contains(&server(set))).map(name).collect();
    names.sort_unstable();
    names
}

/// What is wrong with an entry's name, which is to be there or not to be there.
fn wrong(facts: &Facts, set: &str) -> Option<String> {
    if !keep(facts) {
        let known = on_the_source(facts);
        let instead = || found(set, known.iter().copied());
        return (!known.contains(&set))
            .then(|| format!("spec.machineSets[{set}].name: the source has no such MachineSet; {}; spell it as there", instead()));
    }
    if facts.cluster.machine_sets.iter().any(|there| name(there) == set) {
        return Some(format!("spec.machineSets[{set}].name: there is such a MachineSet; name the one to be made"));
    }
    (!suits_machines(set)).then(|| {
        format!(
            "spec.machineSets[{set}].name: its machines and nodes are called after it, with six characters more, and no host can be called so; \
             take at most {LONGEST} small letters, digits and dashes, a letter or a digit first and last"
        )
    })
}

/// Sets to be made under names that others have, but for those that are asked for by that name.
fn taken(facts: &Facts) -> Vec<String> {
    let sources = on_the_source(facts);
    let said = &facts.spec.machine_sets;
    let listed = |name: &str| said.iter().find(|set| set.name == name).map(|set| set.failure_domains.as_slice()).unwrap_or_default();
    let (asked, called): (Vec<&str>, Called) = if keep(facts) {
        (said.iter().map(|set| set.name.as_str()).collect(), Called::AsAsked)
    } else {
        (sources.clone(), Called::ByPlace)
    };
    let spread = |name: &&'_ str| listed(name).iter().map(String::as_str).collect();
    let asked: Vec<Asked<'_>> = asked.iter().map(|name| Asked { name, domains: spread(name) }).collect();
    let domains: Vec<&str> = facts.spec.failure_domains.iter().map(|domain| domain.name.as_str()).collect();
    let all = planned(&asked, &domains, called, &sources);
    let is_taken = |made: &str| facts.cluster.machine_sets.iter().any(|there| name(there) == made);
    let there = all.iter().filter(|set| is_taken(&set.name) && !(keep(facts) && set.name == asked[set.of].name));
    let line = |of: &str, made: &str, domain: &str| {
        let next = if keep(facts) { "choose another name" } else { "delete that one, or name another failure domain for this one" };
        format!(
            "spec.machineSets[{of}]: in failure domain {domain} it would be MachineSet {made}, and there is one of that name already; {next}"
        )
    };
    there.map(|set| line(asked[set.of].name, &set.name, set.domain)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::sample::{self, SOURCE, TARGET, says};
    use serde_json::json;

    fn there(sets: &[(&str, &str)]) -> Facts {
        let set = |(name, server): &(&str, &str)| {
            let template = json!({"spec": {"providerSpec": {"value": {"workspace": {"server": server}}}}});
            sample::object(&json!({"metadata": {"name": name}, "spec": {"template": template}}))
        };
        sample::changed(|cluster| cluster.machine_sets = sets.iter().map(set).collect())
    }

    fn named(name: &str, domains: &[&str]) -> Vec<vmi_crds::spec::MachineSet> {
        let failure_domains = domains.iter().map(|domain| (*domain).to_owned()).collect();
        vec![vmi_crds::spec::MachineSet { name: name.to_owned(), failure_domains, replicas: None }]
    }

    #[test]
    fn a_set_that_is_named_is_there_in_remove_and_not_there_in_keep() {
        let mut facts = there(&[("worker-0", SOURCE)]);
        facts.spec.machine_sets = named("extra", &[]);
        assert!(matches!(judge(&facts), Finding::Passed(_)));
        facts.spec.machine_sets = named("worker-0", &[]);
        says(&judge(&facts), &["spec.machineSets[worker-0].name: there is such a MachineSet"]);
        facts.spec.source_retirement = SourceRetirement::Remove;
        assert!(matches!(judge(&facts), Finding::Passed(_)));
        facts.spec.machine_sets = named("worker-1", &[]);
        says(&judge(&facts), &["spec.machineSets[worker-1].name: the source has no such MachineSet; found worker-0"]);
    }

    #[test]
    fn a_set_is_added_only_under_a_name_that_machines_can_be_called_after() {
        let mut facts = there(&[("worker-0", SOURCE)]);
        for bad in ["Extra", "extra.0", &"x".repeat(58)] {
            facts.spec.machine_sets = named(bad, &[]);
            says(&judge(&facts), &["no host can be called so; take at most 57 small letters"]);
        }
    }

    #[test]
    fn a_name_that_a_new_set_would_have_and_another_has_is_found_before_the_start() {
        let mut facts = there(&[("worker", SOURCE), ("worker-fd-b", TARGET)]);
        facts.spec.source_retirement = SourceRetirement::Remove;
        says(&judge(&facts), &["spec.machineSets[worker]: in failure domain fd-b it would be MachineSet worker-fd-b", "delete that one"]);
        // Of the source's own sets one cannot be told to make way for another.
        let mut facts = there(&[("worker", SOURCE), ("worker-fd-b", SOURCE)]);
        facts.spec.source_retirement = SourceRetirement::Remove;
        assert!(matches!(judge(&facts), Finding::Passed(_)));
        let mut facts = there(&[("worker", SOURCE), ("extra-fd-b", TARGET)]);
        facts.spec.machine_sets = named("extra", &["fd-b", "fd-c"]);
        says(&judge(&facts), &["spec.machineSets[extra]: in failure domain fd-b it would be MachineSet extra-fd-b", "choose another name"]);
        facts.spec.machine_sets = named("extra", &["fd-b"]);
        assert!(matches!(judge(&facts), Finding::Passed(_)), "in one alone it is called as it is asked for");
    }
}
