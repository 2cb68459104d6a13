//! `rehearse`: boots a lab, moves its cluster to the second vCenter or grows it by that one, looks at the cluster itself, and
//! writes the report of docs/lab.md.

use std::path::Path;
use std::time::Instant;

use serde_json::json;
use vmi_crds::graph::StepName;
use vmi_crds::spec::SourceRetirement;

use super::report::{check_writable, unwritable};
use super::status::{resident_mb, summary};
use super::{Failure, kubeconfig};
use crate::cache::Cache;
use crate::faults::board;
use crate::home::Record;
use crate::kubernetes::NODE;
use crate::migration::figures::Figures;
use crate::migration::rehearsal::{self, ways_back};
use crate::migration::verdict::{self, Check};
use crate::migration::view::View;
use crate::migration::{Site, operator};
use crate::shape::Shape;
use crate::supervisor::{Order, Running};
use crate::tools::{Progress, Tools, spoken};
use crate::{control_plane, health, home, output, requirements, standins};

/// How far a rehearsal goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Boot,
    There,
    /// There until this step, and back.
    Back(StepName),
}

impl Way {
    pub fn of(source: SourceRetirement, rollback: bool, rollback_at: Option<&str>, boot_only: bool) -> Result<Way, Failure> {
        match (boot_only, rollback_at) {
            (true, _) => Ok(Way::Boot),
            (false, Some(name)) => {
                let known = ways_back(source);
                known.iter().find(|step| step.as_str() == name).map(|step| Way::Back(*step)).ok_or_else(|| {
                    let names: Vec<&str> = known.iter().map(|step| step.as_str()).collect();
                    Failure { message: format!("there is no way back from {name:?}; there is from: {}", names.join(", ")), code: 2 }
                })
            }
            (false, None) => Ok(if rollback { Way::Back(StepName::PodsHealthy) } else { Way::There }),
        }
    }

    fn rollback_at(self) -> Option<StepName> {
        match self {
            Way::Back(step) => Some(step),
            Way::Boot | Way::There => None,
        }
    }
}

/// Other rehearsals may run at the same time: each has a name of its own.
fn name(shape: &str) -> String {
    format!("{shape}-{}", std::process::id())
}

/// The shape and the way that are asked for, or what is wrong with them: said before anything is built.
pub fn asked(shape: &str, way: Way, report: Option<&Path>) -> Result<(Shape, Way), Failure> {
    let wanted = Shape::named(shape)?;
    let way = match way {
        Way::Back(_) if !wanted.can_grow() => {
            let why = if wanted.has_openshift() { "is only booted" } else { "has no vCenter to move to" };
            return Err(Failure { message: format!("shape {shape} {why}, and so no way back"), code: 2 });
        }
        Way::There if !wanted.can_grow() => Way::Boot,
        way => way,
    };
    if let Some(path) = report {
        check_writable(path)?;
    }
    Ok((wanted, way))
}

pub async fn rehearse(wanted: &Shape, source: SourceRetirement, way: Way, report: Option<&Path>, keep: bool) -> Result<u8, Failure> {
    let shape = wanted.name.as_str();
    if way != Way::Boot {
        // Said now, and not when the lab is up.
        operator::binary()?;
    }
    // Before minutes go by with building.
    requirements::check(&home::folder())?;
    let mut progress = Progress::stderr();
    let tools = Tools::prepare(&mut progress).await?;
    let began = Instant::now();
    let name = if keep { shape.to_owned() } else { name(shape) };
    let order = Order { shape: shape.to_owned(), name, block: None };
    let running = Running::start(&order, !keep, |text| progress.line(&format!("{:>6}  {text}", spoken(began.elapsed())))).await?;
    let record = running.record.clone();

    let resident = resident_mb(&record.name)?;
    let real: Vec<String> =
        tools.places().iter().filter(|place| place.tool.real).map(|place| format!("{} {}", place.tool.name, place.version)).collect();
    let boot = record.boot_seconds.unwrap_or_default();
    output::line(format_args!("{shape}: healthy after {boot:.1} s, {resident} MB resident"));
    let (figures, checks) = look(&record, wanted, source, way, &real).await?;
    let passed = checks.iter().all(|check| check.passed);
    for check in &checks {
        let detail = if check.detail.is_empty() { String::new() } else { format!(": {}", check.detail) };
        output::line(format_args!("  {}  {}{detail}", if check.passed { "ok    " } else { "FAILED" }, check.name));
    }
    if let Some(figures) = &figures {
        tell(figures);
    }
    if let Some(path) = report {
        let report = json!({
            "shape": shape, "boot_seconds": boot, "resident_mb": resident,
            "real_components": real, "stand_ins": standins::NAMES,
            "migration": figures,
            "verdict": {"passed": passed, "checks": checks},
        });
        std::fs::write(path, format!("{report:#}\n")).map_err(|error| unwritable(path, &error))?;
    }
    if keep {
        running.leave();
        output::line(format_args!("the lab keeps running: `vmi-lab status`, `vmi-lab down --name {}`", record.name));
    } else {
        running.stop().await?;
    }
    Ok(u8::from(!passed))
}

