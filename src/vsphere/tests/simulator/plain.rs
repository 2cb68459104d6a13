//! A plain HTTPS client beside ours: it passes on what others say, and says to the simulator what ours never says.

use std::sync::Arc;

use vsphere::Ref;

use crate::vcsim::{PASSWORD, USER, Vcsim};

/// A client that trusts the simulator's authority.
pub(crate) fn https(sim: &Vcsim) -> reqwest::Client {
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(rustls::pki_types::pem::PemObject::pem_slice_iter(&sim.authority.pem()).map(Result::unwrap));
    let tls = rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    reqwest::Client::builder().tls_backend_preconfigured(tls).no_proxy().build().unwrap()
}

/// Makes groups in a cluster: of hosts, and one of virtual machines, as an administrator would.
pub(crate) async fn make_groups(sim: &Vcsim, cluster: &Ref, host_groups: &[(&str, &[Ref])], vm_group: &str) {
    let member = |host: &Ref| format!(r#"<host type="HostSystem">{}</host>"#, host.id);
    let group = |kind: &str, name: &str, members: &str| {
        format!(r#"<groupSpec><operation>add</operation><info xsi:type="{kind}"><name>{name}</name>{members}</info></groupSpec>"#)
    };
    let mut groups = group("ClusterVmGroup", vm_group, "");
    for (name, hosts) in host_groups {
        groups += &group("ClusterHostGroup", name, &hosts.iter().map(member).collect::<String>());
    }
    let reconfigure = format!(
        r#"<ReconfigureComputeResource_Task xmlns="urn:vim25"><_this type="ClusterComputeResource">{}</_this><spec xsi:type="ClusterConfigSpecEx">{groups}</spec><modify>true</modify></ReconfigureComputeResource_Task>"#,
        cluster.id
    );
    let escaped = PASSWORD.replace('&', "&amp;").replace('<', "&lt;");
    let manager = r#"<_this type="SessionManager">SessionManager</_this>"#;
    let login = format!(r#"<Login xmlns="urn:vim25">{manager}<userName>{USER}</userName><password>{escaped}</password></Login>"#);
    let logout = format!(r#"<Logout xmlns="urn:vim25">{manager}</Logout>"#);
    let client = https(sim);
    let mut cookie = String::new();
    for body in [login, reconfigure, logout] {
        let envelope = format!(
            r#"<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><e:Body>{body}</e:Body></e:Envelope>"#
        );
        let request = client.post(format!("https://{}/sdk", sim.settings().endpoint)).header("cookie", &cookie).body(envelope);
        let answer = request.send().await.unwrap();
        if let Some(given) = answer.headers().get("set-cookie") {
            cookie = given.to_str().unwrap().split(';').next().unwrap().to_owned();
        }
        let (status, text) = (answer.status(), answer.text().await.unwrap());
        assert!(status.is_success(), "{body}: {status} {text}");
    }
}
