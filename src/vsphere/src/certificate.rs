//! Just enough of X.509 to say which certificate a server presented. Trust is never decided here.

use std::{fmt, net::IpAddr, str::FromStr};

use sha2::{Digest, Sha256};

/// The SHA-256 of a certificate, as `openssl x509 -fingerprint -sha256` and vCenter's own pages show it.
///
/// ```
/// let pin: vsphere::Thumbprint = "4c3d58c2000000000000000000000000000000000000000000000000000000d8".parse()?;
/// assert!(pin.to_string().starts_with("4C:3D:58:C2:"));
/// # Ok::<(), vsphere::NotAThumbprint>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Thumbprint([u8; 32]);

impl Thumbprint {
    pub(crate) fn of(der: &[u8]) -> Self {
        Self(Sha256::digest(der).into())
    }
}

impl fmt::Display for Thumbprint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            write!(out, "{}{byte:02X}", if at == 0 { "" } else { ":" })?;
        }
        Ok(())
    }
}

impl fmt::Debug for Thumbprint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

/// The text is not a SHA-256 thumbprint.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0:?} is not a SHA-256 thumbprint: give 64 hex digits, with or without colons (a SHA-1 one has 40 and is not accepted)")]
pub struct NotAThumbprint(String);

impl FromStr for Thumbprint {
    type Err = NotAThumbprint;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refused = || NotAThumbprint(text.chars().take(120).collect());
        let digits: Vec<u8> = text
            .chars()
            .filter(|character| !matches!(character, ':' | ' '))
            .map(|character| character.to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
            .collect::<Option<_>>()
            .ok_or_else(refused)?;
        let bytes: Vec<u8> = digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect();
        if digits.len() != 64 {
            return Err(refused());
        }
        bytes.try_into().map(Self).map_err(|_wrong_length: Vec<u8>| refused())
    }
}

/// What a server presented, for people to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    /// Its SHA-256.
    pub thumbprint: Thumbprint,
    /// Common name, or organisation, of the holder.
    pub subject: String,
    /// The same of the issuer.
    pub issuer: String,
    /// The names and addresses it is for.
    pub names: Vec<String>,
    /// Begin of its validity, as written in it (`YYMMDDhhmmssZ` or `YYYYMMDDhhmmssZ`).
    pub not_before: String,
    /// End of its validity, as written in it.
    pub not_after: String,
}

impl fmt::Display for Certificate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let or_unknown = |text: &str| if text.is_empty() { "unknown".to_owned() } else { format!("{text:?}") };
        write!(out, "subject {}, issuer {}", or_unknown(&self.subject), or_unknown(&self.issuer))?;
        write!(out, ", for {:?}, valid {} to {}", self.names, or_unknown(&self.not_before), or_unknown(&self.not_after))?;
        write!(out, ", SHA-256 {}", self.thumbprint)
    }
}

impl Certificate {
    /// Reads as far as it can; what cannot be read stays empty, the thumbprint is always right.
    pub(crate) fn read(der: &[u8]) -> Self {
        let mut certificate = Self {
            thumbprint: Thumbprint::of(der),
            subject: String::new(),
            issuer: String::new(),
            names: Vec::new(),
            not_before: String::new(),
            not_after: String::new(),
        };
        // A reader that gives up half-way has already filled what it understood.
        let _ = certificate.fill(der);
        certificate
    }

    fn fill(&mut self, der: &[u8]) -> Option<()> {
        let mut certificate = Der(Der(der).expect(SEQUENCE)?);
        let mut fields = Der(certificate.expect(SEQUENCE)?);
        let mut next = fields.next()?;
        if next.0 == 0xa0 {
            next = fields.next()?;
        }
        let _serial = next;
        let _algorithm = fields.expect(SEQUENCE)?;
        self.issuer = name(fields.expect(SEQUENCE)?);
        let mut validity = Der(fields.expect(SEQUENCE)?);
        self.not_before = text(validity.next()?.1);
        self.not_after = text(validity.next()?.1);
        self.subject = name(fields.expect(SEQUENCE)?);
        let _key = fields.expect(SEQUENCE)?;
        while let Some((tag, content)) = fields.next() {
            if tag == 0xa3 {
                self.names = alternative_names(content);
            }
        }
        Some(())
    }
}

