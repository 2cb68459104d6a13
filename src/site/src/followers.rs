//! Those that copy Infrastructure and the cloud configuration by themselves: whether they have followed, and where to look when they
//! have not.

use kube::api::DynamicObject;
use serde_json::Value;
use vmi_intent::cloud_config;
use vmi_kit::kind::{CONFIG_MAP, CONTROLLER_CONFIG};
use vmi_steps::Migration;

/// The one ControllerConfig.
pub const CONTROLLER_CONFIG_NAME: &str = "machine-config-controller";
const CLOUD_CONF: &str = "cloud.conf";

/// A ConfigMap that an operator makes of the cloud configuration.
pub struct Copy {
    /// Where it is.
    pub namespace: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Who makes it.
    pub operator: &'static str,
}

/// What is made of the cloud configuration.
pub const COPIES: [Copy; 2] = [
    Copy {
        namespace: "openshift-config-managed",
        name: "kube-cloud-config",
        operator: "the cluster config operator (the cloud controller manager's where the gate VSphereMultiVCenterDay2 is on)",
    },
    Copy { namespace: "openshift-cloud-controller-manager", name: "cloud-conf", operator: "the cluster cloud controller manager operator" },
];

/// How far a follower is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Follow {
    /// It has.
    Followed,
    /// There is none, which is said and not waited for.
    NotInstalled(String),
    /// Who has to do what.
    Behind(String),
}

/// Several followers in a sentence: those that are behind, or else what is to be said of the rest.
pub fn together(all: Vec<Follow>) -> Result<String, String> {
    let mut behind = Vec::new();
    let mut missing = Vec::new();
    for follow in all {
        match follow {
            Follow::Followed => {}
            Follow::NotInstalled(what) => missing.push(what),
            Follow::Behind(what) => behind.push(what),
        }
    }
    if !behind.is_empty() {
        return Err(behind.join("; "));
    }
    let missing: String = missing.iter().map(|what| format!("; {what} (NotInstalled)")).collect();
    Ok(missing)
}

/// Whether the machine config operator has taken over the lists of Infrastructure.
pub fn controller_config(m: &Migration, infrastructure: &DynamicObject) -> Follow {
    match m.get(CONTROLLER_CONFIG, "", CONTROLLER_CONFIG_NAME) {
        Some(config) => lists_followed(&infrastructure.data["spec"], &config.data["spec"]["infra"]["spec"]),
        None => Follow::NotInstalled(format!("there is no ControllerConfig {CONTROLLER_CONFIG_NAME}")),
    }
}

/// By the names on the lists only: a follower of another release may know fewer fields.
pub fn lists_followed(leader: &Value, follower: &Value) -> Follow {
    let names = |spec: &Value, list: &str, key: &str| -> Vec<String> {
        let items = spec["platformSpec"]["vsphere"][list].as_array().into_iter().flatten();
        items.filter_map(|item| item[key].as_str()).map(str::to_owned).collect()
    };
    for (list, key) in [("vcenters", "server"), ("failureDomains", "name")] {
        let (wanted, found) = (names(leader, list, key), names(follower, list, key));
        if wanted != found {
            return Follow::Behind(format!(
                "the machine config operator to copy Infrastructure: {list} in spec.infra of ControllerConfig \
                 {CONTROLLER_CONFIG_NAME} are [{}], not [{}] yet",
                found.join(", "),
                wanted.join(", ")
            ));
        }
    }
    Follow::Followed
}

/// Whether the copies of the cloud configuration name all these servers.
pub fn copies_name(m: &Migration, servers: &[&str]) -> Vec<Follow> {
    copies(m, |listed| {
        servers.iter().filter(|server| !listed.contains(server)).map(|server| format!("does not name {server} yet")).collect()
    })
}

/// Whether the copies of the cloud configuration have forgotten these servers.
pub fn copies_forgot(m: &Migration, servers: &[&str]) -> Vec<Follow> {
    copies(m, |listed| servers.iter().filter(|server| listed.contains(server)).map(|server| format!("still names {server}")).collect())
}

fn copies(m: &Migration, complaints: impl Fn(&[&str]) -> Vec<String>) -> Vec<Follow> {
    let look = |copy: &Copy| {
        let place = format!("ConfigMap {}/{}", copy.namespace, copy.name);
        match m.get(CONFIG_MAP, copy.namespace, copy.name) {
            None => Follow::NotInstalled(format!("there is no {place}")),
            Some(map) => match judged(map.data["data"][CLOUD_CONF].as_str().unwrap_or_default(), &complaints) {
                Some(complaint) => Follow::Behind(format!("{}: {place} {complaint}", copy.operator)),
                None => Follow::Followed,
            },
        }
    };
    COPIES.iter().map(look).collect()
}

