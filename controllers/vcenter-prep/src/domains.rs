//! Whose failure domains are where: the source's as Infrastructure has them or will have them, the target's as the vmi asks for.

use serde_json::Value;
use vmi_crds::spec::FailureDomain;
use vmi_intent::infrastructure::{Outcome, extend};
use vmi_kit::Stop;
use vmi_site::source::Source;
use vmi_steps::Migration;

use crate::failures;
use crate::wanted::Wanted;

/// What each vCenter shall have: the sources, then the targets.
pub fn everywhere(m: &Migration) -> Result<Vec<Wanted>, Stop> {
    let sources = m.sources();
    let listed = listed(m)?;
    let of = |server: &str, domains: &[FailureDomain]| {
        let here: Vec<FailureDomain> = domains.iter().filter(|domain| domain.server == server).cloned().collect();
        Wanted::of(server, &here, &infrastructure_id(m)?).map_err(Stop::Failed)
    };
    let sources = sources.iter().map(|server| of(server, &listed));
    sources.chain(m.targets().into_iter().map(|server| of(server, &m.spec().failure_domains))).collect()
}

/// What each target shall have.
pub fn targets(m: &Migration) -> Result<Vec<Wanted>, Stop> {
    let targets = m.targets();
    Ok(everywhere(m)?.into_iter().filter(|wanted| targets.contains(&wanted.server.as_str())).collect())
}

fn infrastructure_id(m: &Migration) -> Result<String, Stop> {
    m.infrastructure_id().ok_or_else(|| Stop::again("Infrastructure cluster has no status.infrastructureName"))
}

fn listed(m: &Migration) -> Result<Vec<FailureDomain>, Stop> {
    let infrastructure = m.infrastructure().ok_or_else(|| Stop::again("there is no Infrastructure cluster"))?;
    let spec = &infrastructure.data["spec"];
    let mut listed = spec["platformSpec"]["vsphere"]["failureDomains"].as_array().cloned().unwrap_or_default();
    listed.extend(Source::lacking(m, spec).map_err(|why| failures::no_source_domain(&why))?.failure_domains);
    let parsed = listed.into_iter().map(serde_json::from_value).collect::<Result<Vec<FailureDomain>, _>>();
    parsed.map_err(|error| failures::unreadable_domain(&error.to_string()).into())
}

/// Whether Infrastructure has the target already, field by field: then it was prepared by whoever put it there.
pub fn already_there(m: &Migration) -> bool {
    let Some(infrastructure) = m.infrastructure() else { return false };
    let values = |list: Result<Value, serde_json::Error>| list.ok().and_then(|list| list.as_array().cloned());
    let (vcenters, domains) = (serde_json::to_value(&m.spec().vcenters), serde_json::to_value(&m.spec().failure_domains));
    let (Some(vcenters), Some(domains)) = (values(vcenters), values(domains)) else { return false };
    extend(&infrastructure.data["spec"], &vcenters, &domains) == Ok(Outcome::AlreadyThere)
}
