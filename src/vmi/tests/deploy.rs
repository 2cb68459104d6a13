//! The manifests: complete, and no right in them that is not needed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

const OWN: &str = "openshift-vsphere-migration";
const OVERLAYS: [&str; 3] = ["overlays/native", "overlays/legacy", "optional/cluster-api"];
const WATCHED: [&str; 7] = [
    "openshift-cloud-controller-manager",
    "openshift-cloud-controller-manager-operator",
    "openshift-cloud-credential-operator",
    "openshift-cluster-csi-drivers",
    "openshift-cluster-storage-operator",
    "openshift-machine-api",
    "openshift-machine-config-operator",
];
/// Whose pods are replaced when the configuration changes; those of the others only tell how they are.
const REPLACED: [&str; 4] =
    ["openshift-cloud-controller-manager", "openshift-cluster-csi-drivers", "openshift-cluster-storage-operator", "openshift-machine-api"];
const SECRETS: [(&str, &str); 6] = [
    ("kube-system", "vsphere-creds"),
    ("openshift-cloud-controller-manager", "vsphere-cloud-credentials"),
    ("openshift-cluster-api", "capv-manager-bootstrap-credentials"),
    ("openshift-cluster-csi-drivers", "vmware-vsphere-cloud-credentials"),
    ("openshift-cluster-storage-operator", "vsphere-cloud-credentials"),
    ("openshift-machine-api", "vsphere-cloud-credentials"),
];

/// Only where the cluster API is switched on: no watch is kept of it.
const CLUSTER_API: &str = "openshift-cluster-api";
/// Made by the CSI driver's operator, and only looked at.
const CSI_CONFIG: (&str, &str) = ("openshift-cluster-csi-drivers", "vsphere-csi-config-secret");

fn deploy() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../deploy").canonicalize().unwrap()
}

