//! The lines that are known of the components' sources, as their code formats them: each that has to stop a migration does, and none
//! that must not.

use super::*;
use crate::ledger::{Ledger, Source, Weight};

const CCM: &str = "cloud-controller-manager";
const CCM_OPERATOR: &str = "cloud-controller-manager-operator";
const MACHINES: &str = "machine-api";
const CSI_OPERATOR: &str = "csi-driver-operator";
const CSI: &str = "csi-driver";
const DETECTOR: &str = "problem-detector";
/// A host of bare metal.
const HOST: &str = "host-1";

const FATAL: &[(&str, &str)] = &[
    (CCM, "credentials not found for server vc.example.com"),
    (CCM, r#"updateCredentialsMapK8s failed. err=secrets "vsphere-cloud-credentials" is forbidden"#),
    (CCM, r#"Cannot get secret vsphere-cloud-credentials in namespace openshift-cloud-controller-manager. error: "not found""#),
    (CCM, "Unknown secret key note"),
    (CCM, "Username/Password or shared session manager URL/Token directives are missing for server vc.example.com"),
    (CCM, "Unable to find credential manager for vcServer=vc.example.com credentialHolder=other"),
    (CCM, "Cannot connect to vCenter with err: ServerFaultCode: something is wrong"),
    (CCM, "WhichVCandDCByNodeID error vc:something is wrong"),
    (CCM, "WhichVCandDCByNodeID error dc:datacenter 'dc-x' not found"),
    (CCM, "Failed to find the datacenter: dc-x. err: datacenter 'dc-x' not found"),
    (CCM, "ReadCPIConfigYAML failed: yaml: line 3: mapping values are not allowed in this context"),
    (CCM, "validateConfig failed: vcenter is empty"),
    (CCM, "vcConfig.User is empty for vc vc.example.com!"),
    (CCM, "No Virtual Center hosts defined"),
    (CCM, "vSphere region category openshift-region does not match any tags for mo: Datacenter:datacenter-2"),
    (CCM, "vSphere zone category openshift-zone does not match any tags for mo: ClusterComputeResource:domain-c8"),
    (CCM, "Get zone for mo: VirtualMachine:vm-43: no tag"),
    (CCM, "failed to get instance metadata for node worker-1: VM not found"),
    (
        CCM,
        "error syncing 'worker-1': failed to get provider ID for node worker-1 at cloudprovider: failed to get instance ID from cloud provider: No VM found, requeuing",
    ),
    (CCM, "The use of multiple vCenters require the use of zones"),
    (CCM_OPERATOR, "failed to read the cloud.conf: yaml: line 2: did not find expected key"),
    (CCM_OPERATOR, "CloudConfigController: terminal error, setting degraded: unknown platform"),
    (CCM_OPERATOR, "panic: runtime error: invalid memory address or nil pointer dereference"),
    (MACHINES, "worker-1: failed to create scope for machine: something is wrong"),
    (MACHINES, "worker-1: failed to check if machine exists: something is wrong"),
    (MACHINES, "Failed to fetch vSphere config: something is wrong"),
    (MACHINES, "unable to login to vCenter: ServerFaultCode: something is wrong"),
    (MACHINES, r#"unable to find datacenter "dc-x": datacenter 'dc-x' not found"#),
    (MACHINES, r#"secret openshift-machine-api/vsphere-cloud-credentials does not have "vc.example.com.username" field set"#),
    (
        "control-plane-machine-set",
        "spec.template: Forbidden: workspace fields should not be set when control plane nodes are in a failure domain",
    ),
    (CSI_OPERATOR, "error logging into vcenter: something is wrong"),
    (CSI_OPERATOR, "error logging into vcenter RESTful services: something is wrong"),
    (CSI_OPERATOR, "Failed to create govmomi client. err: something is wrong"),
    (CSI_OPERATOR, "Marking cluster as degraded: vcenter_api_error something is wrong"),
    (CSI_OPERATOR, "error syncing storage policy for vc.example.com: something is wrong"),
    (CSI_OPERATOR, "failed to access datacenter dc-x: something is wrong"),
    (CSI_OPERATOR, "failed to access datastore ds-x: something is wrong"),
    (CSI_OPERATOR, "vCenter vc.example.com is missing from vCenter map"),
    (CSI_OPERATOR, "infrastructure has not been configured correctly to support multiple vCenters."),
    (CSI_OPERATOR, "vcenter not found"),
    (CSI, "failed to login to vc. err: something is wrong"),
    (CSI, r#"failed to get vCenterInstance for vCenter Host: "vc.example.com". Error: something is wrong"#),
    (CSI, "failed to create govmomi client with err: something is wrong"),
    (CSI, "failed to connect to vCenter"),
    (CSI, "username openshift specified in vSphere config secret is invalid, make sure that username is a fully qualified domain name"),
    (CSI, "vsphere CSI config requires topology-categories to be specified for multi vCenter deployment"),
    (CSI, "failed to parse config: No Virtual Center hosts defined"),
    (DETECTOR, "failed to connect to vc.example.com: something is wrong"),
    (DETECTOR, "failed to get credentials to vc.example.com: something is wrong"),
    (DETECTOR, "CheckNodeDiskUUID:worker-1 failed: unable to determine vcenter for node worker-1"),
    (ANY, "x509: certificate signed by unknown authority"),
    (ANY, "x509: certificate is valid for vcsa.example.com, not vc.example.com"),
    (ANY, "x509: cannot validate certificate for 10.0.0.9 because it doesn't contain any IP SANs"),
    (ANY, "dial tcp: lookup vc.example.com on 172.30.0.10:53: no such host"),
    (ANY, r#"Post "https://vc.example.com/sdk": dial tcp 10.0.0.9:443: i/o timeout"#),
    (ANY, r#"Post "https://vc.example.com/sdk": dial tcp 10.0.0.9:443: connect: connection refused"#),
    (ANY, "ServerFaultCode: Cannot complete login due to an incorrect user name or password."),
    (ANY, "ServerFaultCode: Permission to perform this operation was denied."),
    (ANY, "ServerFaultCode: NoPermission"),
    (ANY, "ServerFaultCode: InvalidLogin"),
];

/// Listed as fatal, and yet only told: both are in the log of many a cluster that is well, long before a migration, since a host of bare
/// metal or an old storage class is enough. What of them is the migration's has rules of its own, which are fatal.
const ONLY_TOLD: &[(&str, &str)] = &[
    (DETECTOR, "failed to run checks: CheckStorageClasses: storage class thin: datastore ds-9 is not in vc.example.com"),
    (DETECTOR, "CheckStorageClasses failed: storage class thin: datastore ds-9 is not in vc.example.com"),
];

const NOISE: &[(&str, &str)] = &[
    (CCM, "Invalid credentials. Fetching credentials from secrets. vcServer=vc.example.com credentialHolder=Global"),
    (CCM, "Error while looking for vm=1a3586eb(byUUID) in vc=vc.example.com and datacenter=dc-b: No VM found"),
    (CCM, "Unable to find VM by UUID. VM UUID: 1a3586eb"),
    (CCM, "WhichVCandDCByNodeID failed using normally formatted UUID. Err: No VM found"),
    (CCM, "error discovering node host-1: No VM found"),
    (
        CCM,
        "Error getting instance metadata for node addresses: error fetching node by provider ID: node not found, and error by node name: node not found",
    ),
    (CCM, "failed to get instance metadata for node host-1: VM not found"),
    (
        CCM,
        "error syncing 'host-1': failed to get provider ID for node host-1 at cloudprovider: failed to get instance ID from cloud provider: No VM found, requeuing",
    ),
    (MACHINES, r#"Machine for node "host-1" not found"#),
    (DETECTOR, "CollectNodeESXiVersion:host-1 failed: VMUUID is not set"),
    (DETECTOR, "failed to run checks: VMUUID is not set for node host-1"),
    (DETECTOR, "unable to determine vcenter for node host-1"),
    (CCM, "ReadNsxtConfig failed: not configured"),
    (CCM, "ReadRouteConfig failed: not configured"),
    (CCM, "Failed to start service controller: the cloud provider does not support external load balancers"),
    (CCM, "clusters not supported"),
    (
        CSI,
        r#"Observed new vCenter server: "vc-b.example.com" in the config secret. Exiting vSphere CSI Controller Container for re-initialization"#,
    ),
    (CSI_OPERATOR, "Unexpected missing category openshift-c-x7k2p - creating it"),
    (CSI_OPERATOR, "Unexpected missing tag c-x7k2p - creating it"),
    (ANY, "Failed to update lock optimistically: leaderelection.go:429 timed out"),
    (ANY, r#"Operation cannot be fulfilled on nodes "master-1": the object has been modified"#),
    (ANY, r#""Waited before sending request" reason="client-side throttling, not priority and fairness""#),
    (ANY, "failed to list machines: context canceled"),
    (ANY, "Watch of *v1.Secret ended with: very short watch: Unexpected watch close"),
    (ANY, r#"Get "https://api-int.c.example.com:6443/api/v1/nodes": dial tcp 10.0.0.5:6443: connect: connection refused"#),
];

/// Lines that users report, and the rule of each: those of a rule's several wordings that are not its own line.
const FIELD: &[(&str, &str, &str)] = &[
    (
        CCM,
        "CERT-001",
        r#"failed to get instance ID from cloud provider: Post "https://vc:443/sdk": x509: certificate signed by unknown authority, requeuing"#,
    ),
    (CCM, "CCM-008", "datacenter 'DCNAME - Region' not found"),
    (CCM, "CCM-012", "failed to get instance ID from cloud provider: No VM found, requeuing"),
    (CCM, "CCM-014", "Multiple VMs found"),
    (CSI_OPERATOR, "VIM-004", "error creating or applying tag c-x7k2p: 403 Forbidden"),
    (CSI_OPERATOR, "VIM-007", "found older vcenter version 7.0.1, expected 7.0.2"),
    (CSI, "CSI-011", "username is invalid, make sure it is a fully qualified domain username"),
    (CSI, "CSI-012", "vSphere CSI Migration is not supported on the multi vCenter setup"),
    (CSI, "CSI-012", "volume-migration feature is not supported on Multi-vCenter deployment"),
    (CSI, "CSI-012", "accessibility requirements cannot be nil for a multi-VC environment"),
    (CSI, "CSI-013", "nodeVM worker-1 does not have labels for the following categories: [openshift-zone]"),
    (CSI, "CSI-013", r#"failed to fetch topology information for the nodeVM "worker-1". Error: something is wrong"#),
    (CSI, "CSI-013", r#"failed to retrieve nodeVM "worker-1" using the node manager. Error: something is wrong"#),
    (CSI, "CSI-013", r#"timed out while waiting for topology labels to be updated in "worker-1" CSINodeTopology instance."#),
    (CSI, "CSI-015", "registerDisk: vim.fault.AlreadyExists"),
    (CSI, "CSI-016", "fault.CnsNotRegisteredFault.summary"),
    (CSI, "CSI-021", "A specified parameter was not correct: 'profileIds' to method 'PbmRetrieveContent'"),
    (MACHINES, "MAO-010", "multiple templates found, specify one in config"),
    (MACHINES, "MAO-011", "multiple resource pools found, specify one in config"),
    (MACHINES, "MAO-011", "folder not found, specify valid value"),
    (MACHINES, "MAO-011", "datastore not found, specify valid value"),
    ("control-plane-machine-set", "CPMS-002", "failure domain is not defined in the infrastructure resource"),
    (DETECTOR, "VIM-003", "tag categories openshift-zone and openshift-region must be created"),
    (DETECTOR, "VPD-006", "vCenter vc.example.com is configured in Infrastructure but not used by any failure domains"),
    (ANY, "CERT-003", "Authenticity of the host's SSL certificate is not verified"),
    (ANY, "KUBE-006", "failed to drain node: worker-1 after 1 hour"),
];

/// Lines that are much like one that a rule was widened for, and are not that.
const NEAR: &[(&str, &str, &str)] = &[
    ("control-plane-machine-set", "CPMS-001", "workspace fields are set although control plane nodes are in no failure domain"),
    (CCM, "CCM-012", "instance ID of worker-1 from cloud provider: 4217f5a8"),
    (CSI, "CSI-023", "2 Virtual Center hosts defined"),
    (MACHINES, "NOISE-002", "the object was not modified"),
    (MACHINES, "NET-002", "unable to login to vCenter: ServerFaultCode: the file ends with EOF"),
];

/// In the logs of one component, or of each.
fn judged(component: &str, line: &str) -> Vec<&'static Rule> {
    let all: BTreeSet<&str> = WORKLOADS.iter().map(|workload| workload.component).collect();
    let logs = if component == ANY { all } else { [component].into() };
    let text = format!("E1116 19:49:46.391861       1 x.go:1] {line}");
    logs.into_iter().filter_map(|component| decided(component, &text)).collect()
}

#[test]
fn every_line_that_is_known_to_be_fatal_is_and_two_are_only_told() {
    let unless = |lines: &[(&'static str, &'static str)], wanted: Verdict| -> Vec<String> {
        let wrong = lines.iter().filter(|(component, line)| {
            let rules = judged(component, line);
            rules.is_empty() || rules.iter().any(|rule| rule.verdict != wanted || rule.pattern.is_empty())
        });
        wrong
            .map(|(component, line)| {
                format!("{component}: {line}: {:?}", judged(component, line).iter().map(|rule| &rule.id).collect::<Vec<_>>())
            })
            .collect()
    };
    assert_eq!(unless(FATAL, Verdict::Fatal), Vec::<String>::new());
    assert_eq!(unless(ONLY_TOLD, Verdict::Transient), Vec::<String>::new());
}

#[test]
fn no_line_that_is_known_to_be_noise_holds_anything_however_often_it_comes() {
    let muted = [HOST.to_owned()];
    for (component, line) in NOISE {
        let rules = judged(component, line);
        assert!(!rules.is_empty(), "{component}: {line}: no rule knows it");
        for rule in rules {
            let nothing = rule.verdict != Verdict::Fatal || !rule.concerns(line.as_bytes(), &muted);
            assert!(nothing && !rule.pattern.is_empty(), "{component}: {line}: {}", rule.id);
        }
    }
}

#[test]
fn a_line_that_names_no_node_means_nothing_only_while_some_node_is_not_vspheres() {
    let nameless = "error fetching node by provider ID: node not found, and error by node name: node not found";
    for (line, alone, beside) in [
        (nameless, true, false),
        ("error discovering node host-1: No VM found", true, false),
        ("error discovering node worker-1: No VM found", true, true),
    ] {
        let rule = judged(CCM, line)[0];
        let counts = |muted: &[String]| rule.concerns(line.as_bytes(), muted);
        assert_eq!((counts(&[]), counts(&[HOST.to_owned()])), (alone, beside), "{line}");
    }
}

#[test]
fn every_line_that_users_report_is_known_by_its_rule() {
    for (component, rule, line) in FIELD {
        let found: Vec<&str> = judged(component, line).iter().map(|rule| rule.id.as_str()).collect();
        assert!(found.iter().all(|found| found == rule) && !found.is_empty(), "{component}: {line}: {found:?}, not {rule}");
    }
}

#[test]
fn a_login_that_is_refused_once_per_start_and_vcenter_is_noise_and_one_that_is_refused_again_is_not() {
    let line = "Failed to create govmomi client. err: ServerFaultCode: Cannot complete login due to an incorrect user name or password.";
    let rules = judged(CCM, line);
    let source = Source { uid: "1".into(), container: CCM, component: CCM, namespace: "n", pod: "p".into() };
    let mut ledger = Ledger::default();
    let mut weights = Vec::new();
    for second in 0..6 {
        let at = jiff::Timestamp::from_second(1_790_000_000 + second).unwrap();
        ledger.bad(&source, rules[0], at, || line.to_owned());
        weights.push(ledger.runs().next().map(|run| run.weight));
    }
    assert_eq!(weights, [None, None, None, None, Some(Weight::Holds), Some(Weight::Holds)]);
}

#[test]
fn what_only_looks_like_a_line_that_a_rule_was_widened_for_is_not_taken_for_it() {
    for (component, rule, line) in NEAR {
        assert!(judged(component, line).iter().all(|judged| judged.id != *rule), "{rule}: {line}");
    }
}
