//! The stand-in for the cluster-cloud-controller-manager-operator, alone on a real apiserver.

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;
use tokio::task::JoinSet;
use vmi_lab::cache::Cache;
use vmi_lab::kubernetes::{
    self, CLUSTER_OPERATOR, CONFIG_MAP, DEPLOYMENT, INFRASTRUCTURE, Kind, NAMESPACE, NETWORK, PROXY, SECRET, condition,
};
use vmi_lab::process;
use vmi_lab::standins::cccmo;
use vmi_lab::standins::cloud_config::Generation;

use crate::support::lab::Lab;
use crate::support::openshift::PATIENCE;
use crate::support::suite::TestResult;

const MANAGED: &str = "openshift-cloud-controller-manager";
const DEPLOYMENT_NAME: &str = "vsphere-cloud-controller-manager";
const SOURCE: (&str, &str) = ("openshift-config", "cloud-provider-config");
const VERSION: &str = "4.21.3";
const GLOBAL: &str = "global: {secretName: vsphere-creds, secretNamespace: kube-system}\n";

pub async fn the_cloud_config_follows_its_source_and_infrastructure(lab: &Lab) -> TestResult {
    let (mut processes, mut cache) = begin(lab, Generation::V4_21).await?;
    config(&mut cache, "vCenter a alone", |config| config["vcenter"] == json!({"a": entry("a")}) && config["labels"].is_null()).await?;
    infrastructure(lab, &["a"], &["a", "a"]).await?;
    config(&mut cache, "labels for two failure domains", |config| config["labels"]["zone"] == "openshift-zone").await?;
    // This generation's CRD lets nobody add a vCenter, so the object is made anew.
    kubernetes::delete(&lab.client, INFRASTRUCTURE, "", "cluster").await?;
    infrastructure(lab, &["a", "b"], &["a", "b"]).await?;
    config(&mut cache, "both vCenters", |config| config["vcenter"] == json!({"a": entry("a"), "b": entry("b")})).await?;
    source(lab, &format!("{GLOBAL}vcenter: {{only-here: {{server: only-here}}}}\n"), None).await?;
    config(&mut cache, "the entry that only the source has", |config| config["vcenter"]["only-here"]["server"] == "only-here").await?;
    kubernetes::delete(&lab.client, CONFIG_MAP, MANAGED, "cloud-conf").await?;
    config(&mut cache, "the config to be made again", |config| config["vcenter"]["b"] == entry("b")).await?;
    end(lab, &mut processes).await
}

pub async fn from_4_23_only_infrastructures_vcenters_count(lab: &Lab) -> TestResult {
    let (mut processes, mut cache) = begin(lab, Generation::Next).await?;
    source(lab, &format!("{GLOBAL}vcenter: {{only-here: {{server: only-here}}}}\nlabels: {{zone: z}}\n"), None).await?;
    config(&mut cache, "the changed source without its entry", |config| {
        config["labels"]["zone"] == "z" && config["vcenter"] == json!({"a": entry("a")})
    })
    .await?;
    end(lab, &mut processes).await
}

