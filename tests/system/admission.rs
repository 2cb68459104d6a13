//! OpenShift's own admission, real and stood in for, in both generations.

use kube::ResourceExt as _;
use kube::api::{DynamicObject, PostParams};
use serde_json::{Value, json};
use vmi_lab::cluster::{config, machines};
use vmi_lab::kubernetes::{self, CONTROL_PLANE_MACHINE_SET, INFRASTRUCTURE, MACHINE, MACHINE_SET, NODE};

use crate::support::asking;
use crate::support::lab::Lab;
use crate::support::openshift::{
    MACHINE_API, PATIENCE, add_vcenter, extended_infrastructure, is_master, scale, scaled, server, try_infrastructure, vcenter,
    virtual_machines,
};
use crate::support::suite::TestResult;

fn refusal(result: Result<(), kube::Error>) -> TestResult<String> {
    match result {
        Err(kube::Error::Api(status)) => Ok(status.message),
        Err(error) => Err(error.into()),
        Ok(()) => Err("accepted".into()),
    }
}

pub async fn an_added_vcenter_is_refused_by_the_legacy_rules(lab: &Lab) -> TestResult {
    let patch = extended_infrastructure(lab, &vcenter(lab, "b")?).await?;
    let message = refusal(try_infrastructure(lab, &patch).await)?;
    assert!(message.contains("vcenters cannot be added or removed once set"), "{message}");
    Ok(())
}

pub async fn an_added_vcenter_is_accepted_by_the_native_rules(lab: &Lab) -> TestResult {
    let patch = extended_infrastructure(lab, &vcenter(lab, "b")?).await?;
    Ok(try_infrastructure(lab, &patch).await?)
}

pub async fn a_failure_domain_without_its_vcenter_is_refused_by_the_native_rules(lab: &Lab) -> TestResult {
    let mut patch = extended_infrastructure(lab, &vcenter(lab, "b")?).await?;
    let spec = &mut patch["spec"]["platformSpec"]["vsphere"];
    spec["vcenters"] = json!([spec["vcenters"][0]]);
    let message = refusal(try_infrastructure(lab, &patch).await)?;
    assert!(message.contains("all failure domains must have a corresponding vCenter entry"), "{message}");
    Ok(())
}

pub async fn a_machine_that_the_real_webhook_does_not_like_is_refused(lab: &Lab) -> TestResult {
    let source = vcenter(lab, "a")?;
    let mut provider = machines::provider_spec(&source, &source.zones[0], "worker");
    provider["template"] = json!("");
    let machine = json!({
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
        "metadata": {"name": "lab-x7k2p-broken", "namespace": MACHINE_API},
        "spec": {"providerSpec": {"value": provider}},
    });
    let object: DynamicObject = serde_json::from_value(machine)?;
    let result = MACHINE.api(&lab.client, MACHINE_API).create(&PostParams { dry_run: true, ..PostParams::default() }, &object).await;
    let message = refusal(result.map(|_| ()))?;
    assert!(message.contains("providerSpec.template: Required value"), "{message}");
    Ok(())
}

/// Tries to give a failure domain another name, region or zone, and returns why that is refused.
async fn changed_domain_is_refused(lab: &Lab, name: &str, key: &str) -> TestResult<String> {
    let current = kubernetes::get(&lab.client, INFRASTRUCTURE, "", "cluster").await?.ok_or("no Infrastructure")?;
    let mut domains = current.data["spec"]["platformSpec"]["vsphere"]["failureDomains"].clone();
    let mut all = domains.as_array_mut().into_iter().flatten();
    all.find(|domain| domain["name"] == name).ok_or("no such failure domain")?[key] = json!("changed");
    refusal(try_infrastructure(lab, &json!({"spec": {"platformSpec": {"vsphere": {"failureDomains": domains}}}})).await)
}

/// The control plane machine set knows its failure domains by their names, and nobody else does.
pub async fn a_failure_domain_that_the_control_plane_machine_set_names_does_not_leave(lab: &Lab) -> TestResult {
    let message = changed_domain_is_refused(lab, "fd-a", "name").await?;
    assert!(message.contains("a vSphere failure domain still referenced by ControlPlaneMachineSet cluster"), "{message}");
    Ok(())
}

/// Whoever judges goes by watches of its own, and may not have seen yet what was just written.
fn holds(message: &str, wanted: &str) -> TestResult {
    if message.contains(wanted) { Ok(()) } else { Err(message.to_owned().into()) }
}

/// A lab of its own: what happens here cannot be undone cheaply.
pub async fn the_real_operator_moves_the_control_plane_and_admission_guards_the_source() -> TestResult {
    let lab = Lab::start("native", "moved").await?;
    let result = move_everything(&lab).await;
    lab.stop().await?;
    result
}

async fn move_everything(lab: &Lab) -> TestResult {
    let (source, target) = (vcenter(lab, "a")?, vcenter(lab, "b")?);
    add_vcenter(lab, &target).await?;
    created_on_target_domains_is_refused(lab).await?;
    move_control_plane(lab, &target.server).await?;
    assert_eq!(virtual_machines(lab, "b").await?.len(), 3);
    new_nodes_are_labelled_from_tags(lab).await?;
    lab.settled().await?;
    machine_guards_its_failure_domain(lab).await?;
    empty_machine_set_guards_the_source(lab, &source.server).await
}

/// Of all that is in the target's failure domain only machines know it by its zone: no set is there, and the control plane machine
/// set goes by its name. The real machine controller labels them once zones are on.
async fn machine_guards_its_failure_domain(lab: &Lab) -> TestResult {
    let wanted = "(region=region-b, zone=zone-b) that is still in use by Machine 'lab-x7k2p-master-";
    asking::until("the policy of machines", async || holds(&changed_domain_is_refused(lab, "fd-b", "zone").await?, wanted)).await
}

