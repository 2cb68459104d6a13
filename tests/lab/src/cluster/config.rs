//! The cluster's configuration as the installer leaves it: Infrastructure, feature gates, cloud config, credentials.

use serde_json::{Value, json};

use super::{Error, template};
use crate::shape::{CloudConfig, FailureDomains, Generation, Shape};
use crate::vcenter::{INFRA_ID, Vcenter};

/// The version of the kubelets, and of the release's Kubernetes.
pub const KUBERNETES: &str = "v1.34.4";

/// A failure domain as Infrastructure lists it.
pub struct FailureDomain {
    pub name: String,
    pub region: String,
    pub zone: String,
}

/// The name, region and zone of a vCenter's compute cluster.
pub fn failure_domain(shape: &Shape, vcenter: &Vcenter, zone: &str) -> FailureDomain {
    match shape.failure_domains {
        FailureDomains::Named => named_domain(vcenter, zone),
        FailureDomains::Generated | FailureDomains::None => FailureDomain {
            name: "generated-failure-domain".to_owned(),
            region: "generated-region".to_owned(),
            zone: "generated-zone".to_owned(),
        },
    }
}

/// A failure domain as a user names it.
pub fn named_domain(vcenter: &Vcenter, zone: &str) -> FailureDomain {
    FailureDomain { name: format!("fd-{zone}"), region: format!("region-{}", vcenter.name), zone: format!("zone-{zone}") }
}

/// Infrastructure's entry for a failure domain on `vcenter`.
pub fn failure_domain_entry(domain: &FailureDomain, vcenter: &Vcenter, zone: &str) -> Value {
    json!({
        "name": domain.name, "region": domain.region, "zone": domain.zone, "server": vcenter.server,
        "topology": {
            "datacenter": vcenter.datacenter(),
            "computeCluster": vcenter.cluster(zone),
            "networks": [vcenter.network()],
            "datastore": vcenter.datastore(),
            "resourcePool": vcenter.resource_pool(zone),
            "folder": vcenter.folder(),
            "template": vcenter.template(),
        },
    })
}

/// Infrastructure's entry for a vCenter.
pub fn vcenter_entry(vcenter: &Vcenter) -> Value {
    json!({"server": vcenter.server, "port": vcenter.port, "datacenters": [vcenter.datacenter()]})
}

/// The objects every shape with OpenShift in it has; `source` is the vCenter the cluster is installed on.
pub fn objects(shape: &Shape, source: &Vcenter, api_url: &str, gates: &Value) -> Result<Vec<Value>, Error> {
    let mut objects =
        template("cluster.yaml", include_str!("../../manifests/cluster.yaml"), &[("CREDENTIALS_MODE", shape.credentials_mode.as_str())])?;
    if shape.credentials_mode == "Manual" {
        objects.extend(secrets_by_hand(&objects, source));
    }
    objects.push(infrastructure(shape, source, api_url));
    objects.push(feature_gate(shape, gates));
    objects.push(json!({
        "apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion", "metadata": {"name": "version"},
        "spec": {"clusterID": "1ab00000-0000-4000-8000-000000000001", "channel": format!("stable-{}", minor(&shape.version))},
    }));
    objects.push(json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "cloud-provider-config", "namespace": "openshift-config"},
        "data": {"config": cloud_config(shape, source), "ca-bundle.pem": source.ca},
    }));
    objects.push(json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "vsphere-creds", "namespace": "kube-system"},
        "stringData": credentials(source),
    }));
    Ok(objects)
}

/// What a user of mode Manual makes before the installation: a Secret for each CredentialsRequest.
fn secrets_by_hand(objects: &[Value], source: &Vcenter) -> Vec<Value> {
    let requests = objects.iter().filter(|object| object["kind"] == "CredentialsRequest");
    let secret = |request: &Value| json!({"apiVersion": "v1", "kind": "Secret", "metadata": request["spec"]["secretRef"], "stringData": credentials(source)});
    requests.map(secret).collect()
}

fn minor(version: &str) -> String {
    version.splitn(3, '.').take(2).collect::<Vec<_>>().join(".")
}

/// The pair of keys by which OpenShift keeps a vCenter's user.
pub fn credentials(vcenter: &Vcenter) -> Value {
    json!({
        format!("{}.username", vcenter.server): vcenter.username,
        format!("{}.password", vcenter.server): vcenter.password,
    })
}

fn infrastructure(shape: &Shape, source: &Vcenter, api_url: &str) -> Value {
    if shape.failure_domains == FailureDomains::None {
        return json!({
            "apiVersion": "config.openshift.io/v1", "kind": "Infrastructure", "metadata": {"name": "cluster"},
            "spec": {"cloudConfig": {"name": "cloud-provider-config", "key": "config"}, "platformSpec": {"type": "VSphere"}},
            "status": infrastructure_status(api_url),
        });
    }
    let domains: Vec<Value> =
        source.zones.iter().map(|zone| failure_domain_entry(&failure_domain(shape, source, zone), source, zone)).collect();
    json!({
        "apiVersion": "config.openshift.io/v1", "kind": "Infrastructure", "metadata": {"name": "cluster"},
        "spec": {
            "cloudConfig": {"name": "cloud-provider-config", "key": "config"},
            "platformSpec": {"type": "VSphere", "vsphere": {
                "vcenters": [vcenter_entry(source)],
                "failureDomains": domains,
                "apiServerInternalIPs": ["192.0.2.10"],
                "ingressIPs": ["192.0.2.11"],
                "nodeNetworking": {"external": {}, "internal": {}},
            }},
        },
        "status": infrastructure_status(api_url),
    })
}

