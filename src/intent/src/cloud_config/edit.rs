//! Edits YAML in place: each edit touches the lines (or, between braces, the pairs) it is about, and nothing else.

use std::ops::Range;

use super::quote::quoted;
use super::tree::{self, Document, Node, Shape, end_of};
use super::{NewVcenter, REGION_CATEGORY, Refused, ZONE_CATEGORY};

type Pair = (Node, Node);

pub(super) fn add(text: &str, new: &NewVcenter, vcenter: bool, zones: bool) -> Result<String, Refused> {
    let mut text = text.to_owned();
    if vcenter {
        let edit = added_vcenter(&text, &tree::parse(&text)?, new)?;
        edit.apply(&mut text);
    }
    if zones {
        for (key, category) in [("region", REGION_CATEGORY), ("zone", ZONE_CATEGORY)] {
            if let Some(edit) = label(&text, &tree::parse(&text)?, key, category)? {
                edit.apply(&mut text);
            }
        }
    }
    Ok(text)
}

/// Every entry of the server, and the global server that would bring it back.
pub(super) fn remove(text: &str, server: &str) -> Result<String, Refused> {
    let document = tree::parse(text)?;
    let (root, root_flow) = pairs(&document.root)?;
    let names_server = |node: &Node| {
        let own = document.pairs(node).unwrap_or_default();
        own.iter().rev().find(|(key, _)| key.scalar() == Some("server")).and_then(|(_, value)| document.resolve(value).scalar())
            == Some(server)
    };
    let mut gone = Vec::new();
    for (index, (key, value)) in root.iter().enumerate() {
        let (inner, flow) = match (key.scalar(), &value.shape) {
            (Some("vcenter" | "global"), Shape::Map { pairs, flow }) => (pairs, *flow),
            (Some("vcenter"), Shape::Alias(_)) => return Err(written_out(key, "vcenter")),
            _ => continue,
        };
        let doomed = |(name, value): &Pair| match key.scalar() {
            Some("vcenter") => names_server(value),
            _ => name.scalar() == Some("server") && document.resolve(value).scalar() == Some(server),
        };
        if !inner.is_empty() && inner.iter().all(doomed) {
            // A section left without a body would crash the loader.
            gone.push(removed(text, root, root_flow, index));
        } else {
            gone.extend((0..inner.len()).filter(|index| doomed(&inner[*index])).map(|index| removed(text, inner, flow, index)));
        }
    }
    Ok(cut(text, gone))
}

/// The text without the spans, which may overlap where neighbours go.
fn cut(text: &str, mut spans: Vec<Range<usize>>) -> String {
    spans.sort_by_key(|span| span.start);
    let (mut rest, mut at) = (String::with_capacity(text.len()), 0);
    for span in spans {
        rest.push_str(text.get(at..span.start).unwrap_or_default());
        at = at.max(span.end);
    }
    rest.push_str(&text[at..]);
    rest
}

struct Edit {
    span: Range<usize>,
    text: String,
}

impl Edit {
    fn insert(at: usize, text: String) -> Self {
        Self { span: at..at, text }
    }

    fn apply(self, text: &mut String) {
        text.replace_range(self.span, &self.text);
    }
}

fn added_vcenter(text: &str, document: &Document, new: &NewVcenter) -> Result<Edit, Refused> {
    let (root, root_flow) = pairs(&document.root)?;
    // Some loaders merge repeated sections, others see the last one only.
    match root.iter().rfind(|(key, _)| key.scalar() == Some("vcenter")) {
        Some((key, value)) => match &value.shape {
            Shape::Map { flow: true, .. } => Ok(insert_flow(value, &format!("{}: {}", quoted(&new.server), flow_body(new)))),
            Shape::Map { pairs, .. } => Ok(insert_block(text, pairs, &block_entry(new))),
            _ => Err(written_out(key, "vcenter")),
        },
        None if root_flow => Ok(insert_flow(&document.root, &format!("\"vcenter\": {{{}: {}}}", quoted(&new.server), flow_body(new)))),
        None => {
            let mut lines = vec!["vcenter:".to_owned()];
            lines.extend(block_entry(new).into_iter().map(|line| format!("  {line}")));
            Ok(insert_block(text, root, &lines))
        }
    }
}

