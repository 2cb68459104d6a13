//! OpenShift's CRDs, read from its Go modules, and the rules a shape needs that the generation at hand does not have yet.

use std::fs;
use std::path::Path;
use std::time::Duration;

use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

use super::Error;
use crate::cache::Cache;
use crate::kubernetes::{CRD, condition};
use crate::shape::Shape;

const FEATURE_SET: &str = "release.openshift.io/feature-set";

/// The CRDs below `folder` that belong to the shape's feature set.
pub fn read(folder: &Path, shape: &Shape) -> Result<Vec<Value>, Error> {
    let wanted = if shape.feature_set.is_empty() { "Default" } else { &shape.feature_set };
    let fail = |path: &Path, reason: String| Error::Manifest { name: path.display().to_string(), reason };
    let mut crds = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| fail(folder, error.to_string()))? {
        let path = entry.map_err(|error| fail(folder, error.to_string()))?.path();
        if path.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        let text = fs::read_to_string(&path).map_err(|error| fail(&path, error.to_string()))?;
        for document in crate::yaml::documents(&text).map_err(|error| fail(&path, error.to_string()))? {
            let sets = document["metadata"]["annotations"][FEATURE_SET].as_str().unwrap_or(wanted);
            if document["kind"] == "CustomResourceDefinition" && sets.split(',').any(|set| set == wanted) {
                crds.push(document);
            }
        }
    }
    if shape.in_use_policies {
        crds.iter_mut().filter(|crd| crd["metadata"]["name"] == "infrastructures.config.openshift.io").try_for_each(add_server_rule)?;
    }
    Ok(crds)
}

/// Stand-in for rule R12, which comes with the day-2 gate but not with this snapshot of it: every failure domain's server is
/// listed among the vCenters.
fn add_server_rule(crd: &mut Value) -> Result<(), Error> {
    let pointer = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/platformSpec/properties/vsphere";
    let vsphere = crd.pointer_mut(pointer).and_then(Value::as_object_mut).ok_or_else(|| Error::Manifest {
        name: "infrastructures.config.openshift.io".to_owned(),
        reason: format!("there is no {pointer}"),
    })?;
    let rule = json!({
        "rule": "!has(self.failureDomains) || self.failureDomains.all(fd, has(self.vcenters) && self.vcenters.exists(v, v.server == fd.server))",
        "message": "all failure domains must have a corresponding vCenter entry",
    });
    let rules = vsphere.entry("x-kubernetes-validations").or_insert_with(|| json!([]));
    if let Some(rules) = rules.as_array_mut() {
        rules.insert(0, rule);
    }
    Ok(())
}

/// Applies the CRDs and returns when the apiserver serves each of them.
pub async fn install(client: &Client, crds: &[Value]) -> Result<(), Error> {
    let mut cache = Cache::start(client, &[(CRD, "")]).await;
    super::apply_all(client, crds).await?;
    cache
        .until("the CRDs to be served", Duration::from_secs(60), |cache| {
            let served: Vec<String> =
                cache.list(CRD).iter().filter(|crd| condition(crd, "Established") == "True").map(|crd| crd.name_any()).collect();
            match crds.iter().find(|crd| !served.iter().any(|name| crd["metadata"]["name"] == name.as_str())) {
                Some(missing) => Err(format!("{} is not", missing["metadata"]["name"])),
                None => Ok(()),
            }
        })
        .await?;
    Ok(())
}

/// Stand-ins for the three admission policies that the machine API operator installs with the day-2 gate: no failure domain
/// leaves Infrastructure while a Machine, a MachineSet or the control plane machine set is in it. Machines and sets are matched
/// by their region and zone labels, empty ones counting as none; a domain that was not listed before is not missed.
pub fn in_use_policies() -> Vec<Value> {
    let domains = |of: &str| {
        let list = format!("{of}.spec.platformSpec.vsphere.failureDomains");
        format!("(has({of}.spec.platformSpec.vsphere) && has({list}) ? {list} : [])")
    };
    let (before, after) = (domains("oldObject"), domains("object"));
    let labelled = |labels: &str, kind: &str| {
        let (region, zone) = (format!("{labels}['machine.openshift.io/region']"), format!("{labels}['machine.openshift.io/zone']"));
        let named = ["region", "zone"].map(|key| format!("'machine.openshift.io/{key}' in {labels}")).join(" && ");
        let lists = |list: &str| format!("{list}.exists(fd, fd.region == {region} && fd.zone == {zone})");
        let passes = format!("!(has({labels}) && {named}) || {region} == '' || {zone} == '' || !{} || {}", lists(&before), lists(&after));
        let message = format!(
            "'Infrastructure update would remove vSphere failure domain (region=' + {region} + ', zone=' + {zone} + ') that is still in use by {kind} \\'' + params.metadata.name + '\\''"
        );
        (passes, message)
    };
    let (machine, machine_message) = labelled("params.metadata.labels", "Machine");
    let (set, set_message) = labelled("params.spec.template.metadata.labels", "MachineSet");
    let set = format!("!has(params.spec.template.metadata) || {set}");
    let used = "params.spec.template.machines_v1beta1_machine_openshift_io.failureDomains";
    let cpms = format!("!has({used}) || !has({used}.vsphere) || {used}.vsphere.all(used, {after}.exists(fd, fd.name == used.name))");
    let cpms_message =
        "'Infrastructure update would remove a vSphere failure domain still referenced by ControlPlaneMachineSet ' + params.metadata.name";
    [
        policy("machine", "machine.openshift.io/v1beta1", "Machine", &machine, &machine_message),
        policy("cpms", "machine.openshift.io/v1", "ControlPlaneMachineSet", &cpms, cpms_message),
        policy("machineset", "machine.openshift.io/v1beta1", "MachineSet", &set, &set_message),
    ]
    .concat()
}

fn policy(suffix: &str, api_version: &str, kind: &str, expression: &str, message: &str) -> Vec<Value> {
    let name = format!("vsphere-failure-domain-in-use-by-{suffix}");
    let metadata = json!({"name": name, "labels": {"vmi-lab/stand-in": "true"}});
    vec![
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": metadata,
            "spec": {
                "failurePolicy": "Fail",
                "paramKind": {"apiVersion": api_version, "kind": kind},
                "matchConstraints": {"resourceRules": [{
                    "apiGroups": ["config.openshift.io"], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["infrastructures"],
                }]},
                "validations": [{"expression": expression, "messageExpression": message, "reason": "Invalid"}],
            },
        }),
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": metadata,
            "spec": {
                "policyName": name,
                "validationActions": ["Deny"],
                "paramRef": {"namespace": "openshift-machine-api", "selector": {}, "parameterNotFoundAction": "Allow"},
            },
        }),
    ]
}
