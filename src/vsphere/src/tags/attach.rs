//! Attaching and detaching in bulk, with the checks some servers leave to their clients.

use std::collections::HashMap;

use futures::{StreamExt, TryStreamExt, stream};
use serde::Serialize;
use serde_json::Value;

use super::{Cardinality, Category, Tag, Tags, bare_type, texts};
use crate::{
    error::{Fault, Result, Trouble},
    reference::Ref,
    rest::Dialect,
};

/// More objects or tags in one call are refused.
pub(super) const BATCH: usize = 2000;

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

pub(crate) fn reference(value: &Value) -> Option<Ref> {
    Some(Ref::new(bare_type(value["type"].as_str()?), value["id"].as_str()?))
}

/// The fault of a batch that failed in part, for other reasons than that something is not there.
const PARTLY: &str = "BatchFailedInPart";

/// Bulk calls answer 200 even when they did not do everything.
fn succeeded(value: &Value) -> Result<(), Trouble> {
    if value["success"] != false {
        return Ok(());
    }
    let messages = || value["error_messages"].as_array().into_iter().flatten();
    let words: Vec<_> = messages().filter_map(|one| one["default_message"].as_str()).collect();
    let missing = messages().any(|one| {
        let id = one["id"].as_str().unwrap_or_default().to_ascii_lowercase();
        id.contains("notfound") || id.contains("not_found")
    });
    let fault = if missing { Fault::NotFound { object: None } } else { Fault::Other { kind: PARTLY.into() } };
    Err(Trouble { fault, words: words.join(" ") })
}

/// How vSphere names what a server does not have.
const UNSUPPORTED: [&str; 2] = ["unsupported", "operation_not_found"];

/// Some servers acknowledge what they do not know with an answer that tells nothing.
pub(crate) fn done_at_all(value: &Value) -> Result<(), Trouble> {
    if value["success"].is_null() {
        let words = "the answer does not tell whether anything was done".to_owned();
        return Err(Trouble { fault: Fault::Other { kind: UNSUPPORTED[0].into() }, words });
    }
    succeeded(value)
}

/// Whether the server does not have the call for many, or did not do all of it.
fn worth_single_calls(fault: &Fault) -> bool {
    match fault {
        Fault::NotFound { .. } | Fault::Http { status: 405 | 501 } => true,
        Fault::Other { kind } => kind == PARTLY || UNSUPPORTED.iter().any(|name| kind.eq_ignore_ascii_case(name)),
        _ => false,
    }
}

