//! A YAML document as a tree that still knows how each scalar was written, with aliases and merge keys resolved.

use std::collections::HashMap;

use serde_saphyr::granit_parser::{Event, Parser, ScalarStyle};

use super::scalar::{Meaning, meaning};
use super::yaml::Refused;

#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    Scalar {
        text: String,
        /// Neither quoted nor tagged as text: its words and numbers have a meaning.
        plain: bool,
    },
    List(Vec<Node>),
    /// Pairs in the order of the file; a key may come twice.
    Map(Vec<(Node, Node)>),
}

impl Node {
    pub fn meaning(&self) -> Option<Meaning> {
        match self {
            Node::Scalar { text, plain: true } => Some(meaning(text)),
            Node::Scalar { plain: false, .. } => Some(Meaning::Text),
            _ => None,
        }
    }

    pub fn is_null(&self) -> bool {
        self.meaning() == Some(Meaning::Null)
    }
}

/// The first document of a text; an empty one is null.
pub fn first_document(text: &str) -> Result<Node, Refused> {
    let mut tree = Tree { events: Parser::new_from_str(text), anchors: HashMap::new() };
    loop {
        match tree.event()? {
            Event::StreamEnd | Event::DocumentEnd => return Ok(Node::Scalar { text: String::new(), plain: true }),
            event => {
                if let Some(node) = tree.node(event)? {
                    return Ok(node);
                }
            }
        }
    }
}

struct Tree<'t> {
    events: Parser<'t, serde_saphyr::granit_parser::StrInput<'t>>,
    anchors: HashMap<usize, Node>,
}

impl<'t> Tree<'t> {
    fn event(&mut self) -> Result<Event<'t>, Refused> {
        match self.events.next_event() {
            Some(Ok((event, _))) => Ok(event),
            Some(Err(error)) => Err(Refused(error.to_string())),
            None => Ok(Event::StreamEnd),
        }
    }

    /// The node that begins with `event`, or nothing if it is no node's beginning (a comment, a document's start).
    fn node(&mut self, event: Event<'t>) -> Result<Option<Node>, Refused> {
        let (anchor, node) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let tagged_text = tag.is_some_and(|tag| tag.is_yaml_core_schema_tag("str") || tag.suffix() == "!");
                (anchor, Node::Scalar { text: text.into_owned(), plain: style == ScalarStyle::Plain && !tagged_text })
            }
            Event::SequenceStart(_, anchor, _) => (anchor, Node::List(self.until(&Event::SequenceEnd)?)),
            Event::MappingStart(_, anchor, _) => {
                let mut pairs = Vec::new();
                let mut nodes = self.until(&Event::MappingEnd)?.into_iter();
                while let (Some(key), Some(value)) = (nodes.next(), nodes.next()) {
                    if matches!(&key, Node::Scalar { text, plain: true } if text == "<<") {
                        merge(value, &mut pairs)?;
                    } else {
                        pairs.push((key, value));
                    }
                }
                (anchor, Node::Map(pairs))
            }
            Event::Alias(anchor) => match self.anchors.get(&anchor) {
                Some(node) => return Ok(Some(node.clone())),
                None => return Err(Refused("an anchor's value contains itself".to_owned())),
            },
            _ => return Ok(None),
        };
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        Ok(Some(node))
    }

    fn until(&mut self, end: &Event<'t>) -> Result<Vec<Node>, Refused> {
        let mut nodes = Vec::new();
        loop {
            let event = self.event()?;
            if event == *end {
                return Ok(nodes);
            }
            if event == Event::StreamEnd {
                return Err(Refused("the text ends inside a collection".to_owned()));
            }
            nodes.extend(self.node(event)?);
        }
    }
}

/// Merged pairs stand where the merge key stood, so that the later of two equal keys wins, whichever it is.
fn merge(value: Node, pairs: &mut Vec<(Node, Node)>) -> Result<(), Refused> {
    match value {
        Node::Map(merged) => pairs.extend(merged),
        Node::List(maps) => {
            for map in maps.into_iter().rev() {
                let Node::Map(merged) = map else {
                    return Err(Refused("map merge requires map or sequence of maps as the value".to_owned()));
                };
                pairs.extend(merged);
            }
        }
        Node::Scalar { .. } => return Err(Refused("map merge requires map or sequence of maps as the value".to_owned())),
    }
    Ok(())
}
