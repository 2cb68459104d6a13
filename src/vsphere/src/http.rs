//! One HTTPS connection pool per vCenter: bounded in requests at a time, in bytes and in time, with careful repetition.

use std::{
    hash::{BuildHasher, RandomState},
    sync::PoisonError,
    time::Duration,
};

use bytes::Bytes;
use reqwest::{
    Method, StatusCode,
    header::{HeaderName, HeaderValue, RETRY_AFTER, SET_COOKIE},
};
use tokio::sync::Semaphore;

use crate::{
    certificate::Certificate,
    error::{Fault, Trouble},
    secret::Secret,
    settings::Settings,
    trust::{self, Presented},
    wire::Entry,
};

/// The first pause before a repetition; each further one is twice as long.
const PAUSE: Duration = Duration::from_millis(200);
/// A server that asks for more patience than this gets an error to its caller instead.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

pub(crate) struct Http {
    client: reqwest::Client,
    base: String,
    permits: Semaphore,
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
}

/// What came back.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) cookie: Option<Secret>,
    pub(crate) body: Vec<u8>,
    /// Why the body is not whole; the headers may still be worth something.
    pub(crate) broken: Option<Fault>,
}

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
    /// Nothing was done by the server, or nothing that can be told from the outside.
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
            permits: Semaphore::new(settings.in_flight.max(1)),
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

    /// Sends, and repeats an idempotent request after 502, 503 and failed connections.
    pub(crate) async fn send(&self, request: &Outgoing, idempotent: bool, entry: &mut Entry) -> Result<Answer, Trouble> {
        let mut pause = PAUSE;
        let mut left = if idempotent { self.retries } else { 0 };
        loop {
            let (fault, wish) = match self.attempt(request, entry).await {
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

    async fn attempt(&self, request: &Outgoing, entry: &mut Entry) -> Attempt {
        let Ok(_permit) = self.permits.acquire().await else {
            return Attempt::Failed(Fault::Connect("the client is closed".into()));
        };
        entry.sent(request.body.len());
        match tokio::time::timeout(self.deadline, self.exchange(request, entry)).await {
            Ok(attempt) => attempt,
            Err(_) => Attempt::Failed(Fault::Timeout { after: self.deadline }),
        }
    }

    async fn exchange(&self, request: &Outgoing, entry: &mut Entry) -> Attempt {
        let mut builder = self.client.request(request.method.clone(), format!("{}{}", self.base, request.path)).body(request.body.clone());
        for (name, value) in &request.headers {
            builder = builder.header(name, value);
        }
        let mut response = match builder.send().await {
            Ok(response) => response,
            Err(error) => {
                return match trust::refusal(&error) {
                    Some(refused) => Attempt::Failed(Fault::Tls { reason: refused.reason, presented: Box::new(refused.presented) }),
                    None => Attempt::Again(Fault::Connect(chain(&error.without_url())), None),
                };
            }
        };
        let status = response.status();
        if matches!(status, StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE) {
            let wish = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok()).map(Duration::from_secs);
            return Attempt::Again(Fault::Unavailable { status: status.as_u16() }, wish);
        }
        // The value goes back as it came, quotes and all.
        let cookie = response
            .headers()
            .get_all(SET_COOKIE)
            .iter()
            .filter_map(|value| value.to_str().ok()?.split(';').next())
            .find(|pair| pair.starts_with("vmware_soap_session="))
            .map(Secret::from);
        let mut body = Vec::new();
        let broken = loop {
            match response.chunk().await {
                Ok(Some(chunk)) if body.len() + chunk.len() > self.largest => break Some(Fault::TooLarge { limit: self.largest }),
                Ok(Some(chunk)) => body.extend_from_slice(&chunk),
                Ok(None) => break None,
                Err(error) => break Some(Fault::Dropped(chain(&error.without_url()))),
            }
        };
        entry.received(body.len());
        Attempt::Done(Answer { status, cookie, body, broken })
    }
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
    let random = RandomState::new().hash_one("jitter") % 1000;
    pause.mul_f64(random as f64 / 2000.0)
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
