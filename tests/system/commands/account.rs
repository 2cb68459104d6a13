//! The manifests on a real apiserver: they are accepted as kustomize builds them, and the account has the rights that a migration
//! takes and no others.

use std::path::{Path, PathBuf};

use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::api::{Api, PostParams};
use serde_json::Value;

use crate::support::asking;
use crate::support::lab::Lab;
use crate::support::suite::TestResult;

const NAMESPACE: &str = "openshift-vsphere-migration";
const CONFIG: &str = "config.openshift.io";
const MACHINE_API: &str = "openshift-machine-api";

/// A request: verb, group, resource, namespace, name.
type Request = (&'static str, &'static str, &'static str, &'static str, &'static str);

const ALLOWED: &[Request] = &[
    ("patch", CONFIG, "vspheremigrationinfra/status", NAMESPACE, "moving"),
    ("watch", CONFIG, "vspheremigrationinfra", NAMESPACE, ""),
    ("create", "", "secrets", NAMESPACE, ""),
    ("create", "coordination.k8s.io", "leases", NAMESPACE, ""),
    ("update", CONFIG, "infrastructures", "", "cluster"),
    ("update", "", "secrets", "kube-system", "vsphere-creds"),
    ("watch", "", "secrets", "kube-system", "vsphere-creds"),
    ("update", "", "secrets", MACHINE_API, "vsphere-cloud-credentials"),
    ("update", "", "configmaps", "openshift-config", "cloud-provider-config"),
    ("delete", "", "pods", MACHINE_API, "machine-api-controllers"),
    ("get", "", "pods/log", "openshift-cluster-csi-drivers", "vmware-vsphere-csi-driver-controller"),
    ("get", "apps", "deployments", "openshift-cluster-version", "cluster-version-operator"),
    ("get", "apiextensions.k8s.io", "customresourcedefinitions", "", "infrastructures.config.openshift.io"),
    ("delete", "machine.openshift.io", "controlplanemachinesets", MACHINE_API, "cluster"),
    ("create", "machine.openshift.io", "machinesets", MACHINE_API, ""),
    ("patch", "machine.openshift.io", "machinehealthchecks", MACHINE_API, "workers"),
    ("patch", "autoscaling.openshift.io", "machineautoscalers", MACHINE_API, "workers"),
    ("create", "authentication.k8s.io", "tokenreviews", "", ""),
];

const LEGACY: &[Request] = &[
    ("patch", "apps", "deployments", "openshift-cluster-version", "cluster-version-operator"),
    ("patch", "apiextensions.k8s.io", "customresourcedefinitions", "", "infrastructures.config.openshift.io"),
    ("patch", "apiextensions.k8s.io", "customresourcedefinitions", "", "controllerconfigs.machineconfiguration.openshift.io"),
    ("update", "machineconfiguration.openshift.io", "controllerconfigs", "", "machine-config-controller"),
    ("patch", CONFIG, "clusterversions", "", "version"),
];

const FORBIDDEN: &[Request] = &[
    ("get", CONFIG, "vspheremigrationinfra", "default", "moving"),
    ("get", "", "secrets", "kube-system", "another"),
    ("list", "", "secrets", "kube-system", ""),
    ("delete", "", "secrets", "kube-system", "vsphere-creds"),
    ("get", "", "secrets", "openshift-config", "pull-secret"),
    ("update", "", "configmaps", "openshift-config", "another"),
    ("delete", "", "pods", "kube-system", "etcd"),
    ("delete", "", "pods", "openshift-cluster-version", "cluster-version-operator"),
    ("get", "", "pods/log", "default", "any"),
    ("create", "", "pods/exec", MACHINE_API, "machine-api-controllers"),
    ("patch", "apps", "deployments", MACHINE_API, "machine-api-controllers"),
    ("patch", "apiextensions.k8s.io", "customresourcedefinitions", "", "machines.machine.openshift.io"),
    ("delete", "", "nodes", "", "any"),
    ("create", "machine.openshift.io", "machinesets", "default", ""),
    ("delete", "machine.openshift.io", "machines", MACHINE_API, "any"),
    ("delete", "machine.openshift.io", "controlplanemachinesets", "default", "cluster"),
    ("patch", "machine.openshift.io", "machinehealthchecks", "default", "any"),
    ("delete", "", "pods", "openshift-machine-config-operator", "any"),
    ("create", "rbac.authorization.k8s.io", "clusterrolebindings", "", ""),
    ("impersonate", "", "users", "", "system:admin"),
];

fn folder(overlay: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/overlays").join(overlay)
}

async fn allowed(lab: &Lab, (verb, group, resource, namespace, name): Request) -> TestResult<bool> {
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let wanted = ResourceAttributes {
        verb: Some(verb.to_owned()),
        group: Some(group.to_owned()),
        resource: Some(resource.to_owned()),
        subresource: Some(subresource.to_owned()),
        namespace: Some(namespace.to_owned()),
        name: Some(name.to_owned()),
        ..ResourceAttributes::default()
    };
    let groups = ["system:authenticated".to_owned(), "system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{NAMESPACE}")];
    let review = SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: Some(format!("system:serviceaccount:{NAMESPACE}:vmi-operator")),
            groups: Some(groups.to_vec()),
            resource_attributes: Some(wanted),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    };
    let answer = Api::<SubjectAccessReview>::all(lab.client.clone()).create(&PostParams::default(), &review).await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}

