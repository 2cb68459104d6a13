//! The REST side of vSphere: its session and its calls, in whichever of two dialects the server speaks.

mod dialect;

use std::sync::Arc;

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use reqwest::{
    Method as Verb, StatusCode,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue},
};
use serde_json::Value;

pub(crate) use dialect::{Dialect, Request};

use crate::{
    about::About,
    bodies::show,
    error::{Fault, Result, Trouble},
    http::{Answer, Outgoing, REST_SESSION, sensitive},
    keeper::{Api, Busy},
    login::maybe_left_behind,
    secret::Secret,
    session::{Core, RestSession},
    settings::Credentials,
    wire::Entry,
};

/// The tree JSON becomes may be many times as large as its text, so less of it is read than of XML.
const LARGEST: usize = 4 << 20;
const USE_HEADER: HeaderName = HeaderName::from_static("vmware-use-header-authn");
const OPERATION: HeaderName = HeaderName::from_static("x-request-id");

/// Logs in, in the dialect the version suggests, or in the other if the server does not have that one.
pub(crate) async fn login(core: &Core, about: &About, credentials: &Credentials) -> Result<(Secret, Dialect)> {
    let preferred = Dialect::for_version(&about.api_version);
    match login_in(core, preferred, credentials).await {
        Err(error) if matches!(error.fault(), Fault::NotFound { .. }) => {
            let other = preferred.other();
            login_in(core, other, credentials).await.map(|id| (id, other))
        }
        outcome => outcome.map(|id| (id, preferred)),
    }
}

async fn login_in(core: &Core, dialect: Dialect, credentials: &Credentials) -> Result<Secret> {
    let (seen, outcome) = try_login(core, dialect, credentials).await;
    if let Err(error) = &outcome {
        match seen {
            // The server made a session although its answer did not arrive whole. The first error is the one to tell.
            Some(id) => drop(core.rest_end(&id, dialect).await),
            None => maybe_left_behind(error),
        }
    }
    outcome
}

/// The session's id, and what was seen of it in any case.
async fn try_login(core: &Core, dialect: Dialect, credentials: &Credentials) -> (Option<Secret>, Result<Secret>) {
    let basic = Secret::from(BASE64_STANDARD.encode(format!("{}:{}", credentials.user, credentials.password.reveal())));
    core.masker.remember(&basic);
    let request = dialect.login();
    let mut entry = core.begin("rest", &request.label(), None);
    let mut seen = None;
    let outcome = async {
        let headers =
            vec![(AUTHORIZATION, sensitive(&format!("Basic {}", basic.reveal()))?), (USE_HEADER, HeaderValue::from_static("true"))];
        let mut answer = core.rest_send(&request, headers, &mut entry).await?;
        seen = answer.rest_session.take().or_else(|| dialect.session_in(&answer.body));
        seen.iter().for_each(|id| core.masker.remember(id));
        let body = core.rest_whole(&request, answer, dialect, &entry).map_err(|trouble| match trouble.fault {
            Fault::NotAuthenticated => Trouble { fault: Fault::InvalidLogin, ..trouble },
            _ => trouble,
        })?;
        match dialect.unwrap(&body)? {
            Value::String(id) if !id.is_empty() => Ok(Secret::from(id)),
            _ => Err(Fault::Malformed("the login brought no session id".into()).into()),
        }
    }
    .await;
    (seen, core.end(entry, outcome))
}

impl Core {
    /// A REST call in the shared session, which is replaced once if the server does not know it any more.
    pub(crate) async fn rest(self: &Arc<Self>, request: impl Fn(Dialect) -> Request) -> Result<Value> {
        self.rest_checked(request, |_| Ok(())).await
    }

