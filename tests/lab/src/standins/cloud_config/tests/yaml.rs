//! The YAML form, with the traps of either library.

use super::*;

/// What the INI reader says of almost every YAML text that the YAML reader refused.
const NO_HEADER: &str = "ini config parsing failed: 1:1: expected section header";

#[test]
fn both_generations_read_the_same_of_a_sound_text() {
    let cases = [
        ("nothing but a comment", "# nothing\n", json!({"global": {}})),
        ("null", "~\n", json!({"global": {}})),
        (
            "zeros are as good as absent",
            "global:\n  user: \"\"\n  port: 0\n  insecureFlag: false\n  datacenters: []\n",
            json!({"global": {}}),
        ),
        ("an octal port", "global:\n  port: 0673\n", json!({"global": {"port": 443}})),
        ("an impossible octal is decimal", "global:\n  port: 08\n", json!({"global": {"port": 8}})),
        ("a hexadecimal port", "global:\n  port: 0x1bb\n", json!({"global": {"port": 443}})),
        ("underscores", "global:\n  port: 4_43\n", json!({"global": {"port": 443}})),
        ("a whole float", "global:\n  port: 443.0\n", json!({"global": {"port": 443}})),
        ("words for true", "global:\n  insecureFlag: on\n  apiDisable: y\n", json!({"global": {"insecureFlag": true, "apiDisable": true}})),
        ("a null in a list", "global:\n  datacenters: [a, ~, b]\n", json!({"global": {"datacenters": ["a", "", "b"]}})),
        ("quoted numbers are text", "global:\n  user: \"0673\"\n  password: 'on'\n", json!({"global": {"user": "0673", "password": "on"}})),
        ("a text tag", "global:\n  user: !!str 5\n", json!({"global": {"user": "5"}})),
        ("a block", "global:\n  user: |\n    one\n    two\n", json!({"global": {"user": "one\ntwo\n"}})),
        ("an alias", "x: &g {user: u}\nglobal: *g\n", json!({"global": {"user": "u"}})),
        ("a merge before the key", "x: &g {port: 1}\nglobal:\n  <<: *g\n  port: 2\n", json!({"global": {"port": 2}})),
        ("a merge behind the key wins", "x: &g {port: 1}\nglobal:\n  port: 2\n  <<: *g\n", json!({"global": {"port": 1}})),
        ("the first of two merges wins", "x: &g {port: 1}\ny: &h {port: 2}\nglobal:\n  <<: [*g, *h]\n", json!({"global": {"port": 1}})),
        ("only the first document counts", "global: {user: a}\n---\nglobal: {user: b}\n", json!({"global": {"user": "a"}})),
        ("unknown keys are dropped", "global: {foo: 1}\nloadBalancer: {x: 1}\n", json!({"global": {}})),
        ("an entry without body stays one", "vcenter:\n  a:\n", json!({"global": {}, "vcenter": {"a": null}})),
        ("an empty entry", "vcenter:\n  a: {}\n", json!({"global": {}, "vcenter": {"a": {}}})),
        ("a null list of vCenters", "vcenter: ~\n", json!({"global": {}})),
        (
            "the later of two equal entries",
            "vcenter:\n  a: {user: x}\n  a: {server: a}\n",
            json!({"global": {}, "vcenter": {"a": {"server": "a"}}}),
        ),
    ];
    for (what, source, expected) in cases {
        for generation in BOTH {
            assert_read(what, source, generation, expected.clone());
        }
    }
}

