//! What a rehearsal of a growth stands on, and rehearsals themselves.

use kube::api::PostParams;
use serde_json::json;
use vmi_kit::{OWN, Touch};
use vmi_lab::cluster::{self, crds};
use vmi_lab::control_plane;
use vmi_lab::kubernetes::{self, CONFIG_MAP, CONTROLLER_CONFIG, CRD, MACHINE_SET, NAMESPACE as NAMESPACE_KIND, SECRET, VMI};
use vmi_lab::migration::dump::Dump;
use vmi_lab::migration::verdict::Check;
use vmi_lab::migration::{ACCOUNT, NAMESPACE, Site, account, audit, request, vcenters, verdict};
use vmi_site::credentials::COMPONENT_SECRETS;

use crate::support::lab::Lab;
use crate::support::openshift::{MACHINE_API, PATIENCE, add_vcenter, virtual_machines};
use crate::support::suite::TestResult;

async fn site(lab: &Lab) -> TestResult<Site> {
    Ok(Site::of(&lab.record).await?)
}

/// The operator's namespace with its account, which may do nothing.
async fn powerless(lab: &Lab) -> TestResult {
    let objects = [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": NAMESPACE}}),
    ];
    Ok(cluster::apply_all(&lab.client, &objects).await?)
}

/// Takes the namespace away, and whatever is in it.
async fn leave(lab: &Lab) -> TestResult {
    let mut cache = lab.watch(&[NAMESPACE_KIND]).await;
    kubernetes::delete(&lab.client, NAMESPACE_KIND, "", NAMESPACE).await?;
    let gone = |cache: &vmi_lab::cache::Cache| cache.get(NAMESPACE_KIND, "", NAMESPACE).map_or(Ok(()), |_| Err("it is there".to_owned()));
    Ok(cache.until("the namespace to go", PATIENCE, gone).await?)
}

pub async fn what_a_rehearsal_asks_for_is_accepted_by_the_apiserver(lab: &Lab) -> TestResult {
    let site = site(lab).await?;
    powerless(lab).await?;
    crds::install(&lab.client, &[vmi_lab::yaml::parse(vmi_crds::CRD_YAML)?]).await?;
    // Established comes a moment before the first request is answered; a first list says that it is.
    drop(lab.watch(&[VMI]).await);
    let made = request::create(&site).await?;
    assert_eq!(made.spec.vcenters[0].server, lab.vcenter("b").server);
    assert_eq!((made.spec.failure_domains.len(), made.spec.failure_domains[0].name.as_str()), (1, "fd-b"));
    for name in [made.spec.credentials_secret.name.as_str(), request::CREDENTIALS] {
        let secret = kubernetes::get(&lab.client, SECRET, NAMESPACE, name).await?.ok_or("no credentials")?;
        assert!(secret.data["data"].get(format!("{}.password", lab.vcenter("b").server)).is_some());
    }
    request::set_state(&site, vmi_crds::spec::State::Running).await?;
    kubernetes::delete(&lab.client, VMI, NAMESPACE, request::NAME).await?;
    leave(lab).await?;
    let name = format!("{}.{}", VMI.plural, VMI.group);
    let mut cache = lab.watch(&[CRD]).await;
    kubernetes::delete(&lab.client, CRD, "", &name).await?;
    cache.until("the CRD to go", PATIENCE, |cache| cache.get(CRD, "", &name).map_or(Ok(()), |_| Err("it is there".to_owned()))).await?;
    Ok(())
}

pub async fn what_the_operators_account_is_denied_is_told(lab: &Lab) -> TestResult {
    let site = site(lab).await?;
    let began = k8s_openapi::jiff::Timestamp::now();
    powerless(lab).await?;
    let kubeconfig = account::kubeconfig(&lab.client, &site.folder, site.block, NAMESPACE, ACCOUNT).await?;
    let client = control_plane::client(&kubeconfig).await?;
    let refused = kubernetes::list(&client, SECRET, "kube-system").await.map(drop).unwrap_err();
    assert_eq!(refused.status().map(|status| status.code), Some(403), "{refused}");
    // Watches are requests too, and so is asking what one may do, which nobody is denied.
    assert!(SECRET.api(&client, "kube-system").watch(&kube::api::WatchParams::default(), "0").await.is_err());
    let review = kube::api::DynamicObject {
        data: json!({"spec": {"resourceAttributes": {"verb": "list", "resource": "secrets"}}}),
        ..kube::api::DynamicObject::new("", &REVIEW.resource())
    };
    REVIEW.api(&client, "").create(&PostParams::default(), &review).await?;
    let user = account::user(NAMESPACE, ACCOUNT);
    let events = audit::read(&site.folder, began, |event| event.user.username == user)?;
    assert_eq!(audit::denied(&events, &user), ["list secrets in kube-system", "watch secrets in kube-system"]);
    assert!(events.iter().any(|event| event.object_ref.resource == REVIEW.plural), "{events:?}");
    leave(lab).await
}

const REVIEW: kubernetes::Kind = kubernetes::Kind {
    group: "authorization.k8s.io",
    version: "v1",
    kind: "SelfSubjectAccessReview",
    plural: "selfsubjectaccessreviews",
    namespaced: false,
};

