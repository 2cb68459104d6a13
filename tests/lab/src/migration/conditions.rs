//! The conditions table of the console: whether whatever was written into it, at any moment, said why, since when and of what.

use serde_json::Value;

use super::audit::Event;

/// Conditions of a vmi that were written without an explanation, each once; `events` are the audit log's.
pub fn unexplained(events: &[Event]) -> Vec<String> {
    let mut seen = 0;
    let mut found = Vec::new();
    for event in events.iter().filter(|event| event.object_ref.resource == "vspheremigrationinfra" && event.is_write()) {
        for condition in event.request_object["status"]["conditions"].as_array().into_iter().flatten() {
            seen += 1;
            let missing = missing(condition);
            if !missing.is_empty() {
                let by = event.field_manager().unwrap_or("somebody");
                let told = format!("{by} wrote {} without {}", condition["type"], missing.join(", "));
                if !found.contains(&told) {
                    found.push(told);
                }
            }
        }
    }
    if seen == 0 {
        found.push("no condition was written at all".to_owned());
    }
    found
}

fn missing(condition: &Value) -> Vec<&'static str> {
    let said = |name: &str| condition[name].as_str().is_some_and(|text| !text.trim().is_empty());
    let mut missing: Vec<&str> =
        ["type", "status", "reason", "message", "lastTransitionTime"].into_iter().filter(|name| !said(name)).collect();
    if condition["observedGeneration"].as_i64().is_none_or(|generation| generation < 1) {
        missing.push("observedGeneration");
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn event(conditions: &Value) -> Event {
        serde_json::from_value(json!({
            "auditID": "1", "stage": "ResponseComplete", "verb": "patch", "user": {"username": "vmi"},
            "requestURI": "/apis/config.openshift.io/v1alpha1/namespaces/n/vspheremigrationinfra/growth/status?fieldManager=vmi-preflight",
            "objectRef": {"resource": "vspheremigrationinfra", "subresource": "status", "namespace": "n", "name": "growth"},
            "responseStatus": {"code": 200}, "requestObject": {"status": {"conditions": conditions}},
            "requestReceivedTimestamp": "2026-11-16T19:49:46Z", "stageTimestamp": "2026-11-16T19:49:46Z",
        }))
        .unwrap()
    }

    #[test]
    fn a_condition_without_an_explanation_is_told_once_with_what_it_lacks_and_who_wrote_it() {
        let whole = json!({"type": "Held", "status": "False", "reason": "NothingWrong", "message": "all is well",
            "lastTransitionTime": "2026-11-16T19:49:46Z", "observedGeneration": 1});
        assert_eq!(unexplained(&[event(&json!([whole]))]), Vec::<String>::new());
        for field in ["reason", "message", "lastTransitionTime", "observedGeneration"] {
            for nothing in [json!(null), json!(" "), json!(0)] {
                let mut broken = whole.clone();
                broken[field] = nothing;
                let events = [event(&json!([whole])), event(&json!([broken])), event(&json!([broken]))];
                assert_eq!(unexplained(&events), [format!("vmi-preflight wrote \"Held\" without {field}")]);
            }
        }
    }

    #[test]
    fn a_log_without_any_condition_is_no_proof() {
        assert_eq!(unexplained(&[event(&json!([]))]), ["no condition was written at all"]);
    }
}
