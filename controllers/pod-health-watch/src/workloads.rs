//! The workloads that read or write vCenters, as data: which are replaced, and whose logs are read.

use vmi_kit::Kind;
use vmi_kit::kind::{DAEMON_SET, DEPLOYMENT};

/// A workload that is watched from the restart on.
#[derive(Debug, PartialEq, Eq)]
pub struct Workload {
    /// What rules, failures and metrics call it.
    pub component: &'static str,
    /// Deployment or DaemonSet.
    pub kind: Kind,
    /// Where it is.
    pub namespace: &'static str,
    /// Its name.
    pub name: &'static str,
    /// The labels of its pods.
    pub labels: &'static [(&'static str, &'static str)],
    /// Why its pods are replaced; without it they are only watched.
    pub restart: Option<&'static str>,
    /// Containers that speak of vCenters or of what is asked of them; the others only pass requests on.
    pub containers: &'static [&'static str],
    /// Leases that show that one of its pods does the work.
    pub leases: &'static [&'static str],
}

/// The cloud controller manager's component.
pub const CLOUD_CONTROLLER_MANAGER: &str = "cloud-controller-manager";
/// The problem detector's component.
pub const PROBLEM_DETECTOR: &str = "problem-detector";

pub(crate) const CLOUD: &str = "openshift-cloud-controller-manager";
pub(crate) const CLOUD_OPERATOR: &str = "openshift-cloud-controller-manager-operator";
pub(crate) const MACHINES: &str = "openshift-machine-api";
pub(crate) const CSI: &str = "openshift-cluster-csi-drivers";
pub(crate) const STORAGE: &str = "openshift-cluster-storage-operator";
pub(crate) const CREDENTIALS: &str = "openshift-cloud-credential-operator";
pub(crate) const CONFIGS: &str = "openshift-machine-config-operator";

/// All of them, in the order in which they are replaced.
pub const WORKLOADS: &[Workload] = &[
    Workload {
        component: CLOUD_CONTROLLER_MANAGER,
        kind: DEPLOYMENT,
        namespace: CLOUD,
        name: "vsphere-cloud-controller-manager",
        labels: &[("k8s-app", "vsphere-cloud-controller-manager")],
        restart: Some("it keeps the credentials it has read"),
        containers: &["cloud-controller-manager"],
        leases: &["cloud-controller-manager"],
    },
    Workload {
        component: "machine-api",
        kind: DEPLOYMENT,
        namespace: MACHINES,
        name: "machine-api-controllers",
        labels: &[("api", "clusterapi"), ("k8s-app", "controller")],
        restart: Some("it remembers for 12 hours which tags it did not find"),
        containers: &["machine-controller", "machineset-controller", "nodelink-controller", "machine-healthcheck-controller"],
        leases: &[
            "cluster-api-provider-vsphere-leader",
            "cluster-api-provider-machineset-leader",
            "cluster-api-provider-nodelink-leader",
            "cluster-api-provider-healthcheck-leader",
        ],
    },
    Workload {
        component: "csi-driver-operator",
        kind: DEPLOYMENT,
        namespace: CSI,
        name: "vmware-vsphere-csi-driver-operator",
        labels: &[("name", "vmware-vsphere-csi-driver-operator")],
        restart: Some("it may wait long before it looks again"),
        containers: &["vmware-vsphere-csi-driver-operator"],
        leases: &[],
    },
    Workload {
        component: PROBLEM_DETECTOR,
        kind: DEPLOYMENT,
        namespace: STORAGE,
        name: "vsphere-problem-detector-operator",
        labels: &[("name", "vsphere-problem-detector-operator")],
        restart: Some("it looks only once an hour"),
        containers: &["vsphere-problem-detector-operator"],
        leases: &[],
    },
    Workload {
        component: "cloud-controller-manager-operator",
        kind: DEPLOYMENT,
        namespace: CLOUD_OPERATOR,
        name: "cluster-cloud-controller-manager-operator",
        labels: &[("k8s-app", "cloud-manager-operator")],
        restart: None,
        containers: &["cluster-cloud-controller-manager", "config-sync-controllers"],
        leases: &[],
    },
    watched(
        "machine-api-operator",
        DEPLOYMENT,
        MACHINES,
        "machine-api-operator",
        &[("k8s-app", "machine-api-operator")],
        &["machine-api-operator"],
    ),
    watched(
        "control-plane-machine-set",
        DEPLOYMENT,
        MACHINES,
        "control-plane-machine-set-operator",
        &[("k8s-app", "control-plane-machine-set-operator")],
        &["control-plane-machine-set-operator"],
    ),
    watched(
        "csi-driver",
        DEPLOYMENT,
        CSI,
        "vmware-vsphere-csi-driver-controller",
        &[("app", "vmware-vsphere-csi-driver-controller")],
        &["csi-driver", "vsphere-syncer", "csi-provisioner", "csi-attacher", "csi-resizer", "csi-snapshotter"],
    ),
    watched("csi-driver", DAEMON_SET, CSI, "vmware-vsphere-csi-driver-node", &[("app", "vmware-vsphere-csi-driver-node")], &["csi-driver"]),
    watched(
        "storage-operator",
        DEPLOYMENT,
        STORAGE,
        "cluster-storage-operator",
        &[("name", "cluster-storage-operator")],
        &["cluster-storage-operator"],
    ),
    watched(
        "cloud-credential",
        DEPLOYMENT,
        CREDENTIALS,
        "cloud-credential-operator",
        &[("app", "cloud-credential-operator")],
        &["cloud-credential-operator"],
    ),
    watched(
        "machine-config",
        DEPLOYMENT,
        CONFIGS,
        "machine-config-operator",
        &[("k8s-app", "machine-config-operator")],
        &["machine-config-operator"],
    ),
    watched(
        "machine-config",
        DEPLOYMENT,
        CONFIGS,
        "machine-config-controller",
        &[("k8s-app", "machine-config-controller")],
        &["machine-config-controller"],
    ),
];

