//! Runs a controller: woken by what it touches, one look at a time, only while this process leads.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::{Api, ResourceExt};
use tokio::sync::watch;
use vmi_crds::VSphereMigrationInfra;
use vmi_crds::graph::{Controller as Name, STEPS};
use vmi_crds::turn::{Turn, turn};
use vmi_kit::context::Context;
use vmi_kit::failure::Stop;
use vmi_kit::kind::{Kind, VMI};
use vmi_kit::touch::Touch;

use crate::migration::Migration;
use crate::report::Report;
use crate::step::Wake;

/// Something that is not seen is looked for all the same, this often.
const SAFETY: Duration = Duration::from_secs(300);

/// How often a controller that only looks steps aside: an act passes through as many tasks of the client's before it is on its way.
const HOPS: usize = 8;

/// One controller.
pub trait Controller: Send + Sync + 'static {
    /// Its name, and its field manager's.
    const NAME: Name;
    /// All it reads and writes besides the vmi.
    const TOUCHES: &'static [Touch];
    /// Fields of the status that are its own besides conditions and steps.
    const FIELDS: &'static [&'static str] = &[];

    /// Looks at one migration, does what can be done now, and says when to look again if nothing changes.
    fn reconcile(&self, m: &Migration, report: &mut Report) -> impl Future<Output = Result<Wake, Stop>> + Send;

    /// Changes when the controller itself has learnt something that the cache does not know, such as a line in a log.
    fn wakes(&self) -> Option<watch::Receiver<u64>> {
        None
    }
}

/// Runs the controller for ever.
pub async fn run<C: Controller>(controller: C, cx: Arc<Context>) {
    let mut kinds: Vec<Kind> = C::TOUCHES.iter().filter(|touch| touch.watched).map(|touch| touch.kind).collect();
    kinds.push(VMI);
    kinds.sort_unstable();
    kinds.dedup();
    let mut leads = cx.leadership();
    loop {
        if leads.wait_for(|leads| *leads).await.is_err() {
            return;
        }
        lead(&controller, &cx, &kinds).await;
    }
}

async fn lead<C: Controller>(controller: &C, cx: &Arc<Context>, kinds: &[Kind]) {
    let mut leads = cx.leadership();
    let mut changes = cx.cache.changes();
    let mut own = controller.wakes();
    let mut reports: BTreeMap<String, Report> = BTreeMap::new();
    let mut trouble: u32 = 0;
    cx.cache.ready().await;
    while cx.leads() {
        let revision = cx.cache.revision(kinds);
        changes.mark_unchanged();
        if let Some(own) = &mut own {
            own.mark_unchanged();
        }
        let vmis = cx.vmis();
        if !vmis.iter().any(|vmi| has_the_turn(C::NAME, vmi)) {
            // All are woken at once and share a thread: whoever acts goes first.
            for _ in 0..HOPS {
                tokio::task::yield_now().await;
            }
        }
        let mut wake: Wake = None;
        let mut failed = false;
        for vmi in vmis {
            match look(controller, cx, &mut reports, &vmi).await {
                Ok(next) => wake = crate::step::sooner(wake, next),
                Err(Stop::Fenced(why)) => tracing::debug!(controller = %C::NAME, why, "looked again"),
                Err(stop) => {
                    tracing::warn!(controller = %C::NAME, vmi = vmi.name_any(), %stop, "tries again");
                    failed = true;
                }
            }
        }
        trouble = if failed { trouble + 1 } else { 0 };
        let pause = if failed { Duration::from_millis(500 << trouble.min(6)) } else { until(wake).min(SAFETY) };
        let woken = async {
            while cx.cache.revision(kinds) == revision {
                if changes.changed().await.is_err() {
                    return;
                }
            }
        };
        tokio::select! {
            () = woken => {}
            () = told(own.as_mut()) => {}
            // A deadline or a quiet period ends without an event, and so does what keeps a write from succeeding.
            () = tokio::time::sleep(pause) => {}
            _ = leads.wait_for(|leads| !*leads) => return,
        }
    }
}

fn has_the_turn(controller: Name, vmi: &VSphereMigrationInfra) -> bool {
    let own = STEPS.iter().filter(|step| step.controller == controller);
    own.map(|step| turn(vmi, step.name)).any(|turn| matches!(turn, Turn::Forward | Turn::Back))
}

async fn told(own: Option<&mut watch::Receiver<u64>>) {
    if let Some(own) = own
        && own.changed().await.is_ok()
    {
        return;
    }
    std::future::pending::<()>().await;
}

async fn look<C: Controller>(
    controller: &C,
    cx: &Arc<Context>,
    reports: &mut BTreeMap<String, Report>,
    vmi: &Arc<VSphereMigrationInfra>,
) -> Result<Wake, Stop> {
    let uid = vmi.uid().unwrap_or_default();
    let m = Migration { vmi: Arc::clone(vmi), cx: Arc::clone(cx) };
    if !reports.contains_key(&uid) {
        // What another process reported last counts, not what a cache may have missed of it.
        let api: Api<VSphereMigrationInfra> = Api::namespaced(cx.client.clone(), &cx.namespace);
        let Some(live) = api.get_opt(&vmi.name_any()).await?.filter(|live| live.uid().is_some_and(|live| live == uid)) else {
            return Ok(None);
        };
        reports.insert(uid.clone(), Report::of(&live, C::NAME, C::FIELDS));
    }
    let Some(report) = reports.get_mut(&uid) else { return Ok(None) };
    report.about(vmi);
    let began = std::time::Instant::now();
    let outcome = controller.reconcile(&m, report).await;
    tracing::trace!(controller = %C::NAME, microseconds = began.elapsed().as_micros(), "looked");
    let later = report.put_off();
    if later.is_none() {
        // Also after an error: what was found out is reported.
        report.tell(cx).await?;
    }
    outcome.map(|wake| crate::step::sooner(wake, later))
}

fn until(wake: Wake) -> Duration {
    let Some(wake) = wake else { return SAFETY };
    Duration::try_from(wake.duration_since(Timestamp::now())).unwrap_or(Duration::ZERO)
}
