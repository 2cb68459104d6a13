//! Logging in to SOAP, and out.

use crate::{
    about::Content,
    error::{Error, Fault, Result},
    secret::Secret,
    session::Core,
    settings::Credentials,
    soap::{Method, element, nothing, response},
};

impl Core {
    /// The session's cookie, and the user as the server spells it.
    pub(crate) async fn login(&self, content: &Content, credentials: &Credentials) -> Result<(Secret, String)> {
        let arguments = format!("{}{}", element("userName", &credentials.user), element("password", credentials.password.reveal()));
        let method = Method::once("Login", &content.session_manager, arguments);
        let (cookie, outcome) = self.soap_with_cookie(&method, user_of).await;
        let Some(cookie) = cookie else {
            if let Err(error) = &outcome {
                maybe_left_behind(error);
            }
            return outcome.and_then(|_| Err(self.error("Login", None, Fault::Malformed("the login brought no session cookie".into()))));
        };
        self.remember_cookie(&cookie);
        match outcome {
            Ok((user, key)) => {
                self.masker.remember(&key);
                Ok((cookie, user))
            }
            Err(error) => {
                // The server made a session although its answer did not arrive whole. The first error is the one to tell.
                let _ = self.soap_logout(content, &cookie).await;
                Err(error)
            }
        }
    }

    fn remember_cookie(&self, cookie: &Secret) {
        self.masker.remember(cookie);
        if let Some((_, value)) = cookie.reveal().split_once('=') {
            self.masker.remember(&Secret::from(value.trim_matches('"')));
        }
    }

    pub(crate) async fn soap_logout(&self, content: &Content, cookie: &Secret) -> Result<()> {
        // Again after a lost connection is better than a session left behind.
        self.soap_once(&Method::repeatable("Logout", &content.session_manager, String::new()), cookie, nothing).await
    }
}

/// A login that broke off before it brought the session's id may have made a session nobody can end.
pub(crate) fn maybe_left_behind(error: &Error) {
    if matches!(error.fault(), Fault::Timeout { .. } | Fault::Dropped(_) | Fault::TooLarge { .. }) {
        tracing::warn!(
            target: "vsphere::session", server = error.server(), method = error.method(), operation = error.operation(),
            "the login broke off; if vCenter made a session for it, that one cannot be ended and goes by itself when idle"
        );
    }
}

/// The user's name as the server spells it, and the session's key.
pub(crate) fn user_of(body: &[u8]) -> Result<(String, Secret), Fault> {
    let mut xml = response(body)?;
    xml.descend("returnval")?;
    let (mut user, mut key) = (String::new(), Secret::from(""));
    while let Some(field) = xml.child()? {
        match field.name() {
            "userName" => user = xml.text()?,
            "key" => key = Secret::from(xml.text()?),
            _ => xml.skip()?,
        }
    }
    Ok((user, key))
}
