//! `ccm-trusted-ca`: the certificates the cloud controller manager trusts, from the proxy's bundle and the cloud config's.
//!
//! The real operator puts its image's system bundle behind them. The lab leaves that out: it has no image, and what the machine
//! under it trusts must not decide a test.

use kube::Client;
use kube::ResourceExt;
use kube::api::DynamicObject;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use serde_json::json;

use super::{CLOUD_CONF, Failure, MANAGED_NAMESPACE, TRUSTED_CA};
use crate::cache::Cache;
use crate::kubernetes::{CONFIG_MAP, PROXY};
use crate::standins::requests;

const KEY: &str = "ca-bundle.crt";
const OWNER: (&str, &str) = ("openshift.io/owning-component", "Cloud Compute / Cloud Controller Manager");

pub async fn sync(client: &Client, cache: &Cache) -> Result<(), Failure> {
    let Some(proxy) = cache.get(PROXY, "", "cluster") else {
        tracing::info!("proxy not found; reconciliation will be skipped");
        return Ok(());
    };
    let name = proxy.data["spec"]["trustedCA"]["name"].as_str().unwrap_or_default();
    let of_proxy = if name.is_empty() { None } else { bundle(cache.get(CONFIG_MAP, "openshift-config", name).as_deref(), name, KEY) };
    let cloud_conf = cache.get(CONFIG_MAP, MANAGED_NAMESPACE, CLOUD_CONF);
    let of_cloud = cloud_conf
        .filter(|config| config.data["data"].get("ca-bundle.pem").is_some())
        .and_then(|config| bundle(Some(&config), CLOUD_CONF, "ca-bundle.pem"));
    store(client, cache, &merged(of_proxy, of_cloud)).await
}

/// The cloud config's bundle first; the same bundle twice stands once.
fn merged(of_proxy: Option<String>, of_cloud: Option<String>) -> String {
    let of_cloud = of_cloud.filter(|bundle| of_proxy.as_ref() != Some(bundle));
    of_cloud.into_iter().chain(of_proxy).collect::<Vec<_>>().join("\n")
}

/// A bundle that is not there or not whole is left out, with a warning.
fn bundle(config: Option<&DynamicObject>, name: &str, key: &str) -> Option<String> {
    let text = config.and_then(|config| config.data["data"][key].as_str());
    let Some(text) = text else {
        tracing::warn!("failed to get trust bundle, other CAs will be used: ConfigMap {name:?} is missing {key:?}");
        return None;
    };
    match check(text) {
        Ok(()) => Some(text.to_owned()),
        Err(why) => {
            tracing::warn!("failed to parse trust bundle, other CAs will be used: ConfigMap {name:?}, key {key:?}: {why}");
            None
        }
    }
}

/// Certificates from the first to the last line, and nothing else.
fn check(text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Err("it is empty".to_owned());
    }
    let tail = text.rfind("-----END ").map_or(text, |last| text[last..].split_once('\n').map_or("", |(_, tail)| tail));
    if !tail.is_empty() {
        return Err("failed to parse certificate PEM".to_owned());
    }
    if text.matches("-----BEGIN ").count() != text.matches("-----BEGIN CERTIFICATE-----").count() {
        return Err("invalid certificate PEM, must be of type \"CERTIFICATE\"".to_owned());
    }
    let mut store = rustls::RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(text.as_bytes()) {
        let certificate = certificate.map_err(|error| format!("failed to parse certificate PEM: {error}"))?;
        store.add(certificate).map_err(|error| format!("failed to parse certificate: {error}"))?;
    }
    if store.is_empty() { Err("failed to parse certificate PEM".to_owned()) } else { Ok(()) }
}

async fn store(client: &Client, cache: &Cache, bundle: &str) -> Result<(), Failure> {
    let data = json!({KEY: bundle});
    let Some(existing) = cache.get(CONFIG_MAP, MANAGED_NAMESPACE, TRUSTED_CA) else {
        tracing::info!("creating {MANAGED_NAMESPACE}/{TRUSTED_CA}");
        let metadata = json!({"name": TRUSTED_CA, "namespace": MANAGED_NAMESPACE, "annotations": {OWNER.0: OWNER.1}});
        let manifest = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data});
        requests::create(client, CONFIG_MAP, &manifest).await?;
        return Ok(());
    };
    if existing.data["data"] == data && existing.annotations().get(OWNER.0).is_some_and(|owner| owner == OWNER.1) {
        return Ok(());
    }
    tracing::info!("updating {MANAGED_NAMESPACE}/{TRUSTED_CA}");
    let mut updated = existing.as_ref().clone();
    updated.annotations_mut().insert(OWNER.0.to_owned(), OWNER.1.to_owned());
    updated.data["data"] = data;
    requests::replace(client, CONFIG_MAP, &updated).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn certificate(name: &str) -> String {
        rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap().cert.pem()
    }

    #[test]
    fn the_cloud_bundle_comes_first_and_never_twice() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(merged(None, None), "");
        assert_eq!(merged(some("P"), None), "P");
        assert_eq!(merged(None, some("C")), "C");
        assert_eq!(merged(some("P"), some("C")), "C\nP");
        assert_eq!(merged(some("P"), some("P")), "P");
    }

    #[test]
    fn only_whole_certificates_are_a_bundle() {
        let good = certificate("vc.example");
        let key = rcgen::KeyPair::generate().unwrap().serialize_pem();
        let cases = [
            ("one", good.clone(), true),
            ("two", format!("{good}{}", certificate("other.example")), true),
            ("text between", format!("{good}# the next one\n{good}"), true),
            ("nothing", String::new(), false),
            ("no certificate", "hello".to_owned(), false),
            ("a key among them", format!("{good}{key}"), false),
            ("text behind", format!("{good}\nand more"), false),
            ("broken", good.replace('M', "!"), false),
            ("not a certificate inside", "-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n".to_owned(), false),
        ];
        for (what, text, expected) in cases {
            assert_eq!(check(&text).is_ok(), expected, "{what}: {:?}", check(&text));
        }
    }
}
