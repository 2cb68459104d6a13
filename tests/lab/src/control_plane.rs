//! etcd, kube-apiserver, kube-controller-manager and kube-scheduler: the real ones, with RBAC, an audit log, a client CA and a
//! request-header CA, and an egress selector through which the apiserver reaches nodes and Services.

use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};

use crate::component::{self, Component};
use crate::net::{self, Block};
use crate::pki::{self, Authority, Pair};

pub const APISERVER_PORT: u16 = 6443;
/// Where an operator under test finds the apiserver, see [`crate::side_door`].
pub const SIDE_DOOR: u16 = 6444;
pub const ETCD_CLIENTS: u16 = 2379;
pub const ETCD_PEERS: u16 = 2380;
/// Where the node agent serves what a kubelet serves.
pub const KUBELET_PORT: u16 = 10250;

/// The binaries the control plane consists of.
pub struct Programs {
    pub etcd: PathBuf,
    pub apiserver: PathBuf,
    pub controller_manager: PathBuf,
    pub scheduler: PathBuf,
}

/// How a running control plane is reached.
pub struct ControlPlane {
    pub client: Client,
    pub url: String,
    /// Signs everything inside the cluster: servers, clients, webhooks.
    pub authority: Authority,
    /// What the node agent serves with, and the certificate it demands of the apiserver is signed by `authority`.
    pub kubelet: Pair,
    /// The socket on which the apiserver expects its way to nodes and Services.
    pub egress: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Component(#[from] component::Error),
    #[error(transparent)]
    Pki(#[from] pki::Error),
    #[error(transparent)]
    Net(#[from] net::Error),
    #[error("cannot write {path}: {source}", path = .path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot use the kubeconfig just written: {0}")]
    Kubeconfig(String),
    #[error("kube-apiserver did not become ready within {0:?}: look into its log, `vmi-lab logs kube-apiserver`")]
    NotReady(Duration),
}

impl ControlPlane {
    /// Starts everything below `folder` and returns, with its programs, when the apiserver answers and the controllers are starting.
    pub async fn start(mark: &str, folder: &Path, block: Block, programs: &Programs) -> Result<(ControlPlane, Vec<Component>), Error> {
        let address = block.control_plane();
        for port in net::PORTS {
            net::check_free(SocketAddr::new(address, port))?;
        }
        let files = Files { folder };
        let logs = folder.join("logs");
        let authority = Authority::new("lab-ca")?;
        let url = format!("https://{address}:{APISERVER_PORT}");
        let kubelet = authority.server("kubelet", &[&address.to_string(), "kubelet"])?;
        let egress = folder.join("egress.sock");

        let etcd = Component::start(mark, &logs, "etcd", &programs.etcd, &etcd_arguments(folder, address), &[])?;
        let arguments = apiserver_arguments(&files, &authority, address, &egress)?;
        // By far the largest and the busiest: collecting a little earlier than by itself keeps a lab within its memory.
        let collects = [("GOGC", "80".to_owned())];
        let mut apiserver = Component::start(mark, &logs, "kube-apiserver", &programs.apiserver, &arguments, &collects)?;

        let admin = authority.client("lab-admin", Some("system:masters"))?;
        let kubeconfig = files.write("kubeconfig", &kubeconfig(&url, &authority, &admin))?;
        let client = client(&kubeconfig).await?;
        apiserver.while_alive(ready(&client)).await?;

        let manager = authority.client("system:kube-controller-manager", None)?;
        let manager = files.write("kube-controller-manager.kubeconfig", &self::kubeconfig(&url, &authority, &manager))?;
        let scheduler = authority.client("system:kube-scheduler", None)?;
        let scheduler = files.write("kube-scheduler.kubeconfig", &self::kubeconfig(&url, &authority, &scheduler))?;
        // These have little to do, so that collecting earlier costs nothing that anyone would notice.
        let frugal = [("GOGC", "60".to_owned())];
        let manager = Component::start(
            mark,
            &logs,
            "kube-controller-manager",
            &programs.controller_manager,
            &manager_arguments(&files, address, &manager),
            &frugal,
        )?;
        let scheduler =
            Component::start(mark, &logs, "kube-scheduler", &programs.scheduler, &scheduler_arguments(address, &scheduler), &frugal)?;
        let components = vec![etcd, apiserver, manager, scheduler];
        Ok((ControlPlane { client, url, authority, kubelet, egress }, components))
    }
}

/// The lab's folder; what is written there is for the owner's eyes only.
struct Files<'a> {
    folder: &'a Path,
}

impl Files<'_> {
    fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    fn write(&self, name: &str, text: &str) -> Result<PathBuf, Error> {
        let path = self.folder.join(name);
        let write = || -> io::Result<()> {
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            let mut file = fs::OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&path)?;
            io::Write::write_all(&mut file, text.as_bytes())
        };
        write().map_err(|source| Error::Write { path: path.clone(), source })?;
        Ok(path)
    }

