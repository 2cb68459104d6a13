//! The way back of step 6: the folders that were made, as they are now.

use vsphere::{Client, Ref, Tag, Want};

use crate::record::FoldersMade;

/// The folders that were made or marked and are still there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Now {
    /// In the order of the record: each after what it lies in.
    pub folders: Vec<FolderNow>,
    /// The cluster's tag, if any of them has it.
    pub owner: Option<Tag>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct FolderNow {
    pub path: String,
    pub folder: Ref,
    /// How many things lie in it.
    pub children: usize,
    /// Whether it has the cluster's tag.
    pub marked: bool,
}

/// What can be taken back now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Back {
    pub detach: Option<(Tag, Vec<Ref>)>,
    pub delete: Option<(String, Ref)>,
    /// What stays, and why.
    pub left: Vec<String>,
}

impl Back {
    /// In words.
    pub fn words(&self, server: &str) -> Vec<String> {
        let detached = self.detach.iter().map(|(tag, folders)| format!("{server}: detach tag {} from {} folders", tag.name, folders.len()));
        detached.chain(self.delete.iter().map(|(path, _)| format!("{server}: delete folder {path}"))).collect()
    }
}

/// Looks at what was made.
pub async fn look(client: &Client, made: &FoldersMade, owner: &str) -> vsphere::Result<Now> {
    let inventory = client.inventory(Want::Folders).await?;
    let mut paths = made.folders.clone();
    paths.extend(made.tagged.iter().filter(|path| !made.folders.contains(path)).cloned());
    let here: Vec<(String, Ref)> = paths
        .into_iter()
        .filter_map(|path| {
            let found = inventory.folders.iter().find(|folder| folder.node.path == path)?;
            Some((path, found.node.reference.clone()))
        })
        .collect();
    let references: Vec<Ref> = here.iter().map(|(_, folder)| folder.clone()).collect();
    let tags = client.tags();
    let attached = if references.is_empty() { Vec::new() } else { tags.attached(&references).await? };
    let ids: std::collections::BTreeSet<String> = attached.iter().flat_map(|(_, ids)| ids.clone()).collect();
    let owner = tags.read(ids.into_iter().collect()).await?.into_iter().find(|tag| tag.name == owner);
    let mut now = Now { folders: Vec::new(), owner };
    for ((path, folder), (_, ids)) in here.into_iter().zip(attached) {
        let children = client.children(&folder).await?;
        let marked = now.owner.as_ref().is_some_and(|tag| ids.contains(&tag.id));
        now.folders.push(FolderNow { path, folder, children, marked });
    }
    Ok(now)
}

/// What of it goes, and what stays because something lies in it.
pub fn decide(made: &FoldersMade, now: &Now) -> Back {
    let marked = now.folders.iter().filter(|one| one.marked && made.tagged.contains(&one.path));
    let marked: Vec<Ref> = marked.map(|one| one.folder.clone()).collect();
    let ours: Vec<&FolderNow> = now.folders.iter().filter(|one| made.folders.contains(&one.path)).collect();
    // The innermost first: what it lay in may be empty after it.
    let empty = ours.iter().rev().find(|one| one.children == 0);
    Back {
        detach: now.owner.clone().filter(|_| !marked.is_empty()).map(|tag| (tag, marked)),
        delete: empty.map(|one| (one.path.clone(), one.folder.clone())),
        left: ours.iter().map(|one| format!("folder {} holds {} things", one.path, one.children)).collect(),
    }
}

#[cfg(test)]
mod tests;
