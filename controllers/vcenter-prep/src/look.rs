//! One look at a vCenter, with as few calls as it takes: places and folders in one read, the tags on them in another. Categories
//! are listed only if a tag that is wanted is not found in this way.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::try_join_all;
use vmi_crds::status::Failure;
use vsphere::{Category, Client, HostGroup, Inventory, Ref, Tag, Tags, Want};

use crate::failures;
use crate::wanted::{Place, Wanted};

/// What a vCenter has of what it shall have.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Look {
    pub places: BTreeMap<Place, Vec<Spot>>,
    /// The folders for machines, and those they lie in, as far as they are there; by path.
    pub folders: BTreeMap<String, Ref>,
    pub categories: Vec<Category>,
    pub tags: Vec<Tag>,
    /// The ids of the tags on places and folders.
    pub attached: BTreeMap<Ref, Vec<String>>,
}

/// An object that a tag goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spot {
    pub object: Ref,
    pub path: String,
}

/// Why there is nothing to be seen.
#[derive(Debug)]
pub enum Unseen {
    Vcenter(vsphere::Error),
    Failed(Box<Failure>),
}

impl From<vsphere::Error> for Unseen {
    fn from(error: vsphere::Error) -> Self {
        Self::Vcenter(error)
    }
}

impl From<Failure> for Unseen {
    fn from(failure: Failure) -> Self {
        Self::Failed(Box::new(failure))
    }
}

/// Looks. What `known` tells of categories and tags is not asked for again.
pub async fn look(client: &Client, wanted: &Wanted, known: &Look) -> Result<Look, Unseen> {
    let inventory = client.inventory(Want::Folders).await?;
    let groups = host_groups(client, wanted, &inventory).await?;
    let mut look = places(wanted, &inventory, &groups)?;
    let tags = client.tags();
    look.attached = tags.attached(&look.objects(wanted)).await?.into_iter().collect();
    let on_them = look.attached.values().flatten().cloned().collect();
    look.learn_tags(&tags, on_them, known).await?;
    let of_them = look.tags.iter().map(|tag| tag.category.clone()).collect();
    look.learn_categories(&tags, of_them, known).await?;
    let not_seen: BTreeSet<&str> =
        wanted.tags().into_iter().filter(|(category, name)| look.tag(category, name).is_none()).map(|(category, _)| category).collect();
    if !not_seen.is_empty() {
        look.learn_categories(&tags, tags.category_ids().await?.into_iter().collect(), known).await?;
        let theirs: Vec<Category> = not_seen.iter().filter_map(|name| look.category(name)).cloned().collect();
        let ids = try_join_all(theirs.iter().map(|category| tags.ids_of(category))).await?;
        look.learn_tags(&tags, ids.into_iter().flatten().collect(), known).await?;
    }
    Ok(look)
}

async fn host_groups(client: &Client, wanted: &Wanted, inventory: &Inventory) -> vsphere::Result<BTreeMap<String, Vec<HostGroup>>> {
    let mut groups = BTreeMap::new();
    for attachment in &wanted.attachments {
        let Place::HostGroup { cluster: path, .. } = &attachment.place else { continue };
        let cluster = inventory.clusters.iter().find(|cluster| same(&cluster.node.path, path));
        if let Some(cluster) = cluster.filter(|_| !groups.contains_key(path)) {
            groups.insert(path.clone(), client.host_groups(&cluster.node.reference).await?);
        }
    }
    Ok(groups)
}