    /// The same for calls that tell in a successful answer that they failed.
    pub(crate) async fn rest_checked(
        self: &Arc<Self>,
        request: impl Fn(Dialect) -> Request,
        check: impl Fn(&Value) -> Result<(), Trouble>,
    ) -> Result<Value> {
        let _busy = Busy::new(self, Api::Rest);
        let mut session = self.rest_session().await?;
        let mut made = request(session.dialect);
        let mut entry = self.begin("rest", &made.label(), made.object());
        let mut outcome = self.rest_in(&made, &session, &mut entry).await;
        if matches!(&outcome, Err(Trouble { fault: Fault::NotAuthenticated, .. })) {
            self.lost_rest(&session).await;
            session = match self.rest_session().await {
                Ok(session) => session,
                Err(error) => {
                    // Both are told: the call's end in the wire log, the reason to the caller.
                    let _ = self.end(entry, outcome);
                    return Err(error);
                }
            };
            made = request(session.dialect);
            entry.repeated();
            outcome = self.rest_in(&made, &session, &mut entry).await;
        }
        self.end(entry, outcome.and_then(|value| check(&value).map(|()| value)))
    }

    async fn rest_in(&self, request: &Request, session: &RestSession, entry: &mut Entry) -> Result<Value, Trouble> {
        self.rest_with(request, &session.id, session.dialect, entry).await
    }

    async fn rest_with(&self, request: &Request, id: &Secret, dialect: Dialect, entry: &mut Entry) -> Result<Value, Trouble> {
        let headers = vec![(REST_SESSION, sensitive(id.reveal())?)];
        let answer = self.rest_send(request, headers, entry).await?;
        let body = self.rest_whole(request, answer, dialect, entry)?;
        Ok(dialect.unwrap(&body)?)
    }

    pub(crate) async fn rest_logout(&self, session: &RestSession) -> Result<()> {
        self.rest_end(&session.id, session.dialect).await
    }

    async fn rest_end(&self, id: &Secret, dialect: Dialect) -> Result<()> {
        self.rest_once(&dialect.logout(), id, dialect).await
    }

    /// A REST call about a session, in exactly that one.
    pub(crate) async fn rest_once(&self, request: &Request, id: &Secret, dialect: Dialect) -> Result<()> {
        let mut entry = self.begin("rest", &request.label(), None);
        let outcome = self.rest_with(request, id, dialect, &mut entry).await;
        self.end(entry, outcome.map(|_| ()))
    }

    async fn rest_send(
        &self,
        request: &Request,
        mut headers: Vec<(HeaderName, HeaderValue)>,
        entry: &mut Entry,
    ) -> Result<Answer, Trouble> {
        let label = request.label();
        headers.push((OPERATION, sensitive(entry.operation())?));
        let body = request.body.as_ref().map(|body| Bytes::from(body.clone())).unwrap_or_default();
        if !body.is_empty() {
            headers.push((CONTENT_TYPE, HeaderValue::from_static("application/json")));
            show("out", &label, entry.operation(), &body, &self.masker);
        }
        let outgoing = Outgoing { method: request.verb.clone(), path: request.path(), headers, body, largest: LARGEST };
        self.http.send(&outgoing, request.idempotent, entry, &mut |_| Ok(())).await
    }

    fn rest_whole(&self, request: &Request, answer: Answer, dialect: Dialect, entry: &Entry) -> Result<Vec<u8>, Trouble> {
        let (status, body) = answer.whole()?;
        show("in", &request.label(), entry.operation(), &body, &self.masker);
        if status.is_success() { Ok(body) } else { Err(dialect.refusal(status, &body)) }
    }
}

/// For requests that read.
pub(crate) const GET: Verb = Verb::GET;
/// For requests that create, attach, or ask with a body.
pub(crate) const POST: Verb = Verb::POST;
/// For requests that delete.
pub(crate) const DELETE: Verb = Verb::DELETE;

/// What a status without a helpful body means.
pub(crate) fn by_status(status: StatusCode) -> Fault {
    match status {
        StatusCode::UNAUTHORIZED => Fault::NotAuthenticated,
        StatusCode::FORBIDDEN => Fault::NoPermission { privilege: String::new(), object: None },
        StatusCode::NOT_FOUND => Fault::NotFound { object: None },
        other => Fault::Http { status: other.as_u16() },
    }
}
