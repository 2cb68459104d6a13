//! The failure domains that are asked for, beside those Infrastructure has.

use serde_json::{Value, json};
use vmi_crds::spec::{FailureDomain, RegionAffinityType};
use vmi_intent::infrastructure::{self, Refused};

use super::{Check, Finding, Weight, wrong_or};
use crate::facts::Facts;

pub const CHECKS: &[Check] = &[
    Check {
        id: "DOM-001",
        about: "no failure domain has the name, or the region and zone, of one of another vCenter in Infrastructure",
        weight: Weight::Blocks,
        judge: repeated,
    },
    Check {
        id: "DOM-002",
        about: "what Infrastructure already says of a target is what the vmi says",
        weight: Weight::Blocks,
        judge: already_there,
    },
    Check {
        id: "DOM-003",
        about: "the datacenter of every failure domain is among its vCenter's datacenters",
        weight: Weight::Blocks,
        judge: listed,
    },
    Check {
        id: "DOM-004",
        about: "no datacenter or cluster would need two tags of a category that allows one",
        weight: Weight::Blocks,
        judge: one_tag,
    },
    Check {
        id: "DOM-005",
        about: "every failure domain names its resource pool, folder and template; what OpenShift assumes otherwise differs from part to part",
        weight: Weight::Warns,
        judge: explicit,
    },
];

/// The field of a failure domain, as users find it.
pub fn field(domain: &FailureDomain, rest: &str) -> String {
    format!("spec.failureDomains[{}].{rest}", domain.name)
}

fn repeated(facts: &Facts) -> Finding {
    let mut lines = Vec::new();
    for domain in &facts.spec.failure_domains {
        let others = facts.listed_domains().iter().filter(|other| other["server"] != json!(domain.server));
        for other in others {
            let text = |key: &str| other[key].as_str().unwrap_or_default();
            if text("name") == domain.name {
                let at = field(domain, "name");
                lines.push(format!("{at}: Infrastructure has a failure domain {} of {}; choose another name", domain.name, text("server")));
            }
            if (text("region"), text("zone")) == (domain.region.as_str(), domain.zone.as_str()) {
                let (at, zone) = (field(domain, "region"), field(domain, "zone"));
                lines.push(format!(
                    "{at} and {zone}: region {} and zone {} are those of {} of {} in Infrastructure; choose another pair",
                    domain.region,
                    domain.zone,
                    text("name"),
                    text("server")
                ));
            }
        }
    }
    wrong_or(lines, format!("{} failure domains, none like one of another vCenter", facts.spec.failure_domains.len()))
}

fn already_there(facts: &Facts) -> Finding {
    let Some(infrastructure) = &facts.cluster.infrastructure else { return Finding::Wrong(vec!["there is no Infrastructure".to_owned()]) };
    let (vcenters, domains) = wanted(facts);
    match infrastructure::extend(&infrastructure.data["spec"], &vcenters, &domains) {
        Ok(infrastructure::Outcome::AlreadyThere) => {
            Finding::Passed("Infrastructure already lists the target as the vmi has it".to_owned())
        }
        Err(Refused::Differs { what, differences }) => {
            let list: Vec<String> = differences.iter().map(ToString::to_string).collect();
            let line = format!(
                "spec.vcenters and spec.failureDomains: {what} is in Infrastructure already, but {}; make them equal",
                list.join("; ")
            );
            Finding::Wrong(vec![line])
        }
        // Other refusals are those of other checks.
        Ok(infrastructure::Outcome::Changed(_)) | Err(_) => Finding::Passed("nothing of the target in Infrastructure differs".to_owned()),
    }
}

/// The target's vCenters and failure domains as Infrastructure writes them.
pub fn wanted(facts: &Facts) -> (Vec<Value>, Vec<Value>) {
    (
        facts.spec.vcenters.iter().map(|vcenter| json!(vcenter)).collect(),
        facts.spec.failure_domains.iter().map(|domain| json!(domain)).collect(),
    )
}

fn listed(facts: &Facts) -> Finding {
    let missing = |domain: &FailureDomain| {
        let vcenter = facts.spec.vcenters.iter().find(|vcenter| vcenter.server == domain.server)?;
        let has = vcenter.datacenters.contains(&domain.topology.datacenter);
        let line = || {
            let (at, wanted) = (field(domain, "topology.datacenter"), &domain.topology.datacenter);
            format!("{at}: spec.vcenters[{}].datacenters has {}, not {wanted}; add it there", domain.server, vcenter.datacenters.join(", "))
        };
        (!has).then(line)
    };
    wrong_or(facts.spec.failure_domains.iter().filter_map(missing).collect(), "every datacenter is listed")
}

