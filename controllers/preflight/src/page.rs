//! The page of checks, for docs/checks.md.

use std::fmt::Write as _;

use crate::checks::{self, Weight};

const HEAD: &str = "# Checks

<!-- Generated; UPDATE_GOLDEN=1 cargo test -p vmi-preflight rewrites it. -->

Before a migration starts every one of these is made, and made again when something changes: `status.plan.checks` has the results,
`status.plan.blocking` the ids that keep the migration from starting, ConfigMap `vmi-NAME-plan` the whole text. A check that blocks can
be taken on where the last column says so: put its id into `spec.acknowledged`. What could not be looked at is a warning, and the
check that says why blocks.

| id | makes sure that | otherwise | can be acknowledged |
|---|---|---|---|
";

/// The page.
pub fn checks() -> String {
    let mut page = HEAD.to_owned();
    for check in checks::all() {
        let (otherwise, acknowledged) = match check.weight {
            Weight::Blocks => ("blocks", "no"),
            Weight::BlocksUnlessAcknowledged => ("blocks", "yes"),
            Weight::Warns => ("warns", ""),
        };
        // Writing to a String cannot fail.
        let _ = writeln!(page, "| {} | {} | {otherwise} | {acknowledged} |", check.id, check.about);
    }
    page
}