const SEQUENCE: u8 = 0x30;
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const ORGANISATION: &[u8] = &[0x55, 0x04, 0x0a];
const SUBJECT_ALTERNATIVE_NAME: &[u8] = &[0x55, 0x1d, 0x11];

/// A run of DER values.
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (&tag, rest) = self.0.split_first()?;
        let (&first, mut rest) = rest.split_first()?;
        let mut length = usize::from(first);
        if first & 0x80 != 0 {
            let bytes = usize::from(first & 0x7f);
            if bytes == 0 || bytes > 4 || bytes > rest.len() {
                return None;
            }
            length = rest[..bytes].iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
            rest = &rest[bytes..];
        }
        let (content, after) = rest.split_at_checked(length)?;
        self.0 = after;
        Some((tag, content))
    }

    fn expect(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.next().filter(|(found, _)| *found == tag).map(|(_, content)| content)
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).chars().filter(|character| !character.is_control()).take(200).collect()
}

/// The common name, else the organisation.
fn name(sequence: &[u8]) -> String {
    let mut best = String::new();
    let mut sets = Der(sequence);
    while let Some((_, set)) = sets.next() {
        let Some(pair) = Der(set).expect(SEQUENCE) else { continue };
        let mut pair = Der(pair);
        match (pair.next(), pair.next()) {
            (Some((_, COMMON_NAME)), Some((_, value))) => return text(value),
            (Some((_, ORGANISATION)), Some((_, value))) => best = text(value),
            _ => {}
        }
    }
    best
}

fn alternative_names(extensions: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    let mut list = Der(Der(extensions).expect(SEQUENCE).unwrap_or_default());
    while let Some((_, extension)) = list.next() {
        let mut parts = Der(extension);
        if parts.next().is_none_or(|(_, id)| id != SUBJECT_ALTERNATIVE_NAME) {
            continue;
        }
        while let Some((tag, value)) = parts.next() {
            if tag != 0x04 {
                continue;
            }
            let mut names = Der(Der(value).expect(SEQUENCE).unwrap_or_default());
            while let Some((tag, value)) = names.next() {
                match (tag, value.len()) {
                    (0x82, _) => found.push(text(value)),
                    (0x87, 4) => found.extend(<[u8; 4]>::try_from(value).ok().map(|bytes| IpAddr::from(bytes).to_string())),
                    (0x87, 16) => found.extend(<[u8; 16]>::try_from(value).ok().map(|bytes| IpAddr::from(bytes).to_string())),
                    _ => {}
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_tells_its_holder_names_and_validity() {
        let mut params = rcgen::CertificateParams::new(vec!["vc.example.com".to_owned(), "127.0.0.1".to_owned()]).unwrap();
        params.distinguished_name.push(rcgen::DnType::CommonName, "vc");
        let made = params.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap();
        let read = Certificate::read(made.der());
        assert_eq!((read.subject.as_str(), read.issuer.as_str()), ("vc", "vc"));
        assert_eq!(read.names, ["vc.example.com", "127.0.0.1"]);
        assert!(read.not_after.ends_with('Z') && read.not_before.ends_with('Z'), "{read}");
        for cut in 0..made.der().len() {
            assert_eq!(Certificate::read(&made.der()[..cut]).thumbprint, Thumbprint::of(&made.der()[..cut]));
        }
    }

    #[test]
    fn a_thumbprint_is_read_with_and_without_colons_and_nothing_else() {
        let pin = Thumbprint::of(b"x");
        assert_eq!(pin.to_string().parse::<Thumbprint>().unwrap(), pin);
        assert_eq!(pin.to_string().replace(':', "").to_lowercase().parse::<Thumbprint>().unwrap(), pin);
        for wrong in ["", "4C:3D", &"a".repeat(40), &"g".repeat(64), &"é".repeat(64)] {
            assert!(wrong.parse::<Thumbprint>().is_err(), "{wrong}");
        }
    }
}
