//! One controller by itself on a real cluster: under a user with exactly the rights its touches say, with what the other
//! controllers would report set by hand.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use vmi_crds::VSphereMigrationInfra;
use vmi_crds::graph::StepName;
use vmi_kit::cache::Cache;
use vmi_kit::metrics::Metrics;
use vmi_kit::{Context, OWN, Touch, kind, reads};
use vmi_lab::cluster::{config, crds};
use vmi_lab::kubernetes;
use vmi_steps::Controller;

use crate::support::asking;
use crate::support::lab::Lab;
use crate::support::openshift::{PATIENCE, vcenter};
use crate::support::suite::TestResult;

/// The vmi's name on every ground.
pub const NAME: &str = "growth";

/// A namespace with a vmi that adds the lab's second vCenter, and what it refers to. Ends with [`Ground::leave`].
pub struct Ground<'a> {
    pub lab: &'a Lab,
    pub namespace: String,
}

impl<'a> Ground<'a> {
    /// `change` is merged into a vmi that grows the cluster by vCenter b.
    pub async fn new(lab: &'a Lab, namespace: &str, change: Value) -> TestResult<Ground<'a>> {
        crds::install(&lab.client, &[vmi_lab::yaml::parse(vmi_crds::CRD_YAML)?]).await?;
        let target = vcenter(lab, "b")?;
        let objects = [
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "target", "namespace": namespace}, "stringData": config::credentials(&target)}),
        ];
        for object in &objects {
            kubernetes::apply(&lab.client, "test", object).await?;
        }
        let zone = target.zones.first().ok_or("vCenter b has no zone")?;
        let domain = config::FailureDomain { name: format!("fd-{zone}"), region: "region-b".to_owned(), zone: format!("zone-{zone}") };
        let mut domain = config::failure_domain_entry(&domain, &target, zone);
        domain["topology"].as_object_mut().ok_or("no topology")?.remove("folder");
        let mut spec = json!({
            "state": "Pending", "sourceRetirement": "Keep", "credentialsSecret": {"name": "target"},
            // Whom to trust has tests of its own.
            "trust": {"insecure": true},
            "vcenters": [config::vcenter_entry(&target)], "failureDomains": [domain],
            "health": {"quietPeriod": "3s", "deadline": "3m"}, "acknowledged": ["ETC-001"],
        });
        merge(&mut spec, &change);
        let ground = Ground { lab, namespace: namespace.to_owned() };
        let mut vmi = DynamicObject::new(NAME, &kind::VMI.resource());
        vmi.data = json!({"spec": spec});
        // Established comes a moment before the first request is answered.
        let api = kind::VMI.api(&lab.client, namespace);
        let create = async {
            loop {
                match api.create(&PostParams::default(), &vmi).await {
                    Err(kube::Error::Api(answer)) if answer.code == 404 => tokio::time::sleep(Duration::from_millis(100)).await,
                    outcome => return outcome,
                }
            }
        };
        tokio::time::timeout(PATIENCE, create).await??;
        Ok(ground)
    }

    pub async fn vmi(&self) -> TestResult<VSphereMigrationInfra> {
        Ok(self.api().get(NAME).await?)
    }

    pub fn api(&self) -> Api<VSphereMigrationInfra> {
        Api::namespaced(self.lab.client.clone(), &self.namespace)
    }

    /// Changes the spec.
    pub async fn edit(&self, spec: Value) -> TestResult {
        self.api().patch(NAME, &PatchParams::default(), &Patch::Merge(json!({"spec": spec}))).await?;
        Ok(())
    }

    /// As if the preflight had chosen the path, passed, and the migration had started.
    pub async fn start(&self, path: &str) -> TestResult {
        self.report("preflight", json!({"plan": {"path": path}}), &[(StepName::PreflightPassed, "True", "Passed", "Done")]).await?;
        let source = self.lab.vcenter("a").server.clone();
        self.report("summary", json!({"startedAt": now(), "source": {"servers": [source]}, "graphVersion": 1}), &[]).await?;
        self.edit(json!({"state": "Running"})).await
    }

    /// As if these steps had ended well; all steps of one controller at once, since it reports all it has at once.
    pub async fn done(&self, steps: &[StepName]) -> TestResult {
        self.say(steps, "True", "Done", "Done").await
    }

    /// As if these steps had been taken back.
    pub async fn undone(&self, steps: &[StepName]) -> TestResult {
        self.say(steps, "False", "Undone", "Undone").await
    }

    async fn say(&self, steps: &[StepName], status: &str, reason: &str, state: &str) -> TestResult {
        let mut by: BTreeMap<&str, Vec<(StepName, &str, &str, &str)>> = BTreeMap::new();
        for step in steps {
            by.entry(step.step().controller.as_str()).or_default().push((*step, status, reason, state));
        }
        for (controller, steps) in by {
            self.report(controller, json!({}), &steps).await?;
        }
        Ok(())
    }

    /// Everything that a controller reports: status fields, and steps as (name, condition's status, reason, state).
    pub async fn report(&self, controller: &str, mut fields: Value, steps: &[(StepName, &str, &str, &str)]) -> TestResult {
        let condition = |(name, status, reason, _): &(StepName, &str, &str, &str)| json!({"type": name.as_str(), "status": status, "reason": reason, "message": "set by hand", "lastTransitionTime": now()});
        let step = |(name, _, _, state): &(StepName, &str, &str, &str)| json!({"name": name.as_str(), "number": name.step().number, "controller": controller, "state": state});
        fields["conditions"] = steps.iter().map(condition).collect();
        fields["steps"] = steps.iter().map(step).collect();
        let body = json!({
            "apiVersion": "config.openshift.io/v1alpha1", "kind": "VSphereMigrationInfra",
            "metadata": {"name": NAME, "namespace": self.namespace}, "status": fields,
        });
        let params = PatchParams::apply(&format!("vmi-{controller}")).force();
        self.api().patch_status(NAME, &params, &Patch::Apply(&body)).await?;
        Ok(())
    }

    /// A condition that is no step's, as this field manager would report it.
    pub async fn condition(&self, manager: &str, condition: Value) -> TestResult {
        let body = json!({
            "apiVersion": "config.openshift.io/v1alpha1", "kind": "VSphereMigrationInfra",
            "metadata": {"name": NAME, "namespace": self.namespace}, "status": {"conditions": [condition]},
        });
        self.api().patch_status(NAME, &PatchParams::apply(manager).force(), &Patch::Apply(&body)).await?;
        Ok(())
    }

    /// Waits until the vmi is as wanted; the error says what is missing.
    pub async fn until(
        &self,
        what: &str,
        look: impl Fn(&VSphereMigrationInfra) -> Result<(), String>,
    ) -> TestResult<VSphereMigrationInfra> {
        let mut cache = self.lab.watch(&[VMI]).await;
        let found = cache
            .until(what, PATIENCE, |cache| {
                let object = cache.get(VMI, &self.namespace, NAME).ok_or("the vmi is gone")?;
                let vmi: VSphereMigrationInfra = object.as_ref().clone().try_parse().map_err(|error| error.to_string())?;
                look(&vmi).map(|()| vmi)
            })
            .await?;
        Ok(found)
    }

    /// Waits until the condition has the status and the reason.
    pub async fn until_condition(&self, name: StepName, status: &str, reason: &str) -> TestResult<VSphereMigrationInfra> {
        self.until(&format!("{name} to be {status}, {reason}"), |vmi| match vmi.condition(name.as_str()) {
            Some(condition) if condition.status == status && condition.reason == reason => Ok(()),
            Some(condition) => Err(format!("it is {}, {}: {}", condition.status, condition.reason, condition.message)),
            None => Err("there is none".to_owned()),
        })
        .await
    }

    /// Takes the namespace and the vmi away.
    pub async fn leave(self) -> TestResult {
        kubernetes::delete(&self.lab.client, VMI, &self.namespace, NAME).await?;
        kubernetes::delete(&self.lab.client, kubernetes::NAMESPACE, "", &self.namespace).await?;
        Ok(())
    }
}

