// Certificates for one test. The examples of the documentation include this file, as they do its neighbour `vcsim`.

use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};

/// An authority that exists for one test.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key, on disk.
pub(crate) struct Pair {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub(crate) fn pem(&self) -> Vec<u8> {
        self.0.pem().into_bytes()
    }

    /// A server certificate for these names or addresses.
    pub(crate) fn issue(&self, dir: &Path, file: &str, names: &[&str]) -> Pair {
        self.sign(dir, file, &params(file, names))
    }

    /// The same, but its time was 2019.
    pub(crate) fn issue_expired(&self, dir: &Path, file: &str, names: &[&str]) -> Pair {
        let mut params = params(file, names);
        params.not_before = date_time_ymd(2019, 1, 1);
        params.not_after = date_time_ymd(2019, 12, 31);
        self.sign(dir, file, &params)
    }

    fn sign(&self, dir: &Path, file: &str, params: &CertificateParams) -> Pair {
        let key = KeyPair::generate().unwrap();
        let made = params.signed_by(&key, &self.0).unwrap();
        let pair = Pair { certificate: dir.join(format!("{file}.pem")), key: dir.join(format!("{file}.key")) };
        std::fs::write(&pair.certificate, made.pem()).unwrap();
        std::fs::write(&pair.key, key.serialize_pem()).unwrap();
        pair
    }
}

fn params(file: &str, names: &[&str]) -> CertificateParams {
    let mut params = CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap();
    params.distinguished_name.push(DnType::CommonName, file);
    params
}
