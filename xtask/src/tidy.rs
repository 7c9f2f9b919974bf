//! What review should not have to look for: the shape of the sources, checked from tables.
//!
//! One rule a file: [`floors`] (who may use whom), [`shape`] (lengths and parameters), [`text`]
//! (columns, leftovers, foreign paths), [`unsafety`], [`modules`] (files nobody includes, crate
//! documentation), [`doors`] (who opens a view). It runs as an ordinary test too.

mod doors;
mod floors;
mod identity;
mod modules;
mod shape;
mod sources;
mod text;
mod unsafety;

use std::fmt;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;

use sources::Tree;

/// Runs every rule over the checkout at `root`.
///
/// # Errors
/// A file that cannot be read, or a Rust source that cannot be parsed.
pub(crate) fn command(root: &Path) -> Result<ExitCode> {
    Ok(if is_tidy(root)? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Whether nothing is to mend; prints the measured numbers, and what is.
///
/// # Errors
/// A file that cannot be read, or a Rust source that cannot be parsed.
pub(crate) fn is_tidy(root: &Path) -> Result<bool> {
    let report = check(root)?;
    println!("tidy: {}", report.numbers);
    report.findings.iter().for_each(|finding| println!("{finding}"));
    if !report.findings.is_empty() {
        println!("tidy: {} to mend", report.findings.len());
    }
    Ok(report.findings.is_empty())
}

/// What the rules measured and found.
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
    unsafety::check(&tree, &mut findings);
    findings.sort();
    findings.dedup();
    Ok(Report { numbers, findings })
}

/// Something to mend: where, what, and what to do about it.
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
