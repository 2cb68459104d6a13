//! Everything that reads what a stranger wrote, fed with mutations of a committed corpus. Nothing may panic, and nothing
//! may make more out of its input than the input is large.
//!
//! The seed is fixed, so a failure repeats; `VSPHERE_FUZZ_ITERATIONS` makes it longer.

use std::path::PathBuf;

use crate::{
    about::{Content, current_time},
    certificate::{Certificate, Thumbprint},
    login::user_of,
    privileges::granted,
    reference::Ref,
    rest::Dialect,
    soap::{arriving::tests::in_parts, fault, nothing, properties::Page, refusal, returned_references},
    tags::{
        Category, Tag,
        attach::{done_at_all, reference},
    },
    task::{State, state},
    uuid::Uuid,
};

/// A small generator of its own: the same numbers on every machine, and no dependency.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % (limit.max(1) as u64)).unwrap()
    }
}

/// What tends to break readers of XML, JSON and DER.
const TOKENS: [&[u8]; 16] = [
    b"<",
    b">",
    b"</",
    b"/>",
    b"&",
    b"&#0;",
    b"&#x110000;",
    b"<![CDATA[",
    b"]]>",
    b"xmlns:a='",
    b"<!DOCTYPE a>",
    b"\"",
    b"[[[[",
    b"\xff\xfe",
    b"\x30\x84\xff\xff\xff\xff",
    b"\0",
];

fn mutate(input: &mut Vec<u8>, other: &[u8], numbers: &mut Numbers) {
    for _ in 0..=numbers.below(4) {
        let at = numbers.below(input.len() + 1);
        let to = at + numbers.below(input.len() + 1 - at);
        match numbers.below(7) {
            0 if at < input.len() => input[at] ^= 1 << numbers.below(8),
            1 => input.truncate(at),
            2 => drop(input.drain(at..to)),
            3 => drop(input.splice(at..at, TOKENS[numbers.below(TOKENS.len())].iter().copied())),
            4 => {
                let piece = input[at..to].to_vec();
                let times = 1 + numbers.below(50);
                drop(input.splice(at..at, piece.repeat(times)));
            }
            5 => {
                let from = numbers.below(other.len() + 1);
                drop(input.splice(at..to, other[from..].iter().copied()));
            }
            _ => input.extend_from_slice(TOKENS[numbers.below(TOKENS.len())]),
        }
        input.truncate(64 << 10);
    }
}

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "{} is empty", folder.display());
    files.iter().map(|file| std::fs::read(file).unwrap()).collect()
}

fn fuzz(target: &str, read: impl Fn(&[u8])) {
    let iterations: usize = std::env::var("VSPHERE_FUZZ_ITERATIONS").ok().map_or(2000, |text| text.parse().unwrap());
    let seeds = corpus(target);
    seeds.iter().for_each(|seed| read(seed));
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    for _ in 0..iterations {
        let mut input = seeds[numbers.below(seeds.len())].clone();
        mutate(&mut input, &seeds[numbers.below(seeds.len())], &mut numbers);
        read(&input);
    }
}

#[test]
fn no_soap_answer_makes_a_reader_panic() {
    fuzz("soap_response", |input| {
        let _ = (returned_references(input), nothing(input), Content::parse(input), user_of(input), granted(input), current_time(input));
    });
}

#[test]
fn no_inventory_page_makes_the_reader_panic_or_find_more_than_it_was_given() {
    fuzz("inventory_page", |input| {
        if let Ok(page) = Page::parse(input) {
            let read: usize = page.objects.iter().map(|object| object.properties.len() + 1).sum();
            assert!(read <= input.len(), "{read} things out of {} bytes", input.len());
        }
    });
}

#[test]
fn no_page_is_read_otherwise_while_it_arrives_than_as_a_whole() {
    fuzz("inventory_page", |input| {
        let whole = Page::parse(input);
        for part in [61, 4099] {
            assert_eq!(in_parts(input, part).ok(), whole.clone().ok(), "{part}: {}", String::from_utf8_lossy(input));
        }
    });
}

