//! The only way to write outside the vmi. Before every write: this process leads, and by the vmi as it is now it is still the step's turn.

use std::future::Future;
use std::time::{Duration, Instant};

use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, ResourceExt};
use serde_json::Value;
use vmi_crds::VSphereMigrationInfra;
use vmi_crds::graph::StepName;
use vmi_crds::turn::{Turn, turn};
use vmi_kit::failure::{Stop, failure, may_change, words};
use vmi_kit::kind::{Kind, SECRET};
use vmi_kit::trial::Writing;

use crate::migration::Migration;
use crate::{saved, writes};

/// Longer than an apiserver that has just started takes to read its roles.
const ROLES: Duration = Duration::from_secs(30);
/// Longer than a webhook whose watch has ended waits before it reads anew: up to a minute, by client-go's reflector.
const WEBHOOKS: Duration = Duration::from_secs(120);

/// Writes for one step, in one direction.
pub struct Writer<'a> {
    m: &'a Migration,
    step: StepName,
    expects: Turn,
    done: Vec<String>,
}

impl<'a> Writer<'a> {
    /// For a step whose turn it is.
    pub fn new(m: &'a Migration, step: StepName, expects: Turn) -> Self {
        Self { m, step, expects, done: Vec::new() }
    }

    /// What was written so far, in words.
    pub fn done(&self) -> &[String] {
        &self.done
    }

    /// Whether a write may be made now, by the vmi as it is now; as long as the answer is kept no password is tried for the first time.
    pub async fn fence(&self) -> Result<Writing, Stop> {
        let writing = self.m.cx.vcenters.trials().write(Vec::new()).await;
        if !self.m.cx.leads() {
            return Err(Stop::Fenced("this process does not lead any more".to_owned()));
        }
        let api: Api<VSphereMigrationInfra> = Api::namespaced(self.m.cx.client.clone(), &self.m.cx.namespace);
        let vmi = api.get_opt(&self.m.name()).await?.filter(|vmi| vmi.uid().is_some_and(|uid| uid == self.m.uid()));
        let Some(vmi) = vmi else { return Err(Stop::Fenced("the vmi is gone".to_owned())) };
        let now = turn(&vmi, self.step);
        if now == self.expects { Ok(writing) } else { Err(Stop::Fenced(format!("it is no longer the turn of {}: {now:?}", self.step))) }
    }

    /// Creates an object; that it is there already is a conflict to look at again.
    pub async fn create(&mut self, kind: Kind, object: Value, what: &str) -> Result<(), Stop> {
        let _writing = self.fence().await?;
        let object = parse(object)?;
        let api = kind.api(&self.m.cx.client, &object.namespace().unwrap_or_default());
        let made = api.create(&PostParams::default(), &object).await.map_err(|error| self.refused(what, &error))?;
        self.wrote(kind, made, what);
        Ok(())
    }

    /// A JSON patch. It should hold a `test` for what it is based on; the object's version is tested besides where it is given.
    pub async fn patch(&mut self, kind: Kind, object: &DynamicObject, operations: Value, what: &str) -> Result<(), Stop> {
        let _writing = self.fence().await?;
        let patch: json_patch::Patch =
            serde_json::from_value(operations).map_err(|error| Stop::again(format!("a patch that cannot be written: {error}")))?;
        let api = kind.api(&self.m.cx.client, &object.namespace().unwrap_or_default());
        let params = PatchParams { field_manager: Some("vmi-operator".to_owned()), ..PatchParams::default() };
        let made = api.patch(&object.name_any(), &params, &Patch::Json::<()>(patch)).await.map_err(|error| self.refused(what, &error))?;
        self.wrote(kind, made, what);
        Ok(())
    }

    /// Replaces an object by what it shall be; it carries the version it is based on, so that nobody's change is lost.
    pub async fn replace(&mut self, kind: Kind, object: DynamicObject, what: &str) -> Result<DynamicObject, Stop> {
        let _writing = self.fence().await?;
        let api = kind.api(&self.m.cx.client, &object.namespace().unwrap_or_default());
        let made = api.replace(&object.name_any(), &PostParams::default(), &object).await.map_err(|error| self.refused(what, &error))?;
        self.wrote(kind, made.clone(), what);
        Ok(made)
    }

    /// Deletes exactly this object, not one of the same name made since.
    pub async fn delete(&mut self, kind: Kind, object: &DynamicObject, what: &str) -> Result<(), Stop> {
        let _writing = self.fence().await?;
        let namespace = object.namespace().unwrap_or_default();
        let uid = object.uid().unwrap_or_default();
        let only = Preconditions { uid: Some(uid.clone()), resource_version: None };
        let params = DeleteParams { preconditions: Some(only), ..DeleteParams::default() };
        match kind.api(&self.m.cx.client, &namespace).delete(&object.name_any(), &params).await {
            Ok(_) => {}
            Err(kube::Error::Api(answer)) if answer.code == 404 || answer.code == 409 => {}
            Err(error) => return Err(self.refused(what, &error)),
        }
        writes::counted();
        self.said(what);
        self.m.cx.cache.until_deleted(kind, &namespace, &object.name_any(), &uid).await;
        Ok(())
    }

