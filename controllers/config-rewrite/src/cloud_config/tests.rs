//! The cloud configuration, there and back.

use vmi_intent::cloud_config::{NewVcenter, vcenters};

use super::decide::{Config, Saved, Wanted, extend, lost, restore};

const SALT: &str = "uid";
const TEXT: &str = "global:\n  secretName: vsphere-creds\n  secretNamespace: kube-system\nvcenter:\n  a.example:\n    server: a.example\n    datacenters:\n    - dc-a\n";
const INI: &str = "[Global]\nsecret-name = \"vsphere-creds\"\nsecret-namespace = \"kube-system\"\n[VirtualCenter \"a.example\"]\ndatacenters = \"dc-a\"\n";
const OLD_CA: &str = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
const NEW_CA: &str = "-----BEGIN CERTIFICATE-----\nBBBB\n-----END CERTIFICATE-----\n";

fn config(text: &str, authorities: Option<&str>) -> Config {
    Config { text: text.to_owned(), authorities: authorities.map(str::to_owned) }
}

fn wanted() -> Wanted {
    let target = NewVcenter { server: "b.example".to_owned(), datacenters: vec!["dc-b".to_owned()], ..NewVcenter::default() };
    Wanted { vcenters: vec![target], zones: true, authorities: NEW_CA.to_owned() }
}

fn servers(config: &Config) -> Vec<String> {
    vcenters(&config.text).unwrap().into_iter().map(|vcenter| vcenter.server).collect()
}

#[test]
fn the_target_is_listed_and_trusted_and_once_is_enough() {
    let Some((next, changes)) = extend(&config(TEXT, Some(OLD_CA)), &wanted()).unwrap() else { panic!("it is not there yet") };
    assert_eq!(servers(&next), ["a.example", "b.example"]);
    assert_eq!(next.authorities, Some(format!("{OLD_CA}{NEW_CA}")));
    assert_eq!(
        changes,
        [
            "b.example is listed (datacenters dc-b)",
            "zones and regions are read from tags of the categories openshift-zone and openshift-region",
            "1 certificates of spec.trust.caBundle are added",
        ]
    );
    assert!(extend(&next, &wanted()).unwrap().is_none());
}

#[test]
fn a_target_that_is_not_listed_any_more_is_told() {
    let Some((next, _)) = extend(&config(TEXT, None), &wanted()).unwrap() else { panic!("it is not there yet") };
    let targets = ["b.example"];
    assert_eq!(lost(&next, &targets), None);
    let edited = config(&format!("# theirs\n{}", next.text), None);
    assert_eq!(lost(&edited, &targets), None);
    assert_eq!(lost(&config(TEXT, None), &targets).as_deref(), Some("does not list b.example any more"));
    assert!(lost(&config("global: [", None), &targets).is_some_and(|text| text.starts_with("cannot be read any more: ")));
}

#[test]
fn a_certificate_that_is_not_checked_is_said() {
    let mut insecure = wanted();
    insecure.vcenters[0].insecure = true;
    let Some((_, changes)) = extend(&config(TEXT, None), &insecure).unwrap() else { panic!("it is not there yet") };
    assert_eq!(changes[0], "b.example is listed (datacenters dc-b), its certificate is not checked");
}

#[test]
fn certificates_are_added_only_where_there_are_some() {
    let Some((next, _)) = extend(&config(TEXT, None), &wanted()).unwrap() else { panic!("it is not there yet") };
    assert_eq!(next.authorities, None);
}

#[test]
fn that_ini_becomes_yaml_is_said() {
    let Some((next, changes)) = extend(&config(INI, None), &wanted()).unwrap() else { panic!("it is not there yet") };
    assert_eq!(servers(&next), ["a.example", "b.example"]);
    assert!(changes.iter().any(|change| change.starts_with("it becomes YAML")), "{changes:?}");
}

#[test]
fn a_broken_text_is_refused_with_its_line() {
    let Err(refused) = extend(&config("vcenter:\n  a.example:\n", None), &wanted()) else { panic!("an entry without a body") };
    assert!(refused.to_string().starts_with("line "), "{refused}");
}

#[test]
fn what_stands_as_it_was_written_becomes_byte_for_byte_what_it_was() {
    for before in [config(TEXT, None), config(TEXT, Some(OLD_CA.trim_end())), config(INI, None)] {
        let Some((written, _)) = extend(&before, &wanted()).unwrap() else { panic!("it is not there yet") };
        let saved = Saved::of(before.clone(), &written, SALT);
        let back = restore(&written, &saved, &wanted(), SALT).unwrap();
        assert!(back.config == Some(before.clone()) && !back.changed_by_others);
        let again = restore(&before, &saved, &wanted(), SALT).unwrap();
        assert!(again.config.is_none() && !again.changed_by_others, "twice is once");
    }
}

#[test]
fn what_somebody_else_changed_since_stays_and_only_the_target_goes() {
    let before = config(TEXT, Some(OLD_CA));
    let Some((written, _)) = extend(&before, &wanted()).unwrap() else { panic!("it is not there yet") };
    let saved = Saved::of(before, &written, SALT);
    let theirs = config(&format!("# theirs\n{}", written.text), written.authorities.as_deref());
    let back = restore(&theirs, &saved, &wanted(), SALT).unwrap();
    let Some(next) = back.config else { panic!("the target goes") };
    assert!(back.changed_by_others && next.text.starts_with("# theirs\n"));
    assert_eq!(servers(&next), ["a.example"]);
    assert_eq!(next.authorities.as_deref(), Some(OLD_CA));
    let again = restore(&next, &saved, &wanted(), SALT).unwrap();
    assert!(again.config.is_none() && again.changed_by_others, "and that is still said");
}

#[test]
fn a_target_that_was_there_before_is_not_taken_away() {
    let Some((both, _)) = extend(&config(TEXT, None), &wanted()).unwrap() else { panic!("it is not there yet") };
    let saved = Saved::of(both.clone(), &both, SALT);
    let theirs = config(&format!("# theirs\n{}", both.text), Some(OLD_CA));
    assert!(restore(&theirs, &saved, &wanted(), SALT).unwrap().config.is_none());
}
