//! One HTTPS connection pool per client: bounded in requests at a time, in bytes and in time, with careful repetition.

use std::{
    sync::{Arc, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use reqwest::{
    Method, StatusCode,
    header::{HeaderMap, HeaderName, HeaderValue, RETRY_AFTER, SET_COOKIE},
};
use tokio::{
    sync::Semaphore,
    time::{Instant, timeout_at},
};

use crate::{
    certificate::Certificate,
    error::{Fault, Trouble},
    secret::Secret,
    settings::{Settings, from_now},
    trust::{self, Presented},
    turns,
    wire::Entry,
};

/// The first pause before a repetition; each further one is twice as long.
const PAUSE: Duration = Duration::from_millis(200);
/// A server that asks for more patience than this gets an error to its caller instead.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// The header in which the id of a REST session travels.
pub(crate) const REST_SESSION: HeaderName = HeaderName::from_static("vmware-api-session-id");

pub(crate) struct Http {
    client: reqwest::Client,
    base: String,
    /// Shared with all other clients of this vCenter.
    turns: Arc<Semaphore>,
    presented: Presented,
    deadline: Duration,
    retries: u32,
    largest: usize,
}

/// What is sent; headers with secrets are marked so that nothing below prints them.
#[derive(Clone)]
pub(crate) struct Outgoing {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) body: Bytes,
    /// The most bytes the answer may have, if that is less than for all.
    pub(crate) largest: usize,
}

/// What came back.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) cookie: Option<Secret>,
    /// The id of a REST session, where a header or a cookie has it.
    pub(crate) rest_session: Option<Secret>,
    /// What was not read when it came.
    pub(crate) body: Vec<u8>,
    /// Why the body is not whole; the headers may still be worth something.
    pub(crate) broken: Option<Fault>,
}

/// Told whenever bytes of a successful answer have come; takes those off the front that it has read.
pub(crate) type Arrived<'a> = dyn FnMut(&mut Vec<u8>) -> Result<(), Fault> + Send + 'a;

/// A header whose value is not to be printed.
pub(crate) fn sensitive(secret: &str) -> Result<HeaderValue, Fault> {
    // The error would quote the value.
    let mut value = HeaderValue::from_str(secret).map_err(|_quotes_it| {
        Fault::Settings("user name, password or session id cannot be sent in an HTTP header: it has control characters".into())
    })?;
    value.set_sensitive(true);
    Ok(value)
}

enum Attempt {
    Done(Answer),
    /// The server was not reached, or said itself that it cannot serve.
    Again(Fault, Option<Duration>),
    Failed(Fault),
}

impl Http {
    pub(crate) fn new(settings: &Settings) -> Result<Self, Fault> {
        let (tls, presented) = settings.trust.configuration()?;
        let mut builder = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .http1_only()
            .https_only(true)
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .user_agent(&settings.user_agent)
            .connect_timeout(settings.deadlines.connect)
            .pool_max_idle_per_host(settings.in_flight)
            .pool_idle_timeout(Duration::from_secs(30));
        if let Some(proxy) = settings.proxy.build()? {
            builder = builder.proxy(proxy);
        }
        let client = builder.build().map_err(|error| Fault::Settings(format!("HTTP cannot be set up: {}", chain(&error))))?;
        Ok(Self {
            client,
            base: format!("https://{}", settings.endpoint),
            turns: turns::of(&settings.endpoint, settings.in_flight),
            presented,
            deadline: settings.deadlines.request,
            retries: settings.retries,
            largest: settings.largest_answer,
        })
    }

