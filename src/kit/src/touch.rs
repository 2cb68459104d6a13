//! What a controller reads and writes in the cluster, as data: the watches, the rights and the proof that it reads nothing else
//! all follow from it.

use crate::kind::Kind;

/// Stands for the operator's own namespace, which is known only when it runs.
pub const OWN: &str = "$own";

/// One kind of object, perhaps only in a namespace, perhaps only of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    /// The kind.
    pub kind: Kind,
    /// Only there; empty: everywhere.
    pub namespace: &'static str,
    /// Only this one; empty: all.
    pub name: &'static str,
    /// Whether a copy is kept by a watch. What is not watched is read when it is needed.
    pub watched: bool,
    /// Whether it may be kept from us: then it counts as not being there.
    pub optional: bool,
    /// What is done to it besides reading.
    pub writes: &'static [&'static str],
}

/// Reads all objects of the kind.
pub const fn reads(kind: Kind) -> Touch {
    Touch { kind, namespace: "", name: "", watched: true, optional: false, writes: &[] }
}

impl Touch {
    /// Only in this namespace.
    pub const fn within(mut self, namespace: &'static str) -> Self {
        self.namespace = namespace;
        self
    }

    /// Only of this name.
    pub const fn named(mut self, name: &'static str) -> Self {
        self.name = name;
        self
    }

    /// Writes it too, by these verbs.
    pub const fn writes(mut self, verbs: &'static [&'static str]) -> Self {
        self.writes = verbs;
        self
    }

    /// Reads it only when it is needed.
    pub const fn unwatched(mut self) -> Self {
        self.watched = false;
        self
    }

    /// Does without it where the account has no right to it: only some clusters have it.
    pub const fn optional(mut self) -> Self {
        self.optional = true;
        self
    }

    /// Whether this one covers an object.
    pub fn covers(&self, kind: Kind, namespace: &str, name: &str, own: &str) -> bool {
        let here = if self.namespace == OWN { own } else { self.namespace };
        self.kind == kind && (here.is_empty() || here == namespace) && (self.name.is_empty() || self.name == name)
    }
}
