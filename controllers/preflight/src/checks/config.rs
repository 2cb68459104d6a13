//! The configuration that the migration will edit: whether it can.

use vmi_intent::cloud_config::{self, NewVcenter};

use super::{Check, Finding, Weight, unasked, wrong_or};
use crate::facts::Facts;
use crate::requests::{foreign, named};

/// The secret that deploy/optional/cluster-api is for.
const CLUSTER_API: (&str, &str) = ("openshift-cluster-api", "capv-manager-bootstrap-credentials");

pub const CHECKS: &[Check] = &[
    Check {
        id: "CFG-001",
        about: "the cloud provider configuration is there, is understood, and every target can be added to it",
        weight: Weight::Blocks,
        judge: cloud_config,
    },
    Check {
        id: "CFG-002",
        about: "the cloud provider configuration is in the ConfigMap cloud-provider-config, the only one the operator may write; for another, grant it first",
        weight: Weight::BlocksUnlessAcknowledged,
        judge: writable,
    },
    Check {
        id: "CRQ-001",
        about: "every CredentialsRequest for vSphere names a secret that the operator may read and write; for others than OpenShift's own four, grant it first",
        weight: Weight::BlocksUnlessAcknowledged,
        judge: requests,
    },
];

fn cloud_config(facts: &Facts) -> Finding {
    let text = |key: &str| facts.infrastructure(&format!("/spec/cloudConfig/{key}")).as_str().unwrap_or_default();
    let (name, key) = (text("name"), text("key"));
    let at = format!("ConfigMap openshift-config/{name}, key {key}");
    if name.is_empty() || key.is_empty() {
        let line =
            "Infrastructure cluster, spec.cloudConfig: it names no ConfigMap and key; the cloud controller manager needs one".to_owned();
        return Finding::Wrong(vec![line]);
    }
    let Some(map) = &facts.cluster.cloud_config else {
        return Finding::Wrong(vec![format!("{at}: not there, though Infrastructure names it")]);
    };
    let Some(mut config) = map.data["data"][key].as_str().map(str::to_owned) else {
        return Finding::Wrong(vec![format!("{at}: the ConfigMap has no such key")]);
    };
    for vcenter in &facts.spec.vcenters {
        let new = NewVcenter {
            server: vcenter.server.clone(),
            port: vcenter.port.and_then(|port| u16::try_from(port).ok()),
            datacenters: vcenter.datacenters.clone(),
            insecure: facts.spec.trust.as_ref().is_some_and(|trust| trust.insecure),
            ..NewVcenter::default()
        };
        match cloud_config::add(&config, &new, true) {
            Ok(added) => config = added,
            Err(refused) => return Finding::Wrong(vec![format!("{at}: {} cannot be added: {refused}; correct it there", vcenter.server)]),
        }
    }
    Finding::Passed(format!("{at} can be extended"))
}

fn writable(facts: &Facts) -> Finding {
    let name = facts.infrastructure("/spec/cloudConfig/name").as_str().unwrap_or_default();
    let line = format!(
        "Infrastructure cluster, spec.cloudConfig.name: {name}, which the operator may not write; grant update on that ConfigMap of openshift-config, then acknowledge CFG-002"
    );
    wrong_or(if name.is_empty() || name == "cloud-provider-config" { Vec::new() } else { vec![line] }, "it is")
}