    /// A change in a vCenter. Whoever logged in there says what an error means: a password may be refused only now.
    pub async fn vcenter<T>(
        &mut self,
        what: &str,
        stop: impl FnOnce(&str, &vsphere::Error) -> Stop,
        change: impl Future<Output = vsphere::Result<T>>,
    ) -> Result<T, Stop> {
        // Not kept: a session that was lost is made anew in the middle of the change.
        drop(self.fence().await?);
        let made = change.await.map_err(|error| stop(what, &error))?;
        writes::counted();
        self.said(what);
        Ok(made)
    }

    /// Saves an original before it is changed. What is saved already stays as it is.
    pub async fn save(&mut self, key: &str, value: &Value) -> Result<(), Stop> {
        let (name, namespace, uid) = (self.m.name(), self.m.cx.namespace.clone(), self.m.uid());
        let api = SECRET.api(&self.m.cx.client, &namespace);
        let what = format!("save {key}");
        let Some(secret) = api.get_opt(&saved::secret_name(&name)).await? else {
            return self.create(SECRET, saved::first(&name, &namespace, &uid, key, value), &what).await;
        };
        match saved::unfinished_owner(&secret) {
            Some(owner) if owner == uid => {}
            // Nobody needs those any more: the name was used before.
            None if saved::is_finished(&secret) => {
                return self.patch(SECRET, &secret, saved::begun_anew(&secret, &uid, key, value), &what).await;
            }
            owner => {
                let whose = owner.unwrap_or("nobody knows whose");
                let text = format!("Secret {namespace}/{} holds the originals of another migration ({whose})", saved::secret_name(&name));
                return Err(failure("SAV-001", text, "look at what it holds, then rename or delete it, and resume").into());
            }
        }
        if secret.data["data"].get(key).is_some() {
            return Ok(());
        }
        self.patch(SECRET, &secret, saved::added(&uid, key, value), &what).await
    }

    fn wrote(&mut self, kind: Kind, object: DynamicObject, what: &str) {
        writes::counted();
        self.said(what);
        self.m.cx.cache.take(object, kind);
    }

    /// A conflict means that somebody else wrote meanwhile: look again. What the apiserver refuses for its content stays refused.
    fn refused(&self, what: &str, error: &kube::Error) -> Stop {
        match error {
            kube::Error::Api(answer) if may_change(answer) => Stop::again(format!("cannot {what} yet: {}", words(error))),
            kube::Error::Api(answer) if answer.code == 403 => {
                let (text, next, patience) = if by_admission(answer) {
                    // A webhook judges by what it has heard of, which may be older than what was written.
                    (format!("admission refuses to {what}: {}", answer.message), "correct what it names, then resume", WEBHOOKS)
                } else {
                    let next = "apply deploy/overlays of this release again: the operator lacks a right it needs, then resume";
                    (format!("not allowed to {what}: {}", answer.message), next, ROLES)
                };
                if !self.m.cx.denials.last(self.step, Instant::now(), patience) {
                    return Stop::again(text);
                }
                failure("API-403", text, next).into()
            }
            kube::Error::Api(answer) if answer.code == 422 => {
                failure("API-422", format!("the apiserver refuses to {what}: {}", answer.message), "correct what it names, then resume")
                    .into()
            }
            _ => Stop::again(format!("cannot {what}: {}", words(error))),
        }
    }

    fn said(&mut self, what: &str) {
        self.m.cx.denials.end(self.step);
        tracing::info!(step = %self.step, vmi = self.m.name(), "{what}");
        self.done.push(what.to_owned());
    }
}

/// Whether a webhook or a policy said no, not the roles.
fn by_admission(answer: &kube::core::Status) -> bool {
    ["denied the request", "denied request"].iter().any(|words| answer.message.contains(words))
}

fn parse(object: Value) -> Result<DynamicObject, Stop> {
    serde_json::from_value(object).map_err(|error| Stop::again(format!("an object that cannot be written: {error}")))
}

#[cfg(test)]
mod tests {
    use super::by_admission;

    #[test]
    fn a_webhook_or_a_policy_that_says_no_is_no_missing_right() {
        let answer = |message: &str| kube::core::Status { code: 403, message: message.to_owned(), ..Default::default() };
        assert!(by_admission(&answer("admission webhook \"x.machine.openshift.io\" denied the request: spec.replicas: Forbidden")));
        assert!(by_admission(&answer(
            "machinesets \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: in use"
        )));
        assert!(!by_admission(&answer("machinesets.machine.openshift.io \"a\" is forbidden: User \"u\" cannot patch resource")));
    }
}
