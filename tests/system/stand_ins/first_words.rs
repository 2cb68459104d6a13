//! What stands in says so, to whoever reads its log.

use std::collections::BTreeSet;

use kube::ResourceExt as _;
use vmi_lab::kubernetes::{self, POD};

use crate::support::lab::Lab;
use crate::support::suite::TestResult;

pub async fn every_stand_in_calls_itself_one_in_the_first_line_of_its_log(lab: &Lab) -> TestResult {
    let mut seen = BTreeSet::new();
    for pod in kubernetes::list(&lab.client, POD, "").await? {
        let containers = pod.data["spec"]["containers"].as_array().into_iter().flatten();
        for container in containers.filter(|container| container["image"] == "vmi-lab/stand-in") {
            let name = container["name"].as_str().unwrap_or_default();
            let (namespace, pod) = (pod.namespace().unwrap_or_default(), pod.name_any());
            let log = lab.kubectl(&["logs", "-n", &namespace, &pod, "-c", name]).await?.success()?.stdout;
            let first = log.lines().next().unwrap_or_default();
            assert!(first.contains(": stand-in for the "), "{namespace}/{pod} {name}: {first}");
            seen.insert((container["args"][0].as_str().unwrap_or_default().to_owned(), name.to_owned()));
        }
    }
    let wanted = [
        ("cccmo", "cluster-cloud-controller-manager"),
        ("cccmo", "config-sync-controllers"),
        ("cco", "cloud-credential-operator"),
        ("config-operator", "openshift-config-operator"),
        ("cvo", "cluster-version-operator"),
        ("etcd", "etcd-operator"),
        ("mco", "machine-config-operator"),
    ];
    assert_eq!(seen, wanted.map(|(stand_in, container)| (stand_in.to_owned(), container.to_owned())).into());
    Ok(())
}
