//! The controller that makes tags and folders in the vCenters. Looked at with a client of the test's own.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use vmi_crds::graph::StepName::{ClusterVersionFrozen, ControlPlaneSetSaved, FolderCreated, InfrastructureUnlocked, TagsAttached};
use vmi_lab::kubernetes::{self, CONFIG_MAP, SECRET};
use vmi_lab::vcenter::INFRA_ID;
use vmi_vcenter_prep::VcenterPrep;
use vsphere::{Client, Credentials, Endpoint, Settings, Trust, Want};

use crate::support::alone::{Alone, Ground};
use crate::support::lab::Lab;
use crate::support::openshift::{refused_logins, vcenter};
use crate::support::suite::TestResult;

/// The operator's part of the simulator's books.
const OPERATOR: &str = "vmi-operator";
const REST: &str = "/rest/com/vmware/cis/tagging";

/// Folders, and every tag as `category/tag` with what it is on; of a category without tags its name alone.
type Content = BTreeMap<String, Vec<String>>;

fn client(lab: &Lab, name: &str) -> TestResult<Client> {
    let vcenter = vcenter(lab, name)?;
    let endpoint = Endpoint { server: vcenter.server, port: vcenter.port };
    Ok(Client::new(Settings::new(endpoint, Credentials::new(vcenter.username, vcenter.password), Trust::Insecure))?)
}

async fn content(lab: &Lab, name: &str) -> TestResult<Content> {
    let client = client(lab, name)?;
    let inventory = client.inventory(Want::Folders).await?;
    let paths = inventory.folders.iter().map(|folder| folder.node.path.clone()).filter(|path| path.contains("/vm")).collect();
    let mut content = Content::from([("folders".to_owned(), paths)]);
    for category in client.tags().categories().await? {
        content.insert(category.name.clone(), Vec::new());
        let tags = client.tags().of(&category).await?;
        for (tag, objects) in tags.iter().zip(client.tags().objects(&tags).await?) {
            let path = |object| inventory.by_reference(object).map_or_else(|| format!("{object}"), |node| node.path.clone());
            // Machines come and go in a shared lab.
            let mut on: Vec<String> = objects.iter().filter(|object| object.kind.as_str() != "VirtualMachine").map(path).collect();
            on.sort();
            content.insert(format!("{}/{}", category.name, tag.name), on);
        }
    }
    client.logout().await?;
    Ok(content)
}

/// What vCenter b has once it is prepared, besides what it had.
fn prepared(mut content: Content) -> Content {
    let folder = format!("/dc-b/vm/{INFRA_ID}");
    if let Some(folders) = content.get_mut("folders") {
        folders.push(folder.clone());
        folders.sort();
    }
    let own = format!("openshift-{INFRA_ID}");
    for category in [own.as_str(), "openshift-region", "openshift-zone"] {
        content.insert(category.to_owned(), Vec::new());
    }
    content.insert(format!("{own}/{INFRA_ID}"), vec![folder]);
    content.insert("openshift-region/region-b".to_owned(), vec!["/dc-b".to_owned()]);
    content.insert("openshift-zone/zone-b".to_owned(), vec!["/dc-b/host/cluster-b".to_owned()]);
    content
}

/// How many calls the operator made to a vCenter since the counts were reset.
async fn calls(lab: &Lab, name: &str) -> TestResult<u64> {
    let all = lab.control.get("/calls").await?;
    let ours = all
        .as_array()
        .into_iter()
        .flatten()
        .filter(|call| call["vcenter"] == name && call["client"].as_str().is_some_and(|client| client.contains(OPERATOR)));
    Ok(ours.filter_map(|call| call["count"].as_u64()).sum())
}

async fn its_turn(ground: &Ground<'_>) -> TestResult {
    ground.start("native").await?;
    ground.done(&[ClusterVersionFrozen, InfrastructureUnlocked, ControlPlaneSetSaved]).await
}

async fn take_back(ground: &Ground<'_>, reason: &str) -> TestResult {
    ground.edit(json!({"state": "RollingBack"})).await?;
    ground.until_condition(FolderCreated, "False", reason).await?;
    ground.until_condition(TagsAttached, "False", reason).await?;
    Ok(())
}

async fn kept_calls(ground: &Ground<'_>, number: u8) -> TestResult<String> {
    let name = format!("vmi-growth-calls-{number}");
    let map = kubernetes::get(&ground.lab.client, CONFIG_MAP, &ground.namespace, &name).await?.ok_or(format!("no ConfigMap {name}"))?;
    Ok(map.data["data"]["calls.json"].as_str().unwrap_or_default().to_owned())
}

