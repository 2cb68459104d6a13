//! What the server is asked for: which properties, and how to walk the tree.

use crate::{
    inventory::Want,
    reference::Ref,
    soap::{
        properties::{Wanted, objects, specification},
        reference,
    },
};

/// Every name here must exist on the oldest supported server: a real vCenter refuses the whole call for one it does not know.
const WANTED: &[Wanted<'_>] = &[
    ("Datacenter", &["name", "parent", "vmFolder"]),
    (
        "ComputeResource",
        &[
            "name",
            "parent",
            "resourcePool",
            "summary.numHosts",
            "summary.numEffectiveHosts",
            "summary.effectiveCpu",
            "summary.effectiveMemory",
        ],
    ),
    ("ResourcePool", &["name", "parent", "owner"]),
    (
        "HostSystem",
        &[
            "name",
            "parent",
            "summary.config.product.version",
            "summary.config.product.build",
            "runtime.connectionState",
            "runtime.inMaintenanceMode",
            "summary.hardware.numCpuCores",
            "summary.hardware.memorySize",
            "summary.quickStats.overallMemoryUsage",
            "network",
            "datastore",
        ],
    ),
    (
        "Datastore",
        &[
            "name",
            "parent",
            "summary.type",
            "summary.capacity",
            "summary.freeSpace",
            "summary.accessible",
            "summary.maintenanceMode",
            "summary.url",
        ],
    ),
    ("Network", &["name", "parent", "summary.accessible"]),
];

const FOLDERS: Wanted<'_> = ("Folder", &["name", "parent", "childType"]);
/// Who lies in a folder is asked of the folder: one list is less than the `parent` of each virtual machine.
const FOLDERS_AND_CHILDREN: Wanted<'_> = ("Folder", &["name", "parent", "childType", "childEntity"]);

const VM: Wanted<'_> = ("VirtualMachine", &["name", "config.uuid", "config.instanceUuid", "config.template", "runtime.powerState"]);

/// A named step through the tree, and the steps that may follow it.
type Step<'a> = (&'a str, &'a str, &'a str, &'a [&'a str]);

/// Folders that cannot hold virtual machines are walked by `folder`, the others by `vmFolder`, so that the latter can be left out.
const FOLDER: Step<'_> = (
    "folder",
    "Folder",
    "childEntity",
    &["folder", "datacenterVm", "datacenterHost", "datacenterDatastore", "datacenterNetwork", "clusterHost", "clusterPool"],
);
const STEPS: &[Step<'_>] = &[
    FOLDER,
    ("datacenterHost", "Datacenter", "hostFolder", &["folder"]),
    ("datacenterDatastore", "Datacenter", "datastoreFolder", &["folder"]),
    ("datacenterNetwork", "Datacenter", "networkFolder", &["folder"]),
    ("clusterHost", "ComputeResource", "host", &[]),
    ("clusterPool", "ComputeResource", "resourcePool", &["pool"]),
    ("pool", "ResourcePool", "resourcePool", &["pool"]),
];
const VM_FOLDER: Step<'_> = ("vmFolder", "Folder", "childEntity", &["vmFolder"]);

fn step(out: &mut String, (name, kind, path, next): Step<'_>) {
    out.push_str(&format!(
        r#"<selectSet xsi:type="TraversalSpec"><name>{name}</name><type>{kind}</type><path>{path}</path><skip>false</skip>"#
    ));
    next.iter().for_each(|name| out.push_str(&format!("<selectSet><name>{name}</name></selectSet>")));
    out.push_str("</selectSet>");
}

