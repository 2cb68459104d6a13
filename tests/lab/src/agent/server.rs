//! The kubelet's HTTPS API, as far as an apiserver needs it for `kubectl logs`. Callers must show a certificate.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Query as Parameters, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{any, get};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use jiff::Timestamp;
use rustls::RootCertStore;
use rustls::crypto::ring;
use rustls::server::WebPkiClientVerifier;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::reading::{Query, Reader};
use super::{Error, Identity, Shared};
use crate::kubernetes::POD;

/// Serves until dropped.
pub(super) async fn serve(listener: TcpListener, tls: TlsAcceptor, shared: Arc<Shared>) {
    let service = TowerToHyperService::new(routes(shared));
    let mut connections = JoinSet::new();
    loop {
        let stream = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "the kubelet API could not accept a connection");
                    // Mostly too many open files: give others time to close theirs.
                    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                    continue;
                }
            },
            Some(_) = connections.join_next() => continue,
        };
        let (tls, service) = (tls.clone(), service.clone());
        connections.spawn(async move {
            let stream = match tls.accept(stream).await {
                Ok(stream) => stream,
                Err(error) => return tracing::debug!(%error, "the kubelet API refused a caller"),
            };
            let connection = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a caller of the kubelet API went away");
            }
        });
    }
}

/// TLS with the serving certificate, for callers whose certificate `client_ca` signed.
pub(super) fn tls(serving: &Identity, client_ca: &str) -> Result<TlsAcceptor, Error> {
    let wrong = |what: &'static str| move |error: &dyn std::fmt::Display| Error::Certificate { what, reason: error.to_string() };
    let provider = Arc::new(ring::default_provider());
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(client_ca.as_bytes()) {
        let certificate = certificate.map_err(|error| wrong("client CA")(&error))?;
        roots.add(certificate).map_err(|error| wrong("client CA")(&error))?;
    }
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .build()
        .map_err(|error| wrong("client CA")(&error))?;
    let chain = CertificateDer::pem_slice_iter(serving.certificate.as_bytes())
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| wrong("serving certificate")(&error))?;
    let key = PrivateKeyDer::from_pem_slice(serving.key.as_bytes()).map_err(|error| wrong("serving key")(&error))?;
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong("TLS versions")(&error))?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)
        .map_err(|error| wrong("serving certificate")(&error))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn routes(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/healthz", get(async || "ok"))
        .route("/containerLogs/{namespace}/{pod}/{container}", get(logs))
        .route("/exec/{*rest}", any(async || not_here("exec")))
        .route("/attach/{*rest}", any(async || not_here("attach")))
        .route("/portForward/{*rest}", any(async || not_here("port-forward")))
        .with_state(shared)
}

/// A Status, for that is what the apiserver and kubectl pass on to the reader of a failed upgrade.
fn not_here(verb: &str) -> Response {
    let sentence = format!(
        "the lab's node agent runs containers as plain processes and has no {verb}: the pod's annotation {} tells where its ports are",
        super::ports::ANNOTATION
    );
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "reason": "NotImplemented", "code": StatusCode::NOT_IMPLEMENTED.as_u16(), "message": sentence,
    });
    (StatusCode::NOT_IMPLEMENTED, axum::Json(status)).into_response()
}

async fn logs(
    State(shared): State<Arc<Shared>>,
    Path((namespace, pod, container)): Path<(String, String, String)>,
    Parameters(parameters): Parameters<HashMap<String, String>>,
) -> Response {
    let bad = |sentence: String| (StatusCode::BAD_REQUEST, sentence).into_response();
    let query = match Query::parse(&parameters, Timestamp::now()) {
        Ok(query) => query,
        Err(sentence) => return bad(sentence),
    };
    let Some(log) = shared.logs.find(&namespace, &pod, &container, query.previous) else {
        let Some(object) = shared.cache.get(POD, &namespace, &pod) else {
            return (StatusCode::NOT_FOUND, format!("pod {pod:?} not found in namespace {namespace:?}")).into_response();
        };
        if query.previous {
            return bad(format!("previous terminated container {container:?} in pod {pod:?} not found"));
        }
        let reason = waiting_reason(&object.data, &container);
        return bad(format!("container {container:?} in pod {pod:?} is waiting to start: {reason}"));
    };
    match Reader::open(log, query).await {
        Ok(reader) => Body::from_stream(pieces(reader)).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("cannot open the log of {container:?}: {error}")).into_response(),
    }
}

fn waiting_reason(pod: &serde_json::Value, container: &str) -> String {
    let statuses = ["initContainerStatuses", "containerStatuses"].map(|list| pod["status"][list].as_array().cloned().unwrap_or_default());
    let status = statuses.into_iter().flatten().find(|status| status["name"] == container);
    let reason = status.as_ref().and_then(|status| status["state"]["waiting"]["reason"].as_str());
    reason.unwrap_or("ContainerCreating").to_owned()
}

fn pieces(reader: Reader) -> impl futures::Stream<Item = io::Result<bytes::Bytes>> {
    futures::stream::unfold(reader, async |mut reader| reader.next().await.map(|piece| (piece, reader)))
}

#[cfg(test)]
mod tests {
    use rustls::{ClientConfig, pki_types::ServerName};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio_rustls::TlsConnector;

    use super::*;
    use crate::pki::{Authority, Pair};

    /// Whether a caller with this certificate, or none, gets a byte through.
    async fn is_let_in(acceptor: TlsAcceptor, authority: &Authority, caller: Option<&Pair>) -> bool {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(authority.certificate.as_bytes()).unwrap()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let config = match caller {
            None => config.with_no_client_auth(),
            Some(pair) => {
                let certificate = CertificateDer::from_pem_slice(pair.certificate.as_bytes()).unwrap();
                config.with_client_auth_cert(vec![certificate], PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap()).unwrap()
            }
        };
        let (near, far) = tokio::io::duplex(64 * 1024);
        let server = tokio::spawn(async move { acceptor.accept(far).await?.write_all(b"!").await });
        let name = ServerName::try_from("kubelet").unwrap();
        let mut byte = [0];
        let read = async { TlsConnector::from(Arc::new(config)).connect(name, near).await?.read_exact(&mut byte).await };
        let let_in = read.await.is_ok();
        assert_eq!(server.await.unwrap().is_ok(), let_in);
        let_in
    }

    #[tokio::test]
    async fn only_callers_with_a_certificate_of_the_clusters_ca_are_let_in() {
        let (ours, theirs) = (Authority::new("ours").unwrap(), Authority::new("theirs").unwrap());
        let pair = ours.server("kubelet", &["kubelet"]).unwrap();
        let serving = Identity { certificate: pair.certificate, key: pair.key };
        let acceptor = tls(&serving, &ours.certificate).unwrap();
        let (friend, stranger) = (ours.client("apiserver", None).unwrap(), theirs.client("apiserver", None).unwrap());
        assert!(is_let_in(acceptor.clone(), &ours, Some(&friend)).await);
        assert!(!is_let_in(acceptor.clone(), &ours, Some(&stranger)).await);
        assert!(!is_let_in(acceptor, &ours, None).await);
    }

    #[test]
    fn a_key_that_is_none_is_named() {
        let authority = Authority::new("ours").unwrap();
        let serving = Identity { certificate: authority.certificate.clone(), key: "nonsense".to_owned() };
        let error = tls(&serving, &authority.certificate).err().unwrap().to_string();
        assert!(error.contains("serving key"), "{error}");
    }
}
