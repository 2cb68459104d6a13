//! Finding things in an inventory that has been read.

use crate::{
    error::Fault,
    inventory::{Cluster, Inventory, Node, Vm},
    reference::Ref,
    uuid::Uuid,
};

impl Inventory {
    /// Everything that was read, in no particular order.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        let folders = self.folders.iter().map(AsRef::as_ref);
        let datacenters = self.datacenters.iter().map(AsRef::as_ref);
        let clusters = self.clusters.iter().map(AsRef::as_ref);
        let hosts = self.hosts.iter().map(AsRef::as_ref);
        let pools = self.resource_pools.iter().map(AsRef::as_ref);
        let datastores = self.datastores.iter().map(AsRef::as_ref);
        let networks = self.networks.iter().map(AsRef::as_ref);
        let vms = self.templates.iter().chain(&self.vms).map(AsRef::as_ref);
        folders.chain(datacenters).chain(clusters).chain(hosts).chain(pools).chain(datastores).chain(networks).chain(vms)
    }

    /// The object at an inventory path; the slash at the beginning may be left out.
    #[must_use]
    pub fn by_path(&self, path: &str) -> Option<&Node> {
        let path = path.trim_matches('/');
        self.nodes().find(|node| node.path.trim_start_matches('/') == path)
    }

    /// The object vCenter means by this reference.
    #[must_use]
    pub fn by_reference(&self, reference: &Ref) -> Option<&Node> {
        self.nodes().find(|node| node.reference == *reference)
    }

    /// The virtual machine or template with this BIOS or instance UUID, in either byte order.
    #[must_use]
    pub fn by_uuid(&self, uuid: Uuid) -> Option<&Vm> {
        self.templates.iter().chain(&self.vms).find(|vm| {
            let is = |text: &str| text.parse().is_ok_and(|other: Uuid| other == uuid || other == uuid.swapped());
            is(&vm.uuid) || is(&vm.instance_uuid)
        })
    }

    /// The cluster with this reference.
    #[must_use]
    pub fn cluster(&self, reference: &Ref) -> Option<&Cluster> {
        self.clusters.iter().find(|cluster| cluster.node.reference == *reference)
    }
}

/// The only one of these with that name.
///
/// ```
/// use vsphere::{Fault, Inventory, only_one};
/// let path = |inventory: &Inventory| only_one(&inventory.datacenters, "dc-a").map(|datacenter| datacenter.node.path.clone());
/// assert_eq!(path(&Inventory::default()), Err(Fault::NotFound { object: None }));
/// ```
///
/// # Errors
/// [`Fault::NotFound`] if there is none, [`Fault::Ambiguous`] if there are several.
pub fn only_one<'a, T: AsRef<Node>>(among: &'a [T], name: &str) -> Result<&'a T, Fault> {
    let mut found = among.iter().filter(|one| one.as_ref().name == name);
    match (found.next(), found.count()) {
        (Some(one), 0) => Ok(one),
        (Some(_), more) => Err(Fault::Ambiguous { name: name.to_owned(), count: more + 1 }),
        (None, _) => Err(Fault::NotFound { object: None }),
    }
}
