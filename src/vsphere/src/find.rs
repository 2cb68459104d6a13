//! Asking the server for single things: by path, and virtual machines by UUID.

use std::collections::HashMap;

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
    /// Few are asked for one by one, four at a time; many are picked out of a read of all.
    ///
    /// ```no_run
    /// # async fn find(client: vsphere::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use vsphere::Identity;
    /// let uuid = "564d1f2a-0b3c-4d5e-8f90-a1b2c3d4e5f6".parse()?;
    /// for vm in &client.find_vms(&[uuid], Identity::Bios).await?[0] {
    ///     println!("{vm}");
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As for every call.
    pub async fn find_vms(&self, uuids: &[Uuid], identity: Identity) -> Result<Vec<Vec<Ref>>> {
        let pages = uuids.len() / LOOKUPS_PER_PAGE;
        let (known, complete) = if pages == 0 { (HashMap::new(), false) } else { self.read_uuids(uuids, identity, pages).await? };
        stream::iter(uuids)
            .map(|uuid| {
                let found = known.get(uuid).filter(|found| !found.is_empty());
                async move {
                    match found {
                        Some(found) => Ok(found.clone()),
                        None if complete => Ok(Vec::new()),
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
        self.core().soap(&Method::repeatable("FindAllByUuid", &index, arguments), returned_references).await
    }

    /// Picks the wanted ones out of as many virtual machines as fit into that many pages; says whether these are all.
    async fn read_uuids(&self, wanted: &[Uuid], identity: Identity, pages: usize) -> Result<(HashMap<Uuid, Vec<Ref>>, bool)> {
        let root = self.core().soap_session().await?.content.root_folder.clone();
        let arguments = all_vms(&root, &[identity.property()]);
        let nothing: HashMap<Uuid, Vec<Ref>> = wanted.iter().map(|uuid| (*uuid, Vec::new())).collect();
        let (mut known, mut left, mut complete) = (nothing.clone(), pages, true);
        self.core()
            .retrieve(&arguments, |objects, begins| {
                if begins {
                    (known, left) = (nothing.clone(), pages);
                }
                for mut object in objects {
                    let Some(Ok(uuid)) = object.text(identity.property()).map(|text| text.parse::<Uuid>()) else { continue };
                    let spelling = if identity == Identity::Bios && !known.contains_key(&uuid) { uuid.swapped() } else { uuid };
                    if let Some(found) = known.get_mut(&spelling) {
                        found.push(object.reference);
                    }
                }
                left = left.saturating_sub(1);
                complete = left > 0;
                complete
            })
            .await?;
        Ok((known, complete))
    }
}
