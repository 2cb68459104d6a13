//! Logins to the migration's vCenters. A password that was refused is never tried again, by no process.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kube::ResourceExt;
use kube::api::DynamicObject;
use vmi_crds::status::RefusedCredentials;
use vmi_kit::failure::{Stop, failure, look};
use vmi_kit::kind::{CONFIG_MAP, SECRET};
use vmi_kit::trial::Trials;
use vmi_steps::Migration;
use vsphere::{Client, Credentials, Endpoint, Fault, Settings, Trust};

/// Where the cluster keeps the credentials that its components get copies of.
pub const ROOT_SECRET: (&str, &str) = ("kube-system", "vsphere-creds");
/// A component's copy, for clusters whose root secret is gone.
pub const MACHINE_API_SECRET: (&str, &str) = ("openshift-machine-api", "vsphere-cloud-credentials");
/// The certificates the cluster trusts.
pub const TRUST_BUNDLE: (&str, &str) = ("openshift-config-managed", "trusted-ca-bundle");
/// The key under which a ConfigMap holds certificates.
pub const BUNDLE_KEY: &str = "ca-bundle.crt";

/// A user and a password as they stand in a Secret of a version.
pub struct Login {
    /// What they are.
    pub credentials: Credentials,
    /// Which ones, without saying what they are.
    pub which: RefusedCredentials,
    /// `namespace/name` of the Secret.
    pub secret: String,
}

impl Login {
    /// What an error of a call means for a step: a refused password is remembered, the rest may get better.
    pub fn stop(&self, what: &str, error: &vsphere::Error) -> Stop {
        match error.fault() {
            Fault::InvalidLogin => self.refused(error.words()),
            _ => stop(what, error),
        }
    }

    fn refused(&self, words: &str) -> Stop {
        let Self { credentials, which, secret } = self;
        let text = format!("vCenter {} refuses the user {} of Secret {secret}: {words}", which.server, credentials.user);
        let next = format!("write the right pair into Secret {secret}: until it changes the password is not tried again");
        let (namespace, name) = secret.split_once('/').unwrap_or_default();
        let command = format!("oc -n {namespace} get secret {name} -o jsonpath='{{.metadata.resourceVersion}}'");
        Stop::Refused(which.clone(), Box::new(look(failure("CRD-001", text, next), [command])))
    }
}

/// A client for one of the migration's vCenters, with a password that it has accepted. Give errors of calls to [`Login::stop`].
pub async fn client(m: &Migration, server: &str) -> Result<(Client, Login), Stop> {
    let login = login(m, server)?;
    if m.refused_credentials().contains(&login.which) {
        return Err(login.refused("this password was refused before and is not tried again"));
    }
    let mut settings =
        Settings::new(Endpoint { server: server.to_owned(), port: port(m, server) }, login.credentials.clone(), trust(m, server)?);
    settings.user_agent = concat!("vmi-operator/", env!("CARGO_PKG_VERSION")).to_owned();
    let vcenters = &m.cx.vcenters;
    settings.calls = vcenters.calls().clone();
    let client = vcenters.pool().client(settings).await.map_err(|error| stop("talk to vCenter", &error))?;
    prove(vcenters.trials(), &client, &login).await?;
    Ok((client, login))
}

/// Logs in, if this process has not yet done so with this pair.
async fn prove(trials: &Trials, client: &Client, login: &Login) -> Result<(), Stop> {
    if trials.accepted(&login.which) {
        return Ok(());
    }
    let told = |error: &vsphere::Error| login.stop("log in to vCenter", error);
    // Whatever may take long comes before the trial, for that keeps everybody from writing.
    client.about().await.map_err(|error| told(&error))?;
    let trial = trials.begin().await;
    match client.user().await.map_err(|error| told(&error)) {
        Ok(_) => trial.accepted(login.which.clone()),
        Err(stop) => {
            if let Stop::Refused(which, _) = &stop {
                trial.refused(which.clone());
            }
            return Err(stop);
        }
    }
    Ok(())
}

