//! The vmi on a real apiserver: what it shows, what it refuses, and who may write what.

mod bad_specs;

use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use vmi_crds::graph::Controller;
use vmi_lab::cluster::crds;
use vmi_lab::kubernetes::{self, CRD, Kind, condition};

use crate::support::asking;
use crate::support::lab::Lab;
use crate::support::openshift::PATIENCE;
use crate::support::suite::TestResult;

pub use bad_specs::a_bad_vmi_is_refused_and_the_field_is_named;

const GROUP: &str = "config.openshift.io";
const VMI: Kind =
    Kind { group: GROUP, version: "v1alpha1", kind: "VSphereMigrationInfra", plural: "vspheremigrationinfra", namespaced: true };
const NAMESPACE: &str = "default";
const STATES: [&str; 5] = ["Pending", "Running", "Paused", "RollingBack", "Abandoned"];
const NOW: &str = "2026-01-02T03:04:05Z";

pub async fn install(lab: &Lab) -> TestResult {
    crds::install(&lab.client, &[vmi_lab::yaml::parse(vmi_crds::CRD_YAML)?]).await?;
    // Established comes a moment before the first request is answered; a first list says that it is.
    drop(lab.watch(&[VMI]).await);
    Ok(())
}

/// Takes the CRD away, and every vmi with it.
pub async fn leave(lab: &Lab) -> TestResult {
    let name = format!("{}.{GROUP}", VMI.plural);
    let mut cache = lab.watch(&[CRD]).await;
    kubernetes::delete(&lab.client, CRD, "", &name).await?;
    cache.until("the CRD to go", PATIENCE, |cache| cache.get(CRD, "", &name).map_or(Ok(()), |_| Err("it is there".to_owned()))).await?;
    Ok(())
}

fn domain(name: &str, zone: &str) -> Value {
    json!({"name": name, "region": "region-b", "zone": zone, "server": "b.example.com", "topology": {
        "datacenter": "dc", "computeCluster": "/dc/host/cluster", "networks": ["VM Network"], "datastore": "/dc/datastore/ds"}})
}

pub fn sample() -> Value {
    json!({"vcenters": [{"server": "b.example.com", "datacenters": ["dc"]}], "failureDomains": [domain("fd-1", "zone-1"), domain("fd-2", "zone-2")],
        "credentialsSecret": {"name": "target"}, "source": {"servers": ["a.example.com"]},
        "machineSets": [{"name": "workers", "failureDomains": ["fd-1"], "replicas": 2}]})
}

pub async fn create(lab: &Lab, name: &str, spec: &Value, dry_run: bool) -> Result<DynamicObject, kube::Error> {
    let mut vmi = DynamicObject::new(name, &VMI.resource());
    vmi.data = json!({"spec": spec});
    VMI.api(&lab.client, NAMESPACE).create(&PostParams { dry_run, ..PostParams::default() }, &vmi).await
}

/// Whether the apiserver would take this edit of the spec.
async fn try_edit(lab: &Lab, name: &str, spec: &Value) -> Result<(), kube::Error> {
    let params = PatchParams { dry_run: true, ..PatchParams::default() };
    VMI.api(&lab.client, NAMESPACE).patch(name, &params, &Patch::Merge(json!({"spec": spec}))).await.map(drop)
}

async fn to_state(lab: &Lab, name: &str, state: &str) -> TestResult {
    kubernetes::merge(&lab.client, VMI, NAMESPACE, name, &json!({"spec": {"state": state}})).await?;
    Ok(())
}

pub async fn report(lab: &Lab, name: &str, status: &Value) -> TestResult {
    kubernetes::merge_status(&lab.client, VMI, NAMESPACE, name, &json!({"status": status})).await?;
    Ok(())
}

/// The fields that the apiserver names in its refusal, and all it says; none where it accepts.
fn refusal<T>(outcome: Result<T, kube::Error>) -> TestResult<Option<(Vec<String>, String)>> {
    match outcome {
        Ok(_) => Ok(None),
        Err(kube::Error::Api(status)) if status.code == 422 => {
            let causes = status.details.iter().flat_map(|details| &details.causes);
            Ok(Some((causes.map(|cause| cause.field.clone()).collect(), status.message.clone())))
        }
        Err(error) => Err(error.into()),
    }
}

pub fn is(name: &str) -> Value {
    json!({"type": name, "status": "True", "reason": "Test", "message": "", "lastTransitionTime": NOW})
}

