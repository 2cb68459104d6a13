//! The secrets that CredentialsRequests name and that the operator's manifests do not give it as a matter of course.

use serde_json::{Value, json};
use vmi_intent::credentials_requests::{Malformed, Target, targets};
use vmi_site::credentials::{COMPONENT_SECRETS, namespace_is_missing};

use crate::facts::Object;

/// All secrets that requests name, where their namespace is there.
pub fn named(requests: &[Object]) -> Result<Vec<Target>, Malformed> {
    let here: Vec<&Object> = requests.iter().filter(|request| !namespace_is_missing(request)).collect();
    let values: Vec<Value> =
        here.iter().map(|request| json!({"metadata": {"name": request.metadata.name}, "spec": request.data["spec"]})).collect();
    let mut named = targets(&values)?;
    // Where there is no request at all, what OpenShift is known to make is assumed: that needs no rights before it is there.
    named.retain(|target| here.iter().any(|request| request.metadata.name.as_deref() == Some(&target.request)));
    Ok(named)
}

/// Those of them that not every installation of the operator has rights on.
pub fn foreign(requests: &[Object]) -> Result<Vec<Target>, Malformed> {
    let known = |target: &Target| COMPONENT_SECRETS.contains(&(target.namespace.as_str(), target.name.as_str()));
    Ok(named(requests)?.into_iter().filter(|target| !known(target)).collect())
}