fn documents(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    serde_saphyr::from_multiple(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

fn words(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().map(|word| word.as_str().unwrap().to_owned()).collect()
}

/// The files a kustomization names, those of others it builds on included.
fn resources(folder: &Path) -> Vec<PathBuf> {
    let kustomization = documents(&folder.join("kustomization.yaml")).remove(0);
    let listed = words(&kustomization["resources"]).into_iter().map(|name| folder.join(name).canonicalize().unwrap());
    listed.flat_map(|path| if path.is_dir() { resources(&path) } else { vec![path] }).collect()
}

fn objects(overlay: &str) -> Vec<Value> {
    resources(&deploy().join(overlay)).iter().flat_map(|file| documents(file)).collect()
}

fn everything() -> Vec<Value> {
    OVERLAYS.iter().flat_map(|overlay| objects(overlay)).collect()
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// A rule, and the namespace it holds in: none where it holds in all.
#[derive(Debug)]
struct Grant {
    namespace: Option<String>,
    groups: Vec<String>,
    resources: Vec<String>,
    names: Vec<String>,
    verbs: Vec<String>,
}

impl Grant {
    fn writes(&self) -> bool {
        self.verbs.iter().any(|verb| !["get", "list", "watch"].contains(&verb.as_str()))
    }
}

/// What the account may do, binding by binding.
fn grants(objects: &[Value]) -> Vec<Grant> {
    let bindings = objects.iter().filter(|object| text(object, "/kind").ends_with("RoleBinding"));
    bindings
        .flat_map(|binding| {
            let namespace = (text(binding, "/kind") == "RoleBinding").then(|| text(binding, "/metadata/namespace").to_owned());
            assert_ne!(namespace.as_deref(), Some(""), "{binding:#}");
            let role = objects.iter().find(|role| {
                let same_place = text(role, "/kind") == "ClusterRole" || Some(text(role, "/metadata/namespace")) == namespace.as_deref();
                same_place
                    && text(role, "/kind") == text(binding, "/roleRef/kind")
                    && text(role, "/metadata/name") == text(binding, "/roleRef/name")
            });
            let role = role.unwrap_or_else(|| panic!("nothing is bound by {binding:#}"));
            let rules = role["rules"].as_array().unwrap();
            rules.iter().map(move |rule| Grant {
                namespace: namespace.clone(),
                groups: words(&rule["apiGroups"]),
                resources: words(&rule["resources"]),
                names: words(&rule["resourceNames"]),
                verbs: words(&rule["verbs"]),
            })
        })
        .collect()
}

fn may_write(grants: &[Grant], resource: &str) -> bool {
    grants.iter().any(|grant| grant.writes() && grant.resources.iter().any(|name| name == resource))
}

#[test]
fn every_file_is_named_by_a_kustomization_and_every_name_is_a_file() {
    fn walk(folder: &Path, found: &mut BTreeSet<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else if !path.ends_with("kustomization.yaml") {
                found.insert(path);
            }
        }
    }
    let mut there = BTreeSet::new();
    walk(&deploy(), &mut there);
    // What is for the cluster's Prometheus gives the operator nothing, so nothing else here is about it.
    let all = OVERLAYS.into_iter().chain(["monitoring"]);
    let named: BTreeSet<PathBuf> = all.flat_map(|overlay| resources(&deploy().join(overlay))).collect();
    assert_eq!(there, named);
}

#[test]
fn every_document_is_an_object_and_none_comes_twice() {
    for overlay in OVERLAYS {
        let mut seen = BTreeSet::new();
        for object in objects(overlay) {
            let identity = ["/kind", "/metadata/namespace", "/metadata/name"].map(|part| text(&object, part).to_owned());
            assert!(!text(&object, "/apiVersion").is_empty() && !identity[0].is_empty() && !identity[2].is_empty(), "{object:#}");
            assert!(seen.insert(identity.clone()), "{identity:?} comes twice in {overlay}");
        }
    }
}

#[test]
fn the_installed_definition_is_that_of_the_types() {
    let file = deploy().join("base/crd.yaml");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&file, vmi_crds::CRD_YAML).unwrap();
    }
    let stored = fs::read_to_string(&file).unwrap();
    assert!(stored == vmi_crds::CRD_YAML, "deploy/base/crd.yaml is not crds/yaml: run UPDATE_GOLDEN=1 cargo test -p vmi");
}

#[test]
fn every_right_is_the_operators_own_and_every_role_is_bound() {
    let everything = everything();
    for binding in everything.iter().filter(|object| text(object, "/kind").ends_with("RoleBinding")) {
        let subjects = binding["subjects"].as_array().unwrap();
        let identity = |subject: &Value| ["/kind", "/namespace", "/name"].map(|part| text(subject, part).to_owned());
        assert_eq!(subjects.iter().map(identity).collect::<Vec<_>>(), [["ServiceAccount", OWN, "vmi-operator"]], "{binding:#}");
    }
    for role in everything.iter().filter(|object| text(object, "/kind").ends_with("Role")) {
        // Labels would let others have it: admin, edit and view gather roles by label.
        assert_eq!(role.pointer("/metadata/labels"), None, "{role:#}");
        assert_eq!(role.get("aggregationRule"), None, "{role:#}");
        let bound = everything.iter().any(|binding| {
            text(binding, "/roleRef/name") == text(role, "/metadata/name")
                && text(binding, "/roleRef/kind") == text(role, "/kind")
                && (text(role, "/kind") == "ClusterRole" || text(binding, "/metadata/namespace") == text(role, "/metadata/namespace"))
        });
        assert!(bound, "{role:#}");
    }
}

#[test]
fn no_rule_is_a_wildcard_or_lets_rights_be_handed_on() {
    let grants = grants(&everything());
    assert!(grants.len() > 30, "only {} rules were looked at", grants.len());
    for grant in &grants {
        let words = grant.groups.iter().chain(&grant.resources).chain(&grant.verbs).chain(&grant.names);
        assert!(words.clone().all(|word| !word.contains('*')), "{grant:?}");
        assert!(!grant.groups.is_empty() && !grant.resources.is_empty() && !grant.verbs.is_empty(), "{grant:?}");
        assert!(
            grant.verbs.iter().all(|verb| !["escalate", "bind", "impersonate", "deletecollection"].contains(&verb.as_str())),
            "{grant:?}"
        );
        assert!(grant.groups.iter().all(|group| group != "rbac.authorization.k8s.io"), "{grant:?}");
    }
}