pub async fn a_dump_is_equal_until_something_changes_in_the_cluster_or_in_a_vcenter(lab: &Lab) -> TestResult {
    let site = site(lab).await?;
    let before = Dump::take(&site).await?;
    assert_eq!(before.difference(&Dump::take(&site).await?), Vec::<String>::new());

    let set =
        kubernetes::list(&lab.client, MACHINE_SET, MACHINE_API).await?.first().and_then(|set| set.metadata.name.clone()).ok_or("no set")?;
    let labelled = |value: serde_json::Value| json!({"metadata": {"labels": {"changed": value}}});
    kubernetes::merge(&lab.client, MACHINE_SET, MACHINE_API, &set, &labelled(json!("yes"))).await?;
    let tag = json!({"category": "changed", "tag": "yes", "type": "Datacenter", "object": "dc-b"});
    lab.control.post("/vcenters/b/tags", &tag).await?;
    let difference = before.difference(&Dump::take(&site).await?);
    assert_eq!(difference.len(), 3, "{difference:#?}");
    assert_eq!(difference[0], format!("MachineSet {MACHINE_API}/{set}: metadata.labels.changed: nothing -> \"yes\""));
    assert!(difference[1].starts_with("vCenter b: categories.changed: nothing -> "), "{difference:#?}");
    assert_eq!(difference[2], "vCenter b: tags.changed/yes: nothing -> [\"/dc-b\"]");

    kubernetes::merge(&lab.client, MACHINE_SET, MACHINE_API, &set, &labelled(serde_json::Value::Null)).await?;
    let client = vcenters::client(&site.target)?;
    let category = client.tags().category("changed").await?.ok_or("no category")?;
    client.tags().delete_category(&category).await?;
    client.logout().await?;
    assert_eq!(before.difference(&Dump::take(&site).await?), Vec::<String>::new());
    Ok(())
}

pub async fn a_cluster_that_was_not_grown_fails_the_verdict_with_what_is_missing(lab: &Lab) -> TestResult {
    let site = site(lab).await?;
    let before = Dump::take(&site).await?;
    let checks = verdict::growth(&site, &before).await?;
    let told = |words: &str| {
        let check = checks.iter().find(|check| check.name.contains(words)).unwrap_or_else(|| panic!("no check {words:?}"));
        (check.passed, check.detail.clone())
    };
    let server = &site.target.server;
    for (words, detail) in [
        ("Infrastructure lists both", "vcenters are on "),
        ("hold the pairs of both", &format!("kube-system/vsphere-creds lacks {server}.username")),
        ("copies name both vCenters", &format!("openshift-config/cloud-provider-config does not name {server}")),
        ("tags are attached", "vCenter b has no failure domain"),
        ("ownership tag", "vCenter b: there is no folder /dc-b/vm/lab-x7k2p"),
        ("made by hand", "not tried"),
    ] {
        let (passed, found) = told(words);
        assert!(!passed && found.contains(detail), "{words}: {found}");
    }
    for words in ["ControllerConfig follows", "CRDs' rules", "overrides are as before", "pools are as before", "every node is Ready"] {
        assert_eq!(told(words), (true, String::new()), "{words}");
    }
    no_password_in(&site, &checks)
}

fn no_password_in(site: &Site, checks: &[Check]) -> TestResult {
    let all = serde_json::to_string(checks)?;
    assert!(!all.contains(&site.target.password) && !all.contains(&site.source.password), "a password in the verdict");
    Ok(())
}

/// A lab of its own: a cluster does not shrink again by hand.
pub async fn a_cluster_grown_by_hand_passes_the_verdict() -> TestResult {
    let lab = Lab::start("native", "grown").await?;
    let result = grown_by_hand(&lab).await;
    lab.stop().await?;
    result
}

async fn grown_by_hand(lab: &Lab) -> TestResult {
    let site = site(lab).await?;
    let before = Dump::take(&site).await?;
    add_vcenter(lab, &site.target).await?;
    // What follows the cloud configuration does so in its own time; the operator waits for it, and so does this.
    let mut cache = lab.watch(&[CONFIG_MAP, CONTROLLER_CONFIG, SECRET]).await;
    let server = site.target.server.clone();
    cache
        .until("the followers", PATIENCE, |cache| {
            let named = |what: &str, value: &serde_json::Value| match value.to_string().contains(&server) {
                true => Ok(()),
                false => Err(format!("{what} does not name {server}")),
            };
            let copies = [("openshift-cloud-controller-manager", "cloud-conf"), ("openshift-config-managed", "kube-cloud-config")]
                .map(|place| (CONFIG_MAP, place));
            let pairs = COMPONENT_SECRETS.iter().map(|place| (SECRET, *place));
            for (kind, (namespace, name)) in copies.into_iter().chain(pairs) {
                named(name, &cache.get(kind, namespace, name).ok_or(format!("no {namespace}/{name}"))?.data)?;
            }
            named(
                "ControllerConfig",
                &cache.get(CONTROLLER_CONFIG, "", "machine-config-controller").ok_or("no ControllerConfig")?.data["spec"]["infra"],
            )
        })
        .await?;
    lab.settled().await?;
    let checks = verdict::growth(&site, &before).await?;
    let failed: Vec<&Check> = checks.iter().filter(|check| !check.passed).collect();
    assert!(failed.is_empty(), "{failed:#?}");
    assert_eq!(virtual_machines(lab, "b").await?, Vec::<String>::new());
    no_password_in(&site, &checks)
}

pub async fn everything_that_a_controller_writes_is_in_a_dump_so_that_a_way_back_that_leaves_it_is_noticed() -> TestResult {
    // They come and go by themselves, or are the operator's own.
    let passing = |touch: &Touch| touch.namespace == OWN || ["pods", "leases", "events"].contains(&touch.kind.plural);
    let written: Vec<Touch> = vmi::operator::touches().into_iter().filter(|touch| !touch.writes.is_empty() && !passing(touch)).collect();
    assert!(written.len() > 10, "{written:?}");
    let has = |touch: &&Touch| Dump::has(touch.kind.group, touch.kind.plural, touch.namespace, touch.name);
    let missing: Vec<&Touch> = written.iter().filter(|touch| !has(touch)).collect();
    assert!(missing.is_empty(), "{missing:#?}");
    Ok(())
}
