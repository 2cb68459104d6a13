//! Stands in for the vSphere CSI driver's operator and for the part of the driver that others wait for: the driver's configuration
//! follows cloud configuration and credentials, topology follows the failure domains or the driver's object, pods roll with both,
//! nodes that are no virtual machines degrade it and get no volume, and VolumeAttachments are attached and let go.
//!
//! It logs in to every vCenter, as the real one does; there are no volumes behind the attachments.

use clap::Parser;
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{CONFIG, DRIVER, DRIVERS, View, attacher, is_virtual_machine};
use crate::cache::Cache;
use crate::kubernetes::{
    self, CLUSTER_CSI_DRIVER, CONFIG_MAP, DAEMON_SET, DEPLOYMENT, INFRASTRUCTURE, Kind, NODE, SECRET, VOLUME_ATTACHMENT,
};
use crate::standins::{Error, operator_status, release_version, requests, woken};

const CREDENTIALS: &str = "vmware-vsphere-cloud-credentials";
const SECRET_NAME: &str = "vsphere-csi-config-secret";
const DEPENDENCY: &str = "operator.openshift.io/dep-vsphere-csi-config-secret";

#[derive(Parser)]
struct Arguments {}

pub async fn run(client: Client, arguments: &[String]) -> Result<(), Error> {
    Arguments::try_parse_from(["csi-driver-operator".to_owned()].iter().chain(arguments))?;
    keep(&client, &release_version()?).await
}

pub async fn keep(client: &Client, version: &str) -> ! {
    tracing::info!("stand-in for the vSphere CSI driver operator and driver (no volumes are behind attachments) of release {version}");
    let watched = [
        (INFRASTRUCTURE, ""),
        (CONFIG_MAP, CONFIG),
        (SECRET, DRIVERS),
        (NODE, ""),
        (CLUSTER_CSI_DRIVER, ""),
        (DEPLOYMENT, DRIVERS),
        (DAEMON_SET, DRIVERS),
        (VOLUME_ATTACHMENT, ""),
    ];
    let mut cache = Cache::start(client, &watched).await;
    let mut reached = None;
    loop {
        let mut failed = false;
        for result in [attacher::attach(client, &cache).await, pass(client, &cache, &mut reached).await] {
            match result {
                Err(error) if !error.is_conflict() && !error.is_not_found() => {
                    tracing::error!("{error}");
                    failed = true;
                }
                _ => {}
            }
        }
        woken(&mut cache, failed).await;
    }
}

/// One look. `reached` holds the configuration whose vCenters all let this in, so that it logs in once for each.
async fn pass(client: &Client, cache: &Cache, reached: &mut Option<String>) -> Result<(), kubernetes::Error> {
    let view = View::of(cache, DRIVERS, CREDENTIALS);
    let mut trouble = view.as_ref().err().cloned();
    if let Ok(view) = &view {
        let driver = cache.get(CLUSTER_CSI_DRIVER, "", DRIVER);
        let categories = categories(view.has_topology(), driver.as_ref().map(|driver| &driver.data["spec"]));
        let text = driver_config(view, &categories);
        if reached.as_ref() != Some(&text) {
            match connect(view).await {
                Ok(()) => *reached = Some(text.clone()),
                Err(why) => {
                    tracing::error!("error connecting to vcenter API: {why}");
                    trouble = Some(why);
                }
            }
        }
        if trouble.is_none() {
            write_config(client, cache, &text, !categories.is_empty()).await?;
        }
    }
    report(client, cache, trouble.as_deref()).await
}

/// Logs in to every vCenter of Infrastructure, which the cloud configuration has to know.
async fn connect(view: &View) -> Result<(), String> {
    let configured = view.configured();
    for server in view.listed() {
        let known = configured.iter().find(|(name, _, _)| *name == server);
        let (_, port, _) = known.ok_or("error creating new vsphere connection: vcenter not found")?;
        let session = view.session(&server, *port, "vmware-vsphere-csi-driver-operator")?;
        session.user().await.map_err(|error| format!("error logging into vcenter: {error}"))?;
        session.logout().await.map_err(|error| format!("error logging out of vcenter: {error}"))?;
    }
    Ok(())
}

