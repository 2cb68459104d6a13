//! The INI form: gcfg's dialect, and what its conversion loses. Both generations read it alike.

use super::*;

fn global(values: Value) -> Value {
    json!({"global": values})
}

#[test]
fn the_installers_text_becomes_yaml_without_its_workspace() {
    let source = "[Global]\nsecret-name = \"vsphere-creds\"\nsecret-namespace = \"kube-system\"\ninsecure-flag = \"1\"\n\n\
                  [Workspace]\nserver = \"a\"\ndatacenter = \"dc1\"\n\n[VirtualCenter \"a\"]\ndatacenters = \"dc1\"\n";
    let expected = json!({
        "global": {"insecureFlag": true, "secretName": "vsphere-creds", "secretNamespace": "kube-system"},
        "vcenter": {"a": {"server": "a", "datacenters": ["dc1"]}},
    });
    for generation in BOTH {
        assert_read("installer", source, generation, expected.clone());
    }
}

#[test]
fn values_are_converted_and_some_are_lost() {
    let source = "[Global]\nport=443\ndatacenters = a, b,,c\nsoap-roundtrip-count = 0x10\napi-disable\napi-binding = x\nip-family = ipv6\n\
                  [VirtualCenter \"a\"]\nport = \"8443\"\nip-family = \"ipv4,,ipv6\"\n\
                  [VirtualCenter \"tenant\"]\nserver = b\nsecret-name = s\n\
                  [Labels]\nzone=z\n[Nodes]\ninternal-vm-network-name = \"n\"\n";
    let expected = json!({
        "global": {"port": 443, "datacenters": ["a", "b", "c"], "soapRoundtripCount": 16},
        "vcenter": {"a": {"server": "a", "port": 8443, "ipFamily": ["ipv4,,ipv6"]}, "tenant": {"server": "b", "secretName": "s"}},
        "labels": {"zone": "z"},
        "nodes": {"internalVmNetworkName": "n"},
    });
    for generation in BOTH {
        assert_read("conversion", source, generation, expected.clone());
    }
}

#[test]
fn quotes_comments_and_escapes_follow_gcfg() {
    let cases = [
        ("names in any case", "[GLOBAL]\nSecret-Name = s\n", json!({"secretName": "s"})),
        ("a hash cuts a password", "[Global]\npassword = a#b\n", json!({"password": "a"})),
        ("a semicolon cuts a user", "[Global]\nuser = a;b\n", json!({"user": "a"})),
        ("quotes keep both", "[Global]\npassword = \"a#b;c\"\n", json!({"password": "a#b;c"})),
        ("a domain turns into a line break", "[Global]\nuser = \"DOMAIN\\nathan\"\n", json!({"user": "DOMAIN\nathan"})),
        ("quotes begin anywhere", "[Global]\nuser = a\"b c\"d  e  ; c\n", json!({"user": "ab cd  e"})),
        ("blanks inside quotes stay", "[Global]\nuser = \"a \" \n", json!({"user": "a "})),
        ("a line goes on", "[Global]\nuser = a \\\n b\n", json!({"user": "a  b"})),
        ("a quote by itself", "[Global]\nuser = a\\\"b\n", json!({"user": "a\"b"})),
        ("line ends of Windows", "[Global]\r\nuser = \"a\"\r\n", json!({"user": "a"})),
        ("comments", "; c\n# d\n[Global] ; e\nuser = u # f\n", json!({"user": "u"})),
        ("a name alone is a yes", "[Global]\ninsecure-flag\n", json!({"insecureFlag": true})),
        ("words for yes", "[Global]\ninsecure-flag = On\n", json!({"insecureFlag": true})),
        ("an empty value", "[Global]\nuser =\n", json!({})),
        ("a subsection where none belongs", "[Global \"x\"]\nuser = a\n", json!({})),
        ("unknown names", "[Foo]\nbar = 1\n[Global]\nbar = 2\nuser = u\n", json!({"user": "u"})),
        ("sections that come twice", "[Global]\nuser = 1\n[Labels]\n[Global]\nuser = 2\n", json!({"user": "2"})),
        ("a port with a sign", "[Global]\nport = +443\n", json!({"port": 443})),
    ];
    for (what, source, expected) in cases {
        for generation in BOTH {
            assert_read(what, source, generation, global(expected.clone()));
        }
    }
}

#[test]
fn what_cannot_be_read_is_reported_with_its_place() {
    let variable = |message: &str, name: &str| format!("{message} at section \"Global\", variable \"{name}\"");
    let cases = [
        ("an unknown escape", "[Global]\nuser = \"DOMAIN\\admin\"\n", "2:16: unknown escape sequence".to_owned()),
        ("two of them", "[Global]\nuser = \"D\\admin\\x\"\n", "2:11: unknown escape sequence (and 1 more errors)".to_owned()),
        ("a bare backslash", "[Global]\nuser = D\\admin\n", "2:8: unquoted '\\' must be followed by new line or double quote".to_owned()),
        ("an open quote", "[Global]\nuser = \"abc\n", "2:8: string not terminated".to_owned()),
        ("an empty count", "[Global]\nsoap-roundtrip-count = \"\"\n", variable("failed to parse \"\" as uint: EOF", "soap-roundtrip-count")),
        ("no count", "[Global]\nsoap-roundtrip-count = x\n", variable("failed to parse \"x\" as uint: expected integer", "soap-roundtrip-count")),
        ("half a count", "[Global]\nsoap-roundtrip-count = 5x\n", variable("failed to parse \"5x\" as uint: extra characters \"x\"", "soap-roundtrip-count")),
        ("no flag", "[Global]\ninsecure-flag = maybe\n", variable("failed to parse bool `maybe`", "insecure-flag")),
        ("a name alone for text", "[Global]\nuser\n", variable("blank value not supported for type", "user")),
        ("no header", "user = a\n", "1:1: expected section header".to_owned()),
        ("an open header", "[Global\nuser = a\n", "1:8: expected subsection name or right bracket".to_owned()),
        ("text behind a header", "[Global] x\n", "1:10: expected EOL, EOF, or comment".to_owned()),
        ("an empty subsection", "[VirtualCenter \"\"]\n", "1:16: empty subsection name".to_owned()),
        ("no equals sign", "[Global]\nuser a\n", "2:6: expected '='".to_owned()),
        ("a number as name", "[Global]\n1 = 2\n", "2:1: illegal character U+0031 '1'".to_owned()),
        ("a syntax error before a vCenter's value", "[VirtualCenter \"v\"]\nsoap-roundtrip-count = x\n[\n", "3:2: expected section name".to_owned()),
        (
            "a word for the port",
            "[Global]\nport = abc\n",
            "can not create CPIConfig, invalid global port parameter: can not parse vCenter port from ini config: strconv.Atoi: parsing \"abc\": invalid syntax".to_owned(),
        ),
        ("a negative port", "[VirtualCenter \"v\"]\nport = -5\n", "invalid port parameter for vc v: parsed int bigger than zero".to_owned()),
    ];
    for (what, source, expected) in cases {
        for generation in BOTH {
            assert_refused(what, source, generation, &format!("ini config parsing failed: {expected}"));
        }
    }
}
