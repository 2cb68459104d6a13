//! From the objects of a page to typed structs.

use crate::{
    error::Fault,
    inventory::{
        Cluster, Datacenter, Datastore, Folder, Host, Inventory, Network, Node, ResourcePool, Unreadable, Vm, Want, is_folder,
        paths::{Paths, decoded},
    },
    reference::{Kind, Ref},
    soap::properties::{Object, Value},
};

pub(super) struct Builder {
    root: Ref,
    want: Want,
    found: Inventory,
    listed: Vec<Listed>,
}

/// A virtual machine that a folder says it holds.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Listed {
    pub(super) vm: Ref,
    pub(super) folder: Ref,
}

impl Builder {
    pub(super) fn new(root: Ref, want: Want) -> Self {
        Self { root, want, found: Inventory::default(), listed: Vec::new() }
    }

    /// Forgets everything, for a read that begins anew.
    pub(super) fn clear(&mut self) {
        self.found = Inventory::default();
        self.listed.clear();
    }

    /// The virtual machines in the folders that were added, in the order of their references, each once: one that is moved
    /// while the folders are read may be in two of them.
    pub(super) fn take_listed(&mut self) -> Vec<Listed> {
        let mut listed = std::mem::take(&mut self.listed);
        listed.sort_unstable();
        listed.dedup_by(|one, other| one.vm == other.vm);
        listed
    }

    pub(super) fn add(&mut self, mut object: Object) {
        let found = &mut self.found;
        for (property, fault) in object.missing.drain(..) {
            // Some servers list properties they do not have here instead of refusing the call.
            if !matches!(fault, Fault::InvalidArgument { .. }) {
                found.unreadable.push(Unreadable { object: object.reference.clone(), property, fault });
            }
        }
        let object = &mut object;
        match &object.reference.kind {
            kind if is_folder(kind) => {
                let folder = folder(object);
                let vms = object.objects("childEntity").into_iter().filter(|child| child.kind == Kind::VirtualMachine);
                self.listed.extend(vms.map(|vm| Listed { vm, folder: folder.node.reference.clone() }));
                found.folders.push(folder);
            }
            Kind::Datacenter => found.datacenters.push(Datacenter { node: node(object), vm_folder: object.object("vmFolder") }),
            Kind::ComputeResource | Kind::ClusterComputeResource => found.clusters.push(cluster(object)),
            Kind::HostSystem => found.hosts.push(host(object)),
            Kind::ResourcePool | Kind::VirtualApp => {
                found.resource_pools.push(ResourcePool { node: node(object), owner: object.object("owner") });
            }
            Kind::Datastore => found.datastores.push(datastore(object)),
            Kind::VirtualMachine => {
                let vm = vm(object);
                match (vm.template == Some(true), self.want) {
                    (true, _) => found.templates.push(vm),
                    (false, Want::Vms) => found.vms.push(vm),
                    (false, _) => {}
                }
            }
            // All that is left of what was asked for are networks of one kind or another.
            _ => found.networks.push(Network { node: node(object), accessible: object.flag("summary.accessible") }),
        }
    }

    /// Gives everything its path and an order.
    pub(super) fn finish(mut self) -> Inventory {
        let paths = Paths::of(&self.root, &self.found);
        let Inventory { folders, datacenters, clusters, hosts, resource_pools, datastores, networks, templates, vms, unreadable: _ } =
            &mut self.found;
        paths.give(folders);
        paths.give(datacenters);
        paths.give(clusters);
        paths.give(hosts);
        paths.give(resource_pools);
        paths.give(datastores);
        paths.give(networks);
        paths.give(templates);
        paths.give(vms);
        self.found
    }
}

fn node(object: &mut Object) -> Node {
    Node {
        reference: object.reference.clone(),
        name: object.text("name").map(|name| decoded(&name)).unwrap_or_default(),
        parent: object.object("parent"),
        path: String::new(),
    }
}

fn folder(object: &mut Object) -> Folder {
    let child_types = match object.take("childType") {
        Some(Value::Texts(types)) => types,
        _ => Vec::new(),
    };
    Folder { node: node(object), child_types }
}

fn cluster(object: &mut Object) -> Cluster {
    Cluster {
        node: node(object),
        resource_pool: object.object("resourcePool"),
        hosts: object.number("summary.numHosts").unwrap_or(0),
        effective_hosts: object.number("summary.numEffectiveHosts").unwrap_or(0),
        cpu_mhz: object.number("summary.effectiveCpu").unwrap_or(0),
        memory_mib: object.number("summary.effectiveMemory").unwrap_or(0),
    }
}

fn host(object: &mut Object) -> Host {
    Host {
        node: node(object),
        version: object.text("summary.config.product.version").unwrap_or_default(),
        build: object.text("summary.config.product.build").unwrap_or_default(),
        connected: object.text("runtime.connectionState").map(|state| state == "connected"),
        maintenance: object.flag("runtime.inMaintenanceMode"),
        cpu_cores: object.number("summary.hardware.numCpuCores").unwrap_or(0),
        memory_mib: object.number::<u64>("summary.hardware.memorySize").unwrap_or(0) >> 20,
        memory_used_mib: object.number("summary.quickStats.overallMemoryUsage").unwrap_or(0),
        networks: object.objects("network"),
        datastores: object.objects("datastore"),
    }
}

