//! Which rules a line may fit, by the words it holds: one pass over the line, so that almost all lines are looked at only once.
//!
//! Of each word eight letters are looked for, or four of a short one, by tables that fit into the processor's nearest memory.
//! An automaton of all words does not, and would have to wait for every letter. Every fourth place of a line is enough, every second
//! for short words, since the letters that begin up to so many places further on are looked for too.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use regex_syntax::hir::{Hir, HirKind};

/// Shorter ones stand in nearly every line.
const SHORTEST: usize = SHORT + SHORT_STRIDE - 1;
/// So many letters are looked for at once.
const LONG: usize = 8;
/// And so many of a word that has not as many.
const SHORT: usize = 4;
/// Only at every so manieth place.
const LONG_STRIDE: usize = 4;
const SHORT_STRIDE: usize = 2;

/// Rules by their places in the catalogue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Places([u64; PARTS]);

const PARTS: usize = 4;

impl Places {
    /// How many rules there may be.
    pub const MOST: usize = PARTS * 64;

    fn add(&mut self, place: usize) {
        if let Some(part) = self.0.get_mut(place / 64) {
            *part |= 1 << (place % 64);
        }
    }

    fn join(&mut self, other: &Self) {
        for (part, more) in self.0.iter_mut().zip(other.0) {
            *part |= more;
        }
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }

    /// In their order.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        self.0.into_iter().enumerate().flat_map(|(index, mut part)| {
            std::iter::from_fn(move || {
                let bit = (part != 0).then(|| part.trailing_zeros() as usize)?;
                part &= part - 1;
                Some(index * 64 + bit)
            })
        })
    }
}

/// The words of all patterns.
#[derive(Debug, Default)]
pub struct Words {
    words: Vec<Word>,
    long: Letters,
    short: Letters,
    /// Of patterns in which no word has to be.
    always: Places,
}

#[derive(Debug)]
struct Word {
    text: Vec<u8>,
    places: Places,
}

/// The letters that are looked for.
#[derive(Debug)]
struct Letters {
    /// A bit for each hash of them.
    hashes: Box<[u64; HASHES]>,
    /// Their words, and where in the word they are.
    words: HashMap<u64, Vec<(usize, usize)>, BuildHasherDefault<Multiplied>>,
}

impl Default for Letters {
    fn default() -> Self {
        Self { hashes: Box::new([0; HASHES]), words: HashMap::default() }
    }
}

impl Letters {
    fn add(&mut self, letters: u64, word: usize, offset: usize) {
        let (part, bit) = hashed(letters);
        self.hashes[part] |= bit;
        self.words.entry(letters).or_default().push((word, offset));
    }
}

impl Words {
    /// Of patterns that are regular expressions.
    pub fn of<'a>(patterns: impl Iterator<Item = &'a str>) -> Self {
        let mut words = Self::default();
        for (place, pattern) in patterns.enumerate() {
            match needed(pattern) {
                Some(needed) => needed.into_iter().for_each(|word| words.add(word, place)),
                None => words.always.add(place),
            }
        }
        words
    }

    fn add(&mut self, text: Vec<u8>, place: usize) {
        if let Some(known) = self.words.iter_mut().find(|known| known.text == text) {
            return known.places.add(place);
        }
        let is_long = text.len() >= LONG + LONG_STRIDE - 1;
        let (letters, length, stride) = if is_long { (&mut self.long, LONG, LONG_STRIDE) } else { (&mut self.short, SHORT, SHORT_STRIDE) };
        let start = rarest(&text, length + stride - 1);
        for offset in start..start + stride {
            letters.add(folded(&text[offset..offset + length]), self.words.len(), offset);
        }
        let mut places = Places::default();
        places.add(place);
        self.words.push(Word { text, places });
    }

    /// The rules that the line may fit; those it cannot fit are not among them.
    pub fn of_line(&self, line: &[u8]) -> Places {
        let mut found = self.always;
        for (at, letters) in line.array_windows().enumerate().step_by(LONG_STRIDE) {
            let letters = u64::from_le_bytes(*letters) | SMALL;
            self.look(&self.long, line, at, letters, &mut found);
            self.look(&self.short, line, at, letters & FIRST, &mut found);
            self.look(&self.short, line, at + SHORT_STRIDE, letters >> (8 * SHORT_STRIDE) & FIRST, &mut found);
        }
        // What is left is shorter than a long word's letters.
        let rest = line.len().saturating_sub(LONG - 1).next_multiple_of(LONG_STRIDE);
        for at in (rest..line.len()).step_by(SHORT_STRIDE) {
            if let Some(letters) = line.get(at..at + SHORT) {
                self.look(&self.short, line, at, folded(letters), &mut found);
            }
        }
        found
    }

    #[inline]
    fn look(&self, letters: &Letters, line: &[u8], at: usize, looked_at: u64, found: &mut Places) {
        let (part, bit) = hashed(looked_at);
        if letters.hashes[part] & bit != 0 {
            self.compare(letters, line, at, looked_at, found);
        }
    }

    #[cold]
    fn compare(&self, letters: &Letters, line: &[u8], at: usize, looked_at: u64, found: &mut Places) {
        for (word, offset) in letters.words.get(&looked_at).into_iter().flatten() {
            let Some(word) = self.words.get(*word) else { continue };
            let there = at.checked_sub(*offset).and_then(|start| line.get(start..start + word.text.len()));
            if there.is_some_and(|there| there.eq_ignore_ascii_case(&word.text)) {
                found.join(&word.places);
            }
        }
    }
}

