//! A migration that meets faults, and what is asked of it whenever it stops.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use vmi_crds::VSphereMigrationInfra;
use vmi_crds::graph::StepName;
use vmi_crds::period::Period;
use vmi_crds::spec::{SourceRetirement, State};
use vmi_crds::status::Failure;
use vmi_lab::faults::{Calls, Fault, Faults};
use vmi_lab::kubernetes::{self, POD, VMI};
use vmi_lab::migration::dump::Dump;
use vmi_lab::migration::operator::{Operator, Options};
use vmi_lab::migration::view::View;
use vmi_lab::migration::watch::{self, End};
use vmi_lab::migration::{self, NAMESPACE, Site, audit, conditions, deploy, request};

use crate::endurance::seen_by_all;
use crate::support::asking;
use crate::support::command;
use crate::support::lab::Lab;
use crate::support::suite::TestResult;

/// For one fault to be found, or one to be got over, on a loaded machine.
const LONG: Duration = Duration::from_secs(420);
/// For all that is left to do once the last fault is mended.
const THE_REST: Duration = Duration::from_secs(900);
/// Long enough for the next fault to be put in force before the migration goes on.
const QUIET: &str = "30s";

/// A migration under way in a lab of its own.
pub struct Underway<'a> {
    lab: &'a Lab,
    pub site: Site,
    pub faults: Faults,
    operator: Operator,
    before: Dump,
    began: Timestamp,
    lives: usize,
}

impl<'a> Underway<'a> {
    /// Asks for a migration that does so with the source, and stands still at a place that is known beforehand: no folder can be made.
    pub async fn standing(lab: &'a Lab, source: SourceRetirement) -> TestResult<(Underway<'a>, String)> {
        let faults = Faults::of(&lab.record).await?;
        let calls = Calls { method: Some("CreateFolder".to_owned()), ..Calls::default() };
        let no_folder = faults.add(&Fault::Status { vcenter: "b".to_owned(), code: 404, calls }).await?;
        let site = Site::of(&lab.record).await?;
        let before = Dump::take(&site).await?;
        let began = Timestamp::now();
        deploy::install(&site).await?;
        let mut vmi = request::asked(&site, source)?;
        vmi.spec.health.quiet_period = Period::try_from(QUIET.to_owned())?;
        request::ask(&site, &vmi).await?;
        request::set_state(&site, State::Running).await?;
        let operator = Operator::start(&site, &Options::default()).await?;
        let mut underway = Underway { lab, site, faults, operator, before, began, lives: 1 };
        underway.stops("VCT-001", None).await?;
        Ok((underway, no_folder))
    }

    pub async fn until<T>(&mut self, what: &str, enough: impl FnMut(&VSphereMigrationInfra) -> Option<T>) -> TestResult<T> {
        Ok(self.operator.while_alive(watch::follow(&self.site, &mut View::stderr(), what, LONG, enough)).await?)
    }

    fn next_life(&mut self) -> Options {
        self.lives += 1;
        Options { identity: format!("life-{}", self.lives), ..Options::default() }
    }

    /// A new process, which knows no connection to any vCenter.
    pub async fn restart(&mut self) -> TestResult {
        let options = self.next_life();
        let new = Operator::start(&self.site, &options).await?;
        std::mem::replace(&mut self.operator, new).stop().await;
        Ok(())
    }

    /// Lets time go by that nobody wants to wait for. Deadlines are kept in the vmi alone: for the next process the step began earlier.
    pub async fn hours_pass(&mut self, step: StepName) -> TestResult {
        self.operator.kill().await?;
        let vmi = request::get(&self.site).await?;
        let mut began = vmi.step(step).and_then(|step| step.started_at.clone()).ok_or("the step has not begun")?;
        began.0 = began.0.checked_sub(jiff::SignedDuration::from_hours(12))?;
        let place = vmi.seen().steps.iter().position(|entry| entry.name == step.as_str()).ok_or("no such step")?;
        let operations = json!([
            {"op": "test", "path": format!("/status/steps/{place}/name"), "value": step.as_str()},
            {"op": "replace", "path": format!("/status/steps/{place}/startedAt"), "value": began},
        ]);
        let patch: Patch<()> = Patch::Json(serde_json::from_value(operations)?);
        VMI.api(&self.site.client, NAMESPACE).patch_status(request::NAME, &PatchParams::default(), &patch).await?;
        let options = self.next_life();
        self.operator = Operator::start(&self.site, &options).await?;
        Ok(())
    }

    /// As hints say: a pod whose lines hold the migration is replaced once what they tell of is mended.
    pub async fn replace_pod(&self, failure: &Failure) -> TestResult {
        let (namespace, pod) = failure.pod.as_deref().and_then(|pod| pod.split_once('/')).ok_or("no pod is named")?;
        assert!(failure.next.contains(&format!("oc -n {namespace} delete pod {pod}")), "{}", failure.next);
        Ok(kubernetes::delete(&self.site.client, POD, namespace, pod).await?)
    }