/// Installs all but the Deployment, whose image no lab has, and has the apiserver look at that one.
async fn install(lab: &Lab, overlay: &str, files: &Path) -> TestResult<String> {
    let built = lab.kubectl(&["kustomize", &folder(overlay).to_string_lossy()]).await?.success()?.stdout;
    let (deployment, rest): (Vec<Value>, Vec<Value>) =
        vmi_lab::yaml::documents(&built)?.into_iter().partition(|object| object["kind"] == "Deployment");
    assert_eq!(deployment.len(), 1);
    let list = |items: Vec<Value>| serde_json::json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string();
    let [all_but_it, it] = ["rest.json", "deployment.json"].map(|name| files.join(name).to_string_lossy().into_owned());
    std::fs::write(&all_but_it, list(rest))?;
    std::fs::write(&it, list(deployment))?;
    lab.kubectl(&["apply", "--server-side", "-f", &all_but_it]).await?.success()?;
    lab.kubectl(&["apply", "--dry-run=server", "-f", &it]).await?.success()?;
    Ok(all_but_it)
}

async fn has_the_rights(lab: &Lab, overlay: &str, also_legacy: bool) -> TestResult {
    let files = tempfile::tempdir()?;
    let installed = install(lab, overlay, files.path()).await?;
    let mut wrong = Vec::new();
    for request in ALLOWED.iter().chain(LEGACY.iter().filter(|_| also_legacy)) {
        asking::until("a right that was just given", async || {
            if allowed(lab, *request).await? { Ok(()) } else { Err(format!("{request:?} should be allowed").into()) }
        })
        .await?;
    }
    for (requests, wanted) in [(LEGACY, also_legacy), (FORBIDDEN, false)] {
        for request in requests {
            if allowed(lab, *request).await? != wanted {
                wrong.push(format!("{request:?} should be {}", if wanted { "allowed" } else { "denied" }));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    lab.kubectl(&["delete", "-f", &installed]).await?.success()?;
    Ok(())
}

pub async fn on_the_native_path_the_account_may_do_what_it_needs_and_no_more(lab: &Lab) -> TestResult {
    has_the_rights(lab, "native", false).await
}

pub async fn on_the_legacy_path_the_account_may_also_relax_the_rules(lab: &Lab) -> TestResult {
    has_the_rights(lab, "legacy", true).await
}
