//! Closer looks at single virtual machines and templates.

use crate::{
    client::Client,
    error::Result,
    reference::Ref,
    soap::properties::{Object, objects, specification},
};

/// More of a virtual machine than the inventory tells. Never its extra configuration: that holds secrets of the guest.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct VmDetails {
    /// The virtual machine.
    pub vm: Ref,
    /// Its name, as vCenter stores it.
    pub name: String,
    /// The folder it lies in.
    pub folder: Option<Ref>,
    /// The host it is on.
    pub host: Option<Ref>,
    /// The resource pool; templates have none.
    pub resource_pool: Option<Ref>,
    /// Where its files are.
    pub datastores: Vec<Ref>,
    /// What its network cards are connected to.
    pub networks: Vec<Ref>,
    /// The BIOS UUID.
    pub uuid: String,
    /// vCenter's UUID for it.
    pub instance_uuid: String,
    /// The version of the virtual hardware, such as `vmx-19`.
    pub hardware: String,
    /// Whether its disks show their UUIDs to the guest, `disk.enableUUID`; `None` if it was never set.
    pub disk_uuids: Option<bool>,
    /// Whether changed blocks are tracked; `None` if vCenter does not tell.
    pub change_tracking: Option<bool>,
    /// Whether it is a template; `None` if vCenter does not tell.
    pub template: Option<bool>,
    /// Whether it is powered on; `None` if vCenter does not tell.
    pub powered_on: Option<bool>,
    /// The guest's first address, while its tools run.
    pub address: Option<String>,
    /// The guest's own name, while its tools run.
    pub host_name: Option<String>,
}

const PROPERTIES: &[&str] = &[
    "name",
    "parent",
    "runtime.host",
    "resourcePool",
    "datastore",
    "network",
    "config.uuid",
    "config.instanceUuid",
    "config.version",
    "config.flags.diskUuidEnabled",
    "config.changeTrackingEnabled",
    "config.template",
    "runtime.powerState",
    "guest.ipAddress",
    "guest.hostName",
];

impl Client {
    /// Looks at these virtual machines in one call; those that are gone are left out.
    ///
    /// # Errors
    /// [`crate::Fault::NotFound`] if one of them never was.
    pub async fn vm_details(&self, vms: &[Ref]) -> Result<Vec<VmDetails>> {
        if vms.is_empty() {
            return Ok(Vec::new());
        }
        let arguments = specification(&[("VirtualMachine", PROPERTIES)], &objects(vms));
        let mut found = Vec::with_capacity(vms.len());
        self.core()
            .retrieve(&arguments, |objects, begins| {
                if begins {
                    found.clear();
                }
                found.extend(objects.into_iter().map(details));
                true
            })
            .await?;
        Ok(found)
    }
}

fn details(mut object: Object) -> VmDetails {
    VmDetails {
        name: object.text("name").unwrap_or_default(),
        folder: object.object("parent"),
        host: object.object("runtime.host"),
        resource_pool: object.object("resourcePool"),
        datastores: object.objects("datastore"),
        networks: object.objects("network"),
        uuid: object.text("config.uuid").unwrap_or_default(),
        instance_uuid: object.text("config.instanceUuid").unwrap_or_default(),
        hardware: object.text("config.version").unwrap_or_default(),
        disk_uuids: object.flag("config.flags.diskUuidEnabled"),
        change_tracking: object.flag("config.changeTrackingEnabled"),
        template: object.flag("config.template"),
        powered_on: object.text("runtime.powerState").map(|state| state == "poweredOn"),
        address: object.text("guest.ipAddress"),
        host_name: object.text("guest.hostName"),
        vm: object.reference,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_vcenter_does_not_tell_is_not_taken_for_a_no() {
        let silent = details(Object { reference: Ref::new("VirtualMachine", "vm-1"), properties: Vec::new(), missing: Vec::new() });
        assert_eq!((silent.template, silent.powered_on), (None, None));
        assert_eq!((silent.disk_uuids, silent.change_tracking), (None, None));
    }
}
