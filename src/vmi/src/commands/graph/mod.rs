//! `vmi graph`: the order of the steps, as data.

mod dot;
mod markdown;
mod row;

use clap::ValueEnum;
use vmi_crds::graph::{self, STEPS};

use self::row::Row;
use super::{Exit, Failure, print};
use crate::table;

/// Print the steps of a migration: who takes them, what they wait for, how they are taken back
#[derive(clap::Args)]
pub struct Graph {
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
}

#[derive(Clone, Copy, Default, ValueEnum)]
enum Output {
    #[default]
    Text,
    Json,
    /// For graphviz
    Dot,
    /// docs/steps.md
    Markdown,
}

impl Graph {
    pub(super) fn run(&self) -> Result<Exit, Failure> {
        let rows: Vec<Row> = STEPS.iter().map(Row::of).collect();
        match self.output {
            Output::Text => print(&text(&rows))?,
            Output::Json => print(&format!("{:#}\n", json(&rows)))?,
            Output::Dot => print(&dot::print(&rows))?,
            Output::Markdown => print(&markdown::print(&rows))?,
        }
        Ok(Exit::Ok)
    }
}

fn text(rows: &[Row]) -> String {
    let head = ["#", "CONDITION", "CONTROLLER", "WAITS FOR", "ASKED", "UNDO"].map(str::to_owned).to_vec();
    let body = rows.iter().map(|row| {
        vec![
            row.number.to_owned(),
            row.condition.to_owned(),
            row.controller.to_owned(),
            row.waits_for_numbers(),
            row.asked.to_owned(),
            row.undo.clone(),
        ]
    });
    let table: Vec<Vec<String>> = std::iter::once(head).chain(body).collect();
    table::lines(&table).join("\n") + "\n"
}

fn json(rows: &[Row]) -> serde_json::Value {
    let names = |steps: &[graph::StepName]| steps.iter().map(|step| step.as_str()).collect::<Vec<_>>();
    let undo = graph::UNDO_ORDER
        .iter()
        .map(|stage| serde_json::json!({"steps": names(stage.steps), "needs": names(stage.needs), "onlyAfter": names(stage.only_after)}));
    serde_json::json!({
        "version": graph::VERSION,
        "steps": rows,
        "undoOrder": undo.collect::<Vec<_>>(),
        "units": graph::UNITS.iter().map(|unit| names(unit)).collect::<Vec<_>>(),
        "heldBack": names(graph::HELD_BACK),
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn rows() -> Vec<Row> {
        STEPS.iter().map(Row::of).collect()
    }

    #[test]
    fn the_document_of_the_steps_is_what_the_table_says() {
        let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/steps.md");
        let generated = markdown::print(&rows());
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&file, &generated).unwrap();
        }
        let stored = std::fs::read_to_string(&file).unwrap();
        assert!(stored == generated, "docs/steps.md is not what the table says: run UPDATE_GOLDEN=1 cargo test -p vmi");
    }

    #[test]
    fn every_step_has_a_line_and_names_what_it_waits_for_by_number() {
        let text = text(&rows());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), STEPS.len() + 1);
        let seventh: Vec<&str> = lines[8].split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
        assert_eq!(seventh[..5], ["7", "InfrastructureExtended", "config-rewrite", "1, 2, 4, 5, 6", "always"]);
    }

    #[test]
    fn json_says_all_that_text_says_and_the_undo_order() {
        let json = json(&rows());
        let steps = json["steps"].as_array().unwrap();
        assert_eq!(steps.len(), STEPS.len());
        assert_eq!(steps[8]["number"], "8");
        assert_eq!(steps[8]["condition"], "CloudConfigExtended");
        assert_eq!(steps[8]["waitsFor"], serde_json::json!(["InfrastructureExtended"]));
        assert_eq!(steps[14]["oneWay"], "Remove");
        assert_eq!(json["undoOrder"][3]["steps"], serde_json::json!(["CloudConfigExtended", "InfrastructureExtended"]));
    }

    #[test]
    fn every_wait_is_an_edge_and_every_step_a_node() {
        let dot = dot::print(&rows());
        let waits: usize = STEPS.iter().map(|step| step.waits_for.len()).sum();
        assert_eq!(dot.matches(" -> ").count(), waits);
        assert_eq!(dot.matches("[label=").count(), STEPS.len());
        assert!(dot.contains("\"InfrastructureExtended\" -> \"CloudConfigExtended\";"), "{dot}");
    }
}