pub async fn tags_and_folder_are_planned_made_with_few_calls_and_taken_back(lab: &Lab) -> TestResult {
    let before = (content(lab, "a").await?, content(lab, "b").await?);
    lab.control.post("/calls/reset", &json!({})).await?;
    let ground = Ground::new(lab, "prep-way", json!({})).await?;
    let alone = Alone::run(&ground, VcenterPrep::default()).await?;
    let planned = ground
        .until("both steps to be planned", |vmi| {
            let changes = |step| vmi.step(step).map_or(0, |step| step.changes.len());
            let found = (changes(TagsAttached), changes(FolderCreated));
            if found == (8, 2) { Ok(()) } else { Err(format!("{found:?} changes: {:?}", vmi.condition(TagsAttached.as_str()))) }
        })
        .await?;
    let server = &lab.vcenter("b").server;
    assert!(planned.step(FolderCreated).unwrap().changes[0].starts_with(&format!("{server}: make folder /dc-b/vm/")), "{planned:?}");
    assert_eq!(content(lab, "b").await?, before.1, "a plan changes nothing");

    its_turn(&ground).await?;
    ground.until_condition(TagsAttached, "True", "Attached").await?;
    ground.until_condition(FolderCreated, "True", "Created").await?;
    assert_eq!(content(lab, "b").await?, prepared(before.1.clone()));
    assert_eq!(content(lab, "a").await?, before.0, "the source had everything");
    let (source, target) = (calls(lab, "a").await?, calls(lab, "b").await?);
    println!("        vCenter calls: source {source}, target {target}");
    assert!(source <= 14 && target <= 20, "calls: source {source}, target {target}");

    let kept = [kept_calls(&ground, 5).await?, kept_calls(&ground, 6).await?];
    let parsed: Vec<Value> = serde_json::from_str(&kept[1])?;
    assert!(parsed.iter().any(|call| call["method"] == "CreateFolder" && call["result"] == "ok"), "{}", kept[1]);
    assert!(kept[0].contains("tagging/category"), "{}", kept[0]);
    for vcenter in [vcenter(lab, "a")?, vcenter(lab, "b")?] {
        assert!(!kept.iter().any(|text| text.contains(&vcenter.password)), "a password is among the kept calls");
    }

    // The vmi changes often, and that is no reason to ask a vCenter.
    ground.edit(json!({"health": {"quietPeriod": "4s"}})).await?;
    restamped(&ground).await?;
    assert_eq!((calls(lab, "a").await?, calls(lab, "b").await?), (source, target));

    take_back(&ground, "Undone").await?;
    assert_eq!((content(lab, "a").await?, content(lab, "b").await?), before);
    alone.finish(&ground).await?;
    ground.leave().await
}

/// Waits until both steps have seen the vmi as it is now.
async fn restamped(ground: &Ground<'_>) -> TestResult {
    let generation = ground.vmi().await?.metadata.generation;
    ground
        .until("both steps to be restamped", |vmi| {
            let seen = [TagsAttached, FolderCreated].map(|step| vmi.condition(step.as_str()).and_then(|found| found.observed_generation));
            if seen.iter().all(|seen| *seen == generation) { Ok(()) } else { Err(format!("{seen:?} of {generation:?}")) }
        })
        .await?;
    Ok(())
}

pub async fn killed_during_any_of_its_changes_it_goes_on_and_can_still_be_taken_back(lab: &Lab) -> TestResult {
    let before = content(lab, "b").await?;
    let ground = Ground::new(lab, "prep-killed", json!({})).await?;
    its_turn(&ground).await?;
    let changes = [
        ("rest", format!("POST {REST}/category"), TagsAttached, "make tag category"),
        ("rest", format!("POST {REST}/tag"), TagsAttached, "make tag "),
        ("rest", format!("POST {REST}/tag-association/*"), TagsAttached, "attach tag"),
        ("soap", "CreateFolder".to_owned(), FolderCreated, "make folder"),
        ("rest", format!("POST {REST}/tag-association/*"), FolderCreated, "attach tag"),
    ];
    for (api, method, step, words) in changes {
        // The call hangs until its caller dies, and is carried out only then.
        let fault = json!({"kind": "latency", "milliseconds": 600_000, "api": api, "method": method, "client": OPERATOR});
        lab.control.post("/vcenters/b/faults", &fault).await?;
        let alone = Alone::run(&ground, VcenterPrep::default()).await?;
        ground
            .until(&format!("{step} to say {words:?}"), |vmi| match vmi.condition(step.as_str()) {
                Some(found) if found.reason == "InProgress" && found.message.contains(words) => Ok(()),
                other => Err(format!("{other:?}")),
            })
            .await?;
        alone.kill().await;
        lab.control.delete("/vcenters/b/faults").await?;
    }
    let alone = Alone::run(&ground, VcenterPrep::default()).await?;
    ground.until_condition(FolderCreated, "True", "Created").await?;
    assert_eq!(content(lab, "b").await?, prepared(before.clone()));
    take_back(&ground, "Undone").await?;
    assert_eq!(content(lab, "b").await?, before);
    alone.finish(&ground).await?;
    ground.leave().await
}

