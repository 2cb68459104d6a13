//! Looks after the sessions: keeps them alive while somebody needs them, ends them when nobody does.

use std::{
    sync::{Arc, PoisonError, atomic::Ordering},
    time::{Duration, Instant},
};

use crate::{
    error::{Fault, Result},
    session::Core,
    settings::Deadlines,
};

/// While this lives, the sessions are kept alive; made by [`crate::Client::keep_alive`].
#[must_use = "the sessions are kept alive only while this lives"]
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

/// Whose session a call is made in: the server forgets each of them for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Api {
    Soap,
    Rest,
}

/// When each session was last used.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Touched {
    soap: Instant,
    rest: Instant,
}

impl Touched {
    pub(crate) fn now() -> Self {
        Self { soap: Instant::now(), rest: Instant::now() }
    }

    fn of(&self, api: Api) -> Instant {
        match api {
            Api::Soap => self.soap,
            Api::Rest => self.rest,
        }
    }
}

impl Core {
    /// Says that the session was used just now.
    pub(crate) fn touch(&self, api: Api) {
        let mut touched = self.touched.lock().unwrap_or_else(PoisonError::into_inner);
        match api {
            Api::Soap => touched.soap = Instant::now(),
            Api::Rest => touched.rest = Instant::now(),
        }
    }

    /// How long the session was not used.
    fn quiet(&self, api: Api) -> Duration {
        self.touched.lock().unwrap_or_else(PoisonError::into_inner).of(api).elapsed()
    }
}

/// A call under way: as long as there is one, the sessions are not idle.
pub(crate) struct Busy<'a>(&'a Core, Api);

impl<'a> Busy<'a> {
    pub(crate) fn new(core: &'a Core, api: Api) -> Self {
        core.calls.fetch_add(1, Ordering::AcqRel);
        Self(core, api)
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.touch(self.1);
        self.0.calls.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Watches over the sessions of a client until there is none; at most one runs per client.
pub(crate) async fn keep(core: Arc<Core>) {
    while core.still_kept().await {
        let pause = step(&core).await;
        // Woken early when the last client or the last holder goes; running out is the ordinary case.
        let _ = tokio::time::timeout(pause, core.wake.notified()).await;
    }
}

/// Does what is due and returns how long nothing else will be.
async fn step(core: &Arc<Core>) -> Duration {
    let Deadlines { idle, keep_alive, .. } = core.settings.deadlines;
    let held = core.holders.load(Ordering::Acquire) > 0;
    let busy = core.calls.load(Ordering::Acquire) > 0;
    let quiet = core.quiet(Api::Soap).min(core.quiet(Api::Rest));
    if !busy && (core.abandoned.load(Ordering::Acquire) || (!held && quiet >= idle)) {
        // Each logout is in the wire log with its result; nobody is left here to be told.
        let _ = core.end_sessions().await;
        return Duration::ZERO;
    }
    if !held {
        return if busy { idle } else { idle.saturating_sub(quiet) };
    }
    let mut next = keep_alive;
    for api in [Api::Soap, Api::Rest] {
        if core.quiet(api) >= keep_alive {
            use_session(core, api).await;
            core.touch(api);
        }
        next = next.min(keep_alive.saturating_sub(core.quiet(api)));
    }
    next
}

/// Uses a session for nothing, if there is one, so that the server does not forget it.
///
/// This very one: another in its place could be one too many if somebody logs out meanwhile. A lost one is made anew by the next
/// call that needs it; any other failure is in the wire log, and the session used again in time.
async fn use_session(core: &Core, api: Api) {
    let lost = |outcome: Result<()>| outcome.is_err_and(|error| *error.fault() == Fault::NotAuthenticated);
    match api {
        Api::Soap => {
            let Some(session) = core.open_soap().await else { return };
            if lost(core.clock_in(&session).await) {
                core.lost_soap(&session).await;
            }
        }
        Api::Rest => {
            let Some(session) = core.open_rest().await else { return };
            if lost(core.rest_once(&session.dialect.this_session(), &session.id, session.dialect).await) {
                core.lost_rest(&session).await;
            }
        }
    }
}
