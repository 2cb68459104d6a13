//! Which privileges OpenShift and this migration need on which objects of a target, and this migration on those of a source.

use std::collections::BTreeMap;

use vmi_crds::spec::FailureDomain;
use vsphere::{Inventory, Ref};

const ROOT: &[&str] = &[
    "Cns.Searchable",
    "InventoryService.Tagging.AttachTag",
    "InventoryService.Tagging.CreateCategory",
    "InventoryService.Tagging.CreateTag",
    "InventoryService.Tagging.DeleteCategory",
    "InventoryService.Tagging.DeleteTag",
    "InventoryService.Tagging.EditCategory",
    "InventoryService.Tagging.EditTag",
    "Sessions.ValidateSession",
    "StorageProfile.Update",
    "StorageProfile.View",
];
/// To make and attach tags, and to take them away again.
const TAGGING: &[&str] = &[
    "InventoryService.Tagging.AttachTag",
    "InventoryService.Tagging.CreateCategory",
    "InventoryService.Tagging.CreateTag",
    "InventoryService.Tagging.DeleteCategory",
    "InventoryService.Tagging.DeleteTag",
];
/// On whatever carries a tag.
const TAGGED: &[&str] = &["InventoryService.Tagging.ObjectAttachable", "System.Read"];
const POOL: &[&str] = &["Resource.AssignVMToPool", "VApp.AssignResourcePool", "VApp.Import", "VirtualMachine.Config.AddNewDisk"];
const DATASTORE: &[&str] =
    &["Datastore.AllocateSpace", "Datastore.Browse", "Datastore.FileManagement", "InventoryService.Tagging.ObjectAttachable"];
const NETWORK: &[&str] = &["Network.Assign"];
const FOLDER: &[&str] = &[
    "Resource.AssignVMToPool",
    "VApp.Import",
    "VirtualMachine.Config.AddExistingDisk",
    "VirtualMachine.Config.AddNewDisk",
    "VirtualMachine.Config.AddRemoveDevice",
    "VirtualMachine.Config.AdvancedConfig",
    "VirtualMachine.Config.Annotation",
    "VirtualMachine.Config.CPUCount",
    "VirtualMachine.Config.DiskExtend",
    "VirtualMachine.Config.DiskLease",
    "VirtualMachine.Config.EditDevice",
    "VirtualMachine.Config.Memory",
    "VirtualMachine.Config.RemoveDisk",
    "VirtualMachine.Config.Rename",
    "VirtualMachine.Config.ResetGuestInfo",
    "VirtualMachine.Config.Resource",
    "VirtualMachine.Config.Settings",
    "VirtualMachine.Config.UpgradeVirtualHardware",
    "VirtualMachine.Interact.GuestControl",
    "VirtualMachine.Interact.PowerOff",
    "VirtualMachine.Interact.PowerOn",
    "VirtualMachine.Interact.Reset",
    "VirtualMachine.Inventory.Create",
    "VirtualMachine.Inventory.CreateFromExisting",
    "VirtualMachine.Inventory.Delete",
    "VirtualMachine.Provisioning.Clone",
    "VirtualMachine.Provisioning.DeployTemplate",
    "VirtualMachine.Provisioning.MarkAsTemplate",
    "InventoryService.Tagging.ObjectAttachable",
];
/// To make the folder, and to take it away again.
const PARENT: &[&str] = &["Folder.Create", "Folder.Delete"];

/// What to ask for, by object.
type Wanted = BTreeMap<Ref, Vec<&'static str>>;

fn want(wanted: &mut Wanted, reference: &Ref, privileges: &[&'static str]) {
    let known = wanted.entry(reference.clone()).or_default();
    let new: Vec<&str> = privileges.iter().copied().filter(|privilege| !known.contains(privilege)).collect();
    known.extend(new);
}

/// What to ask for in a source: step 5 writes there too. As far as the objects exist; what does not is told by that step's plan.
pub fn of_a_source(root: Ref, inventory: &Inventory, domains: &[FailureDomain]) -> Vec<(Ref, Vec<&'static str>)> {
    let mut wanted = Wanted::from([(root, TAGGING.to_vec())]);
    for domain in domains {
        let datacenter = inventory.datacenters.iter().map(|one| &one.node).find(|node| is(node, &domain.topology.datacenter));
        let cluster = inventory.by_path(&domain.topology.compute_cluster);
        datacenter.into_iter().chain(cluster).for_each(|node| want(&mut wanted, &node.reference, TAGGED));
    }
    wanted.into_iter().collect()
}

/// What to ask for in a target: each object once, as far as it exists. What does not is told by other checks.
pub fn wanted(root: Ref, inventory: &Inventory, domains: &[&FailureDomain], infrastructure_id: &str) -> Vec<(Ref, Vec<&'static str>)> {
    let mut wanted = Wanted::from([(root, ROOT.to_vec())]);
    let mut want = |reference: &Ref, privileges: &[&'static str]| want(&mut wanted, reference, privileges);
    for domain in domains {
        let topology = &domain.topology;
        let by_path = |path: &str| inventory.by_path(path).map(|node| &node.reference);
        let pool = topology.resource_pool.as_deref().unwrap_or(&topology.compute_cluster);
        let cluster = by_path(&topology.compute_cluster);
        for (object, privileges) in [(by_path(pool), POOL), (cluster, TAGGED), (by_path(&topology.datastore), DATASTORE)] {
            object.into_iter().for_each(|object| want(object, privileges));
        }
        let Some(datacenter) = inventory.datacenters.iter().find(|one| is(&one.node, &topology.datacenter)) else { continue };
        want(&datacenter.node.reference, TAGGED);
        let inside = format!("{}/network/", datacenter.node.path);
        let here = inventory.networks.iter().filter(|network| network.node.path.starts_with(&inside));
        here.filter(|network| topology.networks.contains(&network.node.name)).for_each(|network| want(&network.node.reference, NETWORK));
        let folder = topology.folder.clone().unwrap_or_else(|| format!("{}/vm/{infrastructure_id}", datacenter.node.path));
        let there = nearest(inventory, &folder);
        let parent = folder.trim_end_matches('/').rsplit_once('/').and_then(|(parent, _)| nearest(inventory, parent));
        there.into_iter().for_each(|folder| want(folder, FOLDER));
        parent.into_iter().for_each(|folder| want(folder, PARENT));
    }
    wanted.into_iter().collect()
}

fn is(node: &vsphere::Node, wanted: &str) -> bool {
    node.name == wanted || node.path.trim_start_matches('/') == wanted.trim_matches('/')
}

/// The folder, or the one above it in which it will be made.
fn nearest<'a>(inventory: &'a Inventory, path: &str) -> Option<&'a Ref> {
    let mut path = path.trim_end_matches('/');
    loop {
        if let Some(folder) = inventory.folders.iter().find(|folder| folder.node.path == path) {
            return Some(&folder.node.reference);
        }
        path = path.rsplit_once('/').map(|(parent, _)| parent).filter(|parent| !parent.is_empty())?;
    }
}
