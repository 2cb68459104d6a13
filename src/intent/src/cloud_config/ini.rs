//! INI in the gcfg dialect: names in any case, `"` quotes, `\` escapes and continued lines, comments after `;` and `#`.

use std::ops::Range;

use super::Refused;
use super::settings::{Entry, Key, Kind, Place, Section, Settings, Value};

#[derive(Debug)]
pub(super) struct Item {
    /// Whole lines of the text.
    pub span: Range<usize>,
    pub line: usize,
    pub what: What,
    /// Behind the item, without its mark.
    pub comment: Option<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum What {
    /// A blank line or one that is only a comment.
    Nothing,
    Header {
        section: String,
        name: Option<String>,
    },
    Assignment {
        key: String,
        value: Option<String>,
    },
}

impl What {
    /// The section the loader knows; unknown ones it skips, and so is `[Global "name"]`.
    pub fn place(&self) -> Option<Place> {
        let Self::Header { section, name } = self else { return None };
        match (section.to_ascii_lowercase().as_str(), name) {
            ("virtualcenter", _) => Some(Place::Vcenter),
            ("global", None) => Some(Place::Global),
            ("labels", None) => Some(Place::Labels),
            ("nodes", None) => Some(Place::Nodes),
            _ => None,
        }
    }
}

pub(super) fn settings(text: &str) -> Result<Settings, Refused> {
    let mut settings = Settings::default();
    let mut place = None;
    // The loader merges blocks of one name; this is the one being read.
    let mut vcenter = 0;
    for item in items(text)? {
        match &item.what {
            What::Nothing => {}
            What::Header { name, .. } => {
                place = item.what.place();
                if place == Some(Place::Vcenter) {
                    let name = name.clone().ok_or_else(|| Refused::at(item.line, "[VirtualCenter] must name its server in quotes"))?;
                    vcenter = settings.vcenters.iter().position(|entry| entry.name == name).unwrap_or(settings.vcenters.len());
                    if vcenter == settings.vcenters.len() {
                        settings.vcenters.push(Entry { name, section: Section::new(item.line) });
                    }
                }
            }
            What::Assignment { key, value } => {
                let Some(place) = place else { continue };
                let Some(key) = known(place, key) else { continue };
                let section = match place {
                    Place::Global => &mut settings.global,
                    Place::Labels => &mut settings.labels,
                    Place::Nodes => &mut settings.nodes,
                    Place::Vcenter => &mut settings.vcenters[vcenter].section,
                };
                section.set(key, typed(key, value.as_deref(), item.line)?, item.line);
            }
        }
    }
    for Entry { name, section } in &mut settings.vcenters {
        if section.text("server").is_none() {
            *section = section.with("server", Value::Text(name.clone()));
        }
    }
    Ok(settings)
}

pub(super) fn known(place: Place, name: &str) -> Option<&'static Key> {
    place.keys().iter().find(|key| key.ini.eq_ignore_ascii_case(name))
}

/// What a value means to the loader, as the type it has in YAML.
pub(super) fn typed(key: &Key, value: Option<&str>, line: usize) -> Result<Value, Refused> {
    let wrong = |wanted: &str| Refused::at(line, format!("{} must be {wanted}", key.ini));
    match (key.kind, value) {
        (Kind::Flag, None) => Ok(Value::Flag(true)),
        (_, None) => Err(wrong("followed by = and a value")),
        (Kind::Text, Some(text)) => Ok(Value::Text(text.to_owned())),
        (Kind::Flag, Some(text)) => match text.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" | "1" => Ok(Value::Flag(true)),
            "false" | "no" | "off" | "0" => Ok(Value::Flag(false)),
            _ => Err(wrong("true or false")),
        },
        (Kind::Number, Some("")) if key.ini == "port" => Ok(Value::Number(0)),
        (Kind::Number, Some(text)) => {
            let number = match text.strip_prefix("0x") {
                Some(hex) if key.ini != "port" => u64::from_str_radix(hex, 16).ok(),
                _ => text.parse().ok(),
            };
            number.map(Value::Number).ok_or_else(|| wrong("a number"))
        }
        (Kind::List, Some(text)) if key.ini == "ip-family" => families(text).map(Value::List).ok_or_else(|| {
            wrong(
                "ipv4, ipv6 or both with one comma between; the cloud controller manager refuses anything else and crashes on empty parts",
            )
        }),
        (Kind::List, Some(text)) => {
            Ok(Value::List(text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()))
        }
    }
}

/// The loader crashes on empty parts, except one at the very end.
fn families(text: &str) -> Option<Vec<String>> {
    if text.is_empty() {
        return Some(Vec::new());
    }
    let parts: Vec<_> = text.strip_suffix(',').unwrap_or(text).split(',').map(str::trim).collect();
    let known = |part: &&str| part.eq_ignore_ascii_case("ipv4") || part.eq_ignore_ascii_case("ipv6");
    parts.iter().all(known).then(|| parts.into_iter().map(str::to_owned).collect())
}

/// The text without the blocks of a server. Only INI that never was ours comes here: an addition leaves YAML behind.
pub(super) fn without(text: &str, server: &str) -> Result<String, Refused> {
    let names: Vec<_> =
        settings(text)?.vcenters.into_iter().filter(|entry| entry.section.text("server") == Some(server)).map(|entry| entry.name).collect();
    let mut gone: Vec<Range<usize>> = Vec::new();
    let (mut inside, mut place, mut workspace) = (false, None, false);
    for item in items(text)? {
        match &item.what {
            What::Nothing => {}
            What::Header { section, name } => {
                place = item.what.place();
                workspace = section.eq_ignore_ascii_case("workspace");
                inside = place == Some(Place::Vcenter) && name.as_ref().is_some_and(|name| names.contains(name));
                if inside {
                    gone.push(item.span);
                }
            }
            What::Assignment { .. } if inside => gone.push(item.span),
            What::Assignment { key, value } if key.eq_ignore_ascii_case("server") && value.as_deref() == Some(server) => {
                if workspace {
                    let reason = format!("[Workspace] names {server}, and storage operators read it; convert to YAML before removing it");
                    return Err(Refused::at(item.line, reason));
                }
                // A global server is a vCenter of its own as soon as its block is gone.
                if place == Some(Place::Global) {
                    gone.push(item.span);
                }
            }
            What::Assignment { .. } => {}
        }
    }
    let mut rest = text.to_owned();
    for span in gone.into_iter().rev() {
        rest.replace_range(span, "");
    }
    Ok(rest)
}

pub(super) fn items(text: &str) -> Result<Vec<Item>, Refused> {
    let mut scanner = super::scan::Scanner::new(text);
    let mut items = Vec::new();
    let mut in_section = false;
    while let Some(item) = scanner.item()? {
        match item.what {
            What::Header { .. } => in_section = true,
            What::Assignment { .. } if !in_section => {
                return Err(Refused::at(item.line, "expected a section header such as [Global] first"));
            }
            _ => {}
        }
        items.push(item);
    }
    Ok(items)
}