/// Sets a label that is missing or empty.
fn label(text: &str, document: &Document, key: &str, category: &str) -> Result<Option<Edit>, Refused> {
    let (root, root_flow) = pairs(&document.root)?;
    let category = quoted(category);
    let Some((labels, value)) = root.iter().rfind(|(key, _)| key.scalar() == Some("labels")) else {
        let lines = ["labels:".to_owned(), format!("  {key}: {category}")];
        return Ok(Some(match root_flow {
            true => insert_flow(&document.root, &format!("\"labels\": {{\"{key}\": {category}}}")),
            false => insert_block(text, root, &lines),
        }));
    };
    if value.is_null() {
        return Ok(Some(replace_value(text, labels, value, &format!("{{{key}: {category}}}"))));
    }
    let Shape::Map { pairs, flow } = &value.shape else { return Err(written_out(labels, "labels")) };
    Ok(match pairs.iter().rfind(|(name, _)| name.scalar() == Some(key)) {
        Some((name, value)) if value.is_null() || value.scalar() == Some("") => Some(replace_value(text, name, value, &category)),
        Some(_) => None,
        None if *flow => Some(insert_flow(value, &format!("\"{key}\": {category}"))),
        None => Some(insert_block(text, pairs, &[format!("{key}: {category}")])),
    })
}

fn block_entry(new: &NewVcenter) -> Vec<String> {
    let mut lines = vec![format!("{}:", quoted(&new.server))];
    for (key, value) in body(new) {
        lines.push(format!("  {key}: {value}"));
    }
    lines
}

fn flow_body(new: &NewVcenter) -> String {
    let pairs: Vec<_> = body(new).into_iter().map(|(key, value)| format!("\"{key}\": {value}")).collect();
    format!("{{{}}}", pairs.join(", "))
}

/// The port is always written: a global one is meant for others.
fn body(new: &NewVcenter) -> Vec<(&'static str, String)> {
    let datacenters: Vec<_> = new.datacenters.iter().map(|name| quoted(name)).collect();
    let mut body = vec![
        ("server", quoted(&new.server)),
        ("port", new.port.unwrap_or(443).to_string()),
        ("datacenters", format!("[{}]", datacenters.join(", "))),
    ];
    if new.insecure {
        body.push(("insecureFlag", "true".to_owned()));
    }
    let secret = new.secret.as_ref();
    let texts = [
        ("caFile", new.ca_file.as_ref()),
        ("thumbprint", new.thumbprint.as_ref()),
        ("secretName", secret.map(|secret| &secret.name)),
        ("secretNamespace", secret.map(|secret| &secret.namespace)),
    ];
    body.extend(texts.into_iter().filter_map(|(key, text)| Some((key, quoted(text?)))));
    body
}

fn pairs(node: &Node) -> Result<(&[Pair], bool), Refused> {
    match &node.shape {
        Shape::Map { pairs, flow } => Ok((pairs, *flow)),
        _ => Err(Refused::at(node.line, "expected a mapping")),
    }
}

fn written_out(key: &Node, name: &str) -> Refused {
    Refused::at(key.line, format!("{name} is an alias of another part; write it out, so that it can be changed alone"))
}

/// After the last pair, at the indentation of the first.
fn insert_block(text: &str, pairs: &[Pair], lines: &[String]) -> Edit {
    let indent = pairs.first().map_or("", |(key, _)| indent_of(text, key.start));
    let at = line_end(text, pairs.last().map_or(text.len(), end_of));
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let mut inserted = String::new();
    if at > 0 && !text[..at].ends_with('\n') {
        inserted.push_str(newline);
    }
    for line in lines {
        inserted.push_str(&format!("{indent}{line}{newline}"));
    }
    Edit::insert(at, inserted)
}

/// Behind the last pair, so that a comma after it keeps its place; in empty braces right behind the opening one.
fn insert_flow(map: &Node, pair: &str) -> Edit {
    match &map.shape {
        Shape::Map { pairs, .. } if !pairs.is_empty() => Edit::insert(pairs.last().map_or(map.start + 1, end_of), format!(", {pair}")),
        _ => Edit::insert(map.start + 1, pair.to_owned()),
    }
}

fn replace_value(text: &str, key: &Node, value: &Node, new: &str) -> Edit {
    if value.is_nothing_at_all() {
        let colon = text[key.end..].find(':').map_or(key.end, |colon| key.end + colon + 1);
        Edit::insert(colon, format!(" {new}"))
    } else {
        Edit { span: value.start..value.end, text: new.to_owned() }
    }
}

fn removed(text: &str, pairs: &[Pair], flow: bool, index: usize) -> Range<usize> {
    let pair = &pairs[index];
    if !flow {
        return line_start(text, pair.0.start)..line_end(text, end_of(pair));
    }
    match (pairs.get(index + 1), index.checked_sub(1).map(|index| &pairs[index])) {
        (Some((next, _)), _) => pair.0.start..next.start,
        (None, Some(previous)) => end_of(previous)..end_of(pair),
        (None, None) => pair.0.start..end_of(pair),
    }
}

fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |newline| newline + 1)
}

fn line_end(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |newline| at + newline + 1)
}

fn indent_of(text: &str, at: usize) -> &str {
    let line = &text[line_start(text, at)..at];
    &line[..line.len() - line.trim_start_matches(' ').len()]
}