#[test]
fn secrets_of_others_are_known_by_name_and_none_is_made_or_deleted() {
    let grants = grants(&everything());
    let of_secrets = grants.iter().filter(|grant| grant.resources.iter().any(|name| name == "secrets"));
    let (own, others): (Vec<&Grant>, Vec<&Grant>) = of_secrets.partition(|grant| grant.namespace.as_deref() == Some(OWN));
    assert!(!own.is_empty());
    let mut named = BTreeSet::new();
    for grant in others {
        let namespace = grant.namespace.as_deref().unwrap_or_else(|| panic!("in all namespaces: {grant:?}"));
        assert_eq!(grant.names.len(), 1, "{grant:?}");
        let place = (namespace.to_owned(), grant.names[0].clone());
        if place == (CSI_CONFIG.0.to_owned(), CSI_CONFIG.1.to_owned()) {
            assert!(!grant.writes(), "{grant:?}");
            continue;
        }
        let verbs: &[&str] = if namespace == CLUSTER_API { &["get", "update"] } else { &["get", "list", "watch", "update"] };
        assert_eq!(grant.verbs, verbs, "{grant:?}");
        named.insert(place);
    }
    assert_eq!(named, SECRETS.map(|(namespace, name)| (namespace.to_owned(), name.to_owned())).into());
}

#[test]
fn pods_are_deleted_only_where_pods_know_the_vcenters() {
    let grants = grants(&everything());
    let of = |resource: &str, verb: &str| {
        let holds = |grant: &&Grant| grant.resources.iter().any(|name| name == resource) && grant.verbs.iter().any(|word| word == verb);
        grants.iter().filter(holds).map(|grant| grant.namespace.clone().unwrap_or_default()).collect::<BTreeSet<_>>()
    };
    assert_eq!(of("pods", "delete"), REPLACED.map(str::to_owned).into());
    assert_eq!(of("pods/log", "get"), WATCHED.map(str::to_owned).into());
    assert_eq!(of("vspheremigrationinfra", "get"), BTreeSet::from([OWN.to_owned()]));
}

#[test]
fn only_the_legacy_overlay_may_stop_the_cluster_version_operator_and_change_definitions() {
    for (overlay, allowed) in [("overlays/native", false), ("overlays/legacy", true), ("optional/cluster-api", false)] {
        let grants = grants(&objects(overlay));
        for resource in ["customresourcedefinitions", "deployments", "clusterversions"] {
            assert_eq!(may_write(&grants, resource), allowed, "{overlay}: {resource}");
        }
    }
    let grants = grants(&objects("overlays/legacy"));
    let definitions = ["infrastructures.config.openshift.io", "controllerconfigs.machineconfiguration.openshift.io"];
    for (resource, names) in
        [("customresourcedefinitions", &definitions[..]), ("deployments", &["cluster-version-operator"]), ("clusterversions", &["version"])]
    {
        for grant in grants.iter().filter(|grant| grant.writes() && grant.resources.iter().any(|name| name == resource)) {
            assert_eq!(
                (grant.names.as_slice(), grant.verbs.as_slice()),
                (&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()[..], &["patch".to_owned()][..])
            );
        }
    }
}

/// What is granted although no controller's touches say so: namespace, resource, name, verbs, and who needs it.
const BESIDES: &[(&str, &str, &str, &[&str], &str)] = &[
    (OWN, "vspheremigrationinfra", "", &["patch"], "the summary holds on to a vmi by a finalizer"),
    (OWN, "vspheremigrationinfra/status", "", &["patch"], "every controller reports"),
    (OWN, "leases", "vmi-operator", &["get", "update"], "the process that leads; both Leases are created"),
    (OWN, "events", "", &["create", "patch"], "every controller tells of its steps"),
    ("", "tokenreviews", "", &["create"], "who asks for metrics"),
    ("", "subjectaccessreviews", "", &["create"], "whether they may"),
    (CLUSTER_API, "secrets", "capv-manager-bootstrap-credentials", &["get", "update"], "where a CredentialsRequest names it"),
];

