//! Certificates for everything that speaks TLS in a lab. Keys live as long as the lab's folder and are worth nothing outside it.

use std::net::IpAddr;

use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose, SanType};

#[derive(Debug, thiserror::Error)]
#[error("cannot make the certificate of {name}: {source}")]
pub struct Error {
    name: String,
    source: rcgen::Error,
}

/// A certificate and its key, both PEM.
#[derive(Clone)]
pub struct Pair {
    pub certificate: String,
    pub key: String,
}

/// A certificate authority.
pub struct Authority {
    /// Its own certificate, PEM: what others must trust.
    pub certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub fn new(name: &str) -> Result<Authority, Error> {
        let explain = |source| Error { name: name.to_owned(), source };
        let mut params = named(name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate().map_err(explain)?;
        let certificate = params.self_signed(&key).map_err(explain)?.pem();
        Ok(Authority { certificate, issuer: Issuer::new(params, key) })
    }

    /// A server's certificate for these host names and addresses.
    pub fn server(&self, name: &str, hosts: &[&str]) -> Result<Pair, Error> {
        let explain = |source| Error { name: name.to_owned(), source };
        let mut params = named(name);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        for host in hosts {
            params.subject_alt_names.push(match host.parse::<IpAddr>() {
                Ok(address) => SanType::IpAddress(address),
                Err(_) => SanType::DnsName((*host).try_into().map_err(explain)?),
            });
        }
        self.sign(name, params)
    }

    /// A client's certificate: Kubernetes reads the user from the common name and the group from the organisation.
    pub fn client(&self, user: &str, group: Option<&str>) -> Result<Pair, Error> {
        let mut params = named(user);
        if let Some(group) = group {
            params.distinguished_name.push(DnType::OrganizationName, group);
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(user, params)
    }

    fn sign(&self, name: &str, mut params: CertificateParams) -> Result<Pair, Error> {
        let explain = |source| Error { name: name.to_owned(), source };
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
        let key = KeyPair::generate().map_err(explain)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(explain)?.pem();
        Ok(Pair { certificate, key: key.serialize_pem() })
    }
}

/// A key pair without a certificate, PEM, as service account tokens are signed with.
pub struct SigningKey {
    pub private: String,
    pub public: String,
}

pub fn signing_key() -> Result<SigningKey, Error> {
    let key = KeyPair::generate().map_err(|source| Error { name: "service account tokens".to_owned(), source })?;
    Ok(SigningKey { private: key.serialize_pem(), public: key.public_key_pem() })
}

fn named(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    // Valid since yesterday, so that a clock set back a little does not make a fresh lab unreachable.
    let now = time::OffsetDateTime::now_utc();
    params.not_before = now - time::Duration::days(1);
    params.not_after = now + time::Duration::days(365);
    params
}
