//! The result of a step as counts of tests.

use std::fmt;

/// Tests that passed, failed and were not run.
#[derive(Debug, Clone, Default)]
pub(super) struct Verdict {
    /// Tests that passed.
    pub(super) passed: usize,
    /// Tests that failed, each with what it said first.
    pub(super) failed: Vec<String>,
    /// Tests that could not be run here, each with the reason.
    pub(super) skipped: Vec<String>,
    /// Tests that take too long for `cargo xtask test`.
    pub(super) left: Vec<String>,
    /// Remarks for the log, such as the reason of a failure.
    pub(super) notes: Vec<String>,
}

impl Verdict {
    /// One test that passed.
    pub(super) fn passed() -> Self {
        Self { passed: 1, ..Self::default() }
    }

    /// A step of one test that failed.
    pub(super) fn failed(why: impl Into<String>) -> Self {
        let why = why.into();
        let last = why.lines().last().unwrap_or_default().to_owned();
        Self { failed: vec![last], notes: vec![why], ..Self::default() }
    }

    /// One test that was not run.
    pub(super) fn skipped(why: impl Into<String>) -> Self {
        Self { skipped: vec![why.into()], ..Self::default() }
    }

    /// Adds the result of another step.
    pub(super) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed.extend(other.failed);
        self.skipped.extend(other.skipped);
        self.left.extend(other.left);
        self.notes.extend(other.notes);
    }

    /// A copy with the name of the step before each test that failed or was not run.
    pub(super) fn of(self, step: &str) -> Self {
        let name =
            |tests: Vec<String>| tests.iter().map(|test| format!("{step}: {test}")).collect();
        let (failed, skipped, left) = (name(self.failed), name(self.skipped), name(self.left));
        Self { failed, skipped, left, ..self }
    }

    /// Reads the output of test programs that run with `--show-output`: their own sums, and each
    /// test that printed `skipped: REASON`, which counts as skipped and not as passed.
    pub(super) fn of_output(text: &str) -> Self {
        let mut verdict = Self { failed: failures(text), ..Self::default() };
        let (mut program, mut test) = (String::new(), String::new());
        let mut has_failed = false;
        for line in text.lines() {
            if let Some(name) = program_of(line) {
                (program, test, has_failed) = (name, String::new(), false);
            } else if line == "failures:" {
                // The output of failed tests follows this line.
                (test, has_failed) = (String::new(), true);
            } else if let Some(name) = heading(line).filter(|_| !has_failed) {
                test = name.to_owned();
            } else if let Some(why) = line.strip_prefix("skipped: ").filter(|_| !test.is_empty()) {
                verdict.skip(format!("{program} {test}"), why);
            } else if let Some((name, why)) = ignored(line) {
                verdict.skipped.push(format!("{program} {name}: {why}"));
            } else if let Some(sums) = line.strip_prefix("test result: ") {
                verdict.passed += count(sums, "passed");
                test.clear();
            }
        }
        // Tests that printed that they were skipped are among those that their program counts as
        // passed.
        verdict.passed = verdict.passed.saturating_sub(verdict.skipped_itself());
        verdict
    }

    /// Notes that a test skipped itself or a part of itself.
    fn skip(&mut self, test: String, why: &str) {
        let known = self.skipped.iter_mut().find(|known| known.starts_with(&format!("{test}: ")));
        match known {
            Some(known) => *known += &format!("; {why}"),
            None => self.skipped.push(format!("{test}: {why}")),
        }
    }

    /// The number of tests that skipped themselves; the others are marked as ignored in their
    /// source.
    fn skipped_itself(&self) -> usize {
        self.skipped.iter().filter(|test| !test.ends_with(IGNORED)).count()
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { passed, failed, skipped, left, .. } = self;
        write!(out, "{passed} passed, {} failed, {} skipped", failed.len(), skipped.len())?;
        if left.is_empty() { Ok(()) } else { write!(out, ", {} left to soak", left.len()) }
    }
}

/// The reason given for a test with `#[ignore]`.
const IGNORED: &str = "(ignored)";

