//! The vSphere cloud provider configuration as OpenShift's cloud controller manager operator reads, changes and writes it.
//!
//! Its loader changed between releases, and with it which mistakes it forgives: [`Generation`] says whose eyes are used.

mod gcfg;
mod ini;
mod nodes;
mod scalar;
mod schema;
mod transform;
mod yaml;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

pub use schema::Section;
use schema::{GLOBAL, LABELS, NODES};
pub use transform::{Panic, transform};

/// The releases between which the operator's behaviour differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// Up to 4.17: a panic in the transformer ends the process.
    V4_17,
    /// 4.18 to 4.22: the panic is caught and logged, entries that only the source knows survive.
    V4_21,
    /// From 4.23: library-go's loader, the list of vCenters is Infrastructure's alone.
    Next,
}

#[derive(Debug, thiserror::Error)]
#[error("{0:?} is no generation the lab knows: use 4.17, 4.21 or next")]
pub struct UnknownGeneration(String);

impl std::str::FromStr for Generation {
    type Err = UnknownGeneration;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "4.17" => Ok(Generation::V4_17),
            "4.21" => Ok(Generation::V4_21),
            "next" => Ok(Generation::Next),
            other => Err(UnknownGeneration(other.to_owned())),
        }
    }
}

/// Why a configuration could not be read or changed, in the words of the real operator.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("invalid platform, expected to be VSphere")]
    NotVSphere,
    #[error("failed to read the cloud.conf: {0}")]
    Unreadable(#[from] Unreadable),
    #[error("panic: {0}")]
    Panic(Panic),
    #[error("cannot write the transformed cloud.conf: {0}")]
    Print(#[from] crate::yaml::Error),
}

#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    #[error("vSphere config is empty")]
    Empty,
    /// The YAML reader's complaint is only logged; what the reader of the log sees is what the INI reader made of the same text.
    #[error("ini config parsing failed: {0}")]
    Ini(#[from] ini::Error),
}

/// A configuration as the loader understands it.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    pub global: Section,
    /// Absent and empty differ: writing into an absent map is a panic. So do an entry without body and an empty one.
    pub vcenter: Option<BTreeMap<String, Option<Section>>>,
    pub labels: Option<Section>,
    pub nodes: Section,
}

impl Default for Config {
    fn default() -> Self {
        Config { global: Section::new(GLOBAL), vcenter: None, labels: None, nodes: Section::new(NODES) }
    }
}

impl Config {
    /// Reads YAML or, whatever is wrong with it as YAML, INI.
    pub fn read(text: &str, generation: Generation) -> Result<Config, Unreadable> {
        if text.is_empty() {
            return Err(Unreadable::Empty);
        }
        match yaml::read(text, generation) {
            Ok(config) => Ok(config),
            Err(reason) => {
                tracing::debug!(reason = reason.0, "Parsing yaml config failed, fallback to ini");
                Ok(ini::read(text)?)
            }
        }
    }

    fn labels_mut(&mut self) -> &mut Section {
        self.labels.get_or_insert_with(|| Section::new(LABELS))
    }

    /// The configuration as YAML: only what is set, as the operator writes it.
    pub fn print(&self, generation: Generation) -> Result<String, crate::yaml::Error> {
        let mut document = Map::new();
        document.insert("global".to_owned(), self.global.to_json());
        if let Some(vcenters) = self.vcenter.as_ref().filter(|vcenters| !vcenters.is_empty()) {
            let entries = vcenters.iter().map(|(name, entry)| (name.clone(), entry.as_ref().map_or(Value::Null, Section::to_json)));
            document.insert("vcenter".to_owned(), Value::Object(entries.collect()));
        }
        let labels = self.labels.as_ref().map_or(json!(null), Section::to_json);
        // The newer operator holds the labels by a pointer: set but empty, they are written all the same.
        if !labels.is_null() && (generation == Generation::Next || labels != json!({})) {
            document.insert("labels".to_owned(), labels);
        }
        let nodes = self.nodes.to_json();
        if nodes != json!({}) {
            document.insert("nodes".to_owned(), nodes);
        }
        crate::yaml::print(&Value::Object(document))
    }
}
