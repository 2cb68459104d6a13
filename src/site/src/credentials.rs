//! Looks at the secrets: the root, the components' by the CredentialsRequests, and whether somebody copies the one to the others.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::Value;
use vmi_intent::credentials_requests::{self, Target};
use vmi_intent::secret::Data;
use vmi_kit::failure::{Stop, failure, look};
use vmi_kit::kind::{CLOUD_CREDENTIAL, CONFIG_MAP, CREDENTIALS_REQUEST, SECRET};
use vmi_kit::touch::{Touch, reads};
use vmi_steps::Migration;

use crate::vcenter::{ROOT_SECRET as ROOT, secret_data};

/// Where the cloud credential operator lives, and the CredentialsRequests.
pub const OPERATOR: &str = "openshift-cloud-credential-operator";
/// Where it was once told to do nothing.
pub const LEGACY_CONFIG: &str = "cloud-credential-operator-config";
/// The secrets of components that every cluster has a place for. Any other is read only when a CredentialsRequest names it, and only
/// if somebody allowed that: its namespace may not exist, and then nobody can.
pub const COMPONENT_SECRETS: [(&str, &str); 4] = [
    ("openshift-machine-api", "vsphere-cloud-credentials"),
    ("openshift-cloud-controller-manager", "vsphere-cloud-credentials"),
    ("openshift-cluster-csi-drivers", "vmware-vsphere-cloud-credentials"),
    ("openshift-cluster-storage-operator", "vsphere-cloud-credentials"),
];

/// All that is read to find the secrets, and the secrets themselves, which are written.
pub const TOUCHES: [Touch; 8] = [
    written(ROOT),
    written(COMPONENT_SECRETS[0]),
    written(COMPONENT_SECRETS[1]),
    written(COMPONENT_SECRETS[2]),
    written(COMPONENT_SECRETS[3]),
    reads(CREDENTIALS_REQUEST).within(OPERATOR),
    reads(CONFIG_MAP).within(OPERATOR).named(LEGACY_CONFIG),
    reads(CLOUD_CREDENTIAL).named("cluster"),
];

const fn written((namespace, name): (&'static str, &'static str)) -> Touch {
    reads(SECRET).within(namespace).named(name).writes(&["update"])
}

/// Namespace and name of a secret.
pub type Place = (String, String);

/// The secrets as they are.
#[derive(Default)]
pub struct Found {
    /// The one that the cloud credential operator copies.
    pub root: Option<(Place, Data)>,
    /// Whether it does.
    pub copied: bool,
    /// The others.
    pub components: Vec<Component>,
}

/// A component's secret, where it is or will be.
pub struct Component {
    /// Where.
    pub place: Place,
    /// What it holds, if it is there.
    pub data: Option<Data>,
    /// Whether the cloud credential operator says that it has copied the root as it is now.
    pub synced: bool,
}

impl Found {
    /// Whether the cloud credential operator will write this one, given whether the root is about to change.
    pub fn copies(&self, component: &Component, root_changes: bool) -> bool {
        self.copied && (root_changes || !component.synced || component.data.is_none())
    }
}

/// The secrets as they are, and the objects they are in.
pub struct Secrets {
    /// What they hold.
    pub found: Found,
    /// The objects.
    pub objects: BTreeMap<Place, Arc<DynamicObject>>,
    /// Whether a secret was read that no watch tells of.
    pub unwatched: bool,
}

/// Looks at all of them. A secret that may not be read stops the way there, not the way back: it was never written.
pub async fn secrets(m: &Migration, way_back: bool) -> Result<Secrets, Stop> {
    let mut secrets = Secrets { found: Found::default(), objects: BTreeMap::new(), unwatched: false };
    let root_place = (ROOT.0.to_owned(), ROOT.1.to_owned());
    let root = m.get(SECRET, ROOT.0, ROOT.1);
    secrets.found.copied = root.is_some() && operator_copies(m);
    let root_version = root.as_ref().and_then(|root| root.resource_version());
    if let Some(root) = root {
        secrets.found.root = Some((root_place.clone(), secret_data(&root)));
        secrets.objects.insert(root_place, root);
    }
    let requests = m.list(CREDENTIALS_REQUEST, OPERATOR);
    for target in targets(&requests)? {
        let request = requests.iter().find(|request| request.name_any() == target.request);
        if request.is_some_and(|request| namespace_is_missing(request)) {
            continue;
        }
        let known = COMPONENT_SECRETS.contains(&(target.namespace.as_str(), target.name.as_str()));
        let object = match (known, request) {
            (true, _) => m.get(SECRET, &target.namespace, &target.name),
            (false, Some(_)) => {
                secrets.unwatched = true;
                match read(m, &target).await {
                    Err(Stop::Failed(_)) if way_back => continue,
                    read => read?,
                }
            }
            // Told by no request: few clusters have it, and nobody allowed it to be read.
            (false, None) => None,
        };
        // Without its request nobody makes a missing secret.
        if object.is_none() && request.is_none() {
            continue;
        }
        let place = (target.namespace.clone(), target.name.clone());
        let synced = request.is_some_and(|request| has_synced(request, root_version.as_deref()));
        secrets.found.components.push(Component { place: place.clone(), data: object.as_deref().map(secret_data), synced });
        secrets.objects.extend(object.map(|object| (place, object)));
    }
    Ok(secrets)
}

