//! Keeps one account from one kind of write, as if it were of a release that does not know how to make it.

use kube::Client;
use serde_json::{Value, json};
use vmi_lab::cluster;
use vmi_lab::kubernetes::{self, ADMISSION_POLICY, ADMISSION_POLICY_BINDING, Kind};

use crate::support::alone::impersonating;
use crate::support::asking;
use crate::support::lab::Lab;
use crate::support::suite::TestResult;

/// Which write of whom.
pub struct Forbidden {
    pub name: &'static str,
    /// Namespace and name of the service account; without a namespace, the name of a user.
    pub account: (&'static str, &'static str),
    pub operation: &'static str,
    pub kind: Kind,
    /// With its slash, or nothing.
    pub subresource: &'static str,
}

impl Forbidden {
    /// From a moment later on.
    pub async fn add(&self, lab: &Lab) -> TestResult {
        Ok(cluster::apply_all(&lab.client, &self.objects()).await?)
    }

    /// Returns when the apiserver goes by it: `attempt` makes such a write, as that account and as a dry run.
    pub async fn add_for_sure(&self, lab: &Lab, attempt: impl AsyncFn(Client) -> kube::Result<()>) -> TestResult {
        self.add(lab).await?;
        let client = impersonating(lab, &self.user()).await?;
        asking::until("the write to be refused", async || match attempt(client.clone()).await {
            Err(kube::Error::Api(answer)) if answer.message.contains(self.name) => Ok(()),
            other => Err(format!("it is not refused by {}: {other:?}", self.name).into()),
        })
        .await
    }

    /// Returns when the apiserver has forgotten it, by the same attempt.
    pub async fn lift_for_sure(&self, lab: &Lab, attempt: impl AsyncFn(Client) -> kube::Result<()>) -> TestResult {
        self.lift(lab).await?;
        let client = impersonating(lab, &self.user()).await?;
        asking::until("the write to be taken again", async || Ok(attempt(client.clone()).await?)).await
    }

    pub async fn lift(&self, lab: &Lab) -> TestResult {
        for kind in [ADMISSION_POLICY_BINDING, ADMISSION_POLICY] {
            kubernetes::delete(&lab.client, kind, "", self.name).await?;
        }
        Ok(())
    }

    fn user(&self) -> String {
        match self.account {
            ("", name) => name.to_owned(),
            (namespace, name) => format!("system:serviceaccount:{namespace}:{name}"),
        }
    }

    fn objects(&self) -> [Value; 2] {
        let rule = json!({
            "apiGroups": [self.kind.group], "apiVersions": ["*"], "operations": [self.operation],
            "resources": [format!("{}{}", self.kind.plural, self.subresource)],
        });
        let of = |kind: Kind, spec: Value| json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind.kind, "metadata": {"name": self.name}, "spec": spec});
        let expression = format!("request.userInfo.username != '{}'", self.user());
        [
            of(
                ADMISSION_POLICY,
                json!({
                    "failurePolicy": "Fail", "matchConstraints": {"resourceRules": [rule]},
                    "validations": [{"expression": expression, "message": format!("forbidden by the test: {}", self.name)}],
                }),
            ),
            of(ADMISSION_POLICY_BINDING, json!({"policyName": self.name, "validationActions": ["Deny"]})),
        ]
    }
}
