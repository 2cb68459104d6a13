//! YAML as a tree that remembers where in the text each node stands.

use std::collections::HashMap;

use granit_parser::{Event, Parser, ScalarStyle, Span, StructureStyle};

use super::Refused;

/// Far more than a configuration needs, far less than the stack holds.
const DEEPEST: usize = 64;

#[derive(Debug, Clone)]
pub(super) struct Node {
    /// Bytes of the text; the end leaves out blanks and line breaks that follow.
    pub start: usize,
    pub end: usize,
    pub line: usize,
    pub shape: Shape,
}

#[derive(Debug, Clone)]
pub(super) enum Shape {
    /// `plain` has neither quotes nor a tag, so that it may be a number, a flag or nothing at all.
    Scalar {
        text: String,
        plain: bool,
    },
    List(Vec<Node>),
    Map {
        pairs: Vec<(Node, Node)>,
        flow: bool,
    },
    Alias(usize),
}

impl Node {
    pub fn is_null(&self) -> bool {
        matches!(&self.shape, Shape::Scalar { text, plain: true } if matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL"))
    }

    pub fn is_nothing_at_all(&self) -> bool {
        matches!(&self.shape, Shape::Scalar { text, plain: true } if text.is_empty())
    }

    pub fn scalar(&self) -> Option<&str> {
        match &self.shape {
            Shape::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }
}

/// The first document of the text; the loader reads no other.
pub(super) struct Document {
    pub root: Node,
    anchors: HashMap<usize, Node>,
}

impl Document {
    pub fn resolve<'a>(&'a self, node: &'a Node) -> &'a Node {
        match node.shape {
            Shape::Alias(anchor) => self.anchors.get(&anchor).unwrap_or(node),
            _ => node,
        }
    }

    /// The pairs of a mapping in the order in which the loader applies them, merged ones (`<<`) included; none for what is no mapping.
    pub fn pairs<'a>(&'a self, node: &'a Node) -> Option<Vec<(&'a Node, &'a Node)>> {
        self.pairs_within(node, DEEPEST)
    }

    fn pairs_within<'a>(&'a self, node: &'a Node, depth: usize) -> Option<Vec<(&'a Node, &'a Node)>> {
        let Shape::Map { pairs, .. } = &self.resolve(node).shape else { return None };
        let mut all = Vec::new();
        for (key, value) in pairs {
            if !matches!(&key.shape, Shape::Scalar { text, plain: true } if text == "<<") {
                all.push((key, value));
                continue;
            }
            let depth = depth.checked_sub(1)?;
            match &self.resolve(value).shape {
                // Of several merged mappings the first wins, so it is applied last.
                Shape::List(merged) => {
                    for part in merged.iter().rev() {
                        all.extend(self.pairs_within(part, depth)?);
                    }
                }
                _ => all.extend(self.pairs_within(value, depth)?),
            }
        }
        Some(all)
    }
}

pub(super) fn parse(text: &str) -> Result<Document, Refused> {
    let mut reader = Reader { text, parser: Parser::new_from_str(text), anchors: HashMap::new() };
    loop {
        let (event, span) = reader.next()?;
        match event {
            Event::StreamStart | Event::DocumentStart(..) => {}
            Event::StreamEnd | Event::DocumentEnd => return Err(Refused::at(1, "there is no configuration in this text")),
            event => {
                let root = reader.node(event, span, 0)?;
                return Ok(Document { root, anchors: reader.anchors });
            }
        }
    }
}

struct Reader<'a> {
    text: &'a str,
    parser: Parser<'a, granit_parser::StrInput<'a>>,
    anchors: HashMap<usize, Node>,
}

impl<'a> Reader<'a> {
    /// Comments are no nodes; they stay because the text around an edit stays.
    fn next(&mut self) -> Result<(Event<'a>, Span), Refused> {
        loop {
            match self.parser.next_event() {
                Some(Ok((Event::Comment(..), _))) => {}
                Some(Ok(next)) => return Ok(next),
                Some(Err(error)) => return Err(Refused::at(error.marker().line(), format!("not valid YAML: {}", error.info()))),
                None => return Err(Refused::at(1, "the YAML ends before its document does")),
            }
        }
    }

    fn node(&mut self, event: Event<'a>, span: Span, depth: usize) -> Result<Node, Refused> {
        let line = span.start.line();
        if depth > DEEPEST {
            return Err(Refused::at(line, "nested too deeply for a cloud configuration"));
        }
        let (start, mut end) = (offset(&span.start), offset(&span.end));
        let (shape, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let unquoted = style == ScalarStyle::Plain;
                // The parser calls a value that is not there "~".
                let text = if unquoted && start == end { String::new() } else { text.into_owned() };
                (Shape::Scalar { text, plain: unquoted && tag.is_none() }, anchor)
            }
            Event::Alias(anchor) if self.anchors.contains_key(&anchor) => (Shape::Alias(anchor), 0),
            Event::Alias(_) => return Err(Refused::at(line, "this alias stands inside the very node it refers to")),
            Event::SequenceStart(style, anchor, _) => {
                let mut items = Vec::new();
                loop {
                    match self.next()? {
                        (Event::SequenceEnd, span) => {
                            end = offset(&span.end);
                            break;
                        }
                        (event, span) => items.push(self.node(event, span, depth + 1)?),
                    }
                }
                if let (StructureStyle::Block, Some(last)) = (style, items.last()) {
                    end = last.end;
                }
                (Shape::List(items), anchor)
            }
            Event::MappingStart(style, anchor, _) => {
                let mut pairs = Vec::new();
                loop {
                    match self.next()? {
                        (Event::MappingEnd, span) => {
                            end = offset(&span.end);
                            break;
                        }
                        (event, span) => {
                            let key = self.node(event, span, depth + 1)?;
                            let (event, span) = self.next()?;
                            pairs.push((key, self.node(event, span, depth + 1)?));
                        }
                    }
                }
                let flow = style == StructureStyle::Flow;
                if let (false, Some(last)) = (flow, pairs.last()) {
                    end = end_of(last);
                }
                (Shape::Map { pairs, flow }, anchor)
            }
            _ => return Err(Refused::at(line, "the YAML has no value here")),
        };
        let end = start + self.text.get(start..end.max(start)).map_or(0, |own| own.trim_end().len());
        let node = Node { start, end, line, shape };
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }
}

/// Where a pair ends: a key without a value has no place in the text for it.
pub(super) fn end_of((key, value): &(Node, Node)) -> usize {
    if value.is_nothing_at_all() { key.end } else { value.end }
}

fn offset(marker: &granit_parser::Marker) -> usize {
    marker.byte_offset().unwrap_or_default()
}
