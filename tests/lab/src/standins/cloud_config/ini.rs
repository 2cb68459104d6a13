//! Reading the INI form and converting it as library-go does: what has no place in the converted form is lost.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::Config;
use super::gcfg::{self, Line, Syntax};
use super::schema::{Field, GLOBAL, LABELS, NODES, Section, Shape, VCENTER};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Syntax(#[from] Syntax),
    #[error("{message} at {place}")]
    Value { message: String, place: String },
    #[error("{place}: {message}")]
    Port { place: String, message: String },
}

/// The values as they stand in the file, each under its YAML name.
struct File {
    global: Section,
    vcenters: BTreeMap<String, Section>,
    labels: Section,
    nodes: Section,
}

pub fn read(text: &str) -> Result<Config, Error> {
    let mut file =
        File { global: Section::new(GLOBAL), vcenters: BTreeMap::new(), labels: Section::new(LABELS), nodes: Section::new(NODES) };
    // The library reads the text twice, sections with subsections last: a fault elsewhere is reported first.
    gcfg::read(text, |line| file.take_plain(line))?;
    gcfg::read(text, |line| file.take_vcenter(line))?;
    file.convert()
}

impl File {
    fn take_plain(&mut self, line: &Line<'_>) -> Result<(), Error> {
        let section = match line.section.to_ascii_lowercase().as_str() {
            "global" => &mut self.global,
            "labels" => &mut self.labels,
            "nodes" => &mut self.nodes,
            _ => return Ok(()),
        };
        if line.subsection.is_empty() { take(section, line, "") } else { Ok(()) }
    }

    fn take_vcenter(&mut self, line: &Line<'_>) -> Result<(), Error> {
        if !line.section.eq_ignore_ascii_case("VirtualCenter") {
            return Ok(());
        }
        let section = self.vcenters.entry(line.subsection.to_owned()).or_insert_with(|| Section::new(VCENTER));
        take(section, line, &format!(", subsection \"{}\"", line.subsection))
    }

    fn convert(mut self) -> Result<Config, Error> {
        convert_port(&mut self.global, "can not create CPIConfig, invalid global port parameter".to_owned())?;
        split_datacenters(&mut self.global);
        for lost in ["apiDisable", "apiBinding", "ipFamily"] {
            self.global.set(lost, Value::Null);
        }
        let mut vcenters = BTreeMap::new();
        for (name, mut section) in self.vcenters {
            convert_port(&mut section, format!("invalid port parameter for vc {name}"))?;
            split_datacenters(&mut section);
            if section.get("server").as_str().unwrap_or_default().is_empty() {
                section.set("server", name.as_str());
            }
            // Several families in one value stay one value: nobody splits them here.
            match section.get("ipFamily").as_str().unwrap_or_default().to_owned() {
                none if none.is_empty() => section.set("ipFamily", Value::Null),
                families => section.set("ipFamily", json!([families])),
            }
            vcenters.insert(name, Some(section));
        }
        let labels = (self.labels.to_json() != json!({})).then_some(self.labels);
        Ok(Config { global: self.global, vcenter: Some(vcenters), labels, nodes: self.nodes })
    }
}

fn take(section: &mut Section, line: &Line<'_>, subsection: &str) -> Result<(), Error> {
    let Some(name) = line.name else { return Ok(()) };
    let Some(field) = section.fields.iter().find(|field| field.ini.eq_ignore_ascii_case(name)) else { return Ok(()) };
    let fault = |message| Error::Value { message, place: format!("section \"{}\"{subsection}, variable \"{name}\"", line.section) };
    section.set(field.yaml, value(field, line.value.as_deref()).map_err(fault)?);
    Ok(())
}

/// Ports and lists are text in the file and converted later.
fn value(field: &Field, text: Option<&str>) -> Result<Value, String> {
    let number = field.shape == Shape::Number && field.yaml != "port";
    match text {
        None if field.shape == Shape::Flag => Ok(json!(true)),
        None => Err("blank value not supported for type".to_owned()),
        Some(text) if field.shape == Shape::Flag => match text.to_lowercase().as_str() {
            "true" | "yes" | "on" | "1" => Ok(json!(true)),
            "false" | "no" | "off" | "0" => Ok(json!(false)),
            lower => Err(format!("failed to parse bool `{lower}`")),
        },
        Some(text) if number => count(text.trim()).map(|count| json!(count)),
        Some(text) => Ok(json!(text)),
    }
}

fn count(text: &str) -> Result<u64, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(hexadecimal) => u64::from_str_radix(hexadecimal, 16),
        None => text.parse(),
    };
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    parsed.map_err(|_unhelpful| match digits {
        _ if text.is_empty() => "failed to parse \"\" as uint: EOF".to_owned(),
        0 => format!("failed to parse {text:?} as uint: expected integer"),
        _ => format!("failed to parse {text:?} as uint: extra characters {:?}", &text[digits..]),
    })
}

fn convert_port(section: &mut Section, place: String) -> Result<(), Error> {
    let text = section.get("port").as_str().unwrap_or_default().to_owned();
    let invalid = |_| format!("can not parse vCenter port from ini config: strconv.Atoi: parsing {text:?}: invalid syntax");
    let port = if text.is_empty() { Ok(0) } else { text.parse::<i64>().map_err(invalid) };
    let port = port.and_then(|port| u64::try_from(port).map_err(|_negative| "parsed int bigger than zero".to_owned()));
    section.set("port", port.map_err(|message| Error::Port { place, message })?);
    Ok(())
}

fn split_datacenters(section: &mut Section) {
    let text = section.get("datacenters").as_str().unwrap_or_default().to_owned();
    let names: Vec<&str> = text.split(',').filter(|name| !name.is_empty()).map(|name| name.trim_matches(' ')).collect();
    section.set("datacenters", json!(names));
}
