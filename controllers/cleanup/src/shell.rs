//! Commands that people paste into a shell.

/// A command of these words.
pub fn joined(words: &[&str]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// One word to the shell, whatever is in it; left as it is where that is one already.
pub fn quoted(word: &str) -> String {
    let plain = |character: char| character.is_ascii_alphanumeric() || "-_./:@%+=,".contains(character);
    if !word.is_empty() && word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_back_each_word_as_it_was() {
        let words = ["plain-1.2/x", "DC 1", "Bob's", "$(id)", "`id`", "a\"b", "a\\b", "", "*", "a;b", "Zürich"];
        let script = format!("for word in {}; do printf '%s\\n' \"$word\"; done", joined(&words));
        let output = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap().lines().collect::<Vec<_>>(), words);
        assert_eq!(quoted("/dc/vm/x"), "/dc/vm/x", "no more quotes than needed");
    }
}
