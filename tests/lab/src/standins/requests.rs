//! The writes that OpenShift's operators make: whole objects, guarded by the resource version they were read at.

use kube::api::{Api, DynamicObject, PostParams, TypeMeta};
use kube::{Client, ResourceExt};
use serde_json::Value;

use crate::kubernetes::{Error, Kind};

fn failed(verb: &'static str, kind: Kind, name: &str) -> impl FnOnce(kube::Error) -> Error {
    let name = name.to_owned();
    move |source| Error::Request { verb, kind: kind.kind.to_owned(), name, source: Box::new(source) }
}

/// What a list returns does not say its kind, but what is sent must.
fn prepared(client: &Client, kind: Kind, object: &DynamicObject) -> (Api<DynamicObject>, DynamicObject) {
    let mut object = object.clone();
    object.types = Some(TypeMeta { api_version: kind.api_version(), kind: kind.kind.to_owned() });
    (kind.api(client, &object.namespace().unwrap_or_default()), object)
}

pub async fn create(client: &Client, kind: Kind, manifest: &Value) -> Result<DynamicObject, Error> {
    let metadata = &manifest["metadata"];
    let name = metadata["name"].as_str().ok_or(Error::Incomplete("metadata.name"))?;
    let source = |error| failed("create", kind, name)(kube::Error::SerdeError(error));
    let object: DynamicObject = serde_json::from_value(manifest.clone()).map_err(source)?;
    let (api, object) = prepared(client, kind, &object);
    api.create(&PostParams::default(), &object).await.map_err(failed("create", kind, name))
}

pub async fn replace(client: &Client, kind: Kind, object: &DynamicObject) -> Result<DynamicObject, Error> {
    let (api, object) = prepared(client, kind, object);
    let name = object.name_any();
    api.replace(&name, &PostParams::default(), &object).await.map_err(failed("replace", kind, &name))
}

/// What `replace` would store, defaults and all, without storing it.
pub async fn would_store(client: &Client, kind: Kind, object: &DynamicObject) -> Result<DynamicObject, Error> {
    let (api, object) = prepared(client, kind, object);
    let name = object.name_any();
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    api.replace(&name, &dry_run, &object).await.map_err(failed("try to replace", kind, &name))
}

pub async fn replace_status(client: &Client, kind: Kind, object: &DynamicObject) -> Result<DynamicObject, Error> {
    let (api, object) = prepared(client, kind, object);
    let name = object.name_any();
    api.replace_subresource("status", &name, &PostParams::default(), &object).await.map_err(failed("replace the status of", kind, &name))
}