#[test]
fn the_two_libraries_disagree_on_these() {
    let cases = [
        ("a number for text", "global:\n  user: 123\n", Ok(json!({"global": {"user": "123"}})), Err(NO_HEADER)),
        ("a word for text", "global:\n  user: no\n", Ok(json!({"global": {"user": "no"}})), Err(NO_HEADER)),
        (
            "a number for a node's text",
            "nodes:\n  internalVmNetworkName: 5\n  externalVmNetworkName: no\n  internalNetworkSubnetCidr: 1.10\n",
            Ok(
                json!({"global": {}, "nodes": {"internalVmNetworkName": "5", "externalVmNetworkName": "no", "internalNetworkSubnetCidr": "1.10"}}),
            ),
            Ok(
                json!({"global": {}, "nodes": {"internalVmNetworkName": "5", "externalVmNetworkName": "false", "internalNetworkSubnetCidr": "1.1"}}),
            ),
        ),
        ("a broken port", "global:\n  port: 443.7\n", Ok(json!({"global": {"port": 443}})), Err(NO_HEADER)),
        ("keys in another case", "Global:\n  SecretName: s\n", Ok(json!({"global": {}})), Ok(json!({"global": {"secretName": "s"}}))),
        (
            "a section twice",
            "global:\n  user: a\nglobal:\n  password: b\n",
            Ok(json!({"global": {"user": "a", "password": "b"}})),
            Ok(json!({"global": {"password": "b"}})),
        ),
        (
            "the vCenters twice",
            "vcenter:\n  a: {server: a}\nvcenter:\n  b: {server: b}\n",
            Ok(json!({"global": {}, "vcenter": {"a": {"server": "a"}, "b": {"server": "b"}}})),
            Ok(json!({"global": {}, "vcenter": {"b": {"server": "b"}}})),
        ),
        ("a null key", "global:\n  ~: x\n  user: u\n", Ok(json!({"global": {"user": "u"}})), Err(NO_HEADER)),
        (
            "keys that are no text",
            "vcenter:\n  on: {server: s}\n",
            Ok(json!({"global": {}, "vcenter": {"on": {"server": "s"}}})),
            Ok(json!({"global": {}, "vcenter": {"true": {"server": "s"}}})),
        ),
        ("labels without content", "labels: {}\n", Ok(json!({"global": {}})), Ok(json!({"global": {}, "labels": {}}))),
        (
            "null in capitals",
            "vcenter:\n  z: NULL\n",
            Ok(json!({"global": {}, "vcenter": {"z": {}}})),
            Ok(json!({"global": {}, "vcenter": {"z": null}})),
        ),
    ];
    for (what, source, older, newer) in cases {
        for (generation, expected) in BOTH.into_iter().zip([older, newer]) {
            match expected {
                Ok(expected) => assert_read(what, source, generation, expected),
                Err(expected) => assert_refused(what, source, generation, expected),
            }
        }
    }
}

#[test]
fn a_mistake_in_yaml_is_reported_as_one_in_ini() {
    let cases = [
        ("a quoted port", "global:\n  port: \"443\"\n", NO_HEADER),
        ("a negative port", "global:\n  port: -1\n", NO_HEADER),
        ("a quoted flag", "global:\n  insecureFlag: \"true\"\n", NO_HEADER),
        ("a number for a flag", "global:\n  insecureFlag: 1\n", NO_HEADER),
        ("one name instead of a list", "global:\n  datacenters: dc1\n", NO_HEADER),
        ("an indentation slip", "vcenter:\n  a:\n  server: a\n", NO_HEADER),
        ("text for a section", "global: text\n", NO_HEADER),
        ("just text", "hello\n", NO_HEADER),
        ("not YAML at all", "global: [\n", NO_HEADER),
        ("behind a document's mark", "---\nglobal: [\n", "ini config parsing failed: 1:1: illegal character U+002D '-'"),
        ("nothing", "", "vSphere config is empty"),
    ];
    for (what, source, expected) in cases {
        for generation in BOTH {
            assert_refused(what, source, generation, expected);
        }
    }
}

#[test]
fn what_is_printed_is_read_back_by_the_older_rules() {
    let nasty =
        ["1", "no", "- x", "*a", "190:20:30", "1e3", "0x1", ".5", "=", "<<", "2001-01-01", "é", "%", "null", "N", " lead", "a: b # c"];
    let source = json!({"global": {"user": "0673", "password": "on", "server": "~", "datacenters": nasty}}).to_string();
    for generation in BOTH {
        let printed = Config::read(&source, generation).unwrap().print(generation).unwrap();
        let again = Config::read(&printed, Generation::V4_21).unwrap();
        assert_eq!(again.global.list("datacenters"), nasty);
        assert_eq!([again.global.get("user"), again.global.get("password"), again.global.get("server")], ["0673", "on", "~"]);
    }
}

#[test]
fn a_password_is_not_in_what_is_printed_for_debugging() {
    let config = Config::read("global: {user: u, password: geheim}", Generation::V4_21).unwrap();
    assert!(format!("{config:?}").contains("user"));
    assert!(!format!("{config:?}").contains("geheim"));
}
