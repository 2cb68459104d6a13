use vmi_crds::spec::FailureDomain;
use vsphere::{Cardinality, Category, Ref, Tag};

use super::*;
use crate::wanted::{Place, REGION, ZONE};

fn domain(name: &str, region: &str, zone: &str) -> FailureDomain {
    serde_json::from_value(serde_json::json!({
        "name": name, "region": region, "zone": zone, "server": "vc",
        "topology": {"datacenter": "dc", "computeCluster": "/dc/host/c", "networks": ["n"], "datastore": "/dc/datastore/d"},
    }))
    .unwrap()
}

fn wanted() -> Wanted {
    Wanted::of("vc", &[domain("fd", "r", "z")], "lab-x").unwrap()
}

/// A vCenter that has the places and nothing else.
fn bare() -> Look {
    let spot = |kind: &str, id: &str, path: &str| vec![Spot { object: Ref::new(kind, id), path: path.to_owned() }];
    let mut look = Look::default();
    look.places.insert(Place::Datacenter("dc".into()), spot("Datacenter", "dc-1", "/dc"));
    look.places.insert(Place::Cluster("/dc/host/c".into()), spot("ClusterComputeResource", "c-1", "/dc/host/c"));
    look.folders.insert("/dc/vm".into(), Ref::new("Folder", "v-1"));
    look
}

fn category(name: &str, types: &[&str]) -> Category {
    let types = types.iter().map(|name| (*name).to_owned()).collect();
    Category { id: format!("c:{name}"), name: name.to_owned(), description: String::new(), cardinality: Cardinality::Single, types }
}

fn add_tag(look: &mut Look, of: &str, name: &str, on: Option<(&str, &str)>) {
    if look.category(of).is_none() {
        look.categories.push(category(of, &[]));
    }
    let id = format!("t:{of}:{name}");
    look.tags.push(Tag { id: id.clone(), name: name.to_owned(), category: format!("c:{of}") });
    if let Some((kind, object)) = on {
        look.attached.entry(Ref::new(kind, object)).or_default().push(id);
    }
}

fn complete() -> Look {
    let mut look = bare();
    add_tag(&mut look, REGION, "r", Some(("Datacenter", "dc-1")));
    add_tag(&mut look, ZONE, "z", Some(("ClusterComputeResource", "c-1")));
    add_tag(&mut look, "openshift-lab-x", "lab-x", None);
    look
}

#[test]
fn a_bare_vcenter_lacks_everything_and_the_plan_says_so_in_order() {
    let missing = tags(&wanted(), &bare()).unwrap();
    assert_eq!(
        missing.words("vc"),
        [
            "vc: make tag category openshift-region",
            "vc: make tag category openshift-zone",
            "vc: make tag category openshift-lab-x",
            "vc: make tag lab-x in openshift-lab-x",
            "vc: make tag r in openshift-region",
            "vc: make tag z in openshift-zone",
            "vc: attach tag r of openshift-region to /dc",
            "vc: attach tag z of openshift-zone to /dc/host/c",
        ]
    );
    let record = missing.record();
    assert_eq!(record.categories.len() + record.tags.len() + record.attachments.len(), 8);
    assert_eq!(record.attachments[0].object, "Datacenter:dc-1");
}

#[test]
fn a_complete_vcenter_lacks_nothing() {
    assert_eq!(tags(&wanted(), &complete()).unwrap(), MissingTags::default());
}

#[test]
fn only_what_is_missing_is_made() {
    let mut look = complete();
    look.attached.remove(&Ref::new("Datacenter", "dc-1"));
    assert_eq!(tags(&wanted(), &look).unwrap().words("vc"), ["vc: attach tag r of openshift-region to /dc"]);
    look.tags.retain(|tag| tag.name != "lab-x");
    assert_eq!(tags(&wanted(), &look).unwrap().words("vc")[0], "vc: make tag lab-x in openshift-lab-x");
}

