//! A machine that runs and has not joined: whether its node has asked for a certificate that nobody has granted.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::Value;

use crate::view::{Object, node_name, phase};

/// A node whose request nobody grants asks again and again; a few names are enough to find them all.
const TOLD: usize = 3;

/// What is waited for besides the machine itself; empty where it is no certificate.
pub fn pending(machine: &DynamicObject, requests: &[Object]) -> String {
    if phase(machine) != "Provisioned" || node_name(machine).is_some() {
        return String::new();
    }
    let names = names(machine);
    let open = requests.iter().filter(|request| is_pending(request) && names.iter().any(|name| is_of(request, name)));
    let open: Vec<String> = open.map(|request| request.name_any()).collect();
    let told = open.iter().take(TOLD).cloned().collect::<Vec<_>>().join(", ");
    match open.len() {
        0 => String::new(),
        1 => format!("; CertificateSigningRequest {told} of it is pending"),
        2..=TOLD => format!("; CertificateSigningRequests {told} of it are pending"),
        more => format!("; CertificateSigningRequests {told} and {} more of it are pending", more - TOLD),
    }
}

/// What its node may be called: as the machine is, or as the virtual machine calls itself.
fn names(machine: &DynamicObject) -> Vec<String> {
    let addresses = machine.data["status"]["addresses"].as_array().into_iter().flatten();
    let hosts = addresses.filter(|address| address["type"] == "Hostname" || address["type"] == "InternalDNS");
    hosts.filter_map(|address| address["address"].as_str()).map(str::to_owned).chain([machine.name_any()]).collect()
}

/// Neither granted nor refused.
fn is_pending(request: &DynamicObject) -> bool {
    request.data["status"]["conditions"].as_array().is_none_or(Vec::is_empty)
}

/// Whether the node asks for itself, or somebody in its name, as it does for its first certificate.
fn is_of(request: &DynamicObject, node: &str) -> bool {
    let user = format!("system:node:{node}");
    request.data["spec"]["username"] == user.as_str()
        || subject(&request.data["spec"]["request"]).is_some_and(|der| names_user(&der, &user))
}

/// The request itself, which is PEM.
fn subject(request: &Value) -> Option<Vec<u8>> {
    let pem = String::from_utf8(STANDARD.decode(request.as_str()?).ok()?).ok()?;
    let body: String = pem.lines().filter(|line| !line.starts_with("-----")).map(str::trim).collect();
    STANDARD.decode(body).ok()
}

/// A string in DER has its length before it: so no name is taken for a longer one's.
fn names_user(der: &[u8], user: &str) -> bool {
    let Ok(length) = u8::try_from(user.len()) else { return false };
    let text: Vec<u8> = [length].into_iter().chain(user.bytes()).collect();
    length < 128 && der.windows(text.len()).any(|window| window == text)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends by panicking")]

    use std::sync::Arc;

    use serde_json::json;

    use super::*;

    /// `openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -subj /O=system:nodes/CN=system:node:worker-1`
    const OF_WORKER_1: &str = "-----BEGIN CERTIFICATE REQUEST-----
MIHxMIGYAgEAMDYxFTATBgNVBAoMDHN5c3RlbTpub2RlczEdMBsGA1UEAwwUc3lz
dGVtOm5vZGU6d29ya2VyLTEwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAASDmLtj
hUQSWZ35jC40J19b4xuPzTRCLatreRkRla/UksID0X+aEdBMBeshrZ2iaL9ySp8P
501/A1sqWRdxRjtCoAAwCgYIKoZIzj0EAwIDSAAwRQIgAPEV8C22BF9LVVA+JtGT
hrfDRzLXiA5cWRBv0hKNJOsCIQDouzCnO7HLSFFy0DUjG7RXdRmRdG+DcQtX088Z
O6hRzw==
-----END CERTIFICATE REQUEST-----
";

    fn object(value: Value) -> Object {
        Arc::new(serde_json::from_value(value).unwrap())
    }

    fn request(name: &str, user: &str, text: &str, conditions: &Value) -> Object {
        object(json!({"metadata": {"name": name}, "spec": {"username": user, "request": STANDARD.encode(text)},
            "status": {"conditions": conditions}}))
    }

    fn machine(name: &str, phase: &str) -> Object {
        let addresses = json!([{"type": "InternalIP", "address": "192.0.2.7"}, {"type": "Hostname", "address": "host-7"}]);
        object(json!({"metadata": {"name": name}, "status": {"phase": phase, "addresses": addresses}}))
    }

    #[test]
    fn certificates_that_a_new_node_waits_for_are_named() {
        let bootstrapper = "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper";
        let all = [
            request("csr-1", bootstrapper, OF_WORKER_1, &json!([])),
            request("csr-2", bootstrapper, OF_WORKER_1, &Value::Null),
            request("csr-3", bootstrapper, OF_WORKER_1, &json!([{"type": "Approved", "status": "True"}])),
            request("csr-4", "system:node:host-7", "no request at all", &json!([])),
        ];
        let waiting = |name: &str| pending(&machine(name, "Provisioned"), &all);
        assert_eq!(waiting("worker-1"), "; CertificateSigningRequests csr-1, csr-2, csr-4 of it are pending");
        for other in ["worker-10", "worker-", "orker-1", "worker-2"] {
            assert_eq!(waiting(other), "; CertificateSigningRequest csr-4 of it is pending", "{other}: by its host's name alone");
        }
        assert_eq!(pending(&machine("worker-1", "Provisioned"), &all[2..3]), "");
        let again = [&all[..], &all[..1]].concat();
        let told = "; CertificateSigningRequests csr-1, csr-2, csr-4 and 1 more of it are pending";
        assert_eq!(pending(&machine("worker-1", "Provisioned"), &again), told);
        assert_eq!(pending(&machine("worker-1", "Provisioning"), &all), "", "it does not run yet");
    }
}
