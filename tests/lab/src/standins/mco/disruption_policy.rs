//! What a change of a file or unit costs a node: the defaults of the release with the owner's wishes over them.

use serde_json::{Value, json};

fn defaults() -> Vec<Value> {
    let none = || json!([{"type": "None"}]);
    let reload_crio = || json!([{"type": "Reload", "reload": {"serviceName": "crio.service"}}]);
    let restart = |service: &str| json!({"type": "Restart", "restart": {"serviceName": service}});
    let user_ca = json!([restart("coreos-update-ca-trust.service"), restart("crio.service")]);
    [
        ("/var/lib/kubelet/config.json", none()),
        ("/etc/machine-config-daemon/no-reboot/containers-gpg.pub", reload_crio()),
        ("/etc/containers/policy.json", reload_crio()),
        ("/etc/containers/registries.conf", json!([{"type": "Special"}])),
        ("/etc/containers/registries.d", reload_crio()),
        ("/etc/crio/policies", reload_crio()),
        ("/etc/nmstate/openshift", none()),
        ("/etc/pki/ca-trust/source/anchors/openshift-config-user-ca-bundle.crt", user_ca),
    ]
    .into_iter()
    .map(|(path, actions)| json!({"path": path, "actions": actions}))
    .collect()
}

/// `status.nodeDisruptionPolicyStatus` that follows from `spec.nodeDisruptionPolicy`.
pub fn policy_status(wishes: &Value) -> Value {
    let mut files = defaults();
    for wish in wishes["files"].as_array().into_iter().flatten() {
        let entry = json!({"path": wish["path"], "actions": wish["actions"]});
        match files.iter_mut().find(|file| file["path"] == wish["path"]) {
            Some(file) => *file = entry,
            None => files.push(entry),
        }
    }
    let wished_keys = wishes["sshkey"]["actions"].as_array().filter(|actions| !actions.is_empty());
    let keys = wished_keys.map_or_else(|| json!([{"type": "None"}]), |actions| json!(actions));
    let mut policies = json!({"files": files, "sshkey": {"actions": keys}});
    if let Some(units) = wishes["units"].as_array().filter(|units| !units.is_empty()) {
        policies["units"] = json!(units);
    }
    json!({"clusterPolicies": policies})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn actions(status: &Value, path: &str) -> Value {
        let files = status["clusterPolicies"]["files"].as_array().unwrap();
        files.iter().find(|file| file["path"] == path).map_or(Value::Null, |file| file["actions"].clone())
    }

    #[test]
    fn a_wish_is_added_to_the_defaults_or_takes_the_place_of_one() {
        let (cloud, policy) = ("/etc/kubernetes/cloud.conf", "/etc/containers/policy.json");
        let plain = policy_status(&Value::Null);
        assert_eq!(actions(&plain, cloud), Value::Null, "by default a changed cloud.conf means a reboot");
        assert_eq!(actions(&plain, policy)[0]["type"], "Reload");

        let wishes = json!({"files": [{"path": cloud, "actions": [{"type": "None"}]}, {"path": policy, "actions": [{"type": "Drain"}]}]});
        let wished = policy_status(&wishes);
        assert_eq!(actions(&wished, cloud), json!([{"type": "None"}]));
        assert_eq!(actions(&wished, policy), json!([{"type": "Drain"}]));
        let count = |status: &Value| status["clusterPolicies"]["files"].as_array().unwrap().len();
        assert_eq!(count(&wished), count(&plain) + 1);
    }

    #[test]
    fn keys_and_units_follow_the_wishes() {
        let plain = policy_status(&json!({}));
        assert_eq!(plain["clusterPolicies"]["sshkey"]["actions"], json!([{"type": "None"}]));
        assert_eq!(plain["clusterPolicies"].get("units"), None);
        let unit = json!({"name": "a.service", "actions": [{"type": "Restart", "restart": {"serviceName": "a.service"}}]});
        let wished = policy_status(&json!({"sshkey": {"actions": [{"type": "Reboot"}]}, "units": [unit]}));
        assert_eq!(wished["clusterPolicies"]["sshkey"]["actions"], json!([{"type": "Reboot"}]));
        assert_eq!(wished["clusterPolicies"]["units"], json!([unit]));
    }
}