    /// The certificate the server presented last.
    pub(crate) fn certificate(&self) -> Option<Certificate> {
        self.presented.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sends, and repeats an idempotent request after 502, 503 and connections that were never made.
    pub(crate) async fn send(
        &self,
        request: &Outgoing,
        idempotent: bool,
        entry: &mut Entry,
        arrived: &mut Arrived<'_>,
    ) -> Result<Answer, Trouble> {
        let mut pause = PAUSE;
        let mut left = if idempotent { self.retries } else { 0 };
        loop {
            let (fault, wish) = match self.attempt(request, entry, arrived).await {
                Attempt::Done(answer) => return Ok(answer),
                Attempt::Failed(fault) => return Err(fault.into()),
                Attempt::Again(fault, wish) => (fault, wish),
            };
            if left == 0 || wish.is_some_and(|wish| wish > LONGEST_PAUSE) {
                return Err(fault.into());
            }
            left -= 1;
            entry.repeated();
            // A pause is the point here: the server said it is overloaded or is not there yet.
            tokio::time::sleep(wish.unwrap_or(pause) + jitter(pause)).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn attempt(&self, request: &Outgoing, entry: &mut Entry, arrived: &mut Arrived<'_>) -> Attempt {
        let Ok(_turn) = self.turns.acquire().await else {
            return Attempt::Failed(Fault::Connect("the client is closed".into()));
        };
        entry.sent(request.body.len());
        let until = Instant::from_std(from_now(self.deadline));
        let late = || Fault::Timeout { after: self.deadline };
        let mut builder = self.client.request(request.method.clone(), format!("{}{}", self.base, request.path)).body(request.body.clone());
        for (name, value) in &request.headers {
            builder = builder.header(name, value);
        }
        let mut response = match timeout_at(until, builder.send()).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return not_sent(error),
            Err(_) => return Attempt::Failed(late()),
        };
        let status = response.status();
        let wish = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok()).map(Duration::from_secs);
        // The value goes back as it came, quotes and all.
        let cookie = cookie_in(response.headers(), "vmware_soap_session=").map(Secret::from);
        let named = cookie_in(response.headers(), "vmware-api-session-id=").and_then(|pair| pair.split_once('=')).map(|(_, value)| value);
        let rest_session = response.headers().get(REST_SESSION).and_then(|value| value.to_str().ok()).or(named).map(Secret::from);
        let limit = self.largest.min(request.largest);
        let (mut body, mut received) = (Vec::new(), 0);
        let broken = loop {
            match timeout_at(until, response.chunk()).await {
                Ok(Ok(Some(chunk))) if received + chunk.len() > limit => break Some(Fault::TooLarge { limit }),
                Ok(Ok(Some(chunk))) => {
                    received += chunk.len();
                    body.extend_from_slice(&chunk);
                    if let Err(fault) = if status.is_success() { arrived(&mut body) } else { Ok(()) } {
                        break Some(fault);
                    }
                }
                Ok(Ok(None)) => break None,
                Ok(Err(error)) => break Some(Fault::Dropped(chain(&error.without_url()))),
                // Not thrown away: the headers may tell of a session that must be ended.
                Err(_) => break Some(late()),
            }
        };
        entry.received(received);
        if matches!(status, StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE) {
            let fault = Fault::Unavailable { status: status.as_u16() };
            // However its page ended, the status has told all; but a page that never ends has used up the time for a repetition.
            return if matches!(broken, Some(Fault::Timeout { .. })) { Attempt::Failed(fault) } else { Attempt::Again(fault, wish) };
        }
        Attempt::Done(Answer { status, cookie, rest_session, body, broken })
    }
}

/// Only what certainly never reached the server may be sent again: a connection that was not made.
fn not_sent(error: reqwest::Error) -> Attempt {
    if let Some(refused) = trust::refusal(&error) {
        return Attempt::Failed(Fault::Tls { reason: refused.reason, presented: Box::new(refused.presented) });
    }
    let connecting = error.is_connect();
    let words = chain(&error.without_url());
    if connecting { Attempt::Again(Fault::Connect(words), None) } else { Attempt::Failed(Fault::Dropped(words)) }
}

/// The cookie that begins so, name and value.
fn cookie_in<'a>(headers: &'a HeaderMap, beginning: &str) -> Option<&'a str> {
    let pairs = headers.get_all(SET_COOKIE).iter().filter_map(|value| value.to_str().ok()?.split(';').next());
    pairs.into_iter().find(|pair| pair.starts_with(beginning))
}

impl Answer {
    /// The body, if all of it arrived.
    pub(crate) fn whole(self) -> Result<(StatusCode, Vec<u8>), Trouble> {
        match self.broken {
            Some(fault) => Err(fault.into()),
            None => Ok((self.status, self.body)),
        }
    }
}

/// Up to half of the pause, so that many clients do not come back in step.
fn jitter(pause: Duration) -> Duration {
    pause.mul_f64(fastrand::f64() / 2.0)
}

/// The error and its causes in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let words = cause.to_string();
        if !text.contains(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_clients_do_not_come_back_in_step() {
        let pauses: Vec<Duration> = (0..100).map(|_| jitter(PAUSE)).collect();
        assert!(pauses.iter().all(|pause| *pause <= PAUSE / 2), "{pauses:?}");
        assert!(pauses.iter().any(|pause| *pause != pauses[0]), "{pauses:?}");
    }
}
