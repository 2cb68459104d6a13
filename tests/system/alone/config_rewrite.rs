//! The controller that makes the cluster's configuration know the target. The operators that follow are the lab's.

use kube::api::PostParams;
use serde_json::{Value, json};
use vmi_config_rewrite::ConfigRewrite;
use vmi_crds::VSphereMigrationInfra;
use vmi_crds::graph::StepName;
use vmi_crds::graph::StepName::{
    CloudConfigExtended, ClusterVersionFrozen, ControlPlaneSetSaved, CredentialsAdded, FolderCreated, InfrastructureExtended,
    InfrastructureUnlocked, PodsHealthy, PodsRestarted, TagsAttached,
};
use vmi_crds::status::StepState;
use vmi_lab::kubernetes::{
    self, CLOUD_CREDENTIAL, CONFIG_MAP, CONTROLLER_CONFIG, CREDENTIALS_REQUEST, INFRASTRUCTURE, Kind, MACHINE_SET, NAMESPACE, SECRET,
};
use vmi_site::credentials::COMPONENT_SECRETS;

use crate::support::alone::{Alone, Ground};
use crate::support::lab::Lab;
use crate::support::openshift::{MACHINE_API, PATIENCE, copy_machine_set};
use crate::support::suite::TestResult;

const ROOT: (&str, &str) = ("kube-system", "vsphere-creds");
const CLOUD_CONFIG: (&str, &str) = ("openshift-config", "cloud-provider-config");
const COPIES: [(&str, &str); 2] = [("openshift-config-managed", "kube-cloud-config"), ("openshift-cloud-controller-manager", "cloud-conf")];
const REQUESTS: &str = "openshift-cloud-credential-operator";

/// Where the configuration is, and which part of each object it is.
fn places() -> Vec<(Kind, (&'static str, &'static str), &'static str)> {
    let secrets = [ROOT].into_iter().chain(COMPONENT_SECRETS).map(|place| (SECRET, place, "/data"));
    let maps = [CLOUD_CONFIG].into_iter().chain(COPIES).map(|place| (CONFIG_MAP, place, "/data"));
    let lists = [
        (INFRASTRUCTURE, ("", "cluster"), "/spec"),
        (CONTROLLER_CONFIG, ("", "machine-config-controller"), "/spec/infra/spec/platformSpec"),
    ];
    secrets.chain(maps).chain(lists).collect()
}

async fn part(lab: &Lab, kind: Kind, (namespace, name): (&str, &str), pointer: &str) -> TestResult<Value> {
    let object = kubernetes::get(&lab.client, kind, namespace, name).await?.ok_or(format!("no {} {namespace}/{name}", kind.kind))?;
    Ok(object.data.pointer(pointer).cloned().unwrap_or_default())
}

/// The whole configuration.
pub async fn dump(lab: &Lab) -> TestResult<Vec<Value>> {
    let mut all = Vec::new();
    for (kind, place, pointer) in places() {
        all.push(part(lab, kind, place, pointer).await?);
    }
    Ok(all)
}

/// Puts back by hand what a test changed, the copies' sources only, and waits until the copies have followed.
pub async fn put_back(lab: &Lab, before: &[Value]) -> TestResult {
    let sources = [(CONFIG_MAP, CLOUD_CONFIG, "data"), (INFRASTRUCTURE, ("", "cluster"), "spec"), (SECRET, ROOT, "data")];
    for (kind, (namespace, name), field) in sources {
        let index = places().iter().position(|(k, place, _)| *k == kind && *place == (namespace, name)).ok_or("not in the dump")?;
        let mut object = kubernetes::get(&lab.client, kind, namespace, name).await?.ok_or("it is gone")?;
        object.data[field] = before[index].clone();
        kind.api(&lab.client, namespace).replace(name, &PostParams::default(), &object).await?;
    }
    let mut cache = lab.watch(&[SECRET, CONFIG_MAP, INFRASTRUCTURE, CONTROLLER_CONFIG]).await;
    let wait = cache.until("the configuration to be as before", PATIENCE, |cache| {
        for ((kind, (namespace, name), pointer), wanted) in places().iter().zip(before) {
            let object = cache.get(*kind, namespace, name).ok_or(format!("{name} is gone"))?;
            if object.data.pointer(pointer) != Some(wanted) {
                return Err(format!("{} {namespace}/{name} differs", kind.kind));
            }
        }
        Ok(())
    });
    Ok(wait.await?)
}

