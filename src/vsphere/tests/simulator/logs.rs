//! What a test's own thread logs, at every level. The subscriber is one for the whole process, as subscribers that come and
//! go per thread confuse each other; what it writes, it writes for the thread that asked.

use std::{cell::RefCell, io, rc::Rc, sync::Once};

use tracing_subscriber::{filter::dynamic_filter_fn, layer::SubscriberExt, util::SubscriberInitExt};

thread_local! {
    static SINK: RefCell<Option<Rc<RefCell<Vec<u8>>>>> = const { RefCell::new(None) };
}

/// Collects what this thread logs, as JSON lines, until dropped.
pub(crate) struct Log(Rc<RefCell<Vec<u8>>>);

impl Log {
    pub(crate) fn begin() -> Self {
        static INSTALLED: Once = Once::new();
        INSTALLED.call_once(|| {
            let asked = dynamic_filter_fn(|_, _| SINK.with_borrow(Option::is_some));
            let lines = tracing_subscriber::fmt::layer().json().with_writer(|| Line);
            // For all layers: a filter of one layer alone would let the client believe that somebody listens.
            tracing_subscriber::registry().with(lines).with(asked).init();
            // Some libraries below the client still speak through `log`.
            log::set_logger(&Line).unwrap();
            log::set_max_level(log::LevelFilter::Trace);
        });
        let lines = Rc::default();
        SINK.set(Some(Rc::clone(&lines)));
        Self(lines)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.borrow()).into_owned()
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        SINK.set(None);
    }
}

struct Line;

impl io::Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        SINK.with_borrow(|sink| sink.iter().for_each(|sink| sink.borrow_mut().extend_from_slice(bytes)));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl log::Log for Line {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        SINK.with_borrow(Option::is_some)
    }

    fn log(&self, record: &log::Record<'_>) {
        let line = serde_json::json!({ "target": record.target(), "message": record.args().to_string() });
        SINK.with_borrow(|sink| sink.iter().for_each(|sink| sink.borrow_mut().extend_from_slice(format!("{line}\n").as_bytes())));
    }

    fn flush(&self) {}
}
