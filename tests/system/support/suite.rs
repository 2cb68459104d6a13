//! Runs tests: those that need no lab first, then shape by shape, each shape's lab booted once.

use std::collections::BTreeMap;
use std::error::Error;
use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use futures::future::BoxFuture;

use crate::support::lab::Lab;

pub type TestResult<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

/// No test may hang a whole run; the longest takes a tenth of this.
const DEADLINE: Duration = Duration::from_secs(600);

/// How deep a run must be for a test to be part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    Quick,
    Ci,
    Full,
}

type Alone = fn() -> BoxFuture<'static, TestResult>;
type InLab = for<'a> fn(&'a Lab) -> BoxFuture<'a, TestResult>;

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

struct Run {
    failed: Vec<String>,
    passed: usize,
}

impl Run {
    fn note(&mut self, name: &str, began: Instant, result: TestResult) {
        let seconds = began.elapsed().as_secs_f64();
        match result {
            Ok(()) => {
                self.passed += 1;
                println!("ok      {seconds:6.1} s  {name}");
            }
            Err(error) => {
                println!("FAILED  {seconds:6.1} s  {name}\n{error}");
                self.failed.push(name.to_owned());
            }
        }
    }
}

pub fn main(arguments: &[OsString], suite: Suite) -> ExitCode {
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
    let run = runtime.block_on(run(suite, wanted));
    println!("\n{} passed, {} failed", run.passed, run.failed.len());
    for name in &run.failed {
        println!("  failed: {name}");
    }
    if run.failed.is_empty() && run.passed > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

async fn run(suite: Suite, wanted: impl Fn(Depth, &str) -> bool) -> Run {
    let mut run = Run { failed: Vec::new(), passed: 0 };
    for test in suite.alone.iter().filter(|test| wanted(test.depth, test.name)) {
        let began = Instant::now();
        let result = guarded(tokio::spawn((test.run)())).await;
        run.note(test.name, began, result);
    }
    for (shape, tests) in &suite.in_labs {
        let tests: Vec<_> = tests.iter().filter(|test| wanted(test.depth, test.name)).collect();
        if !tests.is_empty() {
            in_shape(&mut run, shape, &tests).await;
        }
    }
    run
}

async fn in_shape(run: &mut Run, shape: &'static str, tests: &[&Test<InLab>]) {
    let began = Instant::now();
    let mut lab = match boot(shape).await {
        Ok(lab) => lab,
        Err(error) => return run.note(&format!("boot {shape}"), began, Err(error)),
    };
    run.note(&format!("boot {shape}"), began, Ok(()));
    for test in tests {
        let began = Instant::now();
        let (run_test, shared) = (test.run, Arc::clone(&lab));
        let mut result = guarded(tokio::spawn(async move { run_test(&shared).await })).await;
        if result.is_ok() {
            result = lab.settled().await.map_err(|error| format!("the test left the lab unhealthy: {error}").into());
        }
        let spoiled = result.is_err();
        run.note(test.name, began, result);
        if spoiled {
            // A failed test may leave anything behind: the next one gets a new lab, so that only what is broken fails.
            stop(lab).await;
            lab = match boot(shape).await {
                Ok(lab) => lab,
                Err(error) => return run.note(&format!("boot {shape} again"), Instant::now(), Err(error)),
            };
        }
    }
    stop(lab).await;
}

async fn boot(shape: &str) -> TestResult<Arc<Lab>> {
    Ok(Arc::new(Lab::start(shape, shape).await?))
}

async fn stop(lab: Arc<Lab>) {
    if let Some(lab) = Arc::into_inner(lab)
        && let Err(error) = lab.stop().await
    {
        println!("the lab could not be ended: {error}");
    }
}

/// A panic or a test that takes too long is a failure like any other.
async fn guarded(test: tokio::task::JoinHandle<TestResult>) -> TestResult {
    let abort = test.abort_handle();
    match tokio::time::timeout(DEADLINE, test.map(|joined| joined.unwrap_or_else(|error| Err(error.to_string().into())))).await {
        Ok(result) => result,
        Err(_elapsed) => {
            abort.abort();
            Err(format!("not done after {DEADLINE:?}").into())
        }
    }
}
