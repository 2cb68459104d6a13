//! Looks after a session: keeps it alive while somebody needs it, ends it when nobody does.

use std::{
    pin::Pin,
    sync::{Arc, PoisonError, atomic::Ordering},
    time::Duration,
};

use crate::session::Core;

/// While this lives, the session is kept alive; made by [`crate::Client::keep_alive`].
#[must_use = "the session is kept alive only while this lives"]
pub struct KeepAlive(Arc<Core>);

impl KeepAlive {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        core.holders.fetch_add(1, Ordering::AcqRel);
        core.wake.notify_one();
        Self(core)
    }
}

impl Drop for KeepAlive {
    fn drop(&mut self) {
        self.0.holders.fetch_sub(1, Ordering::AcqRel);
        self.0.wake.notify_one();
    }
}

impl std::fmt::Debug for KeepAlive {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("KeepAlive")
    }
}

/// A call under way: as long as there is one, the session is not idle.
pub(crate) struct Busy<'a>(&'a Core);

impl<'a> Busy<'a> {
    pub(crate) fn new(core: &'a Core) -> Self {
        core.calls.fetch_add(1, Ordering::AcqRel);
        Self(core)
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.touch();
        self.0.calls.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Watches over the sessions of a client until there is none; at most one runs per client.
///
/// Boxed, because a login starts a keeper and a keeper may have to log in again.
pub(crate) fn keep(core: Arc<Core>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        while core.still_kept().await {
            let pause = step(&core).await;
            // Woken early when the last client or the last holder goes; running out is the ordinary case.
            let _ = tokio::time::timeout(pause, core.wake.notified()).await;
        }
    })
}

/// Does what is due and returns how long nothing else will be.
async fn step(core: &Arc<Core>) -> Duration {
    let quiet = core.touched.lock().unwrap_or_else(PoisonError::into_inner).elapsed();
    let held = core.holders.load(Ordering::Acquire) > 0;
    let limit = if held { core.settings.deadlines.keep_alive } else { core.settings.deadlines.idle };
    if core.calls.load(Ordering::Acquire) > 0 {
        return limit;
    }
    if core.abandoned.load(Ordering::Acquire) || (!held && quiet >= limit) {
        // Each logout is in the wire log with its result; nobody is left here to be told.
        let _ = core.end_sessions().await;
        return Duration::ZERO;
    }
    if quiet < limit {
        return limit - quiet;
    }
    // A lost session is renewed by the call itself; any other failure is in the wire log and tried again in time.
    let _ = core.clock().await;
    core.touch();
    limit
}
