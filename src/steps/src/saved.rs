//! Originals, saved before the first change of each, in the Secret `vmi-NAME-saved`. A key is written once and never again.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kube::api::DynamicObject;
use serde_json::{Value, json};

/// Whose originals these are.
pub const OWNER: &str = "config.openshift.io/vmi-uid";
/// Set when nothing of it is needed any more.
pub const FINISHED: &str = "config.openshift.io/vmi-finished";

/// The Secret's name.
pub fn secret_name(vmi: &str) -> String {
    format!("vmi-{vmi}-saved")
}

/// What is saved under the key.
pub fn read(secret: &DynamicObject, key: &str) -> Option<Value> {
    let text = STANDARD.decode(secret.data["data"][key].as_str()?).ok()?;
    serde_json::from_slice(&text).ok()
}

/// A Secret with a first original.
pub fn first(vmi: &str, namespace: &str, uid: &str, key: &str, value: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {"name": secret_name(vmi), "namespace": namespace, "annotations": {OWNER: uid}},
        "data": {key: encode(value)},
    })
}

/// As it stands in a Secret.
pub fn encode(value: &Value) -> String {
    STANDARD.encode(value.to_string())
}

/// A JSON patch that makes the Secret of a migration that is over that of another one, with its first original.
pub fn begun_anew(secret: &DynamicObject, uid: &str, key: &str, value: &Value) -> Value {
    let mut annotations = secret.metadata.annotations.clone().unwrap_or_default();
    annotations.remove(FINISHED);
    annotations.insert(OWNER.to_owned(), uid.to_owned());
    json!([
        {"op": "test", "path": "/metadata/resourceVersion", "value": secret.metadata.resource_version},
        {"op": "add", "path": "/metadata/annotations", "value": annotations},
        {"op": "add", "path": "/data", "value": {key: encode(value)}},
    ])
}

/// A JSON patch that adds an original. Steps that are taken at the same time save into the same Secret, so that only the key itself
/// has to be missing, which is what a test for null says, and the Secret still this migration's.
pub fn added(uid: &str, key: &str, value: &Value) -> Value {
    let path = format!("/data/{}", pointer(key));
    json!([
        {"op": "test", "path": format!("/metadata/annotations/{}", pointer(OWNER)), "value": uid},
        {"op": "test", "path": path, "value": null},
        {"op": "add", "path": path, "value": encode(value)},
    ])
}

/// As a part of a JSON pointer.
fn pointer(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// Whether nothing of it is needed any more.
pub fn is_finished(secret: &DynamicObject) -> bool {
    secret.metadata.annotations.as_ref().is_some_and(|annotations| annotations.contains_key(FINISHED))
}

/// The UID of the migration whose originals these are, unless nothing of it is needed any more. Other Secrets of a migration, such as
/// the metadata it leaves on purpose, hold no originals.
pub fn unfinished_owner(secret: &DynamicObject) -> Option<&str> {
    let metadata = &secret.metadata;
    metadata.name.as_ref().filter(|name| name.starts_with("vmi-") && name.ends_with("-saved"))?;
    let owner = metadata.annotations.as_ref()?.get(OWNER)?;
    (!is_finished(secret)).then_some(owner.as_str())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends by panicking")]

    use super::*;

    #[test]
    fn only_originals_of_a_migration_that_is_not_over_are_still_needed() {
        let secret = |name: &str, annotations: Value| -> DynamicObject {
            serde_json::from_value(json!({"metadata": {"name": name, "annotations": annotations}})).unwrap()
        };
        let saved = secret_name("m");
        assert_eq!(unfinished_owner(&secret(&saved, json!({OWNER: "u"}))), Some("u"));
        assert_eq!(unfinished_owner(&secret(&saved, json!({OWNER: "u", FINISHED: "yes"}))), None);
        assert_eq!(unfinished_owner(&secret(&saved, json!({}))), None);
        assert_eq!(unfinished_owner(&secret("vmi-m-metadata", json!({OWNER: "u"}))), None, "left on purpose");
    }
}
