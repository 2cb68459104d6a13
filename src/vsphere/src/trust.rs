//! Which server certificates are believed, and a verdict on each that says what was presented and why it was refused.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, OtherError, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature},
};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject};

use crate::{
    certificate::{Certificate, Thumbprint},
    error::Fault,
};

/// Which certificates are believed.
///
/// ```
/// use vsphere::{Client, Credentials, Fault, Settings, Trust};
///
/// let client = |trust| Client::new(Settings::new("vcenter.example.com", Credentials::new("me", "s3cr3t"), trust));
/// let pinned = "4C:3D:58:C2:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:D8";
/// client(Trust::Thumbprint(pinned.parse()?))?;
/// let error = client(Trust::Bundle(b"not a certificate".to_vec())).unwrap_err();
/// assert!(matches!(error.fault(), Fault::Settings(words) if words.contains("no certificate")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trust {
    /// Those signed by an authority the system trusts.
    System,
    /// Those signed by an authority of this PEM bundle, and no other.
    Bundle(Vec<u8>),
    /// Those signed by an authority of the system or of this PEM bundle.
    SystemAnd(Vec<u8>),
    /// Exactly one certificate, whoever signed it and whatever names it bears.
    Thumbprint(Thumbprint),
    /// Any. Whoever can answer in the vCenter's place gets the password: for a laboratory only.
    Insecure,
}

/// The last certificate a server presented, believed or not.
pub(crate) type Presented = Arc<Mutex<Option<Certificate>>>;

impl Trust {
    /// The TLS configuration, and the place where presented certificates are noted.
    pub(crate) fn configuration(&self) -> Result<(ClientConfig, Presented), Fault> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let presented = Presented::default();
        let policy = match self {
            Self::System => chain(&provider, None, true)?,
            Self::Bundle(pem) => chain(&provider, Some(pem), false)?,
            Self::SystemAnd(pem) => chain(&provider, Some(pem), true)?,
            Self::Thumbprint(pin) => Policy::Pin(*pin),
            Self::Insecure => Policy::Any,
        };
        let judge = Judge { policy, provider: Arc::clone(&provider), presented: Arc::clone(&presented) };
        let configuration = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| Fault::Settings(format!("TLS cannot be set up: {error}")))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(judge))
            .with_no_client_auth();
        Ok((configuration, presented))
    }
}

fn chain(provider: &Arc<CryptoProvider>, bundle: Option<&[u8]>, system: bool) -> Result<Policy, Fault> {
    let mut roots = RootCertStore::empty();
    if system {
        let found = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(found.certs);
    }
    if let Some(pem) = bundle {
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|error| Fault::Settings(format!("the CA bundle is not PEM: {error}")))?;
            roots
                .add(certificate)
                .map_err(|error| Fault::Settings(format!("the CA bundle holds something that is no certificate: {error}")))?;
        }
    }
    if roots.is_empty() {
        return Err(Fault::Settings(match bundle {
            Some(_) => "the CA bundle holds no certificate".into(),
            None => "the system trusts no authority at all: install its CA certificates or give a CA bundle".into(),
        }));
    }
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
        .build()
        .map(Policy::Chain)
        .map_err(|error| Fault::Settings(format!("the trusted authorities cannot be used: {error}")))
}

enum Policy {
    Chain(Arc<WebPkiServerVerifier>),
    Pin(Thumbprint),
    Any,
}

/// Decides on certificates; everything else of the handshake is rustls' own.
struct Judge {
    policy: Policy,
    provider: Arc<CryptoProvider>,
    presented: Presented,
}

impl fmt::Debug for Judge {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Judge")
    }
}

/// Travels inside rustls' error to whoever made the connection.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{reason}; presented was {presented}")]
pub(crate) struct Refused {
    pub(crate) reason: String,
    pub(crate) presented: Certificate,
}

impl ServerCertVerifier for Judge {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let presented = Certificate::read(end_entity);
        *self.presented.lock().unwrap_or_else(PoisonError::into_inner) = Some(presented.clone());
        let reason = match &self.policy {
            Policy::Any => return Ok(ServerCertVerified::assertion()),
            Policy::Pin(pin) if *pin == presented.thumbprint => return Ok(ServerCertVerified::assertion()),
            Policy::Pin(pin) => format!("its thumbprint is not the pinned {pin}"),
            Policy::Chain(verifier) => match verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
                Ok(verified) => return Ok(verified),
                Err(rustls::Error::InvalidCertificate(error)) => explain(&error, server_name),
                Err(error) => error.to_string(),
            },
        };
        let refused = OtherError(Arc::new(Refused { reason, presented }));
        Err(rustls::Error::InvalidCertificate(CertificateError::Other(refused)))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

fn explain(error: &CertificateError, server: &ServerName<'_>) -> String {
    match error {
        CertificateError::UnknownIssuer => "no trusted authority has signed it; give the CA bundle of this vCenter".into(),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "it has expired".into(),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => "it is not valid yet; are the clocks right?".into(),
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!("it is not for the name {}", server.to_str())
        }
        other => format!("{other}"),
    }
}

/// Finds a refused certificate in what an HTTP library made of it.
pub(crate) fn refusal(error: &(dyn std::error::Error + 'static)) -> Option<Refused> {
    let mut next = Some(error);
    while let Some(current) = next {
        if let Some(rustls::Error::InvalidCertificate(CertificateError::Other(OtherError(inner)))) = current.downcast_ref() {
            return inner.downcast_ref::<Refused>().cloned();
        }
        // An I/O error hides the error it wraps from `source`.
        next = match current.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref) {
            Some(inner) => Some(inner as &(dyn std::error::Error + 'static)),
            None => current.source(),
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_without_certificates_is_refused_in_words() {
        for (bundle, words) in
            [("", "holds no certificate"), ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "no certificate")]
        {
            let fault = Trust::Bundle(bundle.into()).configuration().unwrap_err();
            assert!(fault.to_string().contains(words), "{fault}");
        }
    }
}
