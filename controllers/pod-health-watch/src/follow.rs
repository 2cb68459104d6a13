//! Follows the logs of containers, each in a task of its own, for as long as it is wanted. What is read waits until it was judged:
//! a flood makes the reader slow, it neither takes room nor gets lost.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::{AsyncBufRead, AsyncBufReadExt};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::LogParams;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use vmi_crds::spec::Verdict;
use vmi_kit::Context;
use vmi_kit::metrics::Metrics;

use crate::ledger::{Ledger, Read, Signs, Source};
use crate::lines::{Lines, Place, Reading, Rest};
use crate::rules::{Catalogue, Judged};

const SOON: Duration = Duration::from_millis(500);
const LATER: Duration = Duration::from_secs(10);

/// What all readers share.
pub struct Shared {
    signs: Signs,
    ledger: Mutex<Ledger>,
    muted: Mutex<Arc<[String]>>,
    bump: watch::Sender<u64>,
}

/// A log that is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Which.
    pub source: Source,
    /// From when on; all of it where the pod was made for it.
    pub since: Option<Timestamp>,
    /// Whether a container of the pod has ended before: then what it said before is read too.
    pub crashed: bool,
}

/// The readers, which end with it.
pub struct Readers {
    shared: Arc<Shared>,
    tasks: BTreeMap<Source, Task>,
}

struct Task(AbortHandle);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Shared {
    /// Nothing read yet.
    pub fn new(signs: Signs) -> Arc<Self> {
        Arc::new(Self { signs, ledger: Mutex::default(), muted: Mutex::new(Arc::default()), bump: watch::Sender::new(0) })
    }

    /// What the logs have told so far.
    pub fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes when the ledger does so that a judgement may change.
    pub fn wakes(&self) -> watch::Receiver<u64> {
        self.bump.subscribe()
    }

    /// Lines about these nodes mean nothing from now on.
    pub fn mute(&self, nodes: Vec<String>) {
        *self.muted.lock().unwrap_or_else(PoisonError::into_inner) = nodes.into();
    }

    /// Nodes that lines mean nothing about.
    pub fn muted(&self) -> Arc<[String]> {
        Arc::clone(&self.muted.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn wake_if(&self, changed: bool) {
        if changed {
            self.bump.send_modify(|times| *times += 1);
        }
    }
}

impl Readers {
    /// None yet.
    pub fn new(shared: Arc<Shared>) -> Self {
        Self { shared, tasks: BTreeMap::new() }
    }

    /// Ends those that are not wanted any more, and begins those that are missing or have ended by themselves.
    pub fn keep(&mut self, cx: &Arc<Context>, catalogue: &Arc<Catalogue>, wanted: Vec<Wanted>) {
        let unwanted = |source: &Source| !wanted.iter().any(|wanted| wanted.source == *source);
        let ended: Vec<Source> =
            self.tasks.iter().filter(|(source, task)| unwanted(source) || task.0.is_finished()).map(|(s, _)| s.clone()).collect();
        for source in ended {
            self.tasks.remove(&source);
            self.shared.ledger().forget(&source);
        }
        for Wanted { source, since, crashed } in wanted {
            if self.tasks.contains_key(&source) {
                continue;
            }
            self.shared.ledger().read(&source, Read::Begun);
            let listener = Listener {
                source: source.clone(),
                catalogue: Arc::clone(catalogue),
                shared: Arc::clone(&self.shared),
                metrics: cx.metrics.clone(),
            };
            let reader = Reader { listener, since, crashed, cx: Arc::clone(cx) };
            self.tasks.insert(source, Task(tokio::spawn(reader.run()).abort_handle()));
        }
    }

    /// Ends all, and forgets what they read.
    pub fn stop(&mut self) {
        for source in std::mem::take(&mut self.tasks).into_keys() {
            self.shared.ledger().forget(&source);
        }
    }
}

struct Reader {
    listener: Listener,
    since: Option<Timestamp>,
    crashed: bool,
    cx: Arc<Context>,
}

/// Wakes the controller when a reader ends, however it ends: the controller begins it again if it is still wanted.
struct Ends(Arc<Shared>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.wake_if(true);
    }
}

impl Reader {
    /// Reads what there is, so that it is known when that was all, and then follows. Ends when this process no longer leads.
    async fn run(self) {
        let _ends = Ends(Arc::clone(&self.listener.shared));
        let mut leads = self.cx.leadership();
        tokio::select! {
            () = self.read() => {}
            _ = leads.wait_for(|leads| !*leads) => {}
        }
    }