#[test]
fn an_object_with_another_tag_of_the_category_is_refused_and_both_are_named() {
    let mut look = complete();
    look.attached.remove(&Ref::new("Datacenter", "dc-1"));
    add_tag(&mut look, REGION, "theirs", Some(("Datacenter", "dc-1")));
    let failure = tags(&wanted(), &look).unwrap_err();
    assert_eq!(failure.rule, "TAG-002");
    for word in ["theirs", " r,", "/dc", "fd", REGION] {
        assert!(failure.message.contains(word), "{word}: {}", failure.message);
    }
}

#[test]
fn a_tag_of_another_category_is_no_obstacle() {
    let mut look = bare();
    add_tag(&mut look, "cost-centre", "theirs", Some(("Datacenter", "dc-1")));
    assert_eq!(tags(&wanted(), &look).unwrap().attachments.len(), 2);
}

#[test]
fn a_category_that_does_not_take_datacenters_is_refused_and_not_changed() {
    let mut look = bare();
    look.categories.push(category(REGION, &["VirtualMachine"]));
    let failure = tags(&wanted(), &look).unwrap_err();
    assert_eq!((failure.rule.as_str(), failure.message.contains("Datacenter")), ("TAG-004", true));
}

#[test]
fn domains_that_want_two_tags_of_one_kind_on_one_object_are_refused_by_name() {
    let wanted = Wanted::of("vc", &[domain("fd-1", "r", "z1"), domain("fd-2", "r", "z2")], "lab-x").unwrap();
    let failure = tags(&wanted, &bare()).unwrap_err();
    assert_eq!(failure.rule, "TAG-003");
    for word in ["fd-1", "fd-2", "z1", "z2", "/dc/host/c"] {
        assert!(failure.message.contains(word), "{word}: {}", failure.message);
    }
}

fn with_folder(path: &str) -> Wanted {
    let mut domain = domain("fd", "r", "z");
    domain.topology.folder = Some(path.to_owned());
    Wanted::of("vc", &[domain], "lab-x").unwrap()
}

#[test]
fn a_missing_folder_is_made_with_all_it_lies_in_and_only_it_is_marked() {
    let missing = folders(&with_folder("/dc/vm/team/ocp"), &bare()).unwrap();
    assert_eq!(missing.folders, ["/dc/vm/team", "/dc/vm/team/ocp"]);
    assert_eq!(missing.tagged, ["/dc/vm/team/ocp"]);
    assert_eq!(missing.words("vc", "lab-x").len(), 3);
}

#[test]
fn a_folder_that_is_there_is_only_marked_and_one_that_is_marked_is_left_alone() {
    let mut look = complete();
    look.folders.insert("/dc/vm/lab-x".into(), Ref::new("Folder", "f-1"));
    assert_eq!(folders(&wanted(), &look).unwrap(), FoldersMade { folders: Vec::new(), tagged: vec!["/dc/vm/lab-x".into()] });
    look.attached.insert(Ref::new("Folder", "f-1"), vec!["t:openshift-lab-x:lab-x".into()]);
    assert_eq!(folders(&wanted(), &look).unwrap(), FoldersMade::default());
}

#[test]
fn a_folder_is_made_only_below_a_datacenters_vm() {
    for path in ["/other/vm/x", "/dc/vm/", "/outer/dc/vm/x"] {
        let mut look = bare();
        look.folders.insert("/outer".into(), Ref::new("Folder", "d-1"));
        assert_eq!(folders(&with_folder(path), &look).unwrap_err().rule, "FLD-001", "{path}");
    }
    let mut look = bare();
    look.folders.insert("/outer".into(), Ref::new("Folder", "d-1"));
    look.folders.insert("/outer/dc/vm".into(), Ref::new("Folder", "v-2"));
    assert_eq!(folders(&with_folder("/outer/dc/vm/x"), &look).unwrap().folders, ["/outer/dc/vm/x"]);
}
