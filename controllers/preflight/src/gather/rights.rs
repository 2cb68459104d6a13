//! What the operator itself may do in the cluster, by the apiserver's word: an overlay that was left out is found before the start.

use futures::future::try_join_all;
use kube::api::{DynamicObject, PostParams};
use serde_json::json;
use vmi_crds::spec::Freeze;
use vmi_kit::Kind;
use vmi_kit::kind::{CLUSTER_VERSION, CONTROLLER_CONFIG, CRD, CREDENTIALS_REQUEST, DEPLOYMENT, SECRET, SELF_SUBJECT_ACCESS_REVIEW};
use vmi_site::followers::CONTROLLER_CONFIG_NAME;
use vmi_steps::Migration;

use super::VERSION_OPERATOR;
use super::path::CRDS;
use crate::requests;

/// One thing to be allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Right {
    verb: &'static str,
    kind: Kind,
    namespace: String,
    name: String,
}

fn right(verb: &'static str, kind: Kind, namespace: &str, name: &str) -> Right {
    Right { verb, kind, namespace: namespace.to_owned(), name: name.to_owned() }
}

impl Right {
    fn spoken(&self) -> String {
        let Right { verb, kind, namespace, name } = self;
        let place = if namespace.is_empty() { name.clone() } else { format!("{namespace}/{name}") };
        format!("{verb} {} {place}", kind.kind)
    }
}

/// What the legacy path takes besides: the two CRDs, a dry run of what follows Infrastructure, and whatever keeps the cluster version
/// operator from mending them.
fn of_the_legacy_path(freeze: Freeze) -> Vec<Right> {
    let held = match freeze {
        Freeze::ScaleDown => right("patch", DEPLOYMENT, VERSION_OPERATOR.0, VERSION_OPERATOR.1),
        Freeze::Overrides => right("patch", CLUSTER_VERSION, "", "version"),
    };
    let follower = right("update", CONTROLLER_CONFIG, "", CONTROLLER_CONFIG_NAME);
    CRDS.iter().map(|name| right("patch", CRD, "", name)).chain([follower, held]).collect()
}

/// What the legacy path takes and is denied, in words.
pub async fn denied_on_the_legacy_path(m: &Migration) -> Result<Vec<String>, String> {
    let denied = denied(m, of_the_legacy_path(m.spec().freeze)).await?;
    Ok(denied.iter().map(Right::spoken).collect())
}

/// Secrets of CredentialsRequests that are denied, as namespace and name.
pub async fn denied_secrets(m: &Migration) -> Result<Vec<(String, String)>, String> {
    // A request that cannot be read is told by its own check.
    let foreign = requests::foreign(&m.list(CREDENTIALS_REQUEST, "")).unwrap_or_default();
    let wanted = foreign.iter().flat_map(|target| ["get", "update"].map(|verb| right(verb, SECRET, &target.namespace, &target.name)));
    let denied = denied(m, wanted.collect()).await?;
    let mut places: Vec<(String, String)> = denied.into_iter().map(|right| (right.namespace, right.name)).collect();
    places.dedup();
    Ok(places)
}

async fn denied(m: &Migration, wanted: Vec<Right>) -> Result<Vec<Right>, String> {
    let allowed = try_join_all(wanted.iter().map(|right| allowed(m, right))).await.map_err(|error| format!("the apiserver: {error}"))?;
    Ok(wanted.into_iter().zip(allowed).filter(|(_, allowed)| !allowed).map(|(right, _)| right).collect())
}

async fn allowed(m: &Migration, right: &Right) -> Result<bool, kube::Error> {
    let attributes = json!({
        "verb": right.verb, "group": right.kind.group, "resource": right.kind.plural, "namespace": right.namespace, "name": right.name,
    });
    let mut review = DynamicObject::new("", &SELF_SUBJECT_ACCESS_REVIEW.resource());
    review.metadata.name = None;
    review.data = json!({"spec": {"resourceAttributes": attributes}});
    let answer = SELF_SUBJECT_ACCESS_REVIEW.api(&m.cx.client, "").create(&PostParams::default(), &review).await?;
    Ok(answer.data["status"]["allowed"] == true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_legacy_path_takes_depends_on_how_the_version_operator_is_held() {
        let spoken = |freeze| of_the_legacy_path(freeze).iter().map(Right::spoken).collect::<Vec<_>>();
        let crds = [
            "patch CustomResourceDefinition infrastructures.config.openshift.io",
            "patch CustomResourceDefinition controllerconfigs.machineconfiguration.openshift.io",
        ];
        let follower = "update ControllerConfig machine-config-controller";
        let deployment = "patch Deployment openshift-cluster-version/cluster-version-operator";
        assert_eq!(spoken(Freeze::ScaleDown), [crds[0], crds[1], follower, deployment]);
        assert_eq!(spoken(Freeze::Overrides), [crds[0], crds[1], follower, "patch ClusterVersion version"]);
    }
}
