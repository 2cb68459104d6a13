//! Tag categories and tags: found, made where missing, never changed.

pub(crate) mod attach;
mod model;
mod patience;
mod sparing;

use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};

pub use model::{Cardinality, Category, CategorySpec, Tag};
use model::{bare_type, texts};
use patience::Patience;
pub(crate) use patience::Recent;

use crate::{
    client::Client,
    error::{Fault, Result, Trouble},
    reference::Kind,
    rest::{Dialect, Request},
    session::Core,
};

/// The tagging service of a vCenter; made by [`Client::tags`].
///
/// The example `tag` is a whole program around this:
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/simulator/documentation.rs"));
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let simulated = vcsim::Vcsim::start();
/// # let client = simulated.client();
/// use vsphere::{Cardinality, CategorySpec, Kind, Want, only_one};
/// let inventory = client.inventory(Want::Infrastructure).await?;
/// let datacenter = only_one(&inventory.datacenters, "dc-a")?.node.reference.clone();
/// let spec = CategorySpec {
///     name: "openshift-region".into(),
///     description: "Region of a failure domain".into(),
///     cardinality: Cardinality::Single,
///     types: vec![Kind::Datacenter],
/// };
/// let tags = client.tags();
/// let category = tags.ensure_category(&spec).await?;
/// let made = tags.ensure(&category, &["eu"]).await?;
/// tags.attach(&category, &made, std::slice::from_ref(&datacenter)).await?;
/// assert_eq!(tags.objects(&made).await?, [[datacenter]]);
/// # client.logout().await?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Tags<'a>(&'a Client);

impl Client {
    /// The tagging service.
    #[must_use]
    pub fn tags(&self) -> Tags<'_> {
        Tags(self)
    }
}

impl Tags<'_> {
    fn core(&self) -> &Arc<Core> {
        self.0.core()
    }

    async fn many<T>(&self, what: &str, ids: Vec<String>, read: impl Fn(&Value) -> Result<T, Fault>) -> Result<Vec<T>> {
        let found: Vec<Option<T>> = stream::iter(ids)
            .map(|id| {
                let read = &read;
                async move {
                    match self.core().rest(|dialect| dialect.get(what, &id)).await {
                        Ok(value) => read(&value).map(Some).map_err(|fault| self.core().error(what, None, fault)),
                        // Deleted by somebody since it was listed.
                        Err(error) if matches!(error.fault(), Fault::NotFound { .. }) => Ok(None),
                        Err(error) => Err(error),
                    }
                }
            })
            .buffered(self.core().settings.in_flight)
            .try_collect()
            .await?;
        Ok(found.into_iter().flatten().collect())
    }

    /// All categories.
    ///
    /// # Errors
    /// As for every call.
    pub async fn categories(&self) -> Result<Vec<Category>> {
        self.read_categories(self.category_ids().await?).await
    }

    /// The category of that name.
    ///
    /// # Errors
    /// As for every call.
    pub async fn category(&self, name: &str) -> Result<Option<Category>> {
        Ok(self.categories().await?.into_iter().find(|category| category.name == name))
    }

    /// The category, made if there is none of that name. An existing one is checked and never changed: others use it too.
    ///
    /// # Errors
    /// [`Fault::CategoryMismatch`] if the existing one does not serve.
    pub async fn ensure_category(&self, spec: &CategorySpec) -> Result<Category> {
        let types: Vec<_> = spec.types.iter().map(Kind::as_str).collect();
        let body = json!({
            "name": spec.name, "description": spec.description,
            "cardinality": spec.cardinality.as_str(), "associable_types": types,
        });
        let found = self.ensured("category", &spec.name, self.category(&spec.name), || self.category(&spec.name), body).await?;
        match found {
            Ensured::Found(category) => {
                category.serves(spec).map_err(|fault| self.core().error("category", None, fault))?;
                Ok(category)
            }
            Ensured::Made(id) => Ok(Category {
                id,
                name: spec.name.clone(),
                description: spec.description.clone(),
                cardinality: spec.cardinality,
                types: types.into_iter().map(str::to_owned).collect(),
            }),
        }
    }

    /// The tags of a category.
    ///
    /// # Errors
    /// As for every call.
    pub async fn of(&self, category: &Category) -> Result<Vec<Tag>> {
        self.read(self.siblings(category).await?).await
    }

    /// The ids of the tags of a category.
    async fn siblings(&self, category: &Category) -> Result<Vec<String>> {
        Ok(texts(&self.fresh(&category.id, |dialect| dialect.tags_of_category(&category.id), |_| Ok(())).await?))
    }

    /// The tags of these names in this category, in this order, made where missing.
    ///
    /// # Errors
    /// As for every call.
    pub async fn ensure(&self, category: &Category, names: &[&str]) -> Result<Vec<Tag>> {
        let existing = self.of(category).await?;
        stream::iter(names)
            .map(|name| {
                let known = existing.iter().find(|tag| tag.name == **name).cloned();
                async move {
                    let again = || async { Ok(self.of(category).await?.into_iter().find(|tag| tag.name == **name)) };
                    let body = json!({ "name": name, "description": "", "category_id": category.id });
                    Ok(match self.ensured("tag", name, async { Ok(known) }, again, body).await? {
                        Ensured::Found(tag) => tag,
                        Ensured::Made(id) => Tag { id, name: (**name).to_owned(), category: category.id.clone() },
                    })
                }
            })
            .buffered(self.core().settings.in_flight)
            .try_collect()
            .await
    }

    /// Deletes a tag and with it every attachment of it.
    ///
    /// # Errors
    /// As for every call.
    pub async fn delete(&self, tag: &Tag) -> Result<()> {
        self.core().rest(|dialect| dialect.delete("tag", &tag.id)).await.map(|_| ())
    }

    /// Deletes a category and with it all its tags.
    ///
    /// # Errors
    /// As for every call.
    pub async fn delete_category(&self, category: &Category) -> Result<()> {
        self.core().rest(|dialect| dialect.delete("category", &category.id)).await.map(|_| ())
    }

    /// Looks, makes, and if somebody was faster looks again until a linked vCenter has passed on what it made.
    async fn ensured<T, F: Future<Output = Result<Option<T>>>>(
        &self,
        what: &str,
        name: &str,
        first: impl Future<Output = Result<Option<T>>>,
        again: impl Fn() -> F,
        body: Value,
    ) -> Result<Ensured<T>> {
        if let Some(found) = first.await? {
            return Ok(Ensured::Found(found));
        }
        let refused = match self.create_one(what, name, body).await {
            Ok(id) => return Ok(Ensured::Made(id)),
            Err(error) if *error.fault() == Fault::AlreadyExists => error,
            Err(error) => return Err(error),
        };
        let mut patience = Patience::new(self.core().settings.deadlines.replication);
        loop {
            if let Some(found) = again().await? {
                return Ok(Ensured::Found(found));
            }
            if !patience.pause().await {
                return Err(refused);
            }
        }
    }

    /// A call about something that may have been made a moment ago, and may not have arrived everywhere.
    async fn fresh(&self, id: &str, request: impl Fn(Dialect) -> Request, check: impl Fn(&Value) -> Result<(), Trouble>) -> Result<Value> {
        let mut patience = Patience::new(self.core().settings.deadlines.replication);
        loop {
            match self.core().rest_checked(&request, &check).await {
                Err(error) if matches!(error.fault(), Fault::NotFound { .. }) && self.core().recent.has(id) => {
                    if !patience.pause().await {
                        return Err(error);
                    }
                }
                outcome => return outcome,
            }
        }
    }
}

enum Ensured<T> {
    Found(T),
    Made(String),
}
