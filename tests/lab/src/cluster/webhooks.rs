//! Admission as OpenShift configures it: the webhook configurations of the modules, given the lab's CA.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use serde_json::{Value, json};

use super::Error;

/// The configurations below `folder` and those in `printed`, each with `ca` as its bundle. They are reached through the Services
/// they name, as in a real cluster.
pub fn read(folder: &Path, printed: &Value, ca: &str) -> Result<Vec<Value>, Error> {
    let fail = |path: &Path, reason: String| Error::Manifest { name: path.display().to_string(), reason };
    let mut configurations = printed["items"].as_array().cloned().unwrap_or_default();
    for entry in fs::read_dir(folder).map_err(|error| fail(folder, error.to_string()))? {
        let path = entry.map_err(|error| fail(folder, error.to_string()))?.path();
        let text = fs::read_to_string(&path).map_err(|error| fail(&path, error.to_string()))?;
        configurations.extend(crate::yaml::documents(&text).map_err(|error| fail(&path, error.to_string()))?);
    }
    let bundle = base64::engine::general_purpose::STANDARD.encode(ca);
    for configuration in &mut configurations {
        // Go prints the times of objects that do not exist yet as null, which apply would take for a wish.
        if let Some(metadata) = configuration["metadata"].as_object_mut() {
            metadata.remove("creationTimestamp");
        }
        for webhook in configuration["webhooks"].as_array_mut().into_iter().flatten() {
            webhook["clientConfig"]["caBundle"] = json!(bundle);
        }
    }
    Ok(configurations)
}
