//! Startup, readiness and liveness probes: HTTP, TCP and commands.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, PodSpec, Probe};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::container::{Group, Launch};
use super::{http, ports};

/// Until a container passed once, it is asked more often than its period says: that only finds out sooner what is so already.
/// Failures still count once a period.
const EAGER: Duration = Duration::from_millis(250);

/// What probes found out about a container.
pub(super) enum Verdict {
    Started,
    Ready,
    NotReady(String),
    /// To be killed: the probe's name, its last message and its own grace period.
    Dead(&'static str, String, Option<i64>),
    /// The agent cannot probe this; the container is never ready.
    Unsupported(String),
}

/// What is probed.
pub(super) struct Target {
    pub launch: Launch,
    pub address: IpAddr,
    pub ports: BTreeMap<i32, u16>,
    pub spec: PodSpec,
    pub tls: Arc<rustls::ClientConfig>,
}

/// Probes until dropped and tells each change.
pub(super) async fn watch(container: Container, target: Target, tell: impl Fn(Verdict)) {
    let probes = [&container.startup_probe, &container.readiness_probe, &container.liveness_probe];
    if probes.into_iter().flatten().any(|probe| probe.grpc.is_some()) {
        tell(Verdict::Unsupported("the lab's node agent has no grpc probes: use httpGet, tcpSocket or exec".to_owned()));
        return;
    }
    if let Some(startup) = &container.startup_probe {
        let mut dead = false;
        repeat(&target, startup, true, |outcome| {
            if let Err(message) = outcome {
                tell(Verdict::Dead("Startup", message, startup.termination_grace_period_seconds));
                dead = true;
            }
            false
        })
        .await;
        if dead {
            return;
        }
    }
    tell(Verdict::Started);
    let readiness = async {
        let Some(readiness) = &container.readiness_probe else { return tell(Verdict::Ready) };
        repeat(&target, readiness, true, |outcome| {
            tell(match outcome {
                Ok(()) => Verdict::Ready,
                Err(message) => Verdict::NotReady(message),
            });
            true
        })
        .await;
    };
    let liveness = async {
        let Some(liveness) = &container.liveness_probe else { return };
        repeat(&target, liveness, false, |outcome| {
            let Err(message) = outcome else { return true };
            tell(Verdict::Dead("Liveness", message, liveness.termination_grace_period_seconds));
            false
        })
        .await;
    };
    futures::join!(readiness, liveness);
}

/// Probes on and on, calling `turn` whenever a threshold is reached, until it returns false.
async fn repeat(target: &Target, probe: &Probe, eager: bool, mut turn: impl FnMut(Result<(), String>) -> bool) {
    let period = seconds(probe.period_seconds, 10);
    let mut tally = Tally::new(probe);
    let mut ever_passed = false;
    tokio::time::sleep(Duration::from_secs(u64::try_from(probe.initial_delay_seconds.unwrap_or(0)).unwrap_or(0))).await;
    let mut counts_at = Instant::now();
    loop {
        let counts = Instant::now() >= counts_at;
        let limit = seconds(probe.timeout_seconds, 1);
        let outcome = match tokio::time::timeout(limit, check(target, probe)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(format!("no answer within {limit:?}")),
        };
        let reached = tally.count(outcome.is_ok(), counts);
        ever_passed |= reached && outcome.is_ok();
        let go_on = !reached || turn(outcome);
        if !go_on {
            return;
        }
        if counts {
            counts_at = Instant::now() + period;
        }
        let next = if eager && !ever_passed { counts_at.min(Instant::now() + EAGER) } else { counts_at };
        tokio::time::sleep_until(next).await;
    }
}

/// Successes and failures in a row, against the probe's thresholds.
struct Tally {
    needed: i32,
    allowed: i32,
    passed: i32,
    failed: i32,
}

impl Tally {
    fn new(probe: &Probe) -> Tally {
        Tally { needed: probe.success_threshold.unwrap_or(1), allowed: probe.failure_threshold.unwrap_or(3), passed: 0, failed: 0 }
    }

