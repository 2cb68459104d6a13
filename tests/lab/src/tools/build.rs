//! One `go build` for everything that is missing: it shares every compile, and the finished programs appear one by one.

use std::path::Path;
use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt as _, BufReader};

use super::error::{At as _, Error};
use super::go::{Go, is_hiccup};
use super::progress::{Progress, spoken};
use super::table::Tool;

/// Pauses before a proxy that did not answer is asked again.
pub const PAUSES: [Duration; 3] = [Duration::from_secs(3), Duration::from_secs(10), Duration::from_secs(30)];

/// How go begins the line on each module it fetches.
const FETCHING: &str = "go: downloading ";

/// Enough of go's words to see why it failed.
const TAIL: usize = 25;

/// How a build is run.
pub struct Build<'a> {
    pub go: &'a Go,
    /// The module's folder.
    pub source: &'a Path,
    pub flags: &'a [String],
    pub pauses: &'a [Duration],
}

impl Build<'_> {
    /// Builds `tools` into `folder`, under the names go gives them.
    pub async fn run(&self, tools: &[&Tool], folder: &Path, progress: &mut Progress) -> Result<(), Error> {
        let mut arguments = vec!["build".to_owned(), "-v".into(), "-o".into(), format!("{}/", folder.display())];
        arguments.extend_from_slice(self.flags);
        arguments.extend(tools.iter().map(|tool| tool.package.clone()));
        let mut pending = Pending { tools: tools.to_vec(), total: tools.len(), folder, started: Instant::now(), fetched: 0, compiled: 0 };
        retried(self.pauses, progress, async |progress| {
            let mut child = self.go.command(self.source, &arguments).spawn().at(self.source)?;
            let stderr = child.stderr.take().ok_or_else(|| Error::content(self.source, "go's output is not to be had"))?;
            let mut lines = BufReader::new(stderr).lines();
            let mut said = Vec::new();
            // Only what is shown depends on this beat: the build itself is waited for by its output and its end.
            let mut beat = tokio::time::interval(Duration::from_secs(1));
            loop {
                tokio::select! {
                    line = lines.next_line() => match line.at(self.source)? {
                        Some(line) if line.starts_with(FETCHING) => pending.fetched += 1,
                        Some(line) if is_package(&line) => pending.compiled += 1,
                        Some(line) => said.push(line),
                        None => break,
                    },
                    _ = beat.tick() => pending.tell(progress),
                }
            }
            let status = child.wait().await.at(self.source)?;
            pending.tell(progress);
            progress.clear();
            if status.success() { Ok(()) } else { Err(self.failed("go build", &said)) }
        })
        .await
    }

    fn failed(&self, command: &str, said: &[String]) -> Error {
        let said = said[said.len().saturating_sub(TAIL)..].join("\n");
        Error::Go { command: command.into(), folder: self.source.to_owned(), said }
    }
}

/// `go build -v` names each package it compiles on a line of its own; everything else it says has blanks.
fn is_package(line: &str) -> bool {
    !line.is_empty() && !line.contains(char::is_whitespace)
}

/// Runs `attempt` again, after each pause in turn, as long as it fails of the network.
pub async fn retried<T>(
    pauses: &[Duration],
    progress: &mut Progress,
    mut attempt: impl AsyncFnMut(&mut Progress) -> Result<T, Error>,
) -> Result<T, Error> {
    let mut tries = 1;
    for pause in pauses {
        match attempt(progress).await {
            Err(Error::Go { said, .. }) if is_hiccup(&said) => {
                let reason = said.lines().last().unwrap_or_default();
                progress.line(&format!("the Go module proxy did not answer, trying again in {}: {reason}", spoken(*pause)));
                // There is no event that tells of a network come back.
                tokio::time::sleep(*pause).await;
                tries += 1;
            }
            other => return other,
        }
    }
    match attempt(progress).await {
        Err(Error::Go { said, .. }) if is_hiccup(&said) => Err(Error::Network { tries, said }),
        other => other,
    }
}

/// The programs that are still to come.
struct Pending<'a> {
    tools: Vec<&'a Tool>,
    total: usize,
    folder: &'a Path,
    started: Instant,
    fetched: usize,
    compiled: usize,
}

impl Pending<'_> {
    fn tell(&mut self, progress: &mut Progress) {
        let elapsed = spoken(self.started.elapsed());
        let (finished, pending) = self.tools.iter().copied().partition::<Vec<_>, _>(|tool| self.folder.join(tool.built_as()).exists());
        self.tools = pending;
        let first = self.total - self.tools.len() - finished.len();
        for (index, tool) in finished.iter().enumerate() {
            progress.line(&format!("[{}/{}] {} built, {elapsed}", first + index + 1, self.total, tool.name));
        }
        if let Some(next) = self.tools.first() {
            let done = self.total - self.tools.len();
            let Pending { total, fetched, compiled, .. } = self;
            let next = &next.name;
            progress.status(&format!("[{done}/{total}] {next}: {fetched} modules, {compiled} packages, {elapsed}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::progress::tests::Told;
    use super::*;

    fn tool(name: &str, package: &str) -> Tool {
        Tool { name: name.into(), package: package.into(), module: None, real: true }
    }

    #[test]
    fn finished_programs_are_counted_and_the_next_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let tools = [tool("etcd", "a.io/server/v3"), tool("kubectl", "a.io/kubectl"), tool("vcsim", "./vcsim")];
        let mut pending =
            Pending { tools: tools.iter().collect(), total: 3, folder: folder.path(), started: Instant::now(), fetched: 7, compiled: 812 };
        let told = Told::default();
        let mut progress = Progress::to(told.clone(), true);
        for finished in ["kubectl", "server"] {
            std::fs::write(folder.path().join(finished), "").unwrap();
            pending.tell(&mut progress);
        }
        let text = told.text().replace("\r\x1b[2K", "|");
        let expected = "[1/3] kubectl built, 0 s\n|[1/3] etcd: 7 modules, 812 packages, 0 s|[2/3] etcd built, 0 s\n|[2/3] vcsim: 7 modules, 812 packages, 0 s";
        // However slow the machine: the time itself is not the promise.
        assert_eq!(without_times(&text), without_times(expected));
    }

    fn without_times(text: &str) -> String {
        text.split_inclusive(['\n', '|']).map(|line| line.rsplit_once(", ").map_or(line, |(before, _)| before)).collect()
    }

    #[test]
    fn packages_are_told_from_complaints() {
        assert!(is_package("k8s.io/kubernetes/pkg/apis/core"));
        assert!(!is_package("# hack/tools/vcsim"));
        assert!(!is_package("vcsim/main.go:3:2: undefined: x"));
    }
}
