//! Deployments and Services, what they need to start, and the release payload the cluster version operator keeps them at.

use std::collections::BTreeSet;
use std::fs;
use std::net::IpAddr;
use std::path::Path;

use serde_json::{Value, json};

use super::{Error, template};
use crate::pki::Authority;
use crate::shape::Shape;

/// Deployments that the cluster version operator's payload holds; the others are made by operators of their own. Its own is
/// missing on purpose: the stand-in is quicker than its own end and would put itself back, which the real one does not.
const IN_PAYLOAD: &[&str] = &[
    "cloud-credential-operator",
    "openshift-config-operator",
    "machine-config-operator",
    "etcd-operator",
    "cluster-cloud-controller-manager-operator",
    "control-plane-machine-set-operator",
];

/// Certificates of webhooks: the Secret and the Service whose name it is for.
const SERVING: &[(&str, &str)] = &[
    ("control-plane-machine-set-operator-tls", "control-plane-machine-set-operator"),
    ("machine-api-operator-webhook-cert", "machine-api-operator-webhook"),
];

/// Deployments and Services, with the service accounts they run under and the certificates they serve with.
pub fn objects(shape: &Shape, pods: IpAddr, payload: &Path, authority: &Authority) -> Result<Vec<Value>, Error> {
    let (pods, payload) = (pods.to_string(), payload.display().to_string());
    let values = [("PODS", pods.as_str()), ("PAYLOAD", &payload), ("VERSION", &shape.version), ("GENERATION", shape.generation.name())];
    let mut objects = template("workloads.yaml", include_str!("../../manifests/workloads.yaml"), &values)?;
    if shape.storage {
        objects.extend(template("storage.yaml", include_str!("../../manifests/storage.yaml"), &values)?);
    }
    let accounts: BTreeSet<(String, String)> = objects
        .iter()
        .filter_map(|object| {
            let account = object["spec"]["template"]["spec"]["serviceAccountName"].as_str().filter(|name| *name != "default")?;
            Some((object["metadata"]["namespace"].as_str()?.to_owned(), account.to_owned()))
        })
        .collect();
    for (namespace, name) in accounts {
        objects.push(json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}));
    }
    for (secret, service) in SERVING {
        let pair = authority.server(service, &[&format!("{service}.openshift-machine-api.svc")])?;
        objects.push(json!({
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
            "metadata": {"name": secret, "namespace": "openshift-machine-api"},
            "stringData": {"tls.crt": pair.certificate, "tls.key": pair.key},
        }));
    }
    Ok(objects)
}

/// Writes the payload: these CRDs and the Deployments that belong to it.
pub fn write_payload(folder: &Path, crds: &[Value], objects: &[Value]) -> Result<(), Error> {
    let deployments = objects.iter().filter(|object| {
        object["kind"] == "Deployment" && object["metadata"]["name"].as_str().is_some_and(|name| IN_PAYLOAD.contains(&name))
    });
    let fail = |name: &str, reason: String| Error::Manifest { name: name.to_owned(), reason };
    fs::create_dir_all(folder).map_err(|error| fail("payload", error.to_string()))?;
    for object in crds.iter().chain(deployments) {
        let name = format!("{}-{}.json", object["kind"], object["metadata"]["name"]).replace('"', "").to_lowercase();
        fs::write(folder.join(&name), object.to_string()).map_err(|error| fail(&name, error.to_string()))?;
    }
    Ok(())
}
