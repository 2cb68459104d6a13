//! One client per vCenter and user, for programs whose parts do not know each other.

use std::{collections::HashMap, sync::Arc};

use tokio::sync::Mutex;

use crate::{
    client::Client,
    error::Result,
    settings::{Endpoint, Settings},
};

/// Hands out the one client of each user of each vCenter, so that all callers share its session. The example `tag` is
/// a whole program around one.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/simulator/documentation.rs"));
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> vsphere::Result<()> {
/// # let simulated = vcsim::Vcsim::start();
/// # let settings = simulated.settings();
/// let pool = vsphere::Pool::new();
/// for _ in 0..3 {
///     pool.client(settings.clone()).await?.clock().await?;
/// }
/// # assert_eq!(simulated.sessions().logins, 1);
/// // At the end of the program, so that no session is left behind:
/// pool.close().await
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct Pool {
    clients: Arc<Mutex<Known>>,
}

/// By vCenter and user: nobody is given the client of somebody else.
type Known = HashMap<(Endpoint, String), (Settings, Client)>;

impl Pool {
    /// An empty pool.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The client of the vCenter and the user these settings name. A changed password takes the place of the old one, whose
    /// sessions are ended; one that was refused once is never tried again, also not after others were. Other trust or another
    /// proxy makes a new client.
    ///
    /// # Errors
    /// A setting makes no sense.
    pub async fn client(&self, settings: Settings) -> Result<Client> {
        let mut clients = self.clients.lock().await;
        let key = (settings.endpoint.clone(), settings.credentials.user.clone());
        if let Some((known, client)) = clients.get_mut(&key) {
            if known.trust == settings.trust && known.proxy == settings.proxy {
                if known.credentials != settings.credentials {
                    // A failed logout is in the wire log and no reason to withhold the client.
                    let _ = client.set_credentials(settings.credentials.clone()).await;
                    known.credentials = settings.credentials;
                }
                return Ok(client.clone());
            }
            // As above; the old client may still be held by others, and ends its sessions again when they are done.
            let _ = client.logout().await;
        }
        let client = Client::new(settings.clone())?;
        clients.insert(key, (settings, client.clone()));
        Ok(client)
    }

    /// Ends the sessions of all clients; for the end of the program.
    ///
    /// # Errors
    /// The first logout that failed; the others were tried all the same.
    pub async fn close(&self) -> Result<()> {
        let clients: Vec<Client> = self.clients.lock().await.drain().map(|(_, (_, client))| client).collect();
        let ended = futures::future::join_all(clients.iter().map(Client::logout)).await;
        ended.into_iter().collect()
    }
}
