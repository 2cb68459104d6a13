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
}

impl Builder {
    pub(super) fn new(root: Ref, want: Want) -> Self {
        Self { root, want, found: Inventory::default() }
    }

    /// Forgets everything, for a read that begins anew.
    pub(super) fn clear(&mut self) {
        self.found = Inventory::default();
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
            kind if is_folder(kind) => found.folders.push(folder(object)),
            Kind::Datacenter => found.datacenters.push(Datacenter { node: node(object), vm_folder: object.object("vmFolder") }),
            Kind::ComputeResource | Kind::ClusterComputeResource => found.clusters.push(cluster(object)),
            Kind::HostSystem => found.hosts.push(host(object)),
            Kind::ResourcePool | Kind::VirtualApp => {
                found.resource_pools.push(ResourcePool { node: node(object), owner: object.object("owner") });
            }
            Kind::Datastore => found.datastores.push(datastore(object)),
            Kind::VirtualMachine => {
                let vm = vm(object);
                match (vm.template, self.want) {
                    (true, _) => found.templates.push(vm),
                    (false, Want::Vms) => found.vms.push(vm),
                    (false, _) => {}
                }
            }
            // All that is left of what was asked for are networks of one kind or another.
            _ => found.networks.push(Network { node: node(object), accessible: object.flag("summary.accessible").unwrap_or(true) }),
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
        connected: object.text("runtime.connectionState").is_some_and(|state| state == "connected"),
        maintenance: object.flag("runtime.inMaintenanceMode").unwrap_or(false),
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
        accessible: object.flag("summary.accessible").unwrap_or(false),
        maintenance: object.text("summary.maintenanceMode").unwrap_or_default(),
        url: object.text("summary.url").unwrap_or_default(),
    }
}

fn vm(object: &mut Object) -> Vm {
    Vm {
        node: node(object),
        uuid: object.text("config.uuid").unwrap_or_default(),
        instance_uuid: object.text("config.instanceUuid").unwrap_or_default(),
        template: object.flag("config.template").unwrap_or(false),
        powered_on: object.text("runtime.powerState").is_some_and(|state| state == "poweredOn"),
    }
}
