//! A cluster in which every check passes, and ways to spoil it.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::SignedDuration;
use serde_json::{Value, json};
use vmi_crds::spec::VCenter;
use vmi_crds::status::Path;

use super::Finding;
use super::operators::LEANED_ON;
use crate::facts::{Asked, Cause, Chosen, Cluster, Facts, Looked, Object, Place, Places, Reach, Trouble, Vcenter, Vcenters};

pub const SOURCE: &str = "a.example.com";
pub const TARGET: &str = "b.example.com";

/// That it is wrong, and that all these words are in what it says.
pub fn says(found: &Finding, words: &[&str]) {
    let Finding::Wrong(lines) = found else { panic!("{found:?}") };
    let text = lines.join("\n");
    words.iter().for_each(|word| assert!(text.contains(word), "{word:?} is not in {text}"));
}

pub fn object(value: &Value) -> Object {
    Arc::new(serde_json::from_value(value.clone()).unwrap())
}

pub fn vcenter(server: &str) -> VCenter {
    VCenter { server: server.to_owned(), port: None, datacenters: vec!["dc-b".to_owned()] }
}

fn domain(letter: &str, server: &str) -> Value {
    json!({
        "name": format!("fd-{letter}"), "region": format!("region-{letter}"), "zone": format!("zone-{letter}"), "server": server,
        "topology": {
            "datacenter": format!("dc-{letter}"), "computeCluster": format!("/dc-{letter}/host/cluster-{letter}"),
            "networks": [format!("ocp-{letter}")], "datastore": format!("/dc-{letter}/datastore/datastore-{letter}"),
            "resourcePool": format!("/dc-{letter}/host/cluster-{letter}/Resources"), "folder": format!("/dc-{letter}/vm/lab"),
            "template": format!("/dc-{letter}/vm/rhcos-{letter}"),
        },
    })
}

pub fn good() -> Facts {
    let spec = json!({
        "state": "Running", "sourceRetirement": "Keep", "credentialsSecret": {"name": "target"},
        "vcenters": [{"server": TARGET, "datacenters": ["dc-b"]}], "failureDomains": [domain("b", TARGET)],
    });
    Facts {
        spec: serde_json::from_value(spec).unwrap(),
        annotations: BTreeMap::from([(super::history::BACKUP.to_owned(), "2026-01-31T11:00:00Z".to_owned())]),
        now: "2026-01-31T12:00:00Z".parse().unwrap(),
        sources: vec![SOURCE.to_owned()],
        cluster: cluster(),
        looked: Arc::new(looked()),
    }
}

fn cluster() -> Cluster {
    let well = json!({"conditions": [
        {"type": "Available", "status": "True"}, {"type": "Degraded", "status": "False"}, {"type": "Progressing", "status": "False"},
    ]});
    let named = |name: &str, rest: Value| {
        let mut value = rest;
        value["metadata"] = json!({"name": name});
        object(&value)
    };
    let config = format!(
        "global:\n  secretName: vsphere-creds\n  secretNamespace: kube-system\nvcenter:\n  {SOURCE}:\n    server: {SOURCE}\n    datacenters:\n    - dc-a\n"
    );
    let data = |server: &str| {
        let pair = [("username", "user@vsphere.local"), ("password", "secret")];
        pair.map(|(key, value)| (format!("{server}.{key}"), value.as_bytes().to_vec())).into_iter().collect()
    };
    let mut version = well.clone();
    version["history"] = json!([{"state": "Completed", "version": "4.23.0"}]);
    version["desired"] = json!({"version": "4.23.0"});
    let pool = json!({"status": {"conditions": [{"type": "Updated", "status": "True"}, {"type": "Degraded", "status": "False"}]}});
    let operators = LEANED_ON.iter().chain(&["storage"]);
    Cluster {
        infrastructure: Some(named(
            "cluster",
            json!({
                "spec": {"cloudConfig": {"name": "cloud-provider-config", "key": "config"}, "platformSpec": {"type": "VSphere", "vsphere": {
                    "vcenters": [{"server": SOURCE, "port": 443, "datacenters": ["dc-a"]}], "failureDomains": [domain("a", SOURCE)],
                }}},
                "status": {"infrastructureName": "lab-x7k2p"},
            }),
        )),
        version: Some(named("version", json!({"spec": {}, "status": version}))),
        version_operator: Some(named("cluster-version-operator", json!({"spec": {"replicas": 1}}))),
        operators: operators.map(|operator| named(operator, json!({"status": well}))).collect(),
        pools: Some(vec![named("worker", pool)]),
        cloud_config: Some(named("cloud-provider-config", json!({"data": {"config": config}}))),
        root_secret: Some(data(SOURCE)),
        credentials: Some(data(TARGET)),
        ..Cluster::default()
    }
}

fn looked() -> Looked {
    let vcenters = [SOURCE, TARGET].map(|server| (server.to_owned(), Ok(answered(server))));
    let path = Chosen { path: Some(Path::Native), reason: "the apiserver accepts the target as it is".to_owned() };
    let asked = Asked { path: Ok(path), volumes: Ok(Vec::new()), denied: Ok(Vec::new()), denied_secrets: Ok(Vec::new()) };
    Looked { asked, vcenters: Arc::new(Vcenters::from(vcenters)) }
}

