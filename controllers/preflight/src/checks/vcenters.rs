//! The vCenters themselves: whether they answer, can be believed, are new enough, and let us do what has to be done.

use jiff::SignedDuration;
use vmi_crds::spec::FailureDomain;
use vmi_intent::cloud_config::{REGION_CATEGORY, ZONE_CATEGORY};

use super::domains::{field, region_object, zones_are_hosts};
use super::{Check, Finding, Weight, not_looked_at, wrong_or};
use crate::facts::{Cause, Facts, Vcenter, find};

/// Tokens of single sign-on are refused beyond this.
const MOST_SKEW: SignedDuration = SignedDuration::from_mins(5);

pub const CHECKS: &[Check] = &[
    Check { id: "VCT-001", about: "every vCenter answers, sources and targets", weight: Weight::Blocks, judge: answers },
    Check { id: "TLS-003", about: "every vCenter's certificate is trusted", weight: Weight::Blocks, judge: certificates },
    Check { id: "TLS-004", about: "certificates are looked at: `spec.trust.insecure` is not set", weight: Weight::Warns, judge: insecure },
    Check { id: "VER-001", about: "every vCenter is 7.0.2 or newer", weight: Weight::Blocks, judge: versions },
    Check {
        id: "CLK-001",
        about: "no vCenter's clock differs by more than 5 minutes",
        weight: Weight::BlocksUnlessAcknowledged,
        judge: clocks,
    },
    Check {
        id: "PRV-001",
        about: "the user has every privilege that OpenShift needs on the objects of the target, and may make folders and tags there",
        weight: Weight::BlocksUnlessAcknowledged,
        judge: privileges,
    },
    Check {
        id: "PRV-002",
        about: "the user may make tags in every source, put them on its datacenter and cluster, and take them away again",
        weight: Weight::BlocksUnlessAcknowledged,
        judge: privileges_on_sources,
    },
    Check {
        id: "TAG-001",
        about: "no datacenter or cluster of the target carries another tag of openshift-region or openshift-zone",
        weight: Weight::Blocks,
        judge: tags,
    },
];

fn everywhere(facts: &Facts) -> Vec<&str> {
    facts.targets().chain(facts.sources.iter().map(String::as_str)).collect()
}

fn troubles(facts: &Facts, causes: &[Cause]) -> Vec<String> {
    let all = everywhere(facts);
    let wanted = all.iter().filter_map(|server| facts.trouble(server)).filter(|trouble| causes.contains(&trouble.cause));
    wanted.map(|trouble| trouble.text.clone()).collect()
}

/// What is found in the vCenters that answered; the others are told as not looked at.
fn each<'a>(facts: &'a Facts, servers: &[&'a str], look: impl Fn(&'a str, &'a Vcenter) -> Vec<String>, passed: &str) -> Finding {
    let answered = servers.iter().filter_map(|server| Some((*server, facts.vcenter(server)?)));
    let lines: Vec<String> = answered.flat_map(|(server, vcenter)| look(server, vcenter)).collect();
    let open = not_looked_at(facts, servers.iter());
    if lines.is_empty() && !open.is_empty() { Finding::Noted(open) } else { wrong_or(lines, passed) }
}

fn answers(facts: &Facts) -> Finding {
    wrong_or(troubles(facts, &[Cause::Connection, Cause::Answer]), "none is out of reach")
}

fn certificates(facts: &Facts) -> Finding {
    wrong_or(troubles(facts, &[Cause::Certificate]), "none is refused")
}

fn insecure(facts: &Facts) -> Finding {
    let set = facts.spec.trust.as_ref().is_some_and(|trust| trust.insecure);
    let line = "spec.trust.insecure: true; whoever answers in a vCenter's place gets the password: name a caBundle or thumbprints instead";
    wrong_or(if set { vec![line.to_owned()] } else { Vec::new() }, "certificates are looked at")
}

fn versions(facts: &Facts) -> Finding {
    let old = |server: &str, vcenter: &Vcenter| {
        let line = || format!("vCenter {server}: it is {:?}; update it to 7.0.2 or newer", vcenter.full_name);
        (!vcenter.new_enough).then(line).into_iter().collect()
    };
    each(facts, &everywhere(facts), old, "all are new enough")
}

fn clocks(facts: &Facts) -> Finding {
    let skewed = |server: &str, vcenter: &Vcenter| {
        let minutes = vcenter.ahead.abs().as_mins();
        let where_to = if vcenter.ahead.is_negative() { "behind" } else { "ahead" };
        let line = || {
            format!("vCenter {server}: its clock is {minutes} minutes {where_to} of the cluster's; let both follow the same time servers")
        };
        (vcenter.ahead.abs() > MOST_SKEW).then(line).into_iter().collect()
    };
    each(facts, &everywhere(facts), skewed, "they agree")
}

fn privileges(facts: &Facts) -> Finding {
    lacking(facts, &facts.targets().collect::<Vec<_>>())
}

fn privileges_on_sources(facts: &Facts) -> Finding {
    lacking(facts, &facts.sources.iter().map(String::as_str).collect::<Vec<_>>())
}

fn lacking(facts: &Facts, servers: &[&str]) -> Finding {
    let lacking = |server: &str, vcenter: &Vcenter| {
        let line = |path: &str, names: &[String]| {
            format!("vCenter {server}, {path}: the user lacks {}; grant them to its role there", names.join(", "))
        };
        vcenter.lacks.iter().map(|lack| line(&lack.path, &lack.privileges)).collect()
    };
    each(facts, servers, lacking, "none is missing")
}

