//! In which order reports go into the vmi. The apiserver computes reports on one object that come at the same time again and again,
//! until each has been the only one; a hand-over would wait for all of them. So what somebody may wait for goes ahead, and words
//! that only a reader waits for go one after the other, while nothing else is on its way.

use tokio::sync::{Mutex, MutexGuard, watch};

/// The way into the vmi, for all controllers of this process.
#[derive(Default)]
pub struct Lane {
    ahead: watch::Sender<usize>,
    behind: Mutex<()>,
}

/// As long as it is kept, the report is on its way.
#[must_use]
pub enum Pass<'a> {
    /// Went ahead.
    Ahead(&'a Lane),
    /// Came after the others, and is kept so that the next one waits.
    Behind(MutexGuard<'a, ()>),
}

impl Lane {
    /// At once.
    pub fn ahead(&self) -> Pass<'_> {
        self.ahead.send_modify(|count| *count += 1);
        Pass::Ahead(self)
    }

    /// When nothing is ahead and the words that came before are written.
    pub async fn behind(&self) -> Pass<'_> {
        let turn = self.behind.lock().await;
        // It fails only without a sender, and that is here.
        let _ = self.ahead.subscribe().wait_for(|count| *count == 0).await;
        Pass::Behind(turn)
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        if let Self::Ahead(lane) = self {
            lane.ahead.send_modify(|count| *count -= 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn what_is_awaited_never_waits_and_words_wait_for_it_and_for_each_other() {
        let lane = Lane::default();
        let first = lane.ahead();
        let second = lane.ahead();
        let mut words = Box::pin(lane.behind());
        assert!(words.as_mut().now_or_never().is_none());
        drop(first);
        assert!(words.as_mut().now_or_never().is_none(), "one is still ahead");
        drop(second);
        let words = words.now_or_never().expect("nothing is ahead any more");
        let mut more = Box::pin(lane.behind());
        assert!(more.as_mut().now_or_never().is_none(), "words follow one another");
        drop(lane.ahead());
        drop(words);
        assert!(more.now_or_never().is_some());
    }
}
