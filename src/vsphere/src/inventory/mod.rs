//! The inventory of a vCenter: the server walks the tree in one read, whatever its size, and the client reads pages. Virtual
//! machines are read by reference after that, several pages at a time.

mod build;
mod lookup;
mod paths;
mod reach;
mod request;
mod vms;

use std::pin::pin;

use futures::TryStreamExt;

use crate::{
    client::Client,
    error::{Fault, Result},
    reference::{Kind, Ref},
    retrieve::Size,
};

pub use lookup::only_one;
pub use paths::escape_name;
pub use reach::{Reach, Seen};
pub(crate) use request::all_vms;

/// How much of the inventory to read; each includes those before it.
///
/// ```
/// use vsphere::Want;
/// let need_templates = true;
/// let want = if need_templates { Want::Templates } else { Want::Infrastructure };
/// assert!(want >= Want::Folders, "templates come with the folders they lie in");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Want {
    /// Datacenters, clusters, hosts, resource pools, datastores, networks and their folders. The virtual machines are not
    /// even looked at, so fifty thousand of them cost nothing.
    Infrastructure,
    /// Also the folders for virtual machines.
    Folders,
    /// Also the templates. The server must read every virtual machine for that; only templates are kept.
    Templates,
    /// Also the virtual machines, but for those inside a vApp, which lie in no folder.
    Vms,
}

/// What all things in the inventory have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// vCenter's reference to it.
    pub reference: Ref,
    /// Its name as people write it.
    pub name: String,
    /// What it lies in; `None` for the root.
    pub parent: Option<Ref>,
    /// The full inventory path, such as `/dc/host/cluster`; `/`, `\` and `%` inside a name are escaped as `%2f`, `%5c` and `%25`.
    pub path: String,
}

/// A folder of whatever kind; datastore clusters are folders too.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Folder {
    /// Reference, name and path.
    pub node: Node,
    /// What it may hold, such as `VirtualMachine`.
    pub child_types: Vec<String>,
}

/// A datacenter.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Datacenter {
    /// Reference, name and path.
    pub node: Node,
    /// The hidden folder `vm`, parent of all folders for virtual machines.
    pub vm_folder: Option<Ref>,
}

/// A cluster, or a host that stands alone; see [`Node::reference`] for which. A number vCenter does not tell is 0.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Cluster {
    /// Reference, name and path.
    pub node: Node,
    /// Its root resource pool.
    pub resource_pool: Option<Ref>,
    /// Hosts in it.
    pub hosts: u32,
    /// Those of them that can run something now.
    pub effective_hosts: u32,
    /// CPU in MHz that can be used.
    pub cpu_mhz: u64,
    /// Memory in MiB that can be used.
    pub memory_mib: u64,
}

/// An ESXi host. A number vCenter does not tell, as of a host that is not connected, is 0.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Host {
    /// Reference, name and path.
    pub node: Node,
    /// ESXi's version, such as `8.0.2`.
    pub version: String,
    /// ESXi's build.
    pub build: String,
    /// Whether vCenter reaches it; `None` if vCenter does not tell.
    pub connected: Option<bool>,
    /// Whether it is in maintenance; `None` if vCenter does not tell.
    pub maintenance: Option<bool>,
    /// Cores.
    pub cpu_cores: u32,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// Memory in MiB used now.
    pub memory_used_mib: u64,
    /// The networks it can connect a virtual machine to.
    pub networks: Vec<Ref>,
    /// The datastores it has mounted.
    pub datastores: Vec<Ref>,
}

/// A datastore. A number vCenter does not tell, as of one that is not accessible, is 0: it is never taken for free space.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Datastore {
    /// Reference, name and path.
    pub node: Node,
    /// Such as `VMFS`, `NFS`, `vsan`.
    pub kind: String,
    /// Bytes in all.
    pub capacity: u64,
    /// Bytes free.
    pub free: u64,
    /// Whether any host reaches it; `None` if vCenter does not tell.
    pub accessible: Option<bool>,
    /// `normal`, or a state of maintenance.
    pub maintenance: String,
    /// Its URL; the same on two vCenters means the same storage.
    pub url: String,
}

/// A network or distributed port group.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Network {
    /// Reference, name and path.
    pub node: Node,
    /// Whether any host reaches it; `None` if vCenter does not tell.
    pub accessible: Option<bool>,
}

