//! The report of pynfs (the list at the end of its output), or of a suite on a mount.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

/// The result of a test, in the terms of pynfs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(super) enum Outcome {
    /// The server did what the test requires.
    Pass,
    /// The server did what the RFC allows, but not what pynfs prefers.
    Warning,
    /// The server does not support the tested feature.
    Unsupported,
    /// The test was not run: a test that it depends on did not pass.
    Omit,
    /// The server did not do what the test requires.
    Failure,
}

/// The result of each test.
pub(super) struct Report(BTreeMap<String, Outcome>);

impl Report {
    /// Reads pynfs's output.
    ///
    /// # Errors
    /// If the output is missing or contains no test.
    pub(super) fn read(log: &Path) -> Result<Self> {
        let bytes = std::fs::read(log).with_context(|| format!("read {}", log.display()))?;
        let report = Self::parse(&String::from_utf8_lossy(&bytes));
        ensure!(!report.0.is_empty(), "pynfs ran no test; see {}", log.display());
        Ok(report)
    }

    /// Reads the output of a suite on a mount: lines such as `check basic : PASS`.
    ///
    /// # Errors
    /// If the output is missing or contains no check.
    pub(super) fn of_checks(log: &Path) -> Result<Self> {
        let bytes = std::fs::read(log).with_context(|| format!("read {}", log.display()))?;
        let report = Self::parse_checks(&String::from_utf8_lossy(&bytes));
        ensure!(!report.0.is_empty(), "the suite checked nothing; see {}", log.display());
        Ok(report)
    }

    fn parse_checks(text: &str) -> Self {
        Self(text.lines().filter_map(check).collect())
    }

    /// The tests of an output, in lines such as `LOOK1 st_lookup.testDir : PASS`.
    pub(super) fn parse(text: &str) -> Self {
        Self(text.lines().filter_map(test).collect())
    }

    /// The tests that did not pass.
    pub(super) fn not_passed(&self) -> BTreeMap<&str, Outcome> {
        let not_passed = self.0.iter().filter(|(_, outcome)| **outcome != Outcome::Pass);
        not_passed.map(|(code, outcome)| (code.as_str(), *outcome)).collect()
    }
}

fn test(line: &str) -> Option<(String, Outcome)> {
    let (what, outcome) = line.rsplit_once(" : ").or_else(|| line.rsplit_once(": "))?;
    let mut words = what.split_whitespace();
    let (code, name) = (words.next()?, words.next()?);
    let outcome = outcome_of(outcome.trim())?;
    (name.starts_with("st_") && words.next().is_none()).then(|| (code.to_owned(), outcome))
}

fn check(line: &str) -> Option<(String, Outcome)> {
    let (name, outcome) = line.strip_prefix("check ")?.rsplit_once(" : ")?;
    Some((name.to_owned(), outcome_of(outcome)?))
}

fn outcome_of(word: &str) -> Option<Outcome> {
    Some(match word {
        "PASS" => Outcome::Pass,
        "WARNING" => Outcome::Warning,
        "UNSUPPORTED" => Outcome::Unsupported,
        "OMIT" => Outcome::Omit,
        "FAILURE" => Outcome::Failure,
        _ => return None,
    })
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |wanted| self.0.values().filter(|outcome| **outcome == wanted).count();
        let (passed, failed) = (count(Outcome::Pass), count(Outcome::Failure));
        let other = self.0.len() - passed - failed;
        write!(f, "{} tests: {passed} passed, {failed} failed, {other} neither", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_found_among_what_else_is_said() {
        let report = Report::parse(
            "WRT15    st_write.testSizes          : RUNNING\n\
             WRT15    st_write.testSizes                                       : PASS\n\
             OPEN23b  st_open.testDenyRead3a                                   : WARNING\n\
             \x20          Read an access_write file should return NFS4_OK : PASS\n\
             SATT9    st_setattr.testNonUTF8                                   : UNSUPPORTED\n",
        );
        assert_eq!(report.to_string(), "3 tests: 1 passed, 0 failed, 2 neither");
        assert_eq!(report.not_passed().len(), 2);
    }

    #[test]
    fn checks_of_a_suite_are_found_among_its_other_output() {
        let lines = "check rename/00.t:5 : FAILURE\nok 6\ncheck rename/00.t : PASS\n\
                     check a : SOMETHING\ncheckers : PASS\n";
        let report = Report::parse_checks(lines);
        assert_eq!(report.to_string(), "2 tests: 1 passed, 1 failed, 0 neither");
        assert_eq!(report.not_passed().keys().copied().collect::<Vec<_>>(), ["rename/00.t:5"]);
    }
}
