//! When a target secret is written, and when that fails.

use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::Value;

use super::MODE_ANNOTATION;

/// What CloudCredential and the older ConfigMap together ask for.
#[derive(Debug, PartialEq)]
pub enum Mode {
    Passthrough,
    Mint,
    Manual,
    /// The ConfigMap disables what this mode of CloudCredential enables.
    Conflict(String),
}

impl Mode {
    pub fn of(configured: &str, disabled_by_config_map: bool) -> Mode {
        match configured {
            "" if disabled_by_config_map => Mode::Manual,
            "Manual" => Mode::Manual,
            conflicting if disabled_by_config_map => Mode::Conflict(conflicting.to_owned()),
            "Mint" => Mode::Mint,
            _ => Mode::Passthrough,
        }
    }
}

#[derive(Debug, PartialEq)]
pub enum Copy {
    UpToDate,
    Write,
    Fail { condition: &'static str, why: String },
}

pub fn is_for_vsphere(request: &DynamicObject) -> bool {
    request.data["spec"]["providerSpec"]["kind"] == "VSphereProviderSpec"
}

/// Whether the target is looked at, by what the request's status says of the last sync.
pub fn sync_is_due(request: &DynamicObject, status: &Value, root_version: Option<&str>, infrastructure: &str, target_exists: bool) -> bool {
    let root_changed = root_version.is_some_and(|version| status["lastSyncCloudCredsSecretResourceVersion"] != version);
    let request_changed = status["lastSyncGeneration"].as_i64().unwrap_or_default() != request.metadata.generation.unwrap_or_default();
    let infrastructure_changed = !infrastructure.is_empty() && status["lastSyncInfrastructureResourceVersion"] != infrastructure;
    let failing = super::status::is_failing(status);
    let provisioned = status["provisioned"] == true;
    root_changed || request_changed || infrastructure_changed || !synced_recently(status) || !target_exists || failing || !provisioned
}

fn synced_recently(status: &Value) -> bool {
    let last = status["lastSyncTimestamp"].as_str().and_then(|time| time.parse::<jiff::Timestamp>().ok());
    last.is_some_and(|last| jiff::Timestamp::now().duration_since(last) < jiff::SignedDuration::from_hours(1))
}

pub fn decide(root: Option<&DynamicObject>, target: Option<&DynamicObject>) -> Copy {
    let failure = |why: &str| Copy::Fail { condition: "CredentialsProvisionFailure", why: why.to_owned() };
    let mode = root.map(|root| root.annotations().get(MODE_ANNOTATION).map(String::as_str));
    match (mode, target) {
        // An existing target is compared with the root first, and that step hides why the root cannot be had.
        (None | Some(None), Some(_)) => failure("error determining whether a credentials update is needed"),
        (None, None) => failure("unable to fetch root cloud cred secret: Secret \"vsphere-creds\" not found"),
        (Some(None), None) => failure("cannot proceed without cloud cred secret annotation"),
        (Some(Some(_)), Some(target)) if root.is_some_and(|root| same_data(root, target)) => Copy::UpToDate,
        (Some(Some("insufficient")), _) => Copy::Fail {
            condition: "InsufficientCloudCreds",
            why: "cloud credentials insufficient to satisfy credentials request".to_owned(),
        },
        (Some(Some("passthrough")), _) => Copy::Write,
        // Any other mark is taken for a success without a copy.
        (Some(Some(_)), _) => Copy::UpToDate,
    }
}

fn same_data(left: &DynamicObject, right: &DynamicObject) -> bool {
    let data = |secret: &DynamicObject| secret.data["data"].as_object().cloned().unwrap_or_default();
    data(left) == data(right)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn secret(mode: Option<&str>, data: Value) -> DynamicObject {
        let annotations = mode.map_or(json!({}), |mode| json!({MODE_ANNOTATION: mode}));
        serde_json::from_value(json!({"metadata": {"name": "s", "annotations": annotations}, "data": data})).unwrap()
    }

    #[test]
    fn the_mode_is_what_both_configurations_agree_on() {
        let cases = [
            ("", false, Mode::Passthrough),
            ("", true, Mode::Manual),
            ("Passthrough", false, Mode::Passthrough),
            ("Passthrough", true, Mode::Conflict("Passthrough".to_owned())),
            ("Mint", false, Mode::Mint),
            ("Mint", true, Mode::Conflict("Mint".to_owned())),
            ("Manual", false, Mode::Manual),
            ("Manual", true, Mode::Manual),
        ];
        for (configured, disabled, expected) in cases {
            assert_eq!(Mode::of(configured, disabled), expected, "{configured:?}, disabled {disabled}");
        }
    }

    #[test]
    fn only_a_marked_root_is_copied() {
        let (both, one) = (json!({"a.username": "eA==", "b.username": "eQ=="}), json!({"a.username": "eA=="}));
        let fail = |condition, why: &str| Copy::Fail { condition, why: why.to_owned() };
        let marked = |data: &Value| Some(secret(Some("passthrough"), data.clone()));
        let target = |data: &Value| Some(secret(None, data.clone()));
        let failure = "CredentialsProvisionFailure";
        let cases = [
            ("a missing target is made", marked(&both), None, Copy::Write),
            ("keys are added", marked(&both), target(&one), Copy::Write),
            ("keys are removed", marked(&one), target(&both), Copy::Write),
            ("equal data are left alone", marked(&both), target(&both), Copy::UpToDate),
            ("no root", None, None, fail(failure, "unable to fetch root cloud cred secret: Secret \"vsphere-creds\" not found")),
            ("no root, a target", None, target(&one), fail(failure, "error determining whether a credentials update is needed")),
            ("unmarked", target(&both), None, fail(failure, "cannot proceed without cloud cred secret annotation")),
            ("unmarked, a target", target(&both), target(&one), fail(failure, "error determining whether a credentials update is needed")),
            (
                "marked as insufficient",
                Some(secret(Some("insufficient"), both.clone())),
                None,
                fail("InsufficientCloudCreds", "cloud credentials insufficient to satisfy credentials request"),
            ),
            ("marked for minting", Some(secret(Some("mint"), both.clone())), None, Copy::UpToDate),
        ];
        for (what, root, target, expected) in cases {
            assert_eq!(decide(root.as_ref(), target.as_ref()), expected, "{what}");
        }
    }

    #[test]
    fn a_sync_is_due_only_when_something_it_depends_on_changed() {
        let request: DynamicObject = serde_json::from_value(json!({"metadata": {"name": "r", "generation": 2}})).unwrap();
        let now = jiff::Timestamp::now().to_string();
        let settled = json!({
            "provisioned": true, "lastSyncGeneration": 2, "lastSyncTimestamp": now,
            "lastSyncCloudCredsSecretResourceVersion": "7", "lastSyncInfrastructureResourceVersion": "9",
        });
        let with = |key: &str, value: Value| {
            let mut status = settled.clone();
            status[key] = value;
            status
        };
        let failing = with("conditions", json!([{"type": "CredentialsProvisionFailure", "status": "True"}]));
        let cases = [
            ("an edited target stays as it is", settled.clone(), Some("7"), "9", true, false),
            ("a root that is gone is no reason", settled.clone(), None, "9", true, false),
            ("the root changed", settled.clone(), Some("8"), "9", true, true),
            ("Infrastructure changed", settled.clone(), Some("7"), "10", true, true),
            ("the target is gone", settled.clone(), Some("7"), "9", false, true),
            ("the request changed", with("lastSyncGeneration", json!(1)), Some("7"), "9", true, true),
            ("never synced", json!({}), Some("7"), "9", true, true),
            ("an hour ago", with("lastSyncTimestamp", json!("2020-01-01T00:00:00Z")), Some("7"), "9", true, true),
            ("not provisioned", with("provisioned", json!(false)), Some("7"), "9", true, true),
            ("failing", failing, Some("7"), "9", true, true),
        ];
        for (what, status, root, infrastructure, exists, expected) in cases {
            assert_eq!(sync_is_due(&request, &status, root, infrastructure, exists), expected, "{what}");
        }
    }
}