/// As if everything but this controller's steps were done.
pub async fn prepared(ground: &Ground<'_>) -> TestResult {
    ground.start("native").await?;
    ground.done(&[ClusterVersionFrozen, InfrastructureUnlocked, ControlPlaneSetSaved]).await?;
    ground.done(&[TagsAttached, FolderCreated]).await
}

fn servers(list: &Value, key: &str) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(|item| item[key].as_str()).map(str::to_owned).collect()
}

pub async fn the_target_is_planned_added_and_taken_back_to_the_byte(lab: &Lab) -> TestResult {
    let before = dump(lab).await?;
    let (a, b) = (&lab.vcenter("a").server, &lab.vcenter("b").server);
    let ground = Ground::new(lab, "rewrite-whole", json!({})).await?;
    let alone = Alone::run(&ground, ConfigRewrite).await?;

    let planned = ground.until_condition(CloudConfigExtended, "False", "NotStarted").await?;
    let changes = |step| planned.step(step).map(|step| step.changes.clone()).unwrap_or_default();
    assert_eq!(changes(CredentialsAdded).len(), 1 + COMPONENT_SECRETS.len(), "{:?}", changes(CredentialsAdded));
    assert_eq!(
        changes(InfrastructureExtended),
        [
            format!("Infrastructure cluster: vCenter {b} is added"),
            format!("Infrastructure cluster: failure domain fd-b (region-b/zone-b) of {b} is added"),
        ]
    );
    let place = "ConfigMap openshift-config/cloud-provider-config";
    assert_eq!(
        changes(CloudConfigExtended),
        [
            format!("{place}: {b} is listed (datacenters dc-b), its certificate is not checked"),
            format!("{place}: zones and regions are read from tags of the categories openshift-zone and openshift-region"),
        ]
    );
    assert!(before == dump(lab).await?, "a plan changes nothing");

    ground.start("native").await?;
    ground.done(&[ClusterVersionFrozen, InfrastructureUnlocked, ControlPlaneSetSaved]).await?;
    ground.until_condition(CredentialsAdded, "True", "Added").await?;
    for place in [ROOT].into_iter().chain(COMPONENT_SECRETS) {
        let data = part(lab, SECRET, place, "/data").await?;
        for server in [a, b] {
            assert!(data[format!("{server}.username")].is_string() && data[format!("{server}.password")].is_string(), "{place:?}");
        }
    }
    ground.until_condition(InfrastructureExtended, "False", "Waiting").await?;
    ground.done(&[TagsAttached, FolderCreated]).await?;
    ground.until_condition(CloudConfigExtended, "True", "Extended").await?;
    for (kind, place, pointer) in [
        (INFRASTRUCTURE, ("", "cluster"), "/spec/platformSpec/vsphere"),
        (CONTROLLER_CONFIG, ("", "machine-config-controller"), "/spec/infra/spec/platformSpec/vsphere"),
    ] {
        let vsphere = part(lab, kind, place, pointer).await?;
        assert_eq!(servers(&vsphere["vcenters"], "server"), [a.as_str(), b.as_str()], "{}", kind.kind);
        assert_eq!(servers(&vsphere["failureDomains"], "server"), [a.as_str(), b.as_str()], "{}", kind.kind);
    }
    for copy in COPIES {
        let text = part(lab, CONFIG_MAP, copy, "/data/cloud.conf").await?;
        assert!(text.as_str().is_some_and(|text| text.contains(b.as_str()) && text.contains("openshift-zone")), "{copy:?}: {text}");
    }

    ground.edit(json!({"state": "RollingBack"})).await?;
    ground.until_condition(CloudConfigExtended, "False", "Undone").await?;
    ground.until_condition(InfrastructureExtended, "False", "Undone").await?;
    ground.undone(&[PodsRestarted, PodsHealthy]).await?;
    ground.undone(&[TagsAttached, FolderCreated]).await?;
    ground.until_condition(CredentialsAdded, "False", "Undone").await?;
    for (((kind, place, _), now), before) in places().iter().zip(dump(lab).await?).zip(&before) {
        assert!(now == *before, "{} {place:?} is not as it was", kind.kind);
    }
    alone.finish(&ground).await?;
    ground.leave().await
}

