//! Configurations as clusters have them: every one is edited, and the real loader is asked what became of it.

use std::fs;
use std::path::Path;

use vmi_intent::cloud_config::{Format, add, convert, detect, remove, vcenters};

use crate::loader::{full_target, plain_target, seen, seen_by_others, servers, with_target, without};

/// The name of each text of a folder of the corpus, and the text.
pub fn texts(folder: &str) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(folder);
    let mut texts: Vec<_> = fs::read_dir(folder)
        .expect("the corpus")
        .map(|entry| {
            let path = entry.expect("a file").path();
            (path.file_name().expect("a name").to_string_lossy().into_owned(), fs::read_to_string(&path).expect("text"))
        })
        .collect();
    texts.sort();
    texts
}

/// Nothing but the global section hands its families on to a new vCenter.
pub fn families(name: &str) -> &'static [&'static str] {
    if name.starts_with("global-ipv6") { &["ipv6"] } else { &["ipv4"] }
}

#[test]
fn the_corpus_holds_forty_variants_and_more_of_both_formats() {
    let good = texts("good");
    let ini = good.iter().filter(|(name, _)| name.ends_with(".ini")).count();
    assert!(ini >= 20 && good.len() - ini >= 20, "{ini} of {}", good.len());
    for (name, text) in good {
        let want = if name.ends_with(".ini") { Format::Ini } else { Format::Yaml };
        assert_eq!(detect(&text), want, "{name}");
    }
}

#[test]
fn an_added_vcenter_is_the_only_thing_the_loader_sees_changed() {
    for (name, text) in texts("good") {
        let before = seen(&text).unwrap_or_else(|said| panic!("{name}: {said}"));
        for (new, zones) in [(plain_target(), false), (full_target(), true)] {
            let edited = add(&text, &new, zones).unwrap_or_else(|refused| panic!("{name}: {refused}"));
            let after = seen(&edited).unwrap_or_else(|said| panic!("{name}: {said}\n{edited}"));
            assert_eq!(after, with_target(&before, &new, families(&name), zones), "{name}:\n{edited}");
            assert_eq!(detect(&edited), Format::Yaml, "{name}");
            assert_eq!(add(&edited, &new, zones).as_deref(), Ok(edited.as_str()), "{name}: adding it again changes nothing");
        }
    }
}

#[test]
fn added_and_removed_again_leaves_the_old_meaning() {
    for (name, text) in texts("good") {
        let before = seen(&text).unwrap_or_else(|said| panic!("{name}: {said}"));
        let new = full_target();
        let back = remove(&add(&text, &new, false).unwrap(), &new.server).unwrap_or_else(|refused| panic!("{name}: {refused}"));
        assert_eq!(seen(&back).as_ref(), Ok(&before), "{name}:\n{back}");
        assert_eq!(remove(&back, &new.server).as_deref(), Ok(back.as_str()), "{name}: removing it again changes nothing");
    }
}

#[test]
fn every_source_can_leave_once_the_target_is_there() {
    for (name, text) in texts("good") {
        let new = plain_target();
        let mut edited = add(&text, &new, true).unwrap();
        let mut wanted = seen(&edited).unwrap();
        for server in servers(&wanted).into_iter().filter(|server| *server != new.server) {
            edited = remove(&edited, &server).unwrap_or_else(|refused| panic!("{name}: {server}: {refused}\n{edited}"));
            wanted = without(&wanted, &server);
            assert_eq!(seen(&edited).as_ref(), Ok(&wanted), "{name}:\n{edited}");
        }
        assert_eq!(servers(&wanted), [new.server.as_str()], "{name}");
        let last = remove(&edited, &new.server).unwrap_err();
        assert!(last.reason.contains("only vCenter"), "{name}: {last}");
    }
}

/// With the tests above this makes what holds for the one reader hold for the others.
#[test]
fn of_every_produced_text_the_other_readers_see_what_the_cloud_controller_manager_sees() {
    for (name, text) in texts("good") {
        let (plain, full) = (plain_target(), full_target());
        let (grown, zoned) = (add(&text, &plain, false).unwrap(), add(&text, &full, true).unwrap());
        let left = servers(&seen(&text).unwrap());
        let moved = left.iter().fold(zoned.clone(), |edited, server| remove(&edited, server).unwrap());
        for produced in [convert(&text).unwrap(), remove(&grown, &plain.server).unwrap(), grown, zoned, moved, text] {
            let mut wanted = seen(&produced).unwrap();
            // Networks of nodes are the cloud controller manager's alone.
            wanted.as_object_mut().unwrap().remove("Nodes").expect("networks of nodes");
            let others = seen_by_others(&produced).unwrap_or_else(|said| panic!("{name}: {said}\n{produced}"));
            assert_eq!(others, wanted, "{name}:\n{produced}");
        }
    }
}

#[test]
fn the_vcenters_in_effect_are_those_the_loader_sees() {
    for (name, text) in texts("good") {
        let seen = seen(&text).unwrap();
        let own = vcenters(&text).unwrap_or_else(|refused| panic!("{name}: {refused}"));
        assert_eq!(own.len(), seen["VirtualCenter"].as_object().unwrap().len(), "{name}");
        for vcenter in own {
            let wanted = &seen["VirtualCenter"][&vcenter.name];
            assert_eq!(wanted["VCenterIP"], vcenter.server, "{name}");
            assert_eq!(wanted["VCenterPort"], vcenter.port.to_string(), "{name}");
            assert_eq!(wanted["Datacenters"], serde_json::json!(vcenter.datacenters), "{name}");
            assert_eq!(wanted["InsecureFlag"], vcenter.insecure, "{name}");
            assert_eq!(wanted["CAFile"], vcenter.ca_file.unwrap_or_default(), "{name}");
            assert_eq!(wanted["Thumbprint"], vcenter.thumbprint.unwrap_or_default(), "{name}");
        }
    }
}

#[test]
fn yaml_changes_in_one_place_only_and_comes_back_letter_by_letter() {
    for (name, text) in texts("good").into_iter().filter(|(name, _)| name.ends_with(".yaml")) {
        let new = plain_target();
        let edited = add(&text, &new, false).unwrap();
        let prefix = text.bytes().zip(edited.bytes()).take_while(|(one, other)| one == other).count();
        let suffix = text.bytes().rev().zip(edited.bytes().rev()).take_while(|(one, other)| one == other).count();
        assert!(prefix + suffix >= text.len(), "{name} changed in more than one place:\n{edited}");
        // An empty list of entries goes with its last entry; it means the same.
        if name != "global-server-and-no-entry.yaml" {
            let back = remove(&edited, &new.server).unwrap();
            assert_eq!(back.trim_end(), text.trim_end(), "{name}");
        }
    }
}

#[test]
fn conversion_keeps_the_meaning_and_leaves_yaml_alone() {
    for (name, text) in texts("good") {
        let converted = convert(&text).unwrap_or_else(|refused| panic!("{name}: {refused}"));
        assert_eq!(seen(&converted), seen(&text), "{name}:\n{converted}");
        assert_eq!(detect(&converted), Format::Yaml, "{name}");
        assert_eq!(convert(&converted).as_deref(), Ok(converted.as_str()), "{name}");
        if name.ends_with(".yaml") {
            assert_eq!(converted, text, "{name}");
        }
    }
}
