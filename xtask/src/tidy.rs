//! Rules about the shape of the sources, which are checked by tables, so that reviewers need not.
//!
//! Each rule has a file: [`floors`] (uses between crates), [`shape`] (lengths and parameters),
//! [`text`] (columns, leftovers, foreign paths), [`documents`] (columns of markdown), [`unsafety`],
//! [`modules`] (files without a module, crate documentation), [`doors`] (calls that open a view),
//! [`ratios`] (lines of tests), [`cycles`] (modules that use each other in a cycle), [`words`]. The
//! last two compare counts with [`tables`]. The rules also run as an ordinary test.

pub(crate) mod comments;
mod cycles;
mod documents;
mod doors;
mod floors;
mod identity;
mod modules;
#[cfg(test)]
mod named;
mod prose;
mod ratios;
mod shape;
mod sources;
mod tables;
mod text;
mod unsafety;
mod words;

use std::fmt;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use sources::Tree;
use tables::Tables;

/// Options for output other than the findings.
#[derive(Args)]
pub(crate) struct Options {
    /// Print xtask/tables.toml with the counts of these sources.
    #[arg(long)]
    tables: bool,
    /// Print the uses between the modules of this crate that use each other in a cycle.
    #[arg(long, value_name = "CRATE")]
    cycles: Option<String>,
    /// Print the lines of tests per line of production code, crate by crate.
    #[arg(long)]
    ratios: bool,
}

/// Runs every rule over the checkout at `root`, or prints the requested tables, cycles or ratios.
///
/// # Errors
/// A file that cannot be read, or a Rust source that cannot be parsed.
pub(crate) fn command(root: &Path, options: &Options) -> Result<ExitCode> {
    if options.tables || options.ratios || options.cycles.is_some() {
        let mut tree = Tree::load(root)?;
        modules::check(&mut tree, &mut Vec::new());
        match &options.cycles {
            Some(name) => print!("{}", cycles::story(&tree, name)),
            None if options.ratios => print!("{}", ratios::table(&tree)),
            None => print!("{}", measured(&tree).file()),
        }
        return Ok(ExitCode::SUCCESS);
    }
    Ok(if is_tidy(root)? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Prints the measured numbers and the findings; returns whether there are no findings.
///
/// # Errors
/// A file that cannot be read, or a Rust source that cannot be parsed.
pub(crate) fn is_tidy(root: &Path) -> Result<bool> {
    let report = check(root)?;
    println!("tidy: {}", report.numbers);
    report.findings.iter().for_each(|finding| println!("{finding}"));
    if !report.findings.is_empty() {
        println!("tidy: {} findings", report.findings.len());
    }
    Ok(report.findings.is_empty())
}

/// The counts of the tables, measured in these sources.
fn measured(tree: &Tree) -> Tables {
    let mut tables = Tables { cycles: cycles::measure(tree), ..Tables::default() };
    words::measure(tree, &mut tables);
    tables
}

/// The measured numbers and the findings.
struct Report {
    numbers: shape::Numbers,
    findings: Vec<Finding>,
}

fn check(root: &Path) -> Result<Report> {
    let mut tree = Tree::load(root)?;
    let mut findings = Vec::new();
    modules::check(&mut tree, &mut findings);
    let numbers = shape::check(&tree, &mut findings);
    floors::check(&tree, &mut findings);
    doors::check(&tree, &mut findings);
    identity::check(&tree, &mut findings);
    text::check(&tree, &mut findings);
    documents::check(&tree, &mut findings);
    unsafety::check(&tree, &mut findings);
    let tables = Tables::allowed(&tree, &mut findings);
    cycles::check(&tree, &tables.cycles, &mut findings);
    words::check(&tree, &tables, &mut findings);
    tables.check_stale(&measured(&tree), &tree, &mut findings);
    ratios::check(&tree, &mut findings);
    findings.sort();
    findings.dedup();
    Ok(Report { numbers, findings })
}

/// A finding: its place, its description and its remedy.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    path: String,
    line: usize,
    what: String,
    remedy: String,
}

impl Finding {
    fn new(at: (&str, usize), what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { path: at.0.into(), line: at.1, what: what.into(), remedy: remedy.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}: {}: {}", self.path, self.line, self.what, self.remedy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checkout_is_tidy() {
        let report = check(&crate::root()).unwrap();
        println!("{}", report.numbers);
        let found: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
        assert!(found.is_empty(), "to mend:\n{}", found.join("\n"));
    }
}
