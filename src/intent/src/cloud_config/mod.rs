//! The cloud provider configuration (`openshift-config/cloud-provider-config`), INI or YAML: a vCenter is added or removed by editing
//! the text where it changes, so that comments, unknown keys and the owner's style stay. Whatever the loader of the cloud controller
//! manager refuses, or crashes on, is refused here with the line and the reason, before anything is written.

mod convert;
mod edit;
mod ini;
mod meaning;
mod quote;
mod scan;
mod settings;
mod tree;
mod yaml;

pub use meaning::Vcenter;

use settings::Settings;

/// The tag categories OpenShift reads zones and regions from; its operators know no others.
pub const ZONE_CATEGORY: &str = "openshift-zone";
pub const REGION_CATEGORY: &str = "openshift-region";

/// Why a text is left as it is. The reason never holds a value that may be a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{reason}", line.map(|line| format!("line {line}: ")).unwrap_or_default())]
pub struct Refused {
    /// Counted from 1; none where the reason lies in what was asked for, not in the text.
    pub line: Option<usize>,
    pub reason: String,
}

impl Refused {
    fn at(line: usize, reason: impl Into<String>) -> Self {
        Self { line: Some(line), reason: reason.into() }
    }

    fn asked(reason: impl Into<String>) -> Self {
        Self { line: None, reason: reason.into() }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Ini,
    Yaml,
}

/// A vCenter to be added. `insecure: false` and a missing CA or thumbprint inherit what the global section says: the loader knows
/// no way to undo a global value for one vCenter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewVcenter {
    pub server: String,
    /// 443 where none is given, also if the global section has another.
    pub port: Option<u16>,
    pub datacenters: Vec<String>,
    pub insecure: bool,
    pub ca_file: Option<String>,
    pub thumbprint: Option<String>,
    /// Only needed where the global section names no secret.
    pub secret: Option<SecretName>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretName {
    pub namespace: String,
    pub name: String,
}

/// What the first line that means something looks like; whether the rest holds is for the reader of that format to say.
pub fn detect(text: &str) -> Format {
    let first = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with(['#', ';'])).unwrap_or_default();
    let assignment = first.contains('=') && !first.contains(':');
    if first.trim_start_matches('\u{feff}').starts_with('[') || assignment { Format::Ini } else { Format::Yaml }
}

/// Every vCenter with the values in effect, as the cloud controller manager sees them.
pub fn vcenters(text: &str) -> Result<Vec<Vcenter>, Refused> {
    meaning::in_effect(&read(text)?)
}

/// The text with the vCenter added, and with the categories of zones and regions where `zones` asks for them. INI becomes YAML: OpenShift
/// supports several vCenters only there. The very same text comes back if all is there already.
pub fn add(text: &str, new: &NewVcenter, zones: bool) -> Result<String, Refused> {
    check(new)?;
    let before = read(text)?;
    let there = meaning::vcenter_there(&before, new)?;
    let zoned = !zones || meaning::has_zones(&before)?;
    if there && zoned {
        return Ok(text.to_owned());
    }
    let yaml = convert(text)?;
    let edited = edit::add(&yaml, new, !there, zones)?;
    meaning::confirm_added(&before, &read_back(&edited)?, new, zones)?;
    Ok(edited)
}

/// The text without the vCenter, and without what a conversion kept of a section about it; the very same text if it is not there. The
/// last vCenter stays: no loader accepts a text without one.
pub fn remove(text: &str, server: &str) -> Result<String, Refused> {
    let before = read(text)?;
    let known = meaning::in_effect(&before)?;
    if known.iter().all(|vcenter| vcenter.server != server) {
        return Ok(text.to_owned());
    }
    if known.iter().all(|vcenter| vcenter.server == server) {
        return Err(Refused::asked(format!("{server} is the only vCenter of this configuration; add another one first")));
    }
    let edited = match detect(text) {
        Format::Ini => ini::without(text, server)?,
        Format::Yaml => convert::without_kept(&edit::remove(text, server)?, server),
    };
    meaning::confirm_removed(&before, &read_back(&edited)?, server)?;
    Ok(edited)
}

/// The same configuration as YAML; YAML comes back as it is. What YAML has no place for, `[Workspace]` above all, stays as comments.
pub fn convert(text: &str) -> Result<String, Refused> {
    if detect(text) == Format::Yaml {
        return Ok(text.to_owned());
    }
    let before = read(text)?;
    meaning::in_effect(&before)?;
    let converted = convert::to_yaml(text)?;
    meaning::confirm_same(&before, &read_back(&converted)?)?;
    Ok(converted)
}

fn read(text: &str) -> Result<Settings, Refused> {
    match detect(text) {
        Format::Ini => ini::settings(text),
        Format::Yaml => yaml::settings(&tree::parse(text)?),
    }
}

/// An edit goes out only if it reads as intended: anchors, odd indentation or keys in unusual places may defeat it.
fn read_back(edited: &str) -> Result<Settings, Refused> {
    read(edited).map_err(|refused| meaning::unsafe_edit(&refused.to_string()))
}

fn check(new: &NewVcenter) -> Result<(), Refused> {
    let unusable = |text: &str| text.is_empty() || text.trim() != text || text.chars().any(char::is_control);
    if unusable(&new.server) || new.server.contains(char::is_whitespace) {
        return Err(Refused::asked(format!("{:?} is not the name or address of a vCenter", new.server)));
    }
    if new.port == Some(0) {
        return Err(Refused::asked(format!("port 0 of {} means \"the global port\" to the loader; name the real one", new.server)));
    }
    if new.datacenters.is_empty() {
        return Err(Refused::asked(format!("{} has no datacenter; name every datacenter of its failure domains", new.server)));
    }
    for datacenter in &new.datacenters {
        if unusable(datacenter) || datacenter.contains(',') {
            return Err(Refused::asked(format!(
                "datacenter {datacenter:?} cannot be written: the loader joins and splits names at commas"
            )));
        }
    }
    let texts = [new.ca_file.as_ref(), new.thumbprint.as_ref()].into_iter().flatten();
    let secret = new.secret.iter().flat_map(|secret| [&secret.namespace, &secret.name]);
    match texts.chain(secret).find(|text| unusable(text)) {
        Some(text) => Err(Refused::asked(format!("{text:?} is empty or has blanks around it"))),
        None => Ok(()),
    }
}
