//! The tests known not to pass, each with its reason: `docs/conformance.toml`.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::report::{Outcome, Report};

/// The content of the file.
#[derive(Deserialize)]
pub(super) struct Known {
    #[serde(rename = "test")]
    tests: Vec<Test>,
}

/// A test that does not pass.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Test {
    /// The runs in which the tests have this result.
    runs: Vec<String>,
    /// The codes of tests that have this result for the same reason.
    codes: Vec<String>,
    /// The result of these tests.
    outcome: Outcome,
    /// The reason why the result is right, or the program at fault.
    reason: String,
}

impl Known {
    /// Reads the file.
    ///
    /// # Errors
    /// If it cannot be read or has a malformed entry.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path);
        let text = text.with_context(|| format!("read {}", path.display()))?;
        let known: Self =
            toml::from_str(&text).with_context(|| format!("read {}", path.display()))?;
        let bare = known.tests.iter().find(|test| test.reason.trim().is_empty());
        if let Some(bare) = bare {
            bail!("{}: no reason for {}", path.display(), bare.codes.join(", "));
        }
        Ok(known)
    }

    /// The differences between a report and the known results, one line each.
    pub(super) fn differences(&self, run: &str, report: &Report) -> Vec<String> {
        let known = self.of(run);
        let found = report.not_passed();
        let mut differences = Vec::new();
        for (code, outcome) in &found {
            if known.get(code) != Some(outcome) {
                let listed = known.get(code).copied().unwrap_or(Outcome::Pass);
                differences.push(format!("{code}: {outcome:?}, listed as {listed:?}"));
            }
        }
        let passed = known.keys().filter(|code| !found.contains_key(*code));
        differences.extend(passed.map(|code| format!("{code}: passes, or did not run")));
        differences
    }

    fn of(&self, run: &str) -> BTreeMap<&str, Outcome> {
        let tests = self.tests.iter().filter(|test| test.runs.iter().any(|name| name == run));
        tests.flat_map(|test| test.codes.iter().map(|code| (code.as_str(), test.outcome))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = r#"
        [[test]]
        runs = ["4.0", "4.1"]
        codes = ["RNM8", "RNM9"]
        outcome = "FAILURE"
        reason = "names are bytes"
    "#;

    #[test]
    fn every_difference_is_told_for_better_and_for_worse() {
        let known: Known = toml::from_str(LIST).unwrap();
        let report = Report::parse(
            "*****\nRNM8 st_rename.a : FAILURE\nRNM9 st_rename.b : PASS\nLOOK1 st_l.c : WARNING\n",
        );
        assert_eq!(
            known.differences("4.0", &report),
            ["LOOK1: Warning, listed as Pass", "RNM9: passes, or did not run"]
        );
        assert_eq!(known.differences("4.2", &report).len(), 2, "no test of that run is listed");
    }
}
