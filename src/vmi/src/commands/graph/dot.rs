//! The graph for graphviz: an arrow leads from what is waited for to who waits.

use std::fmt::Write as _;

use super::row::Row;

pub(super) fn print(rows: &[Row]) -> String {
    let mut text = "digraph vmi {\n  rankdir=LR;\n  node [shape=box];\n".to_owned();
    for row in rows {
        let shape = if row.one_way.is_some() { ", peripheries=2" } else { "" };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  \"{}\" [label=\"{} {}\\n{}\"{shape}];", row.condition, row.number, row.condition, row.controller);
        for before in row.waits_for {
            let _ = writeln!(text, "  \"{before}\" -> \"{}\";", row.condition);
        }
    }
    text + "}\n"
}