/// Says what stands where, and goes the way.
async fn look(
    record: &Record,
    shape: &Shape,
    source: SourceRetirement,
    way: Way,
    real: &[String],
) -> Result<(Option<Figures>, Vec<Check>), Failure> {
    let client = control_plane::client(&kubeconfig(record)).await?;
    for line in summary(&client, record).await? {
        output::line(format_args!("  {line}"));
    }
    for vcenter in &record.vcenters {
        output::line(format_args!("  vCenter {}   https://{}:{}", vcenter.name, vcenter.server, vcenter.port));
    }
    output::line(format_args!("  real        {}", real.join(", ")));
    output::line(format_args!("  stand-ins   {}", standins::NAMES.join(", ")));
    if !shape.has_openshift() {
        let cache = Cache::start(&client, &[(NODE, "")]).await;
        return Ok((None, vec![Check::new("every node is ready", health::nodes(&cache, usize::from(shape.plain_nodes)))]));
    }
    let site = Site::of(record).await?;
    let mut checks = vec![Check::new("every machine of the shape is there", all_machines(&site).await?)];
    if let Some(written) = shape.written {
        let pods = crate::kubernetes::list(&client, crate::kubernetes::POD, board::NAMESPACE).await?.len();
        let all = if u32::try_from(pods).is_ok_and(|pods| pods >= written.pods) {
            Ok(())
        } else {
            Err(format!("{pods} of {} are there", written.pods))
        };
        checks.push(Check::new("every written pod is there", all));
        return Ok((None, checks));
    }
    if way == Way::Boot {
        checks.extend(verdict::healthy(&site).await);
        return Ok((None, checks));
    }
    let outcome = rehearsal::rehearse(&site, source, way.rollback_at(), &mut View::stderr()).await?;
    checks.extend(outcome.checks);
    Ok((Some(outcome.figures), checks))
}

async fn all_machines(site: &Site) -> Result<Result<(), String>, Failure> {
    let count = crate::kubernetes::list(&site.client, crate::kubernetes::MACHINE, "").await?.len();
    let sets = site.shape.machine_sets.iter().map(|set| usize::from(set.replicas)).sum::<usize>();
    let written = site.shape.written.map_or(0, |written| usize::from(written.machines));
    let wanted = usize::from(site.shape.control_plane) + sets + written;
    Ok(if count == wanted { Ok(()) } else { Err(format!("{count} of {wanted} are there")) })
}

fn tell(figures: &Figures) {
    output::line(format_args!("  {:<26} {:>8} {:>18}", "step", "seconds", "the operator's own"));
    for step in &figures.steps {
        output::line(format_args!("  {:<26} {:>8.1} {:>18.2}", step.name, step.seconds, step.own_seconds));
    }
    let took = figures.seconds.map_or_else(|| "no end".to_owned(), |seconds| format!("{seconds:.1} s"));
    output::line(format_args!(
        "  took        {took}; {:.1} s of it no operator could save, {:.2} s asleep",
        figures.floor_seconds, figures.asleep_seconds
    ));
    let hands = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1} ms"));
    output::line(format_args!("  hand-overs  median {}, worst {}", hands(figures.handover_median_ms), hands(figures.handover_max_ms)));
    output::line(format_args!(
        "  used        {:.1} MB, {:.2} s of processor, {} requests to the apiserver, {} and {} to the vCenters",
        figures.rss_peak_mb,
        figures.cpu_seconds,
        figures.apiserver_requests,
        figures.vcenter_requests.source,
        figures.vcenter_requests.target
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rehearsal_goes_all_the_way_unless_told_otherwise() {
        let way = |rollback, at, boot_only| Way::of(SourceRetirement::Remove, rollback, at, boot_only).map_err(|failure| failure.message);
        assert_eq!(way(false, None, false), Ok(Way::There));
        assert_eq!(way(true, None, false), Ok(Way::Back(StepName::PodsHealthy)));
        assert_eq!(way(false, Some("TagsAttached"), false), Ok(Way::Back(StepName::TagsAttached)));
        assert_eq!(way(false, None, true), Ok(Way::Boot));
    }

    #[test]
    fn a_step_without_a_way_back_is_refused_with_those_that_have_one() {
        for (source, step, known) in [
            (SourceRetirement::Remove, "SourceDetached", "ControlPlaneReady, SourceWorkersRemoved"),
            (SourceRetirement::Keep, "SourceWorkersRemoved", "PodsRestarted, PodsHealthy"),
        ] {
            let failure = Way::of(source, false, Some(step), false).map_err(|failure| (failure.code, failure.message)).unwrap_err();
            assert_eq!(failure.0, 2);
            assert!(failure.1.ends_with(known), "{}", failure.1);
        }
    }
}
