//! Everything a failure domain of the target names, looked up in its vCenter.

use std::collections::BTreeMap;

use vmi_crds::spec::FailureDomain;

use super::domains::{field, zones_are_hosts};
use super::nearest::found;
use super::{Check, Finding, Weight, not_looked_at, noted_or, wrong_or};
use crate::facts::{Facts, Place, Places, find};

pub const CHECKS: &[Check] = &[
    Check {
        id: "TOP-001",
        about: "every datacenter exists, of failure domains and of `spec.vcenters`",
        weight: Weight::Blocks,
        judge: datacenters,
    },
    Check { id: "TOP-002", about: "every cluster exists", weight: Weight::Blocks, judge: clusters },
    Check { id: "TOP-003", about: "every datastore exists", weight: Weight::Blocks, judge: datastores },
    Check { id: "TOP-004", about: "every network exists in the datacenter of its failure domain", weight: Weight::Blocks, judge: networks },
    Check {
        id: "TOP-005",
        about: "every resource pool exists and is one of the failure domain's cluster",
        weight: Weight::Blocks,
        judge: pools,
    },
    Check {
        id: "TOP-006",
        about: "every folder is, or will be, in the datacenter of its failure domain",
        weight: Weight::Blocks,
        judge: folders,
    },
    Check {
        id: "TOP-010",
        about: "every usable host of a cluster sees the networks and the datastore of its failure domain",
        weight: Weight::BlocksUnlessAcknowledged,
        judge: reach,
    },
    Check { id: "TOP-011", about: "groups of hosts exist; they are not looked up", weight: Weight::Warns, judge: host_groups },
];

/// What is wrong with the domains whose vCenter answered; the others are told as not looked at.
pub(super) fn each(facts: &Facts, look: impl Fn(&FailureDomain, &Places) -> Vec<String>, passed: &str) -> Finding {
    let answered = facts.spec.failure_domains.iter().filter_map(|domain| Some((domain, &facts.vcenter(&domain.server)?.places)));
    let lines: Vec<String> = answered.flat_map(|(domain, places)| look(domain, places)).collect();
    let open = not_looked_at(facts, facts.targets());
    if lines.is_empty() && !open.is_empty() { Finding::Noted(open) } else { wrong_or(lines, passed) }
}

fn unknown(at: &str, what: &str, wanted: &str, places: &[Place]) -> Vec<String> {
    let by_path = wanted.contains('/');
    let names = places.iter().map(|place| if by_path { place.path.as_str() } else { place.name.as_str() });
    let instead = found(wanted, names);
    if find(places, wanted).is_some() { Vec::new() } else { vec![format!("{at}: there is no {what} {wanted}; {instead}; correct it")] }
}

fn datacenters(facts: &Facts) -> Finding {
    let mut lines = Vec::new();
    for vcenter in &facts.spec.vcenters {
        let Some(seen) = facts.vcenter(&vcenter.server) else { continue };
        for name in &vcenter.datacenters {
            lines.extend(unknown(&format!("spec.vcenters[{}].datacenters", vcenter.server), "datacenter", name, &seen.places.datacenters));
        }
    }
    let of_domain = |domain: &FailureDomain, places: &Places| {
        unknown(&field(domain, "topology.datacenter"), "datacenter", &domain.topology.datacenter, &places.datacenters)
    };
    match each(facts, of_domain, "all are there") {
        Finding::Wrong(more) => Finding::Wrong(lines.into_iter().chain(more).collect()),
        _ if !lines.is_empty() => Finding::Wrong(lines),
        other => other,
    }
}

fn clusters(facts: &Facts) -> Finding {
    let look = |domain: &FailureDomain, places: &Places| {
        unknown(&field(domain, "topology.computeCluster"), "cluster", &domain.topology.compute_cluster, &places.clusters)
    };
    each(facts, look, "all are there")
}

fn datastores(facts: &Facts) -> Finding {
    let look = |domain: &FailureDomain, places: &Places| {
        unknown(&field(domain, "topology.datastore"), "datastore", &domain.topology.datastore, &places.datastores)
    };
    each(facts, look, "all are there")
}

fn networks(facts: &Facts) -> Finding {
    let look = |domain: &FailureDomain, places: &Places| {
        // Without the datacenter there is nothing to look in, and TOP-001 says so.
        let Some(datacenter) = places.datacenter(domain) else { return Vec::new() };
        let inside = format!("{}/network/", datacenter.path);
        let here: Vec<&str> =
            places.networks.iter().filter(|place| place.path.starts_with(&inside)).map(|place| place.name.as_str()).collect();
        let missing = domain.topology.networks.iter().filter(|name| places.network(domain, name).is_none());
        let line = |name: &String| {
            let (at, instead) = (field(domain, "topology.networks"), found(name, here.iter().copied()));
            format!("{at}: there is no network {name} in {}; {instead}; correct it", datacenter.path)
        };
        missing.map(line).collect()
    };
    each(facts, look, "all are there")
}

fn pools(facts: &Facts) -> Finding {
    let look = |domain: &FailureDomain, places: &Places| {
        let Some(wanted) = &domain.topology.resource_pool else { return Vec::new() };
        let at = field(domain, "topology.resourcePool");
        let lines = unknown(&at, "resource pool", wanted, &places.pools);
        let cluster = &domain.topology.compute_cluster;
        let inside =
            wanted.strip_prefix(cluster.trim_end_matches('/')).is_some_and(|rest| rest == "/Resources" || rest.starts_with("/Resources/"));
        if lines.is_empty() && !inside {
            vec![format!("{at}: {wanted} is no pool of the cluster {cluster}; name one of its own")]
        } else {
            lines
        }
    };
    each(facts, look, "all are there")
}

