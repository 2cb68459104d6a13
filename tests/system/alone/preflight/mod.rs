//! The preflight: what it passes, what it refuses, and that it touches nothing. What the others plan is written by hand.

mod refused;

use std::collections::BTreeMap;

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use vmi_crds::VSphereMigrationInfra;
use vmi_crds::graph::StepName::{self, FolderCreated, PreflightPassed};
use vmi_crds::graph::{Controller, STEPS};
use vmi_crds::status::{CheckResult, Path, StepState};
use vmi_lab::kubernetes::{self, CONFIG_MAP, Kind};
use vmi_lab::migration::deploy;
use vmi_lab::shape::Generation;
use vmi_preflight::Preflight;

use crate::support::alone::{Alone, Ground, NAME};
use crate::support::lab::Lab;
use crate::support::suite::TestResult;

pub use refused::{
    a_certificate_that_is_not_trusted_is_shown_and_can_be_pinned,
    a_move_that_would_leave_a_volume_behind_is_refused_by_its_claim_until_that_is_accepted,
    a_wrong_password_is_tried_once_in_all_whoever_looks_again, bad_input_is_refused_by_its_field_and_nothing_is_touched,
    what_the_user_may_not_do_and_tags_in_the_way_are_named,
};

const USER: &str = "alone-preflight";
const LEASE: Kind = Kind { group: "coordination.k8s.io", version: "v1", kind: "Lease", plural: "leases", namespaced: true };
const PLAN: &str = "vmi-growth-plan";

/// As if every other controller had planned for the spec as it is now; this is what step 6 would change.
async fn planned(ground: &Ground<'_>, folder: &str) -> TestResult {
    let vmi = ground.vmi().await?;
    let mut by: BTreeMap<Controller, Vec<Value>> = BTreeMap::new();
    for step in STEPS.iter().filter(|step| vmi.request().asks_for(step) && step.name != PreflightPassed) {
        let changes = if step.name == FolderCreated { json!([format!("make the folder {folder}")]) } else { json!([]) };
        by.entry(step.controller).or_default().push(json!({
            "name": step.name.as_str(), "number": step.number, "controller": step.controller.as_str(), "state": "Waiting",
            "observedGeneration": vmi.metadata.generation, "changes": changes,
        }));
    }
    for (controller, steps) in by {
        let body = json!({
            "apiVersion": "config.openshift.io/v1alpha1", "kind": "VSphereMigrationInfra",
            "metadata": {"name": NAME, "namespace": ground.namespace}, "status": {"steps": steps},
        });
        let params = PatchParams::apply(&controller.field_manager()).force();
        ground.api().patch_status(NAME, &params, &Patch::Apply(&body)).await?;
    }
    Ok(())
}

fn hash(vmi: &VSphereMigrationInfra) -> String {
    vmi.seen().plan.as_ref().and_then(|plan| plan.hash.clone()).unwrap_or_default()
}

/// What it wrote to the cluster, dry runs left out, besides the vmi's status, its plan, Leases and Events.
fn stray_writes(lab: &Lab) -> TestResult<Vec<String>> {
    let log = std::fs::read_to_string(lab.folder().join("logs/audit.log"))?;
    let events = log.lines().filter(|line| line.contains(USER)).filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let writes = events.filter(|event| {
        let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let wrote = text("/impersonatedUser/username") == USER && !["get", "list", "watch"].contains(&text("/verb"));
        let own = match (text("/objectRef/resource"), text("/objectRef/subresource")) {
            ("vspheremigrationinfra", "status") | ("leases" | "events", _) => true,
            ("configmaps", _) => text("/objectRef/name").starts_with("vmi-") && text("/objectRef/name").ends_with("-plan"),
            // A question, put as a write.
            ("selfsubjectaccessreviews", _) => true,
            _ => text("/requestURI").contains("dryRun=All"),
        };
        wrote && !own
    });
    Ok(writes.map(|event| format!("{} {}", event["verb"], event["requestURI"])).collect())
}

/// How often it called each method of a vCenter, since the counters were reset.
async fn calls(lab: &Lab, vcenter: &str) -> TestResult<BTreeMap<String, u64>> {
    let all = lab.control.get("/calls").await?;
    let ours = all
        .as_array()
        .into_iter()
        .flatten()
        .filter(|call| call["vcenter"] == vcenter && call["client"].as_str().unwrap_or_default().starts_with("vmi-operator/"));
    let mut counts = BTreeMap::new();
    for call in ours {
        *counts.entry(call["method"].as_str().unwrap_or_default().to_owned()).or_default() += call["count"].as_u64().unwrap_or_default();
    }
    Ok(counts)
}

/// Fails if it did more in a vCenter than to look.
async fn only_looked(lab: &Lab) -> TestResult {
    const LOOKS: &[&str] = &["Retrieve", "Continue", "Current", "Find", "Fetch", "Login", "Logout", "GET "];
    for vcenter in ["a", "b"] {
        for method in calls(lab, vcenter).await?.keys() {
            let session = method.contains("session");
            let looks = LOOKS.iter().any(|look| method.starts_with(look)) || method.contains("list-");
            assert!(looks || session, "{method} in vCenter {vcenter}");
        }
    }
    Ok(())
}

