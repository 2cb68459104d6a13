//! The OpenShift cluster that a lab installs: its objects, in the order in which an installer would make them.

pub mod config;
pub mod crds;
pub mod machines;
pub mod operators;
pub mod webhooks;
pub mod workloads;
pub mod written;

use std::time::Duration;

use kube::Client;
use serde_json::{Value, json};

use crate::kubernetes;
use crate::shape::Shape;
use crate::vcenter::INFRA_ID;

/// The field manager of what the lab installs.
pub const MANAGER: &str = "vmi-lab";

/// Every namespace the cluster's parts live in.
pub const NAMESPACES: &[&str] = &[
    "openshift-cloud-controller-manager",
    "openshift-cloud-controller-manager-operator",
    "openshift-cloud-credential-operator",
    "openshift-cluster-csi-drivers",
    "openshift-cluster-storage-operator",
    "openshift-cluster-version",
    "openshift-config",
    "openshift-config-managed",
    "openshift-config-operator",
    "openshift-etcd",
    "openshift-etcd-operator",
    "openshift-machine-api",
    "openshift-machine-config-operator",
];

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Kubernetes(#[from] kubernetes::Error),
    #[error("manifest {name}: {reason}")]
    Manifest { name: String, reason: String },
    #[error(transparent)]
    Tools(#[from] crate::tools::Error),
    #[error(transparent)]
    GaveUp(#[from] crate::cache::GaveUp),
    #[error(transparent)]
    Vcenter(#[from] crate::vcenter::Error),
    #[error(transparent)]
    Pki(#[from] crate::pki::Error),
}

/// Applies objects side by side; the order among them does not matter.
pub async fn apply_all(client: &Client, manifests: &[Value]) -> Result<(), Error> {
    use futures::{StreamExt as _, TryStreamExt as _};
    futures::stream::iter(manifests)
        .map(|manifest| apply_when_served(client, manifest))
        .buffer_unordered(8)
        .try_for_each(|()| async { Ok(()) })
        .await?;
    Ok(())
}

/// The apiserver says that a CRD is established a moment before it serves it, and tells nobody when it does: for that moment this
/// asks ten times a second.
async fn apply_when_served(client: &Client, manifest: &Value) -> Result<(), kubernetes::Error> {
    let end = tokio::time::Instant::now() + Duration::from_secs(20);
    loop {
        match kubernetes::apply(client, MANAGER, manifest).await {
            Err(error) if error.is_not_found() && tokio::time::Instant::now() < end => {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            result => return result.map(|_| ()),
        }
    }
}

/// Namespaces, and the rights of everything that runs in them.
pub fn foundation() -> Vec<Value> {
    let mut objects: Vec<Value> =
        NAMESPACES.iter().map(|name| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})).collect();
    objects.extend(crate::faults::board::empty());
    // OpenShift's parts come with roles of their own, which are not what is tested here. They keep their own identities, so the
    // audit log tells who did what.
    objects.push(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "vmi-lab-parts-of-openshift"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": NAMESPACES.iter()
            .map(|name| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": format!("system:serviceaccounts:{name}")}))
            .collect::<Vec<_>>(),
    }));
    objects
}

/// What a shape has beside what all have.
pub fn more(shape: &Shape) -> Result<Vec<Value>, Error> {
    match shape.objects.as_deref() {
        None => Ok(Vec::new()),
        Some("rich.yaml") => {
            let values = [("INFRA_ID", INFRA_ID), ("VERSION", &shape.version)];
            template("rich.yaml", include_str!("../../manifests/rich.yaml"), &values)
        }
        Some(name) => Err(Error::Manifest { name: name.to_owned(), reason: "there is no such file in tests/lab/manifests".to_owned() }),
    }
}

/// Reads a manifest file of the lab, with its `${...}` filled in.
pub fn template(name: &str, text: &str, values: &[(&str, &str)]) -> Result<Vec<Value>, Error> {
    let mut text = text.to_owned();
    for (key, value) in values {
        text = text.replace(&format!("${{{key}}}"), value);
    }
    let fail = |reason: String| Error::Manifest { name: name.to_owned(), reason };
    if let Some(at) = text.find("${").filter(|at| !text[*at..].starts_with("${...}")) {
        return Err(fail(format!("nothing is known for {}", text[at..].split('}').next().unwrap_or_default())));
    }
    crate::yaml::documents(&text).map_err(|error| fail(error.to_string()))
}
