//! What the real loaders and the real transformer make of the same texts. Every expectation here was compared with the Go code
//! of cluster-cloud-controller-manager-operator release-4.21 and main, and library-go.

mod ini;
mod transform;
mod yaml;

use serde_json::{Value, json};

use super::*;

const BOTH: [Generation; 2] = [Generation::V4_21, Generation::Next];

/// The transformer's result where Infrastructure says nothing about vSphere: the configuration as it was read.
fn read(source: &str, generation: Generation) -> Result<Value, String> {
    let infrastructure = json!({"status": {"platformStatus": {"type": "VSphere"}}});
    let text = super::transform(source, &infrastructure, None, generation).map_err(|error| error.to_string())?;
    Ok(crate::yaml::parse(&text).unwrap())
}

fn assert_read(what: &str, source: &str, generation: Generation, expected: Value) {
    assert_eq!(read(source, generation), Ok(expected), "{what} ({generation:?})\n{source}");
}

fn assert_refused(what: &str, source: &str, generation: Generation, expected: &str) {
    let expected = format!("failed to read the cloud.conf: {expected}");
    assert_eq!(read(source, generation), Err(expected), "{what} ({generation:?})\n{source}");
}
