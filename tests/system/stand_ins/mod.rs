//! Each stand-in alone, on a real apiserver where nothing else of OpenShift runs.

mod autoscaler;
mod cccmo;
mod cco;
mod config_operator;
mod cvo;
mod etcd;
mod first_words;
mod mco;

use std::time::Duration;

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use vmi_lab::kubernetes::{
    self, CLUSTER_OPERATOR, CLUSTER_VERSION, CONFIG_MAP, CRD, DNS, FEATURE_GATE, INFRASTRUCTURE, Kind, NETWORK, PROXY, condition,
};

use crate::in_lab;
use crate::support::lab::Lab;
use crate::support::openshift::PATIENCE;
use crate::support::suite::{Depth, Suite, TestResult};

pub fn add(suite: &mut Suite) {
    in_lab!(suite, "plain", Depth::Quick, cccmo::{
        the_cloud_config_follows_its_source_and_infrastructure,
        from_4_23_only_infrastructures_vcenters_count,
        a_panic_leaves_the_old_config_and_an_operator_that_looks_well,
        up_to_4_17_a_panic_ends_the_process_as_go_does,
        an_unreadable_source_degrades_the_operator_until_it_is_mended,
        the_deployment_rolls_with_config_certificates_and_credentials_and_keeps_two_replicas,
    });
    in_lab!(suite, "plain", Depth::Quick, cco::{
        a_target_follows_keys_added_to_the_root_and_removed_from_it,
        an_edited_target_stays_edited_until_the_root_changes,
        manual_mode_touches_nothing,
        without_a_root_a_new_request_fails_and_an_old_one_keeps_its_copy,
        a_request_waits_for_its_namespace,
    });
    in_lab!(suite, "plain", Depth::Quick, config_operator::{
        kube_cloud_config_follows_its_source_with_all_its_keys,
        a_missing_source_degrades_the_config_operator_until_it_is_back,
        with_the_day_2_gate_kube_cloud_config_is_left_to_another_operator,
    });
    in_lab!(suite, "plain", Depth::Quick, cvo::{
        what_the_payload_holds_is_made_and_put_back,
        an_override_keeps_the_version_operator_away_and_blocks_upgrades,
        a_cluster_has_the_crds_of_its_feature_set,
        a_degraded_operator_makes_the_cluster_version_fail,
    });
    in_lab!(suite, "plain", Depth::Quick, mco::{
        controller_config_follows_infrastructure_as_far_as_its_own_rules_let_it,
        a_missing_cloud_config_degrades_the_machine_config_operator,
        a_wished_disruption_policy_reaches_the_status,
        a_pool_says_how_its_nodes_are_and_waits_while_paused,
        a_changed_cloud_conf_reboots_nodes_unless_the_policy_or_a_pause_says_otherwise,
        a_node_reboots_only_when_its_pods_have_left_it,
    });
    in_lab!(suite, "plain", Depth::Quick, autoscaler::{an_autoscaler_owns_its_set_until_it_turns_to_another_or_goes});
    in_lab!(suite, "native", Depth::Ci, first_words::{every_stand_in_calls_itself_one_in_the_first_line_of_its_log});
    in_lab!(suite, "plain", Depth::Quick, etcd::{a_control_plane_machine_goes_when_another_member_votes_in_its_place});
}

const MANAGER: &str = "system-test";
const VERSION: &str = "4.21.3";
const CONFIG: &str = "openshift-config";
const MANAGED: &str = "openshift-config-managed";

/// A stand-in at work in this process until it is dropped.
struct AtWork(JoinHandle<()>);

impl AtWork {
    fn start(stand_in: impl Future<Output = ()> + Send + 'static) -> AtWork {
        AtWork(tokio::spawn(stand_in))
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn config(kind: Kind, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": kind.api_version(), "kind": kind.kind, "metadata": {"name": name}, "spec": spec})
}

fn vcenter(server: &str) -> Value {
    json!({"server": server, "datacenters": ["dc"]})
}

fn cloud_provider_config() -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cloud-provider-config", "namespace": CONFIG},
        "data": {"config": "global: {}\n", "ca-bundle.pem": "PEM"}})
}