pub async fn a_good_vmi_passes_every_check_and_starts_when_it_is_told_to(lab: &Lab) -> TestResult {
    lab.control.post("/calls/reset", &json!({})).await?;
    let ground = Ground::new(lab, "preflight-good", json!({})).await?;
    let alone = Alone::run(&ground, Preflight::default()).await?;
    ground.until_condition(PreflightPassed, "False", "ChecksRunning").await?;
    planned(&ground, "/dc-b/vm/x").await?;
    let vmi = ground.until_condition(PreflightPassed, "False", "NotStarted").await?;
    let plan = vmi.seen().plan.clone().ok_or("no plan")?;
    assert_eq!((plan.path, plan.blocking.len()), (Some(Path::Native), 0), "{plan:?}");
    let odd: Vec<&str> = plan.checks.iter().filter(|check| check.result != CheckResult::Passed).map(|check| check.id.as_str()).collect();
    // The folder is left out, certificates are not looked at, and the backup is acknowledged.
    assert_eq!(odd, ["DOM-005", "TLS-004", "ETC-001"], "{:?}", plan.checks);
    assert_eq!(vmi.step_state(PreflightPassed), StepState::Waiting);
    let before = hash(&vmi);
    assert_eq!(before.len(), 16);

    ground.edit(json!({"state": "Running"})).await?;
    ground.until_condition(PreflightPassed, "False", "ChecksRunning").await?;
    planned(&ground, "/dc-b/vm/x").await?;
    let vmi = ground.until_condition(PreflightPassed, "True", "Passed").await?;
    assert_eq!(hash(&vmi), before);
    assert_eq!(vmi.step_state(PreflightPassed), StepState::Done);
    let baseline = vmi.seen().baseline.clone().ok_or("no baseline")?;
    assert!(baseline.cluster_operators.iter().any(|operator| operator.name == "etcd" && operator.available && !operator.degraded));
    assert!(!baseline.pools.is_empty() && baseline.pools.iter().all(|pool| pool.updated));
    let lease = kubernetes::get(&lab.client, LEASE, &ground.namespace, "vmi-active").await?.ok_or("no Lease")?;
    assert_eq!(lease.data["spec"]["holderIdentity"].as_str(), vmi.metadata.uid.as_deref());
    let map = kubernetes::get(&lab.client, CONFIG_MAP, &ground.namespace, PLAN).await?.ok_or("no ConfigMap")?;
    let text = map.data["data"]["plan.txt"].as_str().unwrap_or_default();
    assert!(text.contains(&before) && text.contains("6 FolderCreated: make the folder /dc-b/vm/x") && text.contains("TOP-003"), "{text}");

    // Once it has passed, an edit only restamps it.
    ground.edit(json!({"health": {"quietPeriod": "4s"}})).await?;
    let vmi = ground
        .until("the condition to be about the edited spec", |vmi| {
            let stamped = vmi.condition(PreflightPassed.as_str()).and_then(|condition| condition.observed_generation);
            if stamped == vmi.metadata.generation { Ok(()) } else { Err(format!("{stamped:?}")) }
        })
        .await?;
    assert!(vmi.is_true("PreflightPassed") && hash(&vmi) == before);

    for (vcenter, most) in [("a", 4), ("b", 16)] {
        // A new generation is a new look, so there were two of them.
        let counts = calls(lab, vcenter).await?;
        assert!(counts.values().sum::<u64>() <= 2 * most && counts["Login"] == 1, "{vcenter}: {counts:?}");
    }
    only_looked(lab).await?;
    assert_eq!(stray_writes(lab)?, Vec::<String>::new());
    alone.finish(&ground).await?;
    ground.leave().await
}

pub async fn a_plan_that_needs_approval_starts_only_with_its_own_hash_and_shows_what_changed_since(lab: &Lab) -> TestResult {
    let ground = Ground::new(lab, "preflight-manual", json!({"state": "Running", "approval": "Manual"})).await?;
    let alone = Alone::run(&ground, Preflight::default()).await?;
    ground.until_condition(PreflightPassed, "False", "ChecksRunning").await?;
    planned(&ground, "/dc-b/vm/x").await?;
    let first = hash(&ground.until_condition(PreflightPassed, "False", "AwaitingApproval").await?);

    // Approved too late: meanwhile something else would be done.
    ground.edit(json!({"approvedPlan": first})).await?;
    planned(&ground, "/dc-b/vm/y").await?;
    let vmi = ground
        .until("the difference to be shown", |vmi| {
            let message = vmi.condition(PreflightPassed.as_str()).map(|condition| condition.message.clone()).unwrap_or_default();
            let all = ["- 6 FolderCreated: make the folder /dc-b/vm/x", "+ 6 FolderCreated: make the folder /dc-b/vm/y"];
            if all.iter().all(|line| message.contains(line)) { Ok(()) } else { Err(message) }
        })
        .await?;
    assert!(!vmi.is_true("PreflightPassed"));
    let second = hash(&vmi);
    assert_ne!(second, first);

    ground.edit(json!({"approvedPlan": second})).await?;
    planned(&ground, "/dc-b/vm/y").await?;
    ground.until_condition(PreflightPassed, "True", "Passed").await?;
    alone.finish(&ground).await?;
    ground.leave().await
}

