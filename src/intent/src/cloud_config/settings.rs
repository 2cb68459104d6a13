//! The keys the loader knows, by both of their names, and a configuration as a list of them: the common ground of INI and YAML.

use std::collections::BTreeMap;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Number,
    Flag,
    List,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Key {
    pub yaml: &'static str,
    pub ini: &'static str,
    pub kind: Kind,
}

const fn key(yaml: &'static str, ini: &'static str, kind: Kind) -> Key {
    Key { yaml, ini, kind }
}

/// The last three exist in the global section only.
const GLOBAL: [Key; 15] = [
    key("user", "user", Kind::Text),
    key("password", "password", Kind::Text),
    key("server", "server", Kind::Text),
    key("port", "port", Kind::Number),
    key("insecureFlag", "insecure-flag", Kind::Flag),
    key("datacenters", "datacenters", Kind::List),
    key("soapRoundtripCount", "soap-roundtrip-count", Kind::Number),
    key("caFile", "ca-file", Kind::Text),
    key("thumbprint", "thumbprint", Kind::Text),
    key("secretName", "secret-name", Kind::Text),
    key("secretNamespace", "secret-namespace", Kind::Text),
    key("ipFamily", "ip-family", Kind::List),
    key("secretsDirectory", "secrets-directory", Kind::Text),
    key("apiDisable", "api-disable", Kind::Flag),
    key("apiBinding", "api-binding", Kind::Text),
];

const LABELS: [Key; 2] = [key("zone", "zone", Kind::Text), key("region", "region", Kind::Text)];

const NODES: [Key; 6] = [
    key("internalNetworkSubnetCidr", "internal-network-subnet-cidr", Kind::Text),
    key("externalNetworkSubnetCidr", "external-network-subnet-cidr", Kind::Text),
    key("internalVmNetworkName", "internal-vm-network-name", Kind::Text),
    key("externalVmNetworkName", "external-vm-network-name", Kind::Text),
    key("excludeInternalNetworkSubnetCidr", "exclude-internal-network-subnet-cidr", Kind::Text),
    key("excludeExternalNetworkSubnetCidr", "exclude-external-network-subnet-cidr", Kind::Text),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Global,
    Vcenter,
    Labels,
    Nodes,
}

impl Place {
    pub fn keys(self) -> &'static [Key] {
        match self {
            Self::Global => &GLOBAL,
            Self::Vcenter => &GLOBAL[..12],
            Self::Labels => &LABELS,
            Self::Nodes => &NODES,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Text(String),
    Number(u64),
    Flag(bool),
    List(Vec<String>),
}

impl Value {
    /// To the loader an empty value is one that is not there.
    fn is_unset(&self) -> bool {
        match self {
            Self::Text(text) => text.is_empty(),
            Self::Number(number) => *number == 0,
            Self::Flag(flag) => !flag,
            Self::List(list) => list.is_empty(),
        }
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct Section {
    pub line: usize,
    settings: BTreeMap<&'static str, (Value, usize)>,
}

impl Section {
    pub fn new(line: usize) -> Self {
        Self { line, ..Self::default() }
    }

    /// The last one written wins, in both formats.
    pub fn set(&mut self, key: &Key, value: Value, line: usize) {
        if value.is_unset() {
            self.settings.remove(key.yaml);
        } else {
            self.settings.insert(key.yaml, (value, line));
        }
    }

    pub fn clear(&mut self) {
        self.settings.clear();
    }

    pub fn get(&self, key: &str) -> Option<&Value> {
        self.settings.get(key).map(|(value, _)| value)
    }

    pub fn line_of(&self, key: &str) -> Option<usize> {
        self.settings.get(key).map(|(_, line)| *line)
    }

    pub fn text(&self, key: &str) -> Option<&str> {
        match self.get(key) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    pub fn number(&self, key: &str) -> Option<u64> {
        match self.get(key) {
            Some(Value::Number(number)) => Some(*number),
            _ => None,
        }
    }

    pub fn flag(&self, key: &str) -> bool {
        self.get(key) == Some(&Value::Flag(true))
    }

    pub fn list(&self, key: &str) -> Option<&[String]> {
        match self.get(key) {
            Some(Value::List(list)) => Some(list),
            _ => None,
        }
    }

    pub fn without(&self, key: &str) -> Self {
        let mut rest = self.clone();
        rest.settings.remove(key);
        rest
    }

    pub fn with(&self, key: &'static str, value: Value) -> Self {
        let mut more = self.clone();
        more.settings.insert(key, (value, 0));
        more
    }

    /// The same settings, wherever in the text they stand.
    pub fn same(&self, other: &Self) -> bool {
        self.settings.iter().map(|(key, (value, _))| (key, value)).eq(other.settings.iter().map(|(key, (value, _))| (key, value)))
    }
}

/// One vCenter by its name in the text, which is not always its server.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub name: String,
    pub section: Section,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Settings {
    pub global: Section,
    pub vcenters: Vec<Entry>,
    pub labels: Section,
    pub nodes: Section,
}
