//! The kinds the lab works with, and the few requests it makes of an apiserver. Objects stay untyped JSON: the lab writes what
//! OpenShift's own controllers read, and must never drop a field it does not know.

use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde_json::Value;

/// A resource kind: where it lives in the API and whether it has a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Kind {
    pub group: &'static str,
    pub version: &'static str,
    pub kind: &'static str,
    pub plural: &'static str,
    pub namespaced: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot {verb} {kind} {name:?}: {source}")]
    Request { verb: &'static str, kind: String, name: String, source: Box<kube::Error> },
    #[error("the object has no {0}, which every Kubernetes object needs")]
    Incomplete(&'static str),
    #[error("the lab does not know the kind {kind} of {api_version}: add it to tests/lab/src/kubernetes.rs")]
    UnknownKind { api_version: String, kind: String },
}

impl Error {
    /// The apiserver's own answer, where there was one.
    pub fn status(&self) -> Option<&kube::core::Status> {
        match self {
            Error::Request { source, .. } => match source.as_ref() {
                kube::Error::Api(status) => Some(status),
                _ => None,
            },
            _ => None,
        }
    }

    pub fn is_not_found(&self) -> bool {
        self.status().is_some_and(|status| status.code == 404)
    }

    pub fn is_conflict(&self) -> bool {
        self.status().is_some_and(|status| status.code == 409)
    }
}

const fn namespaced(group: &'static str, version: &'static str, kind: &'static str, plural: &'static str) -> Kind {
    Kind { group, version, kind, plural, namespaced: true }
}

const fn cluster(group: &'static str, version: &'static str, kind: &'static str, plural: &'static str) -> Kind {
    Kind { group, version, kind, plural, namespaced: false }
}

pub const NAMESPACE: Kind = cluster("", "v1", "Namespace", "namespaces");
pub const NODE: Kind = cluster("", "v1", "Node", "nodes");
pub const POD: Kind = namespaced("", "v1", "Pod", "pods");
pub const SECRET: Kind = namespaced("", "v1", "Secret", "secrets");
pub const CONFIG_MAP: Kind = namespaced("", "v1", "ConfigMap", "configmaps");
pub const SERVICE: Kind = namespaced("", "v1", "Service", "services");
pub const SERVICE_ACCOUNT: Kind = namespaced("", "v1", "ServiceAccount", "serviceaccounts");
pub const EVENT: Kind = namespaced("", "v1", "Event", "events");
pub const PERSISTENT_VOLUME: Kind = cluster("", "v1", "PersistentVolume", "persistentvolumes");
pub const DEPLOYMENT: Kind = namespaced("apps", "v1", "Deployment", "deployments");
pub const REPLICA_SET: Kind = namespaced("apps", "v1", "ReplicaSet", "replicasets");
pub const DAEMON_SET: Kind = namespaced("apps", "v1", "DaemonSet", "daemonsets");
pub const LEASE: Kind = namespaced("coordination.k8s.io", "v1", "Lease", "leases");
pub const PRIORITY_CLASS: Kind = cluster("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses");
pub const CLUSTER_ROLE: Kind = cluster("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles");
pub const CLUSTER_ROLE_BINDING: Kind = cluster("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings");
pub const ROLE: Kind = namespaced("rbac.authorization.k8s.io", "v1", "Role", "roles");
pub const ROLE_BINDING: Kind = namespaced("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings");
pub const STORAGE_CLASS: Kind = cluster("storage.k8s.io", "v1", "StorageClass", "storageclasses");
pub const VOLUME_ATTACHMENT: Kind = cluster("storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments");
pub const POD_DISRUPTION_BUDGET: Kind = namespaced("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets");
pub const NETWORK_POLICY: Kind = namespaced("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies");
pub const CRD: Kind = cluster("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions");
pub const VALIDATING_WEBHOOK: Kind =
    cluster("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations");
pub const MUTATING_WEBHOOK: Kind =
    cluster("admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations");
pub const ADMISSION_POLICY: Kind =
    cluster("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies");
pub const ADMISSION_POLICY_BINDING: Kind =
    cluster("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings");

pub const INFRASTRUCTURE: Kind = cluster("config.openshift.io", "v1", "Infrastructure", "infrastructures");
pub const CLUSTER_VERSION: Kind = cluster("config.openshift.io", "v1", "ClusterVersion", "clusterversions");
pub const CLUSTER_OPERATOR: Kind = cluster("config.openshift.io", "v1", "ClusterOperator", "clusteroperators");
pub const FEATURE_GATE: Kind = cluster("config.openshift.io", "v1", "FeatureGate", "featuregates");
pub const NETWORK: Kind = cluster("config.openshift.io", "v1", "Network", "networks");
pub const DNS: Kind = cluster("config.openshift.io", "v1", "DNS", "dnses");
pub const PROXY: Kind = cluster("config.openshift.io", "v1", "Proxy", "proxies");
pub const MACHINE: Kind = namespaced("machine.openshift.io", "v1beta1", "Machine", "machines");
pub const MACHINE_SET: Kind = namespaced("machine.openshift.io", "v1beta1", "MachineSet", "machinesets");
pub const MACHINE_HEALTH_CHECK: Kind = namespaced("machine.openshift.io", "v1beta1", "MachineHealthCheck", "machinehealthchecks");
pub const CONTROL_PLANE_MACHINE_SET: Kind = namespaced("machine.openshift.io", "v1", "ControlPlaneMachineSet", "controlplanemachinesets");
pub const CONTROLLER_CONFIG: Kind = cluster("machineconfiguration.openshift.io", "v1", "ControllerConfig", "controllerconfigs");
pub const MACHINE_CONFIG_POOL: Kind = cluster("machineconfiguration.openshift.io", "v1", "MachineConfigPool", "machineconfigpools");
pub const MACHINE_CONFIG: Kind = cluster("machineconfiguration.openshift.io", "v1", "MachineConfig", "machineconfigs");
pub const MACHINE_CONFIGURATION: Kind = cluster("operator.openshift.io", "v1", "MachineConfiguration", "machineconfigurations");
pub const CLOUD_CREDENTIAL: Kind = cluster("operator.openshift.io", "v1", "CloudCredential", "cloudcredentials");
pub const CLUSTER_CSI_DRIVER: Kind = cluster("operator.openshift.io", "v1", "ClusterCSIDriver", "clustercsidrivers");
pub const STORAGE: Kind = cluster("operator.openshift.io", "v1", "Storage", "storages");
pub const CREDENTIALS_REQUEST: Kind = namespaced("cloudcredential.openshift.io", "v1", "CredentialsRequest", "credentialsrequests");
pub const MACHINE_AUTOSCALER: Kind = namespaced("autoscaling.openshift.io", "v1beta1", "MachineAutoscaler", "machineautoscalers");
pub const CLUSTER_AUTOSCALER: Kind = cluster("autoscaling.openshift.io", "v1", "ClusterAutoscaler", "clusterautoscalers");
pub const VMI: Kind = namespaced("config.openshift.io", "v1alpha1", "VSphereMigrationInfra", "vspheremigrationinfra");
pub const IP_ADDRESS_CLAIM: Kind = namespaced("ipam.cluster.x-k8s.io", "v1beta1", "IPAddressClaim", "ipaddressclaims");

/// Every kind above, to find one by the words of a manifest.
pub const KINDS: &[Kind] = &[
    NAMESPACE,
    NODE,
    POD,
    SECRET,
    CONFIG_MAP,
    SERVICE,
    SERVICE_ACCOUNT,
    EVENT,
    PERSISTENT_VOLUME,
    DEPLOYMENT,
    REPLICA_SET,
    DAEMON_SET,
    LEASE,
    PRIORITY_CLASS,
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    ROLE,
    ROLE_BINDING,
    STORAGE_CLASS,
    VOLUME_ATTACHMENT,
    POD_DISRUPTION_BUDGET,
    NETWORK_POLICY,
    CRD,
    VALIDATING_WEBHOOK,
    MUTATING_WEBHOOK,
    ADMISSION_POLICY,
    ADMISSION_POLICY_BINDING,
    INFRASTRUCTURE,
    CLUSTER_VERSION,
    CLUSTER_OPERATOR,
    FEATURE_GATE,
    NETWORK,
    DNS,
    PROXY,
    MACHINE,
    MACHINE_SET,
    MACHINE_HEALTH_CHECK,
    CONTROL_PLANE_MACHINE_SET,
    CONTROLLER_CONFIG,
    MACHINE_CONFIG_POOL,
    MACHINE_CONFIG,
    MACHINE_CONFIGURATION,
    CLOUD_CREDENTIAL,
    CLUSTER_CSI_DRIVER,
    STORAGE,
    CREDENTIALS_REQUEST,
    MACHINE_AUTOSCALER,
    CLUSTER_AUTOSCALER,
    VMI,
    IP_ADDRESS_CLAIM,
];

impl Kind {
    pub fn api_version(self) -> String {
        if self.group.is_empty() { self.version.to_owned() } else { format!("{}/{}", self.group, self.version) }
    }

    pub fn resource(self) -> ApiResource {
        ApiResource {
            group: self.group.to_owned(),
            version: self.version.to_owned(),
            api_version: self.api_version(),
            kind: self.kind.to_owned(),
            plural: self.plural.to_owned(),
        }
    }

    /// The API of this kind in `namespace`; an empty namespace means all of them, or none for a cluster-wide kind.
    pub fn api(self, client: &Client, namespace: &str) -> Api<DynamicObject> {
        if self.namespaced && !namespace.is_empty() {
            Api::namespaced_with(client.clone(), namespace, &self.resource())
        } else {
            Api::all_with(client.clone(), &self.resource())
        }
    }

    /// The kind a manifest is of.
    pub fn of(manifest: &Value) -> Result<Kind, Error> {
        let api_version = manifest["apiVersion"].as_str().ok_or(Error::Incomplete("apiVersion"))?;
        let kind = manifest["kind"].as_str().ok_or(Error::Incomplete("kind"))?;
        KINDS
            .iter()
            .find(|known| known.kind == kind && known.api_version() == api_version)
            .copied()
            .ok_or_else(|| Error::UnknownKind { api_version: api_version.to_owned(), kind: kind.to_owned() })
    }
}

/// As an error that says what was tried.
pub fn failed(verb: &'static str, kind: Kind, name: &str) -> impl FnOnce(kube::Error) -> Error {
    let name = name.to_owned();
    move |source| Error::Request { verb, kind: kind.kind.to_owned(), name, source: Box::new(source) }
}

/// The object, or nothing where there is none.
pub async fn get(client: &Client, kind: Kind, namespace: &str, name: &str) -> Result<Option<DynamicObject>, Error> {
    kind.api(client, namespace).get_opt(name).await.map_err(failed("get", kind, name))
}

pub async fn list(client: &Client, kind: Kind, namespace: &str) -> Result<Vec<DynamicObject>, Error> {
    Ok(kind.api(client, namespace).list(&ListParams::default()).await.map_err(failed("list", kind, ""))?.items)
}

/// Server-side apply of a whole manifest under `manager`; its status, if it has one, is applied too.
pub async fn apply(client: &Client, manager: &str, manifest: &Value) -> Result<DynamicObject, Error> {
    let kind = Kind::of(manifest)?;
    let metadata = &manifest["metadata"];
    let name = metadata["name"].as_str().ok_or(Error::Incomplete("metadata.name"))?;
    let api = kind.api(client, metadata["namespace"].as_str().unwrap_or_default());
    let params = PatchParams::apply(manager).force();
    let applied = api.patch(name, &params, &Patch::Apply(manifest)).await.map_err(failed("apply", kind, name))?;
    if manifest.get("status").is_none() {
        return Ok(applied);
    }
    api.patch_status(name, &params, &Patch::Apply(manifest)).await.map_err(failed("apply the status of", kind, name))
}

/// A JSON merge patch.
pub async fn merge(client: &Client, kind: Kind, namespace: &str, name: &str, patch: &Value) -> Result<DynamicObject, Error> {
    kind.api(client, namespace).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.map_err(failed("patch", kind, name))
}

/// A JSON merge patch of the status subresource.
pub async fn merge_status(client: &Client, kind: Kind, namespace: &str, name: &str, patch: &Value) -> Result<DynamicObject, Error> {
    kind.api(client, namespace).patch_status(name, &PatchParams::default(), &Patch::Merge(patch)).await.map_err(failed(
        "patch the status of",
        kind,
        name,
    ))
}

/// Deletes the object; that it is gone already is no error.
pub async fn delete(client: &Client, kind: Kind, namespace: &str, name: &str) -> Result<(), Error> {
    match kind.api(client, namespace).delete(name, &DeleteParams::default()).await.map_err(failed("delete", kind, name)) {
        Ok(_) => Ok(()),
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) => Err(error),
    }
}

/// The status of a condition, as `"True"`, `"False"`, `"Unknown"`, or `""` where the object does not have it.
pub fn condition<'a>(object: &'a DynamicObject, condition: &str) -> &'a str {
    object.data["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|entry| entry["type"] == condition)
        .and_then(|entry| entry["status"].as_str())
        .unwrap_or_default()
}

/// `namespace/name`, or the name alone.
pub fn full_name(object: &DynamicObject) -> String {
    match object.namespace() {
        Some(namespace) => format!("{namespace}/{}", object.name_any()),
        None => object.name_any(),
    }
}
