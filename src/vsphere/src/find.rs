//! Asking the server for single things: by path, and virtual machines by UUID.

use std::collections::{HashMap, HashSet};

use futures::{StreamExt, TryStreamExt, stream};

use crate::{
    client::Client,
    error::{Fault, Result},
    inventory::all_vms,
    reference::Ref,
    soap::{Method, element, returned_reference, returned_references},
    uuid::Uuid,
};

/// Which UUID of a virtual machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Identity {
    /// The one the guest sees; it is looked for in both byte orders, and clones may share it.
    Bios,
    /// The one vCenter gives it.
    Instance,
}

impl Identity {
    fn property(self) -> &'static str {
        match self {
            Self::Bios => "config.uuid",
            Self::Instance => "config.instanceUuid",
        }
    }
}

/// A page of 500 virtual machines costs about as much as this many single lookups: as long as a page is expected to save
/// more, pages are read; beyond that the rest is asked for one by one.
const LOOKUPS_PER_PAGE: usize = 10;

impl Client {
    /// The object at an inventory path, or `None`. The slash at the beginning may be left out.
    ///
    /// # Errors
    /// As for every call.
    pub async fn find_by_path(&self, path: &str) -> Result<Option<Ref>> {
        let index = self.core().soap_session().await?.content.search_index.clone();
        let arguments = element("inventoryPath", path.trim_matches('/'));
        match self.core().soap(&Method::repeatable("FindByInventoryPath", &index, arguments), returned_reference).await {
            Err(error) if matches!(error.fault(), Fault::NotFound { .. }) => Ok(None),
            outcome => outcome,
        }
    }

    /// The virtual machines with these UUIDs, for each of them and in their order; mostly one, none if it is unknown.
    ///
    /// Few are asked for one by one, four at a time; many are picked out of a read of all, and what that did not find or
    /// could have missed is asked for one by one as well. What is found does not depend on how many are asked for.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/simulator/documentation.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let simulated = vcsim::Vcsim::start();
    /// # let client = simulated.client();
    /// use vsphere::{Identity, Want};
    /// let template = client.inventory(Want::Templates).await?.templates.remove(0);
    /// let found = client.find_vms(&[template.uuid.parse()?], Identity::Bios).await?;
    /// assert_eq!(found, [[template.node.reference]]);
    /// # client.logout().await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As for every call.
    pub async fn find_vms(&self, uuids: &[Uuid], identity: Identity) -> Result<Vec<Vec<Ref>>> {
        let pages = uuids.len() / LOOKUPS_PER_PAGE;
        let known = if pages == 0 { HashMap::new() } else { self.read_uuids(uuids, identity, pages).await? };
        stream::iter(uuids)
            .map(|uuid| {
                let found = known.get(uuid).or_else(|| known.get(&uuid.swapped()).filter(|_| identity == Identity::Bios));
                async move {
                    match found {
                        Some(found) => Ok(found.clone()),
                        None => self.find_vm(*uuid, identity).await,
                    }
                }
            })
            .buffered(self.core().settings.in_flight)
            .try_collect()
            .await
    }

    async fn find_vm(&self, uuid: Uuid, identity: Identity) -> Result<Vec<Ref>> {
        let found = self.find_all_by_uuid(uuid, identity).await?;
        if found.is_empty() && identity == Identity::Bios {
            return self.find_all_by_uuid(uuid.swapped(), identity).await;
        }
        Ok(found)
    }

    async fn find_all_by_uuid(&self, uuid: Uuid, identity: Identity) -> Result<Vec<Ref>> {
        let index = self.core().soap_session().await?.content.search_index.clone();
        let arguments = format!(
            "{}<vmSearch>true</vmSearch><instanceUuid>{}</instanceUuid>",
            element("uuid", &uuid.to_string()),
            identity == Identity::Instance
        );
        let mut found = self.core().soap(&Method::repeatable("FindAllByUuid", &index, arguments), returned_references).await?;
        found.sort_unstable();
        Ok(found)
    }

    /// Picks the wanted ones out of as many virtual machines as fit into that many pages, by the UUID they really have.
    ///
    /// Of a read that is not whole only what is unique is told: any other may have a twin in the part that was not read.
    async fn read_uuids(&self, wanted: &[Uuid], identity: Identity, pages: usize) -> Result<HashMap<Uuid, Vec<Ref>>> {
        let root = self.core().soap_session().await?.content.root_folder.clone();
        let arguments = all_vms(&root, &[identity.property()]);
        let spelled = |uuid: &Uuid| [*uuid, if identity == Identity::Bios { uuid.swapped() } else { *uuid }];
        let wanted: HashSet<Uuid> = wanted.iter().flat_map(spelled).collect();
        let mut known: HashMap<Uuid, Vec<Ref>> = HashMap::new();
        let (mut left, mut told) = (pages, true);
        let end = self
            .core()
            .retrieve(&arguments, |objects, begins| {
                if begins {
                    known.clear();
                    (left, told) = (pages, true);
                }
                for mut object in objects {
                    match object.text(identity.property()).map(|text| text.parse::<Uuid>()) {
                        Some(Ok(uuid)) if wanted.contains(&uuid) => known.entry(uuid).or_default().push(object.reference),
                        Some(Ok(_)) => {}
                        // Nobody knows whose UUID this one has.
                        _ => told = false,
                    }
                }
                left = left.saturating_sub(1);
                left > 0
            })
            .await?;
        if !(end && told) && identity == Identity::Bios {
            return Ok(HashMap::new());
        }
        known.values_mut().for_each(|found| {
            found.sort_unstable();
            found.dedup();
        });
        Ok(known)
    }
}
