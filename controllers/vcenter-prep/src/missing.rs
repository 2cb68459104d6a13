//! What a vCenter lacks of what it shall have, or why it cannot get it. Pure.

use vmi_crds::status::Failure;
use vsphere::CategorySpec;

use crate::failures;
use crate::look::{Look, Spot, ancestry};
use crate::record::{FoldersMade, TagName, TagOn, TagsMade};
use crate::wanted::{Attachment, Wanted};

/// Tags to be made and attached in one vCenter; each list needs the ones before it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MissingTags {
    pub categories: Vec<CategorySpec>,
    pub tags: Vec<TagName>,
    pub attachments: Vec<MissingAttachment>,
}

/// A tag that is not yet where it shall be.
#[derive(Clone, Debug, PartialEq)]
pub struct MissingAttachment {
    pub category: String,
    pub tag: String,
    pub spots: Vec<Spot>,
}

/// The tags that are missing.
pub fn tags(wanted: &Wanted, look: &Look) -> Result<MissingTags, Failure> {
    let attachments = wanted.attachments.iter().map(|one| attachment(wanted, one, look)).collect::<Result<Vec<_>, _>>()?;
    let absent = |category: &str, name: &str| look.tag(category, name).is_none();
    Ok(MissingTags {
        categories: wanted.categories.iter().filter(|spec| look.category(&spec.name).is_none()).cloned().collect(),
        tags: wanted
            .tags()
            .into_iter()
            .filter(|(category, name)| absent(category, name))
            .map(|(category, name)| TagName { category: category.to_owned(), name: name.to_owned() })
            .collect(),
        attachments: attachments.into_iter().flatten().collect(),
    })
}

fn attachment(wanted: &Wanted, one: &Attachment, look: &Look) -> Result<Option<MissingAttachment>, Failure> {
    let spots = look.places.get(&one.place).map(Vec::as_slice).unwrap_or_default();
    for other in wanted.attachments.iter().filter(|other| other.category == one.category && other.tag != one.tag) {
        let theirs = look.places.get(&other.place).map(Vec::as_slice).unwrap_or_default();
        if let Some(both) = spots.iter().find(|spot| theirs.contains(spot)) {
            let (mine, theirs) = ((one.domain.as_str(), one.tag.as_str()), (other.domain.as_str(), other.tag.as_str()));
            return Err(failures::disagreement(&wanted.server, &both.path, one.category, mine, theirs));
        }
    }
    let mut bare = Vec::new();
    for spot in spots {
        // One tag an object, also where the category of others would allow more: two regions are none.
        let present = look.category(one.category).and_then(|category| look.on(&spot.object, category).next());
        match present {
            Some(tag) if tag.name == one.tag => continue,
            Some(tag) => return Err(failures::second_tag(&wanted.server, &spot.path, one.category, &tag.name, &one.tag, &one.domain)),
            None => bare.push(spot.clone()),
        }
        if let Some(unfit) = look.category(one.category).filter(|category| !category.allows(&spot.object.kind)) {
            return Err(failures::unfit_category(&wanted.server, &unfit.name, spot.object.kind.as_str()));
        }
    }
    Ok((!bare.is_empty()).then(|| MissingAttachment { category: one.category.to_owned(), tag: one.tag.clone(), spots: bare }))
}

impl MissingTags {
    /// In words, for the plan.
    pub fn words(&self, server: &str) -> Vec<String> {
        let categories = self.categories.iter().map(|spec| format!("{server}: make tag category {}", spec.name));
        let tags = self.tags.iter().map(|tag| format!("{server}: make tag {} in {}", tag.name, tag.category));
        let attached = self.attachments.iter().flat_map(|one| {
            one.spots.iter().map(move |spot| format!("{server}: attach tag {} of {} to {}", one.tag, one.category, spot.path))
        });
        categories.chain(tags).chain(attached).collect()
    }

    /// As it is saved before it is made.
    pub fn record(&self) -> TagsMade {
        let on = |one: &MissingAttachment, spot: &Spot| TagOn {
            category: one.category.clone(),
            tag: one.tag.clone(),
            path: spot.path.clone(),
            object: spot.object.to_string(),
        };
        TagsMade {
            categories: self.categories.iter().map(|spec| spec.name.clone()).collect(),
            tags: self.tags.clone(),
            attachments: self.attachments.iter().flat_map(|one| one.spots.iter().map(move |spot| on(one, spot))).collect(),
        }
    }
}

/// The folders that are missing, and those that lack the cluster's tag.
pub fn folders(wanted: &Wanted, look: &Look) -> Result<FoldersMade, Failure> {
    let mut missing = FoldersMade::default();
    for path in &wanted.folders {
        let root = path.find("/vm/").map(|at| &path[..at + "/vm".len()]).filter(|root| look.folders.contains_key(*root));
        let Some(root) = root else { return Err(failures::no_root(&wanted.server, path)) };
        let new = ancestry(path).into_iter().filter(|part| part.len() > root.len() && !look.folders.contains_key(*part));
        missing.folders.extend(new.map(str::to_owned));
        let Some(folder) = look.folders.get(path) else {
            missing.tagged.push(path.clone());
            continue;
        };
        let category = look.category(&wanted.owner.category);
        match category.and_then(|category| look.on(folder, category).next()) {
            Some(tag) if tag.name == wanted.owner.tag => {}
            Some(tag) => {
                let (category, owner) = (&wanted.owner.category, &wanted.owner.tag);
                return Err(failures::second_tag(&wanted.server, path, category, &tag.name, owner, "of the folder"));
            }
            None => missing.tagged.push(path.clone()),
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    missing.folders.retain(|path| seen.insert(path.clone()));
    Ok(missing)
}

impl FoldersMade {
    /// In words, for the plan.
    pub fn words(&self, server: &str, tag: &str) -> Vec<String> {
        let made = self.folders.iter().map(|path| format!("{server}: make folder {path}"));
        made.chain(self.tagged.iter().map(|path| format!("{server}: attach tag {tag} to {path}"))).collect()
    }
}

#[cfg(test)]
mod tests;
