//! ClusterOperators of the parts that the lab does not run: written once, as those parts report them when all is well.

use serde_json::{Value, json};

/// Reported by nobody in the lab.
const SILENT: &[&str] = &[
    "authentication",
    "console",
    "dns",
    "etcd",
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
    &["cloud-controller-manager", "cloud-credential", "config-operator", "control-plane-machine-set", "machine-config"];

pub fn objects(version: &str) -> Vec<Value> {
    let now = k8s_openapi::jiff::Timestamp::now().to_string();
    let condition = |kind: &str, status: &str| json!({"type": kind, "status": status, "reason": "AsExpected", "message": "", "lastTransitionTime": now});
    let operator =
        |name: &str| json!({"apiVersion": "config.openshift.io/v1", "kind": "ClusterOperator", "metadata": {"name": name}, "spec": {}});
    let silent = SILENT.iter().map(|name| {
        let mut object = operator(name);
        object["status"] = json!({
            "conditions": [condition("Available", "True"), condition("Progressing", "False"), condition("Degraded", "False"), condition("Upgradeable", "True")],
            "versions": [{"name": "operator", "version": version}],
        });
        object
    });
    REPORTED.iter().map(|name| operator(name)).chain(silent).collect()
}
