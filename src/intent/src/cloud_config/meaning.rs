//! What a configuration means once the loader has filled in its defaults: which vCenters, with which values in effect. It decides
//! whether a text can be edited at all, and whether an edit did what it should.

use super::settings::{Entry, Section, Settings, Value};
use super::{NewVcenter, REGION_CATEGORY, Refused, ZONE_CATEGORY};

const DEFAULT_PORT: u64 = 443;

/// A vCenter with the values in effect, inherited ones included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vcenter {
    /// How the text calls it; most often its server.
    pub name: String,
    pub server: String,
    pub port: u64,
    pub datacenters: Vec<String>,
    pub insecure: bool,
    pub ca_file: Option<String>,
    pub thumbprint: Option<String>,
}

pub(super) fn in_effect(settings: &Settings) -> Result<Vec<Vcenter>, Refused> {
    let global = &settings.global;
    let mut entries = settings.vcenters.clone();
    // The loader makes a vCenter of its own of a global server that no entry is named after.
    if let Some(server) = global.text("server").filter(|server| entries.iter().all(|entry| entry.name != *server)) {
        let line = global.line_of("server").unwrap_or(global.line);
        let section = Section::new(line).with("server", Value::Text(server.to_owned()));
        entries.push(Entry { name: server.to_owned(), section });
    }
    if entries.is_empty() {
        return Err(Refused::at(1, "no vCenter is defined"));
    }
    entries.iter().map(|entry| entry_in_effect(global, entry)).collect()
}

fn entry_in_effect(global: &Section, Entry { name, section }: &Entry) -> Result<Vcenter, Refused> {
    let server = section.text("server").ok_or_else(|| Refused::at(section.line, format!("vcenter.{name} has no server")))?;
    let own_secret = section.text("secretName").is_some() && section.text("secretNamespace").is_some();
    if !has_secret(global) && !own_secret {
        for key in ["user", "password"] {
            if section.text(key).or(global.text(key)).is_none() {
                let reason = format!("{name} has no {key}, and the global section names no secret (name and namespace, no directory)");
                return Err(Refused::at(section.line, reason));
            }
        }
    }
    let inherited = |key| section.text(key).or(global.text(key)).map(str::to_owned);
    Ok(Vcenter {
        name: name.clone(),
        server: server.to_owned(),
        port: section.number("port").or(global.number("port")).unwrap_or(DEFAULT_PORT),
        datacenters: section.list("datacenters").or(global.list("datacenters")).unwrap_or_default().to_vec(),
        insecure: section.flag("insecureFlag") || global.flag("insecureFlag"),
        ca_file: inherited("caFile"),
        thumbprint: inherited("thumbprint"),
    })
}

/// The loader takes a secret or a directory; with both it knows neither.
fn has_secret(global: &Section) -> bool {
    let (name, namespace) = (global.text("secretName").is_some(), global.text("secretNamespace").is_some());
    match global.text("secretsDirectory") {
        Some(_) => !name && !namespace,
        None => name && namespace,
    }
}

/// Whether the vCenter is there as it should be; refused if it is there otherwise, or cannot come to stand beside the others.
pub(super) fn vcenter_there(settings: &Settings, new: &NewVcenter) -> Result<bool, Refused> {
    let wanted = wanted(&settings.global, new);
    for vcenter in in_effect(settings)? {
        let line = line_of(settings, &vcenter.name);
        if vcenter.server == new.server {
            return match difference(&vcenter, &wanted) {
                None => Ok(true),
                Some(difference) => Err(Refused::at(line, format!("{} is there already, but {difference}", new.server))),
            };
        }
        if vcenter.server.eq_ignore_ascii_case(&new.server) {
            let reason =
                format!("{} and {} differ in upper and lower case only; OpenShift would take them for two", vcenter.server, new.server);
            return Err(Refused::at(line, reason));
        }
        if vcenter.name == new.server {
            return Err(Refused::at(line, format!("the name {} is taken by the entry of {}", new.server, vcenter.server)));
        }
    }
    let global = &settings.global;
    if !has_secret(global) && new.secret.is_none() {
        let line = global.line_of("user").unwrap_or(global.line.max(1));
        let reason = "the global section names no secret, so that the new vCenter would be given the user and password of another; \
                      move the credentials to a secret first";
        return Err(Refused::at(line, reason));
    }
    match global.line_of("thumbprint") {
        Some(line) if new.thumbprint.is_none() && !wanted.insecure => {
            Err(Refused::at(line, format!("{} would inherit this thumbprint, which is not its own; give its thumbprint", new.server)))
        }
        _ => Ok(false),
    }
}

fn line_of(settings: &Settings, name: &str) -> usize {
    let entry = settings.vcenters.iter().find(|entry| entry.name == name);
    entry.map(|entry| entry.section.line).or(settings.global.line_of("server")).unwrap_or(1)
}

