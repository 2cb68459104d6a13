//! What becomes of the control plane machine set: saved and deleted, so that nothing rolls the masters before their time, and put
//! back on the way back. Pure looks; the steps act.

use jiff::{SignedDuration, Timestamp};
use kube::api::DynamicObject;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use vmi_intent::provider::is_in;

/// How long its own operator has to make a new one after the deletion.
const REGENERATED_WITHIN: SignedDuration = SignedDuration::from_secs(120);

/// The control plane machine set as it was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Saved {
    /// Which one it was.
    pub uid: String,
    /// Its spec, with state and strategy.
    pub spec: Value,
    /// Its labels.
    pub labels: Value,
    /// Its annotations.
    pub annotations: Value,
}

impl Saved {
    /// Of the one that is there.
    pub fn of(set: &DynamicObject) -> Self {
        Self {
            uid: set.metadata.uid.clone().unwrap_or_default(),
            spec: set.data["spec"].clone(),
            labels: json!(set.metadata.labels.clone().unwrap_or_default()),
            annotations: json!(set.metadata.annotations.clone().unwrap_or_default()),
        }
    }

    fn was_active(&self) -> bool {
        self.spec["state"] == "Active"
    }
}

/// What is to be done with it next.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// Save it.
    Save(Saved),
    /// Delete it.
    Delete,
    /// Write down when it was seen to be gone.
    NoteGone,
    /// Wait for whom and what, and until when.
    Wait(&'static str, Option<Timestamp>),
    /// Nothing: the reason, and what was found.
    Done(&'static str, &'static str),
}

/// Towards a saved and inactive one. `generated`: whether its operator can describe the masters by the failure domains.
pub fn next(set: Option<&DynamicObject>, saved: Option<&Saved>, gone: Option<Timestamp>, generated: bool, now: Timestamp) -> Next {
    match (set, saved) {
        (None, None) => Next::Done("NoneThere", "there is no control plane machine set"),
        (Some(set), None) => Next::Save(Saved::of(set)),
        (Some(set), Some(_)) if set.metadata.deletion_timestamp.is_some() => {
            Next::Wait("waits for the control plane machine set operator to let go of the deleted control plane machine set", None)
        }
        (Some(set), Some(_)) if set.data["spec"]["state"] != "Active" => {
            Next::Done("Saved", "the control plane machine set is saved; the one that is there is Inactive")
        }
        (Some(set), Some(saved)) if set.metadata.uid.as_ref() == Some(&saved.uid) => Next::Delete,
        (Some(_), Some(_)) => {
            Next::Wait("somebody made another active control plane machine set meanwhile: waits for it to be deleted", None)
        }
        (None, Some(_)) if !generated => Next::Done(
            "NoneRegenerated",
            "the control plane machine set is saved and deleted; no failure domain matches a master, so none is made anew",
        ),
        (None, Some(_)) => match gone.and_then(|gone| gone.checked_add(REGENERATED_WITHIN).ok()) {
            None => Next::NoteGone,
            Some(until) if now < until => {
                Next::Wait("waits for the control plane machine set operator to make an inactive control plane machine set", Some(until))
            }
            Some(_) => {
                Next::Done("NoneRegenerated", "the control plane machine set is saved and deleted; none was made anew within 2 minutes")
            }
        },
    }
}

/// What is to be done to put it back.
#[derive(Clone, Debug, PartialEq)]
pub enum Back {
    /// Give the one that is there the saved spec.
    Update,
    /// Make it again.
    Create,
    /// Wait for its deletion to end.
    Wait,
    /// Nothing.
    Nothing,
    /// Nothing: somebody else made it what it is.
    Conflict,
}

/// Towards what was saved.
pub fn back(set: Option<&DynamicObject>, saved: Option<&Saved>) -> Back {
    match (set, saved) {
        (_, None) => Back::Nothing,
        (Some(set), Some(_)) if set.metadata.deletion_timestamp.is_some() => Back::Wait,
        (Some(set), Some(saved)) if set.data["spec"] == saved.spec => Back::Nothing,
        // Its own operator makes an inactive one what it finds right.
        (_, Some(saved)) if !saved.was_active() => Back::Nothing,
        (Some(set), Some(_)) if set.data["spec"]["state"] == "Active" => Back::Conflict,
        (Some(_), Some(_)) => Back::Update,
        (None, Some(_)) => Back::Create,
    }
}

