//! One thing that is held: where it stands, what it was, and what it is made while the migration lasts. From these three and what
//! is there now follows what to write, on the way in and on the way out; nothing here talks to a cluster.

use kube::api::DynamicObject;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use vmi_kit::Kind;

/// One thing that is held.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Held {
    /// The object's kind.
    pub kind: String,
    /// The object's namespace, if it has one.
    pub namespace: String,
    /// The object's name.
    pub name: String,
    /// Where in the object.
    pub place: Place,
    /// What was there before; nothing where there was nothing.
    pub was: Option<Value>,
    /// What is there while it is held; nothing where it is taken out.
    pub ours: Option<Value>,
    /// The outermost of the objects around it that were not there before either: it leaves with what is in it.
    pub made: Option<String>,
}

/// Where in an object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Place {
    /// A field.
    Field(String),
    /// The entry of a list that has these fields, and the index it had.
    Entry {
        /// The list.
        list: String,
        /// What tells the entry from others.
        by: Map<String, Value>,
        /// Where it was; at the end, where it was not.
        index: usize,
    },
}

/// What has become of something that is held.
#[derive(Clone, Debug, PartialEq)]
pub enum State {
    /// As it was before.
    Was,
    /// As we make it.
    Ours,
    /// As somebody else made it.
    Changed(Option<Value>),
    /// The object is not there.
    Gone,
}

impl Held {
    /// A field of the object, to be made `ours`; nothing where it is so already.
    pub fn field(kind: Kind, object: &DynamicObject, pointer: &str, ours: Option<Value>) -> Option<Self> {
        let made = first_missing(object, pointer).filter(|missing| missing != pointer);
        Self::at(kind, object, Place::Field(pointer.to_owned()), ours, made)
    }

    /// An entry of a list of the object, to be made `ours`; nothing where it is so already.
    pub fn entry(kind: Kind, object: &DynamicObject, list: &str, by: Map<String, Value>, ours: Option<Value>) -> Option<Self> {
        let entries = found(object, list);
        let entries = entries.as_ref().and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let index = position(entries, &by).unwrap_or(entries.len());
        Self::at(kind, object, Place::Entry { list: list.to_owned(), by, index }, ours, first_missing(object, list))
    }

    fn at(kind: Kind, object: &DynamicObject, place: Place, ours: Option<Value>, made: Option<String>) -> Option<Self> {
        let was = place.find(object);
        let held = Self {
            kind: kind.kind.to_owned(),
            namespace: object.metadata.namespace.clone().unwrap_or_default(),
            name: object.metadata.name.clone().unwrap_or_default(),
            place,
            was,
            ours,
            made,
        };
        (held.was != held.ours).then_some(held)
    }

    /// What has become of it.
    pub fn state(&self, object: Option<&DynamicObject>) -> State {
        let Some(object) = object else { return State::Gone };
        let now = self.place.find(object);
        if now == self.ours {
            State::Ours
        } else if now == self.was {
            State::Was
        } else {
            State::Changed(now)
        }
    }

    /// The object's kind and name, as a user would look for it.
    pub fn object(&self) -> String {
        let slash = if self.namespace.is_empty() { "" } else { "/" };
        format!("{} {}{slash}{}", self.kind, self.namespace, self.name)
    }

    /// What is changed to hold it.
    pub fn taking(&self) -> String {
        self.change(self.was.as_ref(), self.ours.as_ref())
    }

    /// What is changed to let it go.
    pub fn releasing(&self) -> String {
        self.change(self.ours.as_ref(), self.was.as_ref())
    }

    fn change(&self, from: Option<&Value>, to: Option<&Value>) -> String {
        let label = self.label();
        match (from, to) {
            (None, Some(to)) if self.is_entry() => format!("{}: {label} added ({})", self.object(), rest(to, &self.place)),
            (Some(_), None) if self.is_entry() => format!("{}: {label} taken out", self.object()),
            (from, to) => format!("{}: {label} from {} to {}", self.object(), show(from), show(to)),
        }
    }

    /// Where it is and what is found there, for whoever has to decide about it.
    pub fn conflict(&self, found: Option<&Value>) -> String {
        format!("{}: {} is {}, neither what it was nor what it was made; left so", self.object(), self.label(), show(found))
    }

    fn is_entry(&self) -> bool {
        matches!(self.place, Place::Entry { .. })
    }

    /// What it is called within the object.
    pub fn label(&self) -> String {
        match &self.place {
            Place::Field(pointer) => pointer.trim_start_matches("/spec/").replace('/', ".").replace("~1", "/"),
            Place::Entry { by, .. } => {
                let name = ["message", "rule", "path", "name"].iter().find_map(|key| by.get(*key)?.as_str());
                format!("{:?}", name.unwrap_or_default())
            }
        }
    }