fn answered(server: &str) -> Vcenter {
    let places = |paths: &[&str]| -> Vec<Place> {
        paths.iter().map(|path| Place { name: path.rsplit('/').next().unwrap().to_owned(), path: (*path).to_owned() }).collect()
    };
    let seen = |path: &str| BTreeMap::from([(path.to_owned(), Vec::new())]);
    let reach = Reach { hosts: 2, networks: seen("/dc-b/network/ocp-b"), datastores: seen("/dc-b/datastore/datastore-b") };
    Vcenter {
        full_name: "VMware vCenter Server 8.0.3".to_owned(),
        instance_uuid: format!("uuid of {server}"),
        new_enough: true,
        ahead: SignedDuration::ZERO,
        places: Places {
            datacenters: places(&["/dc-b"]),
            clusters: places(&["/dc-b/host/cluster-b"]),
            datastores: places(&["/dc-b/datastore/datastore-b"]),
            networks: places(&["/dc-b/network/ocp-b"]),
            pools: places(&["/dc-b/host/cluster-b/Resources"]),
            reach: BTreeMap::from([("/dc-b/host/cluster-b".to_owned(), reach)]),
            templates: BTreeMap::from([("/dc-b/vm/rhcos-b".to_owned(), Some("vmx-19".to_owned()))]),
            other_templates: Vec::new(),
        },
        lacks: Vec::new(),
        tags: Vec::new(),
    }
}

fn answering(server: &str, answer: Result<Vcenter, Trouble>) -> Facts {
    let mut looked = looked();
    let mut vcenters = Vcenters::from([SOURCE, TARGET].map(|server| (server.to_owned(), Ok(answered(server)))));
    vcenters.insert(server.to_owned(), answer);
    looked.vcenters = Arc::new(vcenters);
    Facts { looked: Arc::new(looked), ..good() }
}

/// With other answers of the apiserver.
pub fn asked_for(edit: impl FnOnce(&mut Asked)) -> Facts {
    let mut looked = looked();
    edit(&mut looked.asked);
    Facts { looked: Arc::new(looked), ..good() }
}

/// With something else seen in a vCenter.
pub fn seen(server: &str, edit: impl FnOnce(&mut Vcenter)) -> Facts {
    let mut vcenter = answered(server);
    edit(&mut vcenter);
    answering(server, Ok(vcenter))
}

/// With a vCenter that could not be looked at.
pub fn silent(server: &str, cause: Cause) -> Facts {
    let trouble = Trouble { cause, text: format!("trouble with {server}") };
    answering(server, Err(trouble))
}

pub fn chosen(path: Option<Path>, reason: &str) -> Facts {
    asked_for(|asked| asked.path = Ok(Chosen { path, reason: reason.to_owned() }))
}

pub fn with_volumes(volumes: &[&str]) -> Facts {
    asked_for(|asked| asked.volumes = Ok(volumes.iter().map(|name| (*name).to_owned()).collect()))
}

/// With something else in the cluster.
pub fn changed(edit: impl FnOnce(&mut Cluster)) -> Facts {
    let mut facts = good();
    edit(&mut facts.cluster);
    facts
}

/// With exactly these keys in the Secret the vmi names.
pub fn credentials(keys: &[(&str, &str)]) -> Facts {
    changed(|cluster| cluster.credentials = Some(keys.iter().map(|(key, value)| ((*key).to_owned(), value.as_bytes().to_vec())).collect()))
}

/// Sets a field, made where it is missing.
pub fn set(place: &mut Option<Object>, pointer: &str, value: Value) {
    let mut object = place.as_deref().unwrap().clone();
    let mut at = &mut object.data;
    for key in pointer.split('/').skip(1) {
        at = match key.parse::<usize>() {
            Ok(index) => &mut at[index],
            Err(_) => &mut at[key],
        };
    }
    *at = value;
    *place = Some(Arc::new(object));
}

pub fn set_condition(place: &mut Option<Object>, kind: &str, status: &str) {
    let mut conditions = place.as_deref().unwrap().data["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.retain(|condition| condition["type"] != kind);
    conditions.push(json!({"type": kind, "status": status, "message": "because"}));
    set(place, "/status/conditions", json!(conditions));
}

/// Why a condition that is there is as it is.
pub fn set_reason(place: &mut Option<Object>, kind: &str, reason: &str) {
    let mut conditions = place.as_deref().unwrap().data["status"]["conditions"].clone();
    for condition in conditions.as_array_mut().into_iter().flatten().filter(|condition| condition["type"] == kind) {
        condition["reason"] = json!(reason);
    }
    set(place, "/status/conditions", conditions);
}

pub fn operator(cluster: &mut Cluster, name: &str, kind: &str, status: &str) {
    let at = cluster.operators.iter().position(|operator| crate::objects::name(operator) == name).unwrap();
    let mut one = Some(cluster.operators.remove(at));
    set_condition(&mut one, kind, status);
    cluster.operators.extend(one);
}

pub fn pool(cluster: &mut Cluster, kind: &str, status: &str) {
    let pools = cluster.pools.as_mut().unwrap();
    let mut one = Some(pools.remove(0));
    set_condition(&mut one, kind, status);
    pools.extend(one);
}

pub fn extend_infrastructure(facts: &mut Facts, vcenter: &Value, domain: &Value) {
    for (list, item) in [("vcenters", vcenter), ("failureDomains", domain)] {
        let pointer = format!("/spec/platformSpec/vsphere/{list}");
        let mut items = facts.infrastructure(&pointer).as_array().cloned().unwrap();
        items.push(item.clone());
        set(&mut facts.cluster.infrastructure, &pointer, json!(items));
    }
}
