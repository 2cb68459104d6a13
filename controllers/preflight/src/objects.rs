//! Reading objects that stay untyped.

use serde_json::Value;

use crate::facts::Object;

/// A condition of the object's status; null where there is none.
pub fn condition<'a>(object: &'a Object, kind: &str) -> &'a Value {
    let conditions = object.data["status"]["conditions"].as_array();
    conditions.into_iter().flatten().find(|condition| condition["type"] == kind).unwrap_or(&Value::Null)
}

/// The object's name.
pub fn name(object: &Object) -> &str {
    object.metadata.name.as_deref().unwrap_or_default()
}

/// A label of the object; empty where there is none.
pub fn label<'a>(object: &'a Object, key: &str) -> &'a str {
    object.metadata.labels.as_ref().and_then(|labels| labels.get(key)).map_or("", String::as_str)
}