    fn write_pair(&self, name: &str, pair: &Pair) -> Result<(), Error> {
        self.write(&format!("pki/{name}.crt"), &pair.certificate)?;
        self.write(&format!("pki/{name}.key"), &pair.key)?;
        Ok(())
    }
}

fn etcd_arguments(folder: &Path, address: IpAddr) -> Vec<String> {
    vec![
        "--name=lab".to_owned(),
        format!("--data-dir={}", folder.join("etcd").display()),
        format!("--listen-client-urls=http://{address}:{ETCD_CLIENTS}"),
        format!("--advertise-client-urls=http://{address}:{ETCD_CLIENTS}"),
        format!("--listen-peer-urls=http://{address}:{ETCD_PEERS}"),
        format!("--initial-advertise-peer-urls=http://{address}:{ETCD_PEERS}"),
        format!("--initial-cluster=lab=http://{address}:{ETCD_PEERS}"),
        // A lab does not outlive its machine: durability would only cost time.
        "--unsafe-no-fsync=true".to_owned(),
    ]
}

fn apiserver_arguments(files: &Files<'_>, authority: &Authority, address: IpAddr, egress: &Path) -> Result<Vec<String>, Error> {
    let hosts = [&address.to_string(), "kubernetes", "kubernetes.default", "kubernetes.default.svc", "10.96.0.1"];
    files.write_pair("apiserver", &authority.server("kube-apiserver", &hosts)?)?;
    files.write("pki/ca.crt", &authority.certificate)?;
    files.write_pair("kubelet-client", &authority.client("kube-apiserver-kubelet-client", Some("system:masters"))?)?;
    let aggregation = Authority::new("lab-request-header-ca")?;
    files.write("pki/request-header-ca.crt", &aggregation.certificate)?;
    files.write_pair("aggregator", &aggregation.client("aggregator", None)?)?;
    let tokens = pki::signing_key()?;
    files.write("pki/service-accounts.key", &tokens.private)?;
    files.write("pki/service-accounts.pub", &tokens.public)?;
    files.write("audit-policy.yaml", AUDIT_POLICY)?;
    files.write("egress.yaml", &egress_configuration(egress))?;
    Ok(vec![
        format!("--etcd-servers=http://{address}:{ETCD_CLIENTS}"),
        format!("--bind-address={address}"),
        format!("--secure-port={APISERVER_PORT}"),
        // Endpoints may not be loopback addresses, so none are published; nothing in the lab looks for them.
        "--advertise-address=192.0.2.1".to_owned(),
        "--endpoint-reconciler-type=none".to_owned(),
        "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
        format!("--tls-cert-file={}", files.path("pki/apiserver.crt")),
        format!("--tls-private-key-file={}", files.path("pki/apiserver.key")),
        format!("--client-ca-file={}", files.path("pki/ca.crt")),
        format!("--kubelet-client-certificate={}", files.path("pki/kubelet-client.crt")),
        format!("--kubelet-client-key={}", files.path("pki/kubelet-client.key")),
        "--kubelet-preferred-address-types=InternalIP".to_owned(),
        format!("--requestheader-client-ca-file={}", files.path("pki/request-header-ca.crt")),
        "--requestheader-allowed-names=aggregator".to_owned(),
        "--requestheader-username-headers=X-Remote-User".to_owned(),
        "--requestheader-group-headers=X-Remote-Group".to_owned(),
        "--requestheader-extra-headers-prefix=X-Remote-Extra-".to_owned(),
        format!("--proxy-client-cert-file={}", files.path("pki/aggregator.crt")),
        format!("--proxy-client-key-file={}", files.path("pki/aggregator.key")),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        format!("--service-account-key-file={}", files.path("pki/service-accounts.pub")),
        format!("--service-account-signing-key-file={}", files.path("pki/service-accounts.key")),
        "--authorization-mode=RBAC".to_owned(),
        "--allow-privileged=true".to_owned(),
        format!("--audit-log-path={}", files.path("logs/audit.log")),
        format!("--audit-policy-file={}", files.path("audit-policy.yaml")),
        format!("--egress-selector-config-file={}", files.path("egress.yaml")),
        "--profiling=false".to_owned(),
    ])
}

