//! Reading a log as `kubectl logs` asks for it: from a time, the last lines, with times, up to a size, and following.

use std::collections::HashMap;
use std::io::{self, SeekFrom};

use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use tokio::fs::File;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncSeekExt as _, BufReader};

use super::logs::{Log, stamp};

/// Enough for one answer; a reader of a long log gets it in pieces.
const PIECE: usize = 64 * 1024;

#[derive(Default)]
pub(super) struct Query {
    pub follow: bool,
    pub previous: bool,
    pub timestamps: bool,
    since: Option<String>,
    tail: Option<u64>,
    limit: Option<u64>,
}

impl Query {
    /// The query parameters of the kubelet's containerLogs.
    pub fn parse(parameters: &HashMap<String, String>, now: Timestamp) -> Result<Query, String> {
        let text = |name: &str| parameters.get(name).map(String::as_str).filter(|value| !value.is_empty());
        let number = |name: &str| -> Result<Option<u64>, String> {
            text(name)
                .map(|value| value.parse().map_err(|error| format!("{name} must be a whole number, not {value:?}: {error}")))
                .transpose()
        };
        let switch = |name: &str| -> Result<bool, String> {
            match text(name) {
                None | Some("false" | "0") => Ok(false),
                Some("true" | "1") => Ok(true),
                Some(other) => Err(format!("{name} must be true or false, not {other:?}")),
            }
        };
        let since = match (number("sinceSeconds")?, text("sinceTime")) {
            (Some(_), Some(_)) => return Err("at most one of sinceTime and sinceSeconds may be given".to_owned()),
            (Some(seconds), None) => {
                let ago = SignedDuration::from_secs(i64::try_from(seconds).unwrap_or(i64::MAX));
                Some(now.checked_sub(ago).map_err(|error| format!("sinceSeconds {seconds} is before all time: {error}"))?)
            }
            (None, Some(time)) => {
                Some(time.parse().map_err(|error| format!("sinceTime must be a time of RFC 3339, not {time:?}: {error}"))?)
            }
            (None, None) => None,
        };
        Ok(Query {
            follow: switch("follow")?,
            previous: switch("previous")?,
            timestamps: switch("timestamps")?,
            since: since.map(stamp),
            tail: number("tailLines")?,
            limit: number("limitBytes")?,
        })
    }
}

pub(super) struct Reader {
    file: BufReader<File>,
    position: u64,
    log: Log,
    query: Query,
    /// Whether the line before was a piece, so that what follows continues it.
    continued: bool,
}

impl Reader {
    pub async fn open(log: Log, query: Query) -> io::Result<Reader> {
        let mut file = File::open(&log.path).await?;
        let length = log.progress.borrow().length;
        let position = match query.tail {
            Some(lines) => last_lines(&mut file, length, lines).await?,
            None => 0,
        };
        file.seek(SeekFrom::Start(position)).await?;
        Ok(Reader { file: BufReader::new(file), position, log, query, continued: false })
    }

    /// The next piece of the answer; waits for one where the log is followed and still written.
    pub async fn next(&mut self) -> Option<io::Result<Bytes>> {
        loop {
            if self.query.limit == Some(0) {
                return None;
            }
            let progress = *self.log.progress.borrow_and_update();
            match self.read_up_to(progress.length).await {
                Ok(piece) if piece.is_empty() => {}
                result => return Some(result.map(Bytes::from)),
            }
            if !self.query.follow || progress.ended || self.log.progress.changed().await.is_err() {
                return None;
            }
        }
    }

    async fn read_up_to(&mut self, length: u64) -> io::Result<Vec<u8>> {
        let mut piece = Vec::new();
        let mut line = Vec::new();
        while self.position < length && piece.len() < PIECE {
            line.clear();
            let read = self.file.read_until(b'\n', &mut line).await?;
            if read == 0 {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the log is shorter than it was written"));
            }
            self.position += read as u64;
            self.render(&line, &mut piece);
        }
        if let Some(left) = &mut self.query.limit {
            piece.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
            *left -= piece.len() as u64;
        }
        Ok(piece)
    }

    fn render(&mut self, line: &[u8], into: &mut Vec<u8>) {
        let mut parts = line.splitn(3, |byte| *byte == b' ');
        let (Some(time), Some(tag), Some(text)) = (parts.next(), parts.next(), parts.next()) else { return };
        let late_enough = self.query.since.as_ref().is_none_or(|since| time >= since.as_bytes());
        if late_enough {
            if self.query.timestamps && !self.continued {
                into.extend_from_slice(time);
                into.push(b' ');
            }
            into.extend_from_slice(if tag == b"P" { text.strip_suffix(b"\n").unwrap_or(text) } else { text });
        }
        self.continued = tag == b"P";
    }
}

/// Where the last `lines` lines of the first `length` bytes begin.
async fn last_lines(file: &mut File, length: u64, lines: u64) -> io::Result<u64> {
    let mut missing = lines;
    let mut end = length;
    let mut block = vec![0; PIECE];
    while end > 0 {
        let start = end.saturating_sub(PIECE as u64);
        let size = usize::try_from(end - start).unwrap_or(PIECE);
        file.seek(SeekFrom::Start(start)).await?;
        file.read_exact(&mut block[..size]).await?;
        for (index, _) in block[..size].iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n') {
            if missing == 0 {
                return Ok(start + index as u64 + 1);
            }
            // Each line end but the last one begins a line; the last one only ends the log.
            missing -= 1;
        }
        end = start;
    }
    Ok(0)
}

