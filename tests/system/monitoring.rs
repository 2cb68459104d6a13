//! The alerts of deploy/monitoring, by a real Prometheus that reads a live operator's metrics as the cluster's own would.

use std::net::SocketAddr;

use serde_json::json;
use vmi_crds::spec::State;
use vmi_lab::cluster;
use vmi_lab::faults::{Calls, Fault, Faults};
use vmi_lab::kubernetes::{self, CLUSTER_ROLE, CLUSTER_ROLE_BINDING, NAMESPACE as NAMESPACE_KIND};
use vmi_lab::migration::operator::{Admin, Operator, Options};
use vmi_lab::migration::view::View;
use vmi_lab::migration::{NAMESPACE, Site, request, watch};

use crate::endurance::{LONG, back_to, ready, seen_by_all, turn_back};
use crate::support::asking;
use crate::support::lab::Lab;
use crate::support::prometheus::{self, Prometheus, READER, STRANGER, STRANGER_REFUSED};
use crate::support::suite::TestResult;

const DEGRADED: &str = "VSphereMigrationDegraded";

/// What deploy/monitoring adds to a cluster, and what OpenShift's own monitoring has there before.
async fn install(lab: &Lab) -> TestResult {
    let (namespace, name) = READER;
    let group = "rbac.authorization.k8s.io";
    let mut all = vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": STRANGER.1, "namespace": STRANGER.0}}),
        json!({"apiVersion": format!("{group}/v1"), "kind": "ClusterRole", "metadata": {"name": name},
            "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]}),
        json!({"apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}]}),
    ];
    // The kinds of the other two are not served here; Prometheus is told what they say.
    all.extend(prometheus::objects()?.into_iter().filter(|object| object["apiVersion"] == format!("{group}/v1").as_str()));
    Ok(cluster::apply_all(&lab.client, &all).await?)
}

async fn leave(lab: &Lab) -> TestResult {
    kubernetes::delete(&lab.client, CLUSTER_ROLE_BINDING, "", READER.1).await?;
    kubernetes::delete(&lab.client, CLUSTER_ROLE, "", READER.1).await?;
    kubernetes::delete(&lab.client, NAMESPACE_KIND, "", READER.0).await?;
    Ok(())
}

pub async fn an_alert_fires_when_a_migration_fails_and_is_over_when_it_goes_on(lab: &Lab) -> TestResult {
    let program = prometheus::program()?;
    // No folder can be made on the target: nothing asks for that before the step that needs one.
    let calls = Calls { method: Some("CreateFolder".to_owned()), ..Calls::default() };
    let faults = Faults::of(&lab.record).await?;
    let fault = faults.add(&Fault::Status { vcenter: "b".to_owned(), code: 404, calls }).await?;
    let (site, before) = ready(lab).await?;
    install(lab).await?;
    let user = format!("--as=system:serviceaccount:{}:{}", READER.0, READER.1);
    for what in ["services", "endpoints", "pods", "endpointslices.discovery.k8s.io"] {
        let may = async || lab.kubectl(&["-n", NAMESPACE, "auth", "can-i", "watch", what, &user]).await?.success();
        asking::until("the rights of monitoring", may).await?;
    }

    let address = SocketAddr::new(site.block.control_plane(), 8443);
    let admin = Admin { address, certificate: prometheus::serving_certificate(&site)? };
    let mut operator = Operator::start(&site, &Options { admin: Some(admin), ..Options::default() }).await?;
    let mut prometheus = Prometheus::start(&program, &site, address).await?;
    prometheus.until(STRANGER_REFUSED, true).await?;
    let alert = prometheus.until(DEGRADED, true).await?;
    assert_eq!(alert["labels"]["severity"], "warning", "{alert:#}");
    assert!(alert["annotations"]["description"].as_str().is_some_and(|text| text.contains("vmi status")), "{alert:#}");
    let rule = degraded(&site).await?;
    assert_eq!(rule.as_deref(), Some("VCT-001"));

    faults.lift(&fault).await?;
    request::set_state(&site, State::Paused).await?;
    operator.while_alive(seen_by_all(&site)).await?;
    request::set_state(&site, State::Running).await?;
    prometheus.until(DEGRADED, false).await?;
    assert_eq!(degraded(&site).await?, None);

    prometheus.stop().await;
    turn_back(&site).await?;
    operator.while_alive(watch::follow(&site, &mut View::stderr(), "the way back", LONG, watch::end)).await?;
    operator.stop().await;
    back_to(&site, &before).await?;
    leave(lab).await
}

/// By which rule the migration is Degraded, if it is.
async fn degraded(site: &Site) -> TestResult<Option<String>> {
    let vmi: vmi_crds::VSphereMigrationInfra = kube::Api::namespaced(site.client.clone(), NAMESPACE).get(request::NAME).await?;
    Ok(vmi.condition("Degraded").filter(|condition| condition.status == "True").map(|condition| condition.reason.clone()))
}
