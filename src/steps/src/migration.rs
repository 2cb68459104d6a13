//! One migration as a controller sees it: the vmi, and where to look at the rest.

use std::sync::Arc;

use kube::ResourceExt;
use kube::api::{DynamicObject, PostParams, TypeMeta};
use kube::core::Status;
use serde_json::Value;
use vmi_crds::VSphereMigrationInfra;
use vmi_crds::spec::VSphereMigrationInfraSpec;
use vmi_crds::status::{Path, RefusedCredentials};
use vmi_kit::context::Context;
use vmi_kit::failure::{Stop, may_change};
use vmi_kit::kind::{INFRASTRUCTURE, SECRET};

/// What a step says that cannot plan before the path is chosen. A plan with such a step is not complete.
pub const WAITS_FOR_PATH: &str = "waits for the preflight to choose the path";

/// One migration, at the moment a controller looks at it.
#[derive(Clone)]
pub struct Migration {
    /// As last seen.
    pub vmi: Arc<VSphereMigrationInfra>,
    /// Everything else.
    pub cx: Arc<Context>,
}

impl Migration {
    /// What the user asks for.
    pub fn spec(&self) -> &VSphereMigrationInfraSpec {
        &self.vmi.spec
    }

    /// The vmi's name.
    pub fn name(&self) -> String {
        self.vmi.name_any()
    }

    /// The vmi's UID.
    pub fn uid(&self) -> String {
        self.vmi.uid().unwrap_or_default()
    }

    /// The object, as last seen.
    pub fn get(&self, kind: vmi_kit::Kind, namespace: &str, name: &str) -> Option<Arc<DynamicObject>> {
        self.cx.cache.get(kind, namespace, name)
    }

    /// All objects of the kind, as last seen; an empty namespace means everywhere.
    pub fn list(&self, kind: vmi_kit::Kind, namespace: &str) -> Vec<Arc<DynamicObject>> {
        self.cx.cache.list(kind, namespace)
    }

    /// The one Infrastructure, without which nothing can be said.
    pub fn infrastructure(&self) -> Option<Arc<DynamicObject>> {
        self.get(INFRASTRUCTURE, "", "cluster")
    }

    /// Whether the apiserver would take this spec of a thing of the whole cluster, by a dry run; the inner error is its refusal.
    pub async fn would_take(&self, kind: vmi_kit::Kind, object: &DynamicObject, spec: Value) -> Result<Result<(), Box<Status>>, Stop> {
        let mut object = object.clone();
        object.types = Some(TypeMeta { api_version: kind.api_version(), kind: kind.kind.to_owned() });
        object.data["spec"] = spec;
        let params = PostParams { dry_run: true, ..PostParams::default() };
        match kind.api(&self.cx.client, "").replace(&object.name_any(), &params, &object).await {
            Ok(_) => Ok(Ok(())),
            // That says nothing about the spec.
            Err(kube::Error::Api(answer)) if may_change(&answer) => {
                Err(Stop::again(format!("the dry run of {}: {}", kind.kind, answer.message)))
            }
            Err(kube::Error::Api(answer)) => Ok(Err(answer)),
            Err(error) => Err(error.into()),
        }
    }

    /// What the installer called this cluster in vSphere.
    pub fn infrastructure_id(&self) -> Option<String> {
        let infrastructure = self.infrastructure()?;
        infrastructure.data["status"]["infrastructureName"].as_str().filter(|name| !name.is_empty()).map(str::to_owned)
    }

    /// The vCenters to move to.
    pub fn targets(&self) -> Vec<&str> {
        self.spec().vcenters.iter().map(|vcenter| vcenter.server.as_str()).collect()
    }

    /// The vCenters to move from: as pinned at the start, before that as they would be.
    pub fn sources(&self) -> Vec<String> {
        let pinned = self.vmi.status.as_ref().and_then(|status| status.source.as_ref()).map(|source| source.servers.clone());
        pinned.unwrap_or_else(|| sources(self.spec(), self.infrastructure().as_deref()))
    }

    /// Whether the cluster takes a vCenter more as it is, once that is known.
    pub fn path(&self) -> Option<Path> {
        self.vmi.status.as_ref()?.plan.as_ref()?.path
    }

    /// What this migration saved under the key before it was changed. An earlier one of the same name does not count.
    pub fn saved(&self, key: &str) -> Option<Value> {
        let secret = self.saved_originals()?;
        crate::saved::read(&secret, key)
    }

    /// Whether this migration saved anything under a key that begins so.
    pub fn saved_any(&self, prefix: &str) -> bool {
        let secret = self.saved_originals();
        let keys = secret.as_ref().and_then(|secret| secret.data["data"].as_object());
        keys.is_some_and(|keys| keys.keys().any(|key| key.starts_with(prefix)))
    }

    fn saved_originals(&self) -> Option<Arc<DynamicObject>> {
        let secret = self.get(SECRET, &self.cx.namespace, &crate::saved::secret_name(&self.name()))?;
        secret.annotations().get(crate::saved::OWNER).filter(|owner| **owner == self.uid())?;
        Some(secret)
    }

    /// Every password that a vCenter refused to any step of any migration here.
    pub fn refused_credentials(&self) -> Vec<RefusedCredentials> {
        let all = self.cx.vmis();
        let steps = all.iter().filter_map(|vmi| vmi.status.as_ref()).flat_map(|status| &status.steps);
        steps.flat_map(|step| step.refused_credentials.clone()).collect()
    }
}

/// The vCenters of Infrastructure that are no targets, or those that are named.
pub fn sources(spec: &VSphereMigrationInfraSpec, infrastructure: Option<&DynamicObject>) -> Vec<String> {
    if let Some(source) = &spec.source {
        return source.servers.clone();
    }
    let listed = infrastructure.map(|object| &object.data["spec"]["platformSpec"]["vsphere"]["vcenters"]).and_then(Value::as_array);
    let servers = listed.into_iter().flatten().filter_map(|vcenter| vcenter["server"].as_str());
    servers.filter(|server| !spec.vcenters.iter().any(|target| target.server == *server)).map(str::to_owned).collect()
}
