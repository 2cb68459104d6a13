//! The control plane before and after a move: its machine set and its machines are in another place, and otherwise as they were.

use serde_json::Value;

use super::sets::{forget_place, placeless, sorted};
use crate::kubernetes::{CONTROL_PLANE_MACHINE_SET, MACHINE};
use crate::migration::dump::{Dump, differences};
use crate::migration::verdict::none;
use crate::vcenter::Vcenter;

/// Whether the control plane machine set names these failure domains and not the source, and is otherwise as before. Where there was none,
/// the one that its operator makes waits, Inactive.
pub fn moved(before: &Dump, after: &Dump, source: &Vcenter, domains: &[String]) -> Result<(), String> {
    let (_, set) = after.of(CONTROL_PLANE_MACHINE_SET).next().ok_or("there is none")?;
    let template = template_of(set);
    let named = template["failureDomains"]["vsphere"].as_array().into_iter().flatten().filter_map(|domain| domain["name"].as_str());
    let mut found: Vec<&str> = named.collect();
    found.sort_unstable();
    if found != domains {
        return Err(format!("its failure domains are {}, wanted are {}", found.join(", "), domains.join(", ")));
    }
    if template.to_string().contains(&source.server) {
        return Err("its template names the source".to_owned());
    }
    match before.of(CONTROL_PLANE_MACHINE_SET).next() {
        Some((_, old)) => none(&differences("", &anywhere(old), &anywhere(set))),
        None if set["spec"]["state"] == "Inactive" => Ok(()),
        None => Err(format!("it was made by its operator and is {}, not Inactive", set["spec"]["state"])),
    }
}

fn template_of(set: &Value) -> &Value {
    &set["spec"]["template"]["machines_v1beta1_machine_openshift_io"]
}

/// The set without its place.
fn anywhere(set: &Value) -> Value {
    let mut set = set.clone();
    if let Some(template) = set.pointer_mut("/spec/template/machines_v1beta1_machine_openshift_io").and_then(Value::as_object_mut) {
        template.remove("failureDomains");
    }
    forget_place(&mut set["spec"]["template"]["machines_v1beta1_machine_openshift_io"]["spec"]["providerSpec"]["value"]);
    sorted(&set)
}

/// Whether the machines of the control plane are made as they were: as many, with the same labels, processors, memory and disks.
pub fn machines(before: &Dump, after: &Dump) -> Result<(), String> {
    let made = |dump: &Dump| {
        let mut all: Vec<String> =
            dump.of(MACHINE).filter(|(_, machine)| is_master(machine)).map(|(_, machine)| kind_of(machine)).collect();
        all.sort_unstable();
        all
    };
    let (old, new) = (made(before), made(after));
    if old == new { Ok(()) } else { Err(format!("they were {} and are {}", old.join(", "), new.join(", "))) }
}

fn is_master(machine: &Value) -> bool {
    machine["metadata"]["labels"]["machine.openshift.io/cluster-api-machine-role"] == "master"
}

fn kind_of(machine: &Value) -> String {
    let mut provider = machine["spec"]["providerSpec"]["value"].clone();
    forget_place(&mut provider);
    let mut labels = machine["metadata"]["labels"].as_object().cloned().unwrap_or_default();
    placeless(&mut labels);
    sorted(&serde_json::json!({"labels": labels, "provider": provider})).to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn set(state: &str, domain: &str, cpus: u8, server: &str) -> Value {
        let provider = json!({"numCPUs": cpus, "workspace": {"server": server}});
        let template = json!({
            "failureDomains": {"platform": "VSphere", "vsphere": [{"name": domain}]},
            "spec": {"providerSpec": {"value": provider}},
        });
        json!({"metadata": {"name": "cluster"}, "spec": {
            "state": state, "replicas": 3, "strategy": {"type": "RollingUpdate"},
            "template": {"machines_v1beta1_machine_openshift_io": template},
        }})
    }

    fn source() -> Vcenter {
        Vcenter {
            name: "a".to_owned(),
            server: "a.example.com".to_owned(),
            port: 443,
            username: String::new(),
            password: String::new(),
            ca: String::new(),
            zones: Vec::new(),
        }
    }

    #[test]
    fn a_control_plane_machine_set_changes_its_place_and_nothing_else() {
        let dump = |sets: &[Value]| Dump::with(CONTROL_PLANE_MACHINE_SET, sets);
        let before = dump(&[set("Active", "fd-a", 4, "")]);
        let judged = |after: &Value| moved(&before, &dump(std::slice::from_ref(after)), &source(), &["fd-b".to_owned()]);
        let after = set("Active", "fd-b", 4, "");
        assert_eq!(judged(&after), Ok(()));
        assert_eq!(judged(&set("Active", "fd-a", 4, "")), Err("its failure domains are fd-a, wanted are fd-b".to_owned()));
        assert_eq!(judged(&set("Active", "fd-b", 4, "a.example.com")), Err("its template names the source".to_owned()));
        let other = |path: &str, value: Value| {
            let mut other = after.clone();
            *other.pointer_mut(path).unwrap() = value;
            judged(&other).unwrap_err()
        };
        assert_eq!(other("/spec/state", json!("Inactive")), "spec.state: \"Active\" -> \"Inactive\"");
        assert_eq!(other("/spec/strategy/type", json!("OnDelete")), "spec.strategy.type: \"RollingUpdate\" -> \"OnDelete\"");
        assert!(judged(&set("Active", "fd-b", 2, "")).unwrap_err().ends_with("numCPUs: 4 -> 2"));
        assert_eq!(moved(&before, &Dump::default(), &source(), &[]), Err("there is none".to_owned()));
    }

    #[test]
    fn where_there_was_no_control_plane_machine_set_the_new_one_waits() {
        let judged = |state: &str| {
            let after = Dump::with(CONTROL_PLANE_MACHINE_SET, &[set(state, "fd-b", 4, "")]);
            moved(&Dump::default(), &after, &source(), &["fd-b".to_owned()])
        };
        assert_eq!(judged("Inactive"), Ok(()));
        assert_eq!(judged("Active"), Err("it was made by its operator and is \"Active\", not Inactive".to_owned()));
    }

    #[test]
    fn machines_of_the_control_plane_keep_their_number_and_size() {
        let machine = |name: &str, role: &str, cpus: u8, server: &str| {
            json!({
                "metadata": {"name": name, "labels": {"machine.openshift.io/cluster-api-machine-role": role, "machine.openshift.io/zone": server}},
                "spec": {"providerSpec": {"value": {"numCPUs": cpus, "workspace": {"server": server}}}},
            })
        };
        let dump = |machines: &[Value]| Dump::with(MACHINE, machines);
        let before = dump(&[machine("m-0", "master", 4, "a"), machine("m-1", "master", 8, "a"), machine("w", "worker", 2, "a")]);
        let judged = |all: &[Value]| machines(&before, &dump(all));
        assert_eq!(judged(&[machine("n-0", "master", 8, "b"), machine("n-1", "master", 4, "b")]), Ok(()));
        assert!(judged(&[machine("n-0", "master", 8, "b"), machine("n-1", "master", 8, "b")]).is_err());
        assert!(judged(&[machine("n-0", "master", 8, "b")]).is_err());
    }
}
