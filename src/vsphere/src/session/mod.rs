//! One SOAP and one REST session, shared by all callers, made when first needed and ended when no longer.
//!
//! Logins and logouts run as tasks of their own under one lock: a caller that loses patience half-way
//! must not leave a session behind that nobody knows.

mod end;

use std::sync::{
    Arc, Mutex as Quick,
    atomic::{AtomicBool, AtomicUsize},
};

use tokio::sync::{Mutex, Notify};

use crate::{
    about::Content,
    error::{Error, Fault, Result, Trouble},
    http::Http,
    keeper::{Api, Touched},
    reference::Ref,
    rest::{Dialect, login as rest_login},
    secret::{Masker, Secret},
    settings::{Credentials, Settings},
    soap::Method,
    tags::Recent,
};

/// Everything the clones of a client share.
pub(crate) struct Core {
    pub(crate) settings: Settings,
    pub(crate) http: Http,
    pub(crate) masker: Masker,
    state: Mutex<State>,
    /// When each session was last used.
    pub(crate) touched: Quick<Touched>,
    /// How many callers want the session kept alive.
    pub(crate) holders: AtomicUsize,
    /// How many calls are under way.
    pub(crate) calls: AtomicUsize,
    /// Set when the last clone is gone.
    pub(crate) abandoned: AtomicBool,
    /// Wakes the keeper when one of the two above changes.
    pub(crate) wake: Notify,
    /// Categories and tags this client made just now.
    pub(crate) recent: Recent,
}

struct State {
    credentials: Credentials,
    content: Option<Arc<Content>>,
    soap: Option<Arc<SoapSession>>,
    rest: Option<Arc<RestSession>>,
    /// Whether the last REST session was lost.
    rest_lost: bool,
    /// Tells sessions apart, so that of many callers who lost one only the first replaces it.
    generation: u64,
    /// Whether a keeper runs.
    kept: bool,
}

/// A session at `/sdk`.
pub(crate) struct SoapSession {
    pub(crate) cookie: Secret,
    /// The user as the server spells it.
    pub(crate) user: String,
    pub(crate) content: Arc<Content>,
    generation: u64,
}

/// A session of the REST API.
pub(crate) struct RestSession {
    pub(crate) id: Secret,
    pub(crate) dialect: Dialect,
    generation: u64,
}

impl Core {
    pub(crate) fn new(settings: Settings) -> Result<Self, Fault> {
        let settings = settings.sensible();
        let masker = Masker::default();
        let recent = Recent::new(settings.deadlines.replication);
        settings.proxy.secrets().iter().for_each(|secret| masker.keep(secret));
        masker.remember(&settings.credentials.password);
        Ok(Self {
            http: Http::new(&settings)?,
            state: Mutex::new(State {
                credentials: settings.credentials.clone(),
                content: None,
                soap: None,
                rest: None,
                rest_lost: false,
                generation: 0,
                kept: false,
            }),
            settings,
            masker,
            touched: Quick::new(Touched::now()),
            holders: AtomicUsize::new(0),
            calls: AtomicUsize::new(0),
            abandoned: AtomicBool::new(false),
            wake: Notify::new(),
            recent,
        })
    }

    /// An error that belongs to no single call.
    pub(crate) fn error(&self, method: &str, object: Option<&Ref>, trouble: impl Into<Trouble>) -> Error {
        let object = object.map(|object| self.masker.mask(&object.to_string()));
        Error::new(trouble.into().masked(&self.masker), &self.settings.endpoint.server, method, object.as_deref(), "")
    }

