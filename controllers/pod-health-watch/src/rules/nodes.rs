//! Whether a line speaks of a node.

/// Whether one of the names stands in the line as a word of its own.
pub fn names_one_of(line: &[u8], names: &[String]) -> bool {
    let part_of_a_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
    let words = line.split(|byte| !part_of_a_name(byte)).map(|word| word.strip_suffix(b".").unwrap_or(word));
    words.filter(|word| !word.is_empty()).any(|word| names.iter().any(|name| name.as_bytes() == word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_known_by_its_name_and_not_by_one_that_begins_like_it() {
        let muted = ["host-1".to_owned(), "host-2.example.com".to_owned()];
        for (line, expected) in [
            ("failed to get instance metadata for node host-1: VM not found", true),
            (r#"Machine for node "host-1" not found"#, true),
            (r#"{"msg":"Machine for node \"host-1\" not found"}"#, true),
            ("error discovering node host-2.example.com: No VM found.", true),
            ("unable to determine vcenter for node host-1.", true),
            ("failed to get instance metadata for node host-10: VM not found", false),
            ("failed to get instance metadata for node my-host-1: VM not found", false),
            ("failed to get instance metadata for node worker-1: VM not found", false),
            ("", false),
        ] {
            assert_eq!(names_one_of(line.as_bytes(), &muted), expected, "{line}");
        }
    }
}
