//! Names that OpenShift makes up for machines say which one it is and not what it is: a machine that was replaced by one of its kind
//! has another. Here each is called by what made it, and by its place among those of the same maker.

use std::collections::BTreeMap;

use kube::ResourceExt;
use kube::api::DynamicObject;

use super::vcenters::Contents;
use crate::cluster::machines::SET_LABEL;

const ROLE: &str = "machine.openshift.io/cluster-api-machine-role";

/// What each of these Machines is called, by its own name.
pub fn of(machines: &[DynamicObject]) -> BTreeMap<String, String> {
    let mut names: Vec<(String, String)> = machines.iter().map(|machine| (maker(machine), machine.name_any())).collect();
    names.sort();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut called = BTreeMap::new();
    for (maker, name) in names {
        let place = seen.entry(maker.clone()).or_default();
        *place += 1;
        called.insert(name, format!("{maker}#{place}"));
    }
    called
}

/// Its set; of a master its index, which the one in its place has too.
fn maker(machine: &DynamicObject) -> String {
    let label = |key: &str| machine.labels().get(key).cloned();
    label(SET_LABEL).unwrap_or_else(|| {
        let name = machine.name_any();
        let index = name.rsplit('-').next().unwrap_or_default();
        format!("{}-{index}", label(ROLE).unwrap_or_default())
    })
}

/// The virtual machines among what tags are on, called as their Machines are.
pub fn rename(contents: &mut Contents, called: &BTreeMap<String, String>) {
    for paths in contents.tags.values_mut() {
        *paths = std::mem::take(paths).into_iter().map(|path| renamed(path, called)).collect();
    }
}

fn renamed(path: String, called: &BTreeMap<String, String>) -> String {
    let Some((folder, name)) = path.rsplit_once('/') else { return path };
    called.get(name).map_or_else(|| path.clone(), |name| format!("{folder}/{name}"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;

    fn machine(name: &str, role: &str, set: Option<&str>) -> DynamicObject {
        let labels = if let Some(set) = set { json!({ROLE: role, SET_LABEL: set}) } else { json!({ROLE: role}) };
        serde_json::from_value(json!({"metadata": {"name": name, "labels": labels}})).unwrap()
    }

    fn names(machines: &[DynamicObject]) -> Vec<String> {
        let mut names: Vec<String> = of(machines).into_values().collect();
        names.sort();
        names
    }

    #[test]
    fn machines_that_took_the_place_of_others_are_called_as_these_were() {
        let before = [
            machine("id-master-0", "master", None),
            machine("id-master-1", "master", None),
            machine("id-w-x2x4z", "worker", Some("id-w")),
            machine("id-w-b7b7b", "worker", Some("id-w")),
        ];
        let after = [
            machine("id-master-aaaaa-1", "master", None),
            machine("id-master-bbbbb-0", "master", None),
            machine("id-w-11111", "worker", Some("id-w")),
            machine("id-w-22222", "worker", Some("id-w")),
        ];
        assert_eq!(names(&before), ["id-w#1", "id-w#2", "master-0#1", "master-1#1"]);
        assert_eq!(names(&before), names(&after));
        assert_ne!(names(&before), names(&after[..3]), "one that is missing is");
    }

    #[test]
    fn a_tag_is_on_the_virtual_machine_of_a_machine_whatever_it_is_called() {
        let called = of(&[machine("id-w-x2x4z", "worker", Some("id-w"))]);
        let paths = ["/dc/vm/id", "/dc/vm/id/id-w-x2x4z", "/dc/vm/id/other"].map(str::to_owned);
        let mut contents = Contents { tags: BTreeMap::from([("c/t".to_owned(), BTreeSet::from(paths))]), ..Contents::default() };
        rename(&mut contents, &called);
        let renamed: Vec<&str> = contents.tags["c/t"].iter().map(String::as_str).collect();
        assert_eq!(renamed, ["/dc/vm/id", "/dc/vm/id/id-w#1", "/dc/vm/id/other"]);
    }
}
