//! Which rules a line may fit, by the words it holds: one pass over the line, so that almost all lines are looked at only once.
//!
//! Of each word eight letters are looked for, or four of a short one, by a table that fits into the processor's nearest memory.
//! An automaton of all words does not, and would have to wait for every letter. Every other place of a line is enough, since
//! the letters that begin one place further on are looked for too.

use std::collections::HashMap;

use regex_syntax::hir::{Hir, HirKind};

/// Shorter ones stand in nearly every line.
const SHORTEST: usize = SHORT + STRIDE - 1;
/// So many letters are looked for at once.
const LONG: usize = 8;
/// And so many of a word that has not as many.
const SHORT: usize = 4;
/// Only at every so manieth place.
const STRIDE: usize = 2;

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
#[derive(Debug)]
pub struct Words {
    /// A bit for each hash of the letters that are looked for.
    hashes: Box<[u64; HASHES]>,
    words: Vec<Word>,
    /// Words by the letters that are looked for, and where in the word those are.
    letters: HashMap<u64, Vec<(usize, usize)>>,
    /// Of patterns in which no word has to be.
    always: Places,
}

#[derive(Debug)]
struct Word {
    text: Vec<u8>,
    places: Places,
}

impl Words {
    /// Of patterns that are regular expressions.
    pub fn of<'a>(patterns: impl Iterator<Item = &'a str>) -> Self {
        let mut words = Self { hashes: Box::new([0; HASHES]), words: Vec::new(), letters: HashMap::new(), always: Places::default() };
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
        let (start, length) = looked_for(&text);
        for offset in start..start + STRIDE {
            let letters = folded(&text[offset..offset + length]);
            let (part, bit) = hashed(letters);
            self.hashes[part] |= bit;
            self.letters.entry(letters).or_default().push((self.words.len(), offset));
        }
        let mut places = Places::default();
        places.add(place);
        self.words.push(Word { text, places });
    }

    /// The rules that the line may fit; those it cannot fit are not among them.
    pub fn of_line(&self, line: &[u8]) -> Places {
        let mut found = self.always;
        for (at, letters) in line.array_windows().enumerate().step_by(STRIDE) {
            self.look(line, at, u64::from_le_bytes(*letters) | SMALL, &mut found);
        }
        // What is left is shorter than a long word's letters.
        let rest = line.len().saturating_sub(LONG - 1).next_multiple_of(STRIDE);
        for at in (rest..line.len()).step_by(STRIDE) {
            self.look(line, at, folded(&line[at..]), &mut found);
        }
        found
    }

    #[inline]
    fn look(&self, line: &[u8], at: usize, letters: u64, found: &mut Places) {
        for letters in [letters, letters & FIRST] {
            let (part, bit) = hashed(letters);
            if self.hashes[part] & bit != 0 {
                self.compare(line, at, letters, found);
            }
        }
    }

    #[cold]
    fn compare(&self, line: &[u8], at: usize, letters: u64, found: &mut Places) {
        for (word, offset) in self.letters.get(&letters).into_iter().flatten() {
            let Some(word) = self.words.get(*word) else { continue };
            let there = at.checked_sub(*offset).and_then(|start| line.get(start..start + word.text.len()));
            if there.is_some_and(|there| there.eq_ignore_ascii_case(&word.text)) {
                found.join(&word.places);
            }
        }
    }
}

/// How many bits of a hash are looked at, and how many words of memory that takes.
const HASHED: u32 = 18;
const HASHES: usize = 1 << (HASHED - 6);
/// With these bits small and capital letters are the same; so are a few other signs, which does no harm.
const SMALL: u64 = 0x2020_2020_2020_2020;
/// The letters of a short word.
const FIRST: u64 = 0xffff_ffff;
/// Letters of which text is full, the most frequent first; rarer than any letter is what stands between two words.
const FREQUENT: &[u8] = b"etaoinsrlhdcumpfgvywbk";

fn hashed(letters: u64) -> (usize, u64) {
    let hash = letters.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - HASHED);
    ((hash >> 6) as usize, 1 << (hash & 63))
}

/// Up to eight letters as one number.
fn folded(letters: &[u8]) -> u64 {
    let number = letters.iter().rev().fold(0, |number, letter| number << 8 | u64::from(*letter)) | SMALL;
    if letters.len() == SHORT { number & FIRST } else { number }
}

/// Where the rarest letters of a word begin, and how many are looked for.
fn looked_for(word: &[u8]) -> (usize, usize) {
    let length = if word.len() < LONG + STRIDE - 1 { SHORT } else { LONG };
    let rank = |letter: &u8| FREQUENT.iter().position(|frequent| frequent == letter).unwrap_or(FREQUENT.len());
    let all = word.windows(length + STRIDE - 1).map(|letters| letters.iter().map(rank).sum::<usize>());
    (all.enumerate().max_by_key(|(_, rarity)| *rarity).map_or(0, |(start, _)| start), length)
}

/// Words of which every text that fits the pattern holds one, in any case of letters.
pub fn needed(pattern: &str) -> Option<Vec<Vec<u8>>> {
    let parsed = regex_syntax::ParserBuilder::new().unicode(false).utf8(false).build().parse(pattern).ok()?;
    let words = needed_of(&parsed)?;
    (shortest(&words) >= SHORTEST).then(|| words.into_iter().map(|word| word.to_ascii_lowercase()).collect())
}

fn needed_of(part: &Hir) -> Option<Vec<Vec<u8>>> {
    match part.kind() {
        HirKind::Literal(literal) => Some(vec![literal.0.to_vec()]),
        HirKind::Capture(capture) => needed_of(&capture.sub),
        HirKind::Repetition(repetition) if repetition.min > 0 => needed_of(&repetition.sub),
        HirKind::Concat(parts) => parts.iter().filter_map(needed_of).max_by_key(|words| shortest(words)),
        HirKind::Alternation(parts) => {
            let words: Option<Vec<_>> = parts.iter().map(needed_of).collect();
            Some(words?.concat())
        }
        _ => None,
    }
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
    fn a_pattern_needs_its_longest_words_and_one_of_each_choice() {
        for (pattern, expected) in [
            ("no such host", Some(vec!["no such host"])),
            ("(dial tcp|/sdk).*(timed out|refused)", Some(vec!["timed out", "refused"])),
            ("failed to (connect to|get) .*", Some(vec!["failed to "])),
            ("(Unknown key)+", Some(vec!["unknown key"])),
            ("Username/Password or shared session manager", Some(vec!["username/password or shared session manager"])),
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
