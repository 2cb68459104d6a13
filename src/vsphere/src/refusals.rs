//! Which passwords a vCenter has refused, so that none is sent twice: vCenter locks accounts.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use crate::settings::{Credentials, Endpoint};

/// Old secrets that alternate with new ones are few; more than this many are no rotation but a mistake.
const REMEMBERED: usize = 256;

/// The refused passwords of any number of clients. Clones share it: those of one [`crate::Settings`], and all of a [`crate::Pool`].
#[derive(Clone, Default)]
pub struct Refusals(Arc<Mutex<VecDeque<Refusal>>>);

struct Refusal {
    endpoint: Endpoint,
    credentials: Credentials,
    /// The server's words, masked.
    words: String,
}

impl Refusal {
    fn is(&self, endpoint: &Endpoint, credentials: &Credentials) -> bool {
        let same_server = self.endpoint.port == endpoint.port && self.endpoint.server.eq_ignore_ascii_case(&endpoint.server);
        same_server && self.credentials == *credentials
    }
}

impl Refusals {
    pub(crate) fn remember(&self, endpoint: &Endpoint, credentials: &Credentials, words: &str) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|one| !one.is(endpoint, credentials));
        known.push_back(Refusal { endpoint: endpoint.clone(), credentials: credentials.clone(), words: words.to_owned() });
        if known.len() > REMEMBERED {
            known.pop_front();
        }
    }

    /// The server's words, if it has refused exactly these.
    pub(crate) fn words(&self, endpoint: &Endpoint, credentials: &Credentials) -> Option<String> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().find(|one| one.is(endpoint, credentials)).map(|one| one.words.clone())
    }
}

impl std::fmt::Debug for Refusals {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Refusals")
    }
}
