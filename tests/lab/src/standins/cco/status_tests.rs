//! What the operator reports, case by case.

use super::*;

const EARLIER: &str = "2026-01-01T00:00:00Z";
const NOW: &str = "2026-02-02T00:00:00Z";

fn request(namespace: &str, kind: &str, status: Value) -> DynamicObject {
    serde_json::from_value(json!({
        "metadata": {"name": "r", "namespace": namespace}, "spec": {"providerSpec": {"kind": kind}}, "status": status,
    }))
    .unwrap()
}

fn configuration(annotations: Value) -> DynamicObject {
    serde_json::from_value(json!({"metadata": {"name": "cluster", "annotations": annotations}})).unwrap()
}

#[test]
fn a_failed_sync_says_why_and_keeps_when_the_last_good_one_was() {
    let before =
        json!({"provisioned": true, "lastSyncGeneration": 1, "lastSyncTimestamp": EARLIER, "lastSyncCloudCredsSecretResourceVersion": "7"});
    let copy = Copy::Fail { condition: "CredentialsProvisionFailure", why: "no root".to_owned() };
    let failed = synced(before, &copy, 2, None, "9", NOW);
    assert_eq!(
        failed,
        json!({
            "provisioned": false, "lastSyncGeneration": 1, "lastSyncTimestamp": EARLIER,
            "lastSyncCloudCredsSecretResourceVersion": "7", "lastSyncInfrastructureResourceVersion": "9",
            "conditions": [{
                "type": "CredentialsProvisionFailure", "status": "True", "reason": "CredentialsProvisionFailure",
                "message": "failed to grant creds: no root", "lastTransitionTime": NOW, "lastProbeTime": NOW,
            }],
        })
    );
    assert!(is_failing(&failed));
    let healed = synced(failed, &Copy::Write, 2, Some("8".to_owned()), "9", NOW);
    assert!(!is_failing(&healed));
    assert_eq!(healed["lastSyncCloudCredsSecretResourceVersion"], "8");
    assert_eq!(healed["conditions"][0]["status"], "False");
    assert_eq!(healed["conditions"][0]["message"], "successfully granted credentials request");
}

#[test]
fn a_condition_that_never_held_is_not_mentioned() {
    let status = synced(json!({"provisioned": false}), &Copy::Write, 1, Some("1".to_owned()), "", NOW);
    assert_eq!(status.get("conditions"), None);
    assert_eq!(namespace_found(&json!({}), "ns", NOW), json!({"provisioned": false, "lastSyncGeneration": 0}));
}

#[test]
fn a_missing_namespace_is_a_failure_until_it_is_there() {
    let missing = namespace_missing(&json!({}), "ns", EARLIER);
    assert!(is_failing(&missing));
    assert_eq!(missing["conditions"][0]["message"], "target namespace ns not found");
    assert_eq!(namespace_missing(&missing, "ns", NOW), missing, "the same again changes nothing");
    assert!(!is_failing(&namespace_found(&missing, "ns", NOW)));
}

#[test]
fn a_request_for_another_platform_is_ignored_and_never_failing() {
    let failing = namespace_missing(&json!({}), "ns", EARLIER);
    let status = ignored(&failing, NOW);
    assert!(!is_failing(&status));
    let conditions = status["conditions"].as_array().unwrap();
    assert!(conditions.iter().any(|condition| condition["type"] == "Ignored" && condition["status"] == "True"));
}

#[test]
fn only_vsphere_requests_of_the_operators_namespace_count() {
    let failing = namespace_missing(&json!({}), "ns", EARLIER);
    let all = [
        request(OWN_NAMESPACE, "VSphereProviderSpec", json!({"provisioned": true})),
        request(OWN_NAMESPACE, "VSphereProviderSpec", failing.clone()),
        request(OWN_NAMESPACE, "AWSProviderSpec", failing.clone()),
        request("elsewhere", "VSphereProviderSpec", failing),
    ];
    let (degraded, progressing) = Counts::of(all.iter()).messages(&Mode::Passthrough);
    assert_eq!(degraded.unwrap(), ("CredentialsFailing", "1 of 2 credentials requests are failing to sync.".to_owned()));
    assert_eq!(progressing.unwrap(), "1 of 2 credentials requests provisioned, 1 reporting errors.");
    assert_eq!(Counts::of(all[..1].iter()).messages(&Mode::Passthrough), (None, None));
    assert_eq!(Counts::of(all.iter()).messages(&Mode::Manual), (None, None), "a disabled operator minds nothing");
    let (conflict, _) = Counts::of(all.iter()).messages(&Mode::Conflict("Mint".to_owned()));
    assert_eq!(conflict.unwrap().0, "ModeMismatch");
}

#[test]
fn an_upgrade_needs_the_root_secret_or_the_admins_word() {
    let installed =
        json!({"status": {"history": [{"state": "Partial", "version": "4.22.0"}, {"state": "Completed", "version": "4.21.3"}]}});
    let silent = configuration(json!({}));
    let reason =
        |mode, root, configuration: &DynamicObject, version| upgradeable(mode, root, configuration, version).map(|(reason, _)| reason);
    assert_eq!(reason(&Mode::Passthrough, true, &silent, Some(&installed)), None);
    assert_eq!(reason(&Mode::Passthrough, false, &silent, Some(&installed)), Some("MissingRootCredential"));
    assert_eq!(reason(&Mode::Manual, false, &silent, Some(&installed)), Some("MissingUpgradeableAnnotation"));
    assert_eq!(reason(&Mode::Passthrough, true, &silent, None), Some("ErrorDeterminingUpgradeable"));
    let installing = json!({"status": {"history": [{"state": "Partial", "version": "4.21.3"}]}});
    assert_eq!(reason(&Mode::Manual, false, &silent, Some(&installing)), None);
    for (promised, allowed) in [("4.22", true), ("v4.22.1", true), ("4.21", false), ("nonsense", false)] {
        let promising = configuration(json!({UPGRADEABLE_TO: promised}));
        assert_eq!(reason(&Mode::Manual, false, &promising, Some(&installed)).is_none(), allowed, "{promised}");
    }
}
