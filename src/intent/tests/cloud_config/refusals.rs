//! Texts that must not be edited: each with the line, the reason, and what the real loader makes of it.

use vmi_intent::cloud_config::{NewVcenter, Refused, SecretName, add, convert, remove};

use crate::corpus::texts;
use crate::loader::{full_target, plain_target, seen, seen_by_others};

#[derive(Debug, PartialEq)]
enum Loader {
    Refuses,
    Crashes,
    /// It would load, but a vCenter cannot be added without harm.
    Accepts,
}

use Loader::{Accepts, Crashes, Refuses};

fn said(view: Result<serde_json::Value, String>) -> Loader {
    match view {
        Ok(_) => Accepts,
        Err(said) if said.contains("crashed") => Crashes,
        Err(_) => Refuses,
    }
}

const TABLE: &[(&str, usize, &str, Loader)] = &[
    ("bare-backslash.ini", 2, "a backslash outside quotes", Refuses),
    ("block-with-empty-name.ini", 4, "the name in quotes is empty", Refuses),
    ("block-without-name.ini", 4, "must name its server", Refuses),
    ("byte-order-mark.ini", 1, "expected a section header or a key", Refuses),
    ("colon-for-equals.ini", 2, "expected = after secret-name", Refuses),
    ("comments-only.yaml", 1, "there is no configuration", Refuses),
    ("credentials-in-the-text.ini", 2, "names no secret", Accepts),
    ("credentials-in-the-text.yaml", 2, "names no secret", Accepts),
    ("datacenters-as-text.yaml", 7, "vcenter.vc-a.example.com.datacenters must be a list", Refuses),
    ("empty-count.ini", 4, "soap-roundtrip-count must be a number", Refuses),
    ("empty-ip-family.ini", 5, "crashes on empty parts", Crashes),
    ("entry-without-body.yaml", 5, "has no body", Crashes),
    ("entry-without-server.yaml", 5, "vcenter.vc-a.example.com has no server", Refuses),
    ("escape.ini", 2, "a backslash is written twice", Refuses),
    ("flag-as-number.yaml", 2, "global.insecureFlag must be true or false", Refuses),
    ("flag-in-quotes.yaml", 2, "global.insecureFlag must be true or false without quotes", Refuses),
    ("flag-word.ini", 4, "insecure-flag must be true or false", Refuses),
    ("header-not-closed.ini", 1, "expected ]", Refuses),
    ("key-before-section.ini", 1, "expected a section header such as [Global] first", Refuses),
    ("key-without-value.ini", 2, "secret-name must be followed by = and a value", Refuses),
    ("name-of-the-target-taken.yaml", 5, "is taken by the entry of vc-a.example.com", Accepts),
    ("no-credentials.yaml", 4, "has no user", Refuses),
    ("no-password.ini", 3, "has no password", Refuses),
    ("no-vcenter.ini", 1, "no vCenter is defined", Refuses),
    ("open-quote.ini", 2, "the quotes do not end on this line", Refuses),
    ("other-categories.yaml", 12, "the zone label reads category \"k8s-zone\"", Accepts),
    ("port-in-quotes.yaml", 7, "port must be a number without quotes", Refuses),
    ("port-word.ini", 4, "port must be a number", Accepts),
    ("prose.txt", 1, "neither INI nor YAML", Refuses),
    ("secret-and-directory.yaml", 6, "has no user", Refuses),
    ("section-as-list.yaml", 2, "global must be a mapping", Refuses),
    ("slipped-indentation.yaml", 5, "is the indentation right?", Refuses),
    ("tab.yaml", 5, "not valid YAML", Refuses),
    ("target-differs.yaml", 10, "its datacenters are [\"dc-a\"], not [\"dc-t\"]", Accepts),
    ("target-in-capitals.yaml", 5, "differ in upper and lower case only", Accepts),
    ("thumbprint-for-all.yaml", 4, "would inherit this thumbprint", Accepts),
    ("unknown-alias.yaml", 5, "not valid YAML", Refuses),
    ("unknown-ip-family.ini", 4, "ip-family must be ipv4, ipv6 or both", Refuses),
    ("vcenter-is-an-alias.yaml", 6, "vcenter is an alias", Accepts),
    ("vcenter-null-beside-global-server.yaml", 5, "crashes", Crashes),
    ("vcenter-without-entries.yaml", 4, "vcenter has no entries", Refuses),
    ("words-after-header.ini", 1, "expected the end of the line or a comment", Refuses),
    ("wrong-indentation.yaml", 7, "not valid YAML", Refuses),
];

#[test]
fn broken_texts_are_refused_with_the_line_and_the_reason() {
    let texts = texts("refused");
    let names: Vec<_> = texts.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, TABLE.iter().map(|(name, ..)| *name).collect::<Vec<_>>(), "every text has its row and every row its text");
    for ((name, text), (_, line, reason, loader)) in texts.iter().zip(TABLE) {
        let refused = add(text, &plain_target(), true).expect_err(name);
        assert_eq!(refused.line, Some(*line), "{name}: {refused}");
        assert!(refused.reason.contains(reason), "{name}: {refused}");
        assert!(!refused.to_string().contains("hush"), "{name}: {refused}");
        assert_eq!(&said(seen(text)), loader, "{name}");
        assert_eq!(&said(seen_by_others(text)), loader, "{name}: the other readers");
        if *loader != Accepts {
            assert!(remove(text, "vc-a.example.com").is_err(), "{name} is not fit for a removal either");
            assert!(convert(text).is_err() || name.ends_with(".yaml") || name.ends_with(".txt"), "{name} is not fit for a conversion");
        }
    }
}

