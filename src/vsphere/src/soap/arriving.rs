//! Pages of the property collector, read while they arrive: what has come is cut behind the last whole object, read and let go.
//!
//! Each piece becomes a document of its own by the tags that are open around it, and is read as every other answer is. Where
//! an answer has more than plain elements and text, no more cuts are made, and the rest is read when all of it is there.

use std::borrow::Cow;

use memchr::memchr;

use super::{Reading, properties::Page};
use crate::error::Fault;

/// Less than this is not worth a reading of its own.
const PIECE: usize = 16 << 10;
/// The longest tag that is waited for; beyond it the same bytes would be looked at for ever.
const LONGEST_TAG: usize = 16 << 10;
/// What lies around the objects: envelope, body, response, returnval.
const AROUND: usize = 4;

/// A page of which some has been read and some waits.
#[derive(Debug, Clone)]
pub(crate) struct Arriving {
    page: Page,
    /// How many bytes were read and let go.
    bytes: usize,
    /// The tags around the first byte that waits.
    head: Vec<u8>,
    /// The start tags that are open where the search for a cut stands; deeper ones are only counted.
    open: Vec<Tag>,
    depth: usize,
    /// How much of what waits the search has seen.
    seen: usize,
    /// No more cuts are made.
    over: bool,
    piece: usize,
}

/// A start tag, as written.
#[derive(Debug, Clone)]
struct Tag(Vec<u8>);

impl Tag {
    fn name(&self) -> &[u8] {
        let inner = &self.0[1..self.0.len() - 1];
        inner.split(|byte| byte.is_ascii_whitespace() || *byte == b'/').next().unwrap_or_default()
    }

    fn is(&self, local: &str) -> bool {
        let name = self.name();
        let at = name.iter().position(|byte| *byte == b':').map_or(0, |colon| colon + 1);
        &name[at..] == local.as_bytes()
    }
}

impl Default for Arriving {
    fn default() -> Self {
        let (head, open) = (Vec::new(), Vec::new());
        Self { page: Page::default(), bytes: 0, head, open, depth: 0, seen: 0, over: false, piece: PIECE }
    }
}

impl Reading for Arriving {
    /// The page, and how many bytes it had.
    type Value = (Page, usize);

    fn arrived(&mut self, waiting: &mut Vec<u8>) -> Result<(), Fault> {
        if self.over || waiting.len() < self.piece {
            return Ok(());
        }
        let cut = self.search(waiting);
        if cut == 0 {
            return Ok(());
        }
        let ends: Vec<u8> = self.open.iter().rev().flat_map(|tag| [b"</", tag.name(), b">"].concat()).collect();
        self.add(&[&self.head, &waiting[..cut], &ends].concat())?;
        self.head = self.open.iter().flat_map(|tag| tag.0.iter().copied()).collect();
        waiting.drain(..cut);
        self.bytes += cut;
        self.seen -= cut;
        Ok(())
    }

    fn end(mut self, rest: &[u8]) -> Result<Self::Value, Fault> {
        let whole = if self.head.is_empty() { Cow::Borrowed(rest) } else { Cow::Owned([&self.head, rest].concat()) };
        self.add(&whole)?;
        Ok((self.page, self.bytes + rest.len()))
    }
}

impl Arriving {
    fn add(&mut self, document: &[u8]) -> Result<(), Fault> {
        let read = Page::parse(document)?;
        self.page.objects.extend(read.objects);
        self.page.token = read.token.or(self.page.token.take());
        Ok(())
    }

    /// Goes on to the last whole tag, but not beyond what lies around the objects it has found; how far they reach.
    fn search(&mut self, waiting: &[u8]) -> usize {
        let mut cut = 0;
        while !self.over {
            let Some(at) = memchr(b'<', &waiting[self.seen..]) else {
                self.seen = waiting.len();
                break;
            };
            self.seen += at;
            let Some(tag) = next_tag(&waiting[self.seen..]) else {
                self.over = waiting.len() - self.seen > LONGEST_TAG;
                break;
            };
            if cut > 0 && self.depth == AROUND && tag.starts_with(b"</") {
                break;
            }
            self.seen += tag.len();
            let closes = self.step(tag);
            if closes && self.depth == AROUND && self.around_objects() {
                cut = self.seen;
            }
        }
        cut
    }

    /// Takes one tag in; whether an element ended.
    fn step(&mut self, tag: &[u8]) -> bool {
        match tag {
            [b'<', b'/', ..] => self.pop(tag.contains(&b'"') || tag.contains(&b'\'')),
            [b'<', b'?', ..] if self.depth == 0 => return false,
            [b'<', b'?' | b'!', ..] => self.over = true,
            [.., b'/', b'>'] => {
                self.push(tag);
                self.pop(false);
            }
            _ => {
                self.push(tag);
                return false;
            }
        }
        true
    }