/// The specification of the read of everything but virtual machines; from [`Want::Templates`] on folders tell whom they hold.
pub(super) fn everything(root: &Ref, want: Want) -> String {
    let mut wanted = vec![if want >= Want::Templates { FOLDERS_AND_CHILDREN } else { FOLDERS }];
    wanted.extend_from_slice(WANTED);
    let mut walk = format!("<objectSet>{}<skip>false</skip>", reference("obj", root));
    STEPS.iter().for_each(|each| step(&mut walk, *each));
    // The folder `vm` itself is always there, for folders are made in it; what it holds only on demand.
    let into_vm: &[&str] = if want > Want::Infrastructure { &["vmFolder"] } else { &[] };
    step(&mut walk, ("datacenterVm", "Datacenter", "vmFolder", into_vm));
    if want > Want::Infrastructure {
        step(&mut walk, VM_FOLDER);
    }
    walk.push_str("</objectSet>");
    specification(&wanted, &walk)
}

/// Asks for these virtual machines, but not for what they lie in.
pub(super) fn these_vms<'a>(vms: impl IntoIterator<Item = &'a Ref>) -> String {
    specification(&[VM], &objects(vms))
}

/// Asks for every virtual machine with these properties and for nothing else; also for those in vApps, which lie in no folder.
///
/// From a virtual machine no step leads on. It has a `resourcePool` too, and a server that does not look at the type of a step
/// would go from each machine to its pool and to all machines there: seconds where there are a thousand.
pub(crate) fn all_vms(root: &Ref, properties: &[&str]) -> String {
    let mut walk = format!("<objectSet>{}<skip>true</skip>", reference("obj", root));
    step(&mut walk, ("folder", "Folder", "childEntity", &["folder", "datacenterVm", "datacenterHost", "clusterPool"]));
    step(&mut walk, ("datacenterVm", "Datacenter", "vmFolder", &["vmFolder"]));
    step(&mut walk, VM_FOLDER);
    step(&mut walk, ("datacenterHost", "Datacenter", "hostFolder", &["folder"]));
    step(&mut walk, ("clusterPool", "ComputeResource", "resourcePool", &["pool", "vApp"]));
    step(&mut walk, ("pool", "ResourcePool", "resourcePool", &["pool", "vApp"]));
    step(&mut walk, ("vApp", "VirtualApp", "vm", &[]));
    walk.push_str("</objectSet>");
    specification(&[("VirtualMachine", properties)], &walk)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_that_is_named_is_defined() {
        let root = Ref::new("Folder", "group-d1");
        for want in [Want::Infrastructure, Want::Folders, Want::Templates, Want::Vms] {
            let text = everything(&root, want);
            for name in text.split("<selectSet><name>").skip(1).map(|rest| rest.split('<').next().unwrap()) {
                assert!(text.contains(&format!(r#"<selectSet xsi:type="TraversalSpec"><name>{name}</name>"#)), "{want:?}: {name}");
            }
        }
    }

    #[test]
    fn no_read_goes_on_from_a_virtual_machine() {
        let root = Ref::new("Folder", "group-d1");
        for text in [all_vms(&root, &["config.uuid"]), everything(&root, Want::Vms)] {
            let steps = text.split(r#"<selectSet xsi:type="TraversalSpec"><name>"#).skip(1);
            // Steps that end at virtual machines, whatever the server makes of their types.
            for step in steps.filter(|step| step.starts_with("vmFolder<") || step.contains("<path>vm</path>")) {
                let next: Vec<&str> = step.split("<selectSet><name>").skip(1).filter_map(|rest| rest.split('<').next()).collect();
                assert!(next.iter().all(|name| *name == "vmFolder"), "{step}");
            }
        }
    }

    #[test]
    fn virtual_machines_are_not_touched_unless_wanted() {
        let root = Ref::new("Folder", "group-d1");
        let asked = |want| everything(&root, want);
        assert!(!asked(Want::Infrastructure).contains("<name>vmFolder</name>"));
        for want in [Want::Infrastructure, Want::Folders] {
            assert!(!asked(want).contains("<pathSet>childEntity</pathSet>"), "{want:?}");
        }
        for want in [Want::Templates, Want::Vms] {
            assert!(asked(want).contains("<pathSet>childEntity</pathSet>"), "{want:?}");
            assert!(!asked(want).contains("VirtualMachine"), "{want:?}: they are read by themselves");
        }
    }
}
