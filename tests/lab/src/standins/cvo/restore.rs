//! How an object is put back to what the payload says, kind by kind, after the rules of the real operator's merge. Both sides
//! carry the apiserver's defaults already, so what differs here differs in earnest.

use serde_json::{Map, Value, json};

use crate::kubernetes::{CONFIG_MAP, CRD, DAEMON_SET, DEPLOYMENT, Kind, NAMESPACE, SERVICE_ACCOUNT};

const INJECTED_CA: &str = "service.beta.openshift.io/inject-cabundle";

/// Fields of a pod that are the payload's, also where the payload leaves them out.
const POD_OWNED: &[&str] = &[
    "containers",
    "initContainers",
    "volumes",
    "hostNetwork",
    "hostUsers",
    "automountServiceAccountToken",
    "shareProcessNamespace",
    "securityContext",
    "dnsPolicy",
    "terminationGracePeriodSeconds",
];

/// Fields of a pod that are the payload's only where it has them.
const POD_IF_WANTED: &[&str] = &["restartPolicy", "serviceAccountName", "serviceAccount", "priorityClassName", "affinity"];

/// The object as it has to be, or nothing where it is so already.
pub fn restored(kind: Kind, existing: &Value, wanted: &Value) -> Option<Value> {
    let mut object = existing.clone();
    merge_metadata(&mut object, wanted);
    match kind {
        CRD => restore_crd(&mut object, wanted),
        DEPLOYMENT => {
            own(&mut object["spec"], &wanted["spec"], &["replicas", "selector", "paused", "minReadySeconds", "strategy"]);
            restore_pod(&mut object["spec"]["template"], &wanted["spec"]["template"]);
        }
        DAEMON_SET => {
            own(&mut object["spec"], &wanted["spec"], &["selector"]);
            restore_pod(&mut object["spec"]["template"], &wanted["spec"]["template"]);
        }
        NAMESPACE | SERVICE_ACCOUNT => {}
        CONFIG_MAP => {
            merge_map(&mut object, wanted, "data");
            merge_map(&mut object, wanted, "binaryData");
        }
        _ => {
            let keys = wanted.as_object().into_iter().flat_map(Map::keys);
            for key in keys.filter(|key| !["apiVersion", "kind", "metadata", "status"].contains(&key.as_str())) {
                object[key] = wanted[key].clone();
            }
        }
    }
    (object != *existing).then_some(object)
}

/// The whole spec is the payload's, save for the certificate that the service CA operator injects.
fn restore_crd(object: &mut Value, wanted: &Value) {
    let injected = object["metadata"]["annotations"][INJECTED_CA] == "true" && wanted["spec"]["conversion"]["strategy"] == "Webhook";
    let certificate = object["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"].clone();
    object["spec"] = wanted["spec"].clone();
    if injected && !certificate.is_null() {
        object["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"] = certificate;
    }
}

fn restore_pod(template: &mut Value, wanted: &Value) {
    merge_metadata(template, wanted);
    let (pod, wanted) = (&mut template["spec"], &wanted["spec"]);
    own(pod, wanted, POD_OWNED);
    let present: Vec<&str> = POD_IF_WANTED.iter().filter(|field| wanted.get(**field).is_some()).copied().collect();
    own(pod, wanted, &present);
    merge_map(pod, wanted, "nodeSelector");
    let mut tolerations = pod["tolerations"].as_array().cloned().unwrap_or_default();
    for toleration in wanted["tolerations"].as_array().into_iter().flatten() {
        if !tolerations.contains(toleration) {
            tolerations.push(toleration.clone());
            pod["tolerations"] = json!(tolerations);
        }
    }
}

/// Labels and annotations of the payload win; others stay.
fn merge_metadata(object: &mut Value, wanted: &Value) {
    for field in ["labels", "annotations"] {
        for (key, value) in wanted["metadata"][field].as_object().into_iter().flatten() {
            object["metadata"][field][key] = value.clone();
        }
    }
}

fn merge_map(object: &mut Value, wanted: &Value, field: &str) {
    for (key, value) in wanted[field].as_object().into_iter().flatten() {
        object[field][key] = value.clone();
    }
}

/// Takes each field from `wanted`, its absence too.
fn own(object: &mut Value, wanted: &Value, fields: &[&str]) {
    let Some(object) = object.as_object_mut() else { return };
    for field in fields {
        match wanted.get(field) {
            Some(value) => {
                object.insert((*field).to_owned(), value.clone());
            }
            None => {
                object.shift_remove(*field);
            }
        }
    }
}

/// Where two values differ, as JSON pointers, at most `limit` of them.
pub fn differences(before: &Value, after: &Value, limit: usize) -> Vec<String> {
    let mut found = Vec::new();
    walk("", before, after, &mut found);
    let more = found.len().saturating_sub(limit);
    found.truncate(limit);
    if more > 0 {
        found.push(format!("{more} more"));
    }
    found
}

fn walk(path: &str, before: &Value, after: &Value, found: &mut Vec<String>) {
    match (before, after) {
        (Value::Object(old), Value::Object(new)) => {
            for key in old.keys().chain(new.keys().filter(|key| !old.contains_key(*key))) {
                walk(&format!("{path}/{}", key.replace('~', "~0").replace('/', "~1")), &before[key], &after[key], found);
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (index, (old, new)) in old.iter().zip(new).enumerate() {
                walk(&format!("{path}/{index}"), old, new, found);
            }
        }
        _ if before == after => {}
        _ => found.push(path.to_owned()),
    }
}

#[cfg(test)]
#[path = "restore_tests.rs"]
mod tests;
