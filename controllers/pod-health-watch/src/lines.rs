//! Lines out of a stream of bytes, and where to go on in a log after the stream has broken off.

use jiff::Timestamp;

/// The rest of a longer line is dropped: what matters stands at its start.
pub const LONGEST: usize = 16 * 1024;

/// Cuts a stream into lines, whatever pieces it comes in.
#[derive(Default)]
pub struct Lines {
    begun: Vec<u8>,
    /// What was dropped of the line that is begun.
    dropped: u64,
    skipped: u64,
}

impl Lines {
    /// Takes the next piece, and hands on every line that ends in it.
    pub fn take(&mut self, piece: &[u8], mut line: impl FnMut(&[u8])) {
        let mut rest = piece;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let (ended, after) = (&rest[..end], &rest[end + 1..]);
            if self.begun.is_empty() {
                let kept = ended.len().min(LONGEST);
                self.skipped += (ended.len() - kept) as u64;
                line(&ended[..kept]);
            } else {
                self.keep(ended);
                self.end(&mut line);
            }
            rest = after;
        }
        self.keep(rest);
    }

    /// Nothing will be added to what is begun: it is a line too.
    pub fn end(&mut self, line: impl FnOnce(&[u8])) {
        if !self.begun.is_empty() {
            line(&self.begun);
            self.begun.clear();
            self.skipped += std::mem::take(&mut self.dropped);
        }
    }

    /// How many bytes were dropped, since this was asked last, of lines that were handed on and too long.
    pub fn skipped(&mut self) -> u64 {
        std::mem::take(&mut self.skipped)
    }

    fn keep(&mut self, piece: &[u8]) {
        let kept = piece.len().min(LONGEST.saturating_sub(self.begun.len()));
        self.dropped += (piece.len() - kept) as u64;
        self.begun.extend_from_slice(&piece[..kept]);
    }
}

/// What becomes of the words after the last line end of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// The container has ended: they are its last.
    IsALine,
    /// The container may be about to say the rest of the line, or an apiserver that ended has cut it in two: it is read whole from
    /// the next stream, or as the last words of a container that has ended.
    ComesAgain,
}

/// How far a log was read: the time of its last line, and how many lines had that time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    last: Option<Timestamp>,
    lines: u32,
}

/// Reads on from a place: what was read before comes again, since a log can only be asked for from a whole second on.
pub struct Reading {
    from: Place,
    skipped: u32,
    now: Place,
}

impl Reading {
    /// Goes on from there.
    pub fn from(place: Place) -> Self {
        Self { from: place, skipped: 0, now: place }
    }

    /// A line's time and text, if it was not read before. A line without a time belongs to the one before it.
    pub fn next<'a>(&mut self, line: &'a [u8]) -> Option<(Timestamp, &'a [u8])> {
        let (time, text) = match timed(line) {
            Some(parts) => parts,
            None => (self.now.last?, line),
        };
        if self.from.last.is_some_and(|last| time < last) {
            return None;
        }
        if self.from.last == Some(time) && self.skipped < self.from.lines {
            self.skipped += 1;
            return None;
        }
        if self.now.last.is_none_or(|last| time > last) {
            self.now = Place { last: Some(time), lines: 1 };
        } else if self.now.last == Some(time) {
            self.now.lines += 1;
        }
        Some((time, text))
    }

    /// How far it has come.
    pub fn place(&self) -> Place {
        self.now
    }
}

impl Place {
    /// From when on to ask.
    pub fn since(&self) -> Option<Timestamp> {
        self.last
    }
}

fn timed(line: &[u8]) -> Option<(Timestamp, &[u8])> {
    let space = line.iter().position(|byte| *byte == b' ').unwrap_or(line.len());
    let time = std::str::from_utf8(&line[..space]).ok()?.parse().ok()?;
    Some((time, line.get(space + 1..).unwrap_or_default()))
}

/// The time that a line begins with, or that it tells as klog, JSON or logfmt do.
pub fn time(line: &[u8]) -> Option<Timestamp> {
    timed(line).map(|(time, _)| time).or_else(|| klog(line)).or_else(|| keyed(line))
}

