//! Finds a secret in a text however it is spelled there: plain, or with any of its characters escaped as XML, JSON or
//! addresses do. Servers differ in which ones they escape, and how.

/// The text with three stars in place of the secret.
pub(crate) fn without(text: &str, secret: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (piece, length) = match end_of(rest, secret) {
            Some(end) if end > 0 => ("***", end),
            _ => (&rest[..first.len_utf8()], first.len_utf8()),
        };
        out.push_str(piece);
        rest = &rest[length..];
    }
    out
}

/// Where the secret ends, if the text begins with it. All ways to read an ambiguous escape are followed at once.
fn end_of(text: &str, secret: &str) -> Option<usize> {
    let mut ends = vec![0];
    for wanted in secret.chars() {
        let mut next: Vec<usize> = Vec::new();
        for at in ends {
            let rest = text.get(at..)?;
            let escaped = escape(rest).filter(|(character, _)| *character == wanted).map(|(_, length)| length);
            let plain = rest.starts_with(wanted).then(|| wanted.len_utf8());
            next.extend(escaped.into_iter().chain(plain).map(|length| at + length));
        }
        next.sort_unstable();
        next.dedup();
        if next.is_empty() {
            return None;
        }
        ends = next;
    }
    ends.pop()
}

/// The escape a text begins with: what it stands for, and its length.
fn escape(text: &str) -> Option<(char, usize)> {
    let number = |digits: &str, radix: u32| char::from_u32(u32::from_str_radix(digits, radix).ok()?);
    let rest = text.get(1..)?;
    match text.as_bytes().first()? {
        b'&' => {
            let end = rest.bytes().take(10).position(|byte| byte == b';')?;
            let character = match rest.get(..end)? {
                "amp" => '&',
                "lt" => '<',
                "gt" => '>',
                "quot" => '"',
                "apos" => '\'',
                name => match name.strip_prefix("#x") {
                    Some(digits) => number(digits, 16)?,
                    None => number(name.strip_prefix('#')?, 10)?,
                },
            };
            Some((character, end + 2))
        }
        b'\\' => match rest.chars().next()? {
            'u' => Some((number(rest.get(1..5)?, 16)?, 6)),
            other => Some((other, 1 + other.len_utf8())),
        },
        b'%' => Some((number(rest.get(..2)?, 16)?, 3)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_found_however_a_server_spells_it() {
        let secret = "p\"a's<s>&\\w%rd/";
        for spelling in [
            secret,
            "p&quot;a&apos;s&lt;s&gt;&amp;\\w%rd/",
            "p&#34;a&#39;s&lt;s&gt;&amp;\\w%rd/",
            "p&#x22;a's&lt;s>&amp;\\w%rd/",
            r#"p\"a's<s>&\\w%rd/"#,
            r#"p\"a\u0027s\u003cs\u003E\u0026\\w%rd\/"#,
            "p%22a%27s%3Cs%3E%26%5Cw%25rd%2F",
        ] {
            assert_eq!(without(&format!("é {spelling}&amp;{spelling}"), secret), "é ***&amp;***", "{spelling}");
        }
    }

    #[test]
    fn what_is_not_the_secret_stays_as_it_is() {
        for text in ["", "&", "&amp", "\\", "\\u00", "%", "%2", "p&quot;ass", "é&#xfffffff;ü", "100%é"] {
            assert_eq!(without(text, "p\"assword"), text);
        }
    }
}