/// How many bits of a hash are looked at, and how many words of memory that takes.
const HASHED: u32 = 17;
const HASHES: usize = 1 << (HASHED - 6);
/// With these bits small and capital letters are the same; so are a few other signs, which does no harm.
const SMALL: u64 = 0x2020_2020_2020_2020;
/// The letters of a short word.
const FIRST: u64 = 0xffff_ffff;
/// Letters of which text is full, the most frequent first; rarer than any letter is what stands between two words.
const FREQUENT: &[u8] = b"etaoinsrlhdcumpfgvywbk";

/// Words of which the logs of healthy components are full.
const EVERYDAY: &[&[u8]] = &[
    b"cluster",
    b"config",
    b"control plane",
    b"controller",
    b"credential",
    b"driver",
    b"machine",
    b"node",
    b"not found",
    b"operator",
    b"provider",
    b"reconciling",
    b"storage",
    b"updating",
    b"version",
    b"vsphere",
    b"webhook",
];

/// How often four letters in a row are those of a word that stands in nearly every line.
fn everyday(letters: &[u8]) -> usize {
    let common = |four: &&[u8]| EVERYDAY.iter().any(|word| word.windows(SHORT).any(|part| part == *four));
    letters.windows(SHORT).filter(common).count()
}

fn multiplied(letters: u64) -> u64 {
    letters.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn hashed(letters: u64) -> (usize, u64) {
    let hash = multiplied(letters) >> (u64::BITS - HASHED);
    ((hash >> 6) as usize, 1 << (hash & 63))
}

/// Letters need no better hash than this one: whoever wrote the patterns wants them to be found.
#[derive(Default)]
struct Multiplied(u64);

impl Hasher for Multiplied {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, number: u64) {
        // The middle of the product, where every letter counts, is what a map looks at.
        self.0 = multiplied(self.0 ^ number).rotate_left(32);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Up to eight letters as one number.
fn folded(letters: &[u8]) -> u64 {
    let number = letters.iter().rev().fold(0, |number, letter| number << 8 | u64::from(*letter)) | SMALL;
    if letters.len() == SHORT { number & FIRST } else { number }
}

/// Where the so many rarest letters of a word begin.
fn rarest(word: &[u8], many: usize) -> usize {
    let rank = |letter: &u8| FREQUENT.iter().position(|frequent| frequent == letter).unwrap_or(FREQUENT.len());
    let all = word.windows(many).map(|letters| (Reverse(everyday(letters)), letters.iter().map(rank).sum::<usize>()));
    all.enumerate().max_by_key(|(_, rarity)| *rarity).map_or(0, |(start, _)| start)
}

/// Words of which every text that fits the pattern holds one, in any case of letters.
pub fn needed(pattern: &str) -> Option<Vec<Vec<u8>>> {
    let parsed = regex_syntax::ParserBuilder::new().unicode(false).utf8(false).build().parse(pattern).ok()?;
    let words = needed_of(&parsed)?;
    (shortest(&words) >= SHORTEST).then_some(words)
}

fn needed_of(part: &Hir) -> Option<Vec<Vec<u8>>> {
    match part.kind() {
        HirKind::Literal(literal) => Some(vec![literal.0.to_ascii_lowercase()]),
        HirKind::Capture(capture) => needed_of(&capture.sub),
        HirKind::Repetition(repetition) if repetition.min > 0 => needed_of(&repetition.sub),
        HirKind::Concat(parts) => parts.iter().filter_map(needed_of).max_by_key(|words| worth(words)),
        HirKind::Alternation(parts) => {
            let words: Option<Vec<_>> = parts.iter().map(needed_of).collect();
            Some(words?.concat())
        }
        _ => None,
    }
}

/// Words are worth more the longer they are, but most of all if not every line has them.
fn worth(words: &[Vec<u8>]) -> (bool, usize) {
    let shortest = shortest(words);
    (shortest >= SHORTEST && !words.iter().any(|word| EVERYDAY.iter().any(|everyday| word.trim_ascii() == *everyday)), shortest)
}

fn shortest(words: &[Vec<u8>]) -> usize {
    words.iter().map(Vec::len).min().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(pattern: &str) -> Option<Vec<String>> {
        Some(needed(pattern)?.into_iter().map(|word| String::from_utf8(word).unwrap()).collect())
    }

    #[test]
    fn a_pattern_needs_its_longest_words_that_are_not_everyday_ones_and_one_of_each_choice() {
        for (pattern, expected) in [
            ("no such host", Some(vec!["no such host"])),
            ("(dial tcp|/sdk).*(timed out|refused)", Some(vec!["timed out", "refused"])),
            ("failed to (connect to|get) .*", Some(vec!["failed to "])),
            ("(Unknown key)+", Some(vec!["unknown key"])),
            ("Username/Password or shared session manager", Some(vec!["username/password or shared session manager"])),
            ("Failed (to sync|syncing) machine.api", Some(vec!["to sync", "syncing"])),
            ("errors? (updating|reconciling) it", Some(vec!["error"])),
            // Nothing has to be there, or nearly nothing.
            ("a|long enough", None),
            ("(long enough)?", None),
            (r"[EF]\d+ x", None),
            ("([", None),
        ] {
            let expected = expected.map(|words| words.into_iter().map(str::to_owned).collect::<Vec<_>>());
            assert_eq!(words(pattern), expected, "{pattern}");
        }
    }

    #[test]
    fn a_line_may_fit_the_patterns_whose_words_it_holds_and_those_without_words() {
        let patterns = ["no such host", r"[EF]\d", "no such|such host", "secret key"];
        let words = Words::of(patterns.into_iter());
        let of = |line: &str| words.of_line(line.as_bytes()).iter().collect::<Vec<_>>();
        assert_eq!(of("lookup vc: No Such Host"), [0, 1, 2]);
        assert_eq!(of("Unknown SECRET KEY"), [1, 3]);
        assert_eq!(of(""), [1]);
    }

    #[test]
    fn no_word_is_overlooked_wherever_it_stands_and_in_whatever_letters() {
        let patterns: Vec<&str> = crate::rules::Catalogue::built_in().rules().iter().map(|rule| rule.pattern.as_str()).collect();
        let all = Words::of(patterns.iter().copied());
        let long = "I1116 19:49:46.391891   27517 a.go:75]";
        for (place, pattern) in patterns.iter().enumerate() {
            for word in words(pattern).unwrap() {
                for line in [word.clone(), word.to_uppercase(), format!("~{word}"), format!("{word}~"), format!("{long}{word}{long}")] {
                    assert!(all.of_line(line.as_bytes()).iter().any(|found| found == place), "{pattern}: {line}");
                }
                let (first, broken) = (&word[..word.len() - 1], format!("{}~", &word[..word.len() - 1]));
                let only = Words::of([*pattern].into_iter());
                let other = words(pattern).unwrap().iter().any(|other| *other != word && first.contains(other.as_str()));
                assert!(
                    other || [first, &broken].iter().all(|line| only.of_line(line.as_bytes()) == Places::default()),
                    "{pattern}: {word}"
                );
            }
        }
    }

    #[test]
    fn places_come_in_their_order() {
        let mut places = Places::default();
        for place in [255, 0, 63, 64, 130] {
            places.add(place);
        }
        assert_eq!(places.iter().collect::<Vec<_>>(), [0, 63, 64, 130, 255]);
    }
}
