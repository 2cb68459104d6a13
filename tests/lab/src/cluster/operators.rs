//! ClusterOperators of the parts that the lab does not run: written once, as those parts report them when all is well.

use serde_json::{Value, json};

use crate::shape::Shape;

/// Reported by nobody in the lab.
const SILENT: &[&str] = &[
    "authentication",
    "console",
    "dns",
    "ingress",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "machine-api",
    "monitoring",
    "network",
    "openshift-apiserver",
    "storage",
];

/// Written by a running part: the real one or its stand-in.
const REPORTED: &[&str] =
    &["cloud-controller-manager", "cloud-credential", "config-operator", "control-plane-machine-set", "etcd", "machine-config"];

/// What the shape's operators say when it is installed.
pub fn objects(shape: &Shape) -> Vec<Value> {
    let now = k8s_openapi::jiff::Timestamp::now().to_string();
    let condition = |kind: &str, status: &str| json!({"type": kind, "status": status, "reason": "AsExpected", "message": "", "lastTransitionTime": now});
    let operator =
        |name: &str| json!({"apiVersion": "config.openshift.io/v1", "kind": "ClusterOperator", "metadata": {"name": name}, "spec": {}});
    let silent = SILENT.iter().map(|name| {
        let mut object = operator(name);
        if shape.storage && *name == "storage" {
            return object;
        }
        let broken = if shape.degraded_operators.iter().any(|known| known == name) { "True" } else { "False" };
        object["status"] = json!({
            "conditions": [condition("Available", "True"), condition("Progressing", "False"), condition("Degraded", broken), condition("Upgradeable", "True")],
            "versions": [{"name": "operator", "version": shape.version}],
        });
        object
    });
    REPORTED.iter().map(|name| operator(name)).chain(silent).collect()
}
