//! The part of a vmi's status that one controller owns. It applies all of it each time: what it leaves out is deleted.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, MicroTime, Time};
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use serde_json::{Map, Value, json};
use vmi_crds::VSphereMigrationInfra;
use vmi_crds::graph::{Controller, SIGNALS, STEPS, StepName};
use vmi_crds::status::{RefusedCredentials, StepState, StepStatus};
use vmi_kit::context::Context;
use vmi_kit::failure::{Stop, words};
use vmi_kit::kind::VMI;
use vmi_kit::text::cut;

use crate::step::Wake;

const LOG_LINES: usize = 20;
const CHANGES: usize = 30;
/// Words alone are written this often at most: each write of them costs the apiserver tens of milliseconds, which others wait for.
const WORDS: SignedDuration = SignedDuration::from_secs(1);

/// What one controller reports of one migration. In the process that leads, this is the truth; the vmi follows.
#[derive(Clone, Debug)]
pub struct Report {
    controller: Controller,
    name: String,
    uid: String,
    generation: i64,
    conditions: BTreeMap<String, Condition>,
    steps: BTreeMap<StepName, StepStatus>,
    fields: Map<String, Value>,
    written: Option<Value>,
    /// When this process last wrote, and about which generation of the spec.
    last: Option<(Timestamp, i64)>,
    /// The version of the vmi that was looked at.
    looked_at: Option<String>,
    only_at: Option<String>,
}

impl Report {
    /// What the controller reported before, as the vmi has it.
    pub fn of(vmi: &VSphereMigrationInfra, controller: Controller, fields: &[&str]) -> Self {
        let status = vmi.seen();
        let owned = |name: &str| {
            STEPS.iter().any(|step| step.controller == controller && step.name.as_str() == name)
                || SIGNALS.iter().any(|signal| signal.controller == controller && signal.name == name)
        };
        let conditions = status.conditions.iter().filter(|condition| owned(&condition.type_));
        let steps = status.steps.iter().filter(|step| owned(&step.name));
        let all = serde_json::to_value(status).unwrap_or_default();
        let kept = fields.iter().filter_map(|field| Some(((*field).to_owned(), all.get(*field)?.clone())));
        let mut report = Self {
            controller,
            name: vmi.name_any(),
            uid: vmi.uid().unwrap_or_default(),
            generation: vmi.metadata.generation.unwrap_or_default(),
            conditions: conditions.map(|condition| (condition.type_.clone(), condition.clone())).collect(),
            steps: steps.filter_map(|step| Some((StepName::of(&step.name)?, step.clone()))).collect(),
            fields: kept.collect(),
            written: None,
            last: None,
            looked_at: None,
            only_at: None,
        };
        if vmi.status.is_some() {
            report.written = Some(report.status());
        }
        report
    }

    /// From now on about this generation of the spec.
    pub fn about(&mut self, vmi: &VSphereMigrationInfra) {
        self.generation = vmi.metadata.generation.unwrap_or_default();
        self.looked_at = vmi.resource_version();
    }

    /// The step's history, begun if there is none.
    pub fn step(&mut self, name: StepName) -> &mut StepStatus {
        let generation = self.generation;
        let step = self.steps.entry(name).or_insert_with(|| StepStatus {
            name: name.as_str().to_owned(),
            number: name.step().number.to_owned(),
            controller: name.step().controller.as_str().to_owned(),
            state: StepState::Waiting,
            attempts: 0,
            started_at: None,
            finished_at: None,
            observed_generation: None,
            message: String::new(),
            changes: Vec::new(),
            more_changes: None,
            log: Vec::new(),
            refused_credentials: Vec::new(),
            failure: None,
        });
        step.observed_generation = Some(generation);
        step
    }

