//! A vCenter that let the detector in, and what is in it.

use vsphere::{Client as Session, Datastore, Inventory, Node, Want};

use super::super::View;
use super::AGENT;

pub struct Vcenter {
    pub server: String,
    pub session: Session,
    pub inventory: Inventory,
}

impl Vcenter {
    pub async fn connect(view: &View, server: &str, port: u16) -> Result<Vcenter, String> {
        let session = view.session(server, port, AGENT)?;
        let inventory = session.inventory(Want::Folders).await.map_err(|error| format!("failed to connect to {server}: {error}"))?;
        Ok(Vcenter { server: server.to_owned(), session, inventory })
    }

    pub fn of<'a>(vcenters: &'a [Vcenter], server: &str) -> Option<&'a Vcenter> {
        vcenters.iter().find(|vcenter| vcenter.server == server)
    }

    pub fn datacenter(&self, name: &str) -> Result<&Node, String> {
        let known = || self.inventory.datacenters.iter().map(|datacenter| &datacenter.node);
        known().find(|node| node.name == name || node.path == name).ok_or_else(|| {
            let names: Vec<&str> = known().map(|node| node.name.as_str()).collect();
            format!("failed to access datacenter {name}: datacenter '{name}' not found.  Known datacenters: [{}]", names.join(" "))
        })
    }

    /// Those of a datacenter.
    pub fn datastores(&self, datacenter: &str) -> Result<impl Iterator<Item = &Datastore>, String> {
        let inside = format!("{}/", self.datacenter(datacenter)?.path);
        Ok(self.inventory.datastores.iter().filter(move |datastore| datastore.node.path.starts_with(&inside)))
    }

    /// A datastore of a datacenter: some name it, others give its path.
    pub fn datastore(&self, datacenter: &str, wanted: &str) -> Result<Option<&Datastore>, String> {
        Ok(self.datastores(datacenter)?.find(|datastore| datastore.node.name == wanted || datastore.node.path == wanted))
    }
}
