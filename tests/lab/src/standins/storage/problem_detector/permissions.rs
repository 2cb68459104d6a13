//! The privileges that the account needs, by what it needs them on.

use serde_json::Value;
use vsphere::Ref;

use super::super::View;
use super::vcenter::Vcenter;

const VCENTER: &[&str] = &[
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
const DATACENTER: &[&str] = &["System.Read"];
pub const DATASTORE: &[&str] =
    &["Datastore.AllocateSpace", "Datastore.Browse", "Datastore.FileManagement", "InventoryService.Tagging.ObjectAttachable"];
/// Of compute clusters and of resource pools.
pub const CLUSTER: &[&str] = &["Resource.AssignVMToPool", "VApp.AssignResourcePool", "VApp.Import", "VirtualMachine.Config.AddNewDisk"];
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
    "VirtualMachine.Provisioning.MarkAsTemplate",
    "VirtualMachine.Provisioning.DeployTemplate",
];

/// What the account lacks of these on an object that is called so.
pub async fn lacking(vcenter: &Vcenter, object: &Ref, wanted: &[&str], name: &str) -> Option<String> {
    let lacking = match vcenter.session.missing_privileges(&[(object.clone(), wanted.to_vec())]).await {
        Ok(missing) => missing.first()?.privileges.join(", "),
        Err(error) => format!("unable to retrieve privileges: {error}"),
    };
    Some(format!("missing privileges for {name}: {lacking}"))
}

/// CheckAccountPermissions.
pub async fn account(view: &View, vcenters: &[Vcenter]) -> Vec<String> {
    let mut wrong = Vec::new();
    for domain in view.vsphere("failureDomains") {
        match of_domain(domain, vcenters).await {
            Ok(lacking) => wrong.extend(lacking),
            // Like the real one it looks no further, and forgets what it has found.
            Err(why) => return vec![why],
        }
    }
    wrong
}

async fn of_domain(domain: &Value, vcenters: &[Vcenter]) -> Result<Vec<String>, String> {
    let topology = |key: &str| domain["topology"][key].as_str().unwrap_or_default();
    let server = domain["server"].as_str().unwrap_or_default();
    let vcenter = Vcenter::of(vcenters, server).ok_or_else(|| format!("unable to check permissions.  vCenter {server} not found"))?;
    let (datacenter, datastore, folder) = (topology("datacenter"), topology("datastore"), topology("folder"));
    let mut wrong = Vec::new();
    let mut wanted = Vec::new();
    match vcenter.datastore(datacenter, datastore)? {
        Some(found) => wanted.push((found.node.reference.clone(), DATASTORE, format!("datastore {datastore}"))),
        None => wrong.push(format!("cannot find datastore {datastore} in datacenter {datacenter}")),
    }
    wanted.push((vcenter.datacenter(datacenter)?.reference.clone(), DATACENTER, format!("datacenter {datacenter}")));
    wanted.push((vcenter.session.root_folder().await.map_err(|error| error.to_string())?, VCENTER, "vcenter".to_owned()));
    if !folder.is_empty() {
        match vcenter.inventory.by_path(folder) {
            Some(found) => wanted.push((found.reference.clone(), FOLDER, "folder".to_owned())),
            None => wrong.push(format!("specified folder not found: folder '{folder}' not found")),
        }
    }
    for (object, privileges, name) in wanted {
        wrong.extend(lacking(vcenter, &object, privileges, &name).await);
    }
    Ok(wrong)
}