/// The end of a log as a container's termination message: at most 80 lines and 2048 bytes.
pub(super) async fn last_words(log: &Log) -> io::Result<String> {
    let query = Query { tail: Some(80), ..Query::default() };
    let mut reader = Reader::open(log.clone(), query).await?;
    let mut words = Vec::new();
    while let Some(piece) = reader.next().await {
        words.extend_from_slice(&piece?);
    }
    let mut text = String::from_utf8_lossy(&words).into_owned();
    let mut cut = text.len().saturating_sub(2048);
    while !text.is_char_boundary(cut) {
        cut += 1;
    }
    Ok(text.split_off(cut))
}

#[cfg(test)]
mod tests {
    use super::super::logs;
    use super::*;

    async fn read(log: &Log, query: Query) -> String {
        let mut reader = Reader::open(log.clone(), query).await.unwrap();
        let mut all = Vec::new();
        while let Some(piece) = reader.next().await {
            all.extend_from_slice(&piece.unwrap());
        }
        String::from_utf8(all).unwrap()
    }

    fn query(parameters: &[(&str, &str)]) -> Query {
        let parameters = parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Query::parse(&parameters, Timestamp::now()).unwrap()
    }

    #[tokio::test]
    async fn lines_are_read_back_as_they_were_printed() {
        let folder = tempfile::tempdir().unwrap();
        let (mut writer, log) = logs::start(&folder.path().join("0.log")).unwrap();
        writer.print(b"one\ntw").unwrap();
        writer.print(b"o\n\nno end").unwrap();
        assert_eq!(read(&log, Query::default()).await, "one\ntwo\n\n");
        drop(writer);
        assert_eq!(read(&log, Query::default()).await, "one\ntwo\n\nno end");
    }

    #[tokio::test]
    async fn a_line_longer_than_any_buffer_comes_back_as_one_line_with_one_time() {
        let folder = tempfile::tempdir().unwrap();
        let (mut writer, log) = logs::start(&folder.path().join("0.log")).unwrap();
        let long = "x".repeat(100_000);
        writer.print(format!("{long}\nshort\n").as_bytes()).unwrap();
        assert_eq!(read(&log, Query::default()).await, format!("{long}\nshort\n"));
        let timed = read(&log, query(&[("timestamps", "true")])).await;
        assert_eq!(timed.lines().count(), 2);
        assert_eq!(timed.matches("Z ").count(), 2);
    }

    #[tokio::test]
    async fn the_tail_is_the_last_lines_whatever_their_length() {
        let folder = tempfile::tempdir().unwrap();
        let (mut writer, log) = logs::start(&folder.path().join("0.log")).unwrap();
        for number in 0..5000 {
            writer.print(format!("line {number} {}\n", "y".repeat(number % 300)).as_bytes()).unwrap();
        }
        assert_eq!(read(&log, query(&[("tailLines", "0")])).await, "");
        let tail = read(&log, query(&[("tailLines", "1700")])).await;
        assert_eq!(tail.lines().count(), 1700);
        assert!(tail.starts_with("line 3300 "));
        assert_eq!(read(&log, query(&[("tailLines", "9000")])).await.lines().count(), 5000);
        assert_eq!(read(&log, query(&[("tailLines", "1"), ("limitBytes", "6")])).await, "line 4");
    }

    #[tokio::test]
    async fn only_lines_since_a_time_are_given() {
        let folder = tempfile::tempdir().unwrap();
        let (mut writer, log) = logs::start(&folder.path().join("0.log")).unwrap();
        writer.print(b"before\n").unwrap();
        let between = Timestamp::now();
        // The clock has nanoseconds; a line printed later bears a later time.
        while Timestamp::now() == between {}
        writer.print(b"after\n").unwrap();
        assert_eq!(read(&log, query(&[("sinceTime", &between.to_string())])).await, "after\n");
        assert_eq!(read(&log, query(&[("sinceSeconds", "60")])).await, "before\nafter\n");
    }

    #[tokio::test]
    async fn a_follower_sees_each_new_line_and_ends_with_the_log() {
        let folder = tempfile::tempdir().unwrap();
        let (mut writer, log) = logs::start(&folder.path().join("0.log")).unwrap();
        writer.print(b"old\n").unwrap();
        let mut reader = Reader::open(log, query(&[("follow", "true"), ("tailLines", "0")])).await.unwrap();
        let follower = tokio::spawn(async move { (reader.next().await.unwrap().unwrap(), reader.next().await.is_none()) });
        writer.print(b"new\n").unwrap();
        // The follower may not have looked yet; the second line must then come with the first or be absent from it.
        let (piece, ended) = {
            drop(writer);
            follower.await.unwrap()
        };
        assert_eq!(piece, "new\n");
        assert!(ended);
    }

    #[test]
    fn nonsense_in_a_query_is_refused_with_its_name() {
        let wrong = |name: &str, value: &str| {
            let parameters = HashMap::from([(name.to_owned(), value.to_owned())]);
            Query::parse(&parameters, Timestamp::now()).err().unwrap()
        };
        assert!(wrong("tailLines", "-1").contains("tailLines"));
        assert!(wrong("sinceTime", "yesterday").contains("sinceTime"));
        assert!(wrong("follow", "maybe").contains("follow"));
    }
}
