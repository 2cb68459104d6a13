//! What all controllers share of the vCenters: sessions, a record of every call, and passwords on trial.

use vsphere::Pool;

use crate::trial::Trials;

/// Sessions with vCenters.
#[derive(Default)]
pub struct Vcenters {
    pool: Pool,
    calls: vsphere::Calls,
    trials: Trials,
}

impl Vcenters {
    /// Nobody is logged in.
    pub fn new() -> Self {
        Self::default()
    }

    /// Clients, with a session each that lasts.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Every call made.
    pub fn calls(&self) -> &vsphere::Calls {
        &self.calls
    }

    /// Passwords that are being tried for the first time.
    pub fn trials(&self) -> &Trials {
        &self.trials
    }

    /// Ends all sessions.
    pub async fn close(&self) -> vsphere::Result<()> {
        self.pool.close().await
    }
}
