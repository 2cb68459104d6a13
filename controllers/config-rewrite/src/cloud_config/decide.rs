//! What becomes of the cloud configuration: pure.

use serde::{Deserialize, Serialize};
use vmi_intent::cloud_config::{self, Format, NewVcenter, REGION_CATEGORY, Refused, ZONE_CATEGORY};

use super::bundle;
use crate::fingerprint;

/// The parts of the ConfigMap that are written. Old texts hold passwords: no way of printing shows it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Config {
    pub text: String,
    /// Certificates, where the ConfigMap has some.
    pub authorities: Option<String>,
}

/// What the cloud configuration should say besides what it says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    pub vcenters: Vec<NewVcenter>,
    /// Whether zones and regions are read from tags.
    pub zones: bool,
    /// Certificates to trust.
    pub authorities: String,
}

/// What is remembered before the first change.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saved {
    pub before: Config,
    /// Tells whether the configuration is still the one that was written.
    pub wrote: String,
}

impl Saved {
    pub fn of(before: Config, written: &Config, salt: &str) -> Self {
        Self { before, wrote: mark(written, salt) }
    }
}

fn mark(config: &Config, salt: &str) -> String {
    fingerprint::of(salt, &[config.text.as_bytes(), config.authorities.as_deref().unwrap_or_default().as_bytes()])
}

/// The configuration with every target, and what that changes; none if all is there.
pub fn extend(found: &Config, wanted: &Wanted) -> Result<Option<(Config, Vec<String>)>, Refused> {
    let listed = cloud_config::vcenters(&found.text)?;
    let mut next = found.clone();
    for vcenter in &wanted.vcenters {
        next.text = cloud_config::add(&next.text, vcenter, wanted.zones)?;
    }
    let added = wanted.vcenters.iter().filter(|vcenter| listed.iter().all(|there| there.server != vcenter.server));
    let mut changes: Vec<String> = added.map(told).collect();
    if wanted.zones && !found.text.contains(ZONE_CATEGORY) {
        changes.push(format!("zones and regions are read from tags of the categories {ZONE_CATEGORY} and {REGION_CATEGORY}"));
    }
    if next.text != found.text && cloud_config::detect(&found.text) == Format::Ini {
        changes.push("it becomes YAML: OpenShift supports several vCenters only there".to_owned());
    }
    if let Some(authorities) = &found.authorities {
        let (joined, count) = bundle::joined(authorities, &wanted.authorities);
        if count > 0 {
            changes.push(format!("{count} certificates of spec.trust.caBundle are added"));
            next.authorities = Some(joined);
        }
    }
    Ok((next != *found).then_some((next, changes)))
}

fn told(vcenter: &NewVcenter) -> String {
    let trust = if vcenter.insecure { ", its certificate is not checked" } else { "" };
    format!("{} is listed (datacenters {}){trust}", vcenter.server, vcenter.datacenters.join(", "))
}

/// What the configuration no longer says of the targets, if anything. How it says the rest is for whoever edits it.
pub fn lost(found: &Config, targets: &[&str]) -> Option<String> {
    let listed = match cloud_config::vcenters(&found.text) {
        Err(refused) => return Some(format!("cannot be read any more: {refused}")),
        Ok(listed) => listed,
    };
    let gone: Vec<&str> = targets.iter().copied().filter(|target| listed.iter().all(|there| there.server != *target)).collect();
    (!gone.is_empty()).then(|| format!("does not list {} any more", gone.join(", ")))
}

/// The configuration as the way back leaves it.
#[derive(PartialEq, Eq)]
pub struct Restored {
    /// None if there is nothing to write.
    pub config: Option<Config>,
    /// Whether somebody else changed it since: then their changes stay.
    pub changed_by_others: bool,
}

/// What stands as it was written becomes what it was; from anything else only the targets are taken.
pub fn restore(found: &Config, saved: &Saved, wanted: &Wanted, salt: &str) -> Result<Restored, Refused> {
    if *found == saved.before {
        return Ok(Restored { config: None, changed_by_others: false });
    }
    if mark(found, salt) == saved.wrote {
        return Ok(Restored { config: Some(saved.before.clone()), changed_by_others: false });
    }
    let had = cloud_config::vcenters(&saved.before.text)?;
    let mut next = found.clone();
    for vcenter in wanted.vcenters.iter().filter(|vcenter| had.iter().all(|old| old.server != vcenter.server)) {
        next.text = cloud_config::remove(&next.text, &vcenter.server)?;
    }
    let old_authorities = saved.before.authorities.as_deref().unwrap_or_default();
    next.authorities = next.authorities.map(|authorities| bundle::without(&authorities, &wanted.authorities, old_authorities));
    Ok(Restored { config: (next != *found).then_some(next), changed_by_others: true })
}