pub async fn an_object_with_another_tag_of_the_category_is_refused_and_nothing_is_attached(lab: &Lab) -> TestResult {
    let clean = content(lab, "b").await?;
    let theirs = json!({"category": "openshift-region", "tag": "theirs", "type": "Datacenter", "object": "dc-b"});
    lab.control.post("/vcenters/b/tags", &theirs).await?;
    let before = content(lab, "b").await?;
    let ground = Ground::new(lab, "prep-second", json!({})).await?;
    let alone = Alone::run(&ground, VcenterPrep::default()).await?;
    its_turn(&ground).await?;
    let refused = ground.until_condition(TagsAttached, "False", "TAG-002").await?;
    let failure = refused.step(TagsAttached).and_then(|step| step.failure.clone()).ok_or("no failure")?;
    assert!(failure.message.contains("theirs") && failure.message.contains("region-b"), "{}", failure.message);
    assert_eq!(content(lab, "b").await?, before, "nothing was attached, nor made");

    let client = client(lab, "b")?;
    let category = client.tags().category("openshift-region").await?.ok_or("no category")?;
    client.tags().delete(&client.tags().of(&category).await?[0]).await?;
    for state in ["Paused", "Running"] {
        ground.edit(json!({"state": state})).await?;
        restamped(&ground).await?;
    }
    ground.until_condition(FolderCreated, "True", "Created").await?;
    assert_eq!(content(lab, "b").await?, prepared(clean.clone()));
    take_back(&ground, "Undone").await?;
    let mut after = content(lab, "b").await?;
    assert_eq!(after.remove("openshift-region"), Some(Vec::new()), "their category stays");
    assert_eq!(after, clean);
    client.tags().delete_category(&category).await?;
    client.logout().await?;
    alone.finish(&ground).await?;
    ground.leave().await
}

pub async fn what_others_use_meanwhile_is_left_and_listed(lab: &Lab) -> TestResult {
    let before = content(lab, "b").await?;
    let ground = Ground::new(lab, "prep-shared", json!({})).await?;
    let alone = Alone::run(&ground, VcenterPrep::default()).await?;
    its_turn(&ground).await?;
    ground.until_condition(FolderCreated, "True", "Created").await?;
    let theirs = json!({"category": "openshift-region", "tag": "region-b", "type": "ClusterComputeResource", "object": "cluster-b"});
    lab.control.post("/vcenters/b/tags", &theirs).await?;
    lab.control.post("/vcenters/b/folders", &json!({"datacenter": "dc-b", "path": format!("{INFRA_ID}/theirs")})).await?;
    take_back(&ground, "UndoneWithConflict").await?;
    let vmi = ground.vmi().await?;
    let message = |step: vmi_crds::graph::StepName| vmi.condition(step.as_str()).map(|found| found.message.clone()).unwrap_or_default();
    assert!(message(FolderCreated).contains(&format!("/dc-b/vm/{INFRA_ID}")), "{}", message(FolderCreated));
    assert!(message(TagsAttached).contains("region-b"), "{}", message(TagsAttached));

    let mut after = content(lab, "b").await?;
    assert_eq!(after.remove("openshift-region/region-b"), Some(vec!["/dc-b/host/cluster-b".to_owned()]));
    assert_eq!(after.remove("openshift-region"), Some(Vec::new()));
    let client = client(lab, "b")?;
    for path in [format!("/dc-b/vm/{INFRA_ID}/theirs"), format!("/dc-b/vm/{INFRA_ID}")] {
        after.get_mut("folders").ok_or("no folders")?.retain(|left| *left != path);
        let folder = client.find_by_path(&path).await?.ok_or(format!("{path} is gone"))?;
        client.delete_folder(&folder, crate::support::openshift::PATIENCE).await?;
    }
    assert_eq!(after, before, "all the rest is gone");
    let category = client.tags().category("openshift-region").await?.ok_or("no category")?;
    client.tags().delete_category(&category).await?;
    client.logout().await?;
    alone.finish(&ground).await?;
    ground.leave().await
}

pub async fn a_wrong_password_is_tried_once_whoever_looks_again_until_it_changes(lab: &Lab) -> TestResult {
    let ground = Ground::new(lab, "prep-password", json!({})).await?;
    let right = vcenter(lab, "b")?;
    let password = |text: &str| json!({"stringData": {(format!("{}.password", right.server)): text}});
    kubernetes::merge(&lab.client, SECRET, &ground.namespace, "target", &password("refused while preparing")).await?;
    let before = refused_logins(lab, "b").await?;
    for period in ["5s", "6s"] {
        let alone = Alone::run(&ground, VcenterPrep::default()).await?;
        ground.edit(json!({"health": {"quietPeriod": period}})).await?;
        restamped(&ground).await?;
        ground
            .until("the refusal to be told", |vmi| match vmi.condition(TagsAttached.as_str()) {
                Some(found) if found.message.contains("refuses the user") => Ok(()),
                other => Err(format!("{other:?}")),
            })
            .await?;
        alone.kill().await;
    }
    assert_eq!(refused_logins(lab, "b").await? - before, 1);
    let alone = Alone::run(&ground, VcenterPrep::default()).await?;
    kubernetes::merge(&lab.client, SECRET, &ground.namespace, "target", &password(&right.password)).await?;
    ground
        .until("the plan", |vmi| match vmi.step(TagsAttached) {
            Some(step) if step.changes.len() == 8 => Ok(()),
            other => Err(format!("{other:?}")),
        })
        .await?;
    assert_eq!(refused_logins(lab, "b").await? - before, 1);
    alone.finish(&ground).await?;
    ground.leave().await
}