/// The test program in a line of cargo: `crates/a/tests/b.rs`, or the crate for unit tests.
fn program_of(line: &str) -> Option<String> {
    let line = line.trim_start();
    if let Some(package) = line.strip_prefix("Doc-tests ") {
        return Some(format!("doc {package}"));
    }
    let (source, program) = line.strip_prefix("Running ")?.split_once(" (")?;
    let file = program.trim_end_matches(')').rsplit('/').next()?;
    let name = file.rsplit_once('-').map_or(file, |(name, _)| name);
    Some(if source.starts_with("unittests") { name.to_owned() } else { source.to_owned() })
}

/// The tests that failed, each with the place and the first line of its panic.
fn failures(text: &str) -> Vec<String> {
    let mut failures: Vec<String> = Vec::new();
    let (mut program, mut has_failed, mut has_panic) = (String::new(), false, false);
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(name) = program_of(line) {
            (program, has_failed) = (name, false);
        } else if line == "failures:" {
            has_failed = true;
        } else if line.contains("process didn't exit successfully: ") && !has_failed {
            // A signal, or a panic during a panic, has ended the program before its sums.
            failures.push(format!("{program}: {}", line.trim()));
        } else if let Some(name) = heading(line).filter(|_| has_failed) {
            failures.push(format!("{program} {name}"));
            has_panic = false;
        } else if let Some((_, place)) = line.split_once(" panicked at ")
            && let Some(failure) = failures.last_mut().filter(|_| has_failed && !has_panic)
        {
            *failure += &format!(": {place} {}", lines.next().unwrap_or_default());
            has_panic = true;
        }
    }
    failures
}

/// The test whose output follows the line, if the line is such a heading.
fn heading(line: &str) -> Option<&str> {
    line.strip_prefix("---- ")?.strip_suffix(" stdout ----")
}

/// The name of a test that is marked as ignored in its source, and the reason.
fn ignored(line: &str) -> Option<(&str, String)> {
    let (name, result) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let why = result.strip_prefix("ignored")?.trim_start_matches([',', ' ']);
    Some((name, format!("{why}{}{IGNORED}", if why.is_empty() { "" } else { " " })))
}

/// The number that precedes a word.
fn count(sums: &str, word: &str) -> usize {
    let before = sums.split_once(&format!(" {word}")).map(|(before, _)| before);
    before.and_then(|before| before.rsplit(' ').next()?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "     Running unittests src/lib.rs (target/debug/deps/comity_vfs-1a2b)\n\
        test a ... ok\n\
        test slow ... ignored, takes an hour\n\
        successes:\n\n\
        ---- a stdout ----\nskipped: needs root\nskipped: and a disk\n\n\
        successes:\n    a\n\n\
        test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out\n\
        skipped: this is not what a test says\n\
             Running tests/b.rs (target/debug/deps/b-3c4d)\n\
        ---- c stdout ----\nskipped: no groff\n\
        failures:\n\n---- d stdout ----\nskipped: a part\n\
        thread 'd' (7) panicked at x.rs:1:2:\nassertion failed\n\n---- e stdout ----\n\n\
        test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out\n\
             Running tests/f.rs (target/debug/deps/f-5e6f)\n\
        Caused by:\n  process didn't exit successfully: `f` (signal: 6, SIGABRT)\n";

    #[test]
    fn a_test_that_skips_itself_does_not_count_as_passed() {
        let verdict = Verdict::of_output(OUTPUT);
        assert_eq!(verdict.passed, 13);
        assert_eq!(
            verdict.failed,
            [
                "tests/b.rs d: x.rs:1:2: assertion failed",
                "tests/b.rs e",
                "tests/f.rs: process didn't exit successfully: `f` (signal: 6, SIGABRT)",
            ]
        );
        let expected = [
            "comity_vfs slow: takes an hour (ignored)",
            "comity_vfs a: needs root; and a disk",
            "tests/b.rs c: no groff",
        ];
        assert_eq!(verdict.skipped, expected);
    }

    #[test]
    fn the_sum_names_the_step_of_what_failed_or_was_not_run() {
        let mut total = Verdict::failed("the end of a log:\nno such file").of("deny");
        let left = vec!["tar-4.0".to_owned()];
        total.add(Verdict { left, ..Verdict::skipped("no groff") }.of("tests"));
        assert_eq!(total.to_string(), "0 passed, 1 failed, 1 skipped, 1 left to soak");
        assert_eq!(total.failed, ["deny: no such file"]);
        assert_eq!(total.skipped, ["tests: no groff"]);
        assert_eq!(total.left, ["tests: tar-4.0"]);
    }
}