pub async fn a_panic_leaves_the_old_config_and_an_operator_that_looks_well(lab: &Lab) -> TestResult {
    prepare(lab).await?;
    let mut cache = lab.watch(&[CONFIG_MAP, CLUSTER_OPERATOR]).await;
    let mut child = config_sync(lab, "4.21")?.stderr(Stdio::piped()).spawn()?;
    reported(&mut cache, "CloudConfigControllerAvailable", "True").await?;
    let before = kubernetes::get(&lab.client, CONFIG_MAP, MANAGED, "cloud-conf").await?.ok_or("no cloud-conf")?;
    infrastructure(lab, &["a"], &["a", "orphan"]).await?;
    let mut said = BufReader::new(child.stderr.take().ok_or("no log")?).lines();
    tokio::time::timeout(PATIENCE, async {
        while let Some(line) = said.next_line().await? {
            if line.contains("Observed a panic") && line.contains("nil pointer dereference") {
                return TestResult::Ok(());
            }
        }
        Err("the process ended".into())
    })
    .await??;
    let after = kubernetes::get(&lab.client, CONFIG_MAP, MANAGED, "cloud-conf").await?.ok_or("no cloud-conf")?;
    assert_eq!(before.metadata.resource_version, after.metadata.resource_version);
    let operator = kubernetes::get(&lab.client, CLUSTER_OPERATOR, "", "cloud-controller-manager").await?.ok_or("no operator")?;
    assert_eq!(condition(&operator, "CloudConfigControllerDegraded"), "False");
    infrastructure(lab, &["a"], &["a", "a"]).await?;
    config(&mut cache, "the mended Infrastructure to count", |config| config["labels"]["zone"] == "openshift-zone").await?;
    child.kill().await?;
    end(lab, &mut JoinSet::new()).await
}

pub async fn up_to_4_17_a_panic_ends_the_process_as_go_does(lab: &Lab) -> TestResult {
    prepare(lab).await?;
    infrastructure(lab, &["a"], &["a", "orphan"]).await?;
    let output = tokio::time::timeout(PATIENCE, config_sync(lab, "4.17")?.output()).await??;
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("panic: runtime error: invalid memory address or nil pointer dereference [recovered]"), "{said}");
    end(lab, &mut JoinSet::new()).await
}

pub async fn an_unreadable_source_degrades_the_operator_until_it_is_mended(lab: &Lab) -> TestResult {
    let (mut processes, mut cache) = begin(lab, Generation::V4_21).await?;
    reported(&mut cache, "Available", "True").await?;
    source(lab, "global:\n  port: \"443\"\n", None).await?;
    reported(&mut cache, "CloudConfigControllerDegraded", "True").await?;
    reported(&mut cache, "Degraded", "True").await?;
    source(lab, &format!("{GLOBAL}vcenter: {{}}\n"), None).await?;
    reported(&mut cache, "CloudConfigControllerDegraded", "False").await?;
    reported(&mut cache, "Degraded", "False").await?;
    end(lab, &mut processes).await
}

pub async fn the_deployment_rolls_with_config_certificates_and_credentials_and_keeps_two_replicas(lab: &Lab) -> TestResult {
    let (mut processes, mut cache) = begin(lab, Generation::V4_21).await?;
    let mut hash = rolled(&mut cache, "").await?;
    infrastructure(lab, &["a"], &["a", "a"]).await?;
    hash = rolled(&mut cache, &hash).await?;
    kubernetes::merge(&lab.client, SECRET, MANAGED, "vsphere-cloud-credentials", &json!({"data": {"b.username": "Yg=="}})).await?;
    hash = rolled(&mut cache, &hash).await?;
    let authority = vmi_lab::pki::Authority::new("cccmo-test")?;
    source(lab, &format!("{GLOBAL}vcenter: {{}}\n"), Some(&authority.certificate)).await?;
    cache
        .until("the certificate to be trusted", PATIENCE, |cache| {
            let trusted = cache.get(CONFIG_MAP, MANAGED, "ccm-trusted-ca").ok_or("no ccm-trusted-ca")?;
            if trusted.data["data"]["ca-bundle.crt"] == authority.certificate { Ok(()) } else { Err(trusted.data.to_string()) }
        })
        .await?;
    rolled(&mut cache, &hash).await?;
    let scaled = kubernetes::merge(&lab.client, DEPLOYMENT, MANAGED, DEPLOYMENT_NAME, &json!({"spec": {"replicas": 0}})).await?;
    cache
        .until("two replicas again", PATIENCE, |cache| {
            let deployment = cache.get(DEPLOYMENT, MANAGED, DEPLOYMENT_NAME).ok_or("no deployment")?;
            let settled = deployment.metadata.generation > scaled.metadata.generation && deployment.data["spec"]["replicas"] == 2;
            if settled { Ok(()) } else { Err(format!("{:?} {}", deployment.metadata.generation, deployment.data["spec"]["replicas"])) }
        })
        .await?;
    end(lab, &mut processes).await
}