fn one_tag(facts: &Facts) -> Finding {
    let domains = &facts.spec.failure_domains;
    let mut lines = Vec::new();
    for (at, domain) in domains.iter().enumerate() {
        for other in domains[..at].iter().filter(|other| other.server == domain.server) {
            if region_object(domain) == region_object(other) && domain.region != other.region {
                lines.push(format!(
                    "{}: {} would carry the tags {} and {} of openshift-region, which allows one; give both domains the same region",
                    field(domain, "region"),
                    region_object(domain),
                    other.region,
                    domain.region
                ));
            }
            let by_hosts = [domain, other].iter().any(|domain| zones_are_hosts(domain));
            if !by_hosts && domain.topology.compute_cluster == other.topology.compute_cluster && domain.zone != other.zone {
                lines.push(format!(
                    "{}: {} would carry the tags {} and {} of openshift-zone, which allows one; use another cluster",
                    field(domain, "zone"),
                    domain.topology.compute_cluster,
                    other.zone,
                    domain.zone
                ));
            }
        }
    }
    wrong_or(lines, "one region and one zone for each object")
}

/// What carries the region's tag.
pub fn region_object(domain: &FailureDomain) -> &str {
    match &domain.region_affinity {
        Some(affinity) if affinity.type_ == RegionAffinityType::ComputeCluster => &domain.topology.compute_cluster,
        _ => &domain.topology.datacenter,
    }
}

/// Whether hosts, and not the cluster, carry the zone's tag.
pub fn zones_are_hosts(domain: &FailureDomain) -> bool {
    domain.zone_affinity.as_ref().is_some_and(|affinity| affinity.host_group.is_some())
}

fn explicit(facts: &Facts) -> Finding {
    let mut lines = Vec::new();
    for domain in &facts.spec.failure_domains {
        let topology = &domain.topology;
        let given = [("resourcePool", &topology.resource_pool), ("folder", &topology.folder), ("template", &topology.template)];
        let missing: Vec<&str> = given.iter().filter(|(_, value)| value.is_none()).map(|(name, _)| *name).collect();
        if !missing.is_empty() {
            lines.push(format!("{}: {} not set; name them", field(domain, "topology"), missing.join(", ")));
        }
    }
    wrong_or(lines, "all are named")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::sample::{self, says};

    #[test]
    fn the_name_or_the_pair_of_a_source_is_refused() {
        let mut facts = sample::good();
        facts.spec.failure_domains[0].name = "fd-a".to_owned();
        says(&repeated(&facts), &["spec.failureDomains[fd-a].name: Infrastructure has a failure domain fd-a of a.example.com"]);
        let mut facts = sample::good();
        facts.spec.failure_domains[0].region = "region-a".to_owned();
        facts.spec.failure_domains[0].zone = "zone-a".to_owned();
        says(&repeated(&facts), &["spec.failureDomains[fd-b].region and spec.failureDomains[fd-b].zone", "those of fd-a"]);
    }

    #[test]
    fn a_target_that_is_there_is_fine_if_equal_and_refused_with_the_difference_if_not() {
        let mut facts = sample::good();
        let (vcenters, domains) = wanted(&facts);
        sample::extend_infrastructure(&mut facts, &vcenters[0], &domains[0]);
        assert!(matches!(already_there(&facts), Finding::Passed(text) if text.contains("already lists")));
        facts.spec.failure_domains[0].topology.networks = vec!["other".to_owned()];
        says(&already_there(&facts), &["failure domain fd-b is in Infrastructure already", "networks is", "other"]);
    }

    #[test]
    fn a_datacenter_that_its_vcenter_does_not_list_is_refused() {
        let mut facts = sample::good();
        facts.spec.failure_domains[0].topology.datacenter = "dc-x".to_owned();
        says(
            &listed(&facts),
            &["spec.failureDomains[fd-b].topology.datacenter: spec.vcenters[b.example.com].datacenters has dc-b, not dc-x"],
        );
    }

    #[test]
    fn two_regions_for_a_datacenter_or_two_zones_for_a_cluster_are_refused() {
        let mut facts = sample::good();
        let mut second = facts.spec.failure_domains[0].clone();
        (second.name, second.region, second.zone) = ("fd-c".to_owned(), "region-c".to_owned(), "zone-c".to_owned());
        facts.spec.failure_domains.push(second);
        says(
            &one_tag(&facts),
            &["spec.failureDomains[fd-c].region: dc-b would carry", "spec.failureDomains[fd-c].zone: /dc-b/host/cluster-b would carry"],
        );
    }

    #[test]
    fn what_is_left_to_assumptions_is_named() {
        let mut facts = sample::good();
        facts.spec.failure_domains[0].topology.template = None;
        says(&explicit(&facts), &["spec.failureDomains[fd-b].topology: template not set"]);
    }
}