async fn created_on_target_domains_is_refused(lab: &Lab) -> TestResult {
    let source = vcenter(lab, "a")?;
    let wanted = machines::control_plane_machine_set(&source, &["fd-b".to_owned()], "Active");
    let object: DynamicObject = serde_json::from_value(wanted)?;
    let api = CONTROL_PLANE_MACHINE_SET.api(&lab.client, MACHINE_API);
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let wanted = "control plane machines are using unspecified failure domain(s)";
    asking::until("the webhook", async || holds(&refusal(api.create(&dry, &object).await.map(|_| ()))?, wanted)).await
}

async fn move_control_plane(lab: &Lab, target: &str) -> TestResult {
    let domains = json!({"platform": "VSphere", "vsphere": [{"name": "fd-b"}]});
    let patch = json!({"spec": {"template": {"machines_v1beta1_machine_openshift_io": {"failureDomains": domains}}}});
    let patched = kubernetes::merge(&lab.client, CONTROL_PLANE_MACHINE_SET, MACHINE_API, "cluster", &patch).await?;
    let mut cache = lab.watch(&[CONTROL_PLANE_MACHINE_SET, MACHINE]).await;
    cache
        .until("the control plane to be on vCenter b", PATIENCE, |cache| {
            let set = cache.get(CONTROL_PLANE_MACHINE_SET, MACHINE_API, "cluster").ok_or("no set")?;
            if set.data["status"]["observedGeneration"].as_i64() < patched.metadata.generation {
                return Err("the operator has not seen the change".to_owned());
            }
            let masters: Vec<_> = cache.list(MACHINE).into_iter().filter(|machine| is_master(machine)).collect();
            match masters.iter().find(|machine| server(machine) != target) {
                Some(left) => Err(format!("{} is still on the source", left.name_any())),
                None if masters.len() != 3 => Err(format!("{} masters", masters.len())),
                None => Ok(()),
            }
        })
        .await?;
    Ok(())
}

/// With a second failure domain zones are on: the real cloud controller manager reads the tags of a new node's place.
async fn new_nodes_are_labelled_from_tags(lab: &Lab) -> TestResult {
    let mut cache = lab.watch(&[MACHINE, NODE]).await;
    cache
        .until("the new nodes to be labelled", PATIENCE, |cache| {
            for machine in cache.list(MACHINE).into_iter().filter(|machine| is_master(machine)) {
                let node = cache.get(NODE, "", &machine.name_any()).ok_or_else(|| format!("no node {}", machine.name_any()))?;
                for (label, wanted) in [("topology.kubernetes.io/region", "region-b"), ("topology.kubernetes.io/zone", "zone-b")] {
                    if node.labels().get(label).is_none_or(|is| is != wanted) {
                        return Err(format!("{} has {label} {:?}", node.name_any(), node.labels().get(label)));
                    }
                }
            }
            Ok(())
        })
        .await?;
    Ok(())
}

async fn empty_machine_set_guards_the_source(lab: &Lab, source: &str) -> TestResult {
    let set = kubernetes::list(&lab.client, MACHINE_SET, MACHINE_API).await?.first().ok_or("no MachineSet")?.name_any();
    scale(lab, &set, 0).await?;
    scaled(lab, &set, 0).await?;
    let current = kubernetes::get(&lab.client, INFRASTRUCTURE, "", "cluster").await?.ok_or("no Infrastructure")?;
    let vsphere = &current.data["spec"]["platformSpec"]["vsphere"];
    let without =
        |list: &Value| -> Vec<Value> { list.as_array().into_iter().flatten().filter(|entry| entry["server"] != source).cloned().collect() };
    let patch = json!({"spec": {"platformSpec": {"vsphere": {
        "vcenters": without(&vsphere["vcenters"]), "failureDomains": without(&vsphere["failureDomains"]),
    }}}});
    let wanted = "still in use by MachineSet";
    asking::until("the policy of machine sets", async || holds(&refusal(try_infrastructure(lab, &patch).await)?, wanted)).await?;
    kubernetes::delete(&lab.client, MACHINE_SET, MACHINE_API, &set).await?;
    let mut cache = lab.watch(&[MACHINE_SET]).await;
    cache
        .until(
            "the set to be gone",
            PATIENCE,
            |cache| {
                if cache.list(MACHINE_SET).is_empty() { Ok(()) } else { Err("it is there".to_owned()) }
            },
        )
        .await?;
    asking::until("the source to leave", async || Ok(try_infrastructure(lab, &patch).await?)).await
}

/// Both generations serve the failure domains the installer wrote, as data and not as chance.
pub async fn the_source_failure_domain_matches_the_machines_string_by_string(lab: &Lab) -> TestResult {
    let source = vcenter(lab, "a")?;
    let domain = config::failure_domain(&lab.shape, &source, &source.zones[0]);
    let infrastructure = kubernetes::get(&lab.client, INFRASTRUCTURE, "", "cluster").await?.ok_or("no Infrastructure")?;
    let entry = &infrastructure.data["spec"]["platformSpec"]["vsphere"]["failureDomains"][0];
    assert_eq!(entry["name"], domain.name.as_str());
    for machine in kubernetes::list(&lab.client, MACHINE, MACHINE_API).await? {
        let workspace = &machine.data["spec"]["providerSpec"]["value"]["workspace"];
        for key in ["datacenter", "datastore", "resourcePool", "folder"] {
            assert_eq!(workspace[key], entry["topology"][key], "{} {key}", machine.name_any());
        }
    }
    Ok(())
}
