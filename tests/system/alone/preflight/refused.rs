//! What the preflight refuses: by which field, and that nothing in the cluster or a vCenter has been touched.

use serde_json::{Value, json};
use vmi_crds::graph::StepName::PreflightPassed;
use vmi_crds::status::CheckResult::{Blocking, Passed, Warning};
use vmi_lab::kubernetes::{self, CONFIG_MAP, INFRASTRUCTURE, SECRET};
use vmi_preflight::Preflight;

use super::{PLAN, only_looked, stray_writes, until_check};
use crate::support::alone::{Alone, Ground};
use crate::support::lab::Lab;
use crate::support::openshift::{refused_logins, vcenter};
use crate::support::suite::TestResult;

/// An edit of the spec, the check that refuses it, and some of what it has to say.
type Case = (Value, &'static str, Vec<String>);

/// The same failure domain with one thing changed.
fn changed(domain: &Value, pointer: &str, value: Value) -> Value {
    let mut domain = domain.clone();
    *domain.pointer_mut(pointer).expect("the domain has that field") = value;
    json!({"failureDomains": [domain]})
}

fn cases(lab: &Lab, spec: &Value) -> Vec<Case> {
    let (domain, target) = (&spec["failureDomains"][0], &spec["vcenters"][0]);
    let at = |field: &str| format!("spec.failureDomains[fd-b].topology.{field}: ");
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let elsewhere = |server: &str| {
        let (mut vcenter, mut domain) = (target.clone(), domain.clone());
        vcenter["server"] = json!(server);
        domain["server"] = json!(server);
        json!({"vcenters": [vcenter], "failureDomains": [domain]})
    };
    let source = &lab.vcenter("a").server;
    // An address may be written as one number; to everybody but a vCenter it is another name.
    let number = source.parse::<std::net::Ipv4Addr>().map(u32::from).expect("a lab's vCenters have addresses").to_string();
    let mut pair = domain.clone();
    (pair["region"], pair["zone"]) = (json!("region-a"), json!("zone-a"));
    vec![
        (
            changed(domain, "/topology/datastore", json!("/dc-b/datastore/datastore-x")),
            "TOP-003",
            vec![at("datastore"), "found /dc-b/datastore/datastore-b".to_owned()],
        ),
        (changed(domain, "/topology/networks", json!(["ocp-x"])), "TOP-004", vec![at("networks"), "found ocp-b".to_owned()]),
        (
            changed(domain, "/topology/template", json!("/dc-b/vm/rhcos-x")),
            "TOP-007",
            vec![at("template"), format!("found {}", domain["topology"]["template"].as_str().unwrap_or_default())],
        ),
        (
            changed(domain, "/topology/resourcePool", json!("/dc-b/host/cluster-b/Resources/x")),
            "TOP-005",
            vec![at("resourcePool"), "found /dc-b/host/cluster-b/Resources".to_owned()],
        ),
        (
            changed(domain, "/topology/computeCluster", json!("/dc-b/host/cluster-x")),
            "TOP-002",
            vec![at("computeCluster"), "found /dc-b/host/cluster-b".to_owned()],
        ),
        (changed(domain, "/topology/datacenter", json!("dc-x")), "TOP-001", vec![at("datacenter"), "found dc-b".to_owned()]),
        (changed(domain, "/name", json!("fd-a")), "DOM-001", words(&["spec.failureDomains[fd-a].name: "])),
        (json!({"failureDomains": [pair]}), "DOM-001", words(&["spec.failureDomains[fd-b].region", "those of fd-a"])),
        (elsewhere(source), "SRC-001", vec![format!("spec.vcenters[{source}].server: it is where the cluster runs already")]),
        (
            json!({"vcenters": [target, {"server": "third.example.com", "datacenters": ["dc"]}], "source": {"servers": ["fourth.example.com"]}}),
            "SRC-002",
            words(&[
                "spec.vcenters: with those of Infrastructure there would be 4 vCenters",
                source,
                "third.example.com",
                "fourth.example.com",
            ]),
        ),
        (json!({"credentialsSecret": {"name": "none"}}), "CRD-002", words(&["spec.credentialsSecret.name: Secret none: not there"])),
        (
            json!({"machineSets": [{"name": "lab-x7k2p-worker-a"}]}),
            "MOV-002",
            words(&["spec.machineSets[lab-x7k2p-worker-a].name: there is such"]),
        ),
        (elsewhere(&number), "SRC-004", vec![format!("spec.vcenters[{number}].server: it is the same vCenter as {source}")]),
    ]
}

pub async fn bad_input_is_refused_by_its_field_and_nothing_is_touched(lab: &Lab) -> TestResult {
    lab.control.post("/calls/reset", &json!({})).await?;
    let infrastructure = kubernetes::get(&lab.client, INFRASTRUCTURE, "", "cluster").await?.ok_or("no Infrastructure")?;
    let ground = Ground::new(lab, "preflight-bad", json!({"state": "Running"})).await?;
    let spec = json!(ground.vmi().await?.spec);
    let alone = Alone::run(&ground, Preflight::default()).await?;

    // The source's own user, for the one case in which the target is the source.
    let source = vcenter(lab, "a")?;
    let number = source.server.parse::<std::net::Ipv4Addr>().map(u32::from)?;
    let known = json!({"stringData": {format!("{number}.username"): source.username, format!("{number}.password"): source.password}});
    kubernetes::merge(&lab.client, SECRET, &ground.namespace, "target", &known).await?;
    for (edit, id, words) in cases(lab, &spec) {
        let mut whole = json!({"machineSets": null, "controlPlane": null, "source": null});
        for key in ["vcenters", "failureDomains", "credentialsSecret", "sourceRetirement"] {
            whole[key] = spec[key].clone();
        }
        edit.as_object().into_iter().flatten().for_each(|(key, value)| whole[key] = value.clone());
        ground.edit(whole).await?;
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        until_check(&ground, id, Blocking, &words).await?;
        let vmi = ground.until_condition(PreflightPassed, "False", "Blocked").await?;
        assert!(vmi.condition(PreflightPassed.as_str()).is_some_and(|condition| condition.message.contains(id)), "{id}");
    }

    let good = json!({"vcenters": spec["vcenters"], "failureDomains": spec["failureDomains"], "controlPlane": null, "source": null});
    ground.edit(good).await?;
    let server = &lab.vcenter("b").server;
    for (secret, id, words) in [
        (json!({format!("{server}.password"): null}), "CRD-002", format!("key {server}.password is missing")),
        (json!({format!("{server}.username"): null, format!("{server}.password"): null}), "CRD-002", format!("neither {server}.username")),
        (
            json!({format!("{server}.username"): "dUBk", format!("{server}.password"): "cAo="}),
            "CRD-003",
            format!("key {server}.password holds a line break"),
        ),
        (
            json!({format!("{server}.username"): "cm9vdA==", format!("{server}.password"): "cA=="}),
            "CRD-004",
            format!("key {server}.username: \"root\" names no domain"),
        ),
    ] {
        kubernetes::merge(&lab.client, SECRET, &ground.namespace, "target", &json!({"data": secret})).await?;
        until_check(&ground, id, Blocking, &["spec.credentialsSecret.name: Secret target", &words]).await?;
    }

    only_looked(lab).await?;
    assert_eq!(stray_writes(lab)?, Vec::<String>::new());
    let after = kubernetes::get(&lab.client, INFRASTRUCTURE, "", "cluster").await?.ok_or("no Infrastructure")?;
    assert_eq!(after.metadata.resource_version, infrastructure.metadata.resource_version);
    alone.finish(&ground).await?;
    ground.leave().await
}

/// In a cluster that has a volume on the source, and a host beside its machines that the CSI driver does not keep away from.
pub async fn a_move_that_would_leave_a_volume_behind_is_refused_by_its_claim_until_that_is_accepted(lab: &Lab) -> TestResult {
    let ground = Ground::new(lab, "preflight-volumes", json!({"sourceRetirement": "Remove", "volumes": "Refuse"})).await?;
    let alone = Alone::run(&ground, Preflight::default()).await?;
    until_check(&ground, "VOL-001", Blocking, &["spec.volumes: Refuse", "default/orders"]).await?;
    let refused = ground.until_condition(PreflightPassed, "False", "Blocked").await?;
    assert!(
        refused.condition(PreflightPassed.as_str()).is_some_and(|condition| condition.message.contains("default/orders")),
        "{refused:?}"
    );
    until_check(&ground, "NOD-001", Warning, &["DaemonSet vmware-vsphere-csi-driver-node: it also runs on bare-metal-0"]).await?;
    ground.edit(json!({"volumes": "Ignore"})).await?;
    let told = until_check(&ground, "VOL-001", Warning, &["default/orders"]).await?;
    assert!(told.contains("left behind"), "{told}");
    assert_eq!(stray_writes(lab)?, Vec::<String>::new());
    alone.finish(&ground).await?;
    ground.leave().await
}

/// Besides, a whole operator that is really killed: crate::refused.
pub async fn a_wrong_password_is_tried_once_in_all_whoever_looks_again(lab: &Lab) -> TestResult {
    lab.control.post("/calls/reset", &json!({})).await?;
    let before = refused_logins(lab, "b").await?;
    let target = vcenter(lab, "b")?;
    let ground = Ground::new(lab, "preflight-password", json!({"state": "Running"})).await?;
    let password = |text: &str| json!({"stringData": {format!("{}.password", target.server): text}});
    kubernetes::merge(&lab.client, SECRET, &ground.namespace, "target", &password("wrong")).await?;

    let words = ["spec.credentialsSecret.name: ", &format!("refuses the user {}", target.username)];
    let alone = Alone::run(&ground, Preflight::default()).await?;
    until_check(&ground, "CRD-001", Blocking, &words).await?;
    assert_eq!(refused_logins(lab, "b").await?, before + 1);
    // A new look of the same controller, then two of a new one: none of them tries again.
    ground.edit(json!({"health": {"quietPeriod": "4s"}})).await?;
    until_check(&ground, "CRD-001", Blocking, &words).await?;
    alone.kill().await;
    let alone = Alone::run(&ground, Preflight::default()).await?;
    for seconds in ["5s", "6s"] {
        ground.edit(json!({"health": {"quietPeriod": seconds}})).await?;
        until_check(&ground, "CRD-001", Blocking, &words).await?;
    }
    assert_eq!(refused_logins(lab, "b").await?, before + 1);

    kubernetes::merge(&lab.client, SECRET, &ground.namespace, "target", &password(&target.password)).await?;
    until_check(&ground, "CRD-001", Passed, &[]).await?;
    assert_eq!(refused_logins(lab, "b").await?, before + 1);
    only_looked(lab).await?;
    assert_eq!(stray_writes(lab)?, Vec::<String>::new());
    alone.finish(&ground).await?;
    ground.leave().await
}

pub async fn a_certificate_that_is_not_trusted_is_shown_and_can_be_pinned(lab: &Lab) -> TestResult {
    let ground = Ground::new(lab, "preflight-trust", json!({"trust": {"insecure": false}})).await?;
    let alone = Alone::run(&ground, Preflight::default()).await?;
    until_check(&ground, "TLS-003", Blocking, &["spec.trust: ", "the certificate was refused"]).await?;
    // The whole of it is in the plan: which certificate each vCenter presented.
    let map = kubernetes::get(&lab.client, CONFIG_MAP, &ground.namespace, PLAN).await?.ok_or("no ConfigMap")?;
    let text = map.data["data"]["plan.txt"].as_str().unwrap_or_default().to_owned();
    let mut pins = Vec::new();
    for server in ["a", "b"].map(|name| lab.vcenter(name).server.clone()) {
        let about = |line: &&str| line.split_whitespace().nth(1) == Some("TLS-003") && line.contains(&format!(" {server}: "));
        let line = text.lines().find(about).ok_or(format!("nothing about {server} in {text}"))?;
        let shown = line.split("SHA-256 ").nth(1).and_then(|rest| rest.get(..95)).ok_or(format!("no thumbprint in {line}"))?;
        pins.push(json!({"server": server, "sha256": shown}));
    }
    ground.edit(json!({"trust": {"thumbprints": pins}})).await?;
    until_check(&ground, "TLS-003", Passed, &[]).await?;
    until_check(&ground, "VCT-001", Passed, &[]).await?;
    until_check(&ground, "TOP-003", Passed, &[]).await?;
    alone.finish(&ground).await?;
    ground.leave().await
}

pub async fn what_the_user_may_not_do_and_tags_in_the_way_are_named(lab: &Lab) -> TestResult {
    lab.control.post("/calls/reset", &json!({})).await?;
    let missing = |names: &[&str]| json!({"kind": "privileges", "missing": names});
    lab.control.post("/vcenters/b/faults", &missing(&["Folder.Create", "Network.Assign"])).await?;
    lab.control.post("/vcenters/a/faults", &missing(&["InventoryService.Tagging.AttachTag"])).await?;
    let tag = json!({"category": "openshift-region", "tag": "region-other", "type": "Datacenter", "object": "dc-b"});
    let ground = Ground::new(lab, "preflight-rights", json!({})).await?;
    let alone = Alone::run(&ground, Preflight::default()).await?;
    let said = until_check(
        &ground,
        "PRV-001",
        Blocking,
        &["/dc-b/vm: the user lacks Folder.Create", "/dc-b/network/ocp-b: the user lacks Network.Assign"],
    )
    .await?;
    assert!(!said.contains("Folder.Delete"), "{said}");
    let at = format!("vCenter {}, /: the user lacks InventoryService.Tagging.AttachTag;", lab.vcenter("a").server);
    let said = until_check(&ground, "PRV-002", Blocking, &[&at]).await?;
    assert!(!said.contains("CreateTag"), "{said}");
    only_looked(lab).await?;
    for vcenter in ["a", "b"] {
        lab.control.delete(&format!("/vcenters/{vcenter}/faults")).await?;
    }

    lab.control.post("/vcenters/b/tags", &tag).await?;
    // What vCenters change is seen within a minute; for this edit they are asked at once.
    ground.edit(json!({"volumes": "Ignore"})).await?;
    until_check(&ground, "PRV-001", Passed, &[]).await?;
    until_check(&ground, "TAG-001", Blocking, &["spec.failureDomains[fd-b].region: /dc-b already carries the tag region-other"]).await?;
    alone.finish(&ground).await?;
    untag(lab).await?;
    ground.leave().await
}

/// Takes the tag away again, with its category, which nothing else in this vCenter uses.
async fn untag(lab: &Lab) -> TestResult {
    let target = vcenter(lab, "b")?;
    let credentials = vsphere::Credentials::new(target.username.clone(), target.password.clone());
    let endpoint = vsphere::Endpoint { server: target.server.clone(), port: target.port };
    let client = vsphere::Client::new(vsphere::Settings::new(endpoint, credentials, vsphere::Trust::Insecure))?;
    let category = client.tags().category("openshift-region").await?.ok_or("no category")?;
    client.tags().delete_category(&category).await?;
    Ok(client.logout().await?)
}
