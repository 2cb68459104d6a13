//! Which secrets hold vSphere credentials besides the root secret: those the CredentialsRequests name, or, where none is to be seen
//! (the operator or its requests taken away), those OpenShift is known to make.

use std::collections::BTreeSet;

use serde_json::Value;

/// The secret the cloud credential operator copies from.
pub const ROOT: (&str, &str) = ("kube-system", "vsphere-creds");

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    pub namespace: String,
    pub name: String,
    /// The CredentialsRequest it belongs to.
    pub request: String,
    /// Only there with certain features: where its namespace is missing, nothing is wrong.
    pub optional: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("CredentialsRequest {request} names no secret: spec.secretRef.{field} is empty or missing")]
pub struct Malformed {
    pub request: String,
    pub field: &'static str,
}

/// Request, namespace, secret, optional.
const KNOWN: [(&str, &str, &str, bool); 5] = [
    ("openshift-machine-api-vsphere", "openshift-machine-api", "vsphere-cloud-credentials", false),
    ("openshift-vsphere-cloud-controller-manager", "openshift-cloud-controller-manager", "vsphere-cloud-credentials", false),
    ("openshift-vmware-vsphere-csi-driver-operator", "openshift-cluster-csi-drivers", "vmware-vsphere-cloud-credentials", false),
    ("openshift-vsphere-problem-detector", "openshift-cluster-storage-operator", "vsphere-cloud-credentials", false),
    ("openshift-cluster-api-vsphere", "openshift-cluster-api", "capv-manager-bootstrap-credentials", true),
];

/// The target secrets of all vSphere requests, each once, in the order of their names.
pub fn targets(requests: &[Value]) -> Result<Vec<Target>, Malformed> {
    let mut found = BTreeSet::new();
    for request in requests.iter().filter(|request| text(request, "/spec/providerSpec/kind") == "VSphereProviderSpec") {
        let name = text(request, "/metadata/name");
        let field = |pointer, field| match text(request, pointer) {
            "" => Err(Malformed { request: name.to_owned(), field }),
            text => Ok(text.to_owned()),
        };
        found.insert(Target {
            namespace: field("/spec/secretRef/namespace", "namespace")?,
            name: field("/spec/secretRef/name", "name")?,
            request: name.to_owned(),
            optional: KNOWN.iter().any(|(known, _, _, optional)| *known == name && *optional),
        });
    }
    if found.is_empty() {
        found.extend(KNOWN.map(|(request, namespace, name, optional)| Target {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            request: request.to_owned(),
            optional,
        }));
    }
    let mut targets: Vec<_> = found.into_iter().collect();
    // Two requests may share a secret; it is written once.
    targets.dedup_by(|one, other| (&one.namespace, &one.name) == (&other.namespace, &other.name));
    Ok(targets)
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn request(name: &str, kind: &str, namespace: &str, secret: &str) -> Value {
        json!({"metadata": {"name": name}, "spec": {"providerSpec": {"kind": kind}, "secretRef": {"namespace": namespace, "name": secret}}})
    }

    #[test]
    fn every_vsphere_request_is_found_also_those_of_add_ons_and_no_other() {
        let requests = [
            request("openshift-machine-api-vsphere", "VSphereProviderSpec", "openshift-machine-api", "vsphere-cloud-credentials"),
            request("openshift-machine-api-aws", "AWSProviderSpec", "openshift-machine-api", "aws-cloud-credentials"),
            request("backup", "VSphereProviderSpec", "add-on", "own-credentials"),
        ];
        let found: Vec<_> = targets(&requests).unwrap().into_iter().map(|target| (target.namespace, target.name)).collect();
        let want = [("add-on", "own-credentials"), ("openshift-machine-api", "vsphere-cloud-credentials")];
        assert_eq!(found, want.map(|(namespace, name)| (namespace.to_owned(), name.to_owned())));
    }

    #[test]
    fn a_secret_two_requests_share_is_written_once() {
        let requests = ["one", "two"].map(|name| request(name, "VSphereProviderSpec", "ns", "shared"));
        assert_eq!(targets(&requests).unwrap().len(), 1);
    }

    #[test]
    fn without_any_vsphere_request_the_known_secrets_stand_in() {
        let aws = [request("aws", "AWSProviderSpec", "ns", "aws")];
        for requests in [&[][..], &aws[..]] {
            let found = targets(requests).unwrap();
            assert_eq!(found.len(), 5);
            let optional: Vec<_> = found.iter().filter(|target| target.optional).map(|target| target.namespace.as_str()).collect();
            assert_eq!(optional, ["openshift-cluster-api"]);
        }
    }

    #[test]
    fn a_request_without_a_secret_is_named() {
        let broken = request("broken", "VSphereProviderSpec", "ns", "");
        assert_eq!(
            targets(&[broken]).unwrap_err().to_string(),
            "CredentialsRequest broken names no secret: spec.secretRef.name is empty or missing"
        );
    }
}
