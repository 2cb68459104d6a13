//! Which path: whether the apiserver takes the target into Infrastructure as it is. Shown by a dry run of the real write, never by a
//! version or a feature gate.

use kube::api::DynamicObject;
use serde_json::{Value, json};
use vmi_crds::spec::SourceRetirement;
use vmi_crds::status::Path;
use vmi_intent::infrastructure::{Outcome, extend};
use vmi_intent::source_domain::BY_HAND;
use vmi_kit::Stop;
use vmi_kit::kind::{CRD, INFRASTRUCTURE};
use vmi_site::source::Source;
use vmi_steps::Migration;

use crate::facts::Chosen;

/// Rules that the legacy path takes away for a while, by their messages: the count of vCenters, and the first ones.
const COUNT: &str = "vcenters cannot be added or removed once set";
const FIRST: &str = "vcenters can have at most 1 item when configured post-install";
const TOO_MANY: &str = "must have at most";
/// Said besides the first refusal, of no meaning by itself.
const SKIPPED: &str = "some validation rules were not checked because the object was invalid";
pub const CRDS: [&str; 2] = ["infrastructures.config.openshift.io", "controllerconfigs.machineconfiguration.openshift.io"];

/// Why an apiserver refuses the target.
#[derive(Debug, PartialEq, Eq)]
enum Refusal {
    /// Only because the cluster has no vCenters listed yet, and may begin with one.
    First,
    /// By rules that can be taken away for a while: these.
    Rules(Vec<&'static str>),
    /// By something else, which is the user's.
    Other,
}

/// Chooses.
pub async fn choose(m: &Migration) -> Result<Chosen, Stop> {
    let Some(infrastructure) = m.infrastructure() else { return Ok(none("there is no Infrastructure cluster; is this OpenShift?")) };
    let (vcenters, domains): (Vec<Value>, Vec<Value>) = (
        m.spec().vcenters.iter().map(|vcenter| json!(vcenter)).collect(),
        m.spec().failure_domains.iter().map(|domain| json!(domain)).collect(),
    );
    let source = match Source::lacking(m, &infrastructure.data["spec"]) {
        Ok(source) => source,
        Err(why) => return Ok(untold(&why)),
    };
    let described = source.described_in(&infrastructure.data["spec"]);
    let wanted = match described.and_then(|spec| extend(&spec, &vcenters, &domains)) {
        Ok(Outcome::AlreadyThere) => return taken(m, "Infrastructure already lists the target").await,
        Ok(Outcome::Changed(spec)) => spec,
        Err(refused) => {
            return Ok(none(&format!("spec.vcenters and spec.failureDomains cannot be added to Infrastructure: {refused}; correct them")));
        }
    };
    let answer = match m.would_take(INFRASTRUCTURE, &infrastructure, wanted).await? {
        Ok(()) => return taken(m, "the apiserver accepts the target in Infrastructure, by a dry run").await,
        Err(answer) => answer,
    };
    let legacy = |rules: &str| Chosen {
        path: Some(Path::Legacy),
        reason: format!("the apiserver refuses the target in Infrastructure by rules that can be taken away for a while: {rules}"),
    };
    match classify(&causes(&answer)) {
        Refusal::Rules(rules) => Ok(legacy(&rules.join("; "))),
        Refusal::First if first_alone(m, &infrastructure, &source).await? => {
            Ok(native("the apiserver accepts the source in Infrastructure, and then the target, in two writes"))
        }
        Refusal::First => Ok(legacy(FIRST)),
        Refusal::Other => Ok(none(&format!(
            "Infrastructure cluster, spec.platformSpec.vsphere: the apiserver refuses the target: {}; correct what it names",
            answer.message
        ))),
    }
}

/// The path of a cluster that takes the target as it is.
async fn taken(m: &Migration, how: &str) -> Result<Chosen, Stop> {
    // Where nothing is taken away no count goes down.
    let locked = if m.spec().source_retirement == SourceRetirement::Remove { locked(m).await? } else { None };
    Ok(until_the_source_has_gone(how, locked))
}

/// Native, unless a CRD that takes the target now would refuse later, when every machine has moved, that the source goes.
fn until_the_source_has_gone(how: &str, locked: Option<&str>) -> Chosen {
    let Some(crd) = locked else { return native(how) };
    Chosen {
        path: Some(Path::Legacy),
        reason: format!(
            "{how}; but CustomResourceDefinition {crd} would later refuse that the source goes, by a rule that can be taken away for a \
             while: {COUNT}"
        ),
    }
}

fn native(reason: &str) -> Chosen {
    Chosen { path: Some(Path::Native), reason: reason.to_owned() }
}

/// Of a source that neither Infrastructure nor a machine describes.
fn untold(why: &str) -> Chosen {
    none(&format!("Infrastructure does not describe the source, and no machine tells: {why}; {BY_HAND}"))
}

fn none(reason: &str) -> Chosen {
    Chosen { path: None, reason: reason.to_owned() }
}

/// Whether the cluster may begin with its source alone, and nothing then keeps a second vCenter out.
async fn first_alone(m: &Migration, infrastructure: &DynamicObject, source: &Source) -> Result<bool, Stop> {
    let Ok(spec) = source.described_in(&infrastructure.data["spec"]) else { return Ok(false) };
    if m.would_take(INFRASTRUCTURE, infrastructure, spec).await?.is_err() {
        return Ok(false);
    }
    Ok(locked(m).await?.is_none())
}

/// Which of the two live CRDs lets no vCenter come or go.
async fn locked(m: &Migration) -> Result<Option<&'static str>, Stop> {
    for name in CRDS {
        let crd = CRD.api(&m.cx.client, "").get_opt(name).await?;
        if crd.is_some_and(|crd| crd.data["spec"].to_string().contains(COUNT)) {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

fn causes(answer: &kube::core::Status) -> Vec<(String, String)> {
    let causes = answer.details.iter().flat_map(|details| &details.causes);
    causes.map(|cause| (cause.field.clone(), cause.message.clone())).collect()
}

/// What refuses: each cause is a field and what is said of it.
fn classify(causes: &[(String, String)]) -> Refusal {
    let mut rules = Vec::new();
    for (field, message) in causes {
        let limit = field.ends_with("platformSpec.vsphere.vcenters") && message.contains(TOO_MANY);
        match message {
            _ if limit => rules.push("the list of vCenters is full"),
            text if text.contains(COUNT) => rules.push(COUNT),
            text if text.contains(FIRST) => rules.push(FIRST),
            text if text.contains(SKIPPED) => {}
            _ => return Refusal::Other,
        }
    }
    rules.sort_unstable();
    rules.dedup();
    match rules.as_slice() {
        [] => Refusal::Other,
        [FIRST] => Refusal::First,
        _ => Refusal::Rules(rules),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_that_has_the_target_and_would_not_let_the_source_go_takes_the_legacy_path() {
        let how = "Infrastructure already lists the target";
        let chosen = until_the_source_has_gone(how, Some(CRDS[1]));
        assert_eq!(chosen.path, Some(Path::Legacy));
        for words in [how, CRDS[1], COUNT] {
            assert!(chosen.reason.contains(words), "{words:?} is not in {}", chosen.reason);
        }
        let chosen = until_the_source_has_gone(how, None);
        assert_eq!((chosen.path, chosen.reason.as_str()), (Some(Path::Native), how));
    }

    #[test]
    fn a_source_that_nothing_describes_is_refused_with_what_to_do() {
        let chosen = untold("Machine m-0: its resource pool is empty");
        assert_eq!(chosen.path, None);
        assert!(chosen.reason.ends_with(&format!("its resource pool is empty; {BY_HAND}")), "{}", chosen.reason);
    }

    #[test]
    fn only_rules_that_can_be_taken_away_make_a_path() {
        let vcenters = "spec.platformSpec.vsphere.vcenters";
        let count = format!("Invalid value: \"array\": {COUNT}");
        let first = format!("Invalid value: \"object\": {FIRST}");
        let limit = "Too many: 2: must have at most 1 items";
        let skipped = format!("Invalid value: \"null\": {SKIPPED}; correct the existing errors to complete validation");
        let full = "the list of vCenters is full";
        for (causes, want) in [
            (vec![(vcenters, count.as_str())], Refusal::Rules(vec![COUNT])),
            (vec![(vcenters, limit), ("<nil>", &skipped)], Refusal::Rules(vec![full])),
            (vec![("spec.platformSpec", first.as_str())], Refusal::First),
            (vec![("spec.platformSpec", first.as_str()), ("spec.platformSpec.vsphere", &first)], Refusal::First),
            (vec![("spec.platformSpec", first.as_str()), (vcenters, &count)], Refusal::Rules(vec![FIRST, COUNT])),
            (vec![("spec.platformSpec.vsphere.failureDomains[1].topology.networks", limit)], Refusal::Other),
            (vec![(vcenters, count.as_str()), ("spec.x", "Required value")], Refusal::Other),
            (vec![("<nil>", skipped.as_str())], Refusal::Other),
            (vec![], Refusal::Other),
        ] {
            let causes: Vec<(String, String)> = causes.into_iter().map(|(field, message)| (field.to_owned(), message.to_owned())).collect();
            let mut found = classify(&causes);
            if let (Refusal::Rules(found), Refusal::Rules(want)) = (&mut found, &want) {
                found.sort_by_key(|rule| want.iter().position(|other| other == rule));
            }
            assert_eq!(found, want, "{causes:?}");
        }
    }
}
