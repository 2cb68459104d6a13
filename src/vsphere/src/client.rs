//! The client itself, and how a call becomes bytes and an answer becomes a value or an error.

use std::sync::{Arc, atomic::Ordering};

use bytes::Bytes;
use reqwest::{
    Method as Verb, StatusCode,
    header::{CONTENT_TYPE, COOKIE, HeaderName, HeaderValue},
};

use crate::{
    bodies::{show, shows},
    certificate::Certificate,
    error::{Error, Fault, Result, Trouble},
    http::{Answer, Arrived, Outgoing, sensitive},
    keeper::{Api, Busy, KeepAlive},
    secret::Secret,
    session::Core,
    settings::{Credentials, Endpoint, Settings},
    soap::{self, Method, Reading},
    wire::{Calls, Entry},
};

/// A client of one vCenter. Clones are cheap and share one session; the login happens with the first call that needs it.
///
/// The example `tree` is a whole program around one, and like all examples run by the tests.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/simulator/documentation.rs"));
/// use vsphere::{Client, Credentials, Settings, Trust, Want};
///
/// #[tokio::main(flavor = "current_thread")]
/// async fn main() -> vsphere::Result<()> {
///     let credentials = Credentials::new("administrator@vsphere.local", "s3cr3t");
///     let settings = Settings::new("vcenter.example.com", credentials, Trust::System);
///     # let simulated = vcsim::Vcsim::start();
///     # let settings = simulated.settings();
///     let client = Client::new(settings)?;
///     println!("{}", client.about().await?.full_name);
///     for cluster in &client.inventory(Want::Infrastructure).await?.clusters {
///         println!("{}", cluster.node.path);
///     }
///     client.logout().await
/// }
/// ```
#[derive(Clone)]
pub struct Client(Arc<Handle>);

/// Its end is the end of the last clone; the keeper then ends the sessions.
struct Handle(Arc<Core>);

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.abandoned.store(true, Ordering::Release);
        self.0.wake.notify_one();
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Client({})", self.endpoint())
    }
}

impl Client {
    /// A client that has not yet connected to anything.
    ///
    /// # Errors
    /// A setting makes no sense: a CA bundle without certificates, a proxy that is no address.
    pub fn new(settings: Settings) -> Result<Self> {
        let server = settings.endpoint.server.clone();
        let core = Core::new(settings).map_err(|fault| Error::new(fault.into(), &server, "settings", None, ""))?;
        Ok(Self(Arc::new(Handle(Arc::new(core)))))
    }

    /// The vCenter's address.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.core().settings.endpoint
    }

    /// The last calls.
    #[must_use]
    pub fn calls(&self) -> &Calls {
        &self.core().settings.calls
    }

    /// The certificate the server presented last, believed or not; `None` before the first connection.
    #[must_use]
    pub fn certificate(&self) -> Option<Certificate> {
        self.core().http.certificate()
    }

    /// The user as vCenter spells it; logs in if need be.
    ///
    /// # Errors
    /// As for every call.
    pub async fn user(&self) -> Result<String> {
        Ok(self.core().soap_session().await?.user.clone())
    }

    /// Keeps the sessions alive, SOAP and REST, as long as the returned value lives. Without one the client logs out when idle.
    pub fn keep_alive(&self) -> KeepAlive {
        KeepAlive::new(Arc::clone(self.core()))
    }

    /// Takes a new password of the same user and ends the sessions of the old one. What was refused once stays so, also
    /// when it comes back after another.
    ///
    /// # Errors
    /// [`Fault::Settings`] for another user; otherwise the old sessions could not be ended, and the new password is in place
    /// all the same.
    pub async fn set_credentials(&self, credentials: Credentials) -> Result<()> {
        self.core().set_credentials(credentials).await
    }

    /// Ends the sessions. The client stays usable: the next call logs in again.
    ///
    /// Do this before the program ends: a session left behind counts against vCenter's limit for half an hour.
    ///
    /// # Errors
    /// vCenter could not be told; it will forget the session by itself in time.
    pub async fn logout(&self) -> Result<()> {
        self.core().end_sessions().await
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.0.0
    }
}

impl Core {
    pub(crate) fn begin(&self, api: &'static str, method: &str, object: Option<String>) -> Entry {
        let object = object.map(|object| self.masker.mask(&object));
        Entry::begin(&self.settings.endpoint.server, api, method, object, &self.settings.calls)
    }

    pub(crate) fn end<T>(&self, entry: Entry, outcome: Result<T, Trouble>) -> Result<T> {
        entry.end(outcome, &self.masker)
    }