fn manager_arguments(files: &Files<'_>, address: IpAddr, kubeconfig: &Path) -> Vec<String> {
    vec![
        format!("--kubeconfig={}", kubeconfig.display()),
        format!("--bind-address={address}"),
        "--leader-elect=false".to_owned(),
        "--use-service-account-credentials=true".to_owned(),
        format!("--root-ca-file={}", files.path("pki/ca.crt")),
        format!("--service-account-private-key-file={}", files.path("pki/service-accounts.key")),
        "--cloud-provider=external".to_owned(),
        // The lab says itself, at once, when a node is lost; heartbeats would be polling.
        "--node-monitor-grace-period=24h".to_owned(),
        "--profiling=false".to_owned(),
    ]
}

fn scheduler_arguments(address: IpAddr, kubeconfig: &Path) -> Vec<String> {
    vec![
        format!("--kubeconfig={}", kubeconfig.display()),
        format!("--authentication-kubeconfig={}", kubeconfig.display()),
        format!("--authorization-kubeconfig={}", kubeconfig.display()),
        format!("--bind-address={address}"),
        "--leader-elect=false".to_owned(),
        "--profiling=false".to_owned(),
    ]
}

/// Every request, watches and refused ones too, with its user and outcome. Bodies stay out, for they hold credentials; but for the
/// vmi, which holds none: what was written into it, and when, is what a migration is measured by.
const AUDIT_POLICY: &str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Request
  resources:
  - group: config.openshift.io
    resources: [vspheremigrationinfra, vspheremigrationinfra/status]
- level: Metadata
";

fn egress_configuration(socket: &Path) -> String {
    format!(
        "apiVersion: apiserver.k8s.io/v1beta1\n\
         kind: EgressSelectorConfiguration\n\
         egressSelections:\n\
         - name: cluster\n\
         \x20 connection:\n\
         \x20   proxyProtocol: HTTPConnect\n\
         \x20   transport:\n\
         \x20     uds:\n\
         \x20       udsName: {}\n",
        socket.display()
    )
}

/// A kubeconfig for whoever holds `user`'s certificate.
fn kubeconfig(url: &str, authority: &Authority, user: &Pair) -> String {
    use base64::Engine as _;
    let encode = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: lab\n\
         clusters:\n- name: lab\n  cluster:\n    server: {url}\n    certificate-authority-data: {ca}\n\
         contexts:\n- name: lab\n  context: {{cluster: lab, user: lab}}\n\
         users:\n- name: lab\n  user:\n    client-certificate-data: {certificate}\n    client-key-data: {key}\n",
        ca = encode(&authority.certificate),
        certificate = encode(&user.certificate),
        key = encode(&user.key),
    )
}

/// A client for a kubeconfig file.
pub async fn client(kubeconfig: &Path) -> Result<Client, Error> {
    let explain = |error: &dyn std::fmt::Display| Error::Kubeconfig(format!("{}: {error}", kubeconfig.display()));
    // Two providers would make rustls refuse to choose; a second installation of the same one is harmless.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let file = Kubeconfig::read_from(kubeconfig).map_err(|error| explain(&error))?;
    let mut config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.map_err(|error| explain(&error))?;
    // A lab is on this machine's loopback addresses: a proxy that the environment names cannot know them.
    config.proxy_url = None;
    Client::try_from(config).map_err(|error| explain(&error))
}

/// Waits for /readyz. There is nothing to watch before the apiserver answers, so this asks, ten times a second.
pub async fn ready(client: &Client) -> Result<(), Error> {
    const DEADLINE: Duration = Duration::from_secs(120);
    let ask = async {
        loop {
            let request = http_get("/readyz");
            if let Some(request) = request
                && client.request_text(request).await.is_ok()
            {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(DEADLINE, ask).await.map_err(|_elapsed| Error::NotReady(DEADLINE))
}

fn http_get(path: &str) -> Option<hyper::Request<Vec<u8>>> {
    hyper::Request::get(path).body(Vec::new()).ok()
}
