//! Secrets that cannot be printed, and the masker for text that came from a server.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Mutex, PoisonError},
};

use zeroize::Zeroizing;

use crate::spelling::without;

/// A password, cookie or session id: it has no `Display`, its `Debug` shows nothing, and its memory
/// is wiped when dropped.
///
/// ```
/// let password = vsphere::Secret::from("correct horse");
/// assert_eq!(format!("{password:?}"), "***");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// The text itself, for the one place that sends it.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl<T: Into<String>> From<T> for Secret {
    fn from(text: T) -> Self {
        Self(Zeroizing::new(text.into()))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("***")
    }
}

/// A server may quote a secret where nobody expects it: in a fault's text, in the id of a view.
/// So text of a server is shown only after the secrets this client holds have been cut out of it by value.
#[derive(Default)]
pub(crate) struct Masker(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// As long as the client lives.
    always: Vec<Secret>,
    /// The newest.
    recent: VecDeque<Secret>,
}

/// Shorter ones would blacken ordinary words; they never leave the login request in any case.
const SHORTEST: usize = 4;
/// The current secrets and those of some sessions before, whose ids old answers may still quote.
const REMEMBERED: usize = 16;

/// What stands between these is a secret even if nobody has told us so; also when quoted inside other XML or JSON.
const SUSPECT: [(&str, &str); 7] = [
    ("session[", "]"),
    ("<password>", "</password>"),
    ("<key>", "</key>"),
    ("&lt;password&gt;", "&lt;/password&gt;"),
    ("&lt;key&gt;", "&lt;/key&gt;"),
    (r"\u003cpassword\u003e", r"\u003c/password\u003e"),
    (r"\u003ckey\u003e", r"\u003c/key\u003e"),
];

impl Masker {
    /// From now on this secret is cut out; the most recent ones are kept.
    pub(crate) fn remember(&self, secret: &Secret) {
        if secret.reveal().len() < SHORTEST {
            return;
        }
        let recent = &mut self.0.lock().unwrap_or_else(PoisonError::into_inner).recent;
        recent.retain(|one| one != secret);
        recent.push_back(secret.clone());
        if recent.len() > REMEMBERED {
            recent.pop_front();
        }
    }

    /// From now on this secret is cut out for good; for the few that come with the settings.
    pub(crate) fn keep(&self, secret: &Secret) {
        if secret.reveal().len() >= SHORTEST {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).always.push(secret.clone());
        }
    }

    /// The text without known secrets, session ids inside references, passwords and session keys.
    pub(crate) fn mask(&self, text: &str) -> String {
        let mut masked = text.to_owned();
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for secret in known.always.iter().chain(&known.recent) {
            masked = without(&masked, secret.reveal());
        }
        for (open, close) in SUSPECT {
            masked = blank(&masked, open, close);
        }
        masked
    }
}

impl fmt::Debug for Masker {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Masker(***)")
    }
}

/// Replaces what stands between each `open` and the next `close`; without a `close` the rest goes.
fn blank(text: &str, open: &str, close: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(open) {
        let (before, after) = rest.split_at(at + open.len());
        out.push_str(before);
        out.push_str("***");
        rest = after.find(close).map_or("", |end| &after[end..]);
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_secret_is_cut_out_plain_and_escaped() {
        let masker = Masker::default();
        masker.remember(&Secret::from("p<a>ss&word"));
        assert_eq!(masker.mask("a p<a>ss&word b p&lt;a&gt;ss&amp;word c"), "a *** b *** c");
    }

    #[test]
    fn what_came_with_the_settings_is_cut_out_however_many_sessions_follow() {
        let masker = Masker::default();
        masker.keep(&Secret::from("proxy-password"));
        (0..100).for_each(|n| masker.remember(&Secret::from(format!("secret-{n:03}"))));
        assert_eq!(masker.mask("proxy-password"), "***");
    }

    #[test]
    fn session_ids_keys_and_passwords_are_cut_out_even_when_unknown() {
        let masker = Masker::default();
        assert_eq!(masker.mask("view session[52d0-77]52aa gone"), "view session[***]52aa gone");
        assert_eq!(masker.mask("<key>52d0</key><password>x"), "<key>***</key><password>***");
        assert_eq!(masker.mask("&lt;key&gt;52d0&lt;/key&gt;"), "&lt;key&gt;***&lt;/key&gt;");
    }

    #[test]
    fn the_memory_of_secrets_is_bounded_and_keeps_the_newest() {
        let masker = Masker::default();
        for n in 0..100 {
            masker.remember(&Secret::from(format!("secret-{n:03}")));
        }
        assert_eq!(masker.mask("secret-099 secret-000"), "*** secret-000");
        assert_eq!(format!("{masker:?}"), "Masker(***)");
    }
}
