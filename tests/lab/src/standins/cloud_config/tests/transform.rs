//! The transformer: what Infrastructure and Network do to a configuration.

use super::*;

const PLAIN: &str = "global: {secretName: vsphere-creds, secretNamespace: kube-system, insecureFlag: true}\n";

fn infrastructure(vsphere: Value) -> Value {
    json!({
        "spec": {"platformSpec": {"type": "VSphere", "vsphere": vsphere}},
        "status": {"platformStatus": {"type": "VSphere", "vsphere": {"apiServerInternalIPs": ["10.0.0.2", "fd00::2"], "ingressIPs": ["10.0.0.3"]}}},
    })
}

fn vsphere(vcenters: &[&str], domains: &[(&str, &str)]) -> Value {
    let vcenters: Vec<Value> = vcenters.iter().map(|server| json!({"server": server, "port": 443, "datacenters": ["dc1"]})).collect();
    let domains: Vec<Value> =
        domains.iter().map(|(server, datacenter)| json!({"server": server, "topology": {"datacenter": datacenter}})).collect();
    json!({"vcenters": vcenters, "failureDomains": domains})
}

fn services(networks: &[&str]) -> Value {
    json!({"spec": {"serviceNetwork": networks}})
}

fn transformed(source: &str, vsphere: Value, generation: Generation) -> Value {
    let text = crate::standins::cloud_config::transform(source, &infrastructure(vsphere), Some(&services(&["172.30.0.0/16"])), generation)
        .unwrap();
    crate::yaml::parse(&text).unwrap()
}

fn panic(source: &str, vsphere: Value, generation: Generation) -> Option<Panic> {
    match crate::standins::cloud_config::transform(source, &infrastructure(vsphere), None, generation) {
        Err(Error::Panic(panic)) => Some(panic),
        _ => None,
    }
}

#[test]
fn a_vcenter_keeps_only_what_infrastructure_knows_of_it() {
    let source = format!("{PLAIN}vcenter:\n  a: {{server: a, user: u, insecureFlag: true, thumbprint: t, datacenters: [other]}}\n");
    for generation in BOTH {
        let config = transformed(&source, vsphere(&["a"], &[("a", "dc1"), ("a", "dc2")]), generation);
        assert_eq!(config["vcenter"], json!({"a": {"server": "a", "port": 443, "datacenters": ["dc1", "dc2"]}}), "{generation:?}");
    }
}

#[test]
fn an_entry_that_infrastructure_does_not_name_survives_up_to_4_22_only() {
    let source = format!("{PLAIN}vcenter:\n  old: {{server: old, user: u}}\n");
    let target = vsphere(&["new"], &[("new", "dc1")]);
    let older = transformed(&source, target.clone(), Generation::V4_21);
    assert_eq!(older["vcenter"]["old"], json!({"server": "old", "user": "u"}));
    assert_eq!(older["vcenter"]["new"]["server"], "new");
    let newer = transformed(&source, target, Generation::Next);
    assert_eq!(newer["vcenter"], json!({"new": {"server": "new", "port": 443, "datacenters": ["dc1"]}}));
    assert_eq!(transformed(&source, json!({}), Generation::Next).get("vcenter"), None, "no vCenter in Infrastructure, none in the result");
}

#[test]
fn labels_come_with_the_second_failure_domain_and_stay_where_the_source_has_them() {
    let source = format!("{PLAIN}vcenter: {{}}\n");
    let labelled = format!("{source}labels: {{zone: z, region: r}}\n");
    let (one, two) = ([("a", "dc1")], [("a", "dc1"), ("a", "dc1")]);
    for generation in BOTH {
        let labels = |source: &str, domains: &[_]| transformed(source, vsphere(&["a"], domains), generation)["labels"].clone();
        assert_eq!(labels(&source, &one), Value::Null);
        assert_eq!(labels(&source, &two), json!({"zone": "openshift-zone", "region": "openshift-region"}));
        assert_eq!(labels(&labelled, &one), json!({"zone": "z", "region": "r"}));
        assert_eq!(labels(&labelled, &two), json!({"zone": "openshift-zone", "region": "openshift-region"}));
    }
}