fn folders(facts: &Facts) -> Finding {
    let look = |domain: &FailureDomain, places: &Places| {
        let (Some(wanted), Some(datacenter)) = (&domain.topology.folder, places.datacenter(domain)) else { return Vec::new() };
        let inside = format!("{}/vm/", datacenter.path);
        let line = || {
            format!("{}: {wanted} is not below {inside}, where the datacenter keeps machines; correct it", field(domain, "topology.folder"))
        };
        (!wanted.starts_with(&inside)).then(line).into_iter().collect()
    };
    each(facts, look, "all are in their datacenters")
}

fn reach(facts: &Facts) -> Finding {
    let look = |domain: &FailureDomain, places: &Places| {
        let Some(cluster) = find(&places.clusters, &domain.topology.compute_cluster) else { return Vec::new() };
        let at = field(domain, "topology.computeCluster");
        let seen = places.reach.get(&cluster.path);
        let Some(seen) = seen.filter(|seen| seen.hosts > 0) else {
            return vec![format!("{at}: {} has no host that is connected and not in maintenance; make one ready", cluster.path)];
        };
        let mut lines = Vec::new();
        let mut blind = |kind: &str, place: &Place, by: &BTreeMap<String, Vec<String>>| {
            let rest = format!("the {kind} {}; connect it to every host", place.path);
            match by.get(&place.path) {
                None => lines.push(format!("{at}: no host of {} sees {rest}", cluster.path)),
                Some(hosts) if !hosts.is_empty() => lines.push(format!("{at}: {} of {} do not see {rest}", hosts.join(", "), cluster.path)),
                Some(_) => {}
            }
        };
        if let Some(datastore) = find(&places.datastores, &domain.topology.datastore) {
            blind("datastore", datastore, &seen.datastores);
        }
        for network in domain.topology.networks.iter().filter_map(|name| places.network(domain, name)) {
            blind("network", network, &seen.networks);
        }
        lines
    };
    each(facts, look, "every host sees what it needs")
}

fn host_groups(facts: &Facts) -> Finding {
    let grouped = facts.spec.failure_domains.iter().filter(|domain| zones_are_hosts(domain));
    let line = |domain: &FailureDomain| {
        format!("{}: not looked up; make sure that groups and rule exist", field(domain, "zoneAffinity.hostGroup"))
    };
    noted_or(grouped.map(line).collect(), "no zone is a group of hosts")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::sample::{self, TARGET, says};
    use vmi_crds::spec::Topology;

    fn with(edit: impl FnOnce(&mut Topology)) -> Facts {
        let mut facts = sample::good();
        edit(&mut facts.spec.failure_domains[0].topology);
        facts
    }

    #[test]
    fn whatever_is_not_there_is_told_by_its_field_with_what_is() {
        type Look = fn(&Facts) -> Finding;
        type Edit = fn(&mut Topology);
        let cases: [(Look, Edit, &[&str]); 7] = [
            (
                datacenters,
                |t| t.datacenter = "dc-x".into(),
                &["spec.failureDomains[fd-b].topology.datacenter: there is no datacenter dc-x; found dc-b"],
            ),
            (
                clusters,
                |t| t.compute_cluster = "/dc-b/host/c".into(),
                &["topology.computeCluster: there is no cluster /dc-b/host/c; found /dc-b/host/cluster-b"],
            ),
            (
                datastores,
                |t| t.datastore = "/dc-b/datastore/ds".into(),
                &["topology.datastore: there is no datastore /dc-b/datastore/ds; found /dc-b/datastore/datastore-b"],
            ),
            (networks, |t| t.networks = vec!["ocp".into()], &["topology.networks: there is no network ocp in /dc-b; found ocp-b"]),
            (
                pools,
                |t| t.resource_pool = Some("/dc-b/host/cluster-b/Resources/x".into()),
                &["topology.resourcePool: there is no resource pool", "found /dc-b/host/cluster-b/Resources"],
            ),
            (
                pools,
                |t| t.compute_cluster = "/dc-b/host/cluster".into(),
                &["topology.resourcePool: /dc-b/host/cluster-b/Resources is no pool of the cluster"],
            ),
            (folders, |t| t.folder = Some("/dc-x/vm/mine".into()), &["topology.folder: /dc-x/vm/mine is not below /dc-b/vm/"]),
        ];
        for (check, edit, words) in cases {
            says(&check(&with(edit)), words);
        }
        let mut facts = sample::good();
        facts.spec.vcenters[0].datacenters.push("dc-y".to_owned());
        says(&datacenters(&facts), &["spec.vcenters[b.example.com].datacenters: there is no datacenter dc-y"]);
    }

    #[test]
    fn a_network_of_another_datacenter_does_not_count() {
        let facts = sample::seen(TARGET, |vcenter| vcenter.places.networks[0].path = "/dc-z/network/ocp-b".to_owned());
        says(&networks(&facts), &["there is no network ocp-b in /dc-b; found none at all"]);
    }

    #[test]
    fn hosts_that_do_not_see_a_network_or_datastore_are_named() {
        type Edit = fn(&mut crate::facts::Reach);
        let cases: [(Edit, &str); 3] = [
            (|reach| reach.hosts = 0, "has no host that is connected"),
            (|reach| reach.datastores.clear(), "no host of /dc-b/host/cluster-b sees the datastore"),
            (
                |reach| reach.networks.values_mut().for_each(|blind| blind.push("host-2".to_owned())),
                "host-2 of /dc-b/host/cluster-b do not see the network",
            ),
        ];
        for (edit, words) in cases {
            let facts = sample::seen(TARGET, |vcenter| vcenter.places.reach.values_mut().for_each(edit));
            says(&reach(&facts), &[words]);
        }
    }
}