    /// Runs to its end whether or not the caller waits for it.
    async fn finish<T: Send + 'static>(self: &Arc<Self>, work: impl Future<Output = Result<T>> + Send + 'static) -> Result<T> {
        tokio::spawn(work).await.unwrap_or_else(|_| Err(self.error("session", None, Fault::Connect("the program is ending".into()))))
    }

    /// What the vCenter says about itself, asked once per login.
    pub(crate) async fn content(self: &Arc<Self>) -> Result<Arc<Content>> {
        let mut state = self.state.lock().await;
        self.content_locked(&mut state).await
    }

    async fn content_locked(&self, state: &mut State) -> Result<Arc<Content>> {
        if let Some(content) = &state.content {
            return Ok(Arc::clone(content));
        }
        let instance = Ref::new("ServiceInstance", "ServiceInstance");
        let method = Method::repeatable("RetrieveServiceContent", &instance, String::new());
        let content = Arc::new(self.soap_without_session(&method, Content::parse).await?);
        state.content = Some(Arc::clone(&content));
        Ok(content)
    }

    /// The SOAP session, made if there is none.
    pub(crate) async fn soap_session(self: &Arc<Self>) -> Result<Arc<SoapSession>> {
        if let Some(session) = self.open_soap().await {
            return Ok(session);
        }
        let core = Arc::clone(self);
        self.finish(async move {
            let mut state = core.state.lock().await;
            core.soap_login(&mut state).await
        })
        .await
    }

    /// A refusal holds for both APIs and until the credentials change.
    fn not_refused(&self, content: &Content, credentials: &Credentials) -> Result<()> {
        match self.settings.refusals.words(&self.settings.endpoint, &content.about.instance_uuid, credentials) {
            Some(words) => Err(self.error("Login", None, Trouble { fault: Fault::InvalidLogin, words })),
            None => Ok(()),
        }
    }

    fn note_refusal(&self, content: &Content, credentials: &Credentials, error: &Error) {
        if *error.fault() == Fault::InvalidLogin {
            self.settings.refusals.remember(&self.settings.endpoint, &content.about.instance_uuid, credentials, error.words());
        }
    }

    async fn soap_login(self: &Arc<Self>, state: &mut State) -> Result<Arc<SoapSession>> {
        if let Some(session) = &state.soap {
            return Ok(Arc::clone(session));
        }
        let content = self.content_locked(state).await?;
        self.not_refused(&content, &state.credentials)?;
        self.masker.remember(&state.credentials.password);
        let (cookie, user) = match self.login(&content, &state.credentials).await {
            Ok(made) => made,
            Err(error) => {
                self.note_refusal(&content, &state.credentials, &error);
                return Err(error);
            }
        };
        state.generation += 1;
        let session = Arc::new(SoapSession { cookie, user, content, generation: state.generation });
        state.soap = Some(Arc::clone(&session));
        self.touch(Api::Soap);
        if !std::mem::replace(&mut state.kept, true) {
            tokio::spawn(crate::keeper::keep(Arc::clone(self)));
        }
        Ok(session)
    }

    /// Forgets a session the server no longer knows; whoever comes first does it for all.
    pub(crate) async fn lost_soap(&self, session: &SoapSession) {
        let mut state = self.state.lock().await;
        if state.soap.as_ref().is_some_and(|current| current.generation == session.generation) {
            state.soap = None;
            // It may have been lost because the server was upgraded.
            state.content = None;
        }
    }

    /// The REST session, made if there is none; never before the SOAP login has shown the password to be right.
    pub(crate) async fn rest_session(self: &Arc<Self>) -> Result<Arc<RestSession>> {
        if let Some(session) = self.open_rest().await {
            return Ok(session);
        }
        let core = Arc::clone(self);
        self.finish(async move {
            if core.state.lock().await.rest_lost {
                // Asking the clock renews a SOAP session that died together with the REST one.
                core.clock().await?;
            }
            let mut state = core.state.lock().await;
            if let Some(session) = &state.rest {
                return Ok(Arc::clone(session));
            }
            let content = core.soap_login(&mut state).await?.content.clone();
            core.not_refused(&content, &state.credentials)?;
            core.masker.remember(&state.credentials.password);
            match rest_login(&core, &content.about, &state.credentials).await {
                Ok((id, dialect)) => {
                    core.masker.remember(&id);
                    state.generation += 1;
                    let session = Arc::new(RestSession { id, dialect, generation: state.generation });
                    state.rest = Some(Arc::clone(&session));
                    state.rest_lost = false;
                    core.touch(Api::Rest);
                    Ok(session)
                }
                Err(error) => {
                    core.note_refusal(&content, &state.credentials, &error);
                    Err(error)
                }
            }
        })
        .await
    }

    /// Forgets a REST session the server no longer knows.
    pub(crate) async fn lost_rest(&self, session: &RestSession) {
        let mut state = self.state.lock().await;
        if state.rest.as_ref().is_some_and(|current| current.generation == session.generation) {
            state.rest = None;
            state.rest_lost = true;
        }
    }

    /// The SOAP session, if one was made and neither ended nor lost.
    pub(crate) async fn open_soap(&self) -> Option<Arc<SoapSession>> {
        self.state.lock().await.soap.clone()
    }

    /// The REST session, if one was made and neither ended nor lost.
    pub(crate) async fn open_rest(&self) -> Option<Arc<RestSession>> {
        self.state.lock().await.rest.clone()
    }

    /// Whether there is still something to keep; said under the lock, so that no new session stays without a keeper.
    pub(crate) async fn still_kept(&self) -> bool {
        let mut state = self.state.lock().await;
        state.kept = state.soap.is_some() || state.rest.is_some();
        state.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{proxy::Proxy, trust::Trust};

    #[test]
    fn an_error_of_no_call_is_masked_too_and_the_proxy_password_is_known_however_many_sessions_followed() {
        let mut settings = Settings::new("vcenter.example.com", Credentials::new("me", "marker-password"), Trust::Insecure);
        settings.proxy = Proxy::from_environment(|name| (name == "HTTPS_PROXY").then(|| "http://me:marker-proxy@proxy:3128".into()));
        let core = Core::new(settings).unwrap();
        let quoting = |text: &str| core.error("Task", None, Trouble { fault: Fault::Other { kind: text.into() }, words: text.into() });
        assert!(!format!("{:?}", quoting("it was marker-password")).contains("marker"));
        (0..100).for_each(|number| core.masker.remember(&Secret::from(format!("session-{number}"))));
        assert!(!format!("{:?}", quoting("it was marker-proxy")).contains("marker"));
    }
}
