//! `HTTPS_PROXY` and `NO_PROXY`, read from a lookup so that no test has to change the process's environment.

use std::fmt;

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

    /// What must never be printed of it: the proxy's own password.
    pub(crate) fn secret(&self) -> Option<Secret> {
        let (before, _) = self.https.as_ref()?.reveal().rsplit_once('@')?;
        Some(Secret::from(before.rsplit_once(':')?.1))
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
