//! Runs the parts of a suite two at a time, each in a process of its own: a lab that boots, moves machines or waits until pods were
//! quiet for a while leaves a core to others most of the time.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use vmi_lab::process::{EXEC, own_binary};

use crate::support::suite::Tally;

/// Tells a process of the suite which part is its own.
pub const PART: &str = "VMI_SYSTEM_PART";

const LANES: usize = 2;
/// A test may boot two labs of its own.
const LABS_A_LANE: u64 = 2;

/// What is run one after the other in one process: a test that needs no lab or boots its own, or all that share a shape's lab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    Alone(String),
    InLab(String),
}

impl Part {
    pub fn parse(text: &str) -> Option<Part> {
        match text.split_once(' ')? {
            ("alone", name) => Some(Part::Alone(name.to_owned())),
            ("in", shape) => Some(Part::InLab(shape.to_owned())),
            _ => None,
        }
    }
}

impl std::fmt::Display for Part {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Part::Alone(name) => write!(out, "alone {name}"),
            Part::InLab(shape) => write!(out, "in {shape}"),
        }
    }
}

/// Runs `parts` in their order, the next one whenever a lane is free.
pub fn run(parts: Vec<Part>, arguments: &[OsString]) -> Tally {
    let waiting = Mutex::new(VecDeque::from(parts));
    let tally = Mutex::new(Tally::default());
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    let lane = || {
        while let Some(part) = next() {
            let ran = process(&part, arguments).unwrap_or_else(|error| Tally::failed(&format!("{part}: {error}")));
            tally.lock().unwrap_or_else(PoisonError::into_inner).add(ran);
        }
    };
    let roomy = vmi_lab::requirements::labs_that_fit().is_ok_and(|labs| labs >= LABS_A_LANE * LANES as u64);
    std::thread::scope(|scope| {
        for _ in 0..if roomy { LANES } else { 1 } {
            scope.spawn(lane);
        }
    });
    tally.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Runs one part and passes on what it says, but for its own closing lines.
fn process(part: &Part, arguments: &[OsString]) -> io::Result<Tally> {
    let own = own_binary()?;
    let mut command = Command::new(&own);
    // It ends with this thread, and its labs with it.
    command.arg(EXEC).arg(std::process::id().to_string()).arg(&own).args(&arguments[1..]);
    let mut child = command.env(PART, part.to_string()).stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let mut tally = None;
    for line in BufReader::new(child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?).lines() {
        let line = line?;
        match (&mut tally, Tally::parse(&line)) {
            (None, Some(closing)) => tally = Some(closing),
            (Some(tally), _) => tally.name(&line),
            (None, None) if line.is_empty() => {}
            (None, None) => println!("{line}"),
        }
    }
    let status = child.wait()?;
    match tally {
        Some(tally) if tally.is_well() == status.success() => Ok(tally),
        Some(_) => Ok(Tally::failed(&format!("{part}: ended with {status}, whatever it said"))),
        None => Ok(Tally::failed(&format!("{part}: ended with {status} before it was through"))),
    }
}
