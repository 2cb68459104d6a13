//! INI to YAML: the same sections, keys and comments; what the YAML form has no place for is kept as comments at the end.

use super::Refused;
use super::ini::{self, What};
use super::quote::quoted;
use super::settings::{Key, Place, Value};

const NO_PLACE: &str = "# The YAML form has no place for these; kept from the former INI:";

/// The lines of one section, each with the key it sets.
#[derive(Default)]
struct Lines(Vec<(Option<&'static str>, String)>);

impl Lines {
    fn comment(&mut self, text: &str) {
        self.0.push((None, format!("#{text}")));
    }

    /// The last assignment counts, and a key must not stand twice in YAML.
    fn assign(&mut self, key: &'static str, line: String) {
        self.0.retain(|(known, _)| *known != Some(key));
        self.0.push((Some(key), line));
    }

    fn sets(&self, key: &str) -> bool {
        self.0.iter().any(|(known, _)| *known == Some(key))
    }

    fn write(&self, indent: &str, out: &mut String) {
        for (_, line) in &self.0 {
            out.push_str(&format!("{indent}{line}\n"));
        }
    }
}

#[derive(Default)]
struct Sections {
    top: Lines,
    global: Lines,
    vcenters: Vec<(String, Lines)>,
    labels: Lines,
    nodes: Lines,
    unplaced: Lines,
}

#[derive(Clone, Copy)]
enum At {
    Top,
    Known(Place, usize),
    Unplaced,
}

pub(super) fn to_yaml(text: &str) -> Result<String, Refused> {
    let mut sections = Sections::default();
    let mut at = At::Top;
    // Comments describe what follows them, be it a key or the next section.
    let mut pending = Vec::new();
    for item in ini::items(text)? {
        match &item.what {
            What::Nothing => pending.extend(item.comment),
            What::Header { name, .. } => {
                at = match item.what.place() {
                    Some(place) => At::Known(place, sections.vcenter(place, name.as_deref().unwrap_or_default())),
                    None => At::Unplaced,
                };
                pending.extend(item.comment);
                sections.comments(at, &mut pending);
                if matches!(at, At::Unplaced) {
                    sections.keep(&text[item.span]);
                }
            }
            What::Assignment { key, value } => {
                sections.comments(at, &mut pending);
                let known = match at {
                    At::Known(place, _) => ini::known(place, key),
                    At::Top | At::Unplaced => None,
                };
                match known {
                    // An empty server is none, and its block's name stands for it.
                    Some(key) if key.yaml == "server" && value.as_deref() == Some("") => {}
                    Some(key) => {
                        let value = ini::typed(key, value.as_deref(), item.line)?;
                        sections.lines(at).assign(key.yaml, assignment(key, &value, item.comment.as_deref()));
                    }
                    None => sections.keep(&text[item.span]),
                }
            }
        }
    }
    sections.comments(at, &mut pending);
    Ok(sections.write())
}

/// The text without the kept sections that are about this server: once it is gone they tell nobody anything.
pub(super) fn without_kept(text: &str, server: &str) -> String {
    let Some(start) = text.find(NO_PLACE) else { return text.to_owned() };
    let (before, rest) = text.split_at(start);
    let is_kept = |line: &&str| line.starts_with('#');
    let kept: Vec<&str> = rest.split_inclusive('\n').take_while(is_kept).collect();
    let after = &rest[kept.iter().map(|line| line.len()).sum::<usize>()..];
    let mut sections: Vec<Vec<&str>> = vec![Vec::new()];
    for line in &kept[1..] {
        if line.starts_with("# [") {
            sections.push(Vec::new());
        }
        sections.last_mut().into_iter().for_each(|section| section.push(line));
    }
    let about_it = |line: &&str| {
        let assigned = line.trim_start_matches(['#', ' ']).split_once('=');
        assigned.is_some_and(|(key, value)| key.trim().eq_ignore_ascii_case("server") && value.trim().trim_matches('"') == server)
    };
    let lines: Vec<&str> = sections.into_iter().filter(|section| !section.iter().any(about_it)).flatten().collect();
    let head = if lines.is_empty() { "" } else { kept[0] };
    [before, head, &lines.concat(), after].concat()
}

impl Sections {
    /// Repeated blocks of one name are one vCenter.
    fn vcenter(&mut self, place: Place, name: &str) -> usize {
        if place != Place::Vcenter {
            return 0;
        }
        let index = self.vcenters.iter().position(|(known, _)| known == name).unwrap_or(self.vcenters.len());
        if index == self.vcenters.len() {
            self.vcenters.push((name.to_owned(), Lines::default()));
        }
        index
    }

    fn lines(&mut self, at: At) -> &mut Lines {
        match at {
            At::Top => &mut self.top,
            At::Known(Place::Global, _) => &mut self.global,
            At::Known(Place::Vcenter, index) => &mut self.vcenters[index].1,
            At::Known(Place::Labels, _) => &mut self.labels,
            At::Known(Place::Nodes, _) => &mut self.nodes,
            At::Unplaced => &mut self.unplaced,
        }
    }

    fn comments(&mut self, at: At, pending: &mut Vec<String>) {
        for comment in pending.drain(..) {
            self.lines(at).comment(&comment);
        }
    }

    fn keep(&mut self, raw: &str) {
        for line in raw.lines() {
            self.unplaced.comment(&format!(" {}", line.trim_end()));
        }
    }

    fn write(&self) -> String {
        let mut out = String::new();
        self.top.write("", &mut out);
        section("global", &self.global, &mut out);
        if !self.vcenters.is_empty() {
            out.push_str("vcenter:\n");
        }
        for (name, lines) in &self.vcenters {
            out.push_str(&format!("  {}:\n", quoted(name)));
            if !lines.sets("server") {
                out.push_str(&format!("    server: {}\n", quoted(name)));
            }
            lines.write("    ", &mut out);
        }
        section("labels", &self.labels, &mut out);
        section("nodes", &self.nodes, &mut out);
        if !self.unplaced.0.is_empty() {
            out.push_str(&format!("{NO_PLACE}\n"));
            self.unplaced.write("", &mut out);
        }
        out
    }
}

/// A section that sets nothing must not be there at all, but its comments may.
fn section(name: &str, lines: &Lines, out: &mut String) {
    if lines.0.iter().any(|(key, _)| key.is_some()) {
        out.push_str(&format!("{name}:\n"));
        lines.write("  ", out);
    } else {
        lines.write("", out);
    }
}

fn assignment(key: &Key, value: &Value, comment: Option<&str>) -> String {
    let value = match value {
        Value::Text(text) => quoted(text),
        Value::Number(number) => number.to_string(),
        Value::Flag(flag) => flag.to_string(),
        Value::List(list) => format!("[{}]", list.iter().map(|text| quoted(text)).collect::<Vec<_>>().join(", ")),
    };
    let comment = comment.map(|text| format!(" #{text}")).unwrap_or_default();
    format!("{}: {value}{comment}", key.yaml)
}
