use super::*;

fn object(value: Value) -> DynamicObject {
    serde_json::from_value(value).unwrap()
}

struct Cluster {
    infrastructure: DynamicObject,
    network: DynamicObject,
    dns: DynamicObject,
    proxy: DynamicObject,
    cloud_config: DynamicObject,
}

fn cluster() -> Cluster {
    let config = |kind: &str, body: Value| {
        let mut manifest = json!({"apiVersion": "config.openshift.io/v1", "kind": kind,
            "metadata": {"name": "cluster", "managedFields": [{"manager": "m"}]}});
        manifest.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        object(manifest)
    };
    let vcenters = json!([{"server": "vc1.example", "datacenters": ["dc"]}]);
    let infrastructure = json!({
        "spec": {"cloudConfig": {"name": "cloud-provider-config", "key": "config"}, "platformSpec": {"type": "VSphere", "vsphere": {"vcenters": vcenters}}},
        "status": {"platformStatus": {"type": "VSphere"}, "etcdDiscoveryDomain": ""},
    });
    Cluster {
        infrastructure: config("Infrastructure", infrastructure),
        network: config("Network", json!({"spec": {"serviceNetwork": ["172.30.0.0/16"], "networkType": "OVNKubernetes"}})),
        dns: config("DNS", json!({"spec": {"baseDomain": "lab.example"}})),
        proxy: config("Proxy", json!({"spec": {}, "status": {}})),
        cloud_config: object(
            json!({"metadata": {"name": "kube-cloud-config"}, "data": {"cloud.conf": "global: {}", "ca-bundle.pem": "PEM"}}),
        ),
    }
}

fn given(cluster: &Cluster, with_cloud_config: bool) -> Result<Value, String> {
    spec(&Sources {
        infrastructure: &cluster.infrastructure,
        network: &cluster.network,
        dns: &cluster.dns,
        proxy: Some(&cluster.proxy),
        cloud_config: with_cloud_config.then_some(&cluster.cloud_config),
        root_ca: "CA",
        release_image: "release",
    })
}

#[test]
fn the_spec_carries_the_whole_infrastructure_and_the_cloud_config() {
    let cluster = cluster();
    let spec = given(&cluster, true).unwrap();
    assert_eq!(spec["infra"]["spec"], cluster.infrastructure.data["spec"]);
    assert_eq!(spec["infra"]["kind"], "Infrastructure");
    assert_eq!(spec["infra"]["metadata"], json!({"name": "cluster"}));
    assert_eq!(spec["cloudProviderConfig"], "global: {}");
    assert_eq!(spec["cloudProviderCAData"], STANDARD.encode("PEM"));
    assert_eq!(spec["rootCAData"], STANDARD.encode("CA"));
    assert_eq!((&spec["clusterDNSIP"], &spec["ipFamilies"]), (&json!("172.30.0.10"), &json!("IPv4")));
    assert_eq!((&spec["platform"], &spec["networkType"]), (&json!("vsphere"), &json!("OVNKubernetes")));
    assert_eq!(spec.get("proxy"), Some(&Value::Null), "an empty proxy status is none, and the CRD wants the field");
}

#[test]
fn a_missing_source_is_named() {
    let missing = given(&cluster(), false).unwrap_err();
    assert!(
        missing.starts_with("openshift-config-managed/kube-cloud-config configmap is required on platform VSphere but not found"),
        "{missing}"
    );

    let mut keyless = cluster();
    keyless.cloud_config.data["data"] = json!({"config": "x"});
    let words = "openshift-config-managed/kube-cloud-config configmap must have the cloud.conf key on platform VSphere but not found";
    assert_eq!(given(&keyless, true).unwrap_err(), words);

    let mut networkless = cluster();
    networkless.network.data["spec"]["serviceNetwork"] = json!([]);
    assert_eq!(given(&networkless, true).unwrap_err(), "service cidr is empty in Network");
    networkless.network.data["spec"]["serviceNetwork"] = json!(["nonsense"]);
    assert_eq!(given(&networkless, true).unwrap_err(), "invalid service network \"nonsense\" in Network");
}

#[test]
fn service_networks_give_dns_address_and_families() {
    for (networks, address, families) in [
        (json!(["10.96.0.0/12"]), "10.96.0.10", "IPv4"),
        (json!(["fd02::/112"]), "fd02::a", "IPv6"),
        (json!(["172.30.0.0/16", "fd02::/112"]), "172.30.0.10", "DualStack"),
        (json!(["fd02::/112", "172.30.0.0/16"]), "fd02::a", "DualStackIPv6Primary"),
    ] {
        let networks = networks.as_array().unwrap();
        assert_eq!((dns_address(networks).as_deref(), ip_families(networks)), (Ok(address), Ok(families)));
    }
}

#[test]
fn merging_takes_new_values_and_keeps_what_the_sources_do_not_say() {
    let existing = json!({"cloudProviderConfig": "old", "cloudProviderCAData": "QQ==", "proxy": {"httpProxy": "p"}, "osImageURL": "os", "infra": {"spec": 1}});
    let wanted = json!({"cloudProviderConfig": "", "cloudProviderCAData": null, "proxy": null, "network": null, "infra": {"spec": 2}});
    let expected = json!({"cloudProviderConfig": "old", "cloudProviderCAData": "QQ==", "proxy": null, "osImageURL": "os", "infra": {"spec": 2}, "network": null});
    assert_eq!(merged(&existing, &wanted), expected);
    assert_eq!(merged(&Value::Null, &wanted), wanted, "required fields are there from the start");
}

#[test]
fn the_status_follows_the_generation() {
    let mut config = object(json!({"metadata": {"name": NAME, "generation": 4}}));
    config.data["status"] = status(&config, "4.21.0", "2026-01-01T00:00:00Z");
    assert_eq!(config.data["status"]["observedGeneration"], 4);
    assert_eq!(crate::kubernetes::condition(&config, "TemplateControllerCompleted"), "True");
    assert_eq!(status(&config, "4.21.0", "2026-02-02T00:00:00Z"), config.data["status"]);
    config.metadata.generation = Some(5);
    assert_eq!(status(&config, "4.21.0", "2026-02-02T00:00:00Z")["observedGeneration"], 5);
}
