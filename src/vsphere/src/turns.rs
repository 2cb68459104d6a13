//! Whose turn it is: all clients of the process that talk to the same vCenter share one measure of requests at a time.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock, Mutex, PoisonError, Weak},
};

use tokio::sync::Semaphore;

use crate::settings::Endpoint;

/// By address, as long as a client of it lives.
type Known = HashMap<(String, u16), Weak<Semaphore>>;

static ALL: LazyLock<Mutex<Known>> = LazyLock::new(Mutex::default);

/// The turns at this vCenter. How many there are at a time is decided by the first of the clients that share them.
pub(crate) fn of(endpoint: &Endpoint, at_a_time: usize) -> Arc<Semaphore> {
    let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    let address = (endpoint.server.to_ascii_lowercase(), endpoint.port);
    if let Some(shared) = all.get(&address).and_then(Weak::upgrade) {
        return shared;
    }
    all.retain(|_, turns| turns.strong_count() > 0);
    let turns = Arc::new(Semaphore::new(at_a_time));
    all.insert(address, Arc::downgrade(&turns));
    turns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_of_one_address_share_their_turns_and_the_last_of_them_takes_these_along() {
        let endpoint = |server: &str, port| Endpoint { server: server.into(), port };
        let first = of(&endpoint("turns.example.com", 443), 4);
        assert!(Arc::ptr_eq(&first, &of(&endpoint("Turns.Example.COM", 443), 8)), "names have no case");
        assert!(!Arc::ptr_eq(&first, &of(&endpoint("turns.example.com", 444), 4)));
        assert_eq!(first.available_permits(), 4);
        drop(first);
        assert_eq!(of(&endpoint("turns.example.com", 443), 8).available_permits(), 8);
    }
}
