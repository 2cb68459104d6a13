//! What was written, remembered without keeping it: on the way back it tells an own write from somebody else's.

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// The same for the same parts in the same order only. `salt` keeps equal secrets of two migrations from looking equal.
pub fn of(salt: &str, parts: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for part in std::iter::once(&salt.as_bytes()).chain(parts) {
        hash.update(part.len().to_be_bytes());
        hash.update(part);
    }
    hash.finalize().iter().fold(String::new(), |mut text, byte| {
        // Writing into a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn neither_another_border_nor_another_salt_gives_the_same_fingerprint() {
        assert_eq!(of("uid", &[b"ab", b"c"]), of("uid", &[b"ab", b"c"]));
        assert_ne!(of("uid", &[b"ab", b"c"]), of("uid", &[b"a", b"bc"]));
        assert_ne!(of("uid", &[b"ab", b"c"]), of("other", &[b"ab", b"c"]));
        assert_eq!(of("", &[]).len(), 64);
    }
}