    async fn read(&self) {
        let Listener { source, shared, .. } = &self.listener;
        let api: Api<Pod> = Api::namespaced(self.cx.client.clone(), source.namespace);
        let mut place = Place::default();
        let mut ended = self.crashed;
        let mut follow = false;
        let mut pause = SOON;
        loop {
            let before = place;
            let outcome = match if ended { self.before_its_end(&api, &mut place).await } else { Ok(()) } {
                Ok(()) => self.stream(&api, follow, false, &mut place).await,
                failed => failed,
            };
            // Whenever a stream has ended, the container may have, and begun again: its last words are read before what it says now.
            ended = follow;
            match outcome {
                Ok(()) => {
                    let changed = shared.ledger().read(source, Read::ToTheEnd);
                    shared.wake_if(changed);
                    if !std::mem::replace(&mut follow, true) {
                        continue;
                    }
                }
                Err(error) => {
                    let error = error.to_string();
                    tracing::debug!(pod = source.pod, container = source.container, error, "cannot read a log; trying again");
                    // Once read to its end, a log whose container is about to start again is no news.
                    if !follow {
                        let changed = shared.ledger().read(source, Read::Not(error));
                        shared.wake_if(changed);
                    }
                }
            }
            if place != before {
                pause = SOON;
            }
            // Nothing tells when a container has started, or when an apiserver that went away is back.
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LATER);
        }
    }

    /// Reads what the container said before it ended last, if it has.
    async fn before_its_end(&self, api: &Api<Pod>, place: &mut Place) -> Result<(), Broken> {
        match self.stream(api, false, true, place).await {
            // There was no life before this one, or nothing is left of it.
            Err(Broken::Refused(kube::Error::Api(status))) if matches!(status.code, 400 | 404) => Ok(()),
            other => other,
        }
    }

    async fn stream(&self, api: &Api<Pod>, follow: bool, previous: bool, place: &mut Place) -> Result<(), Broken> {
        let Source { pod, container, .. } = &self.listener.source;
        let params = LogParams {
            container: Some((*container).to_owned()),
            follow,
            previous,
            since_time: place.since().or(self.since).map(second_of),
            timestamps: true,
            ..LogParams::default()
        };
        let stream = api.log_stream(pod, &params).await?;
        let rest = if previous { Rest::IsALine } else { Rest::ComesAgain };
        Ok(self.listener.lines(stream, rest, place).await?)
    }
}

/// The whole second that holds a time, since which a log can be asked for. Left to itself the client would ask since the nearest one,
/// which may be the next, and miss what was said before that.
fn second_of(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

/// Why a log was not read to its end.
#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error("{0}")]
    Refused(#[from] kube::Error),
    #[error("{0}")]
    Ended(#[from] std::io::Error),
}

/// Hears what a log says.
struct Listener {
    source: Source,
    catalogue: Arc<Catalogue>,
    shared: Arc<Shared>,
    metrics: Metrics,
}

impl Listener {
    async fn lines(&self, stream: impl AsyncBufRead, rest: Rest, place: &mut Place) -> std::io::Result<()> {
        let mut stream = std::pin::pin!(stream);
        let mut reading = Reading::from(*place);
        let mut lines = Lines::default();
        let outcome = loop {
            let piece = match stream.fill_buf().await {
                Ok([]) if rest == Rest::IsALine => {
                    lines.end(|line| self.line(&mut reading, line));
                    self.count_skipped(&mut lines);
                    break Ok(());
                }
                Ok([]) => break Ok(()),
                Ok(piece) => piece,
                Err(error) => break Err(error),
            };
            lines.take(piece, |line| self.line(&mut reading, line));
            // Not at its end: a stream that is followed goes on for hours, and may be ended from outside.
            self.count_skipped(&mut lines);
            let taken = piece.len();
            stream.consume_unpin(taken);
        };
        *place = reading.place();
        outcome
    }

    fn count_skipped(&self, lines: &mut Lines) {
        let skipped = lines.skipped();
        if skipped > 0 {
            self.metrics.log_skipped.with_label_values(&[self.source.component]).inc_by(skipped);
        }
    }

    fn line(&self, reading: &mut Reading, line: &[u8]) {
        let Some((at, text)) = reading.next(line) else { return };
        let component = self.source.component;
        if let Some(sign) = self.shared.signs.of(component, text) {
            let changed = self.shared.ledger().good(&self.source, &sign, at);
            self.shared.wake_if(changed);
        }
        let rule = match self.catalogue.judge(Some(component), text) {
            Judged::Known(rule) if rule.verdict != Verdict::Benign => rule,
            Judged::UnknownError => self.catalogue.unknown(),
            Judged::Known(_) | Judged::Nothing => return,
        };
        if !rule.concerns(text, &self.shared.muted()) {
            return;
        }
        self.metrics.log_failures.with_label_values(&[component, &rule.id]).inc();
        let quote = || self.catalogue.quote(text);
        let mut ledger = self.shared.ledger();
        if rule.pattern.is_empty() {
            ledger.unknown(&self.source, quote);
        }
        let changed = ledger.bad(&self.source, rule, at, quote);
        drop(ledger);
        self.shared.wake_if(changed);
    }
}

#[cfg(test)]
mod tests;
