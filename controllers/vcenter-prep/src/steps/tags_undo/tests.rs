use vsphere::Cardinality;

use super::*;
use crate::record::TagOn;

fn category(name: &str) -> Category {
    Category { id: format!("c:{name}"), name: name.into(), description: String::new(), cardinality: Cardinality::Single, types: Vec::new() }
}

fn row(category: &str, name: &str, objects: &[&str]) -> OnObjects {
    let tag = Tag { id: format!("t:{name}"), name: name.into(), category: format!("c:{category}") };
    OnObjects { tag, objects: objects.iter().map(|text| text.parse().unwrap()).collect() }
}

fn made() -> TagsMade {
    TagsMade {
        categories: vec!["region".into()],
        tags: vec![TagName { category: "region".into(), name: "r".into() }],
        attachments: vec![TagOn { category: "region".into(), tag: "r".into(), path: "/dc".into(), object: "Datacenter:dc-1".into() }],
    }
}

fn back(rows: Vec<OnObjects>) -> Back {
    decide(&made(), &Now { categories: vec![(category("region"), rows)] })
}

#[test]
fn what_we_made_and_nobody_uses_goes_with_all_it_was_on() {
    let back = back(vec![row("region", "r", &["Datacenter:dc-1"])]);
    assert_eq!((back.detach.len(), back.tags.len(), back.categories.len(), back.left.len()), (1, 1, 1, 0));
    assert_eq!(back.words("vc").len(), 3);
}

#[test]
fn a_tag_on_something_of_others_stays_with_its_category_and_is_listed() {
    let back = back(vec![row("region", "r", &["Datacenter:dc-1", "Datacenter:dc-2"])]);
    assert_eq!(back.detach.len(), 1, "only from where we attached it");
    assert_eq!((back.tags.len(), back.categories.len(), back.left.len()), (0, 0, 2));
}

#[test]
fn a_category_with_a_tag_of_others_stays() {
    let back = back(vec![row("region", "r", &[]), row("region", "theirs", &[])]);
    assert_eq!((back.tags.len(), back.categories.len(), back.left.len()), (1, 0, 1));
    assert_eq!(back.tags[0].name, "r");
}

#[test]
fn what_was_there_before_is_only_detached() {
    let made = TagsMade { categories: Vec::new(), tags: Vec::new(), ..made() };
    let back = decide(&made, &Now { categories: vec![(category("region"), vec![row("region", "r", &["Datacenter:dc-1"])])] });
    assert_eq!((back.detach.len(), back.tags.len(), back.categories.len(), back.left.len()), (1, 0, 0, 0));
}

#[test]
fn what_somebody_else_took_away_is_nothing_to_undo() {
    assert_eq!(decide(&made(), &Now::default()), Back::default());
}
