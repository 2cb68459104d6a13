//! One migration at a time: the Lease `vmi-active`, held by the vmi's UID from its start to its end.

use kube::Client;
use kube::api::{DeleteParams, DynamicObject, PostParams, Preconditions};
use serde_json::json;

use vmi_kit::failure::Stop;
use vmi_kit::kind::LEASE;

/// The Lease's name.
pub const NAME: &str = "vmi-active";

/// Takes it for the vmi, or says which UID holds it.
pub async fn take(client: &Client, namespace: &str, uid: &str) -> Result<Result<(), String>, Stop> {
    let api = LEASE.api(client, namespace);
    if let Some(lease) = api.get_opt(NAME).await? {
        let holder = lease.data["spec"]["holderIdentity"].as_str().unwrap_or_default();
        return Ok(if holder == uid { Ok(()) } else { Err(holder.to_owned()) });
    }
    let body = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": NAME, "namespace": namespace}, "spec": {"holderIdentity": uid},
    });
    let lease: DynamicObject = serde_json::from_value(body).map_err(Stop::again)?;
    match api.create(&PostParams::default(), &lease).await {
        Ok(_) => {
            crate::writes::counted();
            Ok(Ok(()))
        }
        Err(kube::Error::Api(answer)) if answer.code == 409 => Err(Stop::again("another migration took the Lease vmi-active just now")),
        Err(error) => Err(error.into()),
    }
}

/// Gives it back, if it is this vmi's.
pub async fn release(client: &Client, namespace: &str, uid: &str) -> Result<(), Stop> {
    let api = LEASE.api(client, namespace);
    let Some(lease) = api.get_opt(NAME).await?.filter(|lease| lease.data["spec"]["holderIdentity"] == uid) else { return Ok(()) };
    let only = Preconditions { uid: lease.metadata.uid.clone(), resource_version: lease.metadata.resource_version.clone() };
    match api.delete(NAME, &DeleteParams { preconditions: Some(only), ..DeleteParams::default() }).await {
        Ok(_) => {
            crate::writes::counted();
            Ok(())
        }
        Err(kube::Error::Api(answer)) if answer.code == 404 || answer.code == 409 => Ok(()),
        Err(error) => Err(error.into()),
    }
}
