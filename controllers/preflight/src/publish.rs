//! The ConfigMap with the whole plan, and with the changes of the plans that an approval may be about.

use std::collections::BTreeMap;

use serde_json::json;
use vmi_crds::graph::StepName;
use vmi_crds::turn::turn;
use vmi_kit::Stop;
use vmi_kit::kind::CONFIG_MAP;
use vmi_steps::{Migration, Writer};

use crate::plan::difference;

const PLAN: &str = "plan.txt";
const HASH: &str = "hash";
const REMOVAL: &str = "removal.txt";

/// The ConfigMap's name.
pub fn name(m: &Migration) -> String {
    format!("vmi-{}-plan", m.name())
}

fn changes_of(hash: &str) -> String {
    format!("changes-{hash}.txt")
}

/// What changed in the plan.
pub struct Drift {
    /// Since the last one that was complete.
    pub since_last: Vec<String>,
    /// Since the approved one, where that is another and still known.
    pub since_approved: Vec<String>,
}

/// Writes the plan where it changed, and says what changed.
pub async fn publish(m: &Migration, step: StepName, text: &str, hash: Option<&str>, changes: &[String]) -> Result<Drift, Stop> {
    let name = name(m);
    let found = m.get(CONFIG_MAP, &m.cx.namespace, &name);
    let before: BTreeMap<String, String> =
        found.as_ref().and_then(|map| serde_json::from_value(map.data["data"].clone()).ok()).unwrap_or_default();
    let approved = m.spec().approved_plan.as_deref();
    let after = contents(&before, text, hash, changes, approved);
    if after != before {
        let mut writer = Writer::new(m, step, turn(&m.vmi, step));
        match found {
            None => {
                let owner = json!({"apiVersion": "config.openshift.io/v1alpha1", "kind": "VSphereMigrationInfra", "name": m.name(), "uid": m.uid()});
                let metadata = json!({"name": name, "namespace": m.cx.namespace, "ownerReferences": [owner]});
                writer
                    .create(
                        CONFIG_MAP,
                        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": after}),
                        "write the plan",
                    )
                    .await?;
            }
            Some(found) => {
                let mut map = found.as_ref().clone();
                map.types = Some(kube::api::TypeMeta { api_version: "v1".to_owned(), kind: "ConfigMap".to_owned() });
                map.data["data"] = json!(after);
                writer.replace(CONFIG_MAP, map, "write the plan").await?;
            }
        }
    }
    let since = |other: Option<&str>| {
        let known = other.filter(|other| hash.is_some_and(|hash| hash != *other)).and_then(|other| after.get(&changes_of(other)));
        known.map(|text| difference(&text.lines().collect::<Vec<_>>(), changes)).unwrap_or_default()
    };
    Ok(Drift { since_last: since(before.get(HASH).map(String::as_str)), since_approved: since(approved) })
}

/// Adds the changes that take the source away, for whoever has to approve them.
pub async fn publish_removal(m: &Migration, step: StepName, hash: &str, changes: &[String]) -> Result<(), Stop> {
    let text = format!("removal {hash}\n\nchanges\n{}", changes.iter().map(|line| format!("  {line}\n")).collect::<String>());
    let Some(found) = m.get(CONFIG_MAP, &m.cx.namespace, &name(m)) else { return Ok(()) };
    if found.data["data"][REMOVAL] == text.as_str() {
        return Ok(());
    }
    let mut map = found.as_ref().clone();
    map.data["data"][REMOVAL] = json!(text);
    Writer::new(m, step, turn(&m.vmi, step)).replace(CONFIG_MAP, map, "write the plan of the removal").await?;
    Ok(())
}

/// The plan as it is, and the changes of this, the last and the approved plan.
fn contents(
    before: &BTreeMap<String, String>,
    text: &str,
    hash: Option<&str>,
    changes: &[String],
    approved: Option<&str>,
) -> BTreeMap<String, String> {
    let mut after = BTreeMap::from([(PLAN.to_owned(), text.to_owned())]);
    let last = before.get(HASH).map(String::as_str);
    for kept in [last, approved].into_iter().flatten().map(changes_of) {
        after.extend(before.get_key_value(&kept).map(|(key, value)| (key.clone(), value.clone())));
    }
    match hash {
        Some(hash) => {
            after.insert(HASH.to_owned(), hash.to_owned());
            after.insert(changes_of(hash), changes.join("\n"));
        }
        // A plan that is not complete does not push the last one out.
        None => after.extend(last.map(|last| (HASH.to_owned(), last.to_owned()))),
    }
    after
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_changes_of_the_approved_plan_are_kept_as_long_as_they_are_approved() {
        let lines = |text: &str| vec![text.to_owned()];
        let keys = |map: &BTreeMap<String, String>| map.keys().cloned().collect::<Vec<_>>();
        let one = contents(&BTreeMap::new(), "text", Some("aaaa"), &lines("a"), None);
        assert_eq!(keys(&one), ["changes-aaaa.txt", "hash", "plan.txt"]);
        let none = contents(&one, "text", None, &[], Some("aaaa"));
        assert_eq!(keys(&none), keys(&one));
        let two = contents(&none, "text", Some("bbbb"), &lines("b"), Some("aaaa"));
        assert_eq!(keys(&two), ["changes-aaaa.txt", "changes-bbbb.txt", "hash", "plan.txt"]);
        let three = contents(&two, "text", Some("cccc"), &lines("c"), Some("aaaa"));
        assert_eq!(keys(&three), ["changes-aaaa.txt", "changes-bbbb.txt", "changes-cccc.txt", "hash", "plan.txt"]);
        let four = contents(&three, "text", Some("cccc"), &lines("c"), None);
        assert_eq!(keys(&four), ["changes-cccc.txt", "hash", "plan.txt"]);
        assert_eq!(four["changes-cccc.txt"], "c");
    }
}
