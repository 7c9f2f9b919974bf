//! Other projects' suites on a mount of `comity mount` with its disk cache. A check that fails and
//! is not listed in `docs/conformance.toml` is a failure, and so is a listed one that passes.

mod mount;
mod suite;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;

use self::mount::SuiteMount;
use self::suite::{COMMON, SUITES, Suite};
use crate::kernel::tree;

use super::known::Known;
use super::report::Report;
use super::server::Server;

/// Options of the suites on a mount.
#[derive(Args)]
#[group(id = "suites")]
pub(super) struct Options {
    /// Run suites through `comity mount` of `comity serve` instead, as root.
    #[arg(long, conflicts_with = "pynfs")]
    pub(super) client: bool,
    /// The sources of cthon04 (with --client; without them it is left out).
    #[arg(long, requires = "client")]
    cthon04: Option<PathBuf>,
    /// The sources of pjdfstest (with --client; without them it is left out).
    #[arg(long, requires = "client")]
    pjdfstest: Option<PathBuf>,
    /// Operations of fsx (with --client).
    #[arg(long, requires = "client", default_value_t = 10_000)]
    operations: u32,
    /// Mount this export of another server instead, e.g. `127.0.0.1:/export` (with --client).
    #[arg(long, requires = "client", requires = "exported")]
    source: Option<String>,
    /// The folder that the other server exports (with --source).
    #[arg(long, requires = "source")]
    exported: Option<PathBuf>,
    /// More options of the mount, e.g. `nodc_enable` (with --client).
    #[arg(long, requires = "client", default_value = "")]
    mount_options: String,
}

impl Options {
    /// The sources of a suite; `None` if it needs none.
    fn sources(&self, suite: &Suite) -> Option<&Path> {
        match suite.name {
            "cthon04" => self.cthon04.as_deref(),
            "pjdfstest" => self.pjdfstest.as_deref(),
            _ => None,
        }
    }
}

/// The options and programs that all suites of one command share.
struct Setting<'a> {
    options: &'a Options,
    program: PathBuf,
    fsx: PathBuf,
    folder: PathBuf,
}

/// Lease time of the server in seconds.
const LEASE_SECONDS: u32 = 20;

/// Most lines of a suite's log that are shown after a failure.
const LAST_LINES: usize = 5;

