//! The steps, in order.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use crate::tools::program;
use crate::{kernel, tidy};

use super::command::{judge, run};
use super::{Verdict, deny, fuzz, packages};

/// One step.
pub(super) struct Step {
    /// Its name on the command line.
    pub(super) name: &'static str,
    /// What it shows.
    pub(super) about: &'static str,
    /// Whether `--quick` leaves it out.
    pub(super) slow: bool,
    /// Runs it, in the checkout, under its name.
    pub(super) run: fn(&Path, &str) -> Result<Verdict>,
}

/// Longest time for one run of cargo, with everything to be built, on a slow machine.
const PATIENCE: Duration = Duration::from_secs(40 * 60);

/// All steps.
pub(super) const STEPS: &[Step] = &[
    step("packages", "install the Debian packages the other steps need", packages::step),
    step("format", "rustfmt has nothing to change", |root, name| {
        let mut verdict = cargo(root, name, &["fmt", "--all", "--check"])?;
        // The fuzz targets are a workspace of their own.
        let fuzz = ["fmt", "--manifest-path", "fuzz/Cargo.toml", "--check"];
        verdict.add(cargo(root, &format!("{name}-fuzz"), &fuzz)?);
        Ok(verdict)
    }),
    step("clippy", "clippy has nothing to say", |root, name| {
        let what = ["clippy", "--workspace", "--all-targets", "--locked", "--keep-going", "--"];
        let what = [&what[..], &["-D", "warnings"]].concat();
        cargo(root, name, &what)
    }),
    step("tidy", "floors, shape, doors, leftovers", |root, _| {
        let tidy = tidy::is_tidy(root)?;
        Ok(if tidy { Verdict::passed() } else { Verdict::failed("what is to mend stands above") })
    }),
    step("tests", "unit, property, conformance and in-process client tests", tests),
    step("schedules", "clients that use the state at once, turns by chance", |root, name| {
        let what = ["test", "--locked", "--package", "comity-state", "--features", "schedules"];
        cargo(root, name, &[&what[..], &["--test", "schedules"]].concat())
    }),
    step("docs", "the documentation builds, private items too", |root, name| {
        let mut command = Command::new(program());
        command.args(["doc", "--workspace", "--no-deps", "--document-private-items", "--locked"]);
        judge(root, name, after_flags(command, "RUSTDOCFLAGS", "-D warnings"), PATIENCE)
    }),
    step("deny", "licences, bans and sources of the dependencies", deny_step),
    slow("kernel", "tests with a Linux kernel NFS client", kernel_tests),
    slow("fuzz", "60 seconds of each fuzz target", fuzz::step),
    slow("instructions", "what hot paths, maps and cloaks cost, in instructions", instructions),
];

const fn step(
    name: &'static str,
    about: &'static str,
    run: fn(&Path, &str) -> Result<Verdict>,
) -> Step {
    Step { name, about, slow: false, run }
}

const fn slow(
    name: &'static str,
    about: &'static str,
    run: fn(&Path, &str) -> Result<Verdict>,
) -> Step {
    Step { name, about, slow: true, run }
}

/// A run of cargo that passes or fails as a whole.
fn cargo(root: &Path, name: &str, arguments: &[&str]) -> Result<Verdict> {
    let mut command = Command::new(program());
    command.args(arguments);
    judge(root, name, command, PATIENCE)
}

fn after_flags(mut command: Command, variable: &str, flags: &str) -> Command {
    let before = std::env::var(variable).unwrap_or_default();
    command.env(variable, format!("{before} {flags}").trim());
    command
}

/// `cargo test`, each test counted.
fn tests(root: &Path, name: &str) -> Result<Verdict> {
    let mut command = Command::new(program());
    command.args(["test", "--workspace", "--locked", "--no-fail-fast"]);
    let done = run(root, name, command, PATIENCE)?;
    let mut verdict = counts(&done.text());
    if !done.success {
        // A crate that does not compile counts too.
        verdict.failed = verdict.failed.max(1);
        verdict.notes.push(done.ending());
    }
    if verdict.passed == 0 && verdict.failed == 0 {
        return Ok(Verdict::failed("no test ran"));
    }
    Ok(verdict)
}

/// Adds up what the test programs say of themselves.
fn counts(text: &str) -> Verdict {
    let mut verdict = Verdict::default();
    for line in text.lines().filter_map(|line| line.strip_prefix("test result: ")) {
        let count = |word: &str| {
            let (before, _) = line.split_once(&format!(" {word}"))?;
            before.rsplit(' ').next()?.parse::<usize>().ok()
        };
        verdict.passed += count("passed").unwrap_or(0);
        verdict.failed += count("failed").unwrap_or(0);
        verdict.skipped += count("ignored").unwrap_or(0);
    }
    verdict
}

fn deny_step(root: &Path, name: &str) -> Result<Verdict> {
    let installed = Command::new(program()).args(["deny", "--version"]).output();
    if !installed.is_ok_and(|done| done.status.success()) {
        return deny::check(root);
    }
    cargo(root, name, &["deny", "--offline", "check", "licenses", "bans", "sources"])
}

fn kernel_tests(root: &Path, _: &str) -> Result<Verdict> {
    let tally = kernel::run(root, &kernel::Run::all())?;
    let (skipped, notes) = tally.skipped.map_or((0, vec![]), |(count, why)| (count, vec![why]));
    Ok(Verdict { passed: tally.passed, failed: tally.failed, skipped, notes })
}

fn instructions(root: &Path, name: &str) -> Result<Verdict> {
    if Command::new("valgrind").arg("--version").output().is_err() {
        return Ok(Verdict::skipped("valgrind is not installed"));
    }
    let bench = ["run", "--quiet", "--package", "xtask", "--", "bench", "--check"];
    let mut verdict = cargo(root, name, &[&bench[..], &["--instructions"]].concat())?;
    // Ratios of configurations, which no file has to be kept for.
    let name = format!("{name}-identity");
    verdict.add(cargo(root, &name, &[&bench[..], &["--identity", "--quick"]].concat())?);
    Ok(verdict)
}

#[cfg(test)]
mod tests_of_counts {
    use super::counts;

    #[test]
    fn results_of_all_programs_are_added_up() {
        let text = "test a ... ok\n\
            test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out\n\
            test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out\n";
        let verdict = counts(text);
        assert_eq!((verdict.passed, verdict.failed, verdict.skipped), (15, 2, 1));
    }
}