fn targets(requests: &[Arc<DynamicObject>]) -> Result<Vec<Target>, Stop> {
    let requests: Result<Vec<Value>, _> = requests.iter().map(|request| serde_json::to_value(request.as_ref())).collect();
    credentials_requests::targets(&requests.map_err(Stop::again)?).map_err(|malformed| {
        let command = format!("oc -n {OPERATOR} get credentialsrequests {} -o yaml", malformed.request);
        look(failure("SEC-003", malformed.to_string(), "correct or delete the request, then resume"), [command]).into()
    })
}

/// A secret of an add-on, which the operator may read only if somebody allows it.
async fn read(m: &Migration, target: &Target) -> Result<Option<Arc<DynamicObject>>, Stop> {
    let Target { namespace, name, request, .. } = target;
    match SECRET.api(&m.cx.client, namespace).get_opt(name).await {
        Ok(object) => Ok(object.map(Arc::new)),
        Err(kube::Error::Api(answer)) if answer.code == 403 => {
            let text = format!(
                "CredentialsRequest {request} keeps its credentials in Secret {namespace}/{name}, which the operator may not read and write"
            );
            let role = format!("oc -n {namespace} create role vmi-credentials --verb=get,update --resource=secrets --resource-name={name}");
            let account = &m.cx.namespace;
            let binding = format!(
                "oc -n {namespace} create rolebinding vmi-credentials --role=vmi-credentials --serviceaccount={account}:vmi-operator"
            );
            Err(look(failure("SEC-002", text, format!("allow it with: {role} && {binding}; then resume")), [role, binding]).into())
        }
        Err(error) => Err(error.into()),
    }
}

/// Whether the cloud credential operator is there and does its work.
fn operator_copies(m: &Migration) -> bool {
    let legacy = m.get(CONFIG_MAP, OPERATOR, LEGACY_CONFIG);
    let disabled = legacy.is_some_and(|map| map.data["data"]["disabled"] == "true");
    let mode = m.get(CLOUD_CREDENTIAL, "", "cluster").map(|object| object.data["spec"]["credentialsMode"].clone());
    copies(mode.as_ref(), disabled)
}

/// In mode Manual it does nothing, nor where the older ConfigMap disables it, nor without its configuration.
fn copies(mode: Option<&Value>, disabled: bool) -> bool {
    mode.is_some_and(|mode| mode != "Manual") && !disabled
}

fn has_synced(request: &DynamicObject, root_version: Option<&str>) -> bool {
    let status = &request.data["status"];
    status["provisioned"] == true && root_version.is_some_and(|version| status["lastSyncCloudCredsSecretResourceVersion"] == version)
}

/// Whether the cloud credential operator says that the namespace of the request's secret is not there: then nobody can have rights in it.
pub fn namespace_is_missing(request: &DynamicObject) -> bool {
    let conditions = request.data["status"]["conditions"].as_array().into_iter().flatten();
    conditions.filter(|condition| condition["type"] == "MissingTargetNamespace").any(|condition| condition["status"] == "True")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_root_is_copied_unless_the_mode_or_the_older_config_map_says_otherwise() {
        for (mode, disabled, expected) in [
            (Some(json!("")), false, true),
            (Some(json!(null)), false, true),
            (Some(json!("Passthrough")), false, true),
            (Some(json!("Mint")), false, true),
            (Some(json!("Manual")), false, false),
            (Some(json!("")), true, false),
            (Some(json!("Passthrough")), true, false),
            (None, false, false),
        ] {
            assert_eq!(copies(mode.as_ref(), disabled), expected, "{mode:?} {disabled}");
        }
    }

    fn request(status: &Value) -> DynamicObject {
        serde_json::from_value(json!({"metadata": {"name": "r"}, "status": status})).unwrap()
    }

    #[test]
    fn a_request_has_synced_only_with_the_root_as_it_is_now() {
        let done = request(&json!({"provisioned": true, "lastSyncCloudCredsSecretResourceVersion": "7"}));
        assert!(has_synced(&done, Some("7")) && !has_synced(&done, Some("8")) && !has_synced(&done, None));
        let failing = request(&json!({"provisioned": false, "lastSyncCloudCredsSecretResourceVersion": "7"}));
        assert!(!has_synced(&failing, Some("7")) && !has_synced(&request(&json!({})), Some("7")));
    }

    #[test]
    fn only_a_standing_complaint_makes_a_namespace_missing() {
        let complaint = |status: &str| request(&json!({"conditions": [{"type": "MissingTargetNamespace", "status": status}]}));
        assert!(namespace_is_missing(&complaint("True")) && !namespace_is_missing(&complaint("False")));
        assert!(!namespace_is_missing(&request(&json!({}))));
    }
}
