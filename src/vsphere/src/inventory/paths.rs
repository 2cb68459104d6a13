//! Inventory paths: names joined by `/`, with what would be mistaken for structure escaped.

use std::collections::HashMap;

use crate::{
    inventory::{Inventory, Node},
    reference::Ref,
};

/// Deeper trees than vCenter allows are loops.
const DEEPEST: usize = 100;

/// A name as vCenter stores and sends it, as people write it.
pub(crate) fn decoded(name: &str) -> String {
    if !name.contains('%') {
        return name.to_owned();
    }
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        let (character, length) = match rest.get(at + 1..at + 3).map(str::to_ascii_lowercase).as_deref() {
            Some("2f") => ('/', 3),
            Some("5c") => ('\\', 3),
            Some("25") => ('%', 3),
            _ => ('%', 1),
        };
        out.push(character);
        rest = &rest[at + length..];
    }
    out.push_str(rest);
    out
}

/// A name as a part of an inventory path.
///
/// ```
/// assert_eq!(vsphere::escape_name("50% a/b"), "50%25 a%2fb");
/// ```
#[must_use]
pub fn escape_name(name: &str) -> String {
    name.replace('%', "%25").replace('/', "%2f").replace('\\', "%5c")
}

/// Who lies in whom.
pub(super) struct Paths {
    root: Ref,
    parents: HashMap<Ref, (String, Option<Ref>)>,
}

impl Paths {
    /// Only things that can hold others are remembered.
    pub(super) fn of(root: &Ref, found: &Inventory) -> Self {
        let folders = found.folders.iter().map(|one| &one.node);
        let datacenters = found.datacenters.iter().map(|one| &one.node);
        let clusters = found.clusters.iter().map(|one| &one.node);
        let pools = found.resource_pools.iter().map(|one| &one.node);
        let parents = folders
            .chain(datacenters)
            .chain(clusters)
            .chain(pools)
            .map(|node| (node.reference.clone(), (escape_name(&node.name), node.parent.clone())))
            .collect();
        Self { root: root.clone(), parents }
    }

    /// Gives these their paths and sorts them by it.
    pub(super) fn give<T: AsMut<Node> + AsRef<Node>>(&self, items: &mut [T]) {
        for node in items.iter_mut().map(AsMut::as_mut) {
            node.path = self.path(node);
        }
        items.sort_unstable_by(|one, other| one.as_ref().path.cmp(&other.as_ref().path));
    }

    fn path(&self, node: &Node) -> String {
        if node.reference == self.root {
            return "/".into();
        }
        let mut parts = vec![escape_name(&node.name)];
        let mut above = node.parent.as_ref();
        for _ in 0..DEEPEST {
            let Some(parent) = above.filter(|parent| **parent != self.root) else { break };
            let Some((name, next)) = self.parents.get(parent) else { break };
            parts.push(name.clone());
            above = next.as_ref();
        }
        parts.iter().rev().fold(String::new(), |path, part| path + "/" + part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_survives_being_escaped_and_decoded() {
        for name in ["plain", "a/b", "c\\d", "100%", "%2f", "%", "%2", "ä/ö%"] {
            assert_eq!(decoded(&escape_name(name)), name);
        }
        assert_eq!(decoded("a%2Fb%zz%"), "a/b%zz%");
    }
}
