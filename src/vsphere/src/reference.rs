//! Managed object references: the names vCenter gives to the things it manages.

use std::fmt;

use serde::{Serialize, Serializer};

/// The type of a managed object, as far as this crate cares to tell them apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A cluster of hosts.
    ClusterComputeResource,
    /// A host that stands alone, with its resource pool.
    ComputeResource,
    /// A datacenter.
    Datacenter,
    /// A datastore.
    Datastore,
    /// A port group of a distributed switch.
    DistributedVirtualPortgroup,
    /// A folder of whatever things.
    Folder,
    /// An ESXi host.
    HostSystem,
    /// A network of single hosts' switches.
    Network,
    /// A network that NSX manages.
    OpaqueNetwork,
    /// A resource pool.
    ResourcePool,
    /// A datastore cluster.
    StoragePod,
    /// Something vCenter is doing.
    Task,
    /// A vApp.
    VirtualApp,
    /// A virtual machine or a template.
    VirtualMachine,
    /// Any other type, by its name.
    Other(Box<str>),
}

impl Kind {
    /// The name vSphere uses, in SOAP and in tag associations.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::ClusterComputeResource => "ClusterComputeResource",
            Self::ComputeResource => "ComputeResource",
            Self::Datacenter => "Datacenter",
            Self::Datastore => "Datastore",
            Self::DistributedVirtualPortgroup => "DistributedVirtualPortgroup",
            Self::Folder => "Folder",
            Self::HostSystem => "HostSystem",
            Self::Network => "Network",
            Self::OpaqueNetwork => "OpaqueNetwork",
            Self::ResourcePool => "ResourcePool",
            Self::StoragePod => "StoragePod",
            Self::Task => "Task",
            Self::VirtualApp => "VirtualApp",
            Self::VirtualMachine => "VirtualMachine",
            Self::Other(name) => name,
        }
    }
}

impl From<&str> for Kind {
    fn from(name: &str) -> Self {
        match name {
            "ClusterComputeResource" => Self::ClusterComputeResource,
            "ComputeResource" => Self::ComputeResource,
            "Datacenter" => Self::Datacenter,
            "Datastore" => Self::Datastore,
            "DistributedVirtualPortgroup" => Self::DistributedVirtualPortgroup,
            "Folder" => Self::Folder,
            "HostSystem" => Self::HostSystem,
            "Network" => Self::Network,
            "OpaqueNetwork" => Self::OpaqueNetwork,
            "ResourcePool" => Self::ResourcePool,
            "StoragePod" => Self::StoragePod,
            "Task" => Self::Task,
            "VirtualApp" => Self::VirtualApp,
            "VirtualMachine" => Self::VirtualMachine,
            other => Self::Other(other.into()),
        }
    }
}

/// A reference to one managed object of one vCenter.
///
/// It is unique within its vCenter only: two vCenters use the same ids for different things, so keep
/// the server's name beside it wherever both could meet.
///
/// ```
/// use vsphere::{Kind, Ref};
/// let folder: Ref = "Folder:group-v3".parse()?;
/// assert_eq!(folder.kind, Kind::Folder);
/// assert_eq!(folder.to_string(), "Folder:group-v3");
/// # Ok::<(), vsphere::NotAReference>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ref {
    /// What it is.
    pub kind: Kind,
    /// vCenter's id for it, such as `group-v3`.
    pub id: Box<str>,
}

impl Ref {
    /// A reference from its type's name and its id.
    #[must_use]
    pub fn new(kind: &str, id: &str) -> Self {
        Self { kind: kind.into(), id: id.into() }
    }
}

impl fmt::Display for Ref {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.kind.as_str(), self.id)
    }
}

impl Serialize for Ref {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The text does not read `Type:id`.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0:?} is not a managed object reference: write it as Type:id, for example Folder:group-v3")]
pub struct NotAReference(String);

impl std::str::FromStr for Ref {
    type Err = NotAReference;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once(':') {
            Some((kind, id)) if !kind.is_empty() && !id.is_empty() => Ok(Self::new(kind, id)),
            _ => Err(NotAReference(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_survives_being_written_and_read() {
        for text in ["VirtualMachine:vm-42", "VmwareDistributedVirtualSwitch:dvs-7", "Folder:group-d1"] {
            assert_eq!(text.parse::<Ref>().unwrap().to_string(), text);
        }
        assert!("group-d1".parse::<Ref>().unwrap_err().to_string().contains("Type:id"));
    }
}