fn tags(facts: &Facts) -> Finding {
    let targets: Vec<&str> = facts.targets().collect();
    let foreign = |server: &str, vcenter: &Vcenter| {
        let domains = facts.spec.failure_domains.iter().filter(|domain| domain.server == server);
        domains.flat_map(|domain| second_tags(domain, vcenter)).collect()
    };
    each(facts, &targets, foreign, "no other tag is in the way")
}

fn second_tags(domain: &FailureDomain, vcenter: &Vcenter) -> Vec<String> {
    let path = |wanted: &str| {
        let found = find(&vcenter.places.datacenters, wanted).or_else(|| find(&vcenter.places.clusters, wanted));
        found.map(|place| place.path.clone())
    };
    let mut wanted = vec![("region", REGION_CATEGORY, &domain.region, path(region_object(domain)))];
    if !zones_are_hosts(domain) {
        wanted.push(("zone", ZONE_CATEGORY, &domain.zone, path(&domain.topology.compute_cluster)));
    }
    let mut lines = Vec::new();
    for (key, category, name, object) in wanted {
        let carried = |tag: &&crate::facts::Carried| tag.category == category && Some(&tag.path) == object.as_ref() && tag.tag != *name;
        for other in vcenter.tags.iter().filter(carried) {
            lines.push(format!(
                "{}: {} already carries the tag {} of {category}, which allows one; use that as {key}, or detach it if nobody needs it",
                field(domain, key),
                other.path,
                other.tag
            ));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::sample::{self, SOURCE, TARGET, says};
    use crate::facts::{Carried, Lack};

    #[test]
    fn each_trouble_blocks_in_the_check_that_is_about_it() {
        for server in [SOURCE, TARGET] {
            says(&answers(&sample::silent(server, Cause::Connection)), &["trouble with", server]);
            says(&answers(&sample::silent(server, Cause::Answer)), &["trouble with", server]);
            says(&certificates(&sample::silent(server, Cause::Certificate)), &["trouble with", server]);
            assert!(matches!(answers(&sample::silent(server, Cause::Refused)), Finding::Passed(_)));
            assert!(matches!(versions(&sample::silent(server, Cause::Refused)), Finding::Noted(_)));
        }
    }

    #[test]
    fn trusting_anybody_is_shown() {
        let mut facts = sample::good();
        facts.spec.trust = Some(vmi_crds::spec::Trust { insecure: true, ..Default::default() });
        says(&insecure(&facts), &["spec.trust.insecure: true"]);
    }

    #[test]
    fn an_old_vcenter_and_a_wrong_clock_are_refused() {
        let facts =
            sample::seen(TARGET, |vcenter| (vcenter.new_enough, vcenter.full_name) = (false, "VMware vCenter Server 6.7.0".to_owned()));
        says(&versions(&facts), &["vCenter b.example.com: it is \"VMware vCenter Server 6.7.0\""]);
        let facts = sample::seen(SOURCE, |vcenter| vcenter.ahead = SignedDuration::from_mins(-7));
        says(&clocks(&facts), &["vCenter a.example.com: its clock is 7 minutes behind"]);
        assert!(matches!(clocks(&sample::seen(SOURCE, |vcenter| vcenter.ahead = SignedDuration::from_mins(4))), Finding::Passed(_)));
    }

    #[test]
    fn missing_privileges_are_listed_by_object() {
        let facts = sample::seen(TARGET, |vcenter| {
            vcenter.lacks =
                vec![Lack { path: "/dc-b/vm".to_owned(), privileges: vec!["Folder.Create".to_owned(), "Folder.Delete".to_owned()] }];
        });
        says(&privileges(&facts), &["vCenter b.example.com, /dc-b/vm: the user lacks Folder.Create, Folder.Delete"]);
        assert!(matches!(privileges_on_sources(&facts), Finding::Passed(_)));
        let lack = Lack { path: "/dc-a".to_owned(), privileges: vec!["InventoryService.Tagging.ObjectAttachable".to_owned()] };
        let facts = sample::seen(SOURCE, |vcenter| vcenter.lacks = vec![lack]);
        says(&privileges_on_sources(&facts), &["vCenter a.example.com, /dc-a: the user lacks InventoryService.Tagging.ObjectAttachable"]);
        assert!(matches!(privileges(&facts), Finding::Passed(_)));
    }

    #[test]
    fn another_tag_is_refused_the_same_one_and_one_elsewhere_are_not() {
        for (path, category, tag, refused) in [
            ("/dc-b", "openshift-region", "other", true),
            ("/dc-b", "openshift-region", "region-b", false),
            ("/dc-b", "openshift-zone", "other", false),
            ("/dc-b/host/cluster-b", "openshift-zone", "other", true),
            ("/dc-c", "openshift-region", "other", false),
        ] {
            let facts = sample::seen(TARGET, |vcenter| {
                vcenter.tags = vec![Carried { path: path.to_owned(), category: category.to_owned(), tag: tag.to_owned() }];
            });
            let found = tags(&facts);
            assert_eq!(matches!(found, Finding::Wrong(_)), refused, "{path} {tag}: {found:?}");
        }
    }
}