#[test]
fn everything_that_is_granted_is_touched_or_needed_by_the_operator_itself() {
    let touches = vmi::operator::touches();
    let mut idle = BTreeSet::new();
    let mut used = BTreeSet::new();
    for grant in grants(&[objects("overlays/legacy"), objects("optional/cluster-api")].concat()) {
        let namespace = grant.namespace.as_deref().unwrap_or_default();
        // No name: all of them.
        let names = if grant.names.is_empty() { vec![String::new()] } else { grant.names.clone() };
        for ((group, resource), (name, verb)) in
            pairs(&grant.groups, &grant.resources).flat_map(|what| pairs(&names, &grant.verbs).map(move |how| (what, how)))
        {
            let touched = touches.iter().any(|touch| {
                let here = if touch.namespace == vmi_kit::OWN { OWN } else { touch.namespace };
                let does = match resource.strip_suffix("/log") {
                    Some(plural) => plural == touch.kind.plural && verb == "get" && touch.writes.contains(&"log"),
                    None => {
                        let reads = ["get", "list", "watch"].contains(&verb.as_str());
                        resource == touch.kind.plural && (reads || touch.writes.contains(&verb.as_str()))
                    }
                };
                // What is created has no name yet.
                does && here == namespace && group == touch.kind.group && (touch.name.is_empty() || touch.name == name || verb == "create")
            });
            let besides = BESIDES.iter().position(|(here, what, which, verbs, _)| {
                *here == namespace && what == resource && which == name && verbs.contains(&verb.as_str())
            });
            used.extend(besides.filter(|_| !touched));
            if !touched && besides.is_none() {
                idle.insert(format!("{verb} {resource}.{group} {namespace}/{name}"));
            }
        }
    }
    assert!(idle.is_empty(), "granted, but nobody needs it:\n{}", idle.into_iter().collect::<Vec<_>>().join("\n"));
    assert_eq!(used.len(), BESIDES.len(), "an exception that is none: {used:?}");
}

fn pairs<'a>(one: &'a [String], other: &'a [String]) -> impl Iterator<Item = (&'a String, &'a String)> {
    one.iter().flat_map(move |first| other.iter().map(move |second| (first, second)))
}

#[test]
fn everything_that_a_controller_touches_is_granted() {
    let grants = grants(&[objects("overlays/legacy"), objects("optional/cluster-api")].concat());
    let mut missing = BTreeSet::new();
    for touch in vmi::operator::touches() {
        let namespace = if touch.namespace == vmi_kit::OWN { OWN } else { touch.namespace };
        let reads = ["get", "list", "watch"].into_iter().map(|verb| (touch.kind.plural.to_owned(), verb));
        let writes = touch.writes.iter().map(|verb| match *verb {
            "log" => (format!("{}/log", touch.kind.plural), "get"),
            verb => (touch.kind.plural.to_owned(), verb),
        });
        for (resource, verb) in reads.chain(writes) {
            let granted = grants.iter().any(|grant| {
                grant.namespace.as_deref().is_none_or(|here| here == namespace)
                    && grant.groups.iter().any(|group| group == touch.kind.group)
                    && grant.resources.contains(&resource)
                    && grant.verbs.iter().any(|granted| granted == verb)
                    && (grant.names.is_empty() || grant.names.iter().any(|name| name == touch.name))
            });
            if !granted {
                missing.insert(format!("{verb} {resource}.{} {namespace}/{}", touch.kind.group, touch.name));
            }
        }
    }
    assert!(missing.is_empty(), "not granted:\n{}", missing.into_iter().collect::<Vec<_>>().join("\n"));
}
