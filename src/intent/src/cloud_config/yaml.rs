//! Reads the settings out of YAML as the loader does: YAML 1.1's idea of numbers and flags, repeated sections merged, nothing guessed.

use super::Refused;
use super::settings::{Entry, Key, Kind, Place, Section, Settings, Value};
use super::tree::{Document, Node, Shape};

pub(super) fn settings(document: &Document) -> Result<Settings, Refused> {
    let Some(pairs) = document.pairs(&document.root) else {
        let line = document.root.line;
        return Err(Refused::at(line, "neither INI nor YAML: expected a section such as [Global] or a mapping such as global:"));
    };
    let mut settings = Settings::default();
    for (key, value) in pairs {
        let value = document.resolve(value);
        match key.scalar() {
            Some("global") => read(document, value, Place::Global, "global", &mut settings.global)?,
            Some("labels") => read(document, value, Place::Labels, "labels", &mut settings.labels)?,
            Some("nodes") => read(document, value, Place::Nodes, "nodes", &mut settings.nodes)?,
            Some("vcenter") => vcenters(document, key, value, &mut settings.vcenters)?,
            _ => {}
        }
    }
    Ok(settings)
}

fn vcenters(document: &Document, key: &Node, value: &Node, entries: &mut Vec<Entry>) -> Result<(), Refused> {
    if value.is_null() {
        return Err(Refused::at(key.line, "vcenter has no entries, which the cloud controller manager crashes on or refuses"));
    }
    let Some(pairs) = document.pairs(value) else {
        return Err(Refused::at(key.line, "vcenter must be a mapping from names to vCenters"));
    };
    for (key, value) in pairs {
        let name = key.scalar().filter(|_| !key.is_null()).ok_or_else(|| Refused::at(key.line, "a vCenter has no name"))?;
        if document.resolve(value).is_null() {
            let reason = format!("vcenter.{name} has no body, which crashes the cloud controller manager; is the indentation right?");
            return Err(Refused::at(key.line, reason));
        }
        let mut section = Section::new(key.line);
        read(document, value, Place::Vcenter, &format!("vcenter.{name}"), &mut section)?;
        section.line = key.line;
        // Of two entries with one name the loader keeps the last, whole.
        entries.retain(|entry| entry.name != name);
        entries.push(Entry { name: name.to_owned(), section });
    }
    Ok(())
}

fn read(document: &Document, node: &Node, place: Place, path: &str, section: &mut Section) -> Result<(), Refused> {
    section.line = node.line;
    if node.is_null() {
        section.clear();
        return Ok(());
    }
    let pairs = document.pairs(node).ok_or_else(|| Refused::at(node.line, format!("{path} must be a mapping")))?;
    for (name, value) in pairs {
        if let Some(key) = place.keys().iter().find(|key| name.scalar() == Some(key.yaml)) {
            section.set(key, typed(document, key, value, path)?, name.line);
        }
    }
    Ok(())
}

fn typed(document: &Document, key: &Key, node: &Node, path: &str) -> Result<Value, Refused> {
    let node = document.resolve(node);
    let wrong =
        |wanted: &str| Refused::at(node.line, format!("{path}.{} must be {wanted}; the cloud controller manager refuses this", key.yaml));
    match (&node.shape, key.kind) {
        (Shape::Scalar { .. }, Kind::Text) if node.is_null() => Ok(Value::Text(String::new())),
        (Shape::Scalar { text, .. }, Kind::Text) => Ok(Value::Text(text.clone())),
        (_, Kind::Text) => Err(wrong("a text")),
        (_, Kind::Number) if node.is_null() => Ok(Value::Number(0)),
        (Shape::Scalar { text, plain: true }, Kind::Number) => number(text).map(Value::Number).ok_or_else(|| wrong("a number")),
        (_, Kind::Number) => Err(wrong("a number without quotes")),
        (_, Kind::Flag) if node.is_null() => Ok(Value::Flag(false)),
        (Shape::Scalar { text, plain: true }, Kind::Flag) => flag(text).map(Value::Flag).ok_or_else(|| wrong("true or false")),
        (_, Kind::Flag) => Err(wrong("true or false without quotes")),
        (_, Kind::List) if node.is_null() => Ok(Value::List(Vec::new())),
        (Shape::List(items), Kind::List) => {
            let text = |item| match document.resolve(item) {
                null if null.is_null() => Some(String::new()),
                item => item.scalar().map(str::to_owned),
            };
            items.iter().map(text).collect::<Option<Vec<_>>>().map(Value::List).ok_or_else(|| wrong("a list of texts"))
        }
        (_, Kind::List) => Err(wrong("a list, one \"- name\" a line")),
    }
}

/// A leading zero means octal, and underscores mean nothing.
fn number(text: &str) -> Option<u64> {
    let digits = text.replace('_', "");
    let digits = digits.strip_prefix('+').unwrap_or(&digits);
    let radix = |prefix: [char; 2], radix| digits.strip_prefix("0").and_then(|rest| rest.strip_prefix(prefix)).map(|rest| (rest, radix));
    let (rest, radix) = radix(['x', 'X'], 16)
        .or(radix(['o', 'O'], 8))
        .or(radix(['b', 'B'], 2))
        .unwrap_or_else(|| if digits.len() > 1 && digits.starts_with('0') { (&digits[1..], 8) } else { (digits, 10) });
    if rest.starts_with(['+', '-']) {
        return None;
    }
    u64::from_str_radix(rest, radix).ok()
}

fn flag(text: &str) -> Option<bool> {
    match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => Some(true),
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{flag, number};

    #[test]
    fn numbers_are_those_of_yaml_1_1() {
        for (text, want) in [
            ("443", Some(443)),
            ("0673", Some(443)),
            ("0x1bb", Some(443)),
            ("4_43", Some(443)),
            ("0b11", Some(3)),
            ("0", Some(0)),
            ("+1", Some(1)),
            ("-1", None),
            ("0x-1", None),
            ("443a", None),
            ("08", None),
            ("", None),
        ] {
            assert_eq!(number(text), want, "{text}");
        }
    }

    #[test]
    fn flags_are_those_of_yaml_1_1() {
        assert_eq!((flag("on"), flag("y"), flag("No"), flag("OFF")), (Some(true), Some(true), Some(false), Some(false)));
        assert_eq!((flag("1"), flag("oN"), flag("wahr")), (None, None, None));
    }
}
