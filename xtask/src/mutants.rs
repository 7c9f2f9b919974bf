//! Mutation testing of some crates by cargo-mutants: it changes a function in a small way, runs the
//! tests of its crate, and reports each change that no test noticed.

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::tools::program;

/// The crates whose decisions must not go wrong unnoticed.
const CRATES: &[&str] = &["ranges", "idmap", "cloak", "export", "state"];

/// Seconds that the tests of a crate may take with one change, so that an endless loop ends.
const TIMEOUT_SECONDS: u32 = 120;

/// Options of a mutation run.
#[derive(Args)]
pub(crate) struct Options {
    /// Crates to change, such as idmap; by default ranges, idmap, cloak, export and state.
    crates: Vec<String>,
    /// Only files of the checkout that match this pattern, such as crates/state/src/lock/**.
    #[arg(long)]
    file: Vec<String>,
    /// Only a part of the changes, such as 0/8 for the first eighth.
    #[arg(long, value_name = "K/N")]
    shard: Option<String>,
    /// Number of changes to test at a time.
    #[arg(long, default_value_t = 1)]
    jobs: usize,
    /// Print the changes, and test none.
    #[arg(long)]
    list: bool,
}

/// Runs cargo-mutants; its result is this command's. The report is in `target/mutants.out`.
///
/// # Errors
/// If cargo-mutants is not installed, or a name is not that of a crate.
pub(crate) fn command(root: &Path, options: &Options) -> Result<ExitCode> {
    let installed = Command::new(program()).args(["mutants", "--version"]).output();
    ensure!(
        installed.is_ok_and(|done| done.status.success()),
        "cargo-mutants is not installed; install it with `cargo install --locked cargo-mutants`"
    );
    for name in &options.crates {
        let manifest = root.join("crates").join(name).join("Cargo.toml");
        ensure!(manifest.exists(), "no crate `{name}` in {}", root.join("crates").display());
    }
    let status = Command::new(program()).args(arguments(options)).current_dir(root).status();
    let code = status.context("run cargo mutants")?.code();
    // Exit code 2 means that changes were not noticed, and 3 that tests ran out of time.
    Ok(code.and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
}

fn arguments(options: &Options) -> Vec<String> {
    let (timeout, jobs) = (TIMEOUT_SECONDS.to_string(), options.jobs.to_string());
    let before = ["mutants", "--output", "target", "--timeout", &timeout, "--jobs", &jobs];
    let mut arguments: Vec<String> = before.map(str::to_owned).to_vec();
    let names = options.crates.iter().map(String::as_str);
    let names: Vec<&str> =
        if options.crates.is_empty() { CRATES.to_vec() } else { names.collect() };
    for name in names {
        arguments.extend(["--package".to_owned(), format!("comity-{name}")]);
    }
    for file in &options.file {
        arguments.extend(["--file".to_owned(), file.clone()]);
    }
    if let Some(shard) = &options.shard {
        arguments.extend(["--shard".to_owned(), shard.clone()]);
    }
    arguments.extend(options.list.then(|| "--list".to_owned()));
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_files_and_shards_are_told_to_the_tool() {
        let options = Options {
            crates: vec!["idmap".into()],
            file: vec!["crates/idmap/src/map.rs".into()],
            shard: Some("0/8".into()),
            jobs: 2,
            list: true,
        };
        let expected = "mutants --output target --timeout 120 --jobs 2 --package comity-idmap \
                        --file crates/idmap/src/map.rs --shard 0/8 --list";
        assert_eq!(arguments(&options).join(" "), expected);
        let all = Options { crates: vec![], file: vec![], shard: None, jobs: 1, list: false };
        assert_eq!(
            arguments(&all).iter().filter(|word| *word == "--package").count(),
            CRATES.len()
        );
    }
}