fn infrastructure_status(api_url: &str) -> Value {
    json!({
        "infrastructureName": INFRA_ID,
        "platform": "VSphere",
        "platformStatus": {"type": "VSphere", "vsphere": {
            "apiServerInternalIP": "192.0.2.10", "apiServerInternalIPs": ["192.0.2.10"],
            "ingressIP": "192.0.2.11", "ingressIPs": ["192.0.2.11"],
        }},
        "controlPlaneTopology": "HighlyAvailable",
        "infrastructureTopology": "HighlyAvailable",
        "cpuPartitioning": "None",
        "apiServerURL": api_url,
        "apiServerInternalURI": api_url,
        "etcdDiscoveryDomain": "",
    })
}

/// FeatureGate with every gate the release knows: the control plane machine set operator waits until its own are all listed.
/// `gates` holds the enabled and the disabled ones of each feature set.
fn feature_gate(shape: &Shape, gates: &Value) -> Value {
    let names = |list: &str| -> Vec<String> {
        gates["Default"][list].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let mut enabled = names("enabled");
    enabled.extend(shape.gates.iter().cloned());
    let disabled: Vec<String> = names("disabled").into_iter().filter(|name| !enabled.contains(name)).collect();
    let listed = |names: &[String]| -> Vec<Value> { names.iter().map(|name| json!({"name": name})).collect() };
    let mut spec = json!({});
    if !shape.feature_set.is_empty() {
        spec["featureSet"] = json!(shape.feature_set);
    }
    if shape.feature_set == "CustomNoUpgrade" {
        spec["customNoUpgrade"] = json!({"enabled": shape.gates});
    }
    json!({
        "apiVersion": "config.openshift.io/v1", "kind": "FeatureGate", "metadata": {"name": "cluster"},
        "spec": spec,
        "status": {"featureGates": [{"version": shape.version, "enabled": listed(&enabled), "disabled": listed(&disabled)}]},
    })
}

/// The cloud config as the installer of that generation writes it.
pub fn cloud_config(shape: &Shape, source: &Vcenter) -> String {
    let (server, port, datacenter) = (&source.server, source.port, source.datacenter());
    if shape.cloud_config == CloudConfig::Ini {
        return format!(
            "[Global]\nsecret-name = \"vsphere-creds\"\nsecret-namespace = \"kube-system\"\ninsecure-flag = \"1\"\n\n[Workspace]\nserver = \"{server}\"\ndatacenter = \"{datacenter}\"\ndefault-datastore = \"{}\"\nfolder = \"{}\"\nresourcepool-path = \"{}\"\n\n[VirtualCenter \"{server}\"]\nport = \"{port}\"\ndatacenters = \"{datacenter}\"\n",
            source.datastore(),
            source.folder(),
            source.resource_pool(&source.zones[0]),
        );
    }
    let mut rest = String::new();
    if source.zones.len() > 1 {
        rest += "labels:\n  zone: openshift-zone\n  region: openshift-region\n";
    }
    if !shape.cloud_config_nodes.is_empty() {
        rest += "nodes:\n";
        rest.extend(shape.cloud_config_nodes.iter().map(|(field, value)| format!("  {field}: {value}\n")));
    }
    match shape.generation {
        Generation::V4_21 => format!(
            "global:\n  user: \"\"\n  password: \"\"\n  server: \"\"\n  port: 0\n  insecureFlag: true\n  datacenters: []\n  soapRoundtripCount: 0\n  caFile: \"\"\n  thumbprint: \"\"\n  secretName: vsphere-creds\n  secretNamespace: kube-system\n  secretsDirectory: \"\"\n  apiDisable: false\n  apiBinding: \"\"\n  ipFamily: []\nvcenter:\n  {server}:\n    user: \"\"\n    password: \"\"\n    tenantref: \"\"\n    server: {server}\n    port: {port}\n    insecureFlag: true\n    datacenters:\n    - {datacenter}\n    soapRoundtripCount: 0\n    caFile: \"\"\n    thumbprint: \"\"\n    secretref: \"\"\n    secretName: \"\"\n    secretNamespace: \"\"\n    ipFamily: []\n{rest}"
        ),
        Generation::Next => format!(
            "global:\n  insecureFlag: true\n  secretName: vsphere-creds\n  secretNamespace: kube-system\nvcenter:\n  {server}:\n    server: {server}\n    port: {port}\n    datacenters:\n    - {datacenter}\n{rest}"
        ),
    }
}
