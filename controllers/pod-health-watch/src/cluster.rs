//! What operators, pools and the CSI driver say of themselves, beside what they said at the start; and whether an update has begun.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::Value;
use vmi_crds::status::Baseline;
use vmi_kit::kind::{CLUSTER_CSI_DRIVER, CLUSTER_OPERATOR, CLUSTER_VERSION, MACHINE_CONFIG_POOL};
use vmi_steps::Migration;

use crate::view::{condition, list, time};

/// The vSphere CSI driver's name.
pub const CSI_DRIVER: &str = "csi.vsphere.vmware.com";
/// The one ClusterVersion's name.
pub const VERSION: &str = "version";

/// Something that is worse than at the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worse {
    /// The rule that says so.
    pub rule: &'static str,
    /// As in `oc get`: kind/name.
    pub object: String,
    /// What it says of itself.
    pub says: String,
    /// Since when.
    pub since: Option<Timestamp>,
    /// Whether it is not there any more: then there is nothing to show, and it does not come back by itself.
    pub gone: bool,
}

impl Worse {
    /// The command that shows it.
    pub fn shown(&self) -> Option<String> {
        (!self.gone).then(|| format!("oc get {} -o yaml", self.object))
    }
}

/// All that is worse than at the start.
pub fn worse(m: &Migration, baseline: Option<&Baseline>) -> Vec<Worse> {
    let mut found: Vec<Worse> = Vec::new();
    let operators = m.list(CLUSTER_OPERATOR, "");
    found.extend(operators.iter().flat_map(|operator| of_operator(operator, baseline)));
    // Of what is not served nobody knows who is there.
    if m.cx.cache.serves(CLUSTER_OPERATOR) {
        found.extend(gone(&operators.iter().map(|operator| operator.name_any()).collect(), baseline));
    }
    found.extend(m.list(MACHINE_CONFIG_POOL, "").iter().filter_map(|pool| of_pool(pool, baseline)));
    found.extend(m.get(CLUSTER_CSI_DRIVER, "", CSI_DRIVER).iter().flat_map(|driver| of_driver(driver, baseline)));
    found.sort_by(|a, b| (a.rule, &a.object).cmp(&(b.rule, &b.object)));
    found
}

fn of_operator(operator: &DynamicObject, baseline: Option<&Baseline>) -> Vec<Worse> {
    let name = operator.name_any();
    let then = baseline.into_iter().flat_map(|baseline| &baseline.cluster_operators).find(|then| then.name == name);
    let object = format!("clusteroperator/{name}");
    let status = &operator.data["status"];
    let degraded = condition(status, "Degraded").filter(|condition| condition["status"] == "True");
    let degraded = degraded.filter(|_| !then.is_some_and(|then| then.degraded));
    let silent = Value::Null;
    let available = condition(status, "Available").unwrap_or(&silent);
    // One that was there and available has to say so still. Of one that was not there before, only its own word counts: it may just
    // have been installed and have said nothing yet.
    let unavailable = then.map_or(available["status"] == "False", |then| then.available && available["status"] != "True");
    let unavailable = unavailable.then(|| match available["status"].as_str() {
        Some("False") => told("OPR-002", operator, &object, "not Available", available),
        status => told("OPR-002", operator, &object, &format!("Available is {}", status.unwrap_or("missing")), available),
    });
    degraded.map(|found| told("OPR-001", operator, &object, "Degraded", found)).into_iter().chain(unavailable).collect()
}

/// Operators that were available at the start and are not there any more.
fn gone(there: &BTreeSet<String>, baseline: Option<&Baseline>) -> Vec<Worse> {
    let then = baseline.into_iter().flat_map(|baseline| &baseline.cluster_operators);
    let lost = then.filter(|then| then.available && !there.contains(&then.name));
    let worse = |name: &str| Worse {
        rule: "OPR-002",
        object: format!("clusteroperator/{name}"),
        says: "it is gone".to_owned(),
        since: None,
        gone: true,
    };
    lost.map(|then| worse(&then.name)).collect()
}

fn of_pool(pool: &DynamicObject, baseline: Option<&Baseline>) -> Option<Worse> {
    let name = pool.name_any();
    let was_degraded = baseline.into_iter().flat_map(|baseline| &baseline.pools).any(|then| then.name == name && then.degraded);
    let found = condition(&pool.data["status"], "Degraded").filter(|condition| condition["status"] == "True" && !was_degraded)?;
    Some(told("OPR-003", pool, &format!("machineconfigpool/{name}"), "Degraded", found))
}

