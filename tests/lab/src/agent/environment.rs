//! What a container's process is started with: its environment and arguments, `$(NAME)` expanded as Kubernetes does.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::{Container, EnvVarSource, Pod};
use kube::api::DynamicObject;

use crate::kubernetes::{CONFIG_MAP, Kind, SECRET};

/// The secrets and config maps of a pod's namespace.
pub(super) type Objects<'a> = &'a dyn Fn(Kind, &str) -> Option<Arc<DynamicObject>>;

/// Replaces each `$(NAME)` that `lookup` knows; `$$(NAME)` stands for a literal `$(NAME)`, an unknown name stays as it is.
pub(super) fn expand(text: &str, lookup: impl Fn(&str) -> Option<String>) -> String {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        expanded.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        rest = if let Some(escaped) = after.strip_prefix('$') {
            expanded.push('$');
            escaped
        } else if let Some((name, behind)) = after.strip_prefix('(').and_then(|inner| inner.split_once(')')) {
            match lookup(name) {
                Some(value) => expanded.push_str(&value),
                None => expanded.push_str(&format!("$({name})")),
            }
            behind
        } else {
            expanded.push('$');
            after
        };
    }
    expanded.push_str(rest);
    expanded
}

/// The container's environment on top of `given`, what the lab itself tells every process. An error says what is missing.
pub(super) fn environment(
    pod: &Pod,
    container: &Container,
    given: BTreeMap<String, String>,
    objects: Objects<'_>,
    address: IpAddr,
) -> Result<BTreeMap<String, String>, String> {
    let mut variables = given;
    for source in container.env_from.iter().flatten() {
        let prefix = source.prefix.as_deref().unwrap_or_default();
        let (kind, name, optional) = match (&source.config_map_ref, &source.secret_ref) {
            (Some(from), _) => (CONFIG_MAP, &from.name, from.optional),
            (None, Some(from)) => (SECRET, &from.name, from.optional),
            (None, None) => continue,
        };
        match objects(kind, name) {
            Some(object) => {
                variables.extend(entries(kind, &object).into_iter().map(|(key, value)| (format!("{prefix}{key}"), lossy(&value))));
            }
            None if optional == Some(true) => {}
            None => return Err(missing(kind, name)),
        }
    }
    for variable in container.env.iter().flatten() {
        let value = match &variable.value_from {
            None => expand(variable.value.as_deref().unwrap_or_default(), |name| variables.get(name).cloned()),
            Some(source) => match value_from(pod, source, objects, address)? {
                Some(value) => value,
                None => continue,
            },
        };
        variables.insert(variable.name.clone(), value);
    }
    Ok(variables)
}

fn value_from(pod: &Pod, source: &EnvVarSource, objects: Objects<'_>, address: IpAddr) -> Result<Option<String>, String> {
    let (kind, name, key, optional) = if let Some(from) = &source.config_map_key_ref {
        (CONFIG_MAP, &from.name, &from.key, from.optional == Some(true))
    } else if let Some(from) = &source.secret_key_ref {
        (SECRET, &from.name, &from.key, from.optional == Some(true))
    } else if let Some(from) = &source.field_ref {
        return field(pod, &from.field_path, address).map(Some);
    } else {
        return Err("an environment variable is taken from what the lab's node agent cannot give: it knows config maps, \
                    secrets and the pod's own fields"
            .to_owned());
    };
    let Some(object) = objects(kind, name) else {
        return if optional { Ok(None) } else { Err(missing(kind, name)) };
    };
    match entries(kind, &object).remove(key) {
        Some(value) => Ok(Some(lossy(&value))),
        None if optional => Ok(None),
        None => Err(format!("couldn't find key {key} in {} {}", kind.kind, crate::kubernetes::full_name(&object))),
    }
}

