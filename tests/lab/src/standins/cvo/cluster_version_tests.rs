use super::*;

const EARLIER: &str = "2026-01-01T00:00:00Z";
const NOW: &str = "2026-02-02T00:00:00Z";
const RELEASE: Release<'_> = Release { version: "4.21.0", image: "release:4.21.0", hash: "abc" };

fn object(value: Value) -> DynamicObject {
    serde_json::from_value(value).unwrap()
}

fn version(spec: &Value, status: &Value) -> DynamicObject {
    object(json!({"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion",
        "metadata": {"name": "version", "generation": 3}, "spec": spec, "status": status}))
}

fn read<'a>(status: &'a Value, kind: &str) -> (&'a str, &'a str, &'a str) {
    let conditions = status["conditions"].as_array().unwrap();
    let found = conditions.iter().find(|condition| condition["type"] == kind);
    found.map_or(("", "", ""), |found| {
        let text = |field: &str| found[field].as_str().unwrap_or_default();
        (text("status"), text("reason"), text("message"))
    })
}

fn degraded() -> Failure {
    unhealthy(&[operator("machine-config", "True", "True")]).unwrap()
}

fn operator(name: &str, available: &str, degraded: &str) -> Arc<DynamicObject> {
    let condition = |kind: &str, status: &str| json!({"type": kind, "status": status});
    let conditions: Vec<Value> = [("Available", available), ("Degraded", degraded)]
        .iter()
        .filter(|(_, status)| !status.is_empty())
        .map(|(kind, status)| condition(kind, status))
        .collect();
    Arc::new(object(json!({"metadata": {"name": name}, "status": {"conditions": conditions}})))
}

#[test]
fn a_cluster_at_its_release_says_so() {
    let status = status(&version(&json!({}), &Value::Null), &RELEASE, true, None, NOW);
    assert_eq!(status["observedGeneration"], 3);
    assert_eq!(status["desired"]["version"], "4.21.0");
    assert_eq!(status.get("availableUpdates"), Some(&Value::Null), "the CRD requires it to be there");
    assert_eq!(status["history"][0]["state"], "Completed");
    assert_eq!(read(&status, "Available"), ("True", "", "Done applying 4.21.0"));
    assert_eq!(read(&status, "Failing"), ("False", "", ""));
    assert_eq!(read(&status, "Progressing"), ("False", "", "Cluster version is 4.21.0"));
    assert_eq!(read(&status, "ReleaseAccepted").0, "True");
    assert_eq!(read(&status, "Upgradeable"), ("", "", ""), "absent means upgradeable");
}

#[test]
fn nothing_moves_while_nothing_changes() {
    let once = status(&version(&json!({}), &Value::Null), &RELEASE, true, None, EARLIER);
    assert_eq!(status(&version(&json!({}), &once), &RELEASE, true, None, NOW), once);
}

#[test]
fn a_failure_shows_as_failing_and_progressing_only_before_the_first_success() {
    let first = status(&version(&json!({}), &Value::Null), &RELEASE, false, Some(&degraded()), EARLIER);
    assert_eq!(read(&first, "Available").0, "False");
    assert_eq!(read(&first, "Progressing").2, "Unable to apply 4.21.0: the cluster operator machine-config is degraded");
    assert_eq!(first["history"][0]["state"], "Partial");

    let done = status(&version(&json!({}), &first), &RELEASE, true, None, EARLIER);
    let later = status(&version(&json!({}), &done), &RELEASE, false, Some(&degraded()), NOW);
    assert_eq!(read(&later, "Available").0, "True");
    assert_eq!(read(&later, "Failing"), ("True", "ClusterOperatorDegraded", "Cluster operator machine-config is degraded"));
    let progressing =
        ("False", "ClusterOperatorDegraded", "Error while reconciling 4.21.0: the cluster operator machine-config is degraded");
    assert_eq!(read(&later, "Progressing"), progressing);
    assert_eq!(later["history"].as_array().unwrap().len(), 1);
    assert_eq!(later["history"][0]["completionTime"], EARLIER);
}

#[test]
fn overrides_block_upgrades_until_they_are_gone() {
    let entry = |unmanaged: bool| json!({"overrides": [{"kind": "Deployment", "group": "apps", "namespace": "n", "name": "x", "unmanaged": unmanaged}]});
    let set = status(&version(&entry(true), &Value::Null), &RELEASE, true, None, NOW);
    assert_eq!(read(&set, "Upgradeable").0, "False");
    assert_eq!(read(&set, "Upgradeable").1, "ClusterVersionOverridesSet");
    let released = status(&version(&entry(false), &set), &RELEASE, true, None, NOW);
    assert_eq!(read(&released, "Upgradeable").0, "");
}

#[test]
fn a_new_release_gets_its_own_history() {
    let old = status(&version(&json!({}), &Value::Null), &RELEASE, true, None, EARLIER);
    let newer = Release { version: "4.21.1", image: "release:4.21.1", hash: "def" };
    let new = status(&version(&json!({}), &old), &newer, true, None, NOW);
    let versions: Vec<&Value> = new["history"].as_array().unwrap().iter().map(|entry| &entry["version"]).collect();
    assert_eq!(versions, ["4.21.1", "4.21.0"]);
}

#[test]
fn operators_are_judged_as_the_real_one_judges_them() {
    type Operators<'a> = &'a [(&'a str, &'a str, &'a str)];
    let table: [(Operators<'_>, Option<(&str, &str)>); 6] = [
        (&[], None),
        (&[("a", "True", "False")], None),
        (&[("a", "True", "True")], Some(("ClusterOperatorDegraded", "Cluster operator a is degraded"))),
        (&[("b", "True", "True"), ("a", "True", "")], Some(("ClusterOperatorsDegraded", "Cluster operators a, b are degraded"))),
        (&[("a", "True", "True"), ("b", "False", "False")], Some(("ClusterOperatorNotAvailable", "Cluster operator b is not available"))),
        (&[("b", "", ""), ("a", "Unknown", "False")], Some(("ClusterOperatorsNotAvailable", "Cluster operators a, b are not available"))),
    ];
    for (operators, expected) in table {
        let operators: Vec<_> = operators.iter().map(|(name, available, degraded)| operator(name, available, degraded)).collect();
        let failure = unhealthy(&operators);
        assert_eq!(failure.as_ref().map(|failure| (failure.reason, failure.message.as_str())), expected);
    }
}

#[test]
fn an_override_takes_exactly_the_object_it_names() {
    let manifest = Manifest {
        file: String::new(),
        kind: crate::kubernetes::CRD,
        namespace: String::new(),
        name: "infrastructures.config.openshift.io".to_owned(),
        body: json!({}),
    };
    let entry = json!({"kind": "CustomResourceDefinition", "group": "apiextensions.k8s.io", "namespace": "",
        "name": "infrastructures.config.openshift.io", "unmanaged": true});
    assert!(unmanaged(&json!([entry]), &manifest));
    for (field, value) in [
        ("kind", json!("Deployment")),
        ("group", json!("apps")),
        ("namespace", json!("openshift-config")),
        ("name", json!("machines.machine.openshift.io")),
        ("unmanaged", json!(false)),
    ] {
        let mut other = entry.clone();
        other[field] = value;
        assert!(!unmanaged(&json!([other]), &manifest), "{field}");
    }
    assert!(!unmanaged(&Value::Null, &manifest));
}