fn of_driver(driver: &DynamicObject, baseline: Option<&Baseline>) -> Vec<Worse> {
    let troubled: &[String] = baseline.and_then(|baseline| baseline.csi_driver.as_ref()).map_or(&[], |driver| &driver.troubled);
    let conditions = list(&driver.data["status"]["conditions"]);
    let object = format!("clustercsidriver/{CSI_DRIVER}");
    let bad = conditions.filter_map(|condition| {
        let (kind, status) = (condition["type"].as_str()?, condition["status"].as_str()?);
        let what = match status {
            "True" if kind.ends_with("Degraded") => kind.to_owned(),
            "False" if kind.ends_with("Available") => format!("not {kind}"),
            _ => return None,
        };
        (!troubled.iter().any(|then| then == kind)).then(|| told("OPR-004", driver, &object, &what, condition))
    });
    bad.collect()
}

fn told(rule: &'static str, of: &DynamicObject, object: &str, what: &str, condition: &Value) -> Worse {
    let message = condition["message"].as_str().map_or_else(String::new, |message| format!(": {}", message.trim()));
    let says = vmi_kit::text::cut(&format!("{what}{message}"), 300);
    // Of a condition that is missing nobody knows since when.
    let since = time(&condition["lastTransitionTime"]).or_else(|| of.creation_timestamp().map(|time| time.0));
    Worse { rule, object: object.to_owned(), says, since, gone: false }
}

/// The update that was begun or asked for since the migration started.
pub fn update(m: &Migration, started: Option<Timestamp>) -> Option<String> {
    let version = m.get(CLUSTER_VERSION, "", VERSION)?;
    update_of(&version.data, started?)
}

