//! What is reported: the status of each CredentialsRequest and the ClusterOperator `cloud-credential`.

use std::sync::Arc;

use kube::api::DynamicObject;
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

use super::copy::{Copy, Mode, is_for_vsphere};
use super::{OWN_NAMESPACE, ROOT};
use crate::kubernetes;
use crate::standins::operator_status::{self, Condition};

const FAILURES: [&str; 4] =
    ["InsufficientCloudCreds", "MissingTargetNamespace", "CredentialsProvisionFailure", "CredentialsDeprovisionFailure"];
const UPGRADEABLE_TO: &str = "cloudcredential.openshift.io/upgradeable-to";

/// A condition of a CredentialsRequest: one that does not hold is only mentioned if it held before, and then keeps its words.
fn set_condition(status: &mut Value, kind: &str, holds: bool, reason: &str, message: &str, now: &str) {
    let wanted = if holds { "True" } else { "False" };
    if !status["conditions"].is_array() {
        if !holds {
            return;
        }
        status["conditions"] = json!([]);
    }
    let Some(conditions) = status["conditions"].as_array_mut() else { return };
    let fresh = json!({
        "type": kind, "status": wanted, "reason": reason, "message": message, "lastTransitionTime": now, "lastProbeTime": now,
    });
    match conditions.iter_mut().find(|condition| condition["type"] == kind) {
        None if holds => conditions.push(fresh),
        None => {}
        Some(condition) if condition["status"] != wanted => *condition = fresh,
        Some(condition) if holds && (condition["reason"] != reason || condition["message"] != message) => {
            let since = condition["lastTransitionTime"].clone();
            *condition = fresh;
            condition["lastTransitionTime"] = since;
        }
        Some(_) => {}
    }
}

pub fn is_failing(status: &Value) -> bool {
    let conditions = status["conditions"].as_array().into_iter().flatten();
    conditions.filter(|condition| condition["status"] == "True").any(|condition| FAILURES.iter().any(|kind| condition["type"] == *kind))
}

/// The two fields that a status must have.
fn begun(before: &Value) -> Value {
    let mut status = if before.is_object() { before.clone() } else { json!({}) };
    for (field, value) in [("provisioned", json!(false)), ("lastSyncGeneration", json!(0))] {
        if status.get(field).is_none() {
            status[field] = value;
        }
    }
    status
}

pub fn ignored(before: &Value, now: &str) -> Value {
    let (reason, message) = ("InfrastructureMismatch", "CredentialsRequest is not for platform VSphere");
    let mut status = begun(before);
    set_condition(&mut status, "Ignored", true, reason, message, now);
    for kind in FAILURES {
        set_condition(&mut status, kind, false, reason, message, now);
    }
    status
}

pub fn namespace_missing(before: &Value, namespace: &str, now: &str) -> Value {
    let mut status = begun(before);
    set_condition(&mut status, "MissingTargetNamespace", true, "NamespaceMissing", &format!("target namespace {namespace} not found"), now);
    status
}

pub fn namespace_found(before: &Value, namespace: &str, now: &str) -> Value {
    let mut status = begun(before);
    set_condition(&mut status, "MissingTargetNamespace", false, "NamespaceExists", &format!("target namespace {namespace} found"), now);
    status
}

/// The status after a sync; only one that succeeded says when and from what.
pub fn synced(before: Value, copy: &Copy, generation: i64, root_version: Option<String>, infrastructure: &str, now: &str) -> Value {
    let mut status = before;
    let (failed, why) = match copy {
        Copy::Fail { condition, why } => (*condition, why.as_str()),
        Copy::UpToDate | Copy::Write => ("", ""),
    };
    let (kind, grant) = ("CredentialsProvisionFailure", format!("failed to grant creds: {why}"));
    match failed == kind {
        true => set_condition(&mut status, kind, true, kind, &grant, now),
        false => set_condition(&mut status, kind, false, "CredentialsProvisionSuccess", "successfully granted credentials request", now),
    }
    let kind = "InsufficientCloudCreds";
    match failed == kind {
        true => set_condition(
            &mut status,
            kind,
            true,
            "CloudCredsInsufficient",
            "cloud creds are insufficient to satisfy CredentialsRequest",
            now,
        ),
        false => {
            set_condition(&mut status, kind, false, "CloudCredsSufficient", "cloud credentials sufficient for minting or passthrough", now);
        }
    }
    status["provisioned"] = json!(failed.is_empty());
    if failed.is_empty() {
        status["lastSyncTimestamp"] = json!(now);
        status["lastSyncGeneration"] = json!(generation);
        if let Some(version) = root_version {
            status["lastSyncCloudCredsSecretResourceVersion"] = json!(version);
        }
    }
    if !infrastructure.is_empty() {
        status["lastSyncInfrastructureResourceVersion"] = json!(infrastructure);
    }
    status
}

