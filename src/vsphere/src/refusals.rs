//! Which passwords a vCenter has refused, so that none is sent twice: vCenter locks accounts.

use std::{
    collections::VecDeque,
    sync::{Arc, LazyLock, Mutex, PoisonError},
};

use crate::settings::{Credentials, Endpoint};

/// Old secrets that alternate with new ones are few; more than this many are no rotation but a mistake.
const REMEMBERED: usize = 256;

/// The refused passwords of all clients of this process, whoever made them and from whatever settings; forgotten when it ends.
///
/// A password counts as refused by the vCenter that refused it: at that address, with that instance id.
#[derive(Clone)]
pub struct Refusals(Arc<Mutex<VecDeque<Refusal>>>);

impl Default for Refusals {
    fn default() -> Self {
        static ALL: LazyLock<Refusals> = LazyLock::new(|| Refusals(Arc::default()));
        ALL.clone()
    }
}

struct Refusal {
    endpoint: Endpoint,
    /// Another vCenter in the place of the first has not refused anything yet.
    instance: String,
    credentials: Credentials,
    /// The server's words, masked.
    words: String,
}

impl Refusal {
    fn is(&self, endpoint: &Endpoint, instance: &str, credentials: &Credentials) -> bool {
        let same_address = self.endpoint.port == endpoint.port && self.endpoint.server.eq_ignore_ascii_case(&endpoint.server);
        same_address && self.instance == instance && self.credentials == *credentials
    }
}

impl Refusals {
    pub(crate) fn remember(&self, endpoint: &Endpoint, instance: &str, credentials: &Credentials, words: &str) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|one| !one.is(endpoint, instance, credentials));
        known.push_back(Refusal {
            endpoint: endpoint.clone(),
            instance: instance.to_owned(),
            credentials: credentials.clone(),
            words: words.to_owned(),
        });
        if known.len() > REMEMBERED {
            known.pop_front();
        }
    }

    /// The server's words, if it has refused exactly these.
    pub(crate) fn words(&self, endpoint: &Endpoint, instance: &str, credentials: &Credentials) -> Option<String> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().find(|one| one.is(endpoint, instance, credentials)).map(|one| one.words.clone())
    }
}

impl std::fmt::Debug for Refusals {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Refusals")
    }
}