#[test]
fn no_fault_makes_the_reader_panic_and_every_refusal_has_a_name() {
    fuzz("fault", |input| {
        if let Ok(trouble) = fault::parse(input) {
            assert!(trouble.words.len() <= input.len());
        }
        let _ = refusal(input).fault.name();
    });
}

#[test]
fn no_rest_body_makes_the_reader_panic() {
    fuzz("rest_body", |input| {
        for dialect in [Dialect::Rest, Dialect::Api] {
            let _ = dialect.unwrap(input);
            assert!(dialect.refusal(reqwest::StatusCode::BAD_REQUEST, input).words.len() <= input.len());
        }
    });
}

#[test]
fn no_tag_and_no_category_makes_the_reader_panic_and_what_is_read_was_written() {
    fuzz("tag_model", |input| {
        for dialect in [Dialect::Rest, Dialect::Api] {
            let Ok(value) = dialect.unwrap(input) else { continue };
            for one in value.as_array().into_iter().flatten().chain([&value]) {
                let tag = Tag::read(one).map_or(0, |tag| tag.id.len() + tag.name.len() + tag.category.len());
                let category = Category::read(one).map_or(0, |category| category.id.len() + category.types.concat().len());
                let object = [reference(one), reference(&one["object_id"])].map(|found| found.map_or(0, |found| found.id.len()));
                assert!([tag, category, object[0], object[1]].iter().all(|read| *read <= input.len()));
                if let Err(trouble) = done_at_all(one) {
                    assert!(!trouble.fault.name().is_empty());
                }
            }
        }
    });
}

#[test]
fn no_task_makes_the_reader_panic_and_only_one_that_says_so_has_succeeded() {
    fuzz("task_state", |input| {
        for task in Page::parse(input).map(|page| page.objects).unwrap_or_default() {
            match state(task) {
                Ok(State::Done(_)) => assert!(input.windows(7).any(|part| part == b"success")),
                Ok(State::Failed(trouble)) => assert!(!trouble.fault.to_string().is_empty()),
                Ok(State::Under(_)) => {}
                Err(fault) => assert!(!fault.to_string().is_empty()),
            }
        }
    });
}

#[test]
fn no_certificate_and_no_thumbprint_makes_the_reader_panic() {
    fuzz("certificate", |input| {
        let read = Certificate::read(input);
        assert_eq!(read.thumbprint, Thumbprint::of(input));
        let names: usize = read.names.iter().map(String::len).sum();
        assert!(names <= input.len().max(1) * 12, "{names} bytes of names out of {}", input.len());
        let text = String::from_utf8_lossy(input);
        if let Ok(thumbprint) = text.parse::<Thumbprint>() {
            assert_eq!(thumbprint.to_string().parse::<Thumbprint>().unwrap(), thumbprint);
        }
        let _ = (text.parse::<Uuid>(), text.parse::<Ref>());
    });
}

#[test]
fn the_limits_hold_for_the_worst_that_can_be_sent() {
    let head = r#"<e:Envelope xmlns:e="e"><e:Body><RetrievePropertiesExResponse><returnval>"#;
    let deep = format!("{head}{}", "<objects>".repeat(1_000_000));
    assert!(Page::parse(deep.as_bytes()).unwrap_err().to_string().contains("nested deeper"));
    let wide = format!("{head}{}", "<x/>".repeat(500_000));
    assert!(Page::parse(wide.as_bytes()).unwrap_err().to_string().contains("cut off"));
    let declared = format!("{head}<objects {}>", (0..100_000).map(|n| format!("xmlns:n{n}='u' ")).collect::<String>());
    assert!(Page::parse(declared.as_bytes()).is_err());
    let entities = format!("{head}<token>{}</token>", "&a;".repeat(100_000));
    assert!(Page::parse(entities.as_bytes()).unwrap_err().to_string().contains("undeclared entity"));
    assert!(Dialect::Api.unwrap("[".repeat(1_000_000).as_bytes()).is_err());
}