/// What is wrong with a copy, if anything.
fn judged(text: &str, complaints: impl Fn(&[&str]) -> Vec<String>) -> Option<String> {
    let listed = match cloud_config::vcenters(text) {
        Ok(listed) => listed,
        Err(refused) => return Some(format!("cannot be read: {refused}")),
    };
    let servers: Vec<&str> = listed.iter().map(|vcenter| vcenter.server.as_str()).collect();
    let found = complaints(&servers);
    (!found.is_empty()).then(|| found.join(", "))
}

/// What shows why a copy of the cloud configuration is not made.
pub fn look_at_copies() -> [String; 4] {
    [
        "oc -n openshift-config-operator logs deploy/openshift-config-operator --tail=50",
        "oc -n openshift-cloud-controller-manager-operator logs deploy/cluster-cloud-controller-manager-operator -c config-sync-controllers \
         --tail=50",
        "oc -n openshift-config-managed get configmap kube-cloud-config -o yaml",
        "oc -n openshift-cloud-controller-manager get configmap cloud-conf -o yaml",
    ]
    .map(str::to_owned)
}

/// What shows why ControllerConfig does not follow.
pub fn look_at_controller_config() -> [String; 3] {
    [
        "oc -n openshift-machine-config-operator logs deploy/machine-config-operator --tail=50",
        "oc get clusteroperator machine-config -o yaml",
        "oc get controllerconfig machine-config-controller -o jsonpath='{.spec.infra.spec.platformSpec.vsphere}'",
    ]
    .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Follow, judged, lists_followed, together};

    fn spec(vcenters: &[&str], domains: &[&str]) -> serde_json::Value {
        let vcenters: Vec<_> = vcenters.iter().map(|server| json!({"server": server})).collect();
        let domains: Vec<_> = domains.iter().map(|name| json!({"name": name, "zoneAffinity": {}})).collect();
        json!({"platformSpec": {"vsphere": {"vcenters": vcenters, "failureDomains": domains}}})
    }

    #[test]
    fn a_follower_has_followed_when_both_lists_name_the_same_in_the_same_order() {
        let leader = spec(&["a", "b"], &["fd-a", "fd-b"]);
        assert_eq!(lists_followed(&leader, &leader), Follow::Followed);
        assert_eq!(lists_followed(&json!({}), &json!({})), Follow::Followed);
        for behind in [spec(&["a"], &["fd-a", "fd-b"]), spec(&["a", "b"], &["fd-a"]), spec(&["b", "a"], &["fd-a", "fd-b"]), json!({})] {
            assert!(matches!(lists_followed(&leader, &behind), Follow::Behind(_)), "{behind}");
        }
        let Follow::Behind(text) = lists_followed(&leader, &spec(&["a"], &[])) else { panic!("it is behind") };
        assert!(text.contains("vcenters in spec.infra of ControllerConfig machine-config-controller are [a], not [a, b] yet"), "{text}");
    }

    #[test]
    fn those_behind_are_named_and_those_missing_only_when_nobody_is_behind() {
        let missing = || Follow::NotInstalled("there is no X".to_owned());
        assert_eq!(together(vec![Follow::Followed, missing()]), Ok("; there is no X (NotInstalled)".to_owned()));
        assert_eq!(together(vec![missing(), Follow::Behind("Y".to_owned()), Follow::Behind("Z".to_owned())]), Err("Y; Z".to_owned()));
        assert_eq!(together(Vec::new()), Ok(String::new()));
    }

    #[test]
    fn a_copy_that_cannot_be_read_has_not_followed_whatever_it_should_say() {
        let text = "global:\n  secretName: s\n  secretNamespace: n\nvcenter:\n  a.example:\n    server: a.example\n";
        let lacks = |server: &'static str| move |listed: &[&str]| if listed.contains(&server) { vec![] } else { vec![server.to_owned()] };
        assert_eq!(judged(text, lacks("a.example")), None);
        assert_eq!(judged(text, lacks("b.example")).as_deref(), Some("b.example"));
        for broken in ["", "a.example"] {
            assert!(judged(broken, |_| Vec::new()).is_some_and(|why| why.starts_with("cannot be read: ")), "{broken:?}");
        }
    }
}