pub async fn the_vmi_is_served_with_its_defaults_and_kubectl_shows_its_columns(lab: &Lab) -> TestResult {
    install(lab).await?;
    let crd = kubernetes::get(&lab.client, CRD, "", &format!("{}.{GROUP}", VMI.plural)).await?.ok_or("no CRD")?;
    assert_eq!((condition(&crd, "NamesAccepted"), condition(&crd, "NonStructuralSchema")), ("True", ""));

    let made = create(lab, "moving", &sample(), false).await?;
    let spec = &made.data["spec"];
    let chosen = ["state", "sourceRetirement", "freeze", "volumes", "approval"].map(|field| spec[field].as_str().unwrap_or_default());
    assert_eq!(chosen, ["Pending", "Remove", "ScaleDown", "Refuse", "Automatic"]);
    assert_eq!(spec["rollout"], json!({"batch": 10, "draining": 1}));
    assert_eq!(spec["health"], json!({"quietPeriod": "5m", "deadline": "30m"}));

    let summary = json!({"step": "7", "progress": "7/16", "safeToStop": true, "source": "a.example.com", "target": "b.example.com"});
    let plan = json!({"path": "legacy", "hash": "0123abcd"});
    report(lab, "moving", &json!({"summary": summary, "plan": plan, "conditions": [is("Held")]})).await?;
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    for name in ["vmi", "vmig", "vspheremigrationinfra"] {
        let get = async || lab.kubectl(&["get", name, "-n", NAMESPACE]).await?.success();
        // A kind is served before discovery tells kubectl of it.
        let shown = asking::until("the kind by its short names", get).await?.stdout;
        let lines: Vec<_> = shown.lines().map(words).collect();
        assert_eq!(lines[0], ["NAME", "STATE", "STEP", "PROGRESS", "SAFE-STOP", "SOURCE", "TARGET", "AGE"]);
        assert_eq!(lines[1][..7], ["moving", "Pending", "7", "7/16", "true", "a.example.com", "b.example.com"]);
    }
    let wide = lab.kubectl(&["get", "vmi", "-n", NAMESPACE, "-o", "wide"]).await?.success()?.stdout;
    let lines: Vec<_> = wide.lines().map(words).collect();
    assert_eq!(lines[0][8..], ["PATH", "PLAN", "HELD"]);
    assert_eq!(lines[1][8..], ["legacy", "0123abcd", "True"]);
    leave(lab).await
}

/// The states on the way to one.
fn way_to(state: &str) -> &'static [&'static str] {
    match state {
        "Pending" => &[],
        "Running" => &["Running"],
        "Paused" => &["Running", "Paused"],
        "RollingBack" => &["Running", "RollingBack"],
        _ => &["Running", "Paused", "Abandoned"],
    }
}

