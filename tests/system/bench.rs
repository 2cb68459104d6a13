//! The benchmark: that it does all of its work and reports every figure that docs/performance.md tells.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::command_line::Home;
use crate::support::suite::TestResult;

/// The works in the document's table of works: what the first cell of a row has between backquotes. Other tables follow it.
fn documented() -> TestResult<BTreeSet<String>> {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/performance.md"))?;
    let table = text.lines().skip_while(|line| !line.starts_with("| work |")).take_while(|line| line.starts_with('|'));
    Ok(table.filter_map(|line| line.strip_prefix("| `")?.split('`').next().map(str::to_owned)).collect())
}

pub async fn a_benchmark_does_all_of_its_work_and_reports_every_figure_the_document_tells() -> TestResult {
    let home = Home::new()?;
    let output = home.run(&["bench", "500_uuid"]).await?;
    assert!(output.code() == 2 && output.stderr.contains("there are: inventory, "), "{}", output.stderr);
    let report = home.path().join("bench.json");
    home.run(&["bench", "--quick", "--report", &report.to_string_lossy()]).await?.success()?;
    let report: Value = serde_json::from_slice(&fs::read(&report)?)?;
    let cases = report["cases"].as_array().ok_or("the report has no cases")?;
    let (logs, cases): (Vec<&Value>, Vec<&Value>) = cases.iter().partition(|case| case["peer_name"] == "grep");
    let log = json!({"name": "log_matching", "unit": "MB/s", "better": "higher"});
    assert_eq!(
        logs.iter().map(|case| json!({"name": case["name"], "unit": case["unit"], "better": case["better"]})).collect::<Vec<_>>(),
        [log]
    );
    let mut works = BTreeSet::new();
    for case in &cases {
        let (work, figure) = case["name"].as_str().and_then(|name| name.split_once('.')).ok_or("a case without a name")?;
        let unit = match figure {
            "seconds" => "s",
            "requests" => "requests",
            "received" => "bytes",
            "peak_memory" => "MB",
            other => return Err(format!("{other} is no figure").into()),
        };
        assert_eq!((&case["unit"], &case["better"], &case["peer_name"]), (&unit.into(), &"lower".into(), &"govmomi".into()), "{case}");
        assert!([&case["ours"], &case["peer"]].iter().all(|figure| figure.as_f64().is_some_and(|figure| figure > 0.0)), "{case}");
        works.insert(work.to_owned());
    }
    assert_eq!((cases.len(), &works), (4 * works.len(), &documented()?));
    Ok(())
}