    /// Sets a condition; the time moves only with the status.
    pub fn condition(&mut self, name: &str, status: &str, reason: &str, message: &str) {
        let message = cut(message, 1024);
        let before = self.conditions.get(name);
        let since = before.filter(|before| before.status == status).map(|before| before.last_transition_time.clone());
        let condition = Condition {
            type_: name.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message,
            observed_generation: Some(self.generation),
            last_transition_time: since.unwrap_or_else(|| Time(whole_seconds(Timestamp::now()))),
        };
        self.conditions.insert(name.to_owned(), condition);
    }

    /// The status of a condition as this controller last set it.
    pub fn condition_is(&self, name: &str, status: &str) -> bool {
        self.conditions.get(name).is_some_and(|condition| condition.status == status)
    }

    /// The reason of a condition as this controller last set it.
    pub fn reason(&self, name: &str) -> Option<&str> {
        self.conditions.get(name).map(|condition| condition.reason.as_str())
    }

    /// The message of a condition as this controller last set it.
    pub fn message(&self, name: &str) -> Option<&str> {
        self.conditions.get(name).map(|condition| condition.message.as_str())
    }

    /// Sets a field of the status that is this controller's.
    pub fn set(&mut self, field: &str, value: Value) {
        self.fields.insert(field.to_owned(), value);
    }

    /// Takes a field of the status away.
    pub fn unset(&mut self, field: &str) {
        self.fields.remove(field);
    }

    /// A field of the status that is this controller's.
    pub fn field(&self, field: &str) -> Option<&Value> {
        self.fields.get(field)
    }

    /// Adds a line to the step's log.
    pub fn log(&mut self, name: StepName, line: &str) {
        let now = whole_seconds(Timestamp::now());
        let log = &mut self.step(name).log;
        log.push(cut(&format!("{} {line}", now.strftime("%H:%M:%S")), 200));
        let surplus = log.len().saturating_sub(LOG_LINES);
        log.drain(..surplus);
    }

    /// What the step will change or has changed.
    pub fn changes(&mut self, name: StepName, changes: &[String]) {
        let step = self.step(name);
        step.changes = changes.iter().take(CHANGES).map(|change| cut(change, 160)).collect();
        step.more_changes = changes.len().checked_sub(CHANGES + 1).and_then(|rest| i32::try_from(rest + 1).ok());
    }

    /// Now, as a step's times are written.
    pub fn now() -> MicroTime {
        MicroTime(Timestamp::now())
    }

    /// Whether the vmi knows already that the step is at it, in this attempt.
    pub fn has_told(&self, name: StepName) -> bool {
        let steps = self.written.as_ref().and_then(|written| written["steps"].as_array());
        let told = steps.into_iter().flatten().find(|step| step["name"] == name.as_str());
        let now = self.steps.get(&name).map(|step| json!(step));
        let same = |field: &str| now.as_ref().zip(told).is_some_and(|(now, told)| now[field] == told[field]);
        ["state", "attempts", "startedAt"].into_iter().all(same)
    }

    fn status(&self) -> Value {
        let mut status = Value::Object(self.fields.clone());
        let conditions: Vec<&Condition> = self.conditions.values().collect();
        let steps: Vec<&StepStatus> = self.steps.values().collect();
        status["conditions"] = json!(conditions);
        status["steps"] = json!(steps);
        status
    }

    /// The next write counts only if the vmi is still of this version: for what must not cross a change of the user's mind.
    pub fn only_at(&mut self, version: Option<String>) {
        self.only_at = version;
    }

    /// What was to be written only at one version of the vmi is decided anew on the next: kept, it would be written then all the same.
    fn forget_unwritten_fields(&mut self) {
        let written = self.written.as_ref().and_then(Value::as_object);
        let fields = written.into_iter().flatten().filter(|(name, _)| !["conditions", "steps"].contains(&name.as_str()));
        self.fields = fields.map(|(name, value)| (name.clone(), value.clone())).collect();
    }

    /// Until when there is time to write what changed: nobody waits for words, and some were written a moment ago.
    pub fn put_off(&self) -> Wake {
        let (at, generation) = self.last?;
        let due = at.checked_add(WORDS).ok().filter(|due| generation == self.generation && Timestamp::now() < *due)?;
        self.only_words(&self.status()).then_some(due)
    }

