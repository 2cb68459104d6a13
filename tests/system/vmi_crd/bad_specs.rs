//! What the apiserver refuses by itself, and how it says so.

use serde_json::{Value, json};

use super::{create, domain, install, leave, refusal, sample};
use crate::support::lab::Lab;
use crate::support::suite::TestResult;

fn host_group(region: &str) -> Value {
    let mut domain = domain("fd-1", "zone-1");
    domain["regionAffinity"] = json!({"type": region});
    domain["zoneAffinity"] = json!({"type": "HostGroup", "hostGroup": {"vmGroup": "vms", "hostGroup": "hosts", "vmHostRule": "rule"}});
    domain
}

/// As many domains and sets as there may be, with names as long as they may be: the rules must not cost too much to be checked.
fn largest() -> Value {
    let long = |number: usize| format!("{number:0>256}");
    let mut spec = sample();
    spec["failureDomains"] = (0..32).map(|number| domain(&long(number), &format!("{number:0>80}"))).collect();
    let names: Vec<String> = (0..32).map(long).collect();
    spec["machineSets"] = (0..64).map(|set| json!({"name": format!("set-{set}"), "failureDomains": names[24..]})).collect();
    spec["controlPlane"] = json!({"failureDomains": names});
    spec
}

type Edit = fn(&mut Value);

/// Bad specs: the field the apiserver has to name, some of what it has to say, and what is wrong.
const BAD: &[(&str, &str, Edit)] = &[
    ("spec.vcenters", "Required", |spec| drop(spec.as_object_mut().and_then(|spec| spec.remove("vcenters")))),
    ("spec.vcenters", "at least 1", |spec| spec["vcenters"] = json!([])),
    ("spec.vcenters", "at most 2", |spec| {
        spec["vcenters"] =
            json!(["b.example.com", "c.example.com", "d.example.com"].map(|server| json!({"server": server, "datacenters": ["dc"]})));
    }),
    ("spec.vcenters[1]", "Duplicate", |spec| spec["vcenters"] = json!([spec["vcenters"][0], spec["vcenters"][0]])),
    ("spec.vcenters[0].server", "anyOf", |spec| spec["vcenters"][0]["server"] = json!("https://b.example.com")),
    ("spec.vcenters[0].port", "32767", |spec| spec["vcenters"][0]["port"] = json!(40000)),
    ("spec.vcenters[0].datacenters", "at least 1", |spec| spec["vcenters"][0]["datacenters"] = json!([])),
    ("spec.failureDomains[1]", "Duplicate", |spec| spec["failureDomains"][1]["name"] = json!("fd-1")),
    ("spec.failureDomains", "same region and zone", |spec| spec["failureDomains"][1]["zone"] = json!("zone-1")),
    ("spec.failureDomains", "among spec.vcenters", |spec| spec["failureDomains"][0]["server"] = json!("B.example.com")),
    ("spec.failureDomains[0].topology.datastore", "/datastore/", |spec| spec["failureDomains"][0]["topology"]["datastore"] = json!("ds")),
    ("spec.failureDomains[0].topology.networks", "at least 1", |spec| spec["failureDomains"][0]["topology"]["networks"] = json!([])),
    ("spec.failureDomains[0].regionAffinity", "ComputeCluster", |spec| spec["failureDomains"][0] = host_group("Datacenter")),
    ("spec.failureDomains[0].zoneAffinity.hostGroup", "required when", |spec| {
        spec["failureDomains"][0] = host_group("ComputeCluster");
        spec["failureDomains"][0]["zoneAffinity"]["hostGroup"] = Value::Null;
    }),
    ("spec.nodeNetworking.internal.networkSubnetCidr[0]", "cidr", |spec| {
        spec["nodeNetworking"] = json!({"internal": {"networkSubnetCidr": ["10.0.0.0"]}});
    }),
    ("spec.credentialsSecret.name", "at least 1", |spec| spec["credentialsSecret"]["name"] = json!("")),
    ("spec.trust.thumbprints[0].sha256", "should match", |spec| {
        spec["trust"] = json!({"thumbprints": [{"server": "b.example.com", "sha256": "AA:BB"}]});
    }),
    ("spec.source.servers", "the targets", |spec| spec["source"]["servers"] = json!(["b.example.com"])),
    ("spec.source.servers", "at most 3 vCenters", |spec| {
        spec["vcenters"] = json!(["b.example.com", "c.example.com"].map(|server| json!({"server": server, "datacenters": ["dc"]})));
        spec["source"]["servers"] = json!(["a.example.com", "z.example.com"]);
    }),
    ("spec.machineSets", "name of one", |spec| spec["machineSets"][0]["failureDomains"] = json!(["fd-9"])),
    ("spec.machineSets[0].replicas", "greater than or equal", |spec| spec["machineSets"][0]["replicas"] = json!(-1)),
    ("spec.controlPlane.failureDomains", "name of one", |spec| spec["controlPlane"] = json!({"failureDomains": ["fd-9"]})),
    ("spec.sourceRetirement", "Unsupported", |spec| spec["sourceRetirement"] = json!("Delete")),
    ("spec.rollout.draining", "less than or equal", |spec| spec["rollout"] = json!({"draining": 11})),
    ("spec.approvedPlan", "should match", |spec| spec["approvedPlan"] = json!("yes, please")),
    ("spec.health.quietPeriod", "should match", |spec| spec["health"] = json!({"quietPeriod": "5 minutes"})),
    ("spec.health.deadline", "longer than quietPeriod", |spec| spec["health"] = json!({"quietPeriod": "1h"})),
    ("spec.health.accept[0]", "should match", |spec| spec["health"] = json!({"accept": ["all"]})),
    ("spec.health.patterns[0].verdict", "Unsupported", |spec| {
        spec["health"] = json!({"patterns": [{"component": "ccm", "pattern": "x", "verdict": "bad"}]});
    }),
    ("spec.acknowledged[1]", "Duplicate", |spec| spec["acknowledged"] = json!(["ETC-001", "ETC-001"])),
    ("spec.state", "Unsupported", |spec| spec["state"] = json!("Go")),
    ("spec.state", "begins as Pending or Running", |spec| spec["state"] = json!("Paused")),
];

pub async fn a_bad_vmi_is_refused_and_the_field_is_named(lab: &Lab) -> TestResult {
    install(lab).await?;
    let mut host_groups = sample();
    host_groups["failureDomains"][0] = host_group("ComputeCluster");
    for good in [sample(), host_groups, largest()] {
        assert_eq!(refusal(create(lab, "good", &good, true).await)?, None);
    }
    let mut wrong = Vec::new();
    for (field, words, edit) in BAD {
        let mut spec = sample();
        edit(&mut spec);
        match refusal(create(lab, "bad", &spec, true).await)? {
            Some((fields, text)) if fields.iter().any(|named| named == field) && text.contains(words) => {}
            other => wrong.push(format!("{field}, {words:?}: {other:?}")),
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    leave(lab).await
}
