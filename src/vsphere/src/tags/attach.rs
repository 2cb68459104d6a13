//! Attaching and detaching in bulk, with the checks some servers leave to their clients.

use std::collections::HashMap;

use futures::{StreamExt, TryStreamExt, stream};
use serde::Serialize;
use serde_json::Value;

use super::{Cardinality, Category, Tag, Tags, bare_type, texts};
use crate::{
    error::{Fault, Result},
    reference::Ref,
};

/// More objects or tags in one call are refused.
const BATCH: usize = 2000;

/// An object as the tagging service names it.
#[derive(Serialize)]
struct ObjectId<'a> {
    id: &'a str,
    r#type: &'a str,
}

impl<'a> From<&'a Ref> for ObjectId<'a> {
    fn from(object: &'a Ref) -> Self {
        Self { id: &object.id, r#type: object.kind.as_str() }
    }
}

#[derive(Serialize)]
struct ManyObjects<'a> {
    object_ids: Vec<ObjectId<'a>>,
}

#[derive(Serialize)]
struct ManyTags<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    object_id: Option<ObjectId<'a>>,
    tag_ids: Vec<&'a str>,
}

fn many_objects(objects: &[Ref]) -> Result<String, Fault> {
    text(&ManyObjects { object_ids: objects.iter().map(ObjectId::from).collect() })
}

fn many_tags<'a>(object: Option<&'a Ref>, tags: impl Iterator<Item = &'a str>) -> Result<String, Fault> {
    text(&ManyTags { object_id: object.map(ObjectId::from), tag_ids: tags.collect() })
}

fn text(body: &impl Serialize) -> Result<String, Fault> {
    serde_json::to_string(body).map_err(|error| Fault::Settings(format!("the request cannot be written as JSON: {error}")))
}

fn reference(value: &Value) -> Option<Ref> {
    Some(Ref::new(bare_type(value["type"].as_str()?), value["id"].as_str()?))
}

/// Bulk calls answer 200 even when they did not do everything.
fn succeeded(value: &Value) -> Result<(), Fault> {
    if value["success"] == false {
        let words: Vec<_> =
            value["error_messages"].as_array().into_iter().flatten().filter_map(|one| one["default_message"].as_str()).collect();
        let missing = value["error_messages"].to_string().contains("NotFound");
        return Err(if missing {
            Fault::NotFound { object: None }
        } else {
            Fault::Other { kind: format!("a partly failed batch: {}", words.join(" ")) }
        });
    }
    Ok(())
}

