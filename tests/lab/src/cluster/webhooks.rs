//! Admission as OpenShift configures it: the webhook configurations of the modules, given the lab's CA.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use serde_json::{Value, json};

use super::Error;

/// The configurations below `folder`, each with `ca` as its bundle; reached through their Services, as they say.
pub fn read(folder: &Path, ca: &str) -> Result<Vec<Value>, Error> {
    let bundle = base64::engine::general_purpose::STANDARD.encode(ca);
    let fail = |path: &Path, reason: String| Error::Manifest { name: path.display().to_string(), reason };
    let mut configurations = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| fail(folder, error.to_string()))? {
        let path = entry.map_err(|error| fail(folder, error.to_string()))?.path();
        let text = fs::read_to_string(&path).map_err(|error| fail(&path, error.to_string()))?;
        for mut document in crate::yaml::documents(&text).map_err(|error| fail(&path, error.to_string()))? {
            if !document["kind"].as_str().is_some_and(|kind| kind.ends_with("WebhookConfiguration")) {
                continue;
            }
            for webhook in document["webhooks"].as_array_mut().into_iter().flatten() {
                webhook["clientConfig"]["caBundle"] = json!(bundle);
            }
            configurations.push(document);
        }
    }
    Ok(configurations)
}