    /// Deletes the pods of a workload that reads its Secret or configuration only when it starts, or whose lines hold the migration.
    pub async fn restart_pods(&self, namespace: &str, prefix: &str) -> TestResult {
        let pods = kubernetes::list(&self.site.client, POD, namespace).await?;
        for pod in pods.iter().map(kube::ResourceExt::name_any).filter(|name| name.starts_with(prefix)) {
            kubernetes::delete(&self.site.client, POD, namespace, &pod).await?;
        }
        Ok(())
    }

    /// Changes how health is judged.
    pub async fn health(&self, patch: &Value) -> TestResult {
        kubernetes::merge(&self.site.client, VMI, NAMESPACE, request::NAME, &json!({"spec": {"health": patch}})).await?;
        Ok(())
    }

    /// As hints say: what has failed is tried again after a pause.
    pub async fn resume(&mut self) -> TestResult {
        request::set_state(&self.site, State::Paused).await?;
        // Whoever has not seen the pause has nothing to try again.
        self.operator.while_alive(seen_by_all(&self.site)).await?;
        Ok(request::set_state(&self.site, State::Running).await?)
    }

    /// Waits until the migration has stopped by this rule, about this component, and holds the explanation to what it promises.
    pub async fn stops(&mut self, rule: &str, component: Option<&str>) -> TestResult<Failure> {
        self.stops_by(&[(rule, component)]).await
    }

    /// The same where one of several may be the first to tell.
    pub async fn stops_by(&mut self, any: &[(&str, Option<&str>)]) -> TestResult<Failure> {
        let names = any.iter().map(|(rule, component)| format!("{rule} of {}", component.unwrap_or("no component")));
        let what = names.collect::<Vec<_>>().join(" or ");
        let since = Instant::now();
        let (failure, message) = self
            .until(&what, |vmi| {
                let failures = vmi.seen().steps.iter().filter_map(|step| step.failure.clone());
                let told =
                    ["Held", "Degraded"].iter().filter_map(|name| vmi.condition(name)).filter(|condition| condition.status == "True");
                let reasons: Vec<_> = told.collect();
                failures.into_iter().find_map(|failure| {
                    let wanted = any.contains(&(failure.rule.as_str(), failure.component.as_deref()));
                    let told = reasons.iter().find(|condition| wanted && condition.reason == failure.rule)?;
                    Some((failure, told.message.clone()))
                })
            })
            .await?;
        let rule = &failure.rule;
        eprintln!("stopped by {rule} after {:.1} s", since.elapsed().as_secs_f64());
        assert!(message.contains(&failure.next) && !failure.cluster_state.is_empty(), "{message}: {failure:?}");
        assert!(!failure.look.is_empty(), "{failure:?}");
        for hint in &failure.look {
            self.paste(hint).await.map_err(|error| format!("{rule} says to look with {hint}: {error}"))?;
        }
        let reason = format!("reason={rule}");
        // Events are published beside the status, and come a little later.
        asking::until("an Event", async || {
            let events =
                self.lab.kubectl(&["-n", NAMESPACE, "get", "events", "--field-selector", &reason, "-o", "name"]).await?.success()?;
            if events.stdout.trim().is_empty() { Err(format!("no Event tells of {rule}").into()) } else { Ok(()) }
        })
        .await?;
        Ok(failure)
    }

    /// Runs a command as somebody would who copied it; only the program is another.
    async fn paste(&self, hint: &str) -> TestResult {
        let mut shell = tokio::process::Command::new("bash");
        shell.arg("-c").arg(format!("oc() {{ '{}' \"$@\"; }}\n{hint}", self.lab.kubectl.display()));
        shell.env("KUBECONFIG", self.lab.folder().join("kubeconfig"));
        command::run(&mut shell).await?.success()?;
        Ok(())
    }

    /// Follows the migration for as long as the fault lasts, and fails should it stop.
    pub async fn does_not_stop_for(&mut self, time: Duration) -> TestResult {
        let stopped = |vmi: &VSphereMigrationInfra| {
            let stop = ["Held", "Degraded"].iter().filter_map(|name| vmi.condition(name)).find(|condition| condition.status == "True");
            stop.map(|condition| format!("{} {}: {}", condition.type_, condition.reason, condition.message))
        };
        let mut view = View::stderr();
        match self.operator.while_alive(watch::follow(&self.site, &mut view, "a stop", time, stopped)).await {
            Err(migration::Error::GaveUp(_)) => Ok(()),
            Ok(stop) => Err(format!("it stopped: {stop}").into()),
            Err(error) => Err(error.into()),
        }
    }

    pub async fn completed(mut self) -> TestResult<(Site, Dump, Operator)> {
        let mut view = View::stderr();
        let end = self.operator.while_alive(watch::follow(&self.site, &mut view, "the end", THE_REST, watch::end)).await?;
        assert_eq!(end, End::Completed);
        // Whatever went wrong on the way, the console never showed a condition that does not say why, since when and of what.
        let events = audit::read(&self.site.folder, self.began, |event| event.object_ref.resource == VMI.plural)?;
        assert_eq!(conditions::unexplained(&events), Vec::<String>::new());
        Ok((self.site, self.before, self.operator))
    }
}
