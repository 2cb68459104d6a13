//! The same service for callers that count their calls: they read only what they do not know yet, and make and attach what they
//! have seen to be missing, without being asked to look again.

use serde_json::{Value, json};

use super::{Category, CategorySpec, Tag, Tags};
use crate::{
    error::{Fault, Result},
    reference::{Kind, Ref},
};

impl Tags<'_> {
    /// The ids of all categories, in one call.
    ///
    /// # Errors
    /// As for every call.
    pub async fn category_ids(&self) -> Result<Vec<String>> {
        Ok(super::texts(&self.core().rest(|dialect| dialect.list("category")).await?))
    }

    /// The categories with these ids, a call each; those that are gone are left out.
    ///
    /// # Errors
    /// As for every call.
    pub async fn read_categories(&self, ids: Vec<String>) -> Result<Vec<Category>> {
        self.many("category", ids, Category::read).await
    }

    /// The ids of the tags of a category, in one call.
    ///
    /// # Errors
    /// As for every call.
    pub async fn ids_of(&self, category: &Category) -> Result<Vec<String>> {
        self.siblings(category).await
    }

    /// The tags with these ids, a call each; those that are gone are left out.
    ///
    /// # Errors
    /// As for every call.
    pub async fn read(&self, ids: Vec<String>) -> Result<Vec<Tag>> {
        self.many("tag", ids, Tag::read).await
    }

    /// Makes a category, in one call.
    ///
    /// # Errors
    /// [`Fault::AlreadyExists`] if somebody else, perhaps on a linked vCenter, was faster.
    pub async fn create_category(&self, spec: &CategorySpec) -> Result<Category> {
        let types: Vec<String> = spec.types.iter().map(|kind: &Kind| kind.as_str().to_owned()).collect();
        let body = json!({
            "name": spec.name, "description": spec.description,
            "cardinality": spec.cardinality.as_str(), "associable_types": types,
        });
        let id = self.create_one("category", &spec.name, body).await?;
        Ok(Category { id, name: spec.name.clone(), description: spec.description.clone(), cardinality: spec.cardinality, types })
    }

    /// Makes a tag, in one call.
    ///
    /// # Errors
    /// [`Fault::AlreadyExists`] if somebody else, perhaps on a linked vCenter, was faster.
    pub async fn create(&self, category: &Category, name: &str) -> Result<Tag> {
        let body = json!({ "name": name, "description": "", "category_id": category.id });
        let id = self.create_one("tag", name, body).await?;
        Ok(Tag { id, name: name.to_owned(), category: category.id.clone() })
    }

    /// Attaches a tag to these objects, which the caller has seen to have no other of a category that allows one.
    ///
    /// # Errors
    /// [`Fault::CategoryMismatch`] before anything is changed, if the category does not allow it.
    pub async fn attach_to_untagged(&self, category: &Category, tag: &Tag, objects: &[Ref]) -> Result<()> {
        self.fitting(category, std::slice::from_ref(tag), objects)?;
        self.each(objects.chunks(super::attach::BATCH), |batch| self.attach_tag(tag, batch)).await
    }

    pub(super) async fn create_one(&self, what: &str, name: &str, body: Value) -> Result<String> {
        match self.core().rest(|dialect| dialect.create(what, body.clone())).await? {
            Value::String(id) => {
                self.core().recent.add(&id);
                Ok(id)
            }
            _ => Err(self.core().error(what, None, Fault::Malformed(format!("making {name:?} brought no id")))),
        }
    }
}
