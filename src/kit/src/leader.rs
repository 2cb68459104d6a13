//! Which of several processes acts: the holder of a Lease. A process that cannot renew stops acting before another may begin.

use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use kube::api::{DynamicObject, PostParams};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::kind::LEASE;

/// How long a lease lasts, how long to try to renew it, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// After this long without renewal another may take it.
    pub lease: Duration,
    /// After this long without renewal the holder stops acting.
    pub renew: Duration,
    /// How often it is renewed or looked at.
    pub retry: Duration,
}

/// Three numbers of seconds, each smaller than the one before.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is no timing of a lease: write three numbers of seconds, each smaller than the one before, such as 137,107,26")]
pub struct NotATiming(String);

impl std::str::FromStr for Timing {
    type Err = NotATiming;

    fn from_str(text: &str) -> Result<Self, NotATiming> {
        let numbers: Option<Vec<u64>> = text.split(',').map(|part| part.trim().parse().ok()).collect();
        match numbers.as_deref() {
            Some(&[lease, renew, retry]) if lease > renew && renew > retry && retry > 0 => {
                let [lease, renew, retry] = [lease, renew, retry].map(Duration::from_secs);
                Ok(Self { lease, renew, retry })
            }
            _ => Err(NotATiming(text.to_owned())),
        }
    }
}

/// Holds the Lease whenever it can be had; `leads` follows. Ends never.
pub async fn hold(client: Client, namespace: String, name: &'static str, identity: String, timing: Timing, leads: watch::Sender<bool>) {
    let mut renewed: Option<Instant> = None;
    let mut seen: Option<(String, Instant)> = None;
    loop {
        let began = Instant::now();
        // A request that hangs must not keep this process leading: by then another may act.
        let patience = renewed.map_or(timing.renew, |at| timing.renew.saturating_sub(at.elapsed()));
        match tokio::time::timeout(patience, attempt(&client, &namespace, name, &identity, timing, &mut seen)).await {
            Ok(Ok(true)) => {
                renewed = Some(began);
                if !leads.send_replace(true) {
                    tracing::info!(identity, lease = name, "leads");
                }
            }
            Ok(Ok(false)) => renewed = None,
            Ok(Err(error)) => tracing::warn!(%error, "cannot renew the lease"),
            Err(_) => tracing::warn!("cannot renew the lease: the apiserver does not answer in time"),
        }
        if renewed.is_none_or(|at| at.elapsed() >= timing.renew) {
            renewed = None;
            if leads.send_replace(false) {
                tracing::warn!(identity, "leads no more; another process may act");
            }
        }
        // A lease is kept by time alone: whoever holds it renews it, and nobody says when it runs out.
        tokio::time::sleep(timing.retry).await;
    }
}

/// Gives the Lease up, so that the next process need not wait for it to run out.
pub async fn release(client: &Client, namespace: &str, name: &str, identity: &str) -> kube::Result<()> {
    let api = LEASE.api(client, namespace);
    let Some(mut lease) = api.get_opt(name).await?.filter(|lease| lease.data["spec"]["holderIdentity"] == identity) else { return Ok(()) };
    lease.data["spec"]["holderIdentity"] = json!("");
    api.replace(name, &PostParams::default(), &lease).await.map(|_| ())
}

/// Whether the lease is held now. Another's counts as run out by our own clock, since when we have seen it unchanged.
async fn attempt(
    client: &Client,
    namespace: &str,
    name: &str,
    identity: &str,
    timing: Timing,
    seen: &mut Option<(String, Instant)>,
) -> kube::Result<bool> {
    let api = LEASE.api(client, namespace);
    let now = Timestamp::now();
    let Some(mut lease) = api.get_opt(name).await? else {
        let spec = spec(&Value::Null, identity, timing, now);
        let body = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name, "namespace": namespace}, "spec": spec});
        let Ok(object) = serde_json::from_value::<DynamicObject>(body) else { return Ok(false) };
        return taken(api.create(&PostParams::default(), &object).await);
    };
    let holder = lease.data["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned();
    if !holder.is_empty() && holder != identity {
        let version = lease.metadata.resource_version.clone().unwrap_or_default();
        match seen {
            Some((known, since)) if *known == version => {
                let lasts = lease.data["spec"]["leaseDurationSeconds"].as_u64().map_or(timing.lease, Duration::from_secs);
                if since.elapsed() < lasts {
                    return Ok(false);
                }
            }
            _ => {
                *seen = Some((version, Instant::now()));
                return Ok(false);
            }
        }
    }
    lease.data["spec"] = spec(&lease.data["spec"], identity, timing, now);
    taken(api.replace(name, &PostParams::default(), &lease).await)
}

fn taken(outcome: kube::Result<DynamicObject>) -> kube::Result<bool> {
    match outcome {
        Ok(_) => Ok(true),
        // Another one was faster.
        Err(kube::Error::Api(answer)) if answer.code == 409 => Ok(false),
        Err(error) => Err(error),
    }
}

fn spec(before: &Value, identity: &str, timing: Timing, now: Timestamp) -> Value {
    let ours = before["holderIdentity"] == identity;
    let now = format!("{now:.6}");
    let transitions = before["leaseTransitions"].as_i64().unwrap_or(0) + i64::from(!ours && !before.is_null());
    json!({
        "holderIdentity": identity,
        "leaseDurationSeconds": timing.lease.as_secs(),
        "acquireTime": if ours { before["acquireTime"].clone() } else { json!(now) },
        "renewTime": now,
        "leaseTransitions": transitions,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test ends by panicking")]

    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    #[test]
    fn a_timing_is_three_numbers_each_smaller_than_the_one_before() {
        let timing: Timing = "137,107,26".parse().unwrap();
        assert_eq!(timing, Timing { lease: Duration::from_secs(137), renew: Duration::from_secs(107), retry: Duration::from_secs(26) });
        for text in ["", "1", "3,2", "1,2,3", "3,2,0", "3,3,1", "a,b,c", "4,3,2,1"] {
            assert!(text.parse::<Timing>().is_err(), "{text}");
        }
    }

    /// Answers that there is no Lease, takes one, and then never answers again.
    async fn hangs_after_the_first_lease(listener: tokio::net::TcpListener) {
        let lease = r#"{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"l","namespace":"n"}}"#;
        let none = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","message":"none","code":404}"#;
        let mut answers = vec![("201 Created", lease), ("404 Not Found", none)];
        let mut open = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = vec![0; 65_536];
            while !answers.is_empty() && stream.read(&mut request).await.is_ok_and(|length| length > 0) {
                let Some((status, body)) = answers.pop() else { break };
                let head = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", body.len());
                stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
            }
            open.push(stream);
        }
    }

    #[tokio::test]
    async fn a_process_whose_renewal_hangs_leads_no_more() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(hangs_after_the_first_lease(listener));
        let client = Client::try_from(kube::Config::new(format!("http://{address}").parse().unwrap())).unwrap();
        let (leads, mut led) = watch::channel(false);
        tokio::spawn(hold(client, "n".to_owned(), "l", "me".to_owned(), "3,2,1".parse().unwrap(), leads));
        for wanted in [true, false] {
            tokio::time::timeout(Duration::from_secs(60), led.wait_for(|leads| *leads == wanted)).await.unwrap().unwrap();
        }
    }
}
