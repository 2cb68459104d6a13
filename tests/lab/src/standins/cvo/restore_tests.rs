use super::*;
use crate::kubernetes::CREDENTIALS_REQUEST;

fn changed(mut object: Value, pointer: &str, value: Value) -> Value {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    object.pointer_mut(parent).unwrap()[key] = value;
    object
}

fn deployment() -> Value {
    json!({
        "metadata": {"name": "machine-api-operator", "labels": {"app": "mao"}, "annotations": {}},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": "mao"}},
            "strategy": {"type": "Recreate"},
            "template": {
                "metadata": {"labels": {"app": "mao"}},
                "spec": {
                    "containers": [{"name": "mao", "image": "a", "env": [{"name": "A", "value": "1"}]}],
                    "nodeSelector": {"node-role.kubernetes.io/master": ""},
                    "tolerations": [{"key": "x", "operator": "Exists"}],
                    "dnsPolicy": "ClusterFirst",
                }
            }
        }
    })
}

#[test]
fn a_deployment_is_put_back_where_the_payload_speaks() {
    let pod = "/spec/template/spec";
    for (pointer, edit) in [
        ("/spec/replicas".to_owned(), json!(0)),
        ("/spec/paused".to_owned(), json!(true)),
        ("/spec/strategy".to_owned(), json!({"type": "RollingUpdate"})),
        ("/metadata/labels/app".to_owned(), json!("other")),
        (format!("{pod}/containers"), json!([{"name": "mao", "image": "b"}])),
        (format!("{pod}/containers/0/env"), json!([])),
        (format!("{pod}/initContainers"), json!([{"name": "extra", "image": "c"}])),
        (format!("{pod}/volumes"), json!([{"name": "extra", "emptyDir": {}}])),
        (format!("{pod}/hostNetwork"), json!(true)),
        (format!("{pod}/dnsPolicy"), json!("Default")),
        (format!("{pod}/nodeSelector/node-role.kubernetes.io~1master"), json!("no")),
    ] {
        let pointer = pointer.replace("~1", "/");
        let edited = match pointer.split_once("node-role") {
            Some(_) => changed(deployment(), "/spec/template/spec/nodeSelector", json!({"node-role.kubernetes.io/master": "no"})),
            None => changed(deployment(), &pointer, edit),
        };
        assert_eq!(restored(DEPLOYMENT, &edited, &deployment()), Some(deployment()), "{pointer}");
    }
    assert_eq!(restored(DEPLOYMENT, &deployment(), &deployment()), None);
}

#[test]
fn what_others_added_to_a_deployment_stays() {
    for (pointer, edit) in [
        ("/metadata/annotations", json!({"deployment.kubernetes.io/revision": "2"})),
        ("/spec/template/metadata/annotations", json!({"kubectl.kubernetes.io/restartedAt": "now"})),
        ("/spec/template/spec/affinity", json!({"nodeAffinity": {}})),
        ("/spec/template/spec/tolerations", json!([{"key": "y"}, {"key": "x", "operator": "Exists"}])),
        ("/status", json!({"replicas": 1})),
    ] {
        assert_eq!(restored(DEPLOYMENT, &changed(deployment(), pointer, edit), &deployment()), None, "{pointer}");
    }
    let lost = changed(deployment(), "/spec/template/spec/tolerations", json!([{"key": "y"}]));
    let back = restored(DEPLOYMENT, &lost, &deployment()).unwrap();
    assert_eq!(back["spec"]["template"]["spec"]["tolerations"], json!([{"key": "y"}, {"key": "x", "operator": "Exists"}]));
}

fn crd() -> Value {
    json!({"metadata": {"name": "infrastructures.config.openshift.io"},
        "spec": {"group": "config.openshift.io", "conversion": {"strategy": "None"},
            "versions": [{"name": "v1", "schema": {"x-kubernetes-validations": [{"rule": "size(self) == size(oldSelf)"}]}}]}})
}

#[test]
fn the_whole_spec_of_a_crd_is_replaced() {
    let relaxed = changed(crd(), "/spec/versions/0/schema", json!({}));
    assert_eq!(restored(CRD, &relaxed, &crd()), Some(crd()));
    let extended = changed(crd(), "/spec/versions/0/extra", json!(1));
    assert_eq!(restored(CRD, &extended, &crd()), Some(crd()));
    let annotated = changed(crd(), "/metadata/annotations", json!({"mine": "stays"}));
    assert_eq!(restored(CRD, &annotated, &crd()), None);
}

#[test]
fn an_injected_certificate_stays_in_a_crd() {
    let webhook = json!({"strategy": "Webhook", "webhook": {"clientConfig": {"service": {"name": "s"}}}});
    let wanted = changed(crd(), "/spec/conversion", webhook);
    let mut existing = wanted.clone();
    existing["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"] = json!("PEM");
    assert_eq!(restored(CRD, &existing, &wanted), Some(wanted.clone()), "without the annotation it goes");
    existing["metadata"]["annotations"] = json!({INJECTED_CA: "true"});
    assert_eq!(restored(CRD, &existing, &wanted), None);
}

#[test]
fn other_kinds_are_put_back_by_their_own_rules() {
    let map = json!({"metadata": {}, "data": {"a": "1"}});
    assert_eq!(restored(CONFIG_MAP, &changed(map.clone(), "/data/b", json!("2")), &map), None, "added keys stay");
    assert_eq!(restored(CONFIG_MAP, &changed(map.clone(), "/data/a", json!("2")), &map), Some(map));

    let account = json!({"metadata": {"name": "x"}});
    assert_eq!(restored(SERVICE_ACCOUNT, &changed(account.clone(), "/secrets", json!([{"name": "s"}])), &account), None);
    assert_eq!(restored(NAMESPACE, &changed(account.clone(), "/spec", json!({"finalizers": ["kubernetes"]})), &account), None);

    let request = json!({"metadata": {"name": "x"}, "spec": {"secretRef": {"name": "s"}}, "status": {"provisioned": true}});
    let wanted = json!({"metadata": {"name": "x"}, "spec": {"secretRef": {"name": "s"}}});
    assert_eq!(restored(CREDENTIALS_REQUEST, &request, &wanted), None, "status is not the payload's");
    let edited = changed(request.clone(), "/spec/secretRef/name", json!("other"));
    assert_eq!(restored(CREDENTIALS_REQUEST, &edited, &wanted), Some(request));
}

#[test]
fn differences_are_named_by_pointer_and_counted() {
    let before = json!({"spec": {"replicas": 0, "a/b": 1, "list": [1, 2], "gone": true}});
    let after = json!({"spec": {"replicas": 1, "a/b": 2, "list": [1, 3], "new": null}});
    assert_eq!(differences(&before, &after, 9), ["/spec/replicas", "/spec/a~1b", "/spec/list/1", "/spec/gone"]);
    assert_eq!(differences(&before, &after, 1), ["/spec/replicas", "3 more"]);
    assert!(differences(&before, &before, 9).is_empty());
}