pub async fn another_migration_is_waited_for_and_one_that_is_gone_is_not(lab: &Lab) -> TestResult {
    let ground = Ground::new(lab, "preflight-second", json!({"state": "Running"})).await?;
    let mut other = ground.vmi().await?;
    other.metadata = kube::api::ObjectMeta { name: Some("other".to_owned()), ..kube::api::ObjectMeta::default() };
    other.status = None;
    other.spec.state = vmi_crds::spec::State::Pending;
    let other = ground.api().create(&kube::api::PostParams::default(), &other).await?;
    let lease = |holder: Option<String>| {
        let metadata = json!({"name": "vmi-active", "namespace": ground.namespace});
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": {"holderIdentity": holder}})
    };
    kubernetes::apply(&lab.client, "test", &lease(other.metadata.uid)).await?;
    let alone = Alone::run(&ground, Preflight::default()).await?;
    ground.until_condition(PreflightPassed, "False", "ChecksRunning").await?;
    planned(&ground, "/dc-b/vm/x").await?;
    let vmi = ground.until_condition(PreflightPassed, "False", "AnotherMigrationActive").await?;
    assert!(vmi.condition(PreflightPassed.as_str()).is_some_and(|condition| condition.message.contains("the migration other")));

    kubernetes::apply(&lab.client, "test", &lease(Some("00000000-0000-0000-0000-000000000000".to_owned()))).await?;
    ground.until_condition(PreflightPassed, "True", "Passed").await?;
    alone.finish(&ground).await?;
    ground.api().delete("other", &kube::api::DeleteParams::default()).await?;
    ground.leave().await
}

/// Gives it what the legacy overlay gives the operator's account besides.
async fn grant_the_legacy_overlay(lab: &Lab) -> TestResult {
    let own = "vmi-operator-legacy";
    let renamed = format!("{USER}-legacy");
    for mut object in deploy::objects(&deploy::overlay(Generation::V4_21))?.into_iter().filter(|object| object["metadata"]["name"] == own) {
        object["metadata"]["name"] = json!(renamed);
        if object.get("roleRef").is_some() {
            object["roleRef"]["name"] = json!(renamed);
            object["subjects"] = json!([{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": USER}]);
        }
        kubernetes::apply(&lab.client, "test", &object).await?;
    }
    Ok(())
}

pub async fn a_cluster_that_refuses_a_second_vcenter_is_planned_on_the_legacy_path_once_its_overlay_is_applied(lab: &Lab) -> TestResult {
    let ground = Ground::new(lab, "preflight-legacy", json!({})).await?;
    let alone = Alone::run(&ground, Preflight::default()).await?;
    let denied = [
        "patch CustomResourceDefinition infrastructures.config.openshift.io",
        "patch CustomResourceDefinition controllerconfigs.machineconfiguration.openshift.io",
        "patch Deployment openshift-cluster-version/cluster-version-operator",
        "apply deploy/overlays/legacy",
    ];
    until_check(&ground, "PTH-002", CheckResult::Blocking, &denied).await?;
    grant_the_legacy_overlay(lab).await?;
    ground.until_condition(PreflightPassed, "False", "ChecksRunning").await?;
    planned(&ground, "/dc-b/vm/x").await?;
    let vmi = ground.until_condition(PreflightPassed, "False", "NotStarted").await?;
    let plan = vmi.seen().plan.clone().ok_or("no plan")?;
    assert_eq!(plan.path, Some(Path::Legacy));
    assert!(plan.path_reason.is_some_and(|reason| reason.contains("vcenters cannot be added or removed once set")));
    assert_eq!(stray_writes(lab)?, Vec::<String>::new());
    alone.finish(&ground).await?;
    ground.leave().await
}

/// Waits until a check of this spec ends so, and returns what it says.
async fn until_check(ground: &Ground<'_>, id: &str, result: CheckResult, words: &[&str]) -> TestResult<String> {
    let find = |vmi: &VSphereMigrationInfra| {
        let plan = vmi.seen().plan.as_ref()?;
        plan.checks.iter().find(|check| check.id == id).cloned()
    };
    let vmi = ground
        .until(&format!("{id} to be {result:?}"), |vmi| {
            let current = vmi.step(StepName::PreflightPassed).is_some_and(|step| step.observed_generation == vmi.metadata.generation);
            match find(vmi) {
                Some(check) if current && check.result == result && words.iter().all(|word| check.message.contains(word)) => Ok(()),
                Some(check) => Err(format!("it is {:?}: {}", check.result, check.message)),
                None => Err("there is none".to_owned()),
            }
        })
        .await?;
    Ok(find(&vmi).map(|check| check.message).unwrap_or_default())
}
