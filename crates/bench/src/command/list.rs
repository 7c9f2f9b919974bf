use std::fmt::Write;

use anyhow::Result;

use crate::stdout::say;
use crate::suite::Needs;

/// Prints the workloads, each with what it does and what it needs.
pub(super) fn show() -> Result<()> {
    let mut text = String::new();
    for workload in crate::workload::all() {
        let needs = match workload.needs() {
            Needs::Files => "any target",
            Needs::Directory => "directories only",
            Needs::Locks => "directories, and servers in version 4.1",
            Needs::Protocol => "servers only",
            Needs::Keys => "peer:keys only",
        };
        writeln!(text, "{:10} {} ({needs})", workload.name(), workload.about())?;
    }
    writeln!(text, "\nParameters and their presets: comity bench run WORKLOAD --help")?;
    say(&text)
}
