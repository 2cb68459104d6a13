//! The end of sessions: when nobody needs them any more, and when the password changes.

use std::sync::Arc;

use super::{Core, State};
use crate::{
    error::{Fault, Result},
    settings::Credentials,
};

impl Core {
    /// Ends both sessions. Sessions the server has already forgotten count as ended.
    pub(crate) async fn end_sessions(self: &Arc<Self>) -> Result<()> {
        let core = Arc::clone(self);
        self.finish(async move {
            let mut state = core.state.lock().await;
            core.logout_locked(&mut state).await
        })
        .await
    }

    async fn logout_locked(self: &Arc<Self>, state: &mut State) -> Result<()> {
        let rest = match state.rest.take() {
            Some(session) => self.rest_logout(&session).await,
            None => Ok(()),
        };
        // Whoever is met next may have been upgraded meanwhile.
        state.content = None;
        let soap = match state.soap.take() {
            Some(session) => self.soap_logout(&session.content, &session.cookie).await,
            None => Ok(()),
        };
        let gone =
            |outcome: Result<()>| outcome.or_else(|error| if *error.fault() == Fault::NotAuthenticated { Ok(()) } else { Err(error) });
        gone(rest).and(gone(soap))
    }

    /// Changes the password. Never the user: others who hold the client would act as somebody else without knowing.
    pub(crate) async fn set_credentials(self: &Arc<Self>, credentials: Credentials) -> Result<()> {
        let core = Arc::clone(self);
        self.finish(async move {
            let mut state = core.state.lock().await;
            if state.credentials == credentials {
                return Ok(());
            }
            if state.credentials.user != credentials.user {
                let fault = Fault::Settings(format!(
                    "this client is that of {:?} and does not become {:?}: make another client",
                    state.credentials.user, credentials.user
                ));
                return Err(core.error("settings", None, fault));
            }
            let ended = core.logout_locked(&mut state).await;
            core.masker.remember(&credentials.password);
            state.credentials = credentials;
            ended
        })
        .await
    }
}
