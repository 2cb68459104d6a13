//! The apiserver's audit log: who asked for what, when, and what came of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read the audit log {path}: {source}", path = .path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("the audit log {path} has a line that is no event: {reason}", path = .path.display())]
    Line { path: PathBuf, reason: String },
}

/// One event. A request has one; a watch has two, when it begins and when it ends.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    #[serde(rename = "auditID")]
    pub id: String,
    pub stage: String,
    pub verb: String,
    pub user: User,
    #[serde(rename = "requestURI")]
    pub uri: String,
    #[serde(default)]
    pub object_ref: Object,
    #[serde(default)]
    pub response_status: Response,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
    /// What was sent; recorded for the vmi only.
    #[serde(default)]
    pub request_object: Value,
    #[serde(rename = "requestReceivedTimestamp")]
    pub received: Timestamp,
    /// When the stage was reached: for all but watches, when the answer was given.
    #[serde(rename = "stageTimestamp")]
    pub answered: Timestamp,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct User {
    /// Empty where the apiserver did not know who asked, as with the token of a pod that is gone.
    pub username: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Object {
    pub resource: String,
    pub subresource: String,
    pub namespace: String,
    pub name: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Response {
    pub code: u16,
}

impl Event {
    /// Whether it changed something.
    pub fn is_write(&self) -> bool {
        ["create", "update", "patch", "delete", "deletecollection"].contains(&self.verb.as_str())
            && (200..300).contains(&self.response_status.code)
            && !self.uri.contains("dryRun=")
            // A question, put as a write.
            && self.object_ref.resource != "selfsubjectaccessreviews"
    }

    /// Under which name the writer owns the fields it wrote, where it said so.
    pub fn field_manager(&self) -> Option<&str> {
        let (_, query) = self.uri.split_once('?')?;
        query.split('&').find_map(|pair| pair.strip_prefix("fieldManager="))
    }

    /// `patch secrets kube-system/vsphere-creds`, or the path where it is no resource.
    pub fn spoken(&self) -> String {
        let object = &self.object_ref;
        if object.resource.is_empty() {
            return format!("{} {}", self.verb, self.uri.split('?').next().unwrap_or_default());
        }
        let mut text = format!("{} {}", self.verb, object.resource);
        if !object.subresource.is_empty() {
            text += &format!("/{}", object.subresource);
        }
        match (object.namespace.as_str(), object.name.as_str()) {
            ("", "") => text,
            ("", name) => text + &format!(" {name}"),
            (namespace, "") => text + &format!(" in {namespace}"),
            (namespace, name) => text + &format!(" {namespace}/{name}"),
        }
    }
}

/// The events since `since` that `keep` keeps, of the lab in `folder`, in the order in which they were answered.
pub fn read(folder: &Path, since: Timestamp, keep: impl Fn(&Event) -> bool) -> Result<Vec<Event>, Error> {
    let mut events = Vec::new();
    for path in files(&folder.join("logs"))? {
        let fail = |source| Error::Read { path: path.clone(), source };
        let mut reader = BufReader::new(File::open(&path).map_err(fail)?);
        let mut line = String::new();
        // The apiserver may be in the middle of a line.
        while reader.read_line(&mut line).map_err(fail)? > 0 && line.ends_with('\n') {
            let event: Event =
                serde_json::from_str(&line).map_err(|error| Error::Line { path: path.clone(), reason: error.to_string() })?;
            if event.answered >= since && keep(&event) {
                events.push(event);
            }
            line.clear();
        }
    }
    events.sort_by_key(|event| event.answered);
    Ok(events)
}

/// The log and what was rotated away from it, the oldest first: their names carry the time, and `-` comes before `.`.
fn files(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let fail = |source| Error::Read { path: folder.to_owned(), source };
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.starts_with("audit") && path.extension().is_some_and(|extension| extension == "log") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// What `user` was denied, each thing once with how often. Whoever asks what he may do is not denied anything, and who may do it and
/// is refused by admission neither: a webhook may judge by an Infrastructure that it has not heard the last of.
pub fn denied(events: &[Event], user: &str) -> Vec<String> {
    let mut requests: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for event in events {
        let allowed = event.annotations.get("authorization.k8s.io/decision").is_some_and(|decision| decision == "allow");
        let refused = event.response_status.code == 403 && !allowed && event.object_ref.resource != "selfsubjectaccessreviews";
        if event.user.username == user && refused {
            // By its id, for a refused watch is told of twice like any other.
            requests.entry(event.spoken()).or_default().insert(&event.id);
        }
    }
    let told = |(what, ids): (String, BTreeSet<&str>)| if ids.len() == 1 { what } else { format!("{what} ({} times)", ids.len()) };
    requests.into_iter().map(told).collect()
}

#[cfg(test)]
pub mod tests {
    use serde_json::json;

    use super::*;

    /// An event as the apiserver writes it, answered `at` milliseconds after the epoch.
    pub fn event(user: &str, verb: &str, uri: &str, object: &Value, code: u16, at: i64) -> Event {
        let time = Timestamp::from_millisecond(at).unwrap();
        serde_json::from_value(json!({
            "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata", "auditID": format!("{user}-{at}"),
            "stage": "ResponseComplete", "requestURI": uri, "verb": verb, "user": {"username": user}, "userAgent": "x/1",
            "objectRef": object, "responseStatus": {"metadata": {}, "code": code},
            "requestReceivedTimestamp": time, "stageTimestamp": time, "annotations": {},
        }))
        .unwrap()
    }

    #[test]
    fn denied_is_what_this_user_asked_for_in_vain() {
        let secrets = json!({"resource": "secrets", "namespace": "kube-system", "apiVersion": "v1"});
        let review = json!({"resource": "selfsubjectaccessreviews"});
        let mut by_admission = event("me", "create", "/api/v1/namespaces/kube-system/secrets", &secrets, 403, 7);
        by_admission.annotations.insert("authorization.k8s.io/decision".to_owned(), "allow".to_owned());
        let events = [
            by_admission,
            event("me", "list", "/api/v1/namespaces/kube-system/secrets", &secrets, 403, 1),
            event("me", "list", "/api/v1/namespaces/kube-system/secrets", &secrets, 403, 2),
            event("me", "get", "/metrics", &json!({}), 403, 3),
            event("me", "create", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", &review, 403, 4),
            event("me", "list", "/api/v1/namespaces/kube-system/secrets", &secrets, 200, 5),
            event("you", "delete", "/api/v1/namespaces/kube-system/secrets", &secrets, 403, 6),
        ];
        assert_eq!(denied(&events, "me"), ["get /metrics", "list secrets in kube-system (2 times)"]);
    }

    #[test]
    fn a_dry_run_or_a_refusal_changes_nothing() {
        let object = json!({"resource": "infrastructures", "name": "cluster"});
        let write = |uri: &str, code| event("me", "patch", uri, &object, code, 1).is_write();
        assert!(write("/x?fieldManager=vmi-a", 200));
        assert!(!write("/x?dryRun=All", 200));
        assert!(!write("/x", 422));
    }

    #[test]
    fn somebody_whom_the_apiserver_did_not_know_is_nobody() {
        let unknown = json!({"auditID": "1", "stage": "ResponseComplete", "verb": "get", "requestURI": "/",
            "user": {}, "responseStatus": {"code": 401},
            "requestReceivedTimestamp": Timestamp::UNIX_EPOCH, "stageTimestamp": Timestamp::UNIX_EPOCH});
        let event: Event = serde_json::from_value(unknown).unwrap();
        assert_eq!(event.user.username, "");
        assert!(denied(&[event], "me").is_empty());
    }

    #[test]
    fn rotated_logs_come_before_the_current_one_and_a_half_line_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let logs = folder.path().join("logs");
        fs::create_dir(&logs).unwrap();
        let line = |id: &str| {
            format!(
                r#"{{"auditID":"{id}","stage":"ResponseComplete","verb":"get","user":{{"username":"me"}},"requestURI":"/","requestReceivedTimestamp":"2026-01-02T03:04:05.000001Z","stageTimestamp":"2026-01-02T03:04:05.000002Z"}}"#
            )
        };
        fs::write(logs.join("audit.log"), format!("{}\n{}", line("2"), &line("3")[..20])).unwrap();
        fs::write(logs.join("audit-2026-01-01T00-00-00.000.log"), format!("{}\n", line("1"))).unwrap();
        let ids: Vec<String> = read(folder.path(), Timestamp::UNIX_EPOCH, |_| true).unwrap().into_iter().map(|event| event.id).collect();
        assert_eq!(ids, ["1", "2"]);
    }
}
