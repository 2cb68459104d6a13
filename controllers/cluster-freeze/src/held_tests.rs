#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends by panicking")]

use super::*;
use vmi_kit::kind::{DEPLOYMENT, MACHINE_CONFIG_POOL};

fn object(body: Value) -> DynamicObject {
    serde_json::from_value(body).unwrap()
}

fn thing(spec: &Value) -> DynamicObject {
    object(json!({"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "x"}, "spec": spec}))
}

fn patched(object: &DynamicObject, operations: Vec<Value>) -> DynamicObject {
    let mut document = serde_json::to_value(object).unwrap();
    let patch: json_patch::Patch = serde_json::from_value(Value::Array(operations)).unwrap();
    json_patch::patch(&mut document, &patch).unwrap();
    serde_json::from_value(document).unwrap()
}

fn write(held: &Held, object: &DynamicObject, value: Option<&Value>) -> DynamicObject {
    patched(object, held.write(&serde_json::to_value(object).unwrap(), value))
}

fn by(key: &str, value: &str) -> Map<String, Value> {
    Map::from_iter([(key.to_owned(), json!(value))])
}

/// Takes and releases the hold, and gives what is there while it is held.
fn there_and_back(before: &DynamicObject, held: &Held) -> DynamicObject {
    assert_eq!(held.state(Some(before)), State::Was);
    let taken = write(held, before, held.ours.as_ref());
    assert_eq!(held.state(Some(&taken)), State::Ours, "{}", taken.data);
    let released = write(held, &taken, held.was.as_ref());
    assert_eq!(serde_json::to_value(&released).unwrap(), serde_json::to_value(before).unwrap());
    taken
}

#[test]
fn a_field_comes_back_exactly_also_where_nothing_was_around_it() {
    for spec in [json!({"a": {"b": {"c": 1}}}), json!({"a": {"b": {"d": 2}}}), json!({"a": {}}), json!({"z": 0})] {
        let before = thing(&spec);
        let held = Held::field(MACHINE_CONFIG_POOL, &before, "/spec/a/b/c", Some(json!(7))).unwrap();
        assert_eq!(there_and_back(&before, &held).data["spec"]["a"]["b"]["c"], 7);
    }
}

#[test]
fn an_annotation_comes_and_goes_with_and_without_others_beside_it() {
    for metadata in [json!({"name": "x"}), json!({"name": "x", "annotations": {"other": "1"}})] {
        let before = object(json!({"apiVersion": "v1", "kind": "Thing", "metadata": metadata}));
        let held = Held::field(MACHINE_CONFIG_POOL, &before, "/metadata/annotations/cluster.x-k8s.io~1paused", Some(json!(""))).unwrap();
        let taken = there_and_back(&before, &held);
        assert_eq!(taken.metadata.annotations.unwrap()["cluster.x-k8s.io/paused"], "");
    }
}

#[test]
fn an_entry_comes_back_at_its_place_and_leaves_no_empty_list_that_was_not_there() {
    let rules = json!([{"message": "one", "rule": "1"}, {"message": "two", "rule": "a < b"}, {"message": "three", "rule": "3"}]);
    let before = thing(&json!({"rules": rules}));
    let held = Held::entry(MACHINE_CONFIG_POOL, &before, "/spec/rules", by("message", "two"), None).unwrap();
    assert_eq!(there_and_back(&before, &held).data["spec"]["rules"].as_array().unwrap().len(), 2);

    for spec in [json!({}), json!({"policy": {}}), json!({"policy": {"files": []}}), json!({"policy": {"files": [{"path": "/b"}]}})] {
        let before = thing(&spec);
        let ours = json!({"path": "/a", "actions": [{"type": "None"}]});
        let held = Held::entry(MACHINE_CONFIG_POOL, &before, "/spec/policy/files", by("path", "/a"), Some(ours)).unwrap();
        there_and_back(&before, &held);
    }
}

#[test]
fn an_entry_that_was_there_is_changed_in_place_and_changed_back() {
    let before = thing(&json!({"files": [{"path": "/b", "x": 1}, {"path": "/a", "x": 2}]}));
    let held = Held::entry(MACHINE_CONFIG_POOL, &before, "/spec/files", by("path", "/a"), Some(json!({"path": "/a", "x": 3}))).unwrap();
    assert_eq!(there_and_back(&before, &held).data["spec"]["files"][1]["x"], 3);
}

#[test]
fn a_list_that_the_apiserver_dropped_when_it_became_empty_is_made_again() {
    let before = thing(&json!({"schema": {"rules": [{"message": "only", "rule": "a < b"}]}}));
    let held = Held::entry(MACHINE_CONFIG_POOL, &before, "/spec/schema/rules", by("message", "only"), None).unwrap();
    let dropped = thing(&json!({"schema": {}}));
    assert_eq!(held.state(Some(&dropped)), State::Ours);
    assert_eq!(write(&held, &dropped, held.was.as_ref()).data, before.data);
}

#[test]
fn what_others_added_meanwhile_stays_when_a_hold_is_released() {
    let before = thing(&json!({}));
    let ours = json!({"path": "/a"});
    let held = Held::entry(MACHINE_CONFIG_POOL, &before, "/spec/policy/files", by("path", "/a"), Some(ours.clone())).unwrap();
    let others = thing(&json!({"policy": {"files": [{"path": "/theirs"}, ours]}}));
    let released = write(&held, &others, held.was.as_ref());
    assert_eq!(released.data["spec"], json!({"policy": {"files": [{"path": "/theirs"}]}}));
}

#[test]
fn what_is_so_already_is_not_held_and_what_others_changed_is_told_apart() {
    let before = thing(&json!({"replicas": 1}));
    assert_eq!(Held::field(MACHINE_CONFIG_POOL, &before, "/spec/replicas", Some(json!(1))), None);
    let held = Held::field(MACHINE_CONFIG_POOL, &before, "/spec/replicas", Some(json!(0))).unwrap();
    assert_eq!(held.state(Some(&thing(&json!({"replicas": 2})))), State::Changed(Some(json!(2))));
    assert_eq!(held.state(None), State::Gone);
}

#[test]
fn changes_are_told_in_words_a_user_can_look_up() {
    let before = object(
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": "n"}, "spec": {"replicas": 1}}),
    );
    let held = Held::field(DEPLOYMENT, &before, "/spec/replicas", Some(json!(0))).unwrap();
    assert_eq!(held.taking(), "Deployment n/d: replicas from 1 to 0");
    assert_eq!(held.releasing(), "Deployment n/d: replicas from 0 to 1");
    let rule = thing(&json!({"rules": [{"message": "no more", "rule": "r"}]}));
    let held = Held::entry(MACHINE_CONFIG_POOL, &rule, "/spec/rules", by("message", "no more"), None).unwrap();
    assert_eq!(held.taking(), "MachineConfigPool x: \"no more\" taken out");
    assert_eq!(held.releasing(), "MachineConfigPool x: \"no more\" added (rule \"r\")");
    assert!(held.conflict(Some(&json!(5))).starts_with("MachineConfigPool x: \"no more\" is 5"));
}
