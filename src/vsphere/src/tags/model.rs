//! Categories and tags as values, and what makes an existing category unfit.

use serde_json::Value;

use crate::{
    error::{Fault, Result},
    reference::Kind,
};

/// How many tags of a category one object may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cardinality {
    /// At most one.
    Single,
    /// Any number.
    Multiple,
}

impl Cardinality {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Single => "SINGLE",
            Self::Multiple => "MULTIPLE",
        }
    }
}

/// What a category should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CategorySpec {
    /// Its name.
    pub name: String,
    /// Shown to people.
    pub description: String,
    /// How many of its tags an object may have.
    pub cardinality: Cardinality,
    /// Which types its tags can be attached to; empty means all.
    pub types: Vec<Kind>,
}

/// A category as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Category {
    /// Its URN, valid on this vCenter only.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Shown to people.
    pub description: String,
    /// How many of its tags an object may have.
    pub cardinality: Cardinality,
    /// Which types its tags can be attached to, without the prefix some versions write; empty means all.
    pub types: Vec<String>,
}

impl Category {
    pub(crate) fn read(value: &Value) -> Result<Self, Fault> {
        Ok(Self {
            id: text(value, "id")?,
            name: text(value, "name")?,
            description: value["description"].as_str().unwrap_or_default().to_owned(),
            cardinality: if value["cardinality"] == "SINGLE" { Cardinality::Single } else { Cardinality::Multiple },
            types: texts(&value["associable_types"]).into_iter().map(|name| bare_type(&name).to_owned()).collect(),
        })
    }

    /// Whether its tags can be attached to objects of this type.
    #[must_use]
    pub fn allows(&self, kind: &Kind) -> bool {
        self.types.is_empty() || self.types.iter().any(|name| name == kind.as_str())
    }

    pub(super) fn serves(&self, spec: &CategorySpec) -> Result<(), Fault> {
        let missing: Vec<_> = spec.types.iter().filter(|kind| !self.allows(kind)).map(Kind::as_str).collect();
        let difference = if self.cardinality != spec.cardinality {
            format!("its cardinality is {} instead of {}", self.cardinality.as_str(), spec.cardinality.as_str())
        } else if spec.types.is_empty() && !self.types.is_empty() {
            format!("its tags fit only {}", self.types.join(", "))
        } else if !missing.is_empty() {
            format!("its tags cannot be attached to {}", missing.join(", "))
        } else {
            return Ok(());
        };
        Err(Fault::CategoryMismatch { category: self.name.clone(), difference })
    }
}

/// Some versions write types with this prefix, some without, some mixed.
pub(super) fn bare_type(name: &str) -> &str {
    name.strip_prefix("urn:vim25:").unwrap_or(name)
}

/// A tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tag {
    /// Its URN, valid on this vCenter only.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The URN of its category.
    pub category: String,
}

impl Tag {
    pub(crate) fn read(value: &Value) -> Result<Self, Fault> {
        Ok(Self { id: text(value, "id")?, name: text(value, "name")?, category: text(value, "category_id")? })
    }
}

fn text(value: &Value, field: &str) -> Result<String, Fault> {
    value[field].as_str().map(str::to_owned).ok_or_else(|| Fault::Malformed(format!("the answer has no {field}")))
}

/// A list, which servers write as `null` when it is empty.
pub(super) fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}