impl Tags<'_> {
    fn body(&self, made: Result<String, Fault>) -> Result<String> {
        made.map_err(|fault| self.core().error("tag-association", None, fault))
    }

    /// The ids of the tags on each of these objects, in the order of the objects.
    ///
    /// # Errors
    /// As for every call.
    pub async fn attached(&self, objects: &[Ref]) -> Result<Vec<(Ref, Vec<String>)>> {
        let mut found: HashMap<Ref, Vec<String>> = HashMap::new();
        for batch in objects.chunks(BATCH) {
            let body = self.body(many_objects(batch))?;
            let rows = self.core().rest(|dialect| dialect.association(None, "list-attached-tags-on-objects", &body)).await?;
            for row in rows.as_array().into_iter().flatten() {
                if let Some(object) = reference(&row["object_id"]) {
                    found.entry(object).or_default().extend(texts(&row["tag_ids"]));
                }
            }
        }
        // A server may leave out objects without tags.
        Ok(objects.iter().map(|object| (object.clone(), found.get(object).cloned().unwrap_or_default())).collect())
    }

    /// The objects each of these tags is attached to, in the order of the tags.
    ///
    /// # Errors
    /// As for every call.
    pub async fn objects(&self, tags: &[Tag]) -> Result<Vec<Vec<Ref>>> {
        let mut found: HashMap<String, Vec<Ref>> = HashMap::new();
        for batch in tags.chunks(BATCH) {
            let body = self.body(many_tags(None, batch.iter().map(|tag| tag.id.as_str())))?;
            let rows = self.core().rest(|dialect| dialect.association(None, "list-attached-objects-on-tags", &body)).await?;
            for row in rows.as_array().into_iter().flatten() {
                let objects = row["object_ids"].as_array().into_iter().flatten().filter_map(reference);
                found.entry(row["tag_id"].as_str().unwrap_or_default().to_owned()).or_default().extend(objects);
            }
        }
        Ok(tags.iter().map(|tag| found.remove(&tag.id).unwrap_or_default()).collect())
    }

    /// Attaches every one of these tags of one category to every one of these objects; what is attached already stays so.
    ///
    /// Few tags on many objects take one call per tag, many tags on few objects one per object, four at a time.
    ///
    /// # Errors
    /// [`Fault::SecondTag`] and [`Fault::CategoryMismatch`] before anything is changed, if the category does not allow it.
    pub async fn attach(&self, category: &Category, tags: &[Tag], objects: &[Ref]) -> Result<()> {
        self.fitting(category, tags, objects)?;
        if category.cardinality == Cardinality::Single {
            self.only_ones(category, tags, objects).await?;
        }
        if tags.len() <= objects.len() {
            let batches = tags.iter().flat_map(|tag| objects.chunks(BATCH).map(move |batch| (tag, batch)));
            return self.each(batches, |(tag, batch)| self.attach_tag(tag, batch)).await;
        }
        let batches = objects.iter().flat_map(|object| tags.chunks(BATCH).map(move |batch| (object, batch)));
        self.each(batches, |(object, batch)| self.attach_to(object, batch)).await
    }

    async fn attach_tag(&self, tag: &Tag, objects: &[Ref]) -> Result<()> {
        let body = self.body(many_objects(objects))?;
        let answer = self.fresh(&tag.id, |dialect| dialect.association(Some(&tag.id), "attach-tag-to-multiple-objects", &body)).await?;
        succeeded(&answer).map_err(|fault| self.core().error("attach-tag-to-multiple-objects", None, fault))
    }

    async fn attach_to(&self, object: &Ref, tags: &[Tag]) -> Result<()> {
        let body = self.body(many_tags(Some(object), tags.iter().map(|tag| tag.id.as_str())))?;
        let answer = self.core().rest(|dialect| dialect.association(None, "attach-multiple-tags-to-object", &body)).await?;
        if succeeded(&answer).is_ok() {
            return Ok(());
        }
        // One tag at a time: each then has its own word, and a tag made just now its own patience.
        for tag in tags {
            self.attach_tag(tag, std::slice::from_ref(object)).await?;
        }
        Ok(())
    }

    /// Takes every one of these tags off every one of these objects; what is not attached is left out.
    ///
    /// # Errors
    /// As for every call.
    pub async fn detach(&self, tags: &[Tag], objects: &[Ref]) -> Result<()> {
        let present = self.attached(objects).await?;
        self.each(&present, |(object, ids)| {
            let wanted: Vec<&String> = tags.iter().map(|tag| &tag.id).filter(|id| ids.contains(id)).collect();
            async move {
                for batch in wanted.chunks(BATCH) {
                    let body = self.body(many_tags(Some(object), batch.iter().map(|id| id.as_str())))?;
                    let answer = self.core().rest(|dialect| dialect.association(None, "detach-multiple-tags-from-object", &body)).await?;
                    succeeded(&answer).map_err(|fault| self.core().error("detach-multiple-tags-from-object", Some(object), fault))?;
                }
                Ok(())
            }
        })
        .await
    }

    async fn each<T, F: Future<Output = Result<()>>>(&self, items: impl IntoIterator<Item = T>, work: impl Fn(T) -> F) -> Result<()> {
        stream::iter(items).map(work).buffer_unordered(self.core().settings.in_flight).try_collect().await
    }

    /// What a real vCenter would refuse half-way, refused before the start.
    fn fitting(&self, category: &Category, tags: &[Tag], objects: &[Ref]) -> Result<()> {
        let difference = if let Some(object) = objects.iter().find(|object| !category.allows(&object.kind)) {
            format!("its tags cannot be attached to {object}")
        } else if let Some(stranger) = tags.iter().find(|tag| tag.category != category.id) {
            format!("the tag {:?} is not one of it", stranger.name)
        } else {
            return Ok(());
        };
        Err(self.core().error("attach", None, Fault::CategoryMismatch { category: category.name.clone(), difference }))
    }

    /// The same for a second tag where only one is allowed; some servers do not even notice.
    async fn only_ones(&self, category: &Category, tags: &[Tag], objects: &[Ref]) -> Result<()> {
        let present = self.attached(objects).await?;
        let siblings = texts(&self.fresh(&category.id, |dialect| dialect.tags_of_category(&category.id)).await?);
        for (object, ids) in present {
            let mut after: Vec<&String> = ids.iter().filter(|id| siblings.contains(id)).chain(tags.iter().map(|tag| &tag.id)).collect();
            after.sort_unstable();
            after.dedup();
            if after.len() > 1 {
                let fault = Fault::SecondTag { category: category.name.clone(), object: object.clone() };
                return Err(self.core().error("attach", Some(&object), fault));
            }
        }
        Ok(())
    }
}
