//! The keys each section may have, by their YAML and INI names. Everything else in a file is ignored by the loaders.

use std::fmt;

use serde_json::{Map, Value, json};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Text,
    Number,
    Flag,
    List,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Field {
    pub yaml: &'static str,
    pub ini: &'static str,
    pub shape: Shape,
}

const fn field(yaml: &'static str, ini: &'static str, shape: Shape) -> Field {
    Field { yaml, ini, shape }
}

pub const GLOBAL: &[Field] = &[
    field("user", "user", Shape::Text),
    field("password", "password", Shape::Text),
    field("server", "server", Shape::Text),
    field("port", "port", Shape::Number),
    field("insecureFlag", "insecure-flag", Shape::Flag),
    field("datacenters", "datacenters", Shape::List),
    field("soapRoundtripCount", "soap-roundtrip-count", Shape::Number),
    field("caFile", "ca-file", Shape::Text),
    field("thumbprint", "thumbprint", Shape::Text),
    field("secretName", "secret-name", Shape::Text),
    field("secretNamespace", "secret-namespace", Shape::Text),
    field("secretsDirectory", "secrets-directory", Shape::Text),
    field("apiDisable", "api-disable", Shape::Flag),
    field("apiBinding", "api-binding", Shape::Text),
    field("ipFamily", "ip-family", Shape::List),
];

pub const VCENTER: &[Field] = &[
    field("user", "user", Shape::Text),
    field("password", "password", Shape::Text),
    field("server", "server", Shape::Text),
    field("port", "port", Shape::Number),
    field("insecureFlag", "insecure-flag", Shape::Flag),
    field("datacenters", "datacenters", Shape::List),
    field("soapRoundtripCount", "soap-roundtrip-count", Shape::Number),
    field("caFile", "ca-file", Shape::Text),
    field("thumbprint", "thumbprint", Shape::Text),
    field("secretName", "secret-name", Shape::Text),
    field("secretNamespace", "secret-namespace", Shape::Text),
    field("ipFamily", "ip-family", Shape::List),
];

pub const LABELS: &[Field] = &[field("zone", "zone", Shape::Text), field("region", "region", Shape::Text)];

pub const NODES: &[Field] = &[
    field("internalNetworkSubnetCidr", "internal-network-subnet-cidr", Shape::Text),
    field("externalNetworkSubnetCidr", "external-network-subnet-cidr", Shape::Text),
    field("internalVmNetworkName", "internal-vm-network-name", Shape::Text),
    field("externalVmNetworkName", "external-vm-network-name", Shape::Text),
    field("excludeInternalNetworkSubnetCidr", "exclude-internal-network-subnet-cidr", Shape::Text),
    field("excludeExternalNetworkSubnetCidr", "exclude-external-network-subnet-cidr", Shape::Text),
];

/// The values of one section, by YAML name.
#[derive(Clone, PartialEq)]
pub struct Section {
    pub(super) fields: &'static [Field],
    values: Map<String, Value>,
}

impl Section {
    pub(super) fn new(fields: &'static [Field]) -> Self {
        Section { fields, values: Map::new() }
    }

    pub fn get(&self, yaml: &str) -> &Value {
        self.values.get(yaml).unwrap_or(&Value::Null)
    }

    pub(super) fn set(&mut self, yaml: &str, value: impl Into<Value>) {
        self.values.insert(yaml.to_owned(), value.into());
    }

    /// The values of a list.
    pub fn list(&self, yaml: &str) -> Vec<String> {
        self.get(yaml).as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    }

    /// What is set, in the order of the fields; a zero counts as not set, as it does for the loaders.
    pub fn to_json(&self) -> Value {
        let set = |value: &Value| ![json!(null), json!(""), json!(0), json!(false), json!([])].contains(value);
        let pairs = self.fields.iter().filter(|field| set(self.get(field.yaml)));
        Value::Object(pairs.map(|field| (field.yaml.to_owned(), self.get(field.yaml).clone())).collect())
    }
}

impl fmt::Debug for Section {
    /// Everything but the password.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_map().entries(self.values.iter().filter(|(name, _)| *name != "password")).finish()
    }
}
