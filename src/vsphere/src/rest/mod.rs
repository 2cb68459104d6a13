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
    error::{Fault, Result, Trouble},
    http::{Outgoing, sensitive},
    keeper::Busy,
    secret::Secret,
    session::{Core, RestSession},
    settings::Credentials,
    wire::{Entry, show},
};

const SESSION: HeaderName = HeaderName::from_static("vmware-api-session-id");
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
    let basic = Secret::from(BASE64_STANDARD.encode(format!("{}:{}", credentials.user, credentials.password.reveal())));
    core.masker.remember(&basic);
    let request = dialect.login();
    let mut entry = core.begin("rest", &request.label(), None);
    let outcome = async {
        let headers =
            vec![(AUTHORIZATION, sensitive(&format!("Basic {}", basic.reveal()))?), (USE_HEADER, HeaderValue::from_static("true"))];
        let body = core.rest_exchange(&request, headers, dialect, &mut entry).await;
        let body = body.map_err(|trouble| match trouble.fault {
            Fault::NotAuthenticated => Trouble { fault: Fault::InvalidLogin, ..trouble },
            _ => trouble,
        })?;
        match dialect.unwrap(&body)? {
            Value::String(id) if !id.is_empty() => Ok(Secret::from(id)),
            _ => Err(Fault::Malformed("the login brought no session id".into()).into()),
        }
    }
    .await;
    core.end(entry, outcome)
}

impl Core {
    /// A REST call in the shared session, which is replaced once if the server does not know it any more.
    pub(crate) async fn rest(self: &Arc<Self>, request: impl Fn(Dialect) -> Request) -> Result<Value> {
        let _busy = Busy::new(self);
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
        self.end(entry, outcome)
    }

    async fn rest_in(&self, request: &Request, session: &RestSession, entry: &mut Entry) -> Result<Value, Trouble> {
        let headers = vec![(SESSION, sensitive(session.id.reveal())?)];
        let body = self.rest_exchange(request, headers, session.dialect, entry).await?;
        Ok(session.dialect.unwrap(&body)?)
    }

    pub(crate) async fn rest_logout(&self, session: &RestSession) -> Result<()> {
        let request = session.dialect.logout();
        let mut entry = self.begin("rest", &request.label(), None);
        let outcome = self.rest_in(&request, session, &mut entry).await;
        self.end(entry, outcome.map(|_| ()))
    }

    async fn rest_exchange(
        &self,
        request: &Request,
        mut headers: Vec<(HeaderName, HeaderValue)>,
        dialect: Dialect,
        entry: &mut Entry,
    ) -> Result<Vec<u8>, Trouble> {
        let label = request.label();
        headers.push((OPERATION, sensitive(entry.operation())?));
        let body = request.body.as_ref().map(|body| Bytes::from(body.clone())).unwrap_or_default();
        if !body.is_empty() {
            headers.push((CONTENT_TYPE, HeaderValue::from_static("application/json")));
            show("out", &label, entry.operation(), &body, &self.masker);
        }
        let outgoing = Outgoing { method: request.verb.clone(), path: request.path(), headers, body };
        let (status, body) = self.http.send(&outgoing, request.idempotent, entry).await?.whole()?;
        show("in", &label, entry.operation(), &body, &self.masker);
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