#[test]
fn a_failure_domain_on_an_unknown_server_is_a_panic() {
    let orphan = vsphere(&["a"], &[("a", "dc1"), ("z", "dc9")]);
    let source = format!("{PLAIN}vcenter: {{}}\n");
    for generation in BOTH {
        assert_eq!(panic(&source, orphan.clone(), generation), Some(Panic::NilPointer), "{generation:?}");
    }
    let saved = format!("{PLAIN}vcenter:\n  z: {{server: z}}\n");
    assert_eq!(panic(&saved, orphan.clone(), Generation::V4_21), None, "the source's own entry saves the older operator");
    assert_eq!(panic(&saved, orphan.clone(), Generation::Next), Some(Panic::NilPointer));
    let bodiless = format!("{PLAIN}vcenter:\n  z:\n");
    assert_eq!(panic(&bodiless, orphan, Generation::V4_21), Some(Panic::NilPointer), "an entry without body does not");
}

#[test]
fn a_source_without_vcenters_is_a_panic_up_to_4_22_if_it_is_yaml() {
    let target = vsphere(&["a"], &[("a", "dc1")]);
    for source in [PLAIN.to_owned(), format!("{PLAIN}vcenter:\n")] {
        assert_eq!(panic(&source, target.clone(), Generation::V4_21), Some(Panic::NilMap), "{source}");
        assert_eq!(panic(&source, target.clone(), Generation::Next), None, "{source}");
        assert_eq!(panic(&source, json!({}), Generation::V4_21), None, "nothing is written, nothing breaks");
    }
    assert_eq!(panic(&format!("{PLAIN}vcenter: {{}}\n"), target.clone(), Generation::V4_21), None);
    assert_eq!(panic("[Global]\nuser = u\n", target, Generation::V4_21), None);
}

#[test]
fn service_networks_decide_the_families_and_what_is_excluded() {
    let (v4, v6) = ("172.30.0.0/16", "fd02::/112");
    let excluded = "10.0.0.2/32,fd00::2/128,10.0.0.3/32,fd69::2/128";
    let cases = [
        (vec![v4], Value::Null, Value::Null),
        (vec![v6], json!(["ipv6"]), json!(excluded)),
        (vec![v4, v6], json!(["ipv4", "ipv6"]), json!(excluded)),
        (vec![v6, v4], json!(["ipv6", "ipv4"]), json!(excluded)),
        (vec![v4, v4], json!(["ipv4", "ipv6"]), Value::Null),
        (vec![], Value::Null, Value::Null),
    ];
    let source = format!("{PLAIN}vcenter: {{}}\n");
    for (networks, families, excluded) in cases {
        for generation in BOTH {
            let text =
                crate::standins::cloud_config::transform(&source, &infrastructure(json!({})), Some(&services(&networks)), generation)
                    .unwrap();
            let config = crate::yaml::parse(&text).unwrap();
            assert_eq!(config["global"]["ipFamily"], families, "{networks:?}");
            assert_eq!(config["nodes"]["excludeInternalNetworkSubnetCidr"], excluded, "{networks:?}");
            assert_eq!(config["nodes"]["excludeExternalNetworkSubnetCidr"], excluded, "{networks:?}");
        }
    }
}

#[test]
fn the_nodes_section_is_infrastructures_alone() {
    let networking = json!({
        "external": {"network": "e", "networkSubnetCidr": ["1.0.0.0/8", "2.0.0.0/8"], "excludeNetworkSubnetCidr": ["9.0.0.0/8"]},
        "internal": {"networkSubnetCidr": ["3.0.0.0/8"]},
    });
    let source = format!("{PLAIN}vcenter: {{}}\nnodes: {{internalVmNetworkName: old, externalVmNetworkName: old}}\n");
    for generation in BOTH {
        let config = transformed(&source, json!({"nodeNetworking": networking}), generation);
        let expected = json!({
            "internalNetworkSubnetCidr": "3.0.0.0/8", "externalNetworkSubnetCidr": "1.0.0.0/8,2.0.0.0/8",
            "externalVmNetworkName": "e", "excludeExternalNetworkSubnetCidr": "9.0.0.0/8",
        });
        assert_eq!(config["nodes"], expected, "{generation:?}");
    }
}

#[test]
fn another_platform_is_refused() {
    let other = json!({"status": {"platformStatus": {"type": "AWS"}}});
    let error = crate::standins::cloud_config::transform(PLAIN, &other, None, Generation::V4_21).unwrap_err();
    assert_eq!(error.to_string(), "invalid platform, expected to be VSphere");
}
