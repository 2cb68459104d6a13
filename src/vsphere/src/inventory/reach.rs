//! What the hosts of a cluster can really see. A cluster lists whatever any of its hosts sees; a virtual machine that
//! is started on another host of it does not find its network there.

use std::collections::BTreeMap;

use crate::{
    inventory::{Host, Inventory},
    reference::Ref,
};

/// A network or datastore, and the usable hosts of the cluster that do not see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// The network or datastore.
    pub object: Ref,
    /// Hosts that do not see it; empty is good.
    pub not_by: Vec<Ref>,
}

/// What the hosts of a cluster see.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reach {
    /// The hosts that count: connected and not in maintenance.
    pub hosts: Vec<Ref>,
    /// Networks at least one of them sees.
    pub networks: Vec<Seen>,
    /// Datastores at least one of them sees.
    pub datastores: Vec<Seen>,
}

impl Inventory {
    /// What the usable hosts of this cluster see.
    #[must_use]
    pub fn reach(&self, cluster: &Ref) -> Reach {
        // A host of which nothing is told may be used tomorrow, and is counted.
        let usable =
            |host: &&Host| host.connected != Some(false) && host.maintenance != Some(true) && host.node.parent.as_ref() == Some(cluster);
        let hosts: Vec<&Host> = self.hosts.iter().filter(usable).collect();
        Reach {
            hosts: hosts.iter().map(|host| host.node.reference.clone()).collect(),
            networks: seen(&hosts, |host| &host.networks),
            datastores: seen(&hosts, |host| &host.datastores),
        }
    }
}

fn seen(hosts: &[&Host], list: impl Fn(&Host) -> &Vec<Ref>) -> Vec<Seen> {
    let mut not_by: BTreeMap<&Ref, Vec<Ref>> = hosts.iter().flat_map(|host| list(host)).map(|object| (object, Vec::new())).collect();
    for (object, blind) in &mut not_by {
        blind.extend(hosts.iter().filter(|host| !list(host).contains(object)).map(|host| host.node.reference.clone()));
    }
    not_by.into_iter().map(|(object, not_by)| Seen { object: object.clone(), not_by }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inventory::Node;

    fn host(id: &str, networks: &[&str], connected: bool) -> Host {
        let cluster = Ref::new("ClusterComputeResource", "domain-c1");
        Host {
            node: Node { reference: Ref::new("HostSystem", id), name: id.into(), parent: Some(cluster), path: String::new() },
            version: String::new(),
            build: String::new(),
            connected: Some(connected),
            maintenance: Some(false),
            cpu_cores: 1,
            memory_mib: 1,
            memory_used_mib: 0,
            networks: networks.iter().map(|id| Ref::new("Network", id)).collect(),
            datastores: Vec::new(),
        }
    }

    #[test]
    fn a_network_one_host_lacks_is_told_with_the_host_and_absent_hosts_do_not_count() {
        let hosts = vec![host("host-1", &["n-1", "n-2"], true), host("host-2", &["n-1"], true), host("host-3", &[], false)];
        let inventory = Inventory { hosts, ..Inventory::default() };
        let reach = inventory.reach(&Ref::new("ClusterComputeResource", "domain-c1"));
        assert_eq!(reach.hosts.len(), 2);
        assert_eq!(reach.networks[0].not_by, []);
        assert_eq!(reach.networks[1], Seen { object: Ref::new("Network", "n-2"), not_by: vec![Ref::new("HostSystem", "host-2")] });
    }
}