pub async fn in_manual_mode_every_secret_is_written_and_what_others_changed_since_stays(lab: &Lab) -> TestResult {
    let before = dump(lab).await?;
    let b = &lab.vcenter("b").server;
    let mode = |mode: &str| json!({"spec": {"credentialsMode": mode}});
    kubernetes::merge(&lab.client, CLOUD_CREDENTIAL, "", "cluster", &mode("Manual")).await?;
    let ground = Ground::new(lab, "rewrite-manual", json!({})).await?;
    ground.start("native").await?;
    ground.done(&[ClusterVersionFrozen, InfrastructureUnlocked, ControlPlaneSetSaved]).await?;
    ground.edit(json!({"state": "Paused"})).await?;
    let alone = Alone::run(&ground, ConfigRewrite).await?;
    ground.until_condition(CredentialsAdded, "False", "Paused").await?;
    assert!(before == dump(lab).await?, "paused, nothing is changed");
    ground.edit(json!({"state": "Running"})).await?;
    ground.until_condition(CredentialsAdded, "True", "Added").await?;
    let password = format!("{b}.password");
    for place in [ROOT].into_iter().chain(COMPONENT_SECRETS) {
        assert!(part(lab, SECRET, place, "/data").await?[&password].is_string(), "{place:?}");
    }
    let (namespace, name) = COMPONENT_SECRETS[3];
    kubernetes::merge(&lab.client, SECRET, namespace, name, &json!({"stringData": {&password: "theirs"}})).await?;

    ground.edit(json!({"state": "RollingBack"})).await?;
    let undone = ground.until_condition(CredentialsAdded, "False", "UndoneWithConflict").await?;
    let message = undone.condition(CredentialsAdded.as_str()).map(|condition| condition.message.clone()).unwrap_or_default();
    assert!(message.contains(&format!("{b} in Secret {namespace}/{name}")) && !message.contains("kube-system"), "{message}");
    for place in [ROOT].into_iter().chain(COMPONENT_SECRETS) {
        let left = part(lab, SECRET, place, "/data").await?[&password].is_string();
        assert_eq!(left, place == (namespace, name), "{place:?}");
    }
    alone.finish(&ground).await?;
    kubernetes::merge(&lab.client, CLOUD_CREDENTIAL, "", "cluster", &mode("")).await?;
    put_back(lab, &before).await?;
    ground.leave().await
}