    /// The JSON patch that makes it `value`, on a copy of the whole object.
    pub fn write(&self, document: &Value, value: Option<&Value>) -> Vec<Value> {
        let add = |pointer: &str, value: Value| {
            let (path, value) = wrapped(document, pointer, value);
            json!({"op": "add", "path": path, "value": value})
        };
        let remove = |pointer: &str| json!({"op": "remove", "path": self.with_what_was_made(document, pointer)});
        match (&self.place, value) {
            (Place::Field(pointer), Some(value)) => vec![add(pointer, value.clone())],
            (Place::Field(pointer), None) if document.pointer(pointer).is_some() => vec![remove(pointer)],
            (Place::Field(_), None) => Vec::new(),
            (Place::Entry { list, by, index }, value) => {
                let entries = document.pointer(list).and_then(Value::as_array);
                let at = entries.and_then(|entries| position(entries, by));
                match (entries, at, value) {
                    (None, _, Some(value)) => vec![add(list, json!([value]))],
                    (Some(entries), None, Some(value)) => {
                        vec![json!({"op": "add", "path": format!("{list}/{}", index.min(&entries.len())), "value": value})]
                    }
                    (_, Some(at), Some(value)) => vec![json!({"op": "replace", "path": format!("{list}/{at}"), "value": value})],
                    (Some(entries), Some(_), None) if entries.len() == 1 && self.made.is_some() => vec![remove(list)],
                    (_, Some(at), None) => vec![json!({"op": "remove", "path": format!("{list}/{at}")})],
                    (_, None, None) => Vec::new(),
                }
            }
        }
    }

    /// The pointer, or that of the outermost object around it that was made for it and would be left empty.
    fn with_what_was_made(&self, document: &Value, pointer: &str) -> String {
        let Some(made) = &self.made else { return pointer.to_owned() };
        let mut pointer = pointer;
        while pointer.len() > made.len() {
            let Some((parent, _)) = pointer.rsplit_once('/') else { break };
            if document.pointer(parent).and_then(Value::as_object).is_none_or(|fields| fields.len() > 1) {
                break;
            }
            pointer = parent;
        }
        pointer.to_owned()
    }
}

impl Place {
    fn find(&self, object: &DynamicObject) -> Option<Value> {
        match self {
            Self::Field(pointer) => found(object, pointer),
            Self::Entry { list, by, .. } => {
                let entries = found(object, list)?;
                let entries = entries.as_array()?;
                entries.get(position(entries, by)?).cloned()
            }
        }
    }
}

fn position(entries: &[Value], by: &Map<String, Value>) -> Option<usize> {
    entries.iter().position(|entry| by.iter().all(|(key, value)| entry.get(key) == Some(value)))
}

const ANNOTATIONS: &str = "/metadata/annotations";

/// What the object has there. Of the metadata only annotations are held.
fn found(object: &DynamicObject, pointer: &str) -> Option<Value> {
    let Some(annotation) = pointer.strip_prefix(ANNOTATIONS) else { return object.data.pointer(pointer).cloned() };
    let annotations = object.metadata.annotations.as_ref()?;
    match annotation.strip_prefix('/') {
        Some(name) => annotations.get(&unescaped(name)).map(|text| json!(text)),
        None => Some(json!(annotations)),
    }
}

/// The outermost part of the pointer that is not there.
fn first_missing(object: &DynamicObject, pointer: &str) -> Option<String> {
    let start = if pointer.starts_with(ANNOTATIONS) { ANNOTATIONS.len() } else { 1 };
    let ends = pointer.char_indices().skip(start).filter(|(_, letter)| *letter == '/').map(|(at, _)| at).chain([pointer.len()]);
    ends.map(|end| &pointer[..end]).find(|part| found(object, part).is_none()).map(str::to_owned)
}

/// Where to add so that the value stands at the pointer: what is missing around it comes with it.
fn wrapped(document: &Value, pointer: &str, value: Value) -> (String, Value) {
    let (mut pointer, mut value) = (pointer, value);
    while let Some((parent, name)) = pointer.rsplit_once('/') {
        if document.pointer(parent).is_some_and(Value::is_object) {
            break;
        }
        value = json!({unescaped(name): value});
        pointer = parent;
    }
    (pointer.to_owned(), value)
}

/// A part of a pointer as it is called in the object.
pub fn unescaped(name: &str) -> String {
    name.replace("~1", "/").replace("~0", "~")
}

fn show(value: Option<&Value>) -> String {
    value.map_or_else(|| "absent".to_owned(), |value| vmi_kit::text::cut(&value.to_string(), 80))
}

/// The entry without what names it.
fn rest(entry: &Value, place: &Place) -> String {
    let Place::Entry { by, .. } = place else { return String::new() };
    let fields = entry.as_object().into_iter().flatten().filter(|(key, _)| !by.contains_key(*key));
    fields.map(|(key, value)| format!("{key} {}", show(Some(value)))).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
#[path = "held_tests.rs"]
mod tests;
