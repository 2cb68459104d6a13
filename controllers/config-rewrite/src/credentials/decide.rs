//! Which secrets are written, and by whom: pure. The cloud credential operator copies the root secret whenever that changes; a copy
//! that somebody edited since it does not repair.

use std::collections::BTreeMap;

use vmi_intent::secret::{Data, Refused};
use vmi_site::credentials::{Found, Place};

use super::pairs::{self, Pairs, Saved};

/// What is to be done.
#[derive(Default)]
pub struct Decision {
    /// Secrets to be written, the first first.
    pub writes: Vec<(Place, Data)>,
    /// Secrets that the cloud credential operator has to write.
    pub awaited: Vec<Place>,
    /// Secrets and servers of pairs that somebody else changed since and that stay.
    pub changed_by_others: Vec<(Place, String)>,
}

/// Adds the pairs. An error names the secret that cannot be extended.
pub fn add(found: &Found, wanted: &Pairs) -> Result<Decision, (Place, Refused)> {
    let mut decision = Decision::default();
    let write = |place: &Place, data: &Data| pairs::added(data, wanted).map_err(|refused| (place.clone(), refused));
    if let Some((place, data)) = &found.root {
        decision.writes.extend(write(place, data)?.map(|next| (place.clone(), next)));
    }
    let root_changes = !decision.writes.is_empty();
    for component in &found.components {
        if component.data.as_ref().is_some_and(|data| pairs::holds(data, wanted)) {
            continue;
        }
        match &component.data {
            _ if found.copies(component, root_changes) => decision.awaited.push(component.place.clone()),
            Some(data) => decision.writes.extend(write(&component.place, data)?.map(|next| (component.place.clone(), next))),
            // Nobody makes it: that component is not installed.
            None => {}
        }
    }
    Ok(decision)
}

/// Takes the pairs back: the root first, then what nobody else takes back.
pub fn take_back(found: &Found, saved: &BTreeMap<Place, Saved>, wanted: &Pairs, salt: &str) -> Decision {
    let mut decision = Decision::default();
    let root_saved = found.root.as_ref().and_then(|(place, _)| saved.get(place));
    if let (Some((place, data)), Some(saved)) = (&found.root, root_saved) {
        let back = pairs::taken_back(data, saved, wanted, salt);
        decision.writes.extend(back.data.map(|next| (place.clone(), next)));
        decision.changed_by_others.extend(back.changed_by_others.into_iter().map(|server| (place.clone(), server)));
    }
    let root_changes = !decision.writes.is_empty();
    for component in &found.components {
        let Some(data) = &component.data else { continue };
        // What was copied is as much this step's as what it wrote itself.
        let own = saved.get(&component.place);
        let Some(saved) = own.or(root_saved.filter(|_| found.copied)) else { continue };
        let back = pairs::taken_back(data, saved, wanted, salt);
        match back.data {
            Some(_) if found.copies(component, root_changes) => decision.awaited.push(component.place.clone()),
            Some(next) => decision.writes.push((component.place.clone(), next)),
            None => {}
        }
        decision.changed_by_others.extend(back.changed_by_others.into_iter().map(|server| (component.place.clone(), server)));
    }
    decision
}

#[cfg(test)]
mod tests {
    use vmi_intent::secret::Pair;
    use vmi_site::credentials::Component;

    use super::*;

    fn place(name: &str) -> Place {
        ("ns".to_owned(), name.to_owned())
    }

    fn data(servers: &[&str]) -> Data {
        let pair = |server: &&str| [(format!("{server}.username"), b"u@d".to_vec()), (format!("{server}.password"), b"p".to_vec())];
        servers.iter().flat_map(pair).collect()
    }

    fn wanted() -> Pairs {
        Pairs::from([("b".to_owned(), Pair::new("b", "u@d", "p").unwrap())])
    }

