//! What is saved before it is made, so that exactly this can be taken back.

use serde::{Deserialize, Serialize};
use vmi_kit::Stop;
use vmi_steps::Migration;

/// What TagsAttached makes in a vCenter, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TagsMade {
    pub categories: Vec<String>,
    pub tags: Vec<TagName>,
    pub attachments: Vec<TagOn>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TagName {
    pub category: String,
    pub name: String,
}

/// A tag on an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TagOn {
    pub category: String,
    pub tag: String,
    pub path: String,
    /// vCenter's reference to it, `Type:id`.
    pub object: String,
}

/// What FolderCreated makes in a vCenter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoldersMade {
    /// Paths, each after what it lies in.
    pub folders: Vec<String>,
    /// Paths of folders that get the cluster's tag.
    pub tagged: Vec<String>,
}

/// The key of the saved Secret for a vCenter. A Secret's keys know no colons, which IPv6 addresses have.
pub fn key(what: &str, server: &str) -> String {
    format!("{what}-{}", server.replace(':', "_"))
}

/// What was saved under the key, if anything.
pub fn read<T: for<'de> Deserialize<'de>>(m: &Migration, key: &str) -> Result<Option<T>, Stop> {
    let Some(value) = m.saved(key) else { return Ok(None) };
    serde_json::from_value(value).map(Some).map_err(|error| {
        let text = format!("the key {key} of Secret {}/vmi-{}-saved cannot be read: {error}", m.cx.namespace, m.name());
        vmi_kit::failure("SAV-002", text, "put back what the operator wrote there; without it nothing can be taken back").into()
    })
}