fn requests(facts: &Facts) -> Finding {
    let requests = &facts.cluster.credentials_requests;
    let (found, foreign) = match (named(requests), foreign(requests)) {
        (Ok(found), Ok(foreign)) => (found, foreign),
        (Err(malformed), _) | (_, Err(malformed)) => return Finding::Wrong(vec![format!("{malformed}; correct or delete it")]),
    };
    let denied = match &facts.looked.asked.denied_secrets {
        Ok(denied) => denied.as_slice(),
        Err(why) if !foreign.is_empty() => return Finding::Wrong(vec![unasked("rights on secrets of CredentialsRequests", why)]),
        Err(_) => &[],
    };
    let without =
        foreign.iter().filter(|target| denied.iter().any(|(namespace, name)| (namespace, name) == (&target.namespace, &target.name)));
    let lines = without.map(|target| {
        let (request, namespace, name) = (&target.request, &target.namespace, &target.name);
        let remedy = if (namespace.as_str(), name.as_str()) == CLUSTER_API {
            "apply deploy/optional/cluster-api beside the overlay"
        } else {
            "grant the operator's account get and update on it"
        };
        format!("CredentialsRequest {request}: it names Secret {namespace}/{name}, on which the operator has no rights; {remedy}")
    });
    wrong_or(lines.collect(), format!("{} secrets, none is denied", found.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::sample::{self, says};
    use serde_json::{Value, json};

    #[test]
    fn a_configuration_that_cannot_be_read_or_is_missing_is_refused_with_its_place() {
        let facts = sample::changed(|cluster| sample::set(&mut cluster.cloud_config, "/data/config", json!("global:\n\tbroken")));
        says(
            &cloud_config(&facts),
            &["ConfigMap openshift-config/cloud-provider-config, key config: b.example.com cannot be added", "line"],
        );
        let facts = sample::changed(|cluster| sample::set(&mut cluster.infrastructure, "/spec/cloudConfig/key", json!("vsphere.conf")));
        says(&cloud_config(&facts), &["key vsphere.conf: the ConfigMap has no such key"]);
        says(&cloud_config(&sample::changed(|cluster| cluster.cloud_config = None)), &["not there"]);
    }

    #[test]
    fn a_configuration_that_may_not_be_written_is_told_before_anything_is_half_done() {
        let facts = sample::changed(|cluster| sample::set(&mut cluster.infrastructure, "/spec/cloudConfig/name", json!("mine")));
        says(&writable(&facts), &["spec.cloudConfig.name: mine, which the operator may not write"]);
    }

    #[test]
    fn a_request_for_a_secret_without_rights_is_named_and_so_is_a_broken_one() {
        let facts = asking(&json!({"namespace": "add-on", "name": "own"}), &json!({}));
        says(&requests(&facts), &["CredentialsRequest backup: it names Secret add-on/own", "grant the operator's account get and update"]);
        says(&requests(&asking(&json!({"namespace": "add-on"}), &json!({}))), &["CredentialsRequest backup names no secret"]);
        let mut facts = asking(&json!({"namespace": "add-on", "name": "own"}), &json!({}));
        facts.looked = sample::good().looked;
        assert_eq!(requests(&facts), Finding::Passed("1 secrets, none is denied".to_owned()), "somebody granted it");
    }

    #[test]
    fn the_secret_of_the_cluster_api_is_none_of_those_the_base_has_rights_on() {
        let secret = json!({"namespace": "openshift-cluster-api", "name": "capv-manager-bootstrap-credentials"});
        let words = ["Secret openshift-cluster-api/capv-manager-bootstrap-credentials", "apply deploy/optional/cluster-api"];
        says(&requests(&asking(&secret, &json!({}))), &words);
        let own = json!({"namespace": "openshift-machine-api", "name": "vsphere-cloud-credentials"});
        assert!(matches!(requests(&asking(&own, &json!({}))), Finding::Passed(_)));
        // Where the cluster API is switched off its request is there all the same, and its namespace is not.
        let nowhere = json!({"conditions": [{"type": "MissingTargetNamespace", "status": "True"}]});
        assert!(matches!(requests(&asking(&secret, &nowhere)), Finding::Passed(_)));
        assert!(matches!(requests(&sample::good()), Finding::Passed(_)), "nor is it asked for where there is no request");
    }

    /// With a request for this secret, all rights on which are denied.
    fn asking(secret: &Value, status: &Value) -> Facts {
        let spec = json!({"providerSpec": {"kind": "VSphereProviderSpec"}, "secretRef": secret});
        let place = (secret["namespace"].as_str().unwrap_or_default().to_owned(), secret["name"].as_str().unwrap_or_default().to_owned());
        let mut facts = sample::asked_for(|asked| asked.denied_secrets = Ok(vec![place]));
        let request = json!({"metadata": {"name": "backup"}, "spec": spec, "status": status});
        facts.cluster.credentials_requests.push(sample::object(&request));
        facts
    }
}