    /// A SOAP call in the shared session, which is replaced once if the server does not know it any more.
    pub(crate) async fn soap<R: Reading>(self: &Arc<Self>, method: &Method<'_>, reading: R) -> Result<R::Value> {
        self.soap_as(method, reading).await.map(|(value, _)| value)
    }

    /// The same, with the operation id under which vCenter logs what the call began.
    pub(crate) async fn soap_as<R: Reading>(self: &Arc<Self>, method: &Method<'_>, reading: R) -> Result<(R::Value, String)> {
        let _busy = Busy::new(self, Api::Soap);
        let session = self.soap_session().await?;
        let mut entry = self.begin("soap", method.name, Some(method.object.to_string()));
        let mut outcome = self.exchange(method, Some(&session.cookie), &mut entry, reading.clone()).await.1;
        if matches!(&outcome, Err(Trouble { fault: Fault::NotAuthenticated, .. })) {
            self.lost_soap(&session).await;
            if method.replay {
                match self.soap_session().await {
                    Ok(renewed) => {
                        entry.repeated();
                        outcome = self.exchange(method, Some(&renewed.cookie), &mut entry, reading.clone()).await.1;
                    }
                    Err(error) => {
                        // Both are told: the call's end in the wire log, the reason to the caller.
                        let _ = self.end(entry, outcome);
                        return Err(error);
                    }
                }
            }
        }
        let operation = entry.operation().to_owned();
        self.end(entry, outcome).map(|value| (value, operation))
    }

    /// A SOAP call that needs no session.
    pub(crate) async fn soap_without_session<R: Reading>(&self, method: &Method<'_>, reading: R) -> Result<R::Value> {
        self.soap_in(method, None, reading).await.1
    }

    /// A SOAP call whose answer may bring a session cookie.
    pub(crate) async fn soap_with_cookie<R: Reading>(&self, method: &Method<'_>, reading: R) -> (Option<Secret>, Result<R::Value>) {
        self.soap_in(method, None, reading).await
    }

    /// A SOAP call in exactly this session.
    pub(crate) async fn soap_once<R: Reading>(&self, method: &Method<'_>, cookie: &Secret, reading: R) -> Result<R::Value> {
        self.soap_in(method, Some(cookie), reading).await.1
    }

    async fn soap_in<R: Reading>(&self, method: &Method<'_>, cookie: Option<&Secret>, reading: R) -> (Option<Secret>, Result<R::Value>) {
        let mut entry = self.begin("soap", method.name, Some(method.object.to_string()));
        let (cookie, outcome) = self.exchange(method, cookie, &mut entry, reading).await;
        (cookie, self.end(entry, outcome))
    }

    async fn exchange<R: Reading>(
        &self,
        method: &Method<'_>,
        cookie: Option<&Secret>,
        entry: &mut Entry,
        mut reading: R,
    ) -> (Option<Secret>, Result<R::Value, Trouble>) {
        // A body that is to be shown is kept whole.
        let kept = shows(method.name);
        let mut arrived = |waiting: &mut Vec<u8>| if kept { Ok(()) } else { reading.arrived(waiting) };
        let mut answer = match self.post(method, cookie, entry, &mut arrived).await {
            Ok(answer) => answer,
            Err(trouble) => return (None, Err(trouble)),
        };
        let cookie = answer.cookie.take();
        let outcome = answer.whole().and_then(|(status, body)| {
            show("in", method.name, entry.operation(), &body, &self.masker);
            match status {
                StatusCode::OK => reading.end(&body).map_err(Trouble::from),
                // An error page of a proxy has this status too, but no fault in it.
                StatusCode::INTERNAL_SERVER_ERROR => Err(soap::refusal(&body)),
                other => Err(Fault::Http { status: other.as_u16() }.into()),
            }
        });
        (cookie, outcome)
    }

    async fn post(
        &self,
        method: &Method<'_>,
        cookie: Option<&Secret>,
        entry: &mut Entry,
        arrived: &mut Arrived<'_>,
    ) -> Result<Answer, Trouble> {
        let envelope = method.envelope(entry.operation());
        show("out", method.name, entry.operation(), envelope.as_bytes(), &self.masker);
        let mut headers = vec![
            (CONTENT_TYPE, HeaderValue::from_static("text/xml; charset=utf-8")),
            (HeaderName::from_static("soapaction"), HeaderValue::from_static(soap::VERSION)),
        ];
        if let Some(cookie) = cookie {
            headers.push((COOKIE, sensitive(cookie.reveal())?));
        }
        let request = Outgoing { method: Verb::POST, path: "/sdk".into(), headers, body: Bytes::from(envelope), largest: usize::MAX };
        self.http.send(&request, method.idempotent, entry, arrived).await
    }
}
