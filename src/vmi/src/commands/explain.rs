//! `vmi explain`: what the lines of a log mean. The log comes from standard input.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, BufRead as _, BufReader, BufWriter, Write};

use clap::ValueEnum;
use vmi_pod_health_watch::explain::{Explanation, Word, explain};
use vmi_pod_health_watch::lines::Lines;
use vmi_pod_health_watch::rules::Catalogue;
use vmi_pod_health_watch::workloads;

use super::{Exit, Failure, print};

/// Say what the lines of a log from standard input mean, and what to do about them
#[derive(clap::Args)]
pub struct Explain {
    /// Whose log: a component, Deployment or container, such as cloud-controller-manager or machine-controller
    #[arg(long)]
    component: String,
    /// A node that is not vSphere's, lines about which mean nothing; repeat it for more
    #[arg(long = "bare-metal", value_name = "NODE")]
    bare_metal: Vec<String>,
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
}

#[derive(Clone, Copy, Default, ValueEnum)]
enum Output {
    /// Each rule once, the gravest first
    #[default]
    Text,
    /// An object for each line
    Json,
}

impl Explain {
    pub(super) fn run(&self) -> Result<Exit, Failure> {
        let catalogue = Catalogue::new(&[])?;
        let component = workloads::component(&self.component);
        if component.is_none() {
            let mut known: Vec<&str> = workloads::WORKLOADS.iter().map(|workload| workload.component).collect();
            known.dedup();
            eprintln!("vmi: {} is none of {}: the rules of all of them are tried", self.component, known.join(", "));
        }
        let explained = |line: &[u8]| explain(&catalogue, component, &self.bare_metal, line);
        match self.output {
            Output::Json => {
                let mut output = BufWriter::new(io::stdout().lock());
                let mut write = |line: &[u8]| -> io::Result<()> {
                    serde_json::to_writer(&mut output, &Told { line: catalogue.masked(line), explanation: explained(line) })?;
                    output.write_all(b"\n")
                };
                let written = each_line(&mut write).and_then(|()| output.flush());
                match written {
                    // Whoever reads may stop early: then there is nobody left to tell anything.
                    Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
                    other => other?,
                }
            }
            Output::Text => {
                let mut found = Found::default();
                each_line(&mut |line| {
                    found.add(explained(line), || catalogue.masked(line));
                    Ok(())
                })?;
                print(&found.text(&catalogue))?;
            }
        }
        Ok(Exit::Ok)
    }
}

/// A line, and what is known of it.
#[derive(serde::Serialize)]
struct Told<'a> {
    line: String,
    #[serde(flatten)]
    explanation: Explanation<'a>,
}

/// So much is read at once.
const AT_ONCE: usize = 64 * 1024;

/// Hands on every line of standard input.
fn each_line(line: &mut impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    let mut input = BufReader::with_capacity(AT_ONCE, io::stdin().lock());
    let mut lines = Lines::default();
    let mut outcome = Ok(());
    let mut hand_on = |text: &[u8]| {
        if outcome.is_ok() {
            outcome = line(text);
        }
    };
    loop {
        let piece = input.fill_buf()?;
        if piece.is_empty() {
            break;
        }
        lines.take(piece, &mut hand_on);
        let taken = piece.len();
        input.consume(taken);
    }
    lines.end(hand_on);
    outcome
}

/// What was found in a log, by rule.
#[derive(Default)]
struct Found<'a> {
    lines: u64,
    rules: BTreeMap<(Word, Option<&'a str>), Seen<'a>>,
}

struct Seen<'a> {
    explanation: Explanation<'a>,
    first: String,
    times: u64,
}

impl<'a> Found<'a> {
    fn add(&mut self, explanation: Explanation<'a>, line: impl FnOnce() -> String) {
        self.lines += 1;
        if explanation.meaning.is_empty() {
            return;
        }
        let key = (explanation.verdict, explanation.rule);
        self.rules.entry(key).or_insert_with(|| Seen { explanation, first: line(), times: 0 }).times += 1;
    }

    fn text(&self, catalogue: &Catalogue) -> String {
        let mut text = String::new();
        for ((verdict, rule), seen) in &self.rules {
            let Explanation { meaning, remedy, .. } = seen.explanation;
            let times = if seen.times == 1 { "once".to_owned() } else { format!("{} times", seen.times) };
            let name = rule.map_or_else(String::new, |rule| format!(" {rule}"));
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{}{name}, {times}: {meaning}", verdict.as_str());
            let cause = rule.and_then(|rule| catalogue.rule(rule)).map_or("", |rule| &rule.cause);
            for (title, part) in [("first", seen.first.trim()), ("cause", cause), ("remedy", remedy)] {
                if !part.is_empty() && (title == "first" || *verdict != Word::Benign) {
                    let _ = writeln!(text, "  {title:<7} {part}");
                }
            }
        }
        let of = |verdict: Word| -> u64 { self.rules.iter().filter(|((word, _), _)| *word == verdict).map(|(_, seen)| seen.times).sum() };
        let counts = [Word::Fatal, Word::Transient, Word::Benign].map(|verdict| format!("{} {}", of(verdict), verdict.as_str()));
        let _ = writeln!(text, "{} lines: {}, {} errors that no rule knows", self.lines, counts.join(", "), of(Word::Unknown));
        text
    }
}