/// The configuration that an installer leaves.
async fn install(lab: &Lab) -> TestResult {
    let vsphere = json!({"type": "VSphere", "vsphere": {"vcenters": [vcenter("vc-a.example.com")]}});
    let cloud_config = json!({"name": "cloud-provider-config", "key": "config"});
    let mut infrastructure = config(INFRASTRUCTURE, "cluster", &json!({"cloudConfig": cloud_config, "platformSpec": vsphere}));
    infrastructure["status"] = json!({"platformStatus": {"type": "VSphere"}, "infrastructureName": "lab-x7k2p",
        "controlPlaneTopology": "HighlyAvailable", "infrastructureTopology": "HighlyAvailable"});
    for manifest in [
        infrastructure,
        config(NETWORK, "cluster", &json!({"serviceNetwork": ["10.96.0.0/16"], "networkType": "OVNKubernetes"})),
        config(DNS, "cluster", &json!({"baseDomain": "lab.example.com"})),
        config(PROXY, "cluster", &json!({})),
        config(FEATURE_GATE, "cluster", &json!({})),
        config(CLUSTER_VERSION, "version", &json!({"clusterID": "3f2b1c44-6f3c-4c55-9a0b-1d2e3f4a5b6c"})),
        cloud_provider_config(),
    ] {
        kubernetes::apply(&lab.client, MANAGER, &manifest).await?;
    }
    Ok(())
}

/// Takes away what `install` made and what the stand-ins reported.
async fn clean(lab: &Lab) -> TestResult {
    for kind in [INFRASTRUCTURE, NETWORK, DNS, PROXY, FEATURE_GATE] {
        kubernetes::delete(&lab.client, kind, "", "cluster").await?;
    }
    kubernetes::delete(&lab.client, CLUSTER_VERSION, "", "version").await?;
    kubernetes::delete(&lab.client, CONFIG_MAP, CONFIG, "cloud-provider-config").await?;
    kubernetes::delete(&lab.client, CONFIG_MAP, MANAGED, "kube-cloud-config").await?;
    for operator in ["config-operator", "machine-config"] {
        kubernetes::delete(&lab.client, CLUSTER_OPERATOR, "", operator).await?;
    }
    Ok(())
}

/// Waits until an operator's condition reads so, and returns its message.
async fn reported(lab: &Lab, operator: &str, kind: &str, status: &str) -> TestResult<String> {
    let mut cache = lab.watch(&[CLUSTER_OPERATOR]).await;
    let message = cache
        .until(&format!("{operator} to report {kind}={status}"), PATIENCE, |cache| {
            let found = cache.get(CLUSTER_OPERATOR, "", operator).ok_or("it has not reported yet")?;
            if condition(&found, kind) != status {
                return Err(format!("{}", found.data["status"]["conditions"]));
            }
            let conditions = found.data["status"]["conditions"].as_array().cloned().unwrap_or_default();
            Ok(conditions
                .iter()
                .find(|entry| entry["type"] == kind)
                .and_then(|entry| entry["message"].as_str())
                .unwrap_or_default()
                .to_owned())
        })
        .await?;
    Ok(message)
}

/// Waits until one object is as `look` wants it; the error of `look` says what is missing.
async fn becomes<T>(lab: &Lab, kind: Kind, namespace: &str, name: &str, look: impl Fn(&Value) -> Result<T, String>) -> TestResult<T> {
    let mut cache = lab.watch(&[kind]).await;
    let found = cache
        .until(&format!("{} {name}", kind.kind), PATIENCE, |cache| {
            let object = cache.get(kind, namespace, name).ok_or("it does not exist")?;
            look(&json!(*object))
        })
        .await?;
    Ok(found)
}

/// Removes the rules at `pointer` of a CRD and returns the patch that brings them back.
async fn relax(lab: &Lab, name: &str, pointer: &str) -> TestResult<Value> {
    let crd = kubernetes::get(&lab.client, CRD, "", name).await?.ok_or("no such CRD")?;
    let restore = json!({"spec": {"versions": crd.data["spec"]["versions"]}});
    let patch = serde_json::from_value(json!([{"op": "remove", "path": pointer}]))?;
    CRD.api(&lab.client, "").patch(name, &PatchParams::default(), &Patch::Json::<()>(patch)).await?;
    Ok(restore)
}

/// Writes until the apiserver takes it: after a change of a CRD it needs a moment, and no event tells when it has had it.
async fn merge_until_taken(lab: &Lab, kind: Kind, name: &str, patch: &Value) -> TestResult {
    let end = tokio::time::Instant::now() + PATIENCE;
    loop {
        match kubernetes::merge(&lab.client, kind, "", name, patch).await {
            Ok(_) => return Ok(()),
            Err(error) if tokio::time::Instant::now() > end => return Err(error.into()),
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}
