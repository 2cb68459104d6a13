//! Step 4: the target's credentials, in the root secret and in every component's. Where the cloud credential operator copies the one
//! to the others, only the root is written and the copies are waited for.

mod decide;
mod pairs;

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use kube::api::DynamicObject;
use serde_json::{Value, json};
use vmi_crds::graph::StepName;
use vmi_intent::secret::{self, Data};
use vmi_kit::failure::look;
use vmi_kit::kind::SECRET;
use vmi_kit::{Stop, failure};
use vmi_site::credentials::{self, COMPONENT_SECRETS, OPERATOR, Place, Secrets};
use vmi_site::vcenter::{ROOT_SECRET as ROOT, secret_data};
use vmi_steps::{Migration, Seen, Step, Writer};

use self::decide::Decision;
use self::pairs::{Pairs, Saved};

/// No watch tells of secrets that the operator was allowed to read for this migration only.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// How the keys begin under which pairs are remembered.
const SAVED: &str = "pair-";

/// Step 4.
pub struct CredentialsAdded;

/// One secret, written.
pub struct Write {
    object: DynamicObject,
    data: Data,
    /// What to remember first.
    save: Option<(String, Value)>,
    what: String,
}

impl Step for CredentialsAdded {
    const NAME: StepName = StepName::CredentialsAdded;
    type Act = Write;

    async fn observe(&self, m: &Migration) -> Result<Seen<Write>, Stop> {
        let wanted = wanted(m)?;
        let secrets = credentials::secrets(m, false).await?;
        let decision = decide::add(&secrets.found, &wanted).map_err(|(place, refused)| {
            let text = format!("Secret {} cannot take a pair more: {refused}", full(&place));
            let command = format!("oc -n {} describe secret {}", place.0, place.1);
            Stop::from(look(failure("SEC-001", text, "mend the secret, then resume"), [command]))
        })?;
        if decision.writes.is_empty() && decision.awaited.is_empty() && secrets.objects.is_empty() {
            let text = "no secret with vSphere credentials was found, neither the root secret nor a component's";
            return Err(failure("SEC-004", text, "find out where this cluster keeps its vSphere credentials, then resume").into());
        }
        let servers = m.targets().join(", ");
        if let Some(act) = first(&decision, &secrets, &format!("write the pair of {servers} into")) {
            let place = place_of(&act.object);
            let remembered = serde_json::to_value(pairs::remembered(&secret_data(&act.object), &wanted, &m.uid())).map_err(Stop::again)?;
            let act = Write { save: Some((saved_key(&place), remembered)), ..act };
            return Ok(Seen::Todo { act, changes: changes(&decision, &format!("the pair of {servers} is added")) });
        }
        if !decision.awaited.is_empty() {
            return Ok(waiting(&secrets, &format!("the pair of {servers} to {}", places(&decision.awaited))));
        }
        Ok(Seen::done(self.ended(m), format!("{} secrets hold the pair of {servers}", secrets.objects.len())))
    }

    async fn observe_undo(&self, m: &Migration) -> Result<Seen<Write>, Stop> {
        let secrets = credentials::secrets(m, true).await?;
        let saved = saved(m, &secrets)?;
        // The vmi's own Secret may be gone by now.
        let wanted = wanted(m).unwrap_or_else(|_| Pairs::new());
        let decision = decide::take_back(&secrets.found, &saved, &wanted, &m.uid());
        let servers = m.targets().join(", ");
        if let Some(act) = first(&decision, &secrets, &format!("take the pair of {servers} back from")) {
            return Ok(Seen::Todo { act, changes: changes(&decision, &format!("the pair of {servers} goes, or becomes what it was")) });
        }
        if !decision.awaited.is_empty() {
            return Ok(waiting(&secrets, &format!("secrets without the pair of {servers} to {}", places(&decision.awaited))));
        }
        if saved.is_empty() {
            return Ok(Seen::done("Undone", format!("no secret was changed for {servers}")));
        }
        let left: Vec<String> =
            decision.changed_by_others.iter().map(|(place, server)| format!("{server} in Secret {}", full(place))).collect();
        Ok(match left.as_slice() {
            [] => Seen::done("Undone", format!("the secrets are as they were before the pair of {servers}")),
            left => Seen::done("UndoneWithConflict", format!("somebody else changed these pairs since, they stay: {}", left.join("; "))),
        })
    }

    async fn act(&self, _m: &Migration, act: Write, writer: &mut Writer<'_>) -> Result<(), Stop> {
        if let Some((key, value)) = &act.save {
            writer.save(key, value).await?;
        }
        let mut object = act.object;
        object.data["data"] = act.data.iter().map(|(key, value)| (key.clone(), json!(STANDARD.encode(value)))).collect();
        writer.replace(SECRET, object, &act.what).await?;
        Ok(())
    }

