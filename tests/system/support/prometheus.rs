//! A real Prometheus beside a lab's operator: it reads as deploy/monitoring says, and what it alerts about arrives here, as it
//! would at an Alertmanager.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use axum::routing::post;
use axum::{Json, Router};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use vmi_lab::component::Component;
use vmi_lab::migration::{NAMESPACE, Site, account, deploy};
use vmi_lab::pki::Authority;

use crate::support::openshift::PATIENCE;
use crate::support::suite::{LeftOut, TestResult};

/// As whom the cluster's Prometheus reads.
pub const READER: (&str, &str) = ("openshift-monitoring", "prometheus-k8s");
/// An account that may not.
pub const STRANGER: (&str, &str) = (READER.0, "stranger");
/// Alerts while somebody without rights is refused the metrics, as everybody should be.
pub const STRANGER_REFUSED: &str = "StrangerRefused";

fn checkout() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().nth(2).unwrap_or(package)
}

/// Where the program is; left out with the reason where it cannot be had.
pub fn program() -> TestResult<PathBuf> {
    let output = Command::new(checkout().join("hack/prometheus")).arg("prometheus").output()?;
    if !output.status.success() {
        return Err(LeftOut(String::from_utf8_lossy(&output.stderr).trim().to_owned()).into());
    }
    Ok(PathBuf::from(String::from_utf8(output.stdout)?.trim()))
}

/// What deploy/monitoring installs.
pub fn objects() -> TestResult<Vec<Value>> {
    Ok(deploy::objects(&checkout().join("deploy/monitoring"))?)
}

fn of_kind(kind: &str) -> TestResult<Value> {
    Ok(objects()?.into_iter().find(|object| object["kind"] == kind).ok_or_else(|| format!("deploy/monitoring has no {kind}"))?)
}

/// Makes the certificate that the cluster would give the operator's Service, and returns its folder.
pub fn serving_certificate(site: &Site) -> TestResult<PathBuf> {
    let folder = folder(site)?;
    let authority = Authority::new("service-ca")?;
    let pair = authority.server("vmi-operator", &[&format!("vmi-operator.{NAMESPACE}.svc")])?;
    for (name, text) in [("service-ca.crt", &authority.certificate), ("tls.crt", &pair.certificate), ("tls.key", &pair.key)] {
        fs::write(folder.join(name), text)?;
    }
    Ok(folder)
}

fn folder(site: &Site) -> TestResult<PathBuf> {
    let folder = site.folder.join("prometheus");
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// A running Prometheus, and what it has sent.
pub struct Prometheus {
    component: Component,
    alerts: mpsc::UnboundedReceiver<Value>,
    listener: JoinHandle<()>,
    seen: Vec<String>,
}

impl Prometheus {
    /// Reads from the operator at this address, whose certificate is [`serving_certificate`]'s.
    pub async fn start(program: &Path, site: &Site, operator: SocketAddr) -> TestResult<Prometheus> {
        let folder = folder(site)?;
        let listener = TcpListener::bind((site.block.control_plane(), 0)).await?;
        let address = listener.local_addr()?;
        let (send, alerts) = mpsc::unbounded_channel();
        let take = move |Json(sent): Json<Vec<Value>>| {
            // Whoever listened no longer does when the test is over.
            sent.into_iter().for_each(|alert| drop(send.send(alert)));
            async {}
        };
        let router = Router::new().route("/api/v2/alerts", post(take));
        let listener = tokio::spawn(async move { drop(axum::serve(listener, router).await) });
        fs::write(folder.join("rules"), rules()?.to_string())?;
        let jobs = [job(site, &folder, "vmi-operator", READER, operator).await?, job(site, &folder, "stranger", STRANGER, operator).await?];
        let config = json!({
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [folder.join("rules")], "scrape_configs": jobs,
            "alerting": {"alertmanagers": [{"static_configs": [{"targets": [address.to_string()]}]}]},
        });
        fs::write(folder.join("config"), config.to_string())?;
        let arguments = [
            format!("--config.file={}", folder.join("config").display()),
            format!("--storage.tsdb.path={}", folder.join("data").display()),
            // Nobody asks it anything: it tells.
            format!("--web.listen-address={}:0", site.block.control_plane()),
        ];
        let component = Component::start(&site.mark, &site.folder.join("logs"), "prometheus", program, &arguments, &[])?;
        Ok(Prometheus { component, alerts, listener, seen: Vec::new() })
    }

    /// Waits until it says that the alert of this name fires, or that it does so no more.
    pub async fn until(&mut self, name: &str, fires: bool) -> TestResult<Value> {
        let said = async {
            while let Some(alert) = self.alerts.recv().await {
                let ends: Timestamp = alert["endsAt"].as_str().unwrap_or_default().parse()?;
                let firing = ends > Timestamp::now();
                self.seen.push(format!("{} {}", alert["labels"]["alertname"], if firing { "fires" } else { "is over" }));
                if alert["labels"]["alertname"] == name && firing == fires {
                    return Ok(alert);
                }
            }
            Err("nobody sends alerts any more".into())
        };
        let said: TestResult<Value> = tokio::select! {
            said = tokio::time::timeout(PATIENCE, said) => said.unwrap_or_else(|_| Err("waited for too long".into())),
            died = self.component.died() => Err(died.into()),
        };
        said.map_err(|error| format!("{name}, firing {fires}: {error}; it said: {:?}", self.seen).into())
    }

    pub async fn stop(self) {
        self.listener.abort();
        self.component.stop().await;
    }
}

/// The deployed rules, which fire at once: what is tried here is that they see what the operator says; how long each waits is
/// tried by hack/alerts, with a clock of its own.
fn rules() -> TestResult<Value> {
    let mut rules = of_kind("PrometheusRule")?["spec"].clone();
    let groups = rules["groups"].as_array_mut().ok_or("the PrometheusRule has no groups")?;
    for rule in groups.iter_mut().flat_map(|group| group["rules"].as_array_mut().into_iter().flatten()) {
        rule["for"] = json!("1s");
    }
    groups.push(json!({"name": "test", "rules": [
        {"alert": STRANGER_REFUSED, "expr": r#"up{job="stranger"} == 0 and on () up{job="vmi-operator"} == 1"#},
    ]}));
    Ok(rules)
}

/// What the ServiceMonitor becomes. The address is told instead of found: a lab's are loopback ones, which no EndpointSlice may hold.
async fn job(site: &Site, folder: &Path, name: &str, (namespace, account): (&str, &str), operator: SocketAddr) -> TestResult<Value> {
    let endpoint = of_kind("ServiceMonitor")?["spec"]["endpoints"][0].clone();
    let token = folder.join(format!("{name}.token"));
    fs::write(&token, account::token(&site.client, namespace, account).await?)?;
    Ok(json!({
        "job_name": name, "scheme": endpoint["scheme"], "metrics_path": endpoint["path"],
        "authorization": {"type": "Bearer", "credentials_file": token},
        "tls_config": {"ca_file": folder.join("service-ca.crt"), "server_name": endpoint["tlsConfig"]["serverName"]},
        "static_configs": [{"targets": [operator.to_string()]}],
    }))
}