/// The categories of zones: several failure domains imply them, else they are those that the driver's own object names.
fn categories(implied: bool, driver: Option<&Value>) -> Vec<String> {
    if implied {
        return ["openshift-zone", "openshift-region"].map(str::to_owned).into();
    }
    let named = driver.and_then(|spec| spec["driverConfig"]["vSphere"]["topologyCategories"].as_array());
    named.into_iter().flatten().filter_map(|category| category.as_str()).map(str::to_owned).collect()
}

/// The driver's own configuration.
fn driver_config(view: &View, categories: &[String]) -> String {
    let id = view.infrastructure["status"]["infrastructureName"].as_str().unwrap_or_default();
    let mut text = format!("[Global]\ncluster-id = \"{id}\"\n");
    for (server, port, datacenters) in view.configured() {
        let (user, password) = view.pair(&server).unwrap_or_default();
        let port = if port == 443 { String::new() } else { format!("port = \"{port}\"\n") };
        text += &format!(
            "\n[VirtualCenter \"{server}\"]\ninsecure-flag = true\n{port}datacenters = {}\npassword = \"{}\"\nuser = \"{}\"\n",
            datacenters.join(","),
            escaped(&password),
            escaped(&user)
        );
    }
    if !categories.is_empty() {
        text += &format!("\n[Labels]\ntopology-categories = {}\n", categories.join(","));
    }
    text
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

/// Writes the configuration and has controller and node pods follow it.
async fn write_config(client: &Client, cache: &Cache, text: &str, topology: bool) -> Result<(), kubernetes::Error> {
    use base64::Engine as _;
    let encoded = base64::engine::general_purpose::STANDARD.encode(text);
    let held = cache.get(SECRET, DRIVERS, SECRET_NAME);
    if held.is_none_or(|secret| secret.data["data"]["cloud.conf"] != encoded.as_str()) {
        tracing::info!("writing {DRIVERS}/{SECRET_NAME}, topology {}", if topology { "on" } else { "off" });
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET_NAME, "namespace": DRIVERS}, "data": {"cloud.conf": encoded}});
        kubernetes::apply(client, "vmware-vsphere-csi-driver-operator", &secret).await?;
    }
    let hash: String = Sha256::digest(text).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    for (kind, name) in [(DEPLOYMENT, "vmware-vsphere-csi-driver-controller"), (DAEMON_SET, "vmware-vsphere-csi-driver-node")] {
        roll(client, cache, kind, name, &hash).await?;
    }
    Ok(())
}

async fn roll(client: &Client, cache: &Cache, kind: Kind, name: &str, hash: &str) -> Result<(), kubernetes::Error> {
    let Some(workload) = cache.get(kind, DRIVERS, name) else { return Ok(()) };
    if workload.data["spec"]["template"]["metadata"]["annotations"][DEPENDENCY] == hash {
        return Ok(());
    }
    let patch = json!({"spec": {"template": {"metadata": {"annotations": {DEPENDENCY: hash}}}}});
    kubernetes::merge(client, kind, DRIVERS, name, &patch).await.map(drop)
}

async fn report(client: &Client, cache: &Cache, trouble: Option<&str>) -> Result<(), kubernetes::Error> {
    let Some(driver) = cache.get(CLUSTER_CSI_DRIVER, "", DRIVER) else { return Ok(()) };
    let strangers: Vec<String> = cache.list(NODE).iter().filter(|node| is_stranger(&node.data)).map(|node| node.name_any()).collect();
    let of_nodes = (!strangers.is_empty())
        .then(|| format!("unable to find VM {} by UUID: node is not a vSphere virtual machine", strangers.join(", ")));
    let conditions = conditions(trouble, of_nodes.as_deref());
    let mut status = driver.data["status"].as_object().cloned().map_or_else(|| json!({}), Value::Object);
    status["conditions"] = operator_status::with_conditions(&driver.data["status"]["conditions"], &conditions, &operator_status::now());
    if status == driver.data["status"] {
        return Ok(());
    }
    let mut updated = driver.as_ref().clone();
    updated.data["status"] = status;
    requests::replace_status(client, CLUSTER_CSI_DRIVER, &updated).await.map(drop)
}

