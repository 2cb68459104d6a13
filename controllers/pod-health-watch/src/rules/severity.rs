//! Whether a line calls itself an error, in the formats in which OpenShift's components write.

use std::sync::LazyLock;

use memchr::memmem::Finder;

/// How a node marks lines, and parts of lines, in the files of its containers.
const FILES: [&[u8]; 4] = [b"stdout F ", b"stderr F ", b"stdout P ", b"stderr P "];
/// How far into a line its level may stand.
const HEAD: usize = 256;
const LEVELS: [&[u8]; 4] = [b"error", b"fatal", b"panic", b"critical"];
static KEYS: LazyLock<[Finder<'static>; 3]> = LazyLock::new(|| [Finder::new("level"), Finder::new("lvl"), Finder::new("severity")]);

/// klog (`E1116 19:49:46.3 ...`), logfmt (`level=error`), JSON (`"level":"error"`), or plain words at the start (`ERROR: ...`).
pub fn is_error(line: &[u8]) -> bool {
    let line = without_time(line);
    match klog(line) {
        Some(level) => matches!(level, b'E' | b'F'),
        None => plain(line) || keyed(&line[..line.len().min(HEAD)]),
    }
}

/// Without the time that `oc logs --timestamps` puts in front, and what a node's own files have besides.
fn without_time(line: &[u8]) -> &[u8] {
    let timed = line.len() > 20 && line[0].is_ascii_digit() && line[4] == b'-' && line[10] == b'T';
    let end = line.iter().position(|byte| *byte == b' ').filter(|_| timed);
    let Some(end) = end else { return line };
    let rest = &line[end + 1..];
    FILES.iter().find_map(|prefix| rest.strip_prefix(*prefix)).unwrap_or(rest)
}

fn klog(line: &[u8]) -> Option<u8> {
    match line {
        [level @ (b'I' | b'W' | b'E' | b'F'), a, b, c, d, b' ', ..] if [a, b, c, d].iter().all(|byte| byte.is_ascii_digit()) => {
            Some(*level)
        }
        _ => None,
    }
}

fn plain(line: &[u8]) -> bool {
    LEVELS.iter().any(|level| {
        let word = line.get(..level.len()).is_some_and(|start| start.eq_ignore_ascii_case(level));
        word && matches!(line.get(level.len()), Some(b':' | b' ' | b'\t'))
    })
}

fn keyed(head: &[u8]) -> bool {
    let is_a_level =
        |value: &[u8]| LEVELS.iter().any(|level| value.get(..level.len()).is_some_and(|word| word.eq_ignore_ascii_case(level)));
    let names_a_level = |rest: &[u8]| {
        let value = rest.iter().position(|byte| !matches!(byte, b'"' | b':' | b'=' | b' '));
        value.is_some_and(|skipped| skipped > 0 && is_a_level(&rest[skipped..]))
    };
    KEYS.iter().any(|key| key.find_iter(head).any(|at| names_a_level(&head[at + key.needle().len()..])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_known_in_every_format_and_nothing_else_is() {
        for (line, expected) in [
            ("E1116 19:49:46.391861   27517 a.go:1] anything", true),
            ("F1116 19:49:46.391861   27517 a.go:1] anything", true),
            ("2026-11-16T19:49:46.391861000Z E1116 19:49:46.391861   27517 a.go:1] anything", true),
            ("2026-11-16T19:49:46.391861000Z stderr F E1116 19:49:46.391861   27517 a.go:1] anything", true),
            ("2026-11-16T19:49:46.391861000Z stderr F I1116 19:49:46.391861   27517 a.go:1] error", false),
            (r#"{"level":"error","ts":1,"msg":"anything"}"#, true),
            (r#"{"ts":"2026-11-16T19:49:46Z", "level": "fatal", "msg":"anything"}"#, true),
            (r#"{"severity":"ERROR","message":"anything"}"#, true),
            (r#"time="2026-11-16T19:49:46Z" level=error msg="anything""#, true),
            ("ERROR: anything", true),
            ("panic: anything", true),
            ("I1116 19:49:46.391861   27517 a.go:1] the last error: none", false),
            ("W1116 19:49:46.391861   27517 a.go:1] anything", false),
            (r#"{"level":"info","msg":"error"}"#, false),
            (r#"time="2026-11-16T19:49:46Z" level=info msg="log level=4 error rate 0""#, false),
            ("Errors are counted", false),
            ("E2E tests", false),
            ("", false),
        ] {
            assert_eq!(is_error(line.as_bytes()), expected, "{line}");
        }
    }
}