    /// Root and components by the servers they hold; a component's name ending in `*` is synced.
    fn found(copied: bool, root: Option<&[&str]>, components: &[(&str, Option<&[&str]>)]) -> Found {
        let component = |(name, servers): &(&str, Option<&[&str]>)| Component {
            place: place(name.trim_end_matches('*')),
            data: servers.map(data),
            synced: name.ends_with('*'),
        };
        Found { root: root.map(|servers| (place("root"), data(servers))), copied, components: components.iter().map(component).collect() }
    }

    fn names(decision: &Decision) -> (Vec<&str>, Vec<&str>) {
        let writes = decision.writes.iter().map(|((_, name), _)| name.as_str()).collect();
        (writes, decision.awaited.iter().map(|(_, name)| name.as_str()).collect())
    }

    const OLD: Option<&[&str]> = Some(&["a"]);
    const NEW: Option<&[&str]> = Some(&["a", "b"]);

    #[test]
    fn pairs_are_written_where_nobody_copies_them_and_awaited_where_somebody_does() {
        type Case<'a> = (&'a str, Found, &'a [&'a str], &'a [&'a str]);
        let cases: &[Case<'_>] = &[
            (
                "the root is written first, the rest is copied",
                found(true, OLD, &[("one*", OLD), ("two*", OLD)]),
                &["root"],
                &["one", "two"],
            ),
            ("after that the copies are awaited", found(true, NEW, &[("one", OLD), ("two*", NEW)]), &[], &["one"]),
            ("a copy made before its status is enough", found(true, NEW, &[("one", NEW)]), &[], &[]),
            ("an edited copy is not repaired by anybody else", found(true, NEW, &[("one*", OLD)]), &["one"], &[]),
            ("a secret that is to be made is awaited", found(true, NEW, &[("one*", None)]), &[], &["one"]),
            ("by hand all are written", found(false, OLD, &[("one", OLD), ("two", OLD)]), &["root", "one", "two"], &[]),
            ("without a root too", found(false, None, &[("one", OLD), ("two", NEW)]), &["one"], &[]),
            ("by hand a missing secret belongs to nobody", found(false, None, &[("one", None)]), &[], &[]),
            ("all is there", found(true, NEW, &[("one*", NEW)]), &[], &[]),
        ];
        for (what, found, writes, awaited) in cases {
            assert_eq!(names(&add(found, &wanted()).unwrap()), (writes.to_vec(), awaited.to_vec()), "{what}");
        }
    }

    #[test]
    fn a_secret_that_cannot_be_extended_is_named() {
        let mut broken = found(false, OLD, &[("one", OLD)]);
        broken.components[0].data.as_mut().unwrap().insert("note".to_owned(), Vec::new());
        let Err((place, _)) = add(&broken, &wanted()) else { panic!("a foreign key") };
        assert_eq!(place.1, "one");
    }

    #[test]
    fn pairs_are_taken_back_from_the_root_first_and_never_from_what_was_not_written() {
        let saved = |names: &[&str]| names.iter().map(|name| (place(name), pairs::remembered(&data(&["a"]), &wanted(), "uid"))).collect();
        type Case<'a> = (&'a str, Found, &'a [&'a str], &'a [&'a str], &'a [&'a str]);
        let cases: &[Case<'_>] = &[
            ("the root first", found(true, NEW, &[("one*", NEW)]), &["root"], &["root"], &["one"]),
            ("then the copies follow", found(true, OLD, &[("one", NEW), ("two*", OLD)]), &["root"], &[], &["one"]),
            ("an edited copy that was written stays nobody's else", found(true, OLD, &[("one*", NEW)]), &["root", "one"], &["one"], &[]),
            ("by hand each that was written", found(false, NEW, &[("one", NEW), ("two", NEW)]), &["root", "one"], &["root", "one"], &[]),
            ("what was there before is left", found(true, NEW, &[("one*", NEW)]), &[], &[], &[]),
        ];
        for (what, found, written, writes, awaited) in cases {
            let decision = take_back(found, &saved(written), &wanted(), "uid");
            assert_eq!(names(&decision), (writes.to_vec(), awaited.to_vec()), "{what}");
            assert!(decision.changed_by_others.is_empty(), "{what}");
        }
    }
}
