//! What a migration leaves in a vCenter: folders, tag categories, tags, and what the tags are attached to; all by names and paths.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use vsphere::{Client, Credentials, Endpoint, Proxy, Ref, Settings, Trust, Want};

use crate::vcenter::Vcenter;

/// By this the lab's own calls are told from the operator's.
const USER_AGENT: &str = concat!("vmi-lab/", env!("CARGO_PKG_VERSION"));

#[derive(Debug, thiserror::Error)]
#[error("cannot read vCenter {vcenter}: {source}")]
pub struct Error {
    vcenter: String,
    source: Box<vsphere::Error>,
}

/// A vCenter without its identities.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Contents {
    /// Paths.
    pub folders: BTreeSet<String>,
    /// What each category allows, by its name.
    pub categories: BTreeMap<String, String>,
    /// The paths of the objects that carry a tag, by `category/tag`.
    pub tags: BTreeMap<String, BTreeSet<String>>,
}

impl Contents {
    /// Whether the object at this path carries the tag.
    pub fn tagged(&self, category: &str, tag: &str, path: &str) -> Result<(), String> {
        match self.tags.get(&format!("{category}/{tag}")) {
            None if !self.categories.contains_key(category) => Err(format!("there is no category {category}")),
            None => Err(format!("category {category} has no tag {tag}")),
            Some(paths) if !paths.contains(path) => Err(format!("{path} does not carry tag {tag} of category {category}")),
            Some(_) => Ok(()),
        }
    }
}

/// A session of the lab's own.
pub fn client(vcenter: &Vcenter) -> Result<Client, Error> {
    let endpoint = Endpoint { server: vcenter.server.clone(), port: vcenter.port };
    let credentials = Credentials::new(vcenter.username.clone(), vcenter.password.clone());
    let mut settings = Settings::new("", credentials, Trust::Bundle(vcenter.ca.clone().into_bytes()));
    settings.endpoint = endpoint;
    // On a loopback address, which no proxy knows.
    settings.proxy = Proxy::none();
    settings.user_agent = USER_AGENT.to_owned();
    Client::new(settings).map_err(explain(vcenter))
}

fn explain(vcenter: &Vcenter) -> impl FnOnce(vsphere::Error) -> Error {
    let vcenter = vcenter.name.clone();
    move |source| Error { vcenter, source: Box::new(source) }
}

/// What is in the vCenter now.
pub async fn read(vcenter: &Vcenter) -> Result<Contents, Error> {
    let client = client(vcenter)?;
    let contents = contents(&client).await;
    // Whatever the read brought, the session is ended.
    client.logout().await.map_err(explain(vcenter))?;
    contents.map_err(explain(vcenter))
}

async fn contents(client: &Client) -> vsphere::Result<Contents> {
    let inventory = client.inventory(Want::Vms).await?;
    let path = |object: &Ref| inventory.by_reference(object).map_or_else(|| object.to_string(), |node| node.path.clone());
    let mut found = Contents { folders: inventory.folders.iter().map(|folder| folder.node.path.clone()).collect(), ..Contents::default() };
    let tags = client.tags();
    for category in tags.categories().await? {
        let mut types = category.types.clone();
        types.sort();
        found.categories.insert(category.name.clone(), format!("{:?}, for {}", category.cardinality, types.join(" ")));
        let own = tags.of(&category).await?;
        for (tag, objects) in own.iter().zip(tags.objects(&own).await?) {
            found.tags.insert(format!("{}/{}", category.name, tag.name), objects.iter().map(path).collect());
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_tag_is_told_by_what_is_missing() {
        let mut contents = Contents::default();
        let told = |contents: &Contents| contents.tagged("openshift-zone", "zone-b", "/dc-b/host/cluster-b").unwrap_err();
        assert_eq!(told(&contents), "there is no category openshift-zone");
        contents.categories.insert("openshift-zone".to_owned(), String::new());
        assert_eq!(told(&contents), "category openshift-zone has no tag zone-b");
        contents.tags.insert("openshift-zone/zone-b".to_owned(), BTreeSet::new());
        assert!(told(&contents).contains("/dc-b/host/cluster-b does not carry tag zone-b"));
        contents.tags.insert("openshift-zone/zone-b".to_owned(), BTreeSet::from(["/dc-b/host/cluster-b".to_owned()]));
        assert_eq!(contents.tagged("openshift-zone", "zone-b", "/dc-b/host/cluster-b"), Ok(()));
    }
}