/// A resource pool or vApp.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ResourcePool {
    /// Reference, name and path.
    pub node: Node,
    /// The cluster it belongs to.
    pub owner: Option<Ref>,
}

/// A virtual machine or template.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Vm {
    /// Reference, name and path.
    pub node: Node,
    /// The BIOS UUID, which the guest sees; empty while vCenter cannot read the configuration.
    pub uuid: String,
    /// The UUID vCenter gives it.
    pub instance_uuid: String,
    /// Whether it is a template; `None` if vCenter does not tell. Then it is among the virtual machines.
    pub template: Option<bool>,
    /// Whether it is powered on; `None` if vCenter does not tell.
    pub powered_on: Option<bool>,
}

/// Something the user may not read, or the server could not.
#[derive(Debug, Clone, PartialEq)]
pub struct Unreadable {
    /// Of what.
    pub object: Ref,
    /// Which property.
    pub property: String,
    /// Why.
    pub fault: Fault,
}

/// What one read found. Everything is sorted by path.
///
/// ```
/// use vsphere::{Fault, Inventory, only_one};
///
/// fn free_gib(inventory: &Inventory, datastore: &str) -> Result<u64, Fault> {
///     Ok(only_one(&inventory.datastores, datastore)?.free >> 30)
/// }
///
/// let empty = Inventory::default();
/// assert_eq!(free_gib(&empty, "datastore-a"), Err(Fault::NotFound { object: None }));
/// assert!(empty.by_path("/dc-a/vm/templates").is_none());
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Inventory {
    /// Folders of all kinds, the root among them; those for virtual machines from [`Want::Folders`] on.
    pub folders: Vec<Folder>,
    /// Datacenters, also those inside folders.
    pub datacenters: Vec<Datacenter>,
    /// Clusters, and hosts that stand alone.
    pub clusters: Vec<Cluster>,
    /// ESXi hosts.
    pub hosts: Vec<Host>,
    /// Resource pools, the root ones of clusters among them, and vApps.
    pub resource_pools: Vec<ResourcePool>,
    /// Datastores, also those inside datastore clusters.
    pub datastores: Vec<Datastore>,
    /// Networks and distributed port groups.
    pub networks: Vec<Network>,
    /// Templates, from [`Want::Templates`] on.
    pub templates: Vec<Vm>,
    /// Virtual machines, with [`Want::Vms`].
    pub vms: Vec<Vm>,
    /// Gaps: a privilege `System.View` or `System.Read` that is missing shows here, not as an error.
    pub unreadable: Vec<Unreadable>,
}

impl Client {
    /// Reads the inventory: one request, and one more for every full page; from [`Want::Templates`] on also one for every page of
    /// virtual machines, as many at a time as [`crate::Settings::in_flight`] says. One that goes meanwhile is left out.
    ///
    /// # Errors
    /// As for every call.
    pub async fn inventory(&self, want: Want) -> Result<Inventory> {
        let core = self.core();
        let content = core.soap_session().await?.content.clone();
        let mut builder = build::Builder::new(content.root_folder.clone(), want);
        let specification = request::everything(&content.root_folder, want);
        let size = Size::default();
        core.retrieve_part(&size, &specification, |objects, begins| {
            if begins {
                builder.clear();
            }
            objects.into_iter().for_each(|object| builder.add(object));
            true
        })
        .await?;
        let listed = builder.take_listed();
        let mut pages = pin!(vms::pages(core, &listed, &size));
        while let Some(page) = pages.try_next().await? {
            page.into_iter().for_each(|object| builder.add(object));
        }
        Ok(builder.finish())
    }

    /// The folder in which everything lies.
    ///
    /// # Errors
    /// As for every call.
    pub async fn root_folder(&self) -> Result<Ref> {
        Ok(self.core().content().await?.root_folder.clone())
    }
}

/// Whether the kind is a folder of some sort.
fn is_folder(kind: &Kind) -> bool {
    matches!(kind, Kind::Folder | Kind::StoragePod)
}

macro_rules! is_a_node {
    ($($kind:ty),+) => {$(
        impl AsRef<Node> for $kind {
            fn as_ref(&self) -> &Node {
                &self.node
            }
        }

        impl AsMut<Node> for $kind {
            fn as_mut(&mut self) -> &mut Node {
                &mut self.node
            }
        }
    )+};
}
is_a_node!(Folder, Datacenter, Cluster, Host, Datastore, Network, ResourcePool, Vm);
