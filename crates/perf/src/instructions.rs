//! Instructions of a call through the whole stack, counted by callgrind: no noise, so a slower path
//! is seen where wall time would hide it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

/// The options of the instruction counts.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// The program that makes the calls (an example of this crate).
    #[arg(long, default_value = "target/release/examples/instructions")]
    pub program: PathBuf,
    /// The file with the counts that were agreed on.
    #[arg(long, default_value = "docs/instructions.toml")]
    pub file: PathBuf,
    /// Exit with 1 if a count is more than 3 % above the file's.
    #[arg(long)]
    pub check: bool,
    /// Write the counts to the file.
    #[arg(long, conflicts_with = "check")]
    pub update: bool,
}

/// The counted operations, by their names in the program and the file. A READDIRPLUS is a page of
/// about 35 entries of a directory that is listed repeatedly.
pub const COUNTED: [&str; 8] = [
    "getattr",
    "lookup",
    "read-4k",
    "readdirplus",
    "v4.1-getattr",
    "v4.1-read-4k",
    "v4.1-open-close",
    "v4.1-lock-unlock",
];

/// The percentage by which a count may exceed the agreed one.
const TOLERANCE_PERCENT: f64 = 3.0;

/// Calls in two runs; the difference of their counts leaves out work that is done once.
const CALLS: (u64, u64) = (2_000, 6_000);

/// The content of the file of agreed counts.
#[derive(Debug, Default, Deserialize, Serialize)]
struct Agreed {
    /// Instructions of one call, by operation.
    instructions: BTreeMap<String, u64>,
}

/// Counts, prints, and compares or updates; returns whether every count is within the tolerance.
///
/// # Errors
/// Valgrind or the program is missing or fails; the file cannot be read.
pub fn run(options: &Options) -> Result<bool> {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: the path that is counted takes root (handles opened by the kernel)");
        return Ok(true);
    }
    let agreed = if options.update { Agreed::default() } else { read(&options.file)? };
    let mut counted = Agreed::default();
    let mut within = true;
    for operation in COUNTED {
        let count = count(&options.program, operation)?;
        within &= report(operation, count, agreed.instructions.get(operation).copied());
        counted.instructions.insert(operation.to_owned(), count);
    }
    if options.update {
        write(&options.file, &counted)?;
    }
    Ok(within)
}

/// Prints one count; returns whether it is within the tolerance.
fn report(operation: &str, count: u64, agreed: Option<u64>) -> bool {
    let Some(agreed) = agreed else {
        println!("{operation}: {count} instructions a call");
        return true;
    };
    let percent = (count as f64 - agreed as f64) * 100.0 / agreed as f64;
    let judgement = match percent {
        more if more > TOLERANCE_PERCENT => "MORE THAN AGREED",
        less if less < -TOLERANCE_PERCENT => "fewer than agreed: run with --update",
        _ => "as agreed",
    };
    println!("{operation}: {count} instructions a call, {percent:+.1} % of {agreed}: {judgement}");
    percent <= TOLERANCE_PERCENT
}

/// Instructions of one call of an operation by a program.
///
/// # Errors
/// Valgrind or the program is missing or fails.
pub(crate) fn count(program: &Path, operation: &str) -> Result<u64> {
    let few = total(program, operation, CALLS.0)?;
    let many = total(program, operation, CALLS.1)?;
    Ok(many.saturating_sub(few) / (CALLS.1 - CALLS.0))
}

/// Instructions of a whole run with this number of calls.
fn total(program: &Path, operation: &str, calls: u64) -> Result<u64> {
    callgrind(program, &[], &[operation, &calls.to_string()]).context(operation.to_owned())
}

/// Instructions of a run of a program, as callgrind counts them with these options.
///
/// # Errors
/// Valgrind or the program is missing or fails, or nothing was counted.
pub(crate) fn callgrind(program: &Path, options: &[&str], words: &[&str]) -> Result<u64> {
    let out = tempfile::NamedTempFile::new()?;
    let run = Command::new("valgrind")
        .args(["--tool=callgrind", "--quiet"])
        .arg(format!("--callgrind-out-file={}", out.path().display()))
        .args(options)
        .arg(program)
        .args(words)
        // An empty environment: its size would move the stack and change alignments.
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .stdin(Stdio::null())
        .output()
        .context("valgrind cannot be run (apt-get install valgrind)")?;
    let said = String::from_utf8_lossy(&run.stderr);
    ensure!(run.status.success(), "under valgrind: {}: {said}", run.status);
    let text = fs::read_to_string(out.path())?;
    let line = text.lines().rev().find_map(|line| line.strip_prefix("totals:"));
    let number = line.and_then(|rest| rest.trim().parse().ok());
    number.filter(|&number| number > 0).context("callgrind wrote no total")
}

fn read(file: &Path) -> Result<Agreed> {
    let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
    toml::from_str(&text).with_context(|| file.display().to_string())
}

fn write(file: &Path, counted: &Agreed) -> Result<()> {
    let text = format!(
        "# Instructions of one call through the whole stack, from the record to the reply,\n\
         # by callgrind; what the kernel does is not among them. Compared, and checked by\n\
         # `--check` to be at most 3 % more, by `cargo xtask bench --instructions`; written\n\
         # by `--update`.\n\n{}",
        toml::to_string(counted)?
    );
    fs::write(file, text).with_context(|| file.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_percent_more_is_too_much() {
        assert!(report("getattr", 1030, Some(1000)));
        assert!(!report("getattr", 1031, Some(1000)));
        assert!(report("getattr", 500, Some(1000)));
    }

    #[test]
    fn the_file_is_read_as_it_is_written() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut counted = Agreed::default();
        counted.instructions.insert("read-4k".into(), 1234);
        write(file.path(), &counted).unwrap();
        assert_eq!(read(file.path()).unwrap().instructions, counted.instructions);
    }
}