    fn push(&mut self, tag: &[u8]) {
        self.depth += 1;
        if self.depth <= AROUND {
            self.open.push(Tag(tag.to_vec()));
        }
    }

    fn pop(&mut self, odd: bool) {
        // The reader stops behind the first response of the first body: what comes after it is not for us.
        let last = self.depth < AROUND && self.open.iter().zip(["Envelope", "Body"]).all(|(tag, name)| tag.is(name));
        self.over |= odd || last || self.depth == 0;
        self.depth = self.depth.saturating_sub(1);
        self.open.truncate(self.depth);
    }

    fn around_objects(&self) -> bool {
        matches!(&self.open[..], [envelope, body, _, value] if envelope.is("Envelope") && body.is("Body") && value.is("returnval"))
    }
}

/// The tag at the beginning of this, if all of it is there.
fn next_tag(text: &[u8]) -> Option<&[u8]> {
    let end = match text.get(1)? {
        b'?' => text.windows(2).position(|two| two == b"?>")? + 1,
        b'/' => memchr(b'>', text)?,
        _ => {
            let mut quote = None;
            text.iter().position(|byte| {
                match (quote, byte) {
                    (None, b'>') => return true,
                    (None, b'"' | b'\'') => quote = Some(*byte),
                    (Some(open), byte) if open == *byte => quote = None,
                    _ => {}
                }
                false
            })?
        }
    };
    Some(&text[..=end])
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Reads a document that comes in parts of this size, cutting it wherever that can be done.
    pub(crate) fn in_parts(document: &[u8], part: usize) -> Result<Page, Fault> {
        let mut reading = Arriving { piece: 0, ..Arriving::default() };
        let mut waiting = Vec::new();
        for part in document.chunks(part.max(1)) {
            waiting.extend_from_slice(part);
            reading.arrived(&mut waiting)?;
        }
        let (page, bytes) = reading.end(&waiting)?;
        assert_eq!(bytes, document.len());
        Ok(page)
    }

    fn page(objects: usize) -> Vec<u8> {
        let object = |number: usize| {
            format!(
                r#"<objects><obj type="VirtualMachine">vm-{number}</obj><propSet><name>name</name><val xsi:type="xsd:string">a &gt; '{number}"</val></propSet>
                <propSet><name>parent</name><val type="Folder" xsi:type="ManagedObjectReference">group-v3</val></propSet></objects>"#
            )
        };
        let head = r#"<?xml version="1.0" encoding="UTF-8"?><s:Envelope xmlns:s="s" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">
            <s:Header><a><b><c/></b><returnval><d></d></returnval></a></s:Header><s:Body><R xmlns="urn:vim25" odd="a > b"><returnval><token>7</token>"#;
        let objects: String = (0..objects).map(object).collect();
        format!("{head}{objects}</returnval></R></s:Body></s:Envelope>").into_bytes()
    }

    #[test]
    fn a_page_is_the_same_whatever_the_parts_in_which_it_arrives() {
        let document = page(12);
        let whole = Page::parse(&document).unwrap();
        assert_eq!((whole.objects.len(), whole.token.as_deref()), (12, Some("7")));
        for part in 1..=document.len() {
            assert_eq!(in_parts(&document, part).unwrap(), whole, "{part}");
        }
    }

    #[test]
    fn what_was_read_is_not_kept() {
        let document = page(2_000);
        let mut reading = Arriving::default();
        let (mut waiting, mut most) = (Vec::new(), 0);
        for part in document.chunks(4096) {
            waiting.extend_from_slice(part);
            most = most.max(waiting.len());
            reading.arrived(&mut waiting).unwrap();
        }
        assert_eq!(reading.end(&waiting).unwrap().0.objects.len(), 2_000);
        assert!(most < PIECE + 2 * 4096, "{most} of {} bytes waited at once", document.len());
    }

    #[test]
    fn a_lost_session_is_seen_before_the_answer_has_ended() {
        let lost = r#"<objects><obj type="Folder">group-d1</obj><missingSet><path>name</path><fault><fault xsi:type="NotAuthenticated"/></fault></missingSet></objects>"#;
        let text = String::from_utf8(page(0)).unwrap().replace("<token>7</token>", lost);
        let mut waiting = text.as_bytes()[..text.find("</returnval></R>").unwrap()].to_vec();
        let mut reading = Arriving { piece: 0, ..Arriving::default() };
        assert_eq!(reading.arrived(&mut waiting), Err(Fault::NotAuthenticated));
    }

    #[test]
    fn a_tag_without_end_is_looked_at_only_so_often() {
        let mut reading = Arriving::default();
        let mut waiting = b"<Envelope a='".to_vec();
        for _ in 0..64 {
            waiting.extend_from_slice(&[b'x'; 1 << 10]);
            reading.arrived(&mut waiting).unwrap();
        }
        assert!(reading.over);
    }
}
