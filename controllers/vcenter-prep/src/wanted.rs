//! What a vCenter shall have, from its failure domains alone.

use vmi_crds::spec::{FailureDomain, RegionAffinityType, ZoneAffinityType};
use vmi_crds::status::Failure;
use vsphere::{Cardinality, CategorySpec, Kind};

use crate::failures;

pub const REGION: &str = "openshift-region";
pub const ZONE: &str = "openshift-zone";

/// What one vCenter shall have.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    pub server: String,
    pub categories: Vec<CategorySpec>,
    pub attachments: Vec<Attachment>,
    /// Says whose things are: the cluster's name in vSphere, in a category of its own.
    pub owner: OwnerTag,
    /// Where machines lie, as paths.
    pub folders: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct OwnerTag {
    pub category: String,
    pub tag: String,
}

/// A tag that shall be on something.
#[derive(Clone, Debug, PartialEq)]
pub struct Attachment {
    pub category: &'static str,
    pub tag: String,
    pub place: Place,
    /// The failure domain that wants it.
    pub domain: String,
}

/// Where a tag goes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    Datacenter(String),
    Cluster(String),
    HostGroup { cluster: String, group: String },
}

impl Wanted {
    /// For a vCenter with these failure domains, of the cluster with this name in vSphere.
    pub fn of(server: &str, domains: &[FailureDomain], infrastructure_id: &str) -> Result<Self, Box<Failure>> {
        if domains.is_empty() {
            return Err(Box::new(failures::no_domain(server)));
        }
        let mut attachments = Vec::new();
        let mut folders = Vec::new();
        for domain in domains {
            attachments.extend([region(domain), zone(domain)]);
            folders.push(folder(domain, infrastructure_id));
        }
        // Domains of one datacenter want its tag and folder once.
        attachments.sort_by(|one, other| (one.category, &one.place, &one.tag).cmp(&(other.category, &other.place, &other.tag)));
        attachments.dedup_by(|one, other| (one.category, &one.place, &one.tag) == (other.category, &other.place, &other.tag));
        folders.sort();
        folders.dedup();
        let on_hosts = attachments.iter().any(|attachment| matches!(attachment.place, Place::HostGroup { .. }));
        let owner = OwnerTag { category: format!("openshift-{infrastructure_id}"), tag: infrastructure_id.to_owned() };
        Ok(Self { server: server.to_owned(), categories: categories(&owner, on_hosts), attachments, owner, folders })
    }

    /// Every tag, as category and name.
    pub fn tags(&self) -> Vec<(&str, &str)> {
        let mut tags: Vec<(&str, &str)> = self.attachments.iter().map(|one| (one.category, one.tag.as_str())).collect();
        tags.push((&self.owner.category, &self.owner.tag));
        tags.sort_unstable();
        tags.dedup();
        tags
    }
}

fn categories(owner: &OwnerTag, on_hosts: bool) -> Vec<CategorySpec> {
    let topology = |name: &str, what: &str, hosts: bool| {
        let mut types = vec![Kind::Datacenter, Kind::ClusterComputeResource, Kind::Datastore, Kind::Folder];
        types.extend(hosts.then_some(Kind::HostSystem));
        CategorySpec { name: name.to_owned(), description: format!("OpenShift {what}"), cardinality: Cardinality::Single, types }
    };
    let owned = CategorySpec {
        name: owner.category.clone(),
        // By these words and types the installer knows it as its own when the cluster is destroyed.
        description: "Added by openshift-install do not remove".to_owned(),
        cardinality: Cardinality::Single,
        types: vec![Kind::VirtualMachine, Kind::ResourcePool, Kind::Folder, Kind::Datastore, Kind::StoragePod],
    };
    vec![topology(REGION, "region", false), topology(ZONE, "zone", on_hosts), owned]
}

fn region(domain: &FailureDomain) -> Attachment {
    let of_cluster = domain.region_affinity.as_ref().is_some_and(|affinity| affinity.type_ == RegionAffinityType::ComputeCluster);
    let place = if of_cluster { cluster(domain) } else { Place::Datacenter(domain.topology.datacenter.clone()) };
    Attachment { category: REGION, tag: domain.region.clone(), place, domain: domain.name.clone() }
}

fn zone(domain: &FailureDomain) -> Attachment {
    let affinity = domain.zone_affinity.as_ref().filter(|affinity| affinity.type_ == ZoneAffinityType::HostGroup);
    let place = match affinity.and_then(|affinity| affinity.host_group.as_ref()) {
        Some(group) => Place::HostGroup { cluster: domain.topology.compute_cluster.clone(), group: group.host_group.clone() },
        None => cluster(domain),
    };
    Attachment { category: ZONE, tag: domain.zone.clone(), place, domain: domain.name.clone() }
}

fn cluster(domain: &FailureDomain) -> Place {
    Place::Cluster(domain.topology.compute_cluster.clone())
}

fn folder(domain: &FailureDomain, infrastructure_id: &str) -> String {
    let named = domain.topology.folder.as_ref().map(|path| path.trim_end_matches('/').to_owned());
    named.unwrap_or_else(|| format!("/{}/vm/{infrastructure_id}", domain.topology.datacenter.trim_matches('/')))
}

#[cfg(test)]
mod tests;
