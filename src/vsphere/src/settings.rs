//! Whom to talk to, as whom, and how patiently.

use std::{
    fmt,
    time::{Duration, Instant},
};

use crate::{proxy::Proxy, refusals::Refusals, secret::Secret, trust::Trust, wire::Calls};

/// A vCenter's address.
///
/// ```
/// use vsphere::Endpoint;
/// assert_eq!(Endpoint::from("vcenter.example.com").to_string(), "vcenter.example.com:443");
/// assert_eq!(Endpoint { server: "2001:db8::7".into(), port: 8443 }.to_string(), "[2001:db8::7]:8443");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// A host name or an address, without port; IPv6 without brackets.
    pub server: String,
    /// 443 unless somebody moved it.
    pub port: u16,
}

impl From<&str> for Endpoint {
    fn from(server: &str) -> Self {
        Self { server: server.to_owned(), port: 443 }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let brackets = self.server.contains(':') && !self.server.starts_with('[');
        if brackets { write!(out, "[{}]:{}", self.server, self.port) } else { write!(out, "{}:{}", self.server, self.port) }
    }
}

/// A user and a password.
///
/// ```
/// let credentials = vsphere::Credentials::new("administrator@vsphere.local", "s3cr3t");
/// assert!(!format!("{credentials:?}").contains("s3cr3t"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credentials {
    /// `user@domain` or `DOMAIN\user`.
    pub user: String,
    /// The password.
    pub password: Secret,
}

impl Credentials {
    /// Both as text.
    pub fn new(user: impl Into<String>, password: impl Into<String>) -> Self {
        Self { user: user.into(), password: Secret::from(password.into()) }
    }
}

/// How long to wait for what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deadlines {
    /// For a connection, TLS included.
    pub connect: Duration,
    /// For one request and its whole answer; a paged read has it for each page.
    pub request: Duration,
    /// After this long without a call the sessions are logged out, unless somebody holds [`crate::KeepAlive`].
    pub idle: Duration,
    /// While somebody does, each session is used at least this often; vCenter forgets one after 30 minutes.
    pub keep_alive: Duration,
    /// How long a category or tag just made may stay invisible: linked vCenters copy them to each other.
    pub replication: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            request: Duration::from_secs(30),
            idle: Duration::from_secs(120),
            keep_alive: Duration::from_secs(300),
            replication: Duration::from_secs(180),
        }
    }
}

/// All a [`crate::Client`] needs to know. The defaults are fit for production.
///
/// ```
/// use vsphere::{Credentials, Settings, Trust};
/// let mut settings = Settings::new("vcenter.example.com", Credentials::new("me@vsphere.local", "s3cr3t"), Trust::System);
/// settings.user_agent = "my-tool/1.0".into();
/// ```
#[derive(Debug, Clone)]
pub struct Settings {
    /// The vCenter.
    pub endpoint: Endpoint,
    /// The user.
    pub credentials: Credentials,
    /// Which certificates are believed.
    pub trust: Trust,
    /// The way there; [`Proxy::from_environment`] reads `HTTPS_PROXY` and `NO_PROXY`.
    pub proxy: Proxy,
    /// Shown in vCenter's session list.
    pub user_agent: String,
    /// How long to wait for what.
    pub deadlines: Deadlines,
    /// How often an idempotent call is repeated after 502, 503 or a failed connection.
    pub retries: u32,
    /// The most requests at the same time. All clients of a process that talk to the same address share them, and the first decides.
    pub in_flight: usize,
    /// How many objects a page of a large read has. Larger ones are hardly faster, smaller ones cost round trips.
    pub page: usize,
    /// The most bytes one answer may have; four times as many all pages of one read together.
    pub largest_answer: usize,
    /// The most objects one read may have; an empty page counts as one.
    pub largest_read: usize,
    /// Where calls are remembered; clients may share one.
    pub calls: Calls,
    /// Which passwords were refused; all clients of a process share it.
    pub refusals: Refusals,
}

impl Settings {
    /// The defaults, with the proxy of the process's environment.
    pub fn new(endpoint: impl Into<Endpoint>, credentials: Credentials, trust: Trust) -> Self {
        Self {
            endpoint: endpoint.into(),
            credentials,
            trust,
            proxy: Proxy::from_environment(|name| std::env::var(name).ok()),
            user_agent: concat!("vsphere/", env!("CARGO_PKG_VERSION")).to_owned(),
            deadlines: Deadlines::default(),
            retries: 3,
            in_flight: 4,
            page: 500,
            largest_answer: 64 << 20,
            largest_read: 500_000,
            calls: Calls::default(),
            refusals: Refusals::default(),
        }
    }

    /// The same with every number in the range in which it means something.
    pub(crate) fn sensible(mut self) -> Self {
        self.in_flight = self.in_flight.clamp(1, 1024);
        // The protocol has 32 bits for it, and zero is illegal.
        self.page = self.page.clamp(1, 1 << 20);
        self
    }
}

/// The moment this long from now; one that lies beyond what a clock can tell is in a hundred years.
pub(crate) fn from_now(wait: Duration) -> Instant {
    const A_CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
    Instant::now() + wait.min(A_CENTURY)
}