pub(super) fn missing(kind: Kind, name: &str) -> String {
    format!("{} {name:?} not found", kind.kind.to_lowercase())
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The keys and values of a secret or config map.
pub(super) fn entries(kind: Kind, object: &DynamicObject) -> BTreeMap<String, Vec<u8>> {
    let section = |name: &str| object.data[name].as_object().into_iter().flatten();
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    // The apiserver only stores valid base64 here.
    let decoded = |value: &serde_json::Value| STANDARD.decode(text(value)).unwrap_or_default();
    if kind == SECRET {
        section("data").map(|(key, value)| (key.clone(), decoded(value))).collect()
    } else {
        let plain = section("data").map(|(key, value)| (key.clone(), text(value).into_bytes()));
        plain.chain(section("binaryData").map(|(key, value)| (key.clone(), decoded(value)))).collect()
    }
}

/// A field of the pod as the downward API gives it. The pod's address is the one its processes can listen on.
pub(super) fn field(pod: &Pod, path: &str, address: IpAddr) -> Result<String, String> {
    let spec = pod.spec.as_ref();
    let metadata = &pod.metadata;
    let list = |map: &Option<BTreeMap<String, String>>| {
        map.iter().flatten().map(|(key, value)| format!("{key}={value:?}")).collect::<Vec<_>>().join("\n")
    };
    let keyed = |map: &Option<BTreeMap<String, String>>, key: &str| {
        let key = key.trim_end_matches(']').trim_matches('\'');
        map.as_ref().and_then(|map| map.get(key)).cloned()
    };
    let value = match path {
        "metadata.name" => metadata.name.clone(),
        "metadata.namespace" => metadata.namespace.clone(),
        "metadata.uid" => metadata.uid.clone(),
        "metadata.labels" => Some(list(&metadata.labels)),
        "metadata.annotations" => Some(list(&metadata.annotations)),
        "spec.nodeName" => spec.and_then(|spec| spec.node_name.clone()),
        "spec.serviceAccountName" => spec.and_then(|spec| spec.service_account_name.clone()),
        "status.podIP" | "status.hostIP" | "status.podIPs" | "status.hostIPs" => Some(address.to_string()),
        _ => {
            if let Some(key) = path.strip_prefix("metadata.labels[") {
                keyed(&metadata.labels, key)
            } else if let Some(key) = path.strip_prefix("metadata.annotations[") {
                keyed(&metadata.annotations, key)
            } else {
                return Err(format!("the lab's node agent does not know the pod field {path:?}"));
            }
        }
    };
    Ok(value.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn known(name: &str) -> Option<String> {
        (name == "NAME").then(|| "value".to_owned())
    }

    #[test]
    fn references_are_expanded_as_kubernetes_does() {
        for (text, expected) in [
            ("a $(NAME) b", "a value b"),
            ("$(NAME)$(NAME)", "valuevalue"),
            ("$$(NAME)", "$(NAME)"),
            ("$$$(NAME)", "$value"),
            ("$(OTHER)", "$(OTHER)"),
            ("$NAME ${NAME} $", "$NAME ${NAME} $"),
            ("$(NAME", "$(NAME"),
        ] {
            assert_eq!(expand(text, known), expected, "{text}");
        }
    }

    fn object(value: serde_json::Value) -> Option<Arc<DynamicObject>> {
        Some(Arc::new(serde_json::from_value(value).unwrap()))
    }

    fn objects(kind: Kind, name: &str) -> Option<Arc<DynamicObject>> {
        match (kind.kind, name) {
            ("ConfigMap", "settings") => object(json!({"metadata": {"name": "settings"}, "data": {"mode": "fast"}})),
            ("Secret", "login") => object(json!({"metadata": {"name": "login"}, "data": {"user": "cm9vdA=="}})),
            _ => None,
        }
    }

    fn of(container: serde_json::Value) -> Result<BTreeMap<String, String>, String> {
        let container: Container = serde_json::from_value(container).unwrap();
        let pod: Pod = serde_json::from_value(json!({"metadata": {"name": "p", "labels": {"app": "x"}}})).unwrap();
        environment(&pod, &container, BTreeMap::from([("LAB".into(), "yes".into())]), &objects, "127.1.0.1".parse().unwrap())
    }

    #[test]
    fn variables_come_from_config_maps_secrets_the_pod_and_each_other() {
        let variables = of(json!({"name": "c", "envFrom": [{"prefix": "CFG_", "configMapRef": {"name": "settings"}}], "env": [
            {"name": "USER", "valueFrom": {"secretKeyRef": {"name": "login", "key": "user"}}},
            {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "APP", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}},
            {"name": "ALL", "value": "$(USER)@$(POD) $(CFG_mode) $(LAB) $(LATER)"},
            {"name": "LATER", "value": "too late"},
            {"name": "MAYBE", "valueFrom": {"secretKeyRef": {"name": "absent", "key": "k", "optional": true}}},
        ]}))
        .unwrap();
        assert_eq!(variables["ALL"], "root@p fast yes $(LATER)");
        assert_eq!(variables["APP"], "x");
        assert!(!variables.contains_key("MAYBE"));
    }

    #[test]
    fn what_is_missing_is_named() {
        let absent = json!({"name": "c", "env": [{"name": "X", "valueFrom": {"secretKeyRef": {"name": "absent", "key": "k"}}}]});
        assert_eq!(of(absent).unwrap_err(), "secret \"absent\" not found");
        let key = json!({"name": "c", "env": [{"name": "X", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "k"}}}]});
        assert_eq!(of(key).unwrap_err(), "couldn't find key k in ConfigMap settings");
    }
}