    /// Whether nobody but a reader waits for what changed.
    fn only_words(&self, status: &Value) -> bool {
        self.written.as_ref().is_none_or(|before| before != status && awaited(before) == awaited(status))
    }

    /// Writes what changed, but words only if nobody has written into the vmi meanwhile: that is to be looked at first, for it may be
    /// what a step has waited for.
    pub async fn tell(&mut self, cx: &Context) -> Result<(), Stop> {
        let status = self.status();
        if !self.only_words(&status) {
            let _pass = cx.lane.ahead();
            return self.write(cx, status).await;
        }
        let _pass = cx.lane.behind().await;
        let now = cx.cache.get(VMI, &cx.namespace, &self.name).and_then(|vmi| vmi.resource_version());
        if now.is_some() && now != self.looked_at { Ok(()) } else { self.write(cx, status).await }
    }

    /// Writes what changed; nothing where only time would.
    pub async fn apply(&mut self, cx: &Context) -> Result<(), Stop> {
        let status = self.status();
        let _pass = if self.only_words(&status) { cx.lane.behind().await } else { cx.lane.ahead() };
        self.write(cx, status).await
    }

    async fn write(&mut self, cx: &Context, status: Value) -> Result<(), Stop> {
        let namespace = &cx.namespace;
        let refused: Vec<RefusedCredentials> = self.steps.values().flat_map(|step| step.refused_credentials.clone()).collect();
        if self.written.as_ref() == Some(&status) {
            cx.vcenters.trials().told(&refused);
            return Ok(());
        }
        let _writing = cx.vcenters.trials().write(refused).await;
        let mut body = json!({
            "apiVersion": "config.openshift.io/v1alpha1", "kind": "VSphereMigrationInfra",
            // With the UID, so that a vmi of the same name made since is not mistaken for this one.
            "metadata": {"name": self.name, "namespace": namespace, "uid": self.uid},
            "status": status,
        });
        let guarded = self.only_at.take();
        if let Some(version) = &guarded {
            body["metadata"]["resourceVersion"] = json!(version);
        }
        let params = PatchParams::apply(&self.controller.field_manager()).force();
        let written = match VMI.api(&cx.client, namespace).patch_status(&self.name, &params, &Patch::Apply(&body)).await {
            Ok(written) => written,
            Err(error) => {
                if guarded.is_some() {
                    self.forget_unwritten_fields();
                }
                return Err(match &error {
                    kube::Error::Api(answer) if answer.code == 409 && guarded.is_some() => Stop::again("the vmi changed meanwhile"),
                    kube::Error::Api(answer) if answer.code == 404 || answer.code == 409 => Stop::Fenced("the vmi is gone".to_owned()),
                    _ => Stop::again(format!("cannot write the vmi's status: {}", words(&error))),
                });
            }
        };
        crate::writes::counted();
        self.written = Some(status);
        self.last = Some((Timestamp::now(), self.generation));
        // A look at the vmi as it was before would take the step once more.
        cx.cache.take(written, VMI);
        Ok(())
    }
}

/// What others may wait for: how conditions and steps stand, passwords that were refused, and fields, but for the summary, which is
/// for readers.
fn awaited(status: &Value) -> Vec<(&str, &Value)> {
    let pick = |list: &'static str, key: &'static str, field: &'static str| {
        let entries = status[list].as_array().into_iter().flatten();
        entries.filter_map(move |entry| Some((entry[key].as_str()?, &entry[field])))
    };
    let fields = status.as_object().into_iter().flatten();
    let fields = fields.filter(|(name, _)| !["conditions", "steps", "summary"].contains(&name.as_str()));
    let fields = fields.map(|(name, value)| (name.as_str(), value));
    let steps = pick("steps", "name", "state").chain(pick("steps", "name", "refusedCredentials"));
    pick("conditions", "type", "status").chain(steps).chain(fields).collect()
}

fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

#[cfg(test)]
mod tests;