/// The process of the config sync, as its container runs it.
fn config_sync(lab: &Lab, generation: &str) -> TestResult<Command> {
    let mut command = Command::new(process::own_binary()?);
    command.args(["stand-in", "cccmo", "config-sync", "--generation", generation]).kill_on_drop(true);
    command.env("KUBECONFIG", lab.folder().join("kubeconfig")).env("RELEASE_VERSION", VERSION);
    Ok(command)
}

fn entry(server: &str) -> Value {
    json!({"server": server, "port": 443, "datacenters": ["dc"]})
}

async fn prepare(lab: &Lab) -> TestResult {
    for name in [SOURCE.0, "openshift-config-managed", MANAGED] {
        if kubernetes::get(&lab.client, NAMESPACE, "", name).await?.is_none() {
            apply(lab, json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})).await?;
        }
    }
    let singleton = |kind: &str, spec: Value| json!({"apiVersion": "config.openshift.io/v1", "kind": kind, "metadata": {"name": "cluster"}, "spec": spec});
    apply(lab, singleton("Network", json!({"serviceNetwork": ["172.30.0.0/16"]}))).await?;
    apply(lab, singleton("Proxy", json!({"trustedCA": {"name": ""}}))).await?;
    source(lab, &format!("{GLOBAL}vcenter: {{}}\n"), None).await?;
    infrastructure(lab, &["a"], &["a"]).await?;
    let credentials = json!({"name": "vsphere-cloud-credentials", "namespace": MANAGED});
    apply(lab, json!({"apiVersion": "v1", "kind": "Secret", "metadata": credentials, "data": {"a.username": "YQ=="}})).await?;
    // Paused pods would only cost: what counts here is the template, so its pods fit no node.
    let labels = json!({"k8s-app": DEPLOYMENT_NAME});
    let template = json!({"metadata": {"labels": labels}, "spec": {
        "nodeSelector": {"no-such": "node"}, "containers": [{"name": "c", "image": "vmi-lab/shell"}],
    }});
    apply(
        lab,
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": DEPLOYMENT_NAME, "namespace": MANAGED},
            "spec": {"selector": {"matchLabels": labels}, "template": template},
        }),
    )
    .await
}

async fn begin(lab: &Lab, generation: Generation) -> TestResult<(JoinSet<()>, Cache)> {
    prepare(lab).await?;
    let mut processes = JoinSet::new();
    let client = lab.client.clone();
    processes.spawn(async move { cccmo::keep_config(&client, VERSION, generation).await });
    let client = lab.client.clone();
    processes.spawn(async move { cccmo::keep_deployment(&client, VERSION, generation).await });
    Ok((processes, lab.watch(&[CONFIG_MAP, CLUSTER_OPERATOR, DEPLOYMENT]).await))
}

async fn end(lab: &Lab, processes: &mut JoinSet<()>) -> TestResult {
    processes.shutdown().await;
    let made: [(Kind, &str, &str); 9] = [
        (DEPLOYMENT, MANAGED, DEPLOYMENT_NAME),
        (SECRET, MANAGED, "vsphere-cloud-credentials"),
        (CONFIG_MAP, MANAGED, "cloud-conf"),
        (CONFIG_MAP, MANAGED, "ccm-trusted-ca"),
        (CONFIG_MAP, SOURCE.0, SOURCE.1),
        (CLUSTER_OPERATOR, "", "cloud-controller-manager"),
        (INFRASTRUCTURE, "", "cluster"),
        (NETWORK, "", "cluster"),
        (PROXY, "", "cluster"),
    ];
    for (kind, namespace, name) in made {
        kubernetes::delete(&lab.client, kind, namespace, name).await?;
    }
    Ok(())
}