pub async fn what_others_changed_in_infrastructure_and_the_cloud_configuration_survives_the_way_back(lab: &Lab) -> TestResult {
    let before = dump(lab).await?;
    let b = &lab.vcenter("b").server;
    let ground = Ground::new(lab, "rewrite-others", json!({})).await?;
    prepared(&ground).await?;
    let alone = Alone::run(&ground, ConfigRewrite).await?;
    ground.until_condition(CloudConfigExtended, "True", "Extended").await?;

    let text = part(lab, CONFIG_MAP, CLOUD_CONFIG, "/data/config").await?;
    let text = format!("# theirs\n{}", text.as_str().unwrap_or_default());
    kubernetes::merge(&lab.client, CONFIG_MAP, CLOUD_CONFIG.0, CLOUD_CONFIG.1, &json!({"data": {"config": text}})).await?;
    let mut domains = part(lab, INFRASTRUCTURE, ("", "cluster"), "/spec/platformSpec/vsphere/failureDomains").await?;
    let mut theirs = domains[1].clone();
    theirs["name"] = json!("theirs");
    theirs["zone"] = json!("zone-theirs");
    domains.as_array_mut().ok_or("no failure domains")?.push(theirs);
    let patch = json!({"spec": {"platformSpec": {"vsphere": {"failureDomains": domains}}}});
    kubernetes::merge(&lab.client, INFRASTRUCTURE, "", "cluster", &patch).await?;

    ground.edit(json!({"state": "RollingBack"})).await?;
    ground.until_condition(CloudConfigExtended, "False", "UndoneWithConflict").await?;
    let undone = ground.until_condition(InfrastructureExtended, "False", "UndoneWithConflict").await?;
    let message = undone.condition(InfrastructureExtended.as_str()).map(|condition| condition.message.clone()).unwrap_or_default();
    assert!(message.contains(&format!("vCenter {b} holds failure domain theirs")), "{message}");
    let text = part(lab, CONFIG_MAP, CLOUD_CONFIG, "/data/config").await?;
    assert!(text.as_str().is_some_and(|text| text.starts_with("# theirs\n") && !text.contains(b.as_str())), "{text}");
    let vsphere = part(lab, INFRASTRUCTURE, ("", "cluster"), "/spec/platformSpec/vsphere").await?;
    assert_eq!(servers(&vsphere["failureDomains"], "name").last().map(String::as_str), Some("theirs"));
    assert_eq!(vsphere["failureDomains"].as_array().map(Vec::len), Some(2), "the one that was added here is gone");
    alone.finish(&ground).await?;
    put_back(lab, &before).await?;
    ground.leave().await
}

pub async fn what_others_take_away_of_the_target_is_shown_and_left_and_forgotten_once_it_is_back(lab: &Lab) -> TestResult {
    const STEPS: [StepName; 3] = [CredentialsAdded, InfrastructureExtended, CloudConfigExtended];
    let before = dump(lab).await?;
    let b = &lab.vcenter("b").server;
    let ground = Ground::new(lab, "rewrite-drift", json!({})).await?;
    prepared(&ground).await?;
    let alone = Alone::run(&ground, ConfigRewrite).await?;
    let done = ground.until_condition(CloudConfigExtended, "True", "Extended").await?;
    let grown = dump(lab).await?;

    put_back(lab, &before).await?;
    for (step, what) in [
        (CredentialsAdded, format!("Secret kube-system/vsphere-creds does not hold the pair of {b} any more")),
        (InfrastructureExtended, format!("Infrastructure cluster does not list vCenter {b}, failure domain fd-b any more")),
        (CloudConfigExtended, format!("ConfigMap openshift-config/cloud-provider-config does not list {b} any more")),
    ] {
        let vmi = ground.until_condition(step, "True", "Drifted").await?;
        let condition = vmi.condition(step.as_str()).ok_or("no condition")?;
        assert!(condition.message.starts_with(&what) && condition.message.contains("by hand"), "{}", condition.message);
        assert_eq!((vmi.step_state(step), condition.observed_generation), (StepState::Done, vmi.metadata.generation));
    }
    assert!(before == dump(lab).await?, "a drift was repaired");

    put_back(lab, &grown).await?;
    for (step, reason) in STEPS.into_iter().zip(["Added", "Extended", "Extended"]) {
        let vmi = ground.until_condition(step, "True", reason).await?;
        let message = |vmi: &VSphereMigrationInfra| vmi.condition(step.as_str()).map(|condition| condition.message.clone());
        assert_eq!(message(&vmi), message(&done), "{step}");
    }
    alone.finish(&ground).await?;
    put_back(lab, &before).await?;
    ground.leave().await
}

