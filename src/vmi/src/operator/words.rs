//! A migration in words.

use vmi_crds::VSphereMigrationInfra;
use vmi_crds::graph::{Step, Undo};
use vmi_crds::status::StepState;
use vmi_kit::Reading;
use vmi_kit::turn::{rolling_back, undone};

/// The step at hand, how many are done, and of how many.
pub fn progress(vmi: &VSphereMigrationInfra) -> (String, usize, usize) {
    let steps: Vec<&Step> = vmi.request().steps().collect();
    let shown = |step: Option<&&Step>, end: &str| step.map_or_else(|| end.to_owned(), |step| format!("{} {}", step.number, step.name));
    if rolling_back(vmi) {
        let mut begun: Vec<&Step> = steps.iter().copied().filter(|step| step.name.undo_rank().is_some() && vmi.begun(step.name)).collect();
        begun.sort_by_key(|step| step.name.undo_rank());
        let done = begun.iter().filter(|step| undone(vmi, step.name)).count();
        return (shown(begun.iter().find(|step| !undone(vmi, step.name)), "all undone"), done, begun.len());
    }
    let taken = |step: &&&Step| vmi.step_state(step.name) == StepState::Done || vmi.is_true(step.name.as_str());
    let done = steps.iter().filter(taken).count();
    (shown(steps.iter().find(|step| !taken(step)), "all done"), done, steps.len())
}

/// What an abandoned migration leaves, step by step.
pub fn left_behind(vmi: &VSphereMigrationInfra) -> String {
    let left: Vec<String> = vmi
        .request()
        .steps()
        .filter(|step| matches!(step.undo, Undo::By(_)) && vmi.begun(step.name) && vmi.step_state(step.name) != StepState::Undone)
        .map(|step| match step.undo {
            Undo::By(how) => format!("{} {} stands; to undo it by hand: {how}", step.number, step.name),
            Undo::RunsAgain | Undo::Never(_) => String::new(),
        })
        .collect();
    if left.is_empty() {
        "abandoned; nothing was left changed".to_owned()
    } else {
        format!("abandoned; left as it is: {}", left.join("; "))
    }
}