/// What an error of a vCenter means for a step.
fn stop(what: &str, error: &vsphere::Error) -> Stop {
    let text = format!("cannot {what}: {error}");
    match error.fault() {
        Fault::Timeout { .. } | Fault::Connect(_) | Fault::Dropped(_) | Fault::Unavailable { .. } | Fault::NotAuthenticated => {
            Stop::again(text)
        }
        // Somebody else made it since we looked, perhaps on a linked vCenter that has not passed it on yet.
        Fault::AlreadyExists => Stop::again(text),
        Fault::NoPermission { .. } => {
            failure("VCT-002", text, "grant the privilege in vCenter, then set spec.state to Paused and to Running again").into()
        }
        Fault::Tls { .. } => failure(
            "VCT-003",
            text,
            "name the certificate's authority in spec.trust.caBundle or its SHA-256 in spec.trust.thumbprints, then resume",
        )
        .into(),
        _ => failure("VCT-001", text, "mend in vCenter what it names, then set spec.state to Paused and to Running again").into(),
    }
}

/// The pair for a server: a target's from the Secret the vmi names, a source's from the cluster's own.
fn login(m: &Migration, server: &str) -> Result<Login, Stop> {
    let own = (m.cx.namespace.as_str(), m.spec().credentials_secret.name.as_str());
    let places = if m.targets().contains(&server) { vec![own] } else { vec![ROOT_SECRET, MACHINE_API_SECRET] };
    for (namespace, name) in &places {
        let Some(secret) = m.get(SECRET, namespace, name) else { continue };
        let data = secret_data(&secret);
        let key = |suffix: &str| data.get(&format!("{server}.{suffix}")).and_then(|bytes| String::from_utf8(bytes.clone()).ok());
        if let (Some(user), Some(password)) = (key("username"), key("password")) {
            let which = RefusedCredentials {
                server: server.to_owned(),
                uid: secret.uid().unwrap_or_default(),
                resource_version: secret.resource_version().unwrap_or_default(),
            };
            return Ok(Login { credentials: Credentials::new(user, password), which, secret: format!("{namespace}/{name}") });
        }
    }
    let names: Vec<String> = places.iter().map(|(namespace, name)| format!("{namespace}/{name}")).collect();
    let text = format!("no Secret has {server}.username and {server}.password: looked at {}", names.join(" and "));
    Err(failure("CRD-002", text, "write both keys into the Secret, then resume").into())
}

/// The decoded values of a Secret.
pub fn secret_data(secret: &DynamicObject) -> BTreeMap<String, Vec<u8>> {
    let data = secret.data["data"].as_object().into_iter().flatten();
    data.filter_map(|(key, value)| Some((key.clone(), STANDARD.decode(value.as_str()?).ok()?))).collect()
}

fn port(m: &Migration, server: &str) -> u16 {
    let target = m.spec().vcenters.iter().find(|vcenter| vcenter.server == server).and_then(|vcenter| vcenter.port).map(i64::from);
    let listed = || {
        let infrastructure = m.infrastructure()?;
        let vcenters = infrastructure.data["spec"]["platformSpec"]["vsphere"]["vcenters"].as_array()?;
        vcenters.iter().find(|vcenter| vcenter["server"] == server)?["port"].as_i64()
    };
    target.or_else(listed).and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0).unwrap_or(443)
}

fn trust(m: &Migration, server: &str) -> Result<Trust, Stop> {
    let wanted = m.spec().trust.clone().unwrap_or_default();
    if let Some(pinned) = wanted.thumbprints.iter().find(|pinned| pinned.server == server) {
        let thumbprint = pinned
            .sha256
            .parse()
            .map_err(|error| Stop::from(failure("TLS-001", format!("spec.trust.thumbprints: {error}"), "correct it")))?;
        return Ok(Trust::Thumbprint(thumbprint));
    }
    if wanted.insecure {
        return Ok(Trust::Insecure);
    }
    let mut bundle = Vec::new();
    let cluster = m.get(CONFIG_MAP, TRUST_BUNDLE.0, TRUST_BUNDLE.1);
    let own = match &wanted.ca_bundle {
        None => None,
        Some(name) => Some(m.get(CONFIG_MAP, &m.cx.namespace, name).ok_or_else(|| {
            let text = format!("spec.trust.caBundle: there is no ConfigMap {}/{name}", m.cx.namespace);
            Stop::from(failure("TLS-002", text, format!("create it with the certificates under {BUNDLE_KEY}")))
        })?),
    };
    for map in [cluster, own].into_iter().flatten() {
        bundle.extend_from_slice(map.data["data"][BUNDLE_KEY].as_str().unwrap_or_default().as_bytes());
        bundle.push(b'\n');
    }
    let empty = bundle.iter().all(u8::is_ascii_whitespace);
    Ok(if empty { Trust::System } else { Trust::SystemAnd(bundle) })
}
