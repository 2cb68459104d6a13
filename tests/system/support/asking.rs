//! For what only the apiserver knows: it learns of roles, kinds and policies by watches of its own, a moment later than whoever
//! wrote them, and tells nobody when it has.

use std::time::Duration;

use crate::support::openshift::PATIENCE;
use crate::support::suite::TestResult;

/// Asks, ten times a second, until the answer is the wanted one; gives up with the last that was not.
pub async fn until<T>(what: &str, mut ask: impl AsyncFnMut() -> TestResult<T>) -> TestResult<T> {
    let end = tokio::time::Instant::now() + PATIENCE;
    loop {
        match ask().await {
            Ok(answer) => return Ok(answer),
            Err(missing) if tokio::time::Instant::now() > end => return Err(format!("{what}: {missing}").into()),
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}