/// Whether the operator can make one for these masters: three or five of them, and where there are failure domains, one of them in
/// one, string by string.
pub fn can_be_generated(masters: &[&Value], infrastructure: &Value) -> bool {
    let vsphere = &infrastructure["platformSpec"]["vsphere"];
    let domains = vsphere["failureDomains"].as_array().map(Vec::as_slice).unwrap_or_default();
    let in_a_domain = |master: &&Value| domains.iter().any(|domain| is_in(&master["workspace"], domain));
    matches!(masters.len(), 3 | 5) && !vsphere.is_null() && (domains.is_empty() || masters.iter().any(in_a_domain))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends by panicking")]

    use super::*;

    fn set(uid: &str, state: &str, deleting: bool) -> DynamicObject {
        let mut metadata = json!({"name": "cluster", "uid": uid, "labels": {"a": "b"}});
        if deleting {
            metadata["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        serde_json::from_value(json!({"metadata": metadata, "spec": {"state": state, "strategy": {"type": "RollingUpdate"}}})).unwrap()
    }

    #[test]
    fn it_is_saved_deleted_and_waited_for_in_that_order() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let later = |seconds| now + SignedDuration::from_secs(seconds);
        let (active, inactive) = (set("1", "Active", false), set("2", "Inactive", false));
        let saved = Saved::of(&active);
        assert!(matches!(next(None, None, None, true, now), Next::Done("NoneThere", _)));
        assert_eq!(next(Some(&active), None, None, true, now), Next::Save(saved.clone()));
        assert_eq!(next(Some(&active), Some(&saved), None, true, now), Next::Delete);
        assert!(matches!(next(Some(&set("9", "Active", false)), Some(&saved), None, true, now), Next::Wait(_, None)), "not ours to delete");
        assert!(matches!(next(Some(&set("1", "Active", true)), Some(&saved), None, true, now), Next::Wait(_, None)));
        assert_eq!(next(None, Some(&saved), None, true, now), Next::NoteGone);
        assert!(matches!(next(None, Some(&saved), Some(now), true, later(119)), Next::Wait(_, Some(until)) if until == later(120)));
        assert!(matches!(next(None, Some(&saved), Some(now), true, later(120)), Next::Done("NoneRegenerated", _)));
        assert!(
            matches!(next(None, Some(&saved), None, false, now), Next::Done("NoneRegenerated", _)),
            "that none comes is known beforehand"
        );
        assert!(matches!(next(Some(&inactive), Some(&saved), Some(now), true, now), Next::Done("Saved", _)));
        assert!(
            matches!(next(Some(&inactive), Some(&Saved::of(&inactive)), None, true, now), Next::Done("Saved", _)),
            "an inactive one rolls nothing"
        );
    }

    #[test]
    fn it_comes_back_as_it_was_unless_somebody_else_made_one() {
        let (active, inactive) = (set("1", "Active", false), set("2", "Inactive", false));
        let saved = Saved::of(&active);
        assert_eq!(back(Some(&inactive), None), Back::Nothing, "where none was nothing is put back");
        assert_eq!(back(Some(&inactive), Some(&saved)), Back::Update);
        assert_eq!(back(None, Some(&saved)), Back::Create);
        assert_eq!(back(Some(&active), Some(&saved)), Back::Nothing);
        assert_eq!(back(Some(&set("1", "Active", true)), Some(&saved)), Back::Wait);
        assert_eq!(back(None, Some(&Saved::of(&inactive))), Back::Nothing);
        let mut other = set("3", "Active", false);
        other.data["spec"]["strategy"]["type"] = json!("OnDelete");
        assert_eq!(back(Some(&other), Some(&saved)), Back::Conflict);
    }

    #[test]
    fn one_is_generated_only_for_masters_that_are_in_a_failure_domain() {
        let master =
            |pool: &str| json!({"workspace": {"server": "a", "datacenter": "dc", "datastore": "/dc/datastore/d", "resourcePool": pool}});
        let topology = json!({"datacenter": "dc", "datastore": "/dc/datastore/d", "resourcePool": "/dc/host/c/Resources"});
        let spec = |domains: Value| json!({"platformSpec": {"vsphere": {"failureDomains": domains}}});
        let domains = spec(json!([{"server": "a", "topology": topology}]));
        let (inside, outside) = (master("/dc/host/c//Resources/"), master("/dc/host/other/Resources"));
        assert!(can_be_generated(&[&inside, &outside, &outside], &domains));
        assert!(!can_be_generated(&[&outside, &outside, &outside], &domains));
        assert!(!can_be_generated(&[&inside, &inside], &domains), "three or five");
        assert!(can_be_generated(&[&outside, &outside, &outside], &spec(json!([]))));
        assert!(!can_be_generated(&[&inside, &inside, &inside], &json!({"platformSpec": {"type": "VSphere"}})));
    }
}