/// What follows from what is wrong with the vCenters and with the nodes.
fn conditions<'a>(vcenters: Option<&'a str>, nodes: Option<&'a str>) -> [operator_status::Condition<'a>; 3] {
    let degraded = |kind, wrong: Option<&'a str>, reason| match wrong {
        Some(why) => (kind, "True", reason, why),
        None => (kind, "False", "AsExpected", ""),
    };
    [
        degraded("VMwareVSphereControllerDegraded", vcenters, "vsphere_connection_failed"),
        degraded("VMwareVSphereOperatorCheckDegraded", nodes, "non_vsphere_node"),
        ("VMwareVSphereControllerUpgradeable", "True", "AsExpected", ""),
    ]
}

/// A node that has joined and is nobody's virtual machine.
fn is_stranger(node: &Value) -> bool {
    let waits = node["spec"]["taints"]
        .as_array()
        .into_iter()
        .flatten()
        .any(|taint| taint["key"] == "node.cloudprovider.kubernetes.io/uninitialized");
    !waits && !is_virtual_machine(node)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_vcenter_without_its_place_in_the_configuration_or_its_pair_degrades_the_controller() {
        let infrastructure = json!({"vcenters": [{"server": "vc-a"}]});
        let known = json!({"vc-a": {"server": "vc-a", "datacenters": ["dc-a"]}});
        let other = json!({"vc-b": {"server": "vc-b", "datacenters": ["dc-b"]}});
        for (vcenters, pairs, wrong) in [
            (&other, &["vc-a", "vc-b"][..], "error creating new vsphere connection: vcenter not found"),
            (&known, &["vc-b"], "failed to get credentials to vc-a: unable to find vc-a.username"),
        ] {
            let why = connect(&View::made(&infrastructure, vcenters, pairs)).await.unwrap_err();
            assert_eq!(why, wrong);
            let [vcenters, nodes, _] = conditions(Some(&why), None);
            assert_eq!(vcenters, ("VMwareVSphereControllerDegraded", "True", "vsphere_connection_failed", wrong));
            assert_eq!(nodes, ("VMwareVSphereOperatorCheckDegraded", "False", "AsExpected", ""), "nodes are another matter");
        }
        let [vcenters, nodes, _] = conditions(None, Some("node x"));
        assert_eq!(vcenters, ("VMwareVSphereControllerDegraded", "False", "AsExpected", ""));
        assert_eq!(nodes, ("VMwareVSphereOperatorCheckDegraded", "True", "non_vsphere_node", "node x"));
    }

    #[test]
    fn a_pair_that_is_missing_is_empty_in_the_drivers_configuration() {
        let known = json!({"vc-a": {"server": "vc-a", "datacenters": ["dc-a"]}});
        let text = driver_config(&View::made(&json!({}), &known, &[]), &[]);
        assert!(
            text.ends_with("[VirtualCenter \"vc-a\"]\ninsecure-flag = true\ndatacenters = dc-a\npassword = \"\"\nuser = \"\"\n"),
            "{text}"
        );
    }

    #[test]
    fn only_a_node_that_joined_without_a_virtual_machine_is_a_stranger() {
        assert!(is_stranger(&json!({"spec": {}})));
        assert!(is_stranger(&json!({"spec": {"providerID": "baremetalhost:///x"}})));
        assert!(!is_stranger(&json!({"spec": {"providerID": "vsphere://x"}})));
        let waiting = json!({"spec": {"taints": [{"key": "node.cloudprovider.kubernetes.io/uninitialized"}]}});
        assert!(!is_stranger(&waiting));
    }

    #[test]
    fn categories_are_implied_by_several_failure_domains_or_else_named() {
        let driver = json!({"driverConfig": {"driverType": "vSphere", "vSphere": {"topologyCategories": ["k8s-zone", "k8s-region"]}}});
        assert_eq!(categories(true, Some(&driver)), ["openshift-zone", "openshift-region"]);
        assert_eq!(categories(false, Some(&driver)), ["k8s-zone", "k8s-region"]);
        assert!(categories(false, Some(&json!({}))).is_empty() && categories(false, None).is_empty());
    }

    #[test]
    fn quotes_and_backslashes_survive_in_the_configuration() {
        assert_eq!(escaped(r#"a"b\c"#), r#"a\"b\\c"#);
    }
}