/// `E1116 19:49:46.391861 ...`. Which year is not told, and does not matter among lines of one log.
fn klog(line: &[u8]) -> Option<Timestamp> {
    let mut words = std::str::from_utf8(line.get(1..line.len().min(32))?).ok()?.split(' ');
    let told = format!("{LEAP_YEAR}{} {}", words.next()?, words.next()?);
    let time = jiff::civil::DateTime::strptime("%Y%m%d %H:%M:%S%.f", told).ok()?;
    time.to_zoned(jiff::tz::TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
}

/// One that has every day.
const LEAP_YEAR: &str = "2024";

fn keyed(line: &[u8]) -> Option<Timestamp> {
    let value = [br#""time":""#.as_slice(), br#"time=""#].iter().find_map(|key| {
        let at = memchr::memmem::find(line, key)?;
        line.get(at + key.len()..)
    })?;
    std::str::from_utf8(value.split(|byte| *byte == b'"').next()?).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(pieces: &[&str]) -> Vec<String> {
        let mut lines = Lines::default();
        let mut seen = Vec::new();
        for piece in pieces {
            lines.take(piece.as_bytes(), |line| seen.push(String::from_utf8_lossy(line).into_owned()));
        }
        lines.end(|line| seen.push(String::from_utf8_lossy(line).into_owned()));
        seen
    }

    #[test]
    fn lines_are_the_same_in_whatever_pieces_they_come() {
        let text = "one\ntwo\n\nfour";
        for at in 0..text.len() {
            let (left, right) = text.split_at(at);
            assert_eq!(cut(&[left, right]), ["one", "two", "", "four"], "cut at {at}");
        }
    }

    #[test]
    fn a_line_without_end_takes_no_more_room_than_the_longest() {
        let long = "x".repeat(LONGEST);
        assert_eq!(cut(&[&long, &long, "\nnext\n"]), [long.clone(), "next".to_owned()]);
        let whole = format!("{long}{long}\nnext\n");
        assert_eq!(cut(&[&whole]), [long.clone(), "next".to_owned()]);
    }

    #[test]
    fn what_is_dropped_is_counted_in_whatever_pieces_it_comes() {
        let whole = format!("{}\nshort\n{}\n", "x".repeat(LONGEST + 7), "y".repeat(LONGEST + 3));
        for piece in [1, 1000, LONGEST, whole.len()] {
            let mut lines = Lines::default();
            let mut skipped = 0;
            for part in whole.as_bytes().chunks(piece) {
                lines.take(part, |_| {});
                skipped += lines.skipped();
            }
            lines.end(|_| {});
            assert_eq!(skipped + lines.skipped(), 10, "pieces of {piece}");
        }
    }

    #[test]
    fn a_lines_time_is_known_in_every_format() {
        for (line, expected) in [
            ("2026-11-16T19:49:46.391861000Z E1116 01:02:03.000000 1 a.go:1] anything", Some("2026-11-16T19:49:46.391861Z")),
            ("E1116 19:49:46.391861   27517 a.go:1] anything", Some("2024-11-16T19:49:46.391861Z")),
            ("I0229 19:49:46.3 1 a.go:1] anything", Some("2024-02-29T19:49:46.3Z")),
            (r#"{"level":"error","time":"2026-11-16T19:49:46Z","msg":"anything"}"#, Some("2026-11-16T19:49:46Z")),
            (r#"time="2026-11-16T19:49:46Z" level=error msg="anything""#, Some("2026-11-16T19:49:46Z")),
            ("E1316 19:49:46.391861   27517 a.go:1] anything", None),
            ("panic: anything", None),
            (r#"time="soon""#, None),
            ("", None),
        ] {
            assert_eq!(time(line.as_bytes()), expected.map(|time| time.parse().unwrap()), "{line}");
        }
    }

    fn read(reading: &mut Reading, lines: &[&str]) -> Vec<String> {
        let texts = lines.iter().filter_map(|line| reading.next(line.as_bytes()));
        texts.map(|(_, text)| String::from_utf8_lossy(text).into_owned()).collect()
    }

    #[test]
    fn after_a_break_no_line_is_read_twice_and_none_is_missed() {
        let log = [
            "2026-11-16T19:49:46.100000000Z a",
            "2026-11-16T19:49:46.200000000Z b",
            "2026-11-16T19:49:46.200000000Z c",
            "2026-11-16T19:49:46.200000000Z d",
            "2026-11-16T19:49:47.000000000Z e",
        ];
        for broken in 0..=log.len() {
            let mut first = Reading::from(Place::default());
            let mut seen = read(&mut first, &log[..broken]);
            let mut second = Reading::from(first.place());
            seen.extend(read(&mut second, &log));
            assert_eq!(seen, ["a", "b", "c", "d", "e"], "broken after {broken}");
            let mut third = Reading::from(second.place());
            assert!(read(&mut third, &log).is_empty());
        }
    }

    #[test]
    fn lines_that_come_a_little_out_of_order_are_all_read() {
        let mut reading = Reading::from(Place::default());
        let log = ["2026-11-16T19:49:46.2Z late", "2026-11-16T19:49:46.1Z early", "no time", "2026-11-16T19:49:46.3Z"];
        assert_eq!(read(&mut reading, &log), ["late", "early", "no time", ""]);
    }
}
