//! What is held, by the book: an entry is made in the saved Secret before anything is changed, and released by that entry alone.

use std::sync::Arc;

use jiff::Timestamp;
use kube::api::DynamicObject;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use vmi_kit::kind::{
    CLUSTER_AUTOSCALER, CLUSTER_VERSION, CRD, DEPLOYMENT, MACHINE_CONFIG_POOL, MACHINE_CONFIGURATION, MACHINE_HEALTH_CHECK,
};
use vmi_kit::{Kind, Stop, failure};
use vmi_steps::change::{Act, Change};
use vmi_steps::{Migration, Seen};

use crate::held::{Held, State};

const KINDS: &[Kind] =
    &[CLUSTER_AUTOSCALER, CLUSTER_VERSION, CRD, DEPLOYMENT, MACHINE_CONFIG_POOL, MACHINE_CONFIGURATION, MACHINE_HEALTH_CHECK];

/// The holds saved under one key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ledger {
    /// When they were saved, just before they were taken.
    pub saved_at: Timestamp,
    /// The holds.
    pub holds: Vec<Held>,
}

/// What is saved under the key.
pub fn saved(m: &Migration, key: &str) -> Result<Option<Ledger>, Stop> {
    let Some(value) = m.saved(key) else { return Ok(None) };
    serde_json::from_value(value).map(Some).map_err(|error| {
        let secret = format!("{}/{}", m.cx.namespace, vmi_steps::saved::secret_name(&m.name()));
        let text = format!("key {key} of Secret {secret}, which says what was held, cannot be read: {error}");
        failure("FRZ-005", text, "was it edited, or written by another release? put back what it was, then resume").into()
    })
}

/// What is left to be changed until everything under the key is held. `wanted` says what to hold, where that is not saved yet.
pub fn take(m: &Migration, key: &str, wanted: impl FnOnce() -> Vec<Held>) -> Result<Vec<Change>, Stop> {
    let Some(ledger) = saved(m, key)? else {
        let ledger = Ledger { saved_at: Timestamp::now(), holds: wanted() };
        if ledger.holds.is_empty() {
            return Ok(Vec::new());
        }
        let words = ledger.holds.iter().map(Held::taking).collect();
        return Ok(vec![Change { act: Act::Save(key.to_owned(), json!(ledger)), words }]);
    };
    // Also what somebody changed since: without the hold the migration must not go on.
    let open = |(_, state): &(Held, State)| !matches!(state, State::Ours | State::Gone);
    let open: Vec<Held> = looked_at(m, ledger).into_iter().filter(open).map(|(held, _)| held).collect();
    grouped(m, &open, |held| (held.ours.as_ref(), held.taking()))
}

/// What is left to be released, and what somebody else has changed meanwhile, which is left as it is.
#[derive(Default)]
pub struct Release {
    /// What is left to be written.
    pub changes: Vec<Change>,
    /// What is left as others made it.
    pub conflicts: Vec<String>,
}

impl Release {
    /// Of everything under these keys, in their order.
    pub fn of<'a>(m: &Migration, keys: impl IntoIterator<Item = &'a str>) -> Result<Self, Stop> {
        let mut all = Self::default();
        for key in keys {
            let Some(ledger) = saved(m, key)? else { continue };
            let mut open = Vec::new();
            for (held, state) in looked_at(m, ledger) {
                match state {
                    State::Ours => open.push(held),
                    State::Changed(found) => all.conflicts.push(held.conflict(found.as_ref())),
                    State::Was | State::Gone => {}
                }
            }
            all.changes.extend(grouped(m, &open, |held| (held.was.as_ref(), held.releasing()))?);
        }
        Ok(all)
    }

    /// As the end of a step that took back what it did.
    pub fn undone<A>(&self, text: &str) -> Seen<A> {
        let reason = if self.conflicts.is_empty() { "Undone" } else { "UndoneWithConflict" };
        Seen::done(reason, self.told(text))
    }

    /// The text, and what was left as others made it.
    pub fn told(&self, text: &str) -> String {
        let conflicts = self.conflicts.iter().map(|conflict| format!("; {conflict}"));
        std::iter::once(text.to_owned()).chain(conflicts).collect()
    }
}

fn kind(name: &str) -> Option<Kind> {
    KINDS.iter().copied().find(|kind| kind.kind == name)
}

fn live(m: &Migration, held: &Held) -> Option<Arc<DynamicObject>> {
    m.get(kind(&held.kind)?, &held.namespace, &held.name)
}

fn looked_at(m: &Migration, ledger: Ledger) -> Vec<(Held, State)> {
    let look = |held: Held| {
        let state = held.state(live(m, &held).as_deref());
        (held, state)
    };
    ledger.holds.into_iter().map(look).collect()
}

