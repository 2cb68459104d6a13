//! Whether the sets of step 11 still stand for those of the source: hours may pass before the source's machines leave. Pure.

use kube::ResourceExt;

use crate::view::{Object, replicas, set_server};
use crate::wanted::{Wanted, stands_for};

/// Sets that were made and are gone; `since` are the source's sets that were made only afterwards, for which there never was one.
pub fn gone<'a>(wanted: &'a [Wanted], sets: &[Object], since: &[String]) -> Vec<&'a Wanted> {
    wanted.iter().filter(|set| !since.contains(&set.source) && there(set, sets).is_none()).collect()
}

/// Why the source's sets cannot lose their machines yet: each that nothing stands for, and what to do. How many machines a set has
/// is an autoscaler's business, as long as it has any.
pub fn lacking(wanted: &[Wanted], sets: &[Object], since: &[String]) -> Vec<String> {
    let lack = |set: &Wanted| {
        let Wanted { name, source, server, replicas: count, .. } = set;
        match there(set, sets) {
            None if since.contains(source) => Some(format!(
                "MachineSet {source} was made on the source since, and none on the target stands for it: delete it, or make MachineSet \
                 {name} on {server} for its {count} machines"
            )),
            None => Some(format!(
                "MachineSet {name}, which stands for {source}, is gone: make it again on {server} for {count} machines, or delete {source} \
                 if nobody needs its machines"
            )),
            Some(object) if replicas(object) == 0 && *count > 0 => Some(format!(
                "MachineSet {}, which stands for {source}, is to have no machine: scale it to {count}, or delete {source} if nobody needs \
                 its machines",
                object.name_any()
            )),
            Some(_) => None,
        }
    };
    wanted.iter().filter_map(lack).collect()
}

/// Also one that somebody put back by hand, without our marks: what counts is that it makes machines on the target.
fn there<'a>(wanted: &Wanted, sets: &'a [Object]) -> Option<&'a Object> {
    let stays = sets.iter().filter(|set| set.metadata.deletion_timestamp.is_none());
    stays.into_iter().find(|set| stands_for(set, wanted) || (set.name_any() == wanted.name && set_server(set) == wanted.server))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends by panicking")]

    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;
    use crate::wanted::{DOMAIN, SOURCE_SET};

    fn wanted(replicas: i64) -> Wanted {
        Wanted {
            name: "w-x".to_owned(),
            source: "w".to_owned(),
            domain: "x".to_owned(),
            server: "b".to_owned(),
            replicas,
            object: json!({"metadata": {"name": "w-x", "annotations": {SOURCE_SET: "w", DOMAIN: "x"}}}),
            labels: std::collections::BTreeMap::new(),
            left_out: Vec::new(),
        }
    }

    fn set(name: &str, server: &str, replicas: i64, annotations: &Value) -> Object {
        let template = json!({"spec": {"providerSpec": {"value": {"workspace": {"server": server}}}}});
        let metadata = json!({"name": name, "annotations": annotations});
        Arc::new(serde_json::from_value(json!({"metadata": metadata, "spec": {"replicas": replicas, "template": template}})).unwrap())
    }

    fn told(wanted: &Wanted, sets: &[Object], since: &[String]) -> String {
        lacking(std::slice::from_ref(wanted), sets, since).join("; ")
    }

    #[test]
    fn a_set_that_nothing_on_the_target_stands_for_is_named_with_what_to_do() {
        let none = json!({});
        assert!(told(&wanted(3), &[], &[]).starts_with("MachineSet w-x, which stands for w, is gone: make it again on b for 3 machines"));
        assert!(told(&wanted(3), &[set("w-x", "a", 3, &none)], &[]).contains("is gone"), "that one is on the source");
        assert!(told(&wanted(3), &[set("w-x", "b", 0, &none)], &[]).contains("is to have no machine: scale it to 3"));
        let since = ["w".to_owned()];
        assert!(told(&wanted(3), &[], &since).starts_with("MachineSet w was made on the source since"));
        let mut going = set("w-x", "b", 3, &none).as_ref().clone();
        going.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
        assert!(told(&wanted(3), &[Arc::new(going)], &[]).contains("is gone"));
    }

    #[test]
    fn what_stands_for_a_set_may_have_any_number_of_machines_and_may_have_been_put_back_by_hand() {
        let marks = json!({SOURCE_SET: "w", DOMAIN: "x"});
        for there in [set("w-x", "b", 1, &json!({})), set("w-x", "b", 9, &marks), set("other-name", "b", 3, &marks)] {
            assert_eq!(told(&wanted(3), &[there], &[]), "");
        }
        assert_eq!(told(&wanted(0), &[set("w-x", "b", 0, &marks)], &[]), "", "none are wanted");
    }

    #[test]
    fn a_set_that_never_was_is_not_gone() {
        let all = [wanted(3)];
        assert_eq!(gone(&all, &[], &[]).len(), 1);
        assert!(gone(&all, &[], &["w".to_owned()]).is_empty());
        assert!(gone(&all, &[set("w-x", "b", 0, &json!({}))], &[]).is_empty());
    }
}
