//! A change as data: one write and what it changes in words. A step that plans lists them all; one that acts makes the first.

use std::sync::Arc;

use kube::api::DynamicObject;
use serde_json::Value;
use vmi_kit::failure::Stop;
use vmi_kit::kind::Kind;

use crate::step::Seen;
use crate::writer::Writer;

/// One write, and what it changes in words.
pub struct Change {
    /// The write.
    pub act: Act,
    /// All that it changes, or, where it only saves, all that will be changed next.
    pub words: Vec<String>,
}

/// One write.
pub enum Act {
    /// Saves an original.
    Save(String, Value),
    /// Patches an object, if it is still as it was seen.
    Patch(Kind, Arc<DynamicObject>, Value),
    /// Deletes an object.
    Delete(Kind, Arc<DynamicObject>),
    /// Creates an object.
    Create(Kind, Value),
}

impl Change {
    /// Writes it.
    pub async fn make(self, writer: &mut Writer<'_>) -> Result<(), Stop> {
        let what = self.words.join("; ");
        match self.act {
            Act::Save(key, value) => writer.save(&key, &value).await,
            Act::Patch(kind, object, operations) => writer.patch(kind, &object, operations, &what).await,
            Act::Delete(kind, object) => writer.delete(kind, &object, &what).await,
            Act::Create(kind, object) => writer.create(kind, object, &what).await,
        }
    }
}

/// What is left to be changed, as a step reports it; none where nothing is.
pub fn todo(changes: Vec<Change>) -> Option<Seen<Change>> {
    let words = changes.iter().flat_map(|change| change.words.clone()).collect();
    changes.into_iter().next().map(|act| Seen::Todo { act, changes: words })
}
