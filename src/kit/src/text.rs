//! Texts that fit where they go.

/// The text, at most `bytes` long, cut between characters and marked where it was cut.
pub fn cut(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let mark = "…";
    let mut end = bytes.saturating_sub(mark.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{mark}", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn a_text_that_is_too_long_is_cut_between_characters_and_says_so() {
        assert_eq!(cut("short", 5), "short");
        assert_eq!(cut("longer", 5), "lo…");
        assert_eq!(cut("äöüäöü", 8), "äö…");
        assert!(cut(&"ü".repeat(600), 1024).len() <= 1024);
    }
}
