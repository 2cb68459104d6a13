//! The wire log: one structured event per call, a bounded memory of the last ones, and their export.

use std::{
    collections::VecDeque,
    fmt::Write,
    hash::{BuildHasher, RandomState},
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use serde::Serialize;

use crate::{error::Trouble, secret::Masker};

/// One call, however often it was sent.
#[derive(Debug, Clone, Serialize)]
pub struct Call {
    /// Counts up by one with each call of this memory.
    pub sequence: u64,
    /// When it began.
    pub at: jiff::Timestamp,
    /// The id sent along; vCenter writes it to its own log.
    pub operation: String,
    /// The vCenter.
    pub server: String,
    /// `soap` or `rest`.
    pub api: &'static str,
    /// The SOAP method, or the REST verb and path.
    pub method: String,
    /// The object asked, where there is one.
    pub object: Option<String>,
    /// How long it took, waiting for its turn and repetitions included.
    pub duration_ms: f64,
    /// Bytes of request bodies sent.
    pub bytes_out: u64,
    /// Bytes of answer bodies received.
    pub bytes_in: u64,
    /// `ok`, `cancelled` if the caller did not wait for the end, or the fault's name.
    pub result: String,
    /// How often it was repeated.
    pub retries: u32,
}

/// The memory of the last calls. Clones share it.
///
/// ```
/// let calls = vsphere::Calls::new(100);
/// assert!(calls.recent().is_empty());
/// assert!(calls.csv().starts_with("sequence,at,operation,server,api,method,object,"));
/// assert_eq!(calls.json(), "[]");
/// ```
#[derive(Debug, Clone)]
pub struct Calls(Arc<Mutex<Ring>>);

#[derive(Debug)]
struct Ring {
    calls: VecDeque<Call>,
    capacity: usize,
    next: u64,
}

impl Default for Calls {
    fn default() -> Self {
        Self::new(256)
    }
}

impl Calls {
    /// A memory for that many calls; older ones are forgotten.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self(Arc::new(Mutex::new(Ring { calls: VecDeque::new(), capacity: capacity.max(1), next: 0 })))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Ring> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, mut call: Call) {
        let mut ring = self.lock();
        call.sequence = ring.next;
        ring.next += 1;
        if ring.calls.len() == ring.capacity {
            ring.calls.pop_front();
        }
        ring.calls.push_back(call);
    }

    /// The calls still remembered, oldest first.
    #[must_use]
    pub fn recent(&self) -> Vec<Call> {
        self.since(0)
    }

    /// The remembered calls from this sequence number on; ask with the last one plus one to miss and repeat none.
    #[must_use]
    pub fn since(&self, sequence: u64) -> Vec<Call> {
        self.lock().calls.iter().filter(|call| call.sequence >= sequence).cloned().collect()
    }

    /// The remembered calls as CSV with a heading.
    #[must_use]
    pub fn csv(&self) -> String {
        let mut out = String::from("sequence,at,operation,server,api,method,object,duration_ms,bytes_out,bytes_in,result,retries\n");
        for call in self.recent() {
            let Call { sequence, at, operation, server, api, method, object, duration_ms, bytes_out, bytes_in, result, retries } = call;
            let [server, method, object, result] = [server, method, object.unwrap_or_default(), result].map(|text| quoted(&text));
            // Writing to a String cannot fail.
            let _ = writeln!(
                out,
                "{sequence},{at},{operation},{server},{api},{method},{object},{duration_ms:.3},{bytes_out},{bytes_in},{result},{retries}"
            );
        }
        out
    }

    /// The remembered calls as a JSON array.
    #[must_use]
    pub fn json(&self) -> String {
        serde_json::to_string(&self.recent()).unwrap_or_else(|_| "[]".into())
    }
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

/// A call under way. One that is dropped before its end was cancelled by its caller, and is told as such.
pub(crate) struct Entry {
    call: Call,
    started: Instant,
    calls: Calls,
}

impl Drop for Entry {
    fn drop(&mut self) {
        if self.call.result.is_empty() {
            self.call.result = "cancelled".into();
        }
        self.call.duration_ms = self.started.elapsed().as_secs_f64() * 1000.0;
        let call = &self.call;
        tracing::debug!(
            target: "vsphere::call",
            operation = call.operation, server = call.server, api = call.api, method = call.method,
            object = call.object, duration_ms = call.duration_ms, bytes_out = call.bytes_out, bytes_in = call.bytes_in,
            result = call.result, retries = call.retries, "vSphere call"
        );
        self.calls.push(call.clone());
    }
}

impl Entry {
    pub(crate) fn begin(server: &str, api: &'static str, method: &str, object: Option<String>, calls: &Calls) -> Self {
        let call = Call {
            sequence: 0,
            at: jiff::Timestamp::now(),
            operation: operation_id(),
            server: server.to_owned(),
            api,
            method: method.to_owned(),
            object,
            duration_ms: 0.0,
            bytes_out: 0,
            bytes_in: 0,
            result: String::new(),
            retries: 0,
        };
        Self { call, started: Instant::now(), calls: calls.clone() }
    }

    pub(crate) fn operation(&self) -> &str {
        &self.call.operation
    }

    pub(crate) fn repeated(&mut self) {
        self.call.retries += 1;
    }

    pub(crate) fn sent(&mut self, bytes: usize) {
        self.call.bytes_out += bytes as u64;
    }

    pub(crate) fn received(&mut self, bytes: usize) {
        self.call.bytes_in += bytes as u64;
    }

    /// Says how the call ended, and makes the error that names it; the drop that follows tells both logs.
    pub(crate) fn end<T>(mut self, outcome: Result<T, Trouble>, masker: &Masker) -> crate::Result<T> {
        match outcome {
            Ok(value) => {
                self.call.result = "ok".into();
                Ok(value)
            }
            Err(trouble) => {
                let trouble = trouble.masked(masker);
                let name = trouble.fault.name();
                self.call.result = if name.is_empty() { "unnamed".into() } else { name.to_owned() };
                let Call { server, method, object, operation, .. } = &self.call;
                Err(crate::Error::new(trouble, server, method, object.as_deref(), operation))
            }
        }
    }
}

/// Unique enough to be searched for in the logs of a busy vCenter.
fn operation_id() -> String {
    static PROCESS: OnceLock<u64> = OnceLock::new();
    static COUNT: AtomicU64 = AtomicU64::new(1);
    let process = PROCESS.get_or_init(|| RandomState::new().hash_one("operation"));
    format!("op-{:08x}-{}", process & 0xffff_ffff, COUNT.fetch_add(1, Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Fault;

    fn record(calls: &Calls, method: &str, outcome: Result<(), Trouble>) {
        let _ = Entry::begin("vc", "soap", method, Some("Folder:group-v3".into()), calls).end(outcome, &Masker::default());
    }

    #[test]
    fn the_memory_is_bounded_and_can_be_read_on_from_where_one_was() {
        let calls = Calls::new(3);
        (0..10).for_each(|_| record(&calls, "CurrentTime", Ok(())));
        let numbers = |calls: Vec<Call>| calls.iter().map(|call| call.sequence).collect::<Vec<_>>();
        assert_eq!(numbers(calls.recent()), [7, 8, 9]);
        assert_eq!(numbers(calls.since(9)), [9]);
    }

    #[test]
    fn the_export_quotes_what_would_break_a_table_and_names_the_fault() {
        let calls = Calls::new(3);
        record(&calls, "GET /a,\"b\"", Err(Fault::InUse.into()));
        assert!(calls.csv().contains(r#","GET /a,""b""",Folder"#), "{}", calls.csv());
        assert!(calls.csv().contains(",InUse,0\n"));
        let json: serde_json::Value = serde_json::from_str(&calls.json()).unwrap();
        assert_eq!(json[0]["object"], "Folder:group-v3");
    }

    #[test]
    fn a_call_whose_caller_goes_away_is_remembered_as_cancelled() {
        let calls = Calls::new(3);
        drop(Entry::begin("vc", "soap", "CurrentTime", None, &calls));
        assert_eq!(calls.recent()[0].result, "cancelled");
    }

    #[test]
    fn a_name_a_server_gave_to_its_fault_is_masked_and_cut_before_anybody_sees_it() {
        let calls = Calls::new(3);
        let masker = Masker::default();
        masker.remember(&"marker-secret".into());
        let fault = Fault::Other { kind: format!("marker-secret\n{}", "x".repeat(5000)) };
        let trouble = Trouble { fault, words: "marker-secret ".repeat(1000) };
        let error = Entry::begin("vc", "rest", "GET", None, &calls).end::<()>(Err(trouble), &masker).unwrap_err();
        assert!(calls.recent()[0].result.len() <= 200 && error.words().len() <= 1024);
        let shown = format!("{error} {error:?} {} {}", calls.csv(), calls.json());
        assert!(shown.contains("***") && !shown.contains("marker-secret"), "{shown}");
        assert_eq!(calls.csv().lines().count(), 2, "no line break of a server breaks the table");
    }

    #[test]
    fn every_call_has_an_operation_id_of_its_own() {
        assert_ne!(operation_id(), operation_id());
    }
}
