//! Damage: every text of the corpus with a line lost, doubled or shifted, and cut off anywhere. The loader decides what is damage.

use vmi_intent::cloud_config::{Vcenter, add, convert, remove, vcenters};

use crate::corpus::texts;
use crate::loader::{plain_target, seen};

/// Each line in turn taken out, written twice, and moved by one blank.
fn damaged(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let with = |at: usize, line: String| {
        let line_at = |(index, own): (usize, &&str)| if index == at { line.clone() } else { (*own).to_owned() };
        lines.iter().enumerate().map(line_at).collect::<String>()
    };
    (0..lines.len()).flat_map(|at| [with(at, String::new()), with(at, lines[at].repeat(2)), with(at, format!(" {}", lines[at]))]).collect()
}

fn sorted(text: &str) -> Vec<Vcenter> {
    let mut vcenters = vcenters(text).unwrap();
    vcenters.sort_by(|one, other| one.name.cmp(&other.name));
    vcenters
}

#[test]
fn what_the_loader_refuses_is_refused_and_what_is_accepted_keeps_its_meaning() {
    let new = plain_target();
    let (mut accepted, mut refused) = (0, 0);
    for (name, text) in texts("good") {
        for text in damaged(&text) {
            let Ok(edited) = add(&text, &new, false) else {
                refused += 1;
                continue;
            };
            accepted += 1;
            let before = seen(&text).unwrap_or_else(|said| panic!("{name}: accepted, but the loader does not: {said}\n{text}"));
            let mut after = seen(&edited).unwrap_or_else(|said| panic!("{name}: {said}\n{edited}"));
            let target = after["VirtualCenter"].as_object_mut().unwrap().remove(&new.server);
            assert_eq!(target.unwrap()["VCenterIP"], new.server, "{name}");
            assert_eq!(after, before, "{name}:\n{text}\nbecame\n{edited}");

            let back = remove(&edited, &new.server).unwrap_or_else(|refused| panic!("{name}: {refused}\n{edited}"));
            assert_eq!(sorted(&back), sorted(&text), "{name}:\n{text}\nbecame\n{back}");
        }
    }
    // Were all of one kind, this test would show nothing.
    assert!(accepted > 300 && refused > 300, "{accepted} accepted, {refused} refused");
}

#[test]
fn a_text_cut_off_anywhere_is_edited_or_refused_and_an_edit_can_be_taken_back() {
    let new = plain_target();
    for (name, text) in texts("good").into_iter().chain(texts("refused")) {
        for (end, _) in text.char_indices() {
            let cut = &text[..end];
            let read = vcenters(cut);
            assert_eq!(read.is_err(), remove(cut, "nowhere.example.com").is_err(), "{name} cut at {end}");
            let Ok(edited) = add(cut, &new, true) else { continue };
            let back = remove(&edited, &new.server).unwrap_or_else(|refused| panic!("{name} cut at {end}: {refused}"));
            assert_eq!(sorted(&back), sorted(cut), "{name} cut at {end}");
            assert!(convert(cut).is_ok(), "{name} cut at {end}");
        }
    }
}
