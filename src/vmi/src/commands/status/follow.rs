//! `vmi status --watch`: redrawn on a terminal, otherwise a line for each change.

use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::pin::pin;
use std::time::Duration;

use futures::StreamExt as _;
use jiff::Timestamp;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, ResourceExt as _};
use vmi_crds::VSphereMigrationInfra;

use super::view::View;
use super::{Error, Output, Status, graver, lines, text};
use crate::commands::{Exit, Failure, print};

const HOME_AND_CLEAR: &str = "\x1b[H\x1b[2J";

pub(super) async fn follow(status: &Status, client: Client) -> Result<Exit, Failure> {
    let wanted = watcher::Config { field_selector: status.selector(), ..watcher::Config::default() };
    let mut events = pin!(watcher(status.api(client), wanted).default_backoff());
    let mut screen = Screen::new(status);
    // Time goes by on the screen also where nothing else happens.
    let mut second = tokio::time::interval(Duration::from_secs(1));
    let mut known = Known::default();
    loop {
        tokio::select! {
            event = events.next() => match event {
                Some(Ok(event)) => known.learn(event),
                // The watch goes on by itself; whoever looks should know why nothing moves.
                Some(Err(error)) => tracing::warn!(%error, "the watch was interrupted"),
                None => return Ok(graver(screen.shown.values())),
            },
            _ = second.tick(), if screen.redraws => {}
            end = tokio::signal::ctrl_c() => {
                end?;
                return Ok(graver(screen.shown.values()));
            }
        }
        if !known.complete {
            continue;
        }
        screen.show(&known.vmis)?;
        let Some(name) = &status.name else { continue };
        match screen.shown.get(name) {
            None => return Err(Error::Gone(name.clone()).into()),
            Some(view) if view.is_over() => return Ok(view.exit()),
            Some(_) => {}
        }
    }
}

/// The vmis as the watch has told of them.
#[derive(Default)]
struct Known {
    vmis: BTreeMap<String, VSphereMigrationInfra>,
    listing: BTreeMap<String, VSphereMigrationInfra>,
    /// Whether a whole list has come.
    complete: bool,
}

impl Known {
    fn learn(&mut self, event: Event<VSphereMigrationInfra>) {
        match event {
            Event::Init => self.listing.clear(),
            Event::InitApply(vmi) => {
                self.listing.insert(vmi.name_any(), vmi);
            }
            Event::InitDone => {
                self.vmis = std::mem::take(&mut self.listing);
                self.complete = true;
            }
            Event::Apply(vmi) => {
                self.vmis.insert(vmi.name_any(), vmi);
            }
            Event::Delete(vmi) => {
                self.vmis.remove(&vmi.name_any());
            }
        }
    }
}

/// What stands there already.
struct Screen {
    namespace: String,
    output: Output,
    redraws: bool,
    shown: BTreeMap<String, View>,
}

impl Screen {
    fn new(status: &Status) -> Self {
        let redraws = status.output == Output::Text && std::io::stdout().is_terminal();
        Self { namespace: status.namespace.clone(), output: status.output, redraws, shown: BTreeMap::new() }
    }

    fn show(&mut self, vmis: &BTreeMap<String, VSphereMigrationInfra>) -> Result<(), Failure> {
        let now = Timestamp::now();
        let views: BTreeMap<String, View> = vmis.iter().map(|(name, vmi)| (name.clone(), View::of(vmi, now))).collect();
        if self.redraws {
            let all: Vec<View> = views.values().cloned().collect();
            let body = if all.is_empty() { format!("there is no vmi in {}\n", self.namespace) } else { text::all(&all, true) };
            print(&format!("{HOME_AND_CLEAR}{body}"))?;
        } else {
            print(&self.news(&views, now)?)?;
        }
        self.shown = views;
        Ok(())
    }

    fn news(&self, views: &BTreeMap<String, View>, now: Timestamp) -> Result<String, serde_json::Error> {
        let mut text = String::new();
        for (name, view) in views {
            let changes = lines::changes(self.shown.get(name), view);
            match self.output {
                Output::Json if changes.is_empty() => {}
                Output::Json => text += &format!("{}\n", serde_json::to_string(view)?),
                Output::Text => text.extend(changes.iter().map(|line| format!("{now:.0} {line}\n"))),
            }
        }
        let gone = self.shown.keys().filter(|name| !views.contains_key(*name) && self.output == Output::Text);
        text.extend(gone.map(|name| format!("{now:.0} {}/{name}: deleted\n", self.namespace)));
        Ok(text)
    }
}
