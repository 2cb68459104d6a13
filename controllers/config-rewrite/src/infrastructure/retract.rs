//! The spec of Infrastructure without the target again, three-way: what was before, what was written, what is there now. Pure.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use vmi_intent::infrastructure::{self, Outcome};
use vmi_site::source::Source;

use super::extend::{Wanted, is_empty, items, key};

/// What is remembered before the first change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Saved {
    /// `spec.platformSpec.vsphere`; null where there was none.
    pub before: Value,
    /// What was written for the source.
    pub source: Source,
}

/// The spec as the way back leaves it.
#[derive(Debug, PartialEq)]
pub struct Retracted {
    /// As it was; none if there is nothing to take away.
    pub spec: Option<Value>,
    /// The same with the source's description kept, where it was written here and may have to stay.
    pub source_kept: Option<Value>,
    /// What somebody else changed since, and what hangs on it.
    pub left: Vec<String>,
    pub changes: Vec<String>,
}

/// Takes away what was added and still stands as it was added. A vCenter stays as long as a failure domain that stays is in it.
pub fn retract(spec: &Value, saved: &Saved, wanted: &Wanted) -> Retracted {
    let mut tally = Tally::default();
    let before = json!({"platformSpec": {"vsphere": saved.before}});
    let added = |list: &str, written: &[Value]| -> Vec<Value> {
        let had = items(&before, list);
        written.iter().filter(|item| had.iter().all(|old| key(old) != key(item))).cloned().collect()
    };
    let mut domains = items(spec, "failureDomains");
    tally.take(&mut domains, "failureDomains", &added("failureDomains", &wanted.failure_domains), |_| None);
    let mut vcenters = items(spec, "vcenters");
    let used = |vcenter: &Value| domains.iter().find(|domain| domain["server"] == vcenter["server"]).map(|domain| key(domain).to_owned());
    tally.take(&mut vcenters, "vcenters", &added("vcenters", &wanted.vcenters), used);
    let mut next = spec.clone();
    put(&mut next, vcenters, domains);
    tally.take_node_networking(&mut next, &saved.before["nodeNetworking"], wanted.node_networking.as_ref());
    let Tally { mut changes, left } = tally;
    let targets_gone = (next != *spec).then(|| next.clone());
    if saved.source == Source::default() || !left.is_empty() || targets_gone.is_none() {
        return Retracted { spec: targets_gone, source_kept: None, left, changes };
    }
    // Nothing else is left of what was written: the source's description goes with it.
    let as_before = |list: &str, source: &[Value]| -> Vec<Value> {
        let same = |item: &Value| source.iter().any(|written| is_same(list, item, written));
        items(&next, list).into_iter().filter(|item| !same(item)).collect()
    };
    let (vcenters, domains) = (as_before("vcenters", &saved.source.vcenters), as_before("failureDomains", &saved.source.failure_domains));
    let mut whole = next.clone();
    if vcenters.is_empty() && domains.is_empty() && others(&whole["platformSpec"]["vsphere"]) == others(&saved.before) {
        whole["platformSpec"]["vsphere"] = saved.before.clone();
        if let Some(platform) = whole["platformSpec"].as_object_mut().filter(|_| saved.before.is_null()) {
            platform.shift_remove("vsphere");
        }
    } else {
        put(&mut whole, vcenters, domains);
    }
    changes.push("Infrastructure cluster: the description of the source that was added goes, where that is allowed".to_owned());
    Retracted { spec: Some(whole), source_kept: Some(next), left, changes }
}

/// Whether the source's description, written here, is still there.
pub fn source_stands(spec: &Value, saved: &Saved) -> bool {
    let stands = |list: &str, written: &[Value]| written.iter().any(|item| items(spec, list).iter().any(|found| key(found) == key(item)));
    stands("vcenters", &saved.source.vcenters) || stands("failureDomains", &saved.source.failure_domains)
}

/// What goes and what stays, in words.
#[derive(Default)]
struct Tally {
    changes: Vec<String>,
    left: Vec<String>,
}

impl Tally {
    /// Takes from `items` what was added and stands unchanged and unused.
    fn take(&mut self, items: &mut Vec<Value>, list: &str, added: &[Value], used_by: impl Fn(&Value) -> Option<String>) {
        let what = if list == "vcenters" { "vCenter" } else { "failure domain" };
        items.retain(|item| {
            let name = key(item);
            let Some(written) = added.iter().find(|written| key(written) == name) else { return true };
            let stays = if is_same(list, item, written) {
                used_by(item).map(|user| format!("{what} {name} holds failure domain {user}, which stays"))
            } else {
                Some(format!("{what} {name} was changed by somebody else"))
            };
            if stays.is_none() {
                self.changes.push(format!("Infrastructure cluster: {what} {name} goes"));
            }
            let kept = stays.is_some();
            self.left.extend(stays);
            kept
        });
    }

    fn take_node_networking(&mut self, spec: &mut Value, before: &Value, wanted: Option<&Value>) {
        for which in ["external", "internal"] {
            let Some(wanted) = wanted.and_then(|wanted| wanted.get(which)).filter(|wanted| !is_empty(wanted)) else { continue };
            let found = &spec["platformSpec"]["vsphere"]["nodeNetworking"][which];
            if !is_empty(&before[which]) || is_empty(found) {
                continue;
            }
            if found != wanted {
                self.left.push(format!("nodeNetworking.{which} was changed by somebody else"));
                continue;
            }
            let Some(vsphere) = spec["platformSpec"]["vsphere"].as_object_mut() else { continue };
            if let Some(fields) = vsphere.get_mut("nodeNetworking").and_then(Value::as_object_mut) {
                match before.get(which) {
                    Some(old) => drop(fields.insert(which.to_owned(), old.clone())),
                    None => drop(fields.shift_remove(which)),
                }
            }
            if before.is_null() && vsphere.get("nodeNetworking").is_some_and(is_empty) {
                vsphere.shift_remove("nodeNetworking");
            }
            self.changes.push(format!("Infrastructure cluster: nodeNetworking.{which} goes"));
        }
    }
}

fn put(spec: &mut Value, vcenters: Vec<Value>, domains: Vec<Value>) {
    for (list, items) in [("vcenters", vcenters), ("failureDomains", domains)] {
        // A list that is not there is not made only to be empty.
        if !items.is_empty() || spec["platformSpec"]["vsphere"].get(list).is_some() {
            spec["platformSpec"]["vsphere"][list] = items.into();
        }
    }
}

fn others(vsphere: &Value) -> Value {
    let mut rest = vsphere.as_object().cloned().unwrap_or_default();
    rest.retain(|field, value| !["vcenters", "failureDomains"].contains(&field.as_str()) && !is_empty(value));
    rest.into()
}

fn is_same(list: &str, found: &Value, written: &Value) -> bool {
    let alone = json!({"platformSpec": {"type": "VSphere", "vsphere": {list: [found]}}});
    let written = std::slice::from_ref(written);
    let (vcenters, domains): (&[Value], &[Value]) = if list == "vcenters" { (written, &[]) } else { (&[], written) };
    infrastructure::extend(&alone, vcenters, domains) == Ok(Outcome::AlreadyThere)
}