/// One patch for each object.
fn grouped<'a>(m: &Migration, open: &'a [Held], towards: impl Fn(&'a Held) -> (Option<&'a Value>, String)) -> Result<Vec<Change>, Stop> {
    let mut changes = Vec::new();
    for holds in open.chunk_by(|one, other| one.object() == other.object()) {
        let Some(first) = holds.first() else { continue };
        let (Some(kind), Some(object)) = (kind(&first.kind), live(m, first)) else { continue };
        let holds: Vec<_> = holds.iter().map(|held| (held, towards(held))).collect();
        let operations = operations(&object, holds.iter().map(|(held, (value, _))| (*held, *value)))?;
        let words = holds.into_iter().map(|(_, (_, words))| words).collect();
        changes.push(Change { act: Act::Patch(kind, object, operations), words });
    }
    Ok(changes)
}

/// The JSON patch that makes each of them its value, one after the other, if the object is still as it was seen. The version is
/// what is tested: a test on a rule's text fails, because apiservers compare it with `<` escaped.
fn operations<'a>(object: &DynamicObject, holds: impl Iterator<Item = (&'a Held, Option<&'a Value>)>) -> Result<Value, Stop> {
    let mut document = serde_json::to_value(object).map_err(Stop::again)?;
    let mut all = vec![json!({"op": "test", "path": "/metadata/resourceVersion", "value": object.metadata.resource_version})];
    for (held, value) in holds {
        let written = held.write(&document, value);
        let patch: json_patch::Patch = serde_json::from_value(json!(written)).map_err(Stop::again)?;
        json_patch::patch(&mut document, &patch).map_err(Stop::again)?;
        all.extend(written);
    }
    Ok(Value::Array(all))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends by panicking")]

    use serde_json::Map;

    use super::*;

    #[test]
    fn several_rules_of_one_object_leave_and_return_in_one_patch_each() {
        let rule = |message: &str| json!({"message": message, "rule": message});
        let body = json!({"metadata": {"name": "x", "resourceVersion": "7"}, "spec": {"rules": [rule("a"), rule("b"), rule("c")]}});
        let before: DynamicObject = serde_json::from_value(body).unwrap();
        let hold = |message: &str| {
            let by = Map::from_iter([("message".to_owned(), json!(message))]);
            Held::entry(CRD, &before, "/spec/rules", by, None).unwrap()
        };
        let holds = [hold("a"), hold("c")];
        let apply = |object: &DynamicObject, operations: Value| -> DynamicObject {
            let mut document = serde_json::to_value(object).unwrap();
            json_patch::patch(&mut document, &serde_json::from_value::<json_patch::Patch>(operations).unwrap()).unwrap();
            serde_json::from_value(document).unwrap()
        };
        let taken = apply(&before, operations(&before, holds.iter().map(|held| (held, held.ours.as_ref()))).unwrap());
        assert_eq!(taken.data["spec"]["rules"], json!([rule("b")]));
        let released = apply(&taken, operations(&taken, holds.iter().map(|held| (held, held.was.as_ref()))).unwrap());
        assert_eq!(released.data, before.data);
    }

    #[test]
    fn a_patch_is_refused_once_the_object_is_not_as_it_was_seen() {
        let object: DynamicObject =
            serde_json::from_value(json!({"metadata": {"name": "x", "resourceVersion": "7"}, "spec": {"n": 1}})).unwrap();
        let held = Held::field(DEPLOYMENT, &object, "/spec/n", Some(json!(0))).unwrap();
        let patch = operations(&object, std::iter::once((&held, held.ours.as_ref()))).unwrap();
        let mut newer = json!({"metadata": {"name": "x", "resourceVersion": "8"}, "spec": {"n": 1}});
        assert!(json_patch::patch(&mut newer, &serde_json::from_value::<json_patch::Patch>(patch).unwrap()).is_err());
    }

    #[test]
    fn what_is_saved_is_read_back_as_it_was() {
        let object: DynamicObject = serde_json::from_value(json!({"metadata": {"name": "x"}, "spec": {"a": [{"path": "/p"}]}})).unwrap();
        let by = Map::from_iter([("path".to_owned(), json!("/p"))]);
        let holds = vec![
            Held::field(DEPLOYMENT, &object, "/spec/b/c", Some(json!(true))).unwrap(),
            Held::entry(DEPLOYMENT, &object, "/spec/a", by, None).unwrap(),
        ];
        let ledger = Ledger { saved_at: Timestamp::now(), holds };
        let text = json!(ledger).to_string();
        assert_eq!(serde_json::from_str::<Ledger>(&text).unwrap(), ledger);
    }
}
