//! Reading the YAML form as the operator's two YAML libraries do.
//!
//! Up to 4.22 yaml.v2 decodes straight into the structures: exact keys, a repeated key adds to what the first one gave, null
//! empties. From 4.23 the text becomes JSON first: keys in any case, only the last of repeated keys counts, null changes
//! nothing, and a number or `no` in a place for text is refused, except under `nodes`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::nodes::{Node, first_document};
use super::scalar::Meaning;
use super::schema::{Field, LABELS, Section, Shape, VCENTER};
use super::{Config, Generation};

/// What the YAML reader did not like.
#[derive(Debug)]
pub struct Refused(pub String);

pub fn read(text: &str, generation: Generation) -> Result<Config, Refused> {
    let reader = Reader { through_json: generation == Generation::Next };
    let mut config = Config::default();
    let document = first_document(text)?;
    if document.is_null() {
        return Ok(config);
    }
    for (key, node) in reader.entries(&document)? {
        match reader.known(&key, ["global", "vcenter", "labels", "nodes"]) {
            Some("global") => reader.section(&mut config.global, node, false)?,
            Some("vcenter") => reader.vcenters(&mut config.vcenter, node)?,
            Some("labels") => reader.labels(&mut config, node)?,
            Some("nodes") => reader.section(&mut config.nodes, node, true)?,
            _ => {}
        }
    }
    Ok(config)
}

struct Reader {
    through_json: bool,
}

impl Reader {
    /// Keys as text with their values, in the order in which they take effect.
    fn entries<'n>(&self, node: &'n Node) -> Result<Vec<(String, &'n Node)>, Refused> {
        let Node::Map(pairs) = node else { return Err(Refused(format!("a mapping was expected, not {}", kind(node)))) };
        let mut entries = Vec::new();
        for (key, value) in pairs {
            entries.push((self.key(key)?, value));
        }
        if self.through_json {
            entries = entries.into_iter().collect::<BTreeMap<_, _>>().into_iter().collect();
        }
        Ok(entries)
    }

    fn key(&self, node: &Node) -> Result<String, Refused> {
        let Node::Scalar { text, .. } = node else { return Err(Refused("a key must be a scalar".to_owned())) };
        match node.meaning() {
            Some(Meaning::Null) if self.through_json => Err(Refused("null cannot be a key".to_owned())),
            Some(Meaning::Null) => Ok(String::new()),
            Some(meaning) if self.through_json => Ok(spelled(meaning).unwrap_or_else(|| text.clone())),
            _ => Ok(text.clone()),
        }
    }

    fn known<const N: usize>(&self, key: &str, names: [&'static str; N]) -> Option<&'static str> {
        names.into_iter().find(|name| self.same(name, key))
    }

    fn same(&self, name: &str, key: &str) -> bool {
        name == key || self.through_json && name.eq_ignore_ascii_case(key)
    }

    fn section(&self, section: &mut Section, node: &Node, coerce: bool) -> Result<(), Refused> {
        if node.is_null() {
            if !self.through_json {
                *section = Section::new(section.fields);
            }
            return Ok(());
        }
        for (key, value) in self.entries(node)? {
            let Some(field) = section.fields.iter().find(|field| self.same(field.yaml, &key)) else { continue };
            if let Some(value) = self.value(field, value, coerce)? {
                section.set(field.yaml, value);
            }
        }
        Ok(())
    }

    fn labels(&self, config: &mut Config, node: &Node) -> Result<(), Refused> {
        if node.is_null() {
            config.labels = None;
            return Ok(());
        }
        let mut labels = config.labels.take().unwrap_or_else(|| Section::new(LABELS));
        self.section(&mut labels, node, false)?;
        config.labels = Some(labels);
        Ok(())
    }

    fn vcenters(&self, vcenters: &mut Option<BTreeMap<String, Option<Section>>>, node: &Node) -> Result<(), Refused> {
        if node.is_null() {
            *vcenters = None;
            return Ok(());
        }
        let map = vcenters.get_or_insert_default();
        for (name, node) in self.entries(node)? {
            let mut section = Section::new(VCENTER);
            self.section(&mut section, node, false)?;
            // yaml.v2 knows fewer words for "nothing" where it fills a pointer.
            let shouted = matches!(node, Node::Scalar { text, .. } if text == "Null" || text == "NULL");
            let absent = node.is_null() && (self.through_json || !shouted);
            map.insert(name, (!absent).then_some(section));
        }
        Ok(())
    }

    /// The value a field takes, or nothing where the node leaves it as it is.
    fn value(&self, field: &Field, node: &Node, coerce: bool) -> Result<Option<Value>, Refused> {
        if node.is_null() {
            let emptied = !self.through_json || field.shape == Shape::List;
            return Ok(emptied.then_some(Value::Null));
        }
        let refused = || Refused(format!("{} cannot be {}", field.yaml, kind(node)));
        let value = match (field.shape, node, node.meaning()) {
            (Shape::Text, Node::Scalar { .. }, _) => json!(self.text(node, coerce).ok_or_else(refused)?),
            (Shape::Flag, _, Some(Meaning::Bool(flag))) => json!(flag),
            (Shape::Number, _, Some(Meaning::Int(number))) => json!(u64::try_from(number).map_err(|_out_of_range| refused())?),
            (Shape::Number, _, Some(Meaning::Float(number))) => json!(self.whole(number).ok_or_else(refused)?),
            (Shape::List, Node::List(items), _) => {
                json!(items.iter().map(|item| self.text(item, false).ok_or_else(refused)).collect::<Result<Vec<_>, _>>()?)
            }
            _ => return Err(refused()),
        };
        Ok(Some(value))
    }

    fn text(&self, node: &Node, coerce: bool) -> Option<String> {
        let Node::Scalar { text, .. } = node else { return None };
        match node.meaning()? {
            Meaning::Null => Some(String::new()),
            Meaning::Text => Some(text.clone()),
            _ if !self.through_json => Some(text.clone()),
            meaning if coerce => spelled(meaning),
            _ => None,
        }
    }

    /// A float in a number's place: yaml.v2 cuts it off, JSON wants it whole.
    fn whole(&self, number: f64) -> Option<u64> {
        if !(0.0..1e19).contains(&number) || self.through_json && number.fract() != 0.0 {
            return None;
        }
        format!("{:.0}", number.trunc()).parse().ok()
    }
}

/// How a value that is not text is spelled where text is wanted.
fn spelled(meaning: Meaning) -> Option<String> {
    match meaning {
        Meaning::Bool(flag) => Some(flag.to_string()),
        Meaning::Int(number) => Some(number.to_string()),
        #[expect(clippy::cast_possible_truncation, reason = "the library prints floats in single precision")]
        Meaning::Float(number) => Some((number as f32).to_string()),
        Meaning::Null | Meaning::Text => None,
    }
}

fn kind(node: &Node) -> &'static str {
    match node {
        Node::Scalar { .. } => "a scalar",
        Node::List(_) => "a list",
        Node::Map(_) => "a mapping",
    }
}