/// Runs the named suites, or all whose sources are given.
///
/// # Errors
/// If a name is not that of a suite, its sources are missing, or something cannot be started.
pub(super) fn command(
    root: &Path,
    options: &Options,
    program: PathBuf,
    names: &[String],
) -> Result<ExitCode> {
    let known = Known::read(&root.join("docs/conformance.toml"))?;
    let folder = root.join("target/conformance");
    let fsx = crate::tools::install(root, "fsx", "0.3.2")?;
    let setting = Setting { options, program, fsx, folder };
    let mut same = true;
    for suite in chosen(options, names)? {
        let start = Instant::now();
        let log = perform(suite, &setting)?;
        let report = Report::of_checks(&log)?;
        println!("{}: {report}; {} s", suite.run(), start.elapsed().as_secs());
        let differences = known.differences(&suite.run(), &report);
        differences.iter().for_each(|difference| println!("  {difference}"));
        if let Some(last) = differences.last() {
            println!("  {last}; {} ends with: {}", log.display(), last_words(&fs::read(&log)?));
        }
        same &= differences.is_empty();
    }
    Ok(if same { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn chosen(options: &Options, names: &[String]) -> Result<Vec<&'static Suite>> {
    for name in names {
        let suite = SUITES.iter().find(|suite| suite.name == name);
        let suite = suite.with_context(|| format!("no suite `{name}` for a mount"))?;
        let lacks = suite.is_foreign && options.sources(suite).is_none();
        ensure!(!lacks, "say where the sources are: --{name} FOLDER");
    }
    let is_chosen = |suite: &&Suite| match names {
        [] => !suite.is_foreign || options.sources(suite).is_some(),
        names => names.iter().any(|name| name == suite.name),
    };
    Ok(SUITES.iter().filter(is_chosen).collect())
}

/// The last lines of a log that are not the result of a check, on one line.
fn last_words(log: &[u8]) -> String {
    let text = String::from_utf8_lossy(log);
    let mut lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("check ")).collect();
    lines.drain(..lines.len().saturating_sub(LAST_LINES));
    lines.join(" | ")
}

/// Runs a suite in a folder of its own, on two mounts of an empty export; returns the file with its
/// output.
fn perform(suite: &Suite, setting: &Setting<'_>) -> Result<PathBuf> {
    let folder = setting.folder.join(suite.run());
    let server = Server::start(&setting.program, &folder, LEASE_SECONDS)?;
    let options = setting.options;
    let (source, export) = exported(suite, options, (&server, &folder))?;
    let mount = |name| SuiteMount::new(&setting.program, (&folder, name), &source, options);
    let (first, second) = (mount("first")?, mount("second")?);
    furnish(suite, &folder)?;
    let log = folder.join("suite.log");
    let mut shell = Command::new("sh");
    shell.arg(folder.join("suite.sh")).current_dir(&folder);
    shell.env("MOUNT", first.directory()).env("SECOND", second.directory());
    shell.env("EXPORT", &export).env("FOLDER", &folder).env("FSX", &setting.fsx);
    shell.env("OPERATIONS", options.operations.to_string());
    if let Some(sources) = options.sources(suite) {
        shell.env("SOURCES", std::path::absolute(sources)?);
    }
    run(shell, &log, Duration::from_secs(suite.seconds_max))?;
    second.end()?;
    first.end()?;
    Ok(log)
}

/// The source of a suite's mount, and its folder on the disk; on another server, a new folder.
fn exported(
    suite: &Suite,
    options: &Options,
    (server, folder): (&Server, &Path),
) -> Result<(String, PathBuf)> {
    let (Some(source), Some(top)) = (&options.source, &options.exported) else {
        return Ok((format!("nfs://{}", server.url()), folder.join("export")));
    };
    let export = top.join(suite.name);
    if export.exists() {
        fs::remove_dir_all(&export)?;
    }
    fs::create_dir_all(&export)?;
    fs::set_permissions(&export, fs::Permissions::from_mode(0o777))?;
    Ok((format!("{source}/{}", suite.name), export))
}

/// Writes the script and the files that it uses.
fn furnish(suite: &Suite, folder: &Path) -> Result<()> {
    fs::write(folder.join("common.sh"), COMMON)?;
    fs::write(folder.join("suite.sh"), suite.script)?;
    for (name, text) in suite.files {
        fs::write(folder.join(name), text)?;
    }
    if suite.has_tree {
        let expected = tree::c_program(&folder.join("tree"), tree::FOLDERS)?;
        fs::write(folder.join("expected"), expected)?;
    }
    Ok(())
}

/// Runs a command with its output in a file. A timeout is a failure that names the log, because
/// these suites are meant to find mounts that hang.
fn run(mut command: Command, log: &Path, longest: Duration) -> Result<()> {
    let file = fs::File::create(log)?;
    command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
    let mut child = command.spawn().context("run sh")?;
    let until = Instant::now() + longest;
    while child.try_wait()?.is_none() {
        if Instant::now() >= until {
            child.kill()?;
            let seconds = longest.as_secs();
            anyhow::bail!("it did not end in {seconds} s; log: {}", log.display());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_failure_the_last_messages_of_the_suite_are_shown() {
        let log = b"1\n2\n3\ncheck a : PASS\n4\n5\nError: database is locked\ncheck b : FAILURE\n";
        assert_eq!(last_words(log), "2 | 3 | 4 | 5 | Error: database is locked");
        assert_eq!(last_words(b"check a : FAILURE\n"), "");
    }
}