    /// Takes one outcome, which as a failure only `counts` once a period; true if it reaches its threshold.
    fn count(&mut self, passed: bool, counts: bool) -> bool {
        if passed {
            (self.passed, self.failed) = (self.passed + 1, 0);
            self.passed >= self.needed
        } else {
            (self.passed, self.failed) = (0, self.failed + i32::from(counts));
            self.failed >= self.allowed
        }
    }
}

fn seconds(value: Option<i32>, default: u64) -> Duration {
    Duration::from_secs(value.and_then(|value| u64::try_from(value).ok()).filter(|value| *value > 0).unwrap_or(default))
}

async fn check(target: &Target, probe: &Probe) -> Result<(), String> {
    if let Some(get) = &probe.http_get {
        let (host, port) = place(target, get.host.as_deref(), &get.port)?;
        http::get(&host, port, get, &target.tls).await
    } else if let Some(socket) = &probe.tcp_socket {
        let (host, port) = place(target, socket.host.as_deref(), &socket.port)?;
        TcpStream::connect((host.as_str(), port)).await.map(|_| ()).map_err(|error| format!("cannot connect to {host}:{port}: {error}"))
    } else if let Some(exec) = &probe.exec {
        run(&target.launch, exec.command.as_deref().unwrap_or_default()).await
    } else {
        Err("the probe says neither httpGet nor tcpSocket nor exec".to_owned())
    }
}

/// Where a probed port really is: a declared port is where the agent put it, any other is taken as it is.
fn place(target: &Target, host: Option<&str>, port: &IntOrString) -> Result<(String, u16), String> {
    let number = ports::number(&target.spec, port).ok_or_else(|| format!("no container of the pod has a port named {port:?}"))?;
    if let Some(given) = target.ports.get(&number) {
        return Ok((target.address.to_string(), *given));
    }
    let port = u16::try_from(number).map_err(|error| format!("{number} is no port: {error}"))?;
    Ok((host.map_or_else(|| target.address.to_string(), str::to_owned), port))
}

async fn run(launch: &Launch, command: &[String]) -> Result<(), String> {
    let (program, arguments) = command.split_first().ok_or("the probe's command is empty")?;
    let failed = |error: std::io::Error| format!("cannot run {program}: {error}");
    let mut command = launch.command(Path::new(program), arguments).map_err(failed)?;
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(failed)?;
    // A command that takes too long is dropped here, with everything it started.
    let _group = Group::of(&child);
    let output = child.wait_with_output().await.map_err(failed)?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).trim().to_owned();
    Err(format!("{program}: {}: {said}", output.status))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn target(ports: &[(i32, u16)]) -> Target {
        let spec = json!({"containers": [{"name": "c", "ports": [{"name": "https", "containerPort": 8443}]}]});
        Target {
            launch: Launch {
                program: "/bin/sh".into(),
                arguments: Vec::new(),
                environment: BTreeMap::new(),
                directory: "/".into(),
                mark: "test".to_owned(),
            },
            address: "127.0.0.1".parse().unwrap(),
            ports: ports.iter().copied().collect(),
            spec: serde_json::from_value(spec).unwrap(),
            tls: http::unverified().unwrap(),
        }
    }

    #[test]
    fn a_declared_port_is_probed_where_the_agent_put_it() {
        let target = target(&[(8443, 23456)]);
        let expected = ("127.0.0.1".to_owned(), 23456);
        assert_eq!(place(&target, None, &IntOrString::String("https".into())).unwrap(), expected);
        assert_eq!(place(&target, Some("localhost"), &IntOrString::Int(8443)).unwrap(), expected);
        assert_eq!(place(&target, Some("localhost"), &IntOrString::Int(99)).unwrap(), ("localhost".to_owned(), 99));
        assert!(place(&target, None, &IntOrString::String("nobody".into())).is_err());
    }

    #[tokio::test]
    async fn a_listening_port_passes_and_a_closed_one_fails() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let probe: Probe = serde_json::from_value(json!({"tcpSocket": {"port": 8443}})).unwrap();
        assert_eq!(check(&target(&[(8443, port)]), &probe).await, Ok(()));
        drop(listener);
        assert!(check(&target(&[(8443, port)]), &probe).await.unwrap_err().contains("cannot connect"));
    }

    #[tokio::test]
    async fn a_grpc_probe_is_refused_and_never_passes() {
        let container: Container = serde_json::from_value(json!({"name": "c", "readinessProbe": {"grpc": {"port": 8443}}})).unwrap();
        let told = std::sync::Mutex::new(Vec::new());
        watch(container, target(&[]), |verdict| told.lock().unwrap().push(verdict)).await;
        assert!(matches!(told.into_inner().unwrap().as_slice(), [Verdict::Unsupported(message)] if message.contains("grpc")));
    }

    #[test]
    fn failures_count_once_a_period_however_often_one_asks() {
        let probe: Probe = serde_json::from_value(json!({"failureThreshold": 2, "successThreshold": 2})).unwrap();
        let mut tally = Tally::new(&probe);
        let reached: Vec<_> = [(false, true), (false, false), (false, false), (false, true), (true, true), (true, false), (false, true)]
            .into_iter()
            .map(|(passed, counts)| tally.count(passed, counts))
            .collect();
        assert_eq!(reached, [false, false, false, true, false, true, false]);
    }
}
