//! docs/steps.md.

use vmi_crds::graph::{HELD_BACK, Stage, StepName, UNDO_ORDER, UNITS};

use super::row::Row;

pub(super) fn print(rows: &[Row]) -> String {
    [
        "<!-- Generated; UPDATE_GOLDEN=1 cargo test -p vmi rewrites it. -->\n# The steps of a migration\n",
        "A step is done when its condition on the vmi is True. Its controller takes it once everything it waits for is True; what a",
        "migration does not ask for is not waited for. `vmi graph` prints the same, also as JSON and for graphviz.\n",
        &steps(rows),
        "\n## How a condition turns True\n",
        &endings(rows),
        "\n## What is special\n",
        &special(rows),
        "\n## The way back\n",
        "One stage after the other, whichever step it begins at. A step that never began counts as undone.\n",
        &way_back(),
    ]
    .join("\n")
}

fn steps(rows: &[Row]) -> String {
    let mut lines = vec!["| # | condition | controller | waits for | asked | undo |".to_owned(), "|---|---|---|---|---|---|".to_owned()];
    lines.extend(rows.iter().map(|row| {
        let (number, condition, controller, waits_for) = (row.number, row.condition, row.controller, row.waits_for_numbers());
        format!("| {number} | {condition} | {controller} | {waits_for} | {} | {} |", row.asked, row.undo)
    }));
    lines.join("\n")
}

fn endings(rows: &[Row]) -> String {
    let mut lines = vec!["| # | reason | when |".to_owned(), "|---|---|---|".to_owned()];
    for row in rows {
        lines.extend(row.turns_true.iter().map(|way| format!("| {} | {} | {} |", row.number, way.reason, way.when)));
    }
    lines.join("\n")
}

fn numbers(steps: &[StepName]) -> String {
    let numbers: Vec<&str> = steps.iter().map(|name| name.step().number).collect();
    numbers.join(", ")
}

fn special(rows: &[Row]) -> String {
    let mut lines: Vec<String> = rows
        .iter()
        .filter_map(|row| Some(format!("- There is no way back from {} on with `sourceRetirement: {:?}`.", row.number, row.one_way?)))
        .collect();
    let units: Vec<String> = UNITS.iter().map(|unit| numbers(unit)).collect();
    lines.push(format!("- One unit, which finishes once begun: {}.", units.join("; ")));
    lines.push(format!("- Begin nothing new while the condition Held is True: {}.", numbers(HELD_BACK)));
    lines.join("\n")
}

fn way_back() -> String {
    let mut lines = vec!["| stage | steps | needs | only where these had begun |".to_owned(), "|---|---|---|---|".to_owned()];
    lines.extend(UNDO_ORDER.iter().zip(1..).map(|(stage, place): (&Stage, i32)| {
        format!("| {place} | {} | {} | {} |", numbers(stage.steps), numbers(stage.needs), numbers(stage.only_after))
    }));
    lines.join("\n") + "\n"
}