/// Finds every place and every folder in what was read.
pub fn places(wanted: &Wanted, inventory: &Inventory, groups: &BTreeMap<String, Vec<HostGroup>>) -> Result<Look, Failure> {
    let mut look = Look::default();
    for attachment in &wanted.attachments {
        let missing = |what: String, there: Vec<&str>| failures::no_place(&wanted.server, &attachment.domain, &what, &there);
        let spots = match &attachment.place {
            Place::Datacenter(name) => {
                let all = || inventory.datacenters.iter().map(|datacenter| &datacenter.node);
                let found = all().find(|node| same(&node.path, name)).or_else(|| all().find(|node| node.name == *name));
                let node = found.ok_or_else(|| missing(format!("datacenter {name}"), all().map(|node| node.path.as_str()).collect()))?;
                vec![Spot { object: node.reference.clone(), path: node.path.clone() }]
            }
            Place::Cluster(path) => {
                let all = || inventory.clusters.iter().map(|cluster| &cluster.node);
                let found = all().find(|node| same(&node.path, path));
                let node = found.ok_or_else(|| missing(format!("cluster {path}"), all().map(|node| node.path.as_str()).collect()))?;
                vec![Spot { object: node.reference.clone(), path: node.path.clone() }]
            }
            Place::HostGroup { cluster, group } => {
                let all = || groups.get(cluster).into_iter().flatten();
                let found = all().find(|one| one.name == *group && !one.hosts.is_empty());
                let what = || format!("group {group} with hosts in cluster {cluster}");
                let hosts = &found.ok_or_else(|| missing(what(), all().map(|one| one.name.as_str()).collect()))?.hosts;
                let path = |host: &Ref| inventory.by_reference(host).map_or_else(|| host.to_string(), |node| node.path.clone());
                hosts.iter().map(|host| Spot { object: host.clone(), path: path(host) }).collect()
            }
        };
        look.places.insert(attachment.place.clone(), spots);
    }
    for path in wanted.folders.iter().flat_map(|path| ancestry(path)) {
        if let Some(folder) = inventory.folders.iter().find(|folder| same(&folder.node.path, path)) {
            look.folders.insert(path.to_owned(), folder.node.reference.clone());
        }
    }
    Ok(look)
}

/// The path and all it lies in, the outermost first.
pub fn ancestry(path: &str) -> Vec<&str> {
    let ends = path.char_indices().skip(1).filter(|(_, letter)| *letter == '/').map(|(at, _)| at);
    ends.chain([path.len()]).map(|end| &path[..end]).collect()
}

fn same(one: &str, other: &str) -> bool {
    one.trim_matches('/') == other.trim_matches('/')
}

impl Look {
    pub fn category(&self, name: &str) -> Option<&Category> {
        self.categories.iter().find(|category| category.name == name)
    }

    pub fn tag(&self, category: &str, name: &str) -> Option<&Tag> {
        let category = self.category(category)?;
        self.tags.iter().find(|tag| tag.category == category.id && tag.name == name)
    }

    /// The tags of a category on an object.
    pub fn on<'a>(&'a self, object: &Ref, category: &'a Category) -> impl Iterator<Item = &'a Tag> {
        let ids = self.attached.get(object).into_iter().flatten();
        ids.filter_map(|id| self.tags.iter().find(|tag| tag.id == *id)).filter(|tag| tag.category == category.id)
    }

    fn objects(&self, wanted: &Wanted) -> Vec<Ref> {
        let spots = self.places.values().flatten().map(|spot| &spot.object);
        let folders = wanted.folders.iter().filter_map(|path| self.folders.get(path));
        spots.chain(folders).collect::<BTreeSet<_>>().into_iter().cloned().collect()
    }

    async fn learn_tags(&mut self, tags: &Tags<'_>, ids: BTreeSet<String>, known: &Look) -> vsphere::Result<()> {
        let new: BTreeSet<String> = ids.into_iter().filter(|id| !self.tags.iter().any(|tag| tag.id == *id)).collect();
        let (old, unknown): (Vec<String>, Vec<String>) = new.into_iter().partition(|id| known.tags.iter().any(|tag| tag.id == *id));
        self.tags.extend(known.tags.iter().filter(|tag| old.contains(&tag.id)).cloned());
        self.tags.extend(tags.read(unknown).await?);
        Ok(())
    }

    async fn learn_categories(&mut self, tags: &Tags<'_>, ids: BTreeSet<String>, known: &Look) -> vsphere::Result<()> {
        let new: BTreeSet<String> = ids.into_iter().filter(|id| !self.categories.iter().any(|one| one.id == *id)).collect();
        let (old, unknown): (Vec<String>, Vec<String>) = new.into_iter().partition(|id| known.categories.iter().any(|one| one.id == *id));
        self.categories.extend(known.categories.iter().filter(|one| old.contains(&one.id)).cloned());
        self.categories.extend(tags.read_categories(unknown).await?);
        Ok(())
    }
}
