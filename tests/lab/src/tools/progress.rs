//! Says what is going on: plain lines anywhere, and on a terminal one more line that lives.

use std::io::{IsTerminal as _, Write};
use std::time::Duration;

/// Where progress is told. Lines stay; the status line is overwritten, and only exists on a terminal.
pub struct Progress {
    out: Box<dyn Write + Send>,
    terminal: bool,
    status_shown: bool,
}

impl Progress {
    pub fn stderr() -> Progress {
        let stderr = std::io::stderr();
        let terminal = stderr.is_terminal();
        Progress::to(stderr, terminal)
    }

    pub fn to(out: impl Write + Send + 'static, terminal: bool) -> Progress {
        Progress { out: Box::new(out), terminal, status_shown: false }
    }

    /// A line that stays.
    pub fn line(&mut self, text: &str) {
        self.clear();
        self.write(&format!("{text}\n"));
    }

    /// The living line; nothing where the output is not a terminal.
    pub fn status(&mut self, text: &str) {
        if self.terminal {
            self.write(&format!("\r{ERASE}{text}"));
            self.status_shown = true;
        }
    }

    /// Takes the living line away.
    pub fn clear(&mut self) {
        if self.status_shown {
            self.write(&format!("\r{ERASE}"));
            self.status_shown = false;
        }
    }

    fn write(&mut self, text: &str) {
        // Progress that nobody can read any more must not end the work it tells about.
        let _ = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
    }
}

const ERASE: &str = "\x1b[2K";

/// `41 s`, `2 min 05 s`.
pub fn spoken(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds / 60 {
        0 => format!("{seconds} s"),
        minutes => format!("{minutes} min {:02} s", seconds % 60),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Keeps what was told.
    #[derive(Clone, Default)]
    pub struct Told(Arc<Mutex<Vec<u8>>>);

    impl Told {
        pub fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    impl Write for Told {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_log_file_gets_plain_lines_and_no_heartbeat() {
        let told = Told::default();
        let mut progress = Progress::to(told.clone(), false);
        progress.status("compiling");
        progress.line("[1/2] etcd, 41 s");
        progress.status("compiling");
        progress.clear();
        assert_eq!(told.text(), "[1/2] etcd, 41 s\n");
    }

    #[test]
    fn on_a_terminal_the_heartbeat_gives_way_to_lines_that_stay() {
        let told = Told::default();
        let mut progress = Progress::to(told.clone(), true);
        progress.status("compiling");
        progress.line("[1/2] etcd, 41 s");
        progress.clear();
        assert_eq!(told.text(), "\r\x1b[2Kcompiling\r\x1b[2K[1/2] etcd, 41 s\n");
    }

    #[test]
    fn time_is_told_as_people_say_it() {
        assert_eq!(spoken(Duration::from_millis(41_900)), "41 s");
        assert_eq!(spoken(Duration::from_secs(125)), "2 min 05 s");
    }
}
