//! The words themselves: what an edit looks like to the owner of the text.

use vmi_intent::cloud_config::{add, convert, remove};

use crate::corpus::texts;
use crate::loader::{full_target, plain_target};

fn text(name: &str) -> String {
    texts("good").into_iter().find(|(own, _)| own == name).expect(name).1
}

#[test]
fn an_ini_becomes_yaml_with_its_comments_and_with_what_yaml_has_no_place_for() {
    assert_eq!(
        convert(&text("comments-everywhere.ini")).unwrap(),
        r#"global:
  # cluster lab, see ticket 4711
  # second line
  # defaults
  # the root secret
  secretName: "vsphere-creds" # do not change
  secretNamespace: "kube-system" # nor this
vcenter:
  "vc-a.example.com":
    server: "vc-a.example.com"
    #insecure-flag = 0
    # production
    # all of them
    datacenters: ["dc-a", "dc-b"] # two
    # the end
"#
    );
    assert_eq!(
        convert(&text("in-tree-leftovers.ini")).unwrap(),
        r#"global:
  secretName: "vsphere-creds"
  secretNamespace: "kube-system"
vcenter:
  "vc-a.example.com":
    server: "vc-a.example.com"
    datacenters: ["dc-a"]
# The YAML form has no place for these; kept from the former INI:
# vm-uuid = "4217"
# working-dir = k8s
# [Disk]
# scsicontrollertype = pvscsi
# [Network]
# public-network = "VM Network"
# vm-name = x
# [Global "odd"]
# server = nowhere
"#
    );
}

#[test]
fn a_vcenter_is_added_in_the_style_of_the_text() {
    let edited = add(&text("comments-everywhere.yaml"), &plain_target(), true).unwrap();
    let wanted = text("comments-everywhere.yaml").replace(
        "            - dc-a   # the old one\n",
        "            - dc-a   # the old one\n    \"vc-target.example.com\":\n      server: \"vc-target.example.com\"\n      port: 443\n      datacenters: [\"dc-t\"]\n",
    );
    let labels = "labels:\n  region: \"openshift-region\"\n  zone: \"openshift-zone\"\n";
    assert_eq!(edited, wanted.replace("net # the network\n", &format!("net # the network\n{labels}")));
}

#[test]
fn between_braces_a_vcenter_is_added_between_braces() {
    let edited = add(&text("flow.yaml"), &full_target(), true).unwrap();
    let entry = r#""vc-target.example.com": {"server": "vc-target.example.com", "port": 8443, "datacenters": ["/Folder/DC \"East\"", "no", "12", "Zürich: #1"], "insecureFlag": true, "caFile": "C:\\ca\\target.pem", "thumbprint": "AA:01:E5"}"#;
    let wanted = text("flow.yaml")
        .replace("datacenters: [dc-a]}}", &format!("datacenters: [dc-a]}}, {entry}}}"))
        .replace("labels: {}", r#"labels: {"region": "openshift-region", "zone": "openshift-zone"}"#);
    assert_eq!(edited, wanted);
}

#[test]
fn an_ini_loses_the_lines_of_the_vcenter_and_no_others() {
    let left = remove(&text("two-vcenters.ini"), "vc-a.example.com").unwrap();
    assert_eq!(left, text("two-vcenters.ini").replace("[VirtualCenter \"vc-a.example.com\"]\ndatacenters = \"dc-a\"\n", ""));
}

#[test]
fn empty_labels_are_filled_where_they_stand() {
    for (name, old, new) in [
        ("labels-without-value.yaml", "labels:\n", "labels: {region: \"openshift-region\", \"zone\": \"openshift-zone\"}\n"),
        ("labels-null.yaml", "labels: ~\n", "labels: {region: \"openshift-region\", \"zone\": \"openshift-zone\"}\n"),
        ("labels-half-empty.yaml", "  region:\n  zone: ''\n", "  region: \"openshift-region\"\n  zone: \"openshift-zone\"\n"),
        ("only-the-zone.yaml", "# category\n", "# category\n  region: \"openshift-region\"\n"),
    ] {
        let edited = add(&text(name), &plain_target(), true).unwrap();
        assert!(edited.contains(new) && !edited.replace(new, "").contains(old), "{name}:\n{edited}");
    }
}

/// The cloud controller manager merges repeated sections; the storage operators and the machine controller see the last one only.
#[test]
fn of_repeated_sections_the_last_one_gets_the_vcenter() {
    let edited = add(&text("repeated-vcenter.yaml"), &plain_target(), false).unwrap();
    let last = edited.rfind("vcenter:\n").unwrap();
    assert!(edited[last..].contains("\"vc-target.example.com\":"), "{edited}");
}

#[test]
fn line_ends_stay_those_of_the_text() {
    let edited = add(&text("windows-line-ends.yaml"), &plain_target(), false).unwrap();
    assert_eq!(edited.matches('\n').count(), edited.matches("\r\n").count(), "{edited:?}");
}

#[test]
fn a_key_set_twice_in_ini_stands_once_in_yaml() {
    let converted = convert(&text("repeated-blocks.ini")).unwrap();
    assert_eq!(converted.matches("datacenters: [\"dc-a\"]").count(), 1, "{converted}");
    assert!(!converted.contains("dc-old"), "{converted}");
}
