//! `vmi explain`: what the lines of a log mean. The log comes from standard input.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, BufRead as _, BufReader, BufWriter, Write};

use clap::ValueEnum;
use vmi_pod_health_watch::explain::{Explanation, Word, explain};
use vmi_pod_health_watch::lines::Lines;
use vmi_pod_health_watch::rules::{Catalogue, Reached};
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
                let mut found = Found::of(&catalogue);
                each_line(&mut |line| {
                    found.add(explained(line), line);
                    Ok(())
                })?;
                print(&found.text())?;
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
struct Found<'a> {
    catalogue: &'a Catalogue,
    lines: u64,
    /// By the lines that fatal rules fit, which the operator counts too.
    reached: Reached,
    rules: BTreeMap<(Word, Option<&'a str>), Seen<'a>>,
}

struct Seen<'a> {
    explanation: Explanation<'a>,
    first: String,
    times: u64,
}

impl<'a> Found<'a> {
    fn of(catalogue: &'a Catalogue) -> Self {
        Self { catalogue, lines: 0, reached: Reached::default(), rules: BTreeMap::new() }
    }

    fn add(&mut self, explanation: Explanation<'a>, line: &[u8]) {
        self.lines += 1;
        if explanation.meaning.is_empty() {
            return;
        }
        let catalogue = self.catalogue;
        if explanation.verdict == Word::Fatal
            && let Some(rule) = explanation.rule.and_then(|id| catalogue.rule(id))
        {
            self.reached.add(rule, line);
        }
        let key = (explanation.verdict, explanation.rule);
        self.rules.entry(key).or_insert_with(|| Seen { explanation, first: catalogue.masked(line), times: 0 }).times += 1;
    }

    /// A rule's verdict on the whole log: a fatal one may have come too seldom to hold anything, as in a start that goes well.
    fn verdict(&self, (verdict, rule): (Word, Option<&str>)) -> Word {
        let too_seldom = verdict == Word::Fatal && !rule.is_some_and(|rule| self.reached.holds(rule));
        if too_seldom { Word::Transient } else { verdict }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        let mut gravest_first: Vec<_> = self.rules.iter().map(|(key, seen)| (self.verdict(*key), key, seen)).collect();
        gravest_first.sort_by_key(|(verdict, ..)| *verdict);
        for (verdict, (alone, id), seen) in &gravest_first {
            let Explanation { meaning, remedy, .. } = seen.explanation;
            let times = if seen.times == 1 { "once".to_owned() } else { format!("{} times", seen.times) };
            let name = id.map_or_else(String::new, |id| format!(" {id}"));
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{}{name}, {times}: {meaning}", verdict.as_str());
            let rule = id.and_then(|id| self.catalogue.rule(id));
            let cause = rule.map_or("", |rule| &rule.cause);
            let holds = rule.filter(|_| verdict != alone).map(|rule| format!("a migration once it has come {}", rule.threshold()));
            let holds = holds.as_deref().unwrap_or_default();
            let parts = [("first", seen.first.trim()), ("holds", holds), ("cause", cause), ("remedy", remedy)];
            for (title, part) in parts {
                if !part.is_empty() && (title == "first" || *verdict != Word::Benign) {
                    let _ = writeln!(text, "  {title:<7} {part}");
                }
            }
        }
        let of = |verdict: Word| -> u64 { gravest_first.iter().filter(|(word, ..)| *word == verdict).map(|(.., seen)| seen.times).sum() };
        let counts = [Word::Fatal, Word::Transient, Word::Benign].map(|verdict| format!("{} {}", of(verdict), verdict.as_str()));
        let _ = writeln!(text, "{} lines: {}, {} errors that no rule knows", self.lines, counts.join(", "), of(Word::Unknown));
        text
    }
}
