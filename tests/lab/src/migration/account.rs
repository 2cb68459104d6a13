//! The operator's identity: a kubeconfig that is exactly its service account, with a token as a pod would have it.

use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::PostParams;
use kube::config::Kubeconfig;
use kube::{Api, Client};
use serde_json::json;

use crate::control_plane::SIDE_DOOR;
use crate::net::Block;
use crate::yaml;

/// Longer than any lab is used.
const LIFE: i64 = 24 * 3600;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot get a token of service account {namespace}/{account}: {source}")]
    Token { namespace: String, account: String, source: Box<kube::Error> },
    #[error("the apiserver gave service account {0:?} an empty answer instead of a token")]
    NoToken(String),
    #[error("cannot read the lab's kubeconfig {path}: {reason}", path = .path.display())]
    Read { path: PathBuf, reason: String },
    #[error("cannot write the kubeconfig {path}: {source}", path = .path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot write the kubeconfig of {account:?}: {source}")]
    Yaml { account: String, source: yaml::Error },
}

/// The user as which the apiserver knows a service account.
pub fn user(namespace: &str, account: &str) -> String {
    format!("system:serviceaccount:{namespace}:{account}")
}

/// A token of the service account, as its pods would have it.
pub async fn token(client: &Client, namespace: &str, account: &str) -> Result<String, Error> {
    let request = TokenRequest {
        spec: TokenRequestSpec { expiration_seconds: Some(LIFE), ..TokenRequestSpec::default() },
        ..TokenRequest::default()
    };
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), namespace);
    let answer = accounts.create_token_request(account, &PostParams::default(), &request).await.map_err(|source| Error::Token {
        namespace: namespace.to_owned(),
        account: account.to_owned(),
        source: Box::new(source),
    })?;
    answer.status.map(|status| status.token).ok_or_else(|| Error::NoToken(account.to_owned()))
}

/// Writes a kubeconfig for the service account, readable for its owner alone, into the lab's `folder` and returns its path. It
/// leads through the side door, so that what the account watches can be made late.
pub async fn kubeconfig(client: &Client, folder: &Path, block: Block, namespace: &str, account: &str) -> Result<PathBuf, Error> {
    let token = token(client, namespace, account).await?;
    let own = folder.join("kubeconfig");
    let unreadable = |reason: String| Error::Read { path: own.clone(), reason };
    let lab = Kubeconfig::read_from(&own).map_err(|error| unreadable(error.to_string()))?;
    let cluster =
        lab.clusters.first().and_then(|named| named.cluster.as_ref()).ok_or_else(|| unreadable("it has no cluster".to_owned()))?;
    let text = yaml::print(&json!({
        "apiVersion": "v1", "kind": "Config", "current-context": account,
        "clusters": [{"name": "lab", "cluster": {
            "server": format!("https://{}:{SIDE_DOOR}", block.control_plane()),
            "certificate-authority-data": cluster.certificate_authority_data,
        }}],
        "users": [{"name": account, "user": {"token": token}}],
        "contexts": [{"name": account, "context": {"cluster": "lab", "user": account, "namespace": namespace}}],
    }))
    .map_err(|source| Error::Yaml { account: account.to_owned(), source })?;

    let path = folder.join(format!("{account}.kubeconfig"));
    let write = || -> io::Result<()> {
        let mut file = std::fs::OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&path)?;
        file.write_all(text.as_bytes())
    };
    write().map_err(|source| Error::Write { path: path.clone(), source })?;
    Ok(path)
}
