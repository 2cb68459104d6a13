//! Every string written is quoted: unquoted numbers, `no`, `off` and dates mean something else to one loader or another.

pub(super) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            // Line breaks and invisible marks of YAML 1.1 beside the control characters.
            '\u{2028}' | '\u{2029}' | '\u{feff}' => out.push_str(&format!("\\u{:04x}", u32::from(letter))),
            control if control.is_control() => out.push_str(&format!("\\x{:02x}", u32::from(control))),
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn what_would_end_or_change_a_string_is_escaped() {
        for (text, want) in [
            ("no", r#""no""#),
            (r#"a"b\c"#, r#""a\"b\\c""#),
            ("a\nb\tc\r", r#""a\nb\tc\r""#),
            ("\u{1}\u{85}\u{2028}", r#""\x01\x85\u2028""#),
            ("Zürich #1: x", r#""Zürich #1: x""#),
        ] {
            assert_eq!(quoted(text), want);
        }
    }
}
