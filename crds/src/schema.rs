//! The vmi's schema, and the pieces of it that no type of ours stands for.

use std::borrow::Cow;

use schemars::transform::{Transform, transform_subschemas};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value};

use crate::rules;
use crate::spec::{VSphereMigrationInfra, VSphereMigrationInfraSpec};
use crate::status::VSphereMigrationInfraStatus;

/// By hand because of the rules between spec and status, which only the root sees.
impl JsonSchema for VSphereMigrationInfra {
    fn schema_name() -> Cow<'static, str> {
        "VSphereMigrationInfra".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = json_schema!({
            "description": "The migration of a cluster from one vCenter to another.",
            "type": "object",
            "required": ["spec"],
            "properties": {
                "spec": generator.subschema_for::<VSphereMigrationInfraSpec>(),
                "status": generator.subschema_for::<VSphereMigrationInfraStatus>(),
            },
            "x-kubernetes-validations": rules::of_the_vmi(),
        });
        WithoutNull.transform(&mut schema);
        schema
    }
}

/// Takes `null` away from what may be absent. To an apiserver a field that is null is there, and rules that ask `has()` would
/// take it for a value.
struct WithoutNull;

impl Transform for WithoutNull {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        let Some(fields) = schema.as_object_mut() else { return };
        if let Some(Value::Array(types)) = fields.get_mut("type") {
            types.retain(|name| name != "null");
            if let [only] = types.as_slice() {
                let only = only.clone();
                fields.insert("type".to_owned(), only);
            }
        }
        if let Some(something) = something_or_null(fields) {
            fields.remove("anyOf");
            for (key, value) in something {
                fields.entry(key).or_insert(value);
            }
        }
    }
}

/// The one alternative to null.
fn something_or_null(fields: &Map<String, Value>) -> Option<Map<String, Value>> {
    match fields.get("anyOf")?.as_array()?.as_slice() {
        [something, null] if null["type"] == "null" => something.as_object().cloned(),
        _ => None,
    }
}

pub(crate) fn time(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "format": "date-time", "maxLength": 40})
}

/// metav1.Condition, with bounds, and with reasons that may be the id of a rule.
pub(crate) fn conditions(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 40,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "x-kubernetes-map-type": "atomic",
            "required": ["type", "status", "lastTransitionTime", "reason", "message"],
            "properties": {
                "type": {"type": "string", "minLength": 1, "maxLength": 64, "pattern": "^[A-Z][A-Za-z]*$"},
                "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
                "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
                "lastTransitionTime": time(generator),
                "reason": {"type": "string", "minLength": 1, "maxLength": 128, "pattern": "^[A-Za-z]([A-Za-z0-9_,:-]*[A-Za-z0-9_])?$"},
                "message": {"type": "string", "maxLength": 1024},
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use kube::CustomResourceExt as _;
    use serde_json::{Value, json};

    use crate::spec::VSphereMigrationInfra;

    fn crd() -> Value {
        serde_json::to_value(VSphereMigrationInfra::crd()).unwrap()
    }

    fn root() -> Value {
        crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"].take()
    }

    /// Every schema below this one, with its path.
    fn walk(path: &str, schema: &Value, look: &mut impl FnMut(&str, &Value)) {
        look(path, schema);
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            walk(&format!("{path}.{name}"), field, look);
        }
        if let Some(items) = schema.get("items") {
            walk(&format!("{path}[]"), items, look);
        }
    }

    fn wrong(judge: impl Fn(&Value) -> bool) -> Vec<String> {
        let mut found = Vec::new();
        let mut seen = 0;
        walk("", &root(), &mut |path, schema| {
            seen += 1;
            if judge(schema) {
                found.push(path.to_owned());
            }
        });
        assert!(seen > 100, "only {seen} fields were looked at");
        found
    }

    #[test]
    fn the_yaml_in_the_repository_is_what_the_types_say() {
        let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("yaml/vspheremigrationinfra.yaml");
        let generated =
            format!("# Generated; UPDATE_GOLDEN=1 cargo test -p vmi-crds rewrites it.\n{}", serde_saphyr::to_string(&crd()).unwrap());
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&file, &generated).unwrap();
        }
        let stored = std::fs::read_to_string(&file).unwrap();
        assert!(stored == generated, "{} is not what the types say: run UPDATE_GOLDEN=1 cargo test -p vmi-crds", file.display());
        assert_eq!(serde_saphyr::from_str::<Value>(&stored).unwrap(), crd(), "the YAML reads back differently");
    }

    #[test]
    fn every_list_and_every_string_is_bounded() {
        assert_eq!(wrong(|schema| schema["type"] == "array" && !schema["maxItems"].is_u64()), [""; 0]);
        assert_eq!(wrong(|schema| schema["type"] == "string" && !schema["maxLength"].is_u64() && schema.get("enum").is_none()), [""; 0]);
        assert_eq!(wrong(|schema| schema.get("additionalProperties").is_some()), [""; 0]);
    }

    #[test]
    fn every_field_has_one_type_every_list_says_how_it_merges_and_nothing_is_null() {
        assert_eq!(wrong(|schema| !schema["type"].is_string()), [""; 0]);
        assert_eq!(wrong(|schema| schema["type"] == "array" && schema.get("x-kubernetes-list-type").is_none()), [""; 0]);
        assert_eq!(wrong(|schema| schema.get("nullable").is_some() || schema.get("default") == Some(&Value::Null)), [""; 0]);
    }

    #[test]
    fn what_one_writer_owns_as_a_whole_has_no_owners_of_its_parts() {
        let status = root()["properties"]["status"]["properties"].take();
        for (name, field) in status.as_object().unwrap() {
            let owned = if field["type"] == "array" { &field["items"] } else { field };
            assert!(owned["type"] != "object" || owned["x-kubernetes-map-type"] == "atomic", "{name}");
        }
    }

    #[test]
    fn every_number_has_a_format_that_apiservers_know() {
        let known = [json!("int32"), json!("int64")];
        assert_eq!(wrong(|schema| schema["type"] == "integer" && !known.contains(&schema["format"])), [""; 0]);
    }

    #[test]
    fn every_field_with_a_fixed_value_is_a_field_of_the_spec() {
        let spec = root()["properties"]["spec"]["properties"].take();
        for field in crate::rules::FIXED_ONCE_STARTED {
            assert!(spec.get(field).is_some(), "{field}");
        }
        let may_change =
            ["state", "approval", "approvedPlan", "health", "trust", "credentialsSecret", "rollout", "acknowledged", "volumes"];
        let all = crate::rules::FIXED_ONCE_STARTED.len() + may_change.len();
        assert_eq!(spec.as_object().unwrap().len(), all, "a new field either may change once started or may not");
    }
}