impl Tags<'_> {
    fn body(&self, made: Result<String, Fault>) -> Result<String> {
        made.map_err(|fault| self.core().error("tag-association", None, fault))
    }

    /// The answers about all of these; a part whose answer is too large is asked for again in halves.
    async fn in_parts<T>(&self, all: &[T], action: &str, write: impl Fn(&[T]) -> Result<String, Fault>) -> Result<Vec<Value>> {
        let mut left: Vec<&[T]> = all.chunks(BATCH).rev().collect();
        let mut answers = Vec::new();
        while let Some(part) = left.pop() {
            let body = self.body(write(part))?;
            match self.core().rest(|dialect| dialect.association(None, action, &body)).await {
                Ok(answer) => answers.push(answer),
                Err(error) if matches!(error.fault(), Fault::TooLarge { .. }) && part.len() > 1 => {
                    let (first, second) = part.split_at(part.len() / 2);
                    left.extend([second, first]);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(answers)
    }

    /// The ids of the tags on each of these objects, in the order of the objects.
    ///
    /// # Errors
    /// As for every call.
    pub async fn attached(&self, objects: &[Ref]) -> Result<Vec<(Ref, Vec<String>)>> {
        let mut found: HashMap<Ref, Vec<String>> = HashMap::new();
        for rows in self.in_parts(objects, "list-attached-tags-on-objects", many_objects).await? {
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
        let write = |batch: &[Tag]| many_tags(None, batch.iter().map(|tag| tag.id.as_str()));
        for rows in self.in_parts(tags, "list-attached-objects-on-tags", write).await? {
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
            let batches: Vec<_> = tags.iter().flat_map(|tag| objects.chunks(BATCH).map(move |batch| (tag, batch))).collect();
            return self.each(batches, |(tag, batch)| self.attach_tag(tag, batch)).await;
        }
        let batches: Vec<_> = objects.iter().flat_map(|object| tags.chunks(BATCH).map(move |batch| (object, batch))).collect();
        self.each(batches, |(object, batch)| self.attach_to(object, batch)).await
    }

    pub(super) async fn attach_tag(&self, tag: &Tag, objects: &[Ref]) -> Result<()> {
        let body = self.body(many_objects(objects))?;
        let request = |dialect: Dialect| dialect.association(Some(&tag.id), "attach-tag-to-multiple-objects", &body);
        self.fresh(&tag.id, request, succeeded).await.map(|_| ())
    }

    async fn attach_to(&self, object: &Ref, tags: &[Tag]) -> Result<()> {
        let body = self.body(many_tags(Some(object), tags.iter().map(|tag| tag.id.as_str())))?;
        let request = |dialect: Dialect| dialect.association(None, "attach-multiple-tags-to-object", &body).about(object);
        match self.core().rest_checked(request, succeeded).await {
            Err(error) if worth_single_calls(error.fault()) => {}
            outcome => return outcome.map(|_| ()),
        }
        // One tag at a time: each then has its own word, and a tag made just now its own patience.
        for tag in tags {
            self.attach_tag(tag, std::slice::from_ref(object)).await?;
        }
        Ok(())
    }

    /// Takes every one of these tags off every one of these objects; what is not attached is left out.
    ///
    /// One call to look; then few tags on many objects take one per tag, many tags on few objects one per object.
    ///
    /// # Errors
    /// As for every call.
    pub async fn detach(&self, tags: &[Tag], objects: &[Ref]) -> Result<()> {
        let present = self.attached(objects).await?;
        if tags.len() > objects.len() {
            return self
                .each(&present, |(object, ids)| self.detach_from(object, tags.iter().filter(|tag| ids.contains(&tag.id)).collect()))
                .await;
        }
        let bearers = |tag: &Tag| present.iter().filter(|(_, ids)| ids.contains(&tag.id)).map(|(object, _)| object.clone()).collect();
        let bearers: Vec<(&Tag, Vec<Ref>)> = tags.iter().map(|tag| (tag, bearers(tag))).collect();
        let batches: Vec<_> = bearers.iter().flat_map(|(tag, objects)| objects.chunks(BATCH).map(move |batch| (*tag, batch))).collect();
        self.each(batches, |(tag, batch)| self.detach_tag(tag, batch)).await
    }

    async fn detach_tag(&self, tag: &Tag, objects: &[Ref]) -> Result<()> {
        let body = self.body(many_objects(objects))?;
        let request = |dialect: Dialect| dialect.association(Some(&tag.id), "detach-tag-from-multiple-objects", &body);
        match self.core().rest_checked(request, done_at_all).await {
            // One object at a time: that every server can do, and each then has its own word.
            Err(error) if worth_single_calls(error.fault()) => self.each(objects, |object| self.detach_from(object, vec![tag])).await,
            outcome => outcome.map(|_| ()),
        }
    }

    async fn detach_from(&self, object: &Ref, tags: Vec<&Tag>) -> Result<()> {
        for batch in tags.chunks(BATCH) {
            let body = self.body(many_tags(Some(object), batch.iter().map(|tag| tag.id.as_str())))?;
            let request = |dialect: Dialect| dialect.association(None, "detach-multiple-tags-from-object", &body).about(object);
            self.core().rest_checked(request, succeeded).await?;
        }
        Ok(())
    }

    pub(super) async fn each<T, F: Future<Output = Result<()>>>(
        &self,
        items: impl IntoIterator<Item = T>,
        work: impl Fn(T) -> F,
    ) -> Result<()> {
        // All futures first, none begun: a stream that held `work` could not be sent to another thread by every caller.
        let begun_later: Vec<F> = items.into_iter().map(work).collect();
        stream::iter(begun_later).buffer_unordered(self.core().settings.in_flight).try_collect().await
    }

    /// What a real vCenter would refuse half-way, refused before the start.
    pub(super) fn fitting(&self, category: &Category, tags: &[Tag], objects: &[Ref]) -> Result<()> {
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
        let siblings = self.siblings(category).await?;
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
