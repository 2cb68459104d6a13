//! The pod's identity: tokens of its service account, bound to the pod and renewed in time, and a kubeconfig that uses one.

use std::path::{Path, PathBuf};
use std::time::Duration;

use k8s_openapi::api::authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::json;
use tokio::time::Instant;

use super::volumes::{WantedToken, write_file};
use crate::yaml;

/// What a kubelet asks for where the pod does not say.
const DEFAULT_SECONDS: i64 = 3600;

#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("cannot get a token of service account {account:?}: {source}")]
    Request { account: String, source: Box<kube::Error> },
    #[error("the apiserver gave service account {0:?} an empty answer instead of a token")]
    NoToken(String),
    #[error("cannot write {path}: {source}")]
    Write { path: PathBuf, source: std::io::Error },
    #[error("cannot write a kubeconfig: {0}")]
    Yaml(#[from] yaml::Error),
}

/// A token in a file.
pub(super) struct Token {
    wanted: WantedToken,
    renew: Option<Instant>,
}

impl Token {
    pub fn new(wanted: WantedToken) -> Token {
        Token { wanted, renew: None }
    }

    /// When the token has to be fetched; at once where there is none.
    pub fn due(&self) -> Option<Instant> {
        self.renew
    }

    /// Fetches the token if there is none or most of its time has passed.
    pub async fn refresh(&mut self, client: &Client, pod: &Pod, now: Instant) -> Result<(), Error> {
        if self.renew.is_some_and(|renew| now < renew) {
            return Ok(());
        }
        let account = pod.spec.as_ref().and_then(|spec| spec.service_account_name.clone()).unwrap_or_else(|| "default".to_owned());
        let seconds = self.wanted.seconds.unwrap_or(DEFAULT_SECONDS);
        let request = TokenRequest {
            spec: TokenRequestSpec {
                audiences: self.wanted.audience.iter().cloned().collect(),
                bound_object_ref: Some(BoundObjectReference {
                    api_version: Some("v1".to_owned()),
                    kind: Some("Pod".to_owned()),
                    name: pod.metadata.name.clone(),
                    uid: pod.metadata.uid.clone(),
                }),
                expiration_seconds: Some(seconds),
            },
            ..TokenRequest::default()
        };
        let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), pod.metadata.namespace.as_deref().unwrap_or_default());
        let answer = accounts
            .create_token_request(&account, &PostParams::default(), &request)
            .await
            .map_err(|source| Error::Request { account: account.clone(), source: Box::new(source) })?;
        let token = answer.status.map(|status| status.token).ok_or(Error::NoToken(account))?;
        write_file(&self.wanted.path, token.as_bytes(), 0o600).map_err(|source| Error::Write { path: self.wanted.path.clone(), source })?;
        // A kubelet renews after 80 % of the life.
        self.renew = Some(now + Duration::from_secs(seconds.unsigned_abs()) * 4 / 5);
        Ok(())
    }
}

/// Writes the kubeconfig of a pod into `folder`; returns its path and the token it refers to.
pub(super) fn write(folder: &Path, server: &str, authority: &Path, namespace: &str) -> Result<(PathBuf, Token), Error> {
    let token = folder.join("token");
    let path = folder.join("kubeconfig");
    let text = yaml::print(&json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "lab", "cluster": {"server": server, "certificate-authority": authority}}],
        "users": [{"name": "pod", "user": {"tokenFile": token}}],
        "contexts": [{"name": "pod", "context": {"cluster": "lab", "user": "pod", "namespace": namespace}}],
        "current-context": "pod",
    }))?;
    write_file(&path, text.as_bytes(), 0o600).map_err(|source| Error::Write { path: path.clone(), source })?;
    Ok((path, Token::new(WantedToken { path: token, audience: None, seconds: None })))
}
