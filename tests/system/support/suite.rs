//! Runs tests: those that share a shape's lab one after the other, the others each by itself.

use std::collections::BTreeMap;
use std::error::Error;
use std::ffi::OsString;
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use futures::future::LocalBoxFuture;

use crate::support::lab::Lab;
use crate::support::lanes::{self, Part};

pub type TestResult<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

/// Why a test could not be run, which is not its fault: something of the machine's is missing.
#[derive(Debug)]
pub struct LeftOut(pub String);

impl std::fmt::Display for LeftOut {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.0)
    }
}

impl Error for LeftOut {}

/// No test may hang a whole run; the longest takes an eighth of this, on a machine that does nothing else.
const DEADLINE: Duration = Duration::from_secs(2400);

/// How deep a run must be for a test to be part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    Quick,
    Ci,
    Full,
}

type Alone = fn() -> LocalBoxFuture<'static, TestResult>;
type InLab = for<'a> fn(&'a Lab) -> LocalBoxFuture<'a, TestResult>;

struct Test<F> {
    name: &'static str,
    depth: Depth,
    run: F,
}

#[derive(Default)]
pub struct Suite {
    alone: Vec<Test<Alone>>,
    in_labs: BTreeMap<&'static str, Vec<Test<InLab>>>,
}

impl Suite {
    /// A test that needs no lab, or boots its own.
    pub fn alone(&mut self, depth: Depth, name: &'static str, run: Alone) {
        self.alone.push(Test { name, depth, run });
    }

    /// A test in the shared lab of `shape`, which it leaves as it was.
    pub fn in_lab(&mut self, shape: &'static str, depth: Depth, name: &'static str, run: InLab) {
        self.in_labs.entry(shape).or_default().push(Test { name, depth, run });
    }

    /// What there is to run. Shapes first: what shares a lab takes the longest, and the others fill the time beside it.
    fn parts(&self, wanted: &impl Fn(Depth, &str) -> bool) -> Vec<Part> {
        let has_any = |tests: &Vec<Test<InLab>>| tests.iter().any(|test| wanted(test.depth, test.name));
        let shapes = self.in_labs.iter().filter(|(_, tests)| has_any(tests)).map(|(shape, _)| Part::InLab((*shape).to_owned()));
        let alone = self.alone.iter().filter(|test| wanted(test.depth, test.name)).map(|test| Part::Alone(test.name.to_owned()));
        shapes.chain(alone).collect()
    }
}

/// Adds tests by the names of their functions: `in_lab!(suite, "plain", Depth::Quick, pods::{a, b})`.
#[macro_export]
macro_rules! in_lab {
    ($suite:expr, $shape:expr, $depth:expr, $module:ident :: { $($test:ident),* $(,)? }) => {
        $( $suite.in_lab($shape, $depth, concat!(stringify!($module), "::", stringify!($test)), |lab| Box::pin($module::$test(lab))); )*
    };
}

/// The same for tests without a shared lab.
#[macro_export]
macro_rules! alone {
    ($suite:expr, $depth:expr, $module:ident :: { $($test:ident),* $(,)? }) => {
        $( $suite.alone($depth, concat!(stringify!($module), "::", stringify!($test)), || Box::pin($module::$test())); )*
    };
}

/// How a run went; as its closing lines tell it, in any process.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Tally {
    passed: usize,
    left_out: usize,
    failed: Vec<String>,
    /// How many failed by the closing line, while their names are still to come.
    unnamed: usize,
}

impl Tally {
    pub fn failed(name: &str) -> Tally {
        Tally { failed: vec![name.to_owned()], ..Tally::default() }
    }

    /// Reads a closing line.
    pub fn parse(line: &str) -> Option<Tally> {
        let mut counts =
            line.split(", ").zip([" passed", " failed", " left out"]).map(|(part, word)| part.strip_suffix(word)?.parse().ok());
        let (passed, unnamed, left_out) = (counts.next()??, counts.next()??, counts.next()??);
        Some(Tally { passed, left_out, failed: Vec::new(), unnamed })
    }

    /// Reads a line after the closing line.
    pub fn name(&mut self, line: &str) {
        if let Some(name) = line.strip_prefix(FAILED) {
            self.failed.push(name.to_owned());
            self.unnamed = self.unnamed.saturating_sub(1);
        }
    }

    pub fn add(&mut self, other: Tally) {
        self.passed += other.passed;
        self.left_out += other.left_out;
        self.failed.extend(other.failed);
        self.unnamed += other.unnamed;
    }

    fn note(&mut self, name: &str, began: Instant, result: TestResult) {
        let seconds = began.elapsed().as_secs_f64();
        match result {
            Ok(()) => {
                self.passed += 1;
                println!("ok      {seconds:6.1} s  {name}");
            }
            Err(error) if error.is::<LeftOut>() => {
                println!("left out          {name}: {error}");
                self.left_out += 1;
            }
            Err(error) => {
                println!("FAILED  {seconds:6.1} s  {name}\n{error}");
                self.failed.push(name.to_owned());
            }
        }
    }

    fn close(&self) -> ExitCode {
        let failed = self.failed.len() + self.unnamed;
        println!("\n{} passed, {failed} failed, {} left out", self.passed, self.left_out);
        for name in &self.failed {
            println!("{FAILED}{name}");
        }
        if self.is_well() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }

    /// How the process of these tests has to end.
    pub fn is_well(&self) -> bool {
        self.failed.is_empty() && self.unnamed == 0 && self.passed > 0
    }
}

const FAILED: &str = "  failed: ";

pub fn main(arguments: &[OsString], suite: &Suite) -> ExitCode {
    let mut words: Vec<String> = arguments.iter().skip(1).filter_map(|word| word.to_str()).map(str::to_owned).collect();
    // Flags are for the standard harness; `cargo test -- --list` and the like have nothing to say here.
    words.retain(|word| !word.starts_with("--"));
    let depth = match words.first().map(String::as_str) {
        Some("quick") => Some(Depth::Quick),
        Some("ci") => Some(Depth::Ci),
        Some("full") => Some(Depth::Full),
        _ => None,
    };
    if depth.is_some() {
        words.remove(0);
    }
    let depth = depth.unwrap_or(if words.is_empty() { Depth::Ci } else { Depth::Full });
    let wanted = move |test_depth: Depth, name: &str| {
        test_depth <= depth && (words.is_empty() || words.iter().any(|word| name.contains(word.as_str())))
    };
    let parts = match std::env::var(lanes::PART) {
        Ok(part) => Part::parse(&part).into_iter().collect(),
        Err(_) => suite.parts(&wanted),
    };
    if parts.len() > 1 {
        return lanes::run(parts, arguments).close();
    }
    let home = match tempfile::Builder::new().prefix("vmi-system-").tempdir() {
        Ok(home) => home,
        Err(error) => {
            eprintln!("cannot make a folder for the labs: {error}");
            return ExitCode::FAILURE;
        }
    };
    vmi_lab::home::use_folder(home.path());
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("cannot start: {error}");
            return ExitCode::FAILURE;
        }
    };
    let mut tally = Tally::default();
    if let Some(part) = parts.first() {
        runtime.block_on(run(&mut tally, suite, part, wanted));
    }
    tally.close()
}

async fn run(tally: &mut Tally, suite: &Suite, part: &Part, wanted: impl Fn(Depth, &str) -> bool) {
    match part {
        Part::Alone(name) => {
            for test in suite.alone.iter().filter(|test| test.name == name) {
                let began = Instant::now();
                let result = guarded((test.run)()).await;
                tally.note(test.name, began, result);
            }
        }
        Part::InLab(shape) => {
            for (shape, tests) in suite.in_labs.iter().filter(|(known, _)| *known == shape) {
                let tests: Vec<_> = tests.iter().filter(|test| wanted(test.depth, test.name)).collect();
                in_shape(tally, shape, &tests).await;
            }
        }
    }
}

async fn in_shape(tally: &mut Tally, shape: &'static str, tests: &[&Test<InLab>]) {
    let began = Instant::now();
    let mut lab = match boot(shape).await {
        Ok(lab) => lab,
        Err(error) => return tally.note(&format!("boot {shape}"), began, Err(error)),
    };
    tally.note(&format!("boot {shape}"), began, Ok(()));
    for test in tests {
        let began = Instant::now();
        let mut result = guarded((test.run)(&lab)).await;
        if result.is_ok() {
            result = guarded(Box::pin(lab.settled())).await.map_err(|error| format!("the test left the lab unhealthy: {error}").into());
        }
        let spoiled = result.as_ref().is_err_and(|error| !error.is::<LeftOut>());
        tally.note(test.name, began, result);
        if spoiled {
            // A failed test may leave anything behind: the next one gets a new lab, so that only what is broken fails.
            if let Err(error) = stop(lab).await {
                println!("the lab could not be ended: {error}");
            }
            lab = match boot(shape).await {
                Ok(lab) => lab,
                Err(error) => return tally.note(&format!("boot {shape} again"), Instant::now(), Err(error)),
            };
        }
    }
    let began = Instant::now();
    let result = stop(lab).await;
    tally.note(&format!("end {shape}"), began, result);
}

async fn boot(shape: &str) -> TestResult<Lab> {
    guarded(Box::pin(Lab::start(shape, shape))).await
}

/// Ends the lab; that a process of it is left is a failure.
async fn stop(lab: Lab) -> TestResult {
    let mark = vmi_lab::home::mark(&lab.record.name);
    guarded(Box::pin(lab.stop())).await?;
    let left = vmi_lab::process::marked(Some(&mark))?;
    if left.is_empty() { Ok(()) } else { Err(format!("processes are left: {left:?}").into()) }
}

/// A panic or a test that takes too long is a failure like any other.
async fn guarded<T>(test: LocalBoxFuture<'_, TestResult<T>>) -> TestResult<T> {
    match tokio::time::timeout(DEADLINE, AssertUnwindSafe(test).catch_unwind()).await {
        Ok(Ok(result)) => result,
        Ok(Err(panic)) => {
            let text = panic.downcast_ref::<String>().cloned().or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            Err(text.unwrap_or_else(|| "panicked".to_owned()).into())
        }
        Err(_elapsed) => Err(format!("not done after {DEADLINE:?}").into()),
    }
}