fn datastore(object: &mut Object) -> Datastore {
    Datastore {
        node: node(object),
        kind: object.text("summary.type").unwrap_or_default(),
        capacity: object.number("summary.capacity").unwrap_or(0),
        free: object.number("summary.freeSpace").unwrap_or(0),
        accessible: object.flag("summary.accessible"),
        maintenance: object.text("summary.maintenanceMode").unwrap_or_default(),
        url: object.text("summary.url").unwrap_or_default(),
    }
}

fn vm(object: &mut Object) -> Vm {
    Vm {
        node: node(object),
        uuid: object.text("config.uuid").unwrap_or_default(),
        instance_uuid: object.text("config.instanceUuid").unwrap_or_default(),
        template: object.flag("config.template"),
        powered_on: object.text("runtime.powerState").map(|state| state == "poweredOn"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(kind: &str, id: &str, name: &str, parent: Option<(&str, &str)>) -> Object {
        let mut properties = vec![("name".to_owned(), Value::Text(name.to_owned()))];
        properties.extend(parent.map(|(kind, id)| ("parent".to_owned(), Value::Ref(Ref::new(kind, id)))));
        Object { reference: Ref::new(kind, id), properties, missing: Vec::new() }
    }

    #[test]
    fn a_datacenter_in_folders_of_folders_keeps_its_whole_path() {
        let mut builder = Builder::new(Ref::new("Folder", "group-d1"), Want::Infrastructure);
        // Children before parents: the server promises no order.
        builder.add(object("ClusterComputeResource", "domain-c9", "c%2f1", Some(("Folder", "group-h5"))));
        builder.add(object("Folder", "group-h5", "host", Some(("Datacenter", "datacenter-4"))));
        builder.add(object("Datacenter", "datacenter-4", "dc", Some(("Folder", "group-d3"))));
        builder.add(object("Folder", "group-d3", "inner", Some(("Folder", "group-d2"))));
        builder.add(object("Folder", "group-d2", "outer", Some(("Folder", "group-d1"))));
        builder.add(object("Folder", "group-d1", "Datacenters", None));
        let found = builder.finish();
        assert_eq!(found.clusters[0].node.path, "/outer/inner/dc/host/c%2f1");
        assert_eq!(found.clusters[0].node.name, "c/1");
        assert_eq!(
            found.folders.iter().map(|folder| folder.node.path.as_str()).collect::<Vec<_>>(),
            ["/", "/outer", "/outer/inner", "/outer/inner/dc/host"]
        );
    }

    #[test]
    fn what_vcenter_does_not_tell_is_not_taken_for_a_yes_or_a_no() {
        let mut builder = Builder::new(Ref::new("Folder", "group-d1"), Want::Vms);
        for kind in ["HostSystem", "Datastore", "Network", "VirtualMachine"] {
            builder.add(object(kind, "x-1", "x", None));
        }
        let found = builder.finish();
        assert_eq!((found.hosts[0].connected, found.hosts[0].maintenance), (None, None));
        assert_eq!((found.datastores[0].accessible, found.networks[0].accessible), (None, None));
        assert_eq!((found.vms[0].template, found.vms[0].powered_on), (None, None));
        assert_eq!((found.datastores[0].free, found.hosts[0].cpu_cores), (0, 0), "no room is promised where none is told");
    }

    #[test]
    fn a_machine_that_two_folders_say_they_hold_is_listed_once() {
        let mut builder = Builder::new(Ref::new("Folder", "group-d1"), Want::Vms);
        for (id, children) in [("group-v2", ["vm-9", "vm-10"]), ("group-v1", ["vm-10", "vm-8"])] {
            let mut folder = object("Folder", id, id, None);
            let children = children.iter().map(|id| Ref::new("VirtualMachine", id)).chain([Ref::new("Folder", "group-v7")]).collect();
            folder.properties.push(("childEntity".to_owned(), Value::Refs(children)));
            builder.add(folder);
        }
        let listed = builder.take_listed();
        let vms: Vec<&str> = listed.iter().map(|one| &*one.vm.id).collect();
        assert_eq!(vms, ["vm-10", "vm-8", "vm-9"]);
    }

    #[test]
    fn a_tree_that_loops_ends() {
        let mut builder = Builder::new(Ref::new("Folder", "group-d1"), Want::Infrastructure);
        builder.add(object("Folder", "a", "a", Some(("Folder", "b"))));
        builder.add(object("Folder", "b", "b", Some(("Folder", "a"))));
        assert_eq!(builder.finish().folders.len(), 2);
    }

    #[test]
    fn what_may_not_be_read_is_told_and_what_does_not_exist_is_not() {
        let mut builder = Builder::new(Ref::new("Folder", "group-d1"), Want::Infrastructure);
        let mut host = object("HostSystem", "host-1", "esx", None);
        let denied = Fault::NoPermission { privilege: "System.Read".into(), object: None };
        host.missing = vec![("network".into(), denied.clone()), ("nosuch".into(), Fault::InvalidArgument { property: "nosuch".into() })];
        builder.add(host);
        let found = builder.finish();
        let gap = Unreadable { object: Ref::new("HostSystem", "host-1"), property: "network".into(), fault: denied };
        assert_eq!((found.hosts.len(), found.unreadable), (1, vec![gap]));
    }
}
