//! Step 2: the live CRDs of Infrastructure and ControllerConfig accept what will be written, shown by a dry run.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use vmi_crds::VSphereMigrationInfra;
use vmi_crds::graph::StepName;
use vmi_crds::spec::SourceRetirement;
use vmi_crds::status::Path;
use vmi_intent::infrastructure::{Outcome, extend, retract};
use vmi_kit::kind::{CONTROLLER_CONFIG, CRD, INFRASTRUCTURE};
use vmi_kit::{Stop, failure};
use vmi_site::followers::CONTROLLER_CONFIG_NAME;
use vmi_site::source::Source;
use vmi_steps::change::{self, Change};
use vmi_steps::{Migration, Seen, Step, Writer};

use super::{path, planning};
use crate::held::Held;
use crate::ledger::{self, Release};
use crate::rules::{self, LOCKED, Need};

/// An apiserver goes by a changed CRD about a second after it was changed, and tells nobody when.
const CRD_TAKES_EFFECT: SignedDuration = SignedDuration::from_secs(1);

/// Step 2.
pub struct InfrastructureUnlocked {
    /// Once the holds are being released nobody has taken them away.
    pub thawing: bool,
}

impl Step for InfrastructureUnlocked {
    const NAME: StepName = StepName::InfrastructureUnlocked;
    type Act = Change;

    async fn observe(&self, m: &Migration) -> Result<Seen<Change>, Stop> {
        match path(m) {
            Err(waits) => return Ok(waits),
            Ok(Path::Native) => return Ok(Seen::done("NotNeeded", "the rules of this cluster let a vCenter come and go")),
            Ok(Path::Legacy) => {}
        }
        let Some(infrastructure) = m.infrastructure() else { return Ok(Seen::waiting("waits for Infrastructure cluster to be there")) };
        if !needed(m, &infrastructure.data["spec"])? {
            return Ok(Seen::done("NotNeeded", "Infrastructure has the target already, equal field by field"));
        }
        if let Some(todo) = change::todo(changes(m)?) {
            return Ok(todo);
        }
        if planning(m) {
            return Ok(Seen::done("Unlocked", "nothing in the two CRDs stands against the target"));
        }
        dry_run(m).await
    }

    async fn observe_undo(&self, m: &Migration) -> Result<Seen<Change>, Stop> {
        let mut release = release(m)?;
        let todo = change::todo(std::mem::take(&mut release.changes));
        Ok(todo.unwrap_or_else(|| release.undone("the rules of the two CRDs are as they were")))
    }

    async fn act(&self, _m: &Migration, act: Change, writer: &mut Writer<'_>) -> Result<(), Stop> {
        act.make(writer).await
    }

    fn taken_away(&self, m: &Migration) -> Option<String> {
        // Where nothing was taken out nothing can come back.
        let held = LOCKED.iter().any(|(name, _)| m.saved(&key(name)).is_some());
        if self.thawing || m.path() != Some(Path::Legacy) || !held {
            return None;
        }
        let back = LOCKED.iter().flat_map(|(name, spec)| against(m, name, spec)).next()?;
        Some(format!("a rule that was taken out is back, or another one like it has come: {} again", back.taking()))
    }
}

fn key(crd: &str) -> String {
    format!("crd-{crd}")
}

/// What this step saves.
pub fn keys() -> impl Iterator<Item = String> {
    LOCKED.iter().map(|(name, _)| key(name))
}

/// In Keep nothing more is written where the target is there already, unless something was held for it.
fn needed(m: &Migration, spec: &Value) -> Result<bool, Stop> {
    let held = LOCKED.iter().any(|(name, _)| m.saved(&key(name)).is_some());
    Ok(held || m.spec().source_retirement == SourceRetirement::Remove || intended(m, spec)?.is_some())
}

/// The spec that Infrastructure shall have next; none where it has it. Once it was extended, the next write takes something away.
fn intended(m: &Migration, spec: &Value) -> Result<Option<Value>, Stop> {
    let list = |value: Value| value.as_array().cloned().unwrap_or_default();
    let outcome = if extended(m) {
        retract(spec, &leaving(&m.vmi, &m.sources()))
    } else {
        let source = Source::lacking(m, spec).map_err(|why| {
            let text = format!("Infrastructure cluster does not describe the source, and no machine tells: {why}");
            Stop::from(failure("FRZ-003", text, "describe the source in Infrastructure by hand, then resume"))
        })?;
        let described = source.described_in(spec);
        described.and_then(|spec| extend(&spec, &list(json!(m.spec().vcenters)), &list(json!(m.spec().failure_domains))))
    };
    match outcome {
        Ok(Outcome::Changed(spec)) => Ok(Some(spec)),
        Ok(Outcome::AlreadyThere) => Ok(None),
        Err(refused) => {
            let text = format!("Infrastructure cluster cannot be written as intended: {refused}");
            Err(failure("FRZ-003", text, "correct what it names, then resume").into())
        }
    }
}

/// Who leaves Infrastructure next: behind the one-way door the sources, which may have done so already; before it the targets, should
/// what was added be taken back.
fn leaving<'a>(vmi: &'a VSphereMigrationInfra, sources: &'a [String]) -> Vec<&'a str> {
    let source_goes = vmi.spec.source_retirement == SourceRetirement::Remove && vmi.seen().one_way_at.is_some();
    if source_goes {
        sources.iter().map(String::as_str).collect()
    } else {
        vmi.spec.vcenters.iter().map(|vcenter| vcenter.server.as_str()).collect()
    }
}