async fn source(lab: &Lab, text: &str, certificates: Option<&str>) -> TestResult {
    let mut data = json!({"config": text});
    if let Some(certificates) = certificates {
        data["ca-bundle.pem"] = json!(certificates);
    }
    apply(lab, json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": SOURCE.1, "namespace": SOURCE.0}, "data": data})).await
}

async fn infrastructure(lab: &Lab, vcenters: &[&str], domains: &[&str]) -> TestResult {
    let domain = |(index, server): (usize, &&str)| {
        let topology = json!({
            "datacenter": "dc", "computeCluster": "/dc/host/c", "datastore": "/dc/datastore/d", "networks": ["n"],
        });
        json!({"name": format!("fd-{index}"), "region": "r", "zone": format!("z{index}"), "server": server, "topology": topology})
    };
    let vcenters: Vec<Value> = vcenters.iter().map(|server| entry(server)).collect();
    let domains: Vec<Value> = domains.iter().enumerate().map(domain).collect();
    apply(
        lab,
        json!({
            "apiVersion": "config.openshift.io/v1", "kind": "Infrastructure", "metadata": {"name": "cluster"},
            "spec": {
                "cloudConfig": {"name": SOURCE.1, "key": "config"},
                "platformSpec": {"type": "VSphere", "vsphere": {"vcenters": vcenters, "failureDomains": domains}},
            },
            "status": {"platform": "VSphere", "platformStatus": {"type": "VSphere", "vsphere": {}}, "infrastructureName": "lab-x7k2p",
                "etcdDiscoveryDomain": "", "apiServerURL": "", "apiServerInternalURI": "", "controlPlaneTopology": "HighlyAvailable",
                "infrastructureTopology": "HighlyAvailable"},
        }),
    )
    .await
}

async fn apply(lab: &Lab, manifest: Value) -> TestResult {
    kubernetes::apply(&lab.client, "cccmo-test", &manifest).await?;
    Ok(())
}

async fn config(cache: &mut Cache, what: &str, holds: impl Fn(&Value) -> bool) -> TestResult {
    let waited = cache.until(what, PATIENCE, |cache| {
        let config = cache.get(CONFIG_MAP, MANAGED, "cloud-conf").ok_or("no cloud-conf")?;
        let text = config.data["data"]["cloud.conf"].as_str().unwrap_or_default();
        let parsed = vmi_lab::yaml::parse(text).map_err(|error| error.to_string())?;
        if holds(&parsed) { Ok(()) } else { Err(text.to_owned()) }
    });
    Ok(waited.await?)
}

async fn reported(cache: &mut Cache, kind: &str, wanted: &str) -> TestResult {
    let what = format!("{kind} {wanted}");
    let waited = cache.until(&what, PATIENCE, |cache| {
        let operator = cache.get(CLUSTER_OPERATOR, "", "cloud-controller-manager").ok_or("no ClusterOperator")?;
        if condition(&operator, kind) == wanted { Ok(()) } else { Err(operator.data["status"].to_string()) }
    });
    Ok(waited.await?)
}

/// The hash on the pod template once it is another than `before`.
async fn rolled(cache: &mut Cache, before: &str) -> TestResult<String> {
    let waited = cache.until("another hash on the pod template", PATIENCE, |cache| {
        let deployment = cache.get(DEPLOYMENT, MANAGED, DEPLOYMENT_NAME).ok_or("no deployment")?;
        let hash = &deployment.data["spec"]["template"]["metadata"]["annotations"]["operator.openshift.io/config-hash"];
        let hash = hash.as_str().unwrap_or_default();
        if !hash.is_empty() && hash != before { Ok(hash.to_owned()) } else { Err(format!("the hash is {hash:?}")) }
    });
    Ok(waited.await?)
}
