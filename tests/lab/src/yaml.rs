//! YAML in and out as plain JSON values.

use serde_json::Value;

#[derive(Debug, thiserror::Error)]
#[error("not valid YAML: {0}")]
pub struct Error(String);

/// All non-empty documents of a YAML text.
pub fn documents(text: &str) -> Result<Vec<Value>, Error> {
    let all: Vec<Value> = serde_saphyr::from_multiple(text).map_err(|error| Error(error.to_string()))?;
    Ok(all.into_iter().filter(|document| !document.is_null()).collect())
}

/// The only document of a YAML text.
pub fn parse(text: &str) -> Result<Value, Error> {
    serde_saphyr::from_str(text).map_err(|error| Error(error.to_string()))
}

pub fn print(value: &Value) -> Result<String, Error> {
    serde_saphyr::to_string(value).map_err(|error| Error(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn empty_documents_are_left_out() {
        assert_eq!(documents("---\na: 1\n---\n---\nb: [x, 'y']\n").unwrap(), vec![json!({"a": 1}), json!({"b": ["x", "y"]})]);
    }

    #[test]
    fn what_is_printed_reads_back_the_same() {
        let value = json!({"text": "yes", "number": "1", "list": [{"a": null}], "multi": "one\ntwo\n"});
        assert_eq!(parse(&print(&value).unwrap()).unwrap(), value);
    }
}