fn extended(m: &Migration) -> bool {
    m.vmi.begun(StepName::InfrastructureExtended)
}

/// What is left to be changed until both CRDs are unlocked.
pub fn changes(m: &Migration) -> Result<Vec<Change>, Stop> {
    let mut all = Vec::new();
    for (name, spec) in LOCKED {
        all.extend(ledger::take(m, &key(name), || against(m, name, spec))?);
    }
    Ok(all)
}

/// What in the CRD stands against the writes to come. A CRD that is not installed stands against nothing.
fn against(m: &Migration, name: &str, spec: &str) -> Vec<Held> {
    let (Some(crd), Some(infrastructure)) = (m.get(CRD, "", name), m.infrastructure()) else { return Vec::new() };
    rules::against(&crd, spec, Need::of(&infrastructure.data["spec"], &m.targets()))
}

/// What is left to be changed until both CRDs are as they were.
pub fn release(m: &Migration) -> Result<Release, Stop> {
    let keys: Vec<String> = keys().collect();
    Release::of(m, keys.iter().map(String::as_str))
}

/// Tries the next write to Infrastructure, and what the machine config operator will make of it: ControllerConfig holds a copy under
/// rules of its own.
async fn dry_run(m: &Migration) -> Result<Seen<Change>, Stop> {
    let infrastructure = INFRASTRUCTURE.api(&m.cx.client, "").get("cluster").await?;
    let Some(spec) = intended(m, &infrastructure.data["spec"])? else { return Ok(unlocked(m, "Infrastructure is as intended already")) };
    let mut writes = vec![(INFRASTRUCTURE, infrastructure, spec.clone())];
    let config = CONTROLLER_CONFIG.api(&m.cx.client, "").get_opt(CONTROLLER_CONFIG_NAME).await?;
    if let Some(config) = config.filter(|config| config.data["spec"]["infra"].is_object()) {
        let mut copy = config.data["spec"].clone();
        copy["infra"]["spec"] = spec;
        writes.push((CONTROLLER_CONFIG, config, copy));
    }
    let mut how = "dry runs of the next write were accepted";
    for (kind, object, spec) in writes {
        let Err(answer) = m.would_take(kind, &object, spec).await? else { continue };
        match answer.code {
            422 if rules::is_refusal_by_these(&answer.message) => {
                let message = format!("waits for the apiserver to go by the changed CRD; a dry run still says: {}", answer.message);
                return Ok(Seen::Waiting { message, until: Timestamp::now().checked_add(CRD_TAKES_EFFECT).ok() });
            }
            // What else is said against taking the target away again is for the step that does so.
            422 if extended(m) => how = "dry runs of the next write were not refused by the rules that were taken out",
            422 | 403 => {
                let text = format!("a dry run of the addition to {} is refused: {}", kind.kind, answer.message);
                return Err(failure("FRZ-003", text, "correct what it names, then resume").into());
            }
            _ => return Err(Stop::again(answer.message)),
        }
    }
    Ok(unlocked(m, how))
}

fn unlocked(m: &Migration, how: &str) -> Seen<Change> {
    let not_installed = LOCKED.iter().filter(|(name, _)| m.get(CRD, "", name).is_none()).map(|(name, _)| format!("; {name}: NotInstalled"));
    Seen::done("Unlocked", std::iter::once(how.to_owned()).chain(not_installed).collect::<String>())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends by panicking")]

    use super::*;

    #[test]
    fn a_hold_that_is_taken_again_behind_the_door_tries_the_sources_removal_and_not_that_of_the_only_vcenter_left() {
        let vmi = |retirement: &str, one_way: Value| -> VSphereMigrationInfra {
            serde_json::from_value(json!({
                "apiVersion": "config.openshift.io/v1alpha1", "kind": "VSphereMigrationInfra", "metadata": {"name": "m"},
                "spec": {"vcenters": [{"server": "b", "datacenters": ["dc"]}], "failureDomains": [], "credentialsSecret": {"name": "x"},
                    "sourceRetirement": retirement},
                "status": {"oneWayAt": one_way},
            }))
            .unwrap()
        };
        let (then, source) = (json!("2026-01-31T12:00:00Z"), ["a".to_owned()]);
        let listed = |servers: &[&str]| {
            let vcenters: Vec<Value> = servers.iter().map(|server| json!({"server": server})).collect();
            json!({"platformSpec": {"type": "VSphere", "vsphere": {"vcenters": vcenters, "failureDomains": []}}})
        };
        let behind = vmi("Remove", then.clone());
        assert_eq!(retract(&listed(&["b"]), &leaving(&behind, &source)), Ok(Outcome::AlreadyThere));
        assert_eq!(retract(&listed(&["a", "b"]), &leaving(&behind, &source)), Ok(Outcome::Changed(listed(&["b"]))));
        assert_eq!(leaving(&vmi("Remove", Value::Null), &source), ["b"], "before the door it may yet be taken back");
        assert_eq!(leaving(&vmi("Keep", then), &source), ["b"], "the source stays");
    }
}