#[test]
fn a_secret_of_its_own_lets_a_vcenter_in_beside_credentials_in_the_text() {
    let (_, text) = texts("refused").into_iter().find(|(name, _)| name == "credentials-in-the-text.yaml").unwrap();
    let secret = SecretName { namespace: "ns".to_owned(), name: "own".to_owned() };
    let edited = add(&text, &NewVcenter { secret: Some(secret), ..plain_target() }, false).unwrap();
    let target = &seen(&edited).unwrap()["VirtualCenter"]["vc-target.example.com"];
    assert_eq!((&target["SecretRef"], &target["User"]), (&"ns/own".into(), &"".into()));
}

#[test]
fn what_cannot_be_written_is_refused_without_a_line() {
    let text = "global: {secretName: a, secretNamespace: b}\nvcenter: {vc: {server: vc}}\n";
    let target = plain_target;
    for (new, reason) in [
        (NewVcenter { server: String::new(), ..target() }, "not the name or address"),
        (NewVcenter { server: "vc b".to_owned(), ..target() }, "not the name or address"),
        (NewVcenter { server: "vc-b\n".to_owned(), ..target() }, "not the name or address"),
        (NewVcenter { port: Some(0), ..target() }, "port 0"),
        (NewVcenter { datacenters: Vec::new(), ..target() }, "has no datacenter"),
        (NewVcenter { datacenters: vec!["a,b".to_owned()], ..target() }, "commas"),
        (NewVcenter { ca_file: Some(String::new()), ..target() }, "is empty"),
    ] {
        let refused = add(text, &new, false).unwrap_err();
        assert!(refused.line.is_none() && refused.reason.contains(reason), "{refused}");
    }
}

#[test]
fn an_ini_workspace_of_the_source_must_be_converted_before_the_source_leaves() {
    let text =
        "[Global]\nsecret-name = a\nsecret-namespace = b\n[Workspace]\nserver = vc-a\n[VirtualCenter \"vc-a\"]\n[VirtualCenter \"vc-b\"]\n";
    let refused = remove(text, "vc-a").unwrap_err();
    assert_eq!(refused.line, Some(5), "{refused}");
    assert!(refused.reason.contains("convert to YAML"), "{refused}");
    let left = remove(&convert(text).unwrap(), "vc-a").unwrap();
    assert_eq!(seen(&left).unwrap()["VirtualCenter"].as_object().unwrap().keys().collect::<Vec<_>>(), ["vc-b"]);
}

#[test]
fn what_was_kept_of_the_source_goes_with_it_and_what_was_kept_of_others_stays() {
    let text = "[Global]\nsecret-name = a\nsecret-namespace = b\n[Workspace]\nserver = \"vc-a\"\nfolder = /dc/vm\n[Disk]\nscsicontrollertype = pvscsi\n[VirtualCenter \"vc-a\"]\n[VirtualCenter \"vc-b\"]\n";
    let converted = convert(text).unwrap();
    assert!(converted.contains("# server = \"vc-a\"\n# folder = /dc/vm\n"), "{converted}");
    let left = remove(&converted, "vc-a").unwrap();
    assert!(!left.contains("vc-a") && !left.contains("folder") && left.contains("# [Disk]\n# scsicontrollertype = pvscsi\n"), "{left}");
    assert!(remove(&converted, "vc-b").unwrap().contains("# server = \"vc-a\""), "it is another's");
    let without_disk = remove(&convert(&text.replace("[Disk]\nscsicontrollertype = pvscsi\n", "")).unwrap(), "vc-a").unwrap();
    assert!(!without_disk.contains('#'), "{without_disk}");
}

#[test]
fn a_target_that_differs_in_everything_is_refused_with_everything() {
    let text = "global: {secretName: a, secretNamespace: b}\nvcenter:\n  vc: {server: vc}\n  t: {server: vc-target.example.com}\n";
    let said = add(text, &full_target(), false).unwrap_err().to_string();
    for part in
        ["line 4: ", "port is 443, not 8443", "datacenters are []", "insecure flag is false", "CA file is None", "thumbprint is None"]
    {
        assert!(said.contains(part), "{part} is not in: {said}");
    }
}

#[test]
fn a_refusal_reads_as_a_sentence() {
    let with = Refused { line: Some(3), reason: "no".to_owned() };
    let without = Refused { line: None, ..with.clone() };
    assert_eq!((with.to_string(), without.to_string()), ("line 3: no".to_owned(), "no".to_owned()));
}

#[test]
fn an_edit_that_would_read_otherwise_is_not_handed_out() {
    let global = "secretName: a, secretNamespace: b";
    for (text, why) in [
        // The other entry leans on the one that goes.
        (
            format!("global: {{{global}}}\nvcenter:\n  vc-a: &a {{server: vc-a, port: 1}}\n  vc-b: {{<<: *a, server: vc-b}}\n"),
            "not valid YAML",
        ),
        // The server stands in a part that is merged into the global section.
        (format!("base: &base {{server: vc-a}}\nglobal: {{<<: *base, {global}}}\nvcenter:\n  vc-b: {{server: vc-b}}\n"), "another meaning"),
    ] {
        let refused = remove(&text, "vc-a").unwrap_err();
        assert!(refused.reason.contains("cannot be edited safely") && refused.reason.contains(why), "{refused}");
    }
}
