//! Own writes as the apiserver answered them, until the watch tells of them: nobody waits for that, or acts on what was before.

use std::sync::Arc;

use kube::ResourceExt;
use kube::api::DynamicObject;
use kube::runtime::watcher::Event;

/// Of one watch.
#[derive(Default)]
pub(crate) struct Answers {
    /// The newest version that the watch has told of. What is older may be gone again.
    newest: u64,
    /// The newest version that a list under way is known to hold.
    listed: u64,
    kept: Vec<Arc<DynamicObject>>,
}

impl Answers {
    /// Keeps an answer, and says whether it is news.
    pub(crate) fn keep(&mut self, written: DynamicObject) -> bool {
        let news = version(&written) > self.newest && !self.knows(&written);
        if news {
            self.kept.retain(|kept| !same(kept, &written));
            self.kept.push(Arc::new(written));
        }
        news
    }

    /// Drops what the watch has told of by now, and says whether this is news.
    pub(crate) fn told(&mut self, event: &Event<DynamicObject>) -> bool {
        match event {
            // It is asked for from now on: what was answered before is in it, or gone again.
            Event::Init => self.listed = self.kept.iter().map(|kept| version(kept)).max().unwrap_or_default(),
            Event::InitApply(object) => self.listed = self.listed.max(version(object)),
            Event::InitDone => self.settle(self.listed),
            Event::Apply(object) => {
                let news = !self.knows(object);
                self.settle(version(object));
                return news;
            }
            Event::Delete(object) => self.settle(version(object)),
        }
        matches!(event, Event::InitDone | Event::Delete(_))
    }

    fn knows(&self, object: &DynamicObject) -> bool {
        self.kept.iter().any(|kept| same(kept, object) && version(kept) >= version(object))
    }

    /// What the watch has told, with what was answered since of what is asked for.
    pub(crate) fn over(&self, mut told: Vec<Arc<DynamicObject>>, asked: impl Fn(&DynamicObject) -> bool) -> Vec<Arc<DynamicObject>> {
        for kept in self.kept.iter().filter(|kept| asked(kept)) {
            match told.iter_mut().find(|told| same(told, kept)) {
                Some(told) if version(told) >= version(kept) => {}
                Some(told) => *told = Arc::clone(kept),
                None => told.push(Arc::clone(kept)),
            }
        }
        told
    }

    fn settle(&mut self, version: u64) {
        self.newest = self.newest.max(version);
        self.kept.retain(|kept| self::version(kept) > version);
    }
}

fn same(a: &DynamicObject, b: &DynamicObject) -> bool {
    a.metadata.name == b.metadata.name && a.metadata.namespace == b.metadata.namespace
}

/// Versions of one kind grow. One that cannot be read is never newer: then the watch alone counts.
fn version(object: &DynamicObject) -> u64 {
    object.resource_version().and_then(|version| version.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(name: &str, version: u64) -> DynamicObject {
        let mut object = DynamicObject::new(name, &crate::kind::VMI.resource());
        object.metadata.resource_version = Some(version.to_string());
        object
    }

    fn seen(answers: &Answers, told: &[(&str, u64)]) -> Vec<(String, u64)> {
        let told = told.iter().map(|(name, version)| Arc::new(object(name, *version))).collect();
        answers.over(told, |_| true).iter().map(|object| (object.name_any(), version(object))).collect()
    }

    #[test]
    fn an_answer_counts_until_the_watch_has_told_of_it_and_its_echo_is_no_news() {
        let mut answers = Answers::default();
        assert!(answers.keep(object("a", 5)) && answers.keep(object("a", 6)) && !answers.keep(object("a", 5)));
        for (told, wanted) in [(&[("a", 4)][..], 6), (&[], 6), (&[("a", 7)], 7)] {
            assert_eq!(seen(&answers, told), [("a".to_owned(), wanted)], "what is newer counts: {told:?}");
        }
        assert!(!answers.told(&Event::Apply(object("a", 5))) && !answers.told(&Event::Apply(object("a", 6))));
        assert_eq!(seen(&answers, &[]), [], "told of, it may be gone again");
        assert!(answers.told(&Event::Apply(object("a", 7))), "somebody else's");
    }

    #[test]
    fn what_is_gone_does_not_come_back() {
        let mut answers = Answers::default();
        answers.told(&Event::Delete(object("a", 6)));
        assert!(!answers.keep(object("a", 5)), "deleted before the answer came");
        answers.keep(object("a", 8));
        assert!(!answers.told(&Event::Init) && !answers.told(&Event::InitApply(object("b", 3))));
        answers.keep(object("c", 9));
        assert_eq!(seen(&answers, &[]).len(), 2, "until the list is there, nothing is dropped");
        assert!(answers.told(&Event::InitDone));
        assert_eq!(seen(&answers, &[("b", 3)])[1..], [("c".to_owned(), 9)], "what was answered while it was listed may not be in it");
    }
}