/// What people call the components besides.
const NICKNAMES: &[(&str, &str)] = &[
    ("ccm", CLOUD_CONTROLLER_MANAGER),
    ("cccmo", "cloud-controller-manager-operator"),
    ("mao", "machine-api"),
    ("cpms", "control-plane-machine-set"),
    ("csi", "csi-driver"),
    ("csi-operator", "csi-driver-operator"),
    ("vpd", PROBLEM_DETECTOR),
    ("vsphere-problem-detector", PROBLEM_DETECTOR),
    ("cco", "cloud-credential"),
    ("mco", "machine-config"),
];

/// The component that is called so: itself, its Deployment or DaemonSet, a container of it, or what people call it.
pub fn component(name: &str) -> Option<&'static str> {
    let called = |workload: &&Workload| workload.component == name || workload.name == name;
    let named = WORKLOADS.iter().find(called).or_else(|| WORKLOADS.iter().find(|workload| workload.containers.contains(&name)));
    let nickname = || NICKNAMES.iter().find(|(nickname, _)| *nickname == name).map(|(_, component)| *component);
    named.map(|workload| workload.component).or_else(nickname)
}

const fn watched(
    component: &'static str,
    kind: Kind,
    namespace: &'static str,
    name: &'static str,
    labels: &'static [(&'static str, &'static str)],
    containers: &'static [&'static str],
) -> Workload {
    Workload { component, kind, namespace, name, labels, restart: None, containers, leases: &[] }
}

impl std::fmt::Display for Workload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}/{}", self.kind.kind, self.namespace, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_those_that_keep_what_they_read_are_replaced() {
        let replaced: Vec<&str> = WORKLOADS.iter().filter(|workload| workload.restart.is_some()).map(|workload| workload.name).collect();
        assert_eq!(
            replaced,
            [
                "vsphere-cloud-controller-manager",
                "machine-api-controllers",
                "vmware-vsphere-csi-driver-operator",
                "vsphere-problem-detector-operator",
            ]
        );
    }

    #[test]
    fn of_the_storage_driver_those_who_ask_for_volumes_are_read_too() {
        let controller = WORKLOADS.iter().find(|workload| workload.name == "vmware-vsphere-csi-driver-controller").unwrap();
        for container in ["csi-driver", "vsphere-syncer", "csi-provisioner", "csi-attacher", "csi-resizer", "csi-snapshotter"] {
            assert!(controller.containers.contains(&container), "{container}");
        }
    }

    #[test]
    fn a_component_is_known_by_every_name_that_people_see() {
        for (name, expected) in [
            ("cloud-controller-manager", Some("cloud-controller-manager")),
            ("vsphere-cloud-controller-manager", Some("cloud-controller-manager")),
            ("machine-controller", Some("machine-api")),
            ("vsphere-syncer", Some("csi-driver")),
            ("csi-provisioner", Some("csi-driver")),
            ("config-sync-controllers", Some("cloud-controller-manager-operator")),
            ("vpd", Some("problem-detector")),
            ("keepalived", None),
        ] {
            assert_eq!(component(name), expected, "{name}");
        }
        for (_, nicknamed) in NICKNAMES {
            assert!(WORKLOADS.iter().any(|workload| workload.component == *nicknamed), "{nicknamed}");
        }
    }

    #[test]
    fn no_two_workloads_of_a_namespace_share_their_labels() {
        for (index, one) in WORKLOADS.iter().enumerate() {
            for other in &WORKLOADS[index + 1..] {
                assert!(one.namespace != other.namespace || one.labels != other.labels, "{one} and {other}");
            }
        }
    }
}