const VMI: kubernetes::Kind = kubernetes::Kind {
    group: "config.openshift.io",
    version: "v1alpha1",
    kind: "VSphereMigrationInfra",
    plural: "vspheremigrationinfra",
    namespaced: true,
};

pub fn now() -> String {
    format!("{:.0}", k8s_openapi::jiff::Timestamp::now())
}

fn merge(into: &mut Value, change: &Value) {
    match (into, change) {
        (Value::Object(into), Value::Object(change)) => {
            for (key, value) in change {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, change) => *into = change.clone(),
    }
}

/// A controller that runs by itself until it is stopped.
pub struct Alone {
    user: String,
    context: Arc<Context>,
    task: JoinHandle<()>,
    _leads: watch::Sender<bool>,
}

impl Alone {
    /// Runs the controller on the ground.
    pub async fn run<C: Controller>(ground: &Ground<'_>, controller: C) -> TestResult<Alone> {
        let user = format!("alone-{}", C::NAME);
        let touches: Vec<Touch> = C::TOUCHES.iter().copied().chain([reads(kind::VMI).within(OWN)]).collect();
        for object in rights(&user, &ground.namespace, &touches) {
            kubernetes::apply(&ground.lab.client, "test", &object).await?;
        }
        for touch in &touches {
            asking::until("the rights of a controller", async || is_allowed(ground, &user, touch).await).await?;
        }
        let client = impersonating(ground.lab, &user).await?;
        let cache = Cache::start(&client, &ground.namespace, &touches);
        let (_leads, leads) = watch::channel(true);
        let context = Context::new(client, cache, &ground.namespace, Metrics::new()?, leads);
        let task = tokio::spawn(vmi_steps::driver::run(controller, Arc::clone(&context)));
        Ok(Alone { user, context, task, _leads })
    }

    /// What it works with.
    pub fn context(&self) -> Arc<Context> {
        Arc::clone(&self.context)
    }

    /// Ends it as a crash would.
    pub async fn kill(self) {
        self.task.abort();
        let _ = self.task.await;
    }

    /// Ends it, and fails if it read or wrote anything that its touches do not name.
    pub async fn finish(self, ground: &Ground<'_>) -> TestResult {
        let (strays, user) = (self.context.cache.strays(), self.user.clone());
        self.context.vcenters.close().await?;
        self.kill().await;
        if !strays.is_empty() {
            return Err(format!("it read what its touches do not name: {}", strays.join(", ")).into());
        }
        let log = std::fs::read_to_string(ground.lab.folder().join("logs/audit.log"))?;
        let denied: Vec<String> = log
            .lines()
            .filter(|line| line.contains(&user) && line.contains("\"code\":403"))
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .filter(|event| event["impersonatedUser"]["username"] == user.as_str() && event["responseStatus"]["code"] == 403)
            .map(|event| format!("{} {}", event["verb"].as_str().unwrap_or_default(), event["requestURI"].as_str().unwrap_or_default()))
            .collect();
        if denied.is_empty() { Ok(()) } else { Err(format!("it was denied what its touches do not name:\n{}", denied.join("\n")).into()) }
    }
}

/// By the apiserver's own word, which it gives by what it has read of roles so far.
async fn is_allowed(ground: &Ground<'_>, user: &str, touch: &Touch) -> TestResult {
    let namespace = if touch.namespace == OWN { ground.namespace.as_str() } else { touch.namespace };
    let wanted = ResourceAttributes {
        verb: Some("list".to_owned()),
        group: Some(touch.kind.group.to_owned()),
        resource: Some(touch.kind.plural.to_owned()),
        namespace: Some(namespace.to_owned()),
        name: Some(touch.name.to_owned()),
        ..ResourceAttributes::default()
    };
    let spec = SubjectAccessReviewSpec { user: Some(user.to_owned()), resource_attributes: Some(wanted), ..Default::default() };
    let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
    let answer = Api::<SubjectAccessReview>::all(ground.lab.client.clone()).create(&PostParams::default(), &review).await?;
    match answer.status.is_some_and(|status| status.allowed) {
        true => Ok(()),
        false => Err(format!("{user} may not list {} in {namespace:?} yet", touch.kind.plural).into()),
    }
}

pub async fn impersonating(lab: &Lab, user: &str) -> TestResult<Client> {
    let file = Kubeconfig::read_from(lab.folder().join("kubeconfig"))?;
    let mut config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
    config.proxy_url = None;
    config.auth_info.impersonate = Some(user.to_owned());
    Ok(Client::try_from(config)?)
}

/// Roles for exactly what is touched. `log` among the writes means reading logs. In its own namespace every controller may besides
/// read the vmi, report and tell of it.
fn rights(user: &str, own: &str, touches: &[Touch]) -> Vec<Value> {
    let mut rules: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    let reports = json!({"apiGroups": [kind::VMI.group], "resources": [format!("{}/status", kind::VMI.plural)], "verbs": ["patch"]});
    let tells = json!({"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch"]});
    rules.insert(own, vec![reports, tells]);
    for touch in touches {
        let namespace = if touch.namespace == OWN { own } else { touch.namespace };
        let verbs: Vec<&str> =
            ["get", "list", "watch"].into_iter().chain(touch.writes.iter().copied().filter(|verb| *verb != "log")).collect();
        let mut rule = json!({"apiGroups": [touch.kind.group], "resources": [touch.kind.plural], "verbs": verbs});
        // A name cannot be known before an object is created.
        if !touch.name.is_empty() && !touch.writes.contains(&"create") {
            rule["resourceNames"] = json!([touch.name]);
        }
        rules.entry(namespace).or_default().push(rule);
        if touch.writes.contains(&"log") {
            rules.entry(namespace).or_default().push(json!({"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]}));
        }
    }
    let mut objects = Vec::new();
    for (namespace, rules) in rules {
        let prefix = if namespace.is_empty() { "Cluster" } else { "" };
        let group = "rbac.authorization.k8s.io";
        let metadata = if namespace.is_empty() { json!({"name": user}) } else { json!({"name": user, "namespace": namespace}) };
        objects.push(json!({"apiVersion": format!("{group}/v1"), "kind": format!("{prefix}Role"), "metadata": metadata, "rules": rules}));
        objects.push(json!({
            "apiVersion": format!("{group}/v1"), "kind": format!("{prefix}RoleBinding"), "metadata": metadata,
            "roleRef": {"apiGroup": group, "kind": format!("{prefix}Role"), "name": user},
            "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
        }));
    }
    objects
}
