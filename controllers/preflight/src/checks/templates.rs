//! The templates that machines are cloned from.

use std::collections::BTreeMap;

use vmi_crds::spec::FailureDomain;

use super::domains::field;
use super::nearest::found;
use super::topology::each;
use super::{Check, Finding, Weight, wrong_or};
use crate::facts::{Facts, Places};

const OLDEST_HARDWARE: u32 = 15;

pub const CHECKS: &[Check] = &[
    Check { id: "TOP-007", about: "every template exists", weight: Weight::Blocks, judge: templates },
    Check { id: "TOP-008", about: "every template has virtual hardware of version 15 or newer", weight: Weight::Blocks, judge: hardware },
    Check {
        id: "TOP-009",
        about: "no two templates of a datacenter have the same name: parts of OpenShift know a template by its name alone",
        weight: Weight::Blocks,
        judge: template_names,
    },
];

fn templates(facts: &Facts) -> Finding {
    let look = |domain: &FailureDomain, places: &Places| {
        let Some(wanted) = &domain.topology.template else { return Vec::new() };
        let line = || {
            let at = field(domain, "topology.template");
            let instead = found(wanted, places.other_templates.iter().map(String::as_str));
            format!("{at}: there is no template {wanted} in {}; {instead}; import one, or correct the path", domain.server)
        };
        (!places.templates.contains_key(wanted)).then(line).into_iter().collect()
    };
    each(facts, look, "all are there")
}

fn hardware(facts: &Facts) -> Finding {
    let look = |domain: &FailureDomain, places: &Places| {
        let Some(wanted) = &domain.topology.template else { return Vec::new() };
        let Some(version) = places.templates.get(wanted) else { return Vec::new() };
        let number = version.as_deref().and_then(|text| text.strip_prefix("vmx-")?.parse::<u32>().ok());
        let line = || {
            let (at, shown) = (field(domain, "topology.template"), version.as_deref().unwrap_or("not told, it may be no virtual machine"));
            format!("{at}: the hardware version of {wanted} is {shown}; upgrade it to vmx-{OLDEST_HARDWARE} or newer")
        };
        number.is_none_or(|number| number < OLDEST_HARDWARE).then(line).into_iter().collect()
    };
    each(facts, look, "all are new enough")
}

/// Only among the failure domains: to compare with every virtual machine would cost a request for each 500 of them.
fn template_names(facts: &Facts) -> Finding {
    let mut seen: BTreeMap<(&str, &str, &str), (&FailureDomain, &str)> = BTreeMap::new();
    let mut lines = Vec::new();
    for domain in &facts.spec.failure_domains {
        let Some(path) = domain.topology.template.as_deref() else { continue };
        let name = path.rsplit('/').next().unwrap_or(path);
        let (other, theirs) = *seen.entry((&domain.server, &domain.topology.datacenter, name)).or_insert((domain, path));
        if theirs != path {
            let at = field(domain, "topology.template");
            lines.push(format!("{at}: {path} has the same name as {theirs} of {}; rename one of them", other.name));
        }
    }
    wrong_or(lines, "every name is the only one")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::sample::{self, TARGET, says};

    #[test]
    fn a_template_that_is_not_there_is_told_by_its_field_with_those_that_are() {
        let others = ["/dc-b/vm/windows", "/dc-b/vm/rhcos-b"].map(str::to_owned).to_vec();
        let mut facts = sample::seen(TARGET, |vcenter| vcenter.places.other_templates = others);
        facts.spec.failure_domains[0].topology.template = Some("/dc-b/vm/rhcos-x".to_owned());
        let words = "spec.failureDomains[fd-b].topology.template: there is no template /dc-b/vm/rhcos-x in b.example.com";
        says(&templates(&facts), &[words, "found /dc-b/vm/rhcos-b, /dc-b/vm/windows"]);
    }

    #[test]
    fn old_hardware_and_hardware_nobody_tells_of_are_refused() {
        for (version, refused) in
            [(Some("vmx-13"), true), (Some("vmx-15"), false), (Some("vmx-21"), false), (None, true), (Some("odd"), true)]
        {
            let facts = sample::seen(TARGET, |vcenter| {
                vcenter.places.templates.values_mut().for_each(|hardware| *hardware = version.map(str::to_owned));
            });
            assert_eq!(matches!(hardware(&facts), Finding::Wrong(_)), refused, "{version:?}");
        }
    }

    #[test]
    fn two_templates_of_one_name_in_a_datacenter_are_refused() {
        let mut facts = sample::good();
        let mut second = facts.spec.failure_domains[0].clone();
        second.name = "fd-c".to_owned();
        facts.spec.failure_domains.push(second);
        assert!(matches!(template_names(&facts), Finding::Passed(_)));
        facts.spec.failure_domains[1].topology.template = Some("/dc-b/vm/other/rhcos-b".to_owned());
        says(&template_names(&facts), &["spec.failureDomains[fd-c].topology.template", "same name as /dc-b/vm/rhcos-b of fd-b"]);
    }
}
