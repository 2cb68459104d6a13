//! The spec of a control plane machine set, moved from failure domain to failure domain.

use serde_json::{Value, json};

use crate::provider::placeless;

const TEMPLATE: &str = "machines_v1beta1_machine_openshift_io";

/// The failure domains it is spread over, sorted.
pub fn domains(spec: &Value) -> Vec<String> {
    let listed = spec["template"][TEMPLATE]["failureDomains"]["vsphere"].as_array().into_iter().flatten();
    let mut names: Vec<String> = listed.filter_map(|domain| domain["name"].as_str()).map(str::to_owned).collect();
    names.sort_unstable();
    names
}

/// The same spec on these failure domains alone; everything else that would say where a machine goes is taken out.
pub fn on_domains(spec: &Value, names: &[String]) -> Value {
    let mut spec = spec.clone();
    let template = &mut spec["template"][TEMPLATE];
    let domains: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
    template["failureDomains"] = json!({"platform": "VSphere", "vsphere": domains});
    template["spec"]["providerSpec"]["value"] = placeless(&template["spec"]["providerSpec"]["value"]);
    spec
}

/// A spec for these masters, where nobody has ever made one: as its own operator would.
pub fn of_masters(master: &Value, count: usize) -> Value {
    const LABELS: [&str; 3] = [
        "machine.openshift.io/cluster-api-cluster",
        "machine.openshift.io/cluster-api-machine-role",
        "machine.openshift.io/cluster-api-machine-type",
    ];
    let labels: Value = LABELS.iter().map(|label| ((*label).to_owned(), master["metadata"]["labels"][*label].clone())).collect();
    json!({
        "replicas": count,
        "selector": {"matchLabels": labels},
        "template": {
            "machineType": TEMPLATE,
            TEMPLATE: {
                "metadata": {"labels": labels},
                "spec": {"metadata": {}, "providerSpec": {"value": master["spec"]["providerSpec"]["value"]}},
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> Value {
        let provider = json!({"numCPUs": 4, "tagIDs": ["urn:x"], "template": "t", "workspace": {"server": "a"}, "network": {"devices": [{"networkName": "n"}]}});
        json!({
            "state": "Inactive", "replicas": 3, "strategy": {"type": "OnDelete"},
            "template": {"machineType": TEMPLATE, TEMPLATE: {
                "failureDomains": {"platform": "VSphere", "vsphere": [{"name": "fd-z"}, {"name": "fd-a"}]},
                "metadata": {"labels": {"x": "y"}}, "spec": {"providerSpec": {"value": provider}},
            }},
        })
    }

    #[test]
    fn only_the_place_changes() {
        let moved = on_domains(&spec(), &["fd-b".to_owned()]);
        assert_eq!((domains(&spec()), domains(&moved)), (vec!["fd-a".to_owned(), "fd-z".to_owned()], vec!["fd-b".to_owned()]));
        let provider = &moved["template"][TEMPLATE]["spec"]["providerSpec"]["value"];
        assert_eq!(*provider, json!({"numCPUs": 4, "template": "", "workspace": {}, "network": {"devices": null}}));
        assert_eq!(moved["template"][TEMPLATE]["metadata"], spec()["template"][TEMPLATE]["metadata"]);
        assert_eq!((&moved["state"], &moved["strategy"]), (&json!("Inactive"), &json!({"type": "OnDelete"})));
    }

    #[test]
    fn a_set_that_named_no_domain_gets_the_list() {
        let mut bare = spec();
        bare["template"][TEMPLATE].as_object_mut().map(|template| template.remove("failureDomains"));
        assert!(domains(&bare).is_empty());
        assert_eq!(domains(&on_domains(&bare, &["fd-b".to_owned()])), ["fd-b"]);
    }

    #[test]
    fn where_there_was_none_the_masters_tell_what_it_is_like() {
        let labels = json!({"machine.openshift.io/cluster-api-cluster": "id", "machine.openshift.io/cluster-api-machine-role": "master",
            "machine.openshift.io/cluster-api-machine-type": "master", "machine.openshift.io/zone": "z"});
        let master = json!({"metadata": {"labels": labels}, "spec": {"providerSpec": {"value": {"numCPUs": 4}}}});
        let spec = of_masters(&master, 3);
        assert_eq!(spec["selector"]["matchLabels"].as_object().map(serde_json::Map::len), Some(3), "not its zone");
        assert_eq!(spec["selector"]["matchLabels"], spec["template"][TEMPLATE]["metadata"]["labels"]);
        assert_eq!((&spec["replicas"], &spec["template"][TEMPLATE]["spec"]["providerSpec"]["value"]["numCPUs"]), (&json!(3), &json!(4)));
    }
}