pub async fn a_state_leads_only_where_it_may(lab: &Lab) -> TestResult {
    install(lab).await?;
    let condition = |name: &str| json!({"conditions": [is(name)]});
    // What the status says, and where Pending, Running, Paused, RollingBack and Abandoned lead then.
    let table: [(&str, Value, [&[&str]; 5]); 6] = [
        ("new", json!({}), [&["Running"], &["Paused", "RollingBack"], &["Running", "RollingBack", "Abandoned"], &["Paused"], &[]]),
        (
            "held",
            condition("Held"),
            [
                &["Running", "Abandoned"],
                &["Paused", "RollingBack", "Abandoned"],
                &["Running", "RollingBack", "Abandoned"],
                &["Paused", "Abandoned"],
                &[],
            ],
        ),
        ("one-way", json!({"oneWayAt": NOW}), [&["Running"], &["Paused"], &["Running", "Abandoned"], &["Paused"], &[]]),
        (
            "going-back",
            json!({"rollingBackAt": NOW}),
            [&["Running"], &["Paused", "RollingBack"], &["RollingBack", "Abandoned"], &["Paused"], &[]],
        ),
        ("completed", condition("Completed"), [&[]; 5]),
        ("rolled-back", condition("RolledBack"), [&[]; 5]),
    ];
    let mut wrong = Vec::new();
    for (case, status, leads) in &table {
        for (from, leads) in STATES.iter().zip(leads) {
            let name = format!("{case}-{}", from.to_lowercase());
            create(lab, &name, &sample(), false).await?;
            for state in way_to(from) {
                to_state(lab, &name, state).await?;
            }
            report(lab, &name, status).await?;
            for to in STATES {
                let refused = refusal(try_edit(lab, &name, &json!({"state": to})).await)?;
                let as_it_should = match &refused {
                    None => to == *from || leads.contains(&to),
                    Some((fields, _)) => to != *from && !leads.contains(&to) && fields.iter().all(|field| field == "spec.state"),
                };
                if !as_it_should {
                    wrong.push(format!("{case}: {from} to {to}: {refused:?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    leave(lab).await
}

pub async fn once_started_only_what_may_change_changes(lab: &Lab) -> TestResult {
    install(lab).await?;
    let fixed = [
        ("vcenters", json!([{"server": "b.example.com", "port": 8443, "datacenters": ["dc"]}])),
        ("failureDomains", json!([domain("fd-1", "zone-1")])),
        ("nodeNetworking", json!({"internal": {"network": "VM Network"}})),
        ("source", Value::Null),
        ("machineSets", json!([{"name": "workers", "failureDomains": ["fd-1"], "replicas": 3}])),
        ("controlPlane", json!({"failureDomains": ["fd-1"]})),
        ("sourceRetirement", json!("Keep")),
        ("freeze", json!("Overrides")),
    ];
    assert_eq!(fixed.each_ref().map(|(field, _)| *field), vmi_crds::rules::FIXED_ONCE_STARTED);
    let free = [
        ("state", json!("Paused")),
        ("approval", json!("Manual")),
        ("approvedPlan", json!("0123abcd")),
        ("health", json!({"quietPeriod": "1m"})),
        ("trust", json!({"insecure": true})),
        ("credentialsSecret", json!({"name": "other"})),
        ("rollout", json!({"batch": 3})),
        ("acknowledged", json!(["ETC-001"])),
        ("volumes", json!("Ignore")),
    ];
    let mut spec = sample();
    spec["state"] = json!("Running");
    create(lab, "moving", &spec, false).await?;
    for (field, value) in fixed.iter().chain(&free) {
        let refused = refusal(try_edit(lab, "moving", &json!({*field: value})).await)?;
        // Nothing else in the sample names the second domain, so that every edit stands alone.
        assert_eq!(refused, None, "{field} before the start");
    }
    report(lab, "moving", &json!({"startedAt": NOW, "source": {"servers": ["a.example.com"]}})).await?;
    for (field, value) in &fixed {
        let refused = refusal(try_edit(lab, "moving", &json!({*field: value})).await)?;
        assert!(refused.as_ref().is_some_and(|(fields, _)| *fields == [format!("spec.{field}")]), "{field}: {refused:?}");
    }
    for (field, value) in &free {
        assert_eq!(refusal(try_edit(lab, "moving", &json!({*field: value})).await)?, None, "{field} after the start");
    }
    kubernetes::merge(&lab.client, VMI, NAMESPACE, "moving", &json!({"spec": {"volumes": "Ignore"}})).await?;
    let refused = refusal(try_edit(lab, "moving", &json!({"volumes": "Refuse"})).await)?;
    assert!(refused.is_some_and(|(fields, _)| fields == ["spec.volumes"]));

    for (field, value) in [("startedAt", json!("2026-02-02T03:04:05Z")), ("startedAt", Value::Null), ("source", json!({"servers": ["z"]}))]
    {
        let patch = Patch::Merge(json!({"status": {field: value}}));
        let refused = refusal(VMI.api(&lab.client, NAMESPACE).patch_status("moving", &PatchParams::default(), &patch).await)?;
        assert!(refused.as_ref().is_some_and(|(fields, _)| *fields == [format!("status.{field}")]), "{field}: {refused:?}");
    }
    leave(lab).await
}

async fn apply(lab: &Lab, by: Controller, status: &Value) -> Result<DynamicObject, kube::Error> {
    let body = json!({"apiVersion": VMI.api_version(), "kind": VMI.kind, "metadata": {"name": "moving"}, "status": status});
    VMI.api(&lab.client, NAMESPACE).patch_status("moving", &PatchParams::apply(&by.field_manager()), &Patch::Apply(body)).await
}

fn names(vmi: &DynamicObject, list: &str, key: &str) -> Vec<String> {
    let mut names: Vec<String> =
        vmi.data["status"][list].as_array().into_iter().flatten().filter_map(|entry| entry[key].as_str()).map(str::to_owned).collect();
    names.sort();
    names
}

pub async fn two_controllers_do_not_erase_each_others_conditions(lab: &Lab) -> TestResult {
    install(lab).await?;
    create(lab, "moving", &sample(), false).await?;
    let step =
        |name: &str, number: &str, by: Controller| json!({"name": name, "number": number, "controller": by.as_str(), "state": "Done"});
    let (first, second) = (Controller::Preflight, Controller::ClusterFreeze);
    let passed = json!({"conditions": [is("PreflightPassed")], "steps": [step("PreflightPassed", "0", first)], "plan": {"path": "native"}});
    apply(lab, first, &passed).await?;
    let (frozen, unlocked) = (is("ClusterVersionFrozen"), is("InfrastructureUnlocked"));
    let steps = json!([step("ClusterVersionFrozen", "1", second)]);
    let both = apply(lab, second, &json!({"conditions": [frozen, unlocked], "steps": steps})).await?;
    assert_eq!(names(&both, "conditions", "type"), ["ClusterVersionFrozen", "InfrastructureUnlocked", "PreflightPassed"]);
    assert_eq!(names(&both, "steps", "name"), ["ClusterVersionFrozen", "PreflightPassed"]);

    // Whoever applies less takes away of its own only.
    apply(lab, second, &json!({"conditions": [frozen], "steps": []})).await?;
    let after = apply(lab, first, &passed).await?;
    assert_eq!(names(&after, "conditions", "type"), ["ClusterVersionFrozen", "PreflightPassed"]);
    assert_eq!(names(&after, "steps", "name"), ["PreflightPassed"]);
    assert_eq!(after.data["status"]["plan"], json!({"path": "native"}));

    let mut other = is("PreflightPassed");
    other["status"] = json!("False");
    match apply(lab, second, &json!({"conditions": [other]})).await {
        Err(kube::Error::Api(status)) if status.code == 409 => assert!(status.message.contains("vmi-preflight"), "{}", status.message),
        outcome => return Err(format!("another's condition was not in conflict: {outcome:?}").into()),
    }
    leave(lab).await
}