fn update_of(version: &Value, started: Timestamp) -> Option<String> {
    let newest = list(&version["status"]["history"]).next()?;
    let name = |value: &Value| value["version"].as_str().or_else(|| value["image"].as_str()).unwrap_or_default().to_owned();
    if newest["state"] != "Completed" && time(&newest["startedTime"]).is_some_and(|begun| begun >= started) {
        return Some(format!("an update to {} has begun", name(newest)));
    }
    let asked = &version["spec"]["desiredUpdate"];
    let same = |key: &str| asked[key].as_str().is_none_or(|asked| asked.is_empty() || newest[key] == asked);
    (asked.is_object() && !(same("version") && same("image"))).then(|| format!("an update to {} is asked for", name(asked)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(name: &str, conditions: &Value) -> DynamicObject {
        let value = json!({"apiVersion": "x/v1", "kind": "X", "metadata": {"name": name}, "status": {"conditions": conditions}});
        serde_json::from_value(value).unwrap()
    }

    fn says(kind: &str, status: &str) -> Value {
        json!({"type": kind, "status": status, "message": "because", "lastTransitionTime": "2026-11-16T19:49:46Z"})
    }

    fn baseline() -> Baseline {
        serde_json::from_value(json!({
            "clusterOperators": [
                {"name": "storage", "available": true, "degraded": false},
                {"name": "console", "available": false, "degraded": true},
            ],
            "pools": [{"name": "infra", "updated": true, "degraded": true, "paused": false}],
            "csiDriver": {"managementState": "Managed", "troubled": ["OldAvailable", "OldDegraded"]},
        }))
        .unwrap()
    }

    #[test]
    fn only_an_operator_that_is_worse_than_at_the_start_counts_and_progress_does_not() {
        let baseline = baseline();
        for (name, conditions, expected) in [
            ("storage", json!([says("Degraded", "True"), says("Available", "True")]), vec!["OPR-001"]),
            ("storage", json!([says("Degraded", "True"), says("Available", "False")]), vec!["OPR-001", "OPR-002"]),
            ("storage", json!([says("Progressing", "True"), says("Degraded", "False"), says("Available", "True")]), vec![]),
            ("console", json!([says("Degraded", "True"), says("Available", "False")]), vec![]),
            ("new-one", json!([says("Degraded", "True")]), vec!["OPR-001"]),
            ("storage", json!([says("Available", "Unknown")]), vec!["OPR-002"]),
            ("storage", json!([]), vec!["OPR-002"]),
            ("console", json!([]), vec![]),
            ("new-one", json!([says("Available", "False")]), vec!["OPR-002"]),
            ("new-one", json!([says("Available", "Unknown")]), vec![]),
            ("new-one", json!([]), vec![]),
        ] {
            let found: Vec<&str> = of_operator(&object(name, &conditions), Some(&baseline)).iter().map(|worse| worse.rule).collect();
            assert_eq!(found, expected, "{name} {conditions}");
        }
        let found = of_operator(&object("storage", &json!([says("Degraded", "True")])), None);
        assert_eq!((found[0].object.as_str(), found[0].says.as_str()), ("clusteroperator/storage", "Degraded: because"));
        let mut silent = object("storage", &json!([]));
        silent.metadata.creation_timestamp = serde_json::from_value(json!("2026-11-16T12:00:00Z")).unwrap();
        let found = of_operator(&silent, Some(&baseline)).remove(0);
        assert_eq!((found.says.as_str(), found.since), ("Available is missing", "2026-11-16T12:00:00Z".parse().ok()));
    }

    #[test]
    fn an_operator_that_was_available_at_the_start_and_is_gone_counts() {
        let found = gone(&["new-one".to_owned()].into(), Some(&baseline()));
        assert_eq!(
            found.iter().map(|worse| (worse.rule, worse.object.as_str())).collect::<Vec<_>>(),
            [("OPR-002", "clusteroperator/storage")]
        );
        assert_eq!(found[0].shown(), None, "nothing can be shown of it");
        assert!(gone(&["storage".to_owned()].into(), Some(&baseline())).is_empty());
        assert!(gone(&BTreeSet::new(), None).is_empty());
    }

    #[test]
    fn a_pool_and_the_csi_driver_count_like_operators() {
        let baseline = baseline();
        let degraded = json!([says("Degraded", "True")]);
        assert!(of_pool(&object("worker", &degraded), Some(&baseline)).is_some());
        assert!(of_pool(&object("infra", &degraded), Some(&baseline)).is_none());
        assert!(of_pool(&object("worker", &json!([says("Updating", "True")])), Some(&baseline)).is_none());
        let driver = object(
            CSI_DRIVER,
            &json!([
                says("OldDegraded", "True"),
                says("OldAvailable", "False"),
                says("VMwareVSphereOperatorCheckDegraded", "True"),
                says("ADegraded", "False"),
                says("VMwareVSphereControllerAvailable", "False"),
                says("BAvailable", "True"),
                says("CUpgradeable", "False"),
            ]),
        );
        let found = of_driver(&driver, Some(&baseline));
        assert_eq!(
            found.iter().map(|worse| worse.says.as_str()).collect::<Vec<_>>(),
            ["VMwareVSphereOperatorCheckDegraded: because", "not VMwareVSphereControllerAvailable: because"]
        );
    }

    #[test]
    fn an_update_counts_from_when_it_is_asked_for_and_only_since_the_start() {
        let started: Timestamp = "2026-11-16T12:00:00Z".parse().unwrap();
        let history = |state: &str, time: &str| json!([{"state": state, "version": "4.21.3", "image": "quay/x@1", "startedTime": time}]);
        for (spec, history, expected) in [
            (json!({}), history("Completed", "2026-11-16T13:00:00Z"), None),
            (json!({}), history("Partial", "2026-11-16T11:00:00Z"), None),
            (json!({}), history("Partial", "2026-11-16T13:00:00Z"), Some("an update to 4.21.3 has begun")),
            (json!({"desiredUpdate": {"version": "4.21.3"}}), history("Completed", "2026-11-16T11:00:00Z"), None),
            (json!({"desiredUpdate": {"version": "", "image": "quay/x@1"}}), history("Completed", "2026-11-16T11:00:00Z"), None),
            (
                json!({"desiredUpdate": {"version": "4.21.4"}}),
                history("Completed", "2026-11-16T11:00:00Z"),
                Some("an update to 4.21.4 is asked for"),
            ),
        ] {
            let version = json!({"spec": spec, "status": {"history": history}});
            assert_eq!(update_of(&version, started).as_deref(), expected, "{version}");
        }
    }
}