fn wanted(global: &Section, new: &NewVcenter) -> Vcenter {
    let inherited = |own: &Option<String>, key| own.clone().or_else(|| global.text(key).map(str::to_owned));
    Vcenter {
        name: new.server.clone(),
        server: new.server.clone(),
        port: new.port.map_or(DEFAULT_PORT, u64::from),
        datacenters: new.datacenters.clone(),
        insecure: new.insecure || global.flag("insecureFlag"),
        ca_file: inherited(&new.ca_file, "caFile"),
        thumbprint: inherited(&new.thumbprint, "thumbprint"),
    }
}

fn difference(found: &Vcenter, wanted: &Vcenter) -> Option<String> {
    let sorted = |names: &[String]| {
        let mut names = names.to_vec();
        names.sort();
        names.dedup();
        names
    };
    let (found_in, wanted_in) = (sorted(&found.datacenters), sorted(&wanted.datacenters));
    let differences: Vec<_> = [
        (found.port != wanted.port).then(|| format!("its port is {}, not {}", found.port, wanted.port)),
        (found_in != wanted_in).then(|| format!("its datacenters are {found_in:?}, not {wanted_in:?}")),
        (found.insecure != wanted.insecure).then(|| format!("its insecure flag is {}, not {}", found.insecure, wanted.insecure)),
        (found.ca_file != wanted.ca_file).then(|| format!("its CA file is {:?}, not {:?}", found.ca_file, wanted.ca_file)),
        (found.thumbprint != wanted.thumbprint).then(|| format!("its thumbprint is {:?}, not {:?}", found.thumbprint, wanted.thumbprint)),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!differences.is_empty()).then(|| differences.join(", "))
}

/// Whether both categories stand in the text; refused if others do: nodes carry labels made from those.
pub(super) fn has_zones(settings: &Settings) -> Result<bool, Refused> {
    let mut all = true;
    for (key, category) in [("zone", ZONE_CATEGORY), ("region", REGION_CATEGORY)] {
        match settings.labels.text(key) {
            Some(found) if found != category => {
                let line = settings.labels.line_of(key).unwrap_or(settings.labels.line);
                let reason =
                    format!("the {key} label reads category {found:?}, OpenShift's operators read {category:?}; change it by hand");
                return Err(Refused::at(line, reason));
            }
            found => all &= found.is_some(),
        }
    }
    Ok(all)
}

pub(super) fn confirm_added(before: &Settings, after: &Settings, new: &NewVcenter, zones: bool) -> Result<(), Refused> {
    let text = |text: &str| Value::Text(text.to_owned());
    let labels = match zones {
        true => before.labels.with("zone", text(ZONE_CATEGORY)).with("region", text(REGION_CATEGORY)),
        false => before.labels.clone(),
    };
    let wanted = wanted(&before.global, new);
    let there = in_effect(after)?.iter().any(|vcenter| vcenter.server == new.server && difference(vcenter, &wanted).is_none());
    let kept = before.global.same(&after.global) && before.nodes.same(&after.nodes) && labels.same(&after.labels);
    confirm(there && kept && same_others(before, after, &new.server))
}

pub(super) fn confirm_removed(before: &Settings, after: &Settings, server: &str) -> Result<(), Refused> {
    let global = match before.global.text("server") {
        Some(named) if named == server => before.global.without("server"),
        _ => before.global.clone(),
    };
    let gone = in_effect(after)?.iter().all(|vcenter| vcenter.server != server);
    let kept = global.same(&after.global) && before.nodes.same(&after.nodes) && before.labels.same(&after.labels);
    confirm(gone && kept && same_others(before, after, server))
}

pub(super) fn confirm_same(before: &Settings, after: &Settings) -> Result<(), Refused> {
    let kept = before.global.same(&after.global) && before.nodes.same(&after.nodes) && before.labels.same(&after.labels);
    confirm(kept && same_others(before, after, ""))
}

fn same_others(before: &Settings, after: &Settings, server: &str) -> bool {
    let others = |settings: &Settings| {
        let mut others: Vec<_> = settings.vcenters.iter().filter(|entry| entry.section.text("server") != Some(server)).cloned().collect();
        others.sort_by(|one, other| one.name.cmp(&other.name));
        others
    };
    let (before, after) = (others(before), others(after));
    before.len() == after.len() && before.iter().zip(&after).all(|(one, other)| one.name == other.name && one.section.same(&other.section))
}

fn confirm(right: bool) -> Result<(), Refused> {
    if right { Ok(()) } else { Err(unsafe_edit("another meaning would come out")) }
}

pub(super) fn unsafe_edit(why: &str) -> Refused {
    Refused::asked(format!("this text cannot be edited safely ({why}); write it in plain block style, without anchors, and try again"))
}
