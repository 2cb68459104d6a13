//! The way back of step 5: what was made, as it is now, and who else uses it.

use futures::future::try_join_all;
use vmi_crds::VSphereMigrationInfra;
use vmi_crds::graph::{SOURCE_KEPT, StepName};
use vsphere::{Category, Client, Ref, Tag};

use crate::record::{TagName, TagsMade};

/// The categories that matter, each with all its tags and what these are on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Now {
    pub categories: Vec<(Category, Vec<OnObjects>)>,
}

/// A tag, and what it is on.
#[derive(Clone, Debug, PartialEq)]
pub struct OnObjects {
    pub tag: Tag,
    pub objects: Vec<Ref>,
}

/// What can be taken back now; each list only when those before it are empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Back {
    pub detach: Vec<(Tag, Ref)>,
    pub tags: Vec<Tag>,
    pub categories: Vec<Category>,
    /// What stays, and why.
    pub left: Vec<String>,
}

impl Back {
    /// In words.
    pub fn words(&self, server: &str) -> Vec<String> {
        let detached = self.detach.iter().map(|(tag, object)| format!("{server}: detach tag {} from {object}", tag.name));
        let deleted = self.tags.iter().map(|tag| format!("{server}: delete tag {}", tag.name));
        let emptied = self.categories.iter().map(|category| format!("{server}: delete tag category {}", category.name));
        detached.chain(deleted).chain(emptied).collect()
    }
}

/// Whether Infrastructure keeps the description of the source that this migration wrote: without the tags that it names, the cluster's
/// controllers would look for them in vain.
pub fn stay(vmi: &VSphereMigrationInfra) -> bool {
    vmi.condition(StepName::InfrastructureExtended.as_str()).is_some_and(|extended| extended.reason == SOURCE_KEPT)
}

/// Looks at what was made.
pub async fn look(client: &Client, made: &TagsMade) -> vsphere::Result<Now> {
    let tags = client.tags();
    let named = |name: &str| {
        made.categories.iter().any(|one| one == name)
            || made.tags.iter().any(|tag| tag.category == name)
            || made.attachments.iter().any(|one| one.category == name)
    };
    let categories: Vec<Category> = tags.categories().await?.into_iter().filter(|category| named(&category.name)).collect();
    let of_each = try_join_all(categories.iter().map(|category| tags.of(category))).await?;
    let mut now = Now::default();
    for (category, these) in categories.into_iter().zip(of_each) {
        let objects = if these.is_empty() { Vec::new() } else { tags.objects(&these).await? };
        let rows = these.into_iter().zip(objects).map(|(tag, objects)| OnObjects { tag, objects }).collect();
        now.categories.push((category, rows));
    }
    Ok(now)
}

/// What of it goes, and what stays because others use it.
pub fn decide(made: &TagsMade, now: &Now) -> Back {
    let mut back = Back::default();
    for (category, rows) in &now.categories {
        let mut stays = 0;
        for OnObjects { tag, objects } in rows {
            let on_it = |object: &Ref| {
                made.attachments.iter().any(|one| one.category == category.name && one.tag == tag.name && one.object == object.to_string())
            };
            let (ours, others): (Vec<&Ref>, Vec<&Ref>) = objects.iter().partition(|object| on_it(object));
            back.detach.extend(ours.into_iter().map(|object| (tag.clone(), object.clone())));
            if !made.tags.contains(&TagName { category: category.name.clone(), name: tag.name.clone() }) {
                stays += 1;
            } else if others.is_empty() {
                back.tags.push(tag.clone());
            } else {
                stays += 1;
                back.left.push(format!("tag {} of {} is on {} other objects", tag.name, category.name, others.len()));
            }
        }
        if !made.categories.contains(&category.name) {
            continue;
        }
        if stays == 0 {
            back.categories.push(category.clone());
        } else {
            back.left.push(format!("tag category {} has {stays} tags in use or of others", category.name));
        }
    }
    back
}

#[cfg(test)]
mod tests;
