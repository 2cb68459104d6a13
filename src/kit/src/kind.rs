//! The kinds a migration reads and writes. Objects stay untyped JSON: what we write back must keep every field we do not know.

use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject};

/// A resource kind: where it lives in the API and whether it has a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind {
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The version that is read and written.
    pub version: &'static str,
    /// As in a manifest.
    pub kind: &'static str,
    /// As in a path.
    pub plural: &'static str,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
}

const fn namespaced(group: &'static str, version: &'static str, kind: &'static str, plural: &'static str) -> Kind {
    Kind { group, version, kind, plural, namespaced: true }
}

const fn cluster(group: &'static str, version: &'static str, kind: &'static str, plural: &'static str) -> Kind {
    Kind { group, version, kind, plural, namespaced: false }
}

#[allow(missing_docs, reason = "each is named as its kind")]
mod kinds {
    use super::{Kind, cluster, namespaced};

    pub const VMI: Kind = namespaced("config.openshift.io", "v1alpha1", "VSphereMigrationInfra", "vspheremigrationinfra");

    pub const NODE: Kind = cluster("", "v1", "Node", "nodes");
    pub const POD: Kind = namespaced("", "v1", "Pod", "pods");
    pub const SECRET: Kind = namespaced("", "v1", "Secret", "secrets");
    pub const CONFIG_MAP: Kind = namespaced("", "v1", "ConfigMap", "configmaps");
    pub const PERSISTENT_VOLUME: Kind = cluster("", "v1", "PersistentVolume", "persistentvolumes");
    pub const DEPLOYMENT: Kind = namespaced("apps", "v1", "Deployment", "deployments");
    pub const DAEMON_SET: Kind = namespaced("apps", "v1", "DaemonSet", "daemonsets");
    pub const POD_DISRUPTION_BUDGET: Kind = namespaced("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets");
    pub const VOLUME_ATTACHMENT: Kind = cluster("storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments");
    pub const ADMISSION_POLICY: Kind =
        cluster("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies");
    pub const SELF_SUBJECT_ACCESS_REVIEW: Kind =
        cluster("authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews");
    pub const LEASE: Kind = namespaced("coordination.k8s.io", "v1", "Lease", "leases");
    pub const CRD: Kind = cluster("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions");

    pub const INFRASTRUCTURE: Kind = cluster("config.openshift.io", "v1", "Infrastructure", "infrastructures");
    pub const CLUSTER_VERSION: Kind = cluster("config.openshift.io", "v1", "ClusterVersion", "clusterversions");
    pub const CLUSTER_OPERATOR: Kind = cluster("config.openshift.io", "v1", "ClusterOperator", "clusteroperators");
    pub const MACHINE: Kind = namespaced("machine.openshift.io", "v1beta1", "Machine", "machines");
    pub const MACHINE_SET: Kind = namespaced("machine.openshift.io", "v1beta1", "MachineSet", "machinesets");
    pub const MACHINE_HEALTH_CHECK: Kind = namespaced("machine.openshift.io", "v1beta1", "MachineHealthCheck", "machinehealthchecks");
    pub const CONTROL_PLANE_MACHINE_SET: Kind =
        namespaced("machine.openshift.io", "v1", "ControlPlaneMachineSet", "controlplanemachinesets");
    pub const MACHINE_AUTOSCALER: Kind = namespaced("autoscaling.openshift.io", "v1beta1", "MachineAutoscaler", "machineautoscalers");
    pub const CLUSTER_AUTOSCALER: Kind = cluster("autoscaling.openshift.io", "v1", "ClusterAutoscaler", "clusterautoscalers");
    pub const CONTROLLER_CONFIG: Kind = cluster("machineconfiguration.openshift.io", "v1", "ControllerConfig", "controllerconfigs");
    pub const MACHINE_CONFIG_POOL: Kind = cluster("machineconfiguration.openshift.io", "v1", "MachineConfigPool", "machineconfigpools");
    pub const MACHINE_CONFIGURATION: Kind = cluster("operator.openshift.io", "v1", "MachineConfiguration", "machineconfigurations");
    pub const CLOUD_CREDENTIAL: Kind = cluster("operator.openshift.io", "v1", "CloudCredential", "cloudcredentials");
    pub const CLUSTER_CSI_DRIVER: Kind = cluster("operator.openshift.io", "v1", "ClusterCSIDriver", "clustercsidrivers");
    pub const CREDENTIALS_REQUEST: Kind = namespaced("cloudcredential.openshift.io", "v1", "CredentialsRequest", "credentialsrequests");
}
pub use kinds::*;

impl Kind {
    /// As in a manifest.
    pub fn api_version(self) -> String {
        if self.group.is_empty() { self.version.to_owned() } else { format!("{}/{}", self.group, self.version) }
    }

    /// What kube needs to know of it.
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
}