/// Why the cluster must not be upgraded, as reason and message, or nothing where it may be.
pub fn upgradeable(
    mode: &Mode,
    root_exists: bool,
    configuration: &DynamicObject,
    cluster_version: Option<&Value>,
) -> Option<(&'static str, String)> {
    let Some(cluster_version) = cluster_version else {
        let why = "Error getting ClusterVersion while determining upgradability: ClusterVersion.config.openshift.io \"version\" not found";
        return Some(("ErrorDeterminingUpgradeable", why.to_owned()));
    };
    let history = cluster_version["status"]["history"].as_array().into_iter().flatten();
    let completed = history.filter(|entry| entry["state"] == "Completed").find_map(|entry| minor(entry["version"].as_str()?))?;
    let promised = configuration.annotations().get(UPGRADEABLE_TO).and_then(|version| minor(version));
    if promised.is_some_and(|promised| promised > completed) {
        return None;
    }
    match mode {
        Mode::Manual => Some((
            "MissingUpgradeableAnnotation",
            format!(
                "Upgradeable annotation {UPGRADEABLE_TO} on cloudcredential.operator.openshift.io/cluster object needs updating before \
                 upgrade. See Manually Creating IAM documentation for instructions on preparing a cluster for upgrade."
            ),
        )),
        _ if root_exists => None,
        _ => Some(("MissingRootCredential", format!("Parent credentials secret must be restored prior to upgrade: {}/{}", ROOT.0, ROOT.1))),
    }
}

fn minor(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.trim_start_matches('v').split('.').map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??))
}

pub async fn report(
    client: &Client,
    version: &str,
    mode: &Mode,
    requests: &[Arc<DynamicObject>],
    upgradeable: Option<(&str, String)>,
) -> Result<(), kubernetes::Error> {
    let counts = Counts::of(requests.iter().map(Arc::as_ref));
    let (degraded, progressing) = counts.messages(mode);
    let conditions: [Condition<'_>; 4] = [
        match mode {
            Mode::Manual => ("Available", "True", "OperatorDisabledByAdmin", "Credential minting is disabled by cluster admin"),
            _ => ("Available", "True", "AsExpected", "All is well"),
        },
        match &degraded {
            Some((reason, message)) => ("Degraded", "True", reason, message),
            None => ("Degraded", "False", "AsExpected", "All is well"),
        },
        match &progressing {
            Some(message) => ("Progressing", "True", "Reconciling", message),
            None => ("Progressing", "False", "AsExpected", "All is well"),
        },
        match &upgradeable {
            Some((reason, message)) => ("Upgradeable", "False", reason, message),
            None => ("Upgradeable", "True", "AsExpected", "All is well"),
        },
    ];
    let names: Vec<(String, String)> =
        requests.iter().map(|request| (request.namespace().unwrap_or_default(), request.name_any())).collect();
    let mut related = vec![("", "namespaces", "", OWN_NAMESPACE)];
    related.extend(
        names.iter().map(|(namespace, name)| ("cloudcredential.openshift.io", "credentialsrequests", namespace.as_str(), name.as_str())),
    );
    related.push(("operator.openshift.io", "cloudcredentials", "", "cluster"));
    operator_status::report(client, "cloud-credential", version, &conditions, &related).await
}

/// How the requests for vSphere in the operator's own namespace fare; others do not count.
struct Counts {
    all: usize,
    failing: usize,
    provisioned: usize,
}

impl Counts {
    fn of<'r>(requests: impl Iterator<Item = &'r DynamicObject>) -> Counts {
        let mut counts = Counts { all: 0, failing: 0, provisioned: 0 };
        for request in requests.filter(|request| request.namespace().as_deref() == Some(OWN_NAMESPACE) && is_for_vsphere(request)) {
            counts.all += 1;
            counts.failing += usize::from(is_failing(&request.data["status"]));
            counts.provisioned += usize::from(request.data["status"]["provisioned"] == true);
        }
        counts
    }

    /// Reason and message of Degraded, message of Progressing.
    fn messages(&self, mode: &Mode) -> (Option<(&'static str, String)>, Option<String>) {
        let Counts { all, failing, provisioned } = self;
        if let Mode::Conflict(mode) = mode {
            let why = format!("legacy configmap disabled setting conflicts with operator config mode of {mode}");
            return (Some(("ModeMismatch", why)), None);
        }
        if *mode == Mode::Manual {
            return (None, None);
        }
        let degraded =
            (*failing > 0).then(|| ("CredentialsFailing", format!("{failing} of {all} credentials requests are failing to sync.")));
        let progressing = (provisioned < all || *failing > 0)
            .then(|| format!("{provisioned} of {all} credentials requests provisioned, {failing} reporting errors."));
        (degraded, progressing)
    }
}

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
