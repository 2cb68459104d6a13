//! The HTTP GET of a probe: any answer from 200 to 399 passes, certificates are not looked at.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Empty;
use hyper::Request;
use hyper::header::{HOST, USER_AGENT};
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::HTTPGetAction;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

pub(super) async fn get(host: &str, port: u16, action: &HTTPGetAction, tls: &Arc<ClientConfig>) -> Result<(), String> {
    let place = format!("{host}:{port}");
    let failed = |error: &dyn std::fmt::Display| format!("cannot get {place}: {error}");
    let stream = TcpStream::connect((host, port)).await.map_err(|error| failed(&error))?;
    let status = if action.scheme.as_deref().is_some_and(|scheme| scheme.eq_ignore_ascii_case("https")) {
        let name = ServerName::try_from(host.to_owned()).map_err(|error| failed(&error))?;
        let stream = TlsConnector::from(tls.clone()).connect(name, stream).await.map_err(|error| failed(&error))?;
        ask(stream, &place, action).await
    } else {
        ask(stream, &place, action).await
    };
    match status {
        Ok(status) if (200..400).contains(&status) => Ok(()),
        Ok(status) => Err(format!("HTTP probe failed with statuscode: {status}")),
        Err(error) => Err(failed(&error)),
    }
}

async fn ask<S>(stream: S, place: &str, action: &HTTPGetAction) -> Result<u16, Box<dyn std::error::Error + Send + Sync>>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    // Ends by itself when the sender is dropped; what goes wrong in it shows as the request's own error.
    tokio::spawn(connection);
    let path = action.path.as_deref().unwrap_or("/");
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    let mut request = Request::get(path).header(USER_AGENT, "kube-probe/1.34");
    for header in action.http_headers.iter().flatten() {
        request = request.header(&header.name, &header.value);
    }
    if !request.headers_ref().is_some_and(|headers| headers.contains_key(HOST)) {
        request = request.header(HOST, place);
    }
    Ok(sender.send_request(request.body(Empty::<Bytes>::new())?).await?.status().as_u16())
}

/// A TLS client that takes any certificate, as kubelets do for probes.
pub(super) fn unverified() -> Result<Arc<ClientConfig>, rustls::Error> {
    let provider = Arc::new(ring::default_provider());
    let verifier = Arc::new(AnyCertificate(provider.signature_verification_algorithms));
    let config = ClientConfig::builder_with_provider(provider as Arc<CryptoProvider>).with_safe_default_protocol_versions()?;
    Ok(Arc::new(config.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth()))
}

#[derive(Debug)]
struct AnyCertificate(WebPkiSupportedAlgorithms);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, certificate, signature, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, certificate, signature, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}