pub async fn the_way_back_waits_for_whoever_uses_the_target_and_goes_on_when_they_left(lab: &Lab) -> TestResult {
    let before = dump(lab).await?;
    let ground = Ground::new(lab, "rewrite-in-use", json!({})).await?;
    prepared(&ground).await?;
    let alone = Alone::run(&ground, ConfigRewrite).await?;
    ground.until_condition(CloudConfigExtended, "True", "Extended").await?;
    copy_machine_set(lab, "theirs", 0).await?;
    let labels = json!({"machine.openshift.io/region": "region-b", "machine.openshift.io/zone": "zone-b"});
    let patch = json!({"spec": {"template": {"metadata": {"labels": labels}}}});
    kubernetes::merge(&lab.client, MACHINE_SET, MACHINE_API, "theirs", &patch).await?;

    ground.edit(json!({"state": "RollingBack"})).await?;
    ground
        .until("the way back to name who is in the way", |vmi| match vmi.condition(InfrastructureExtended.as_str()) {
            Some(condition) if condition.message.contains("still in use by MachineSet 'theirs'") => Ok(()),
            other => Err(format!("{other:?}")),
        })
        .await?;
    kubernetes::delete(&lab.client, MACHINE_SET, MACHINE_API, "theirs").await?;
    ground.until_condition(InfrastructureExtended, "False", "Undone").await?;
    alone.finish(&ground).await?;
    put_back(lab, &before).await?;
    ground.leave().await
}

pub async fn a_target_that_is_there_already_is_left_on_the_way_back(lab: &Lab) -> TestResult {
    let before = dump(lab).await?;
    let first = Ground::new(lab, "rewrite-first", json!({})).await?;
    prepared(&first).await?;
    let alone = Alone::run(&first, ConfigRewrite).await?;
    first.until_condition(CloudConfigExtended, "True", "Extended").await?;
    alone.finish(&first).await?;
    first.leave().await?;

    let grown = dump(lab).await?;
    let second = Ground::new(lab, "rewrite-second", json!({})).await?;
    prepared(&second).await?;
    let alone = Alone::run(&second, ConfigRewrite).await?;
    for step in [CredentialsAdded, InfrastructureExtended, CloudConfigExtended] {
        second.until_condition(step, "True", "AlreadyThere").await?;
    }
    second.edit(json!({"state": "RollingBack"})).await?;
    second.until_condition(InfrastructureExtended, "False", "Undone").await?;
    second.undone(&[PodsRestarted, PodsHealthy]).await?;
    second.undone(&[TagsAttached, FolderCreated]).await?;
    second.until_condition(CredentialsAdded, "False", "Undone").await?;
    assert!(grown == dump(lab).await?, "what was there before stays");
    alone.finish(&second).await?;
    put_back(lab, &before).await?;
    second.leave().await
}

pub async fn a_secret_that_may_not_be_read_is_named_with_the_command_that_allows_it(lab: &Lab) -> TestResult {
    let before = dump(lab).await?;
    let add_on = "rewrite-add-on";
    kubernetes::apply(&lab.client, "test", &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": add_on}})).await?;
    let request = json!({
        "apiVersion": "cloudcredential.openshift.io/v1", "kind": "CredentialsRequest",
        "metadata": {"name": add_on, "namespace": REQUESTS},
        "spec": {
            "secretRef": {"namespace": add_on, "name": "own"},
            "providerSpec": {"apiVersion": "cloudcredential.openshift.io/v1", "kind": "VSphereProviderSpec"},
        },
    });
    kubernetes::apply(&lab.client, "test", &request).await?;
    let ground = Ground::new(lab, "rewrite-denied", json!({})).await?;
    prepared(&ground).await?;
    let alone = Alone::run(&ground, ConfigRewrite).await?;
    let failed = ground.until_condition(CredentialsAdded, "False", "SEC-002").await?;
    let failure = failed.step(CredentialsAdded).and_then(|step| step.failure.clone()).ok_or("no failure is reported")?;
    assert!(failure.message.contains(&format!("{add_on}/own")), "{}", failure.message);
    let role = format!("oc -n {add_on} create role vmi-credentials --verb=get,update --resource=secrets --resource-name=own");
    assert!(failure.look.contains(&role), "{:?}", failure.look);
    assert!(before == dump(lab).await?, "nothing was written");
    // It was denied something, and that is the point.
    alone.kill().await;
    kubernetes::delete(&lab.client, CREDENTIALS_REQUEST, REQUESTS, add_on).await?;
    kubernetes::delete(&lab.client, NAMESPACE, "", add_on).await?;
    ground.leave().await
}
