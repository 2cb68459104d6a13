//! The configuration that the migration will edit: whether it can.

use serde_json::{Value, json};
use vmi_intent::cloud_config::{self, NewVcenter};
use vmi_intent::credentials_requests;

use super::{Check, Finding, Weight, wrong_or};
use crate::facts::Facts;

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
        about: "every CredentialsRequest for vSphere names one of the five secrets the operator has rights on; for others, grant them first",
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
    let values: Vec<Value> = facts
        .cluster
        .credentials_requests
        .iter()
        .map(|request| json!({"metadata": {"name": request.metadata.name}, "spec": request.data["spec"]}))
        .collect();
    let (found, known) = match (credentials_requests::targets(&values), credentials_requests::targets(&[])) {
        (Ok(found), Ok(known)) => (found, known),
        (Err(malformed), _) | (_, Err(malformed)) => return Finding::Wrong(vec![format!("{malformed}; correct or delete it")]),
    };
    let is_known = |namespace: &str, name: &str| known.iter().any(|one| (one.namespace.as_str(), one.name.as_str()) == (namespace, name));
    let foreign = found.iter().filter(|target| !is_known(&target.namespace, &target.name));
    let lines = foreign.map(|target| {
        let (request, namespace, name) = (&target.request, &target.namespace, &target.name);
        format!(
            "CredentialsRequest {request}: it names Secret {namespace}/{name}, on which the operator has no rights; grant get, list, watch and update on it, then acknowledge CRQ-001"
        )
    });
    wrong_or(lines.collect(), format!("{} secrets, all known", found.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::sample::{self, says};

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
        let spec = |secret: Value| json!({"providerSpec": {"kind": "VSphereProviderSpec"}, "secretRef": secret});
        let add = |secret: Value| {
            sample::changed(|cluster| {
                cluster.credentials_requests.push(sample::object(&json!({"metadata": {"name": "backup"}, "spec": spec(secret)})));
            })
        };
        let facts = add(json!({"namespace": "add-on", "name": "own"}));
        says(&requests(&facts), &["CredentialsRequest backup: it names Secret add-on/own"]);
        says(&requests(&add(json!({"namespace": "add-on"}))), &["CredentialsRequest backup names no secret"]);
    }
}