    /// Of the root, and of those that were written here: any other is a copy.
    fn drifted(&self, m: &Migration) -> Option<String> {
        let wanted = wanted(m).unwrap_or_default();
        let lost = |(namespace, name): (&str, &str)| {
            let place = (namespace.to_owned(), name.to_owned());
            let saved: Option<Saved> = m.saved(&saved_key(&place)).and_then(|saved| serde_json::from_value(saved).ok());
            if saved.is_none() && (namespace, name) != ROOT {
                return None;
            }
            let Some(object) = m.get(SECRET, namespace, name) else {
                return saved.map(|_| format!("Secret {} is gone", full(&place)));
            };
            let words = match pairs::lost(&secret_data(&object), saved.as_ref(), &m.targets(), &wanted, &m.uid()) {
                (gone, _) if !gone.is_empty() => format!("does not hold the pair of {} any more", gone.join(", ")),
                (_, changed) if !changed.is_empty() => format!("holds another pair of {} than was written", changed.join(", ")),
                _ => return None,
            };
            Some(format!("Secret {} {words} (oc -n {namespace} describe secret {name})", full(&place)))
        };
        let all: Vec<String> = std::iter::once(ROOT).chain(COMPONENT_SECRETS).filter_map(lost).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    fn ended(&self, m: &Migration) -> &'static str {
        if m.saved_any(SAVED) { "Added" } else { "AlreadyThere" }
    }

    fn stuck(&self, _m: &Migration) -> Vec<String> {
        vec![
            format!("oc -n {OPERATOR} logs deploy/cloud-credential-operator -c cloud-credential-operator --tail=50"),
            format!("oc -n {OPERATOR} get credentialsrequests -o yaml"),
            "oc get clusteroperator cloud-credential -o yaml".to_owned(),
            format!("oc -n {} get secret {} -o jsonpath='{{.metadata.annotations}}'", ROOT.0, ROOT.1),
        ]
    }
}

/// The pairs of the targets, from the Secret that the vmi names.
fn wanted(m: &Migration) -> Result<Pairs, Stop> {
    let (namespace, name) = (&m.cx.namespace, &m.spec().credentials_secret.name);
    let place = format!("Secret {namespace}/{name}");
    let next = "write both keys of every target into it, without line breaks, then resume";
    let unusable = |why: String| {
        let command = format!("oc -n {namespace} describe secret {name}");
        Stop::from(look(failure("CRD-002", format!("spec.credentialsSecret: {why}"), next), [command]))
    };
    let object = m.get(SECRET, namespace, name).ok_or_else(|| unusable(format!("there is no {place}")))?;
    let data = secret_data(&object);
    let mut pairs = Pairs::new();
    for server in m.targets() {
        let pair = secret::pair(&data, server).map_err(|refused| unusable(format!("{place}: {refused}")))?;
        let pair = pair.ok_or_else(|| unusable(format!("{place} has neither {server}.username nor {server}.password")))?;
        pairs.insert(server.to_owned(), pair);
    }
    Ok(pairs)
}

fn first(decision: &Decision, secrets: &Secrets, what: &str) -> Option<Write> {
    let (place, data) = decision.writes.first()?;
    let object = secrets.objects.get(place)?.as_ref().clone();
    Some(Write { object, data: data.clone(), save: None, what: format!("{what} Secret {}", full(place)) })
}

fn changes(decision: &Decision, what: &str) -> Vec<String> {
    let written = decision.writes.iter().map(|(place, _)| format!("Secret {}: {what}", full(place)));
    let copied = decision.awaited.iter().map(|place| format!("Secret {}: the same, by the cloud credential operator", full(place)));
    written.chain(copied).collect()
}

fn waiting(secrets: &Secrets, what: &str) -> Seen<Write> {
    let until = Timestamp::now().checked_add(SignedDuration::try_from(LOOK_AGAIN).unwrap_or_default()).ok();
    Seen::Waiting { message: format!("waits for the cloud credential operator to copy {what}"), until: until.filter(|_| secrets.unwatched) }
}

fn saved(m: &Migration, secrets: &Secrets) -> Result<BTreeMap<Place, Saved>, Stop> {
    let mut all = BTreeMap::new();
    for place in secrets.objects.keys() {
        let Some(saved) = m.saved(&saved_key(place)) else { continue };
        let saved = serde_json::from_value(saved).map_err(|error| {
            let text = format!("what was saved of Secret {} cannot be read: {error}", full(place));
            failure("SEC-005", text, "take the target's pair out of it by hand, then set spec.state to Abandoned")
        })?;
        all.insert(place.clone(), saved);
    }
    Ok(all)
}

fn saved_key((namespace, name): &Place) -> String {
    format!("{SAVED}{namespace}.{name}")
}

fn place_of(object: &DynamicObject) -> Place {
    (object.metadata.namespace.clone().unwrap_or_default(), object.metadata.name.clone().unwrap_or_default())
}

fn full((namespace, name): &Place) -> String {
    format!("{namespace}/{name}")
}

fn places(all: &[Place]) -> String {
    all.iter().map(full).collect::<Vec<_>>().join(", ")
}
