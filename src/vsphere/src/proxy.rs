//! `HTTPS_PROXY` and `NO_PROXY`, read from a lookup so that no test has to change the process's environment.

use std::fmt;

use base64::{Engine, prelude::BASE64_STANDARD};

use crate::{error::Fault, secret::Secret};

/// The way to a vCenter: direct, or through an HTTP proxy.
///
/// ```
/// use vsphere::Proxy;
/// let environment = [("HTTPS_PROXY", "http://me:s3cr3t@proxy.example.com:3128"), ("NO_PROXY", ".internal,10.0.0.0/8")];
/// let proxy = Proxy::from_environment(|name| environment.iter().find(|(key, _)| *key == name).map(|(_, value)| value.to_string()));
/// assert_eq!(format!("{proxy:?}"), "Proxy { https: \"http://***@proxy.example.com:3128\", except: \".internal,10.0.0.0/8\" }");
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Proxy {
    https: Option<Secret>,
    except: String,
}

impl Proxy {
    /// No proxy at all.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Reads `HTTPS_PROXY`, `https_proxy`, `NO_PROXY` and `no_proxy`, upper case first.
    pub fn from_environment(lookup: impl Fn(&str) -> Option<String>) -> Self {
        let either = |upper: &str, lower: &str| lookup(upper).or_else(|| lookup(lower)).filter(|value| !value.trim().is_empty());
        Self { https: either("HTTPS_PROXY", "https_proxy").map(Secret::from), except: either("NO_PROXY", "no_proxy").unwrap_or_default() }
    }

    /// What must never be printed of it: the proxy's own password, as it is written, as it is meant, and as it is sent.
    pub(crate) fn secrets(&self) -> Vec<Secret> {
        let Some((before, _)) = self.https.as_ref().and_then(|https| https.reveal().rsplit_once('@')) else { return Vec::new() };
        let login = before.split_once("://").map_or(before, |(_, login)| login);
        let Some((user, password)) = login.split_once(':') else { return Vec::new() };
        let (user, meant) = (decoded(user), decoded(password));
        let sent = BASE64_STANDARD.encode(format!("{user}:{meant}"));
        [password.to_owned(), meant, sent].map(Secret::from).to_vec()
    }

    /// The proxy for reqwest; `None` goes direct.
    pub(crate) fn build(&self) -> Result<Option<reqwest::Proxy>, Fault> {
        let Some(https) = &self.https else { return Ok(None) };
        // The error would quote the address and with it a password.
        let proxy = reqwest::Proxy::https(https.reveal())
            .map_err(|_quotes_it| Fault::Settings(format!("HTTPS_PROXY is not an address of a proxy: {self:?}")))?;
        Ok(Some(proxy.no_proxy(reqwest::NoProxy::from_string(&self.except))))
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.https.as_ref().map_or_else(String::new, |https| match https.reveal().rsplit_once('@') {
            Some((before, host)) => {
                format!("{}***@{host}", before.split_once("://").map_or(String::new(), |(scheme, _)| format!("{scheme}://")))
            }
            None => https.reveal().to_owned(),
        });
        out.debug_struct("Proxy").field("https", &shown).field("except", &self.except).finish()
    }
}

/// With `%40` and the like read as what they stand for.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let code =
            tail.get(..2).filter(|_| *first == b'%').and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_is_known_as_written_as_meant_and_as_sent() {
        let proxy = Proxy::from_environment(|name| (name == "HTTPS_PROXY").then(|| "http://me:a%40b:c@proxy.example.com:3128".into()));
        let sent = BASE64_STANDARD.encode("me:a@b:c");
        assert_eq!(proxy.secrets(), ["a%40b:c", "a@b:c", &sent].map(Secret::from));
        assert_eq!(decoded("100%"), "100%");
    }
}
