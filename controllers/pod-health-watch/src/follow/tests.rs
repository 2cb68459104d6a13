use std::pin::Pin;
use std::task::{Context as Poller, Poll};

use futures::{AsyncRead, FutureExt as _, StreamExt as _, TryStreamExt as _, stream};

use super::*;

/// A log that never waits: the same pieces again and again, until all were read.
struct Flood {
    piece: Arc<Vec<u8>>,
    at: usize,
    pieces: usize,
}

impl AsyncRead for Flood {
    fn poll_read(mut self: Pin<&mut Self>, poller: &mut Poller<'_>, room: &mut [u8]) -> Poll<std::io::Result<usize>> {
        let mut stream = self.as_mut();
        match stream.as_mut().poll_fill_buf(poller) {
            Poll::Ready(Ok(piece)) => {
                let taken = piece.len().min(room.len());
                room[..taken].copy_from_slice(&piece[..taken]);
                stream.consume(taken);
                Poll::Ready(Ok(taken))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncBufRead for Flood {
    fn poll_fill_buf(self: Pin<&mut Self>, _: &mut Poller<'_>) -> Poll<std::io::Result<&[u8]>> {
        let flood = self.into_ref().get_ref();
        Poll::Ready(Ok(if flood.pieces == 0 { &[] } else { &flood.piece[flood.at..] }))
    }

    fn consume(mut self: Pin<&mut Self>, taken: usize) {
        self.at += taken;
        if self.at == self.piece.len() {
            self.at = 0;
            self.pieces = self.pieces.saturating_sub(1);
        }
    }
}

fn listener(pod: usize, catalogue: &Arc<Catalogue>, shared: &Arc<Shared>, metrics: &Metrics) -> Listener {
    let source = Source {
        uid: pod.to_string(),
        container: "machine-controller",
        component: "machine-api",
        namespace: "openshift-machine-api",
        pod: format!("machine-api-controllers-{pod}"),
    };
    Listener { source, catalogue: Arc::clone(catalogue), shared: Arc::clone(shared), metrics: metrics.clone() }
}

fn resident_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// 100 lines, two of which count, one of them too long.
fn piece() -> Vec<u8> {
    let time = "2026-11-16T19:49:46.391861000Z";
    let mut text = String::new();
    for line in 0..98 {
        text.push_str(&format!(
            "{time} I1116 19:49:46.391861       1 controller.go:174] worker-{line}: reconciling machine triggers idempotent update\n"
        ));
    }
    text.push_str(&format!(
        "{time} E1116 19:49:46.391861       1 actuator.go:65] worker-1 error: template not found, specify valid value\n"
    ));
    text.push_str(&format!(
        "{time} E1116 19:49:46.391861       1 actuator.go:65] worker-1 error: resource pool not found {}\n",
        "x".repeat(crate::lines::LONGEST)
    ));
    text.into_bytes()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_two_hundred_logs_takes_no_room_and_no_line_of_it_is_lost() {
    const LOGS: usize = 200;
    // Of each a megabyte and more, as in a second of a flood.
    const PIECES: usize = 40;
    let catalogue = Arc::new(Catalogue::new(&[]).unwrap());
    let shared = Shared::new(Signs::new().unwrap());
    let metrics = Metrics::new().unwrap();
    let piece = Arc::new(piece());
    let read = |pieces| {
        let logs = (0..LOGS).map(|pod| {
            let (listener, piece) = (listener(pod, &catalogue, &shared, &metrics), Arc::clone(&piece));
            tokio::spawn(async move { listener.lines(Flood { piece, at: 0, pieces }, Rest::ComesAgain, &mut Place::default()).await })
        });
        futures::future::join_all(logs)
    };
    // Patterns take room when they are first tried, also those of the tests that run beside this one.
    catalogue.compile_all();
    Catalogue::built_in().compile_all();
    for read in read(1).await {
        read.unwrap().unwrap();
    }
    let before = resident_kb();
    for read in read(PIECES).await {
        read.unwrap().unwrap();
    }
    let grown = resident_kb().saturating_sub(before);
    let fed = LOGS * PIECES * piece.len() / 1024;
    assert!(fed > 200 * 1_024 && grown < 8_192, "grew by {grown} KB while {fed} KB were read");
    let lines = (LOGS * (PIECES + 1)) as u64;
    for rule in ["MAO-010", "MAO-011"] {
        assert_eq!(metrics.log_failures.with_label_values(&["machine-api", rule]).get(), lines, "{rule}");
    }
    let too_long = piece.split(|byte| *byte == b'\n').map(|line| line.len().saturating_sub(crate::lines::LONGEST)).sum::<usize>() as u64;
    assert_eq!(metrics.log_skipped.with_label_values(&["machine-api"]).get(), too_long * lines, "what was skipped is counted");
    assert_eq!(shared.ledger().runs().count(), 256, "what is kept is bounded");
}

#[test]
fn what_is_skipped_is_counted_while_the_log_goes_on_and_not_lost_when_its_reader_is_ended() {
    let catalogue = Arc::new(Catalogue::new(&[]).unwrap());
    let shared = Shared::new(Signs::new().unwrap());
    let metrics = Metrics::new().unwrap();
    let line = format!("2026-11-16T19:49:46.391861000Z I1116 {}\n", "x".repeat(crate::lines::LONGEST));
    let goes_on = stream::iter([Ok(line.clone())]).chain(stream::pending()).into_async_read();
    let listener = listener(0, &catalogue, &shared, &metrics);
    // It is not ready, and ends with what it knows.
    assert!(listener.lines(goes_on, Rest::ComesAgain, &mut Place::default()).now_or_never().is_none());
    let too_long = (line.len() - 1 - crate::lines::LONGEST) as u64;
    assert_eq!(metrics.log_skipped.with_label_values(&["machine-api"]).get(), too_long);
}

#[test]
fn a_log_is_asked_for_since_the_second_in_which_it_was_read_last_and_not_since_the_next() {
    for last in ["2026-11-16T19:49:46Z", "2026-11-16T19:49:46.000000001Z", "2026-11-16T19:49:46.5Z", "2026-11-16T19:49:46.999999999Z"] {
        let params = LogParams { since_time: Some(second_of(last.parse().unwrap())), ..LogParams::default() };
        let request = kube::core::Request::new("/pods").logs("pod", &params).unwrap();
        assert!(request.uri().to_string().ends_with("sinceTime=2026-11-16T19%3A49%3A46Z"), "{last}: {}", request.uri());
    }
}

#[tokio::test]
async fn a_reader_that_breaks_down_wakes_the_controller() {
    let shared = Shared::new(Signs::new().unwrap());
    let mut wakes = shared.wakes();
    wakes.borrow_and_update();
    let ends = Ends(Arc::clone(&shared));
    let task = tokio::spawn(async move {
        let _ends = ends;
        panic!("a reader broke down");
    });
    assert!(task.await.unwrap_err().is_panic());
    assert!(wakes.has_changed().unwrap());
}

#[tokio::test]
async fn a_line_that_a_stream_cuts_in_two_is_read_once_and_whole_and_the_last_words_of_a_container_are_a_line() {
    let catalogue = Arc::new(Catalogue::new(&[]).unwrap());
    let metrics = Metrics::new().unwrap();
    let line = "2026-11-16T19:49:46.391861000Z panic: worker-1 is gone";
    let before = "2026-11-16T19:49:45.000000000Z panic: the one before\n";
    let log = format!("{before}{line}\n");
    // Wherever it is cut, also where the first part would fit a rule by itself, or has no time yet.
    for cut in before.len()..log.len() {
        let shared = Shared::new(Signs::new().unwrap());
        let listener = listener(0, &catalogue, &shared, &metrics);
        let mut place = Place::default();
        listener.lines(&log.as_bytes()[..cut], Rest::ComesAgain, &mut place).await.unwrap();
        assert_eq!(counted(&shared), 1, "cut at {cut}: it may go on");
        listener.lines(log.as_bytes(), Rest::ComesAgain, &mut place).await.unwrap();
        assert_eq!(counted(&shared), 2, "cut at {cut}: read whole");
        listener.lines(log.as_bytes(), Rest::IsALine, &mut place).await.unwrap();
        assert_eq!(counted(&shared), 2, "cut at {cut}: read once");
    }
    let shared = Shared::new(Signs::new().unwrap());
    let listener = listener(0, &catalogue, &shared, &metrics);
    let mut place = Place::default();
    for _ in 0..2 {
        listener.lines(line.as_bytes(), Rest::IsALine, &mut place).await.unwrap();
        assert_eq!(counted(&shared), 1, "a process that crashes ends no line");
    }
}

fn counted(shared: &Shared) -> u32 {
    shared.ledger().runs().map(|run| run.count).sum()
}
