//! This program under the name `mount.comity`, as mount(8) calls it for a line of fstab(5):
//! `mount.comity SOURCE DIR [-sfnv] [-N NAMESPACE] [-o OPTION,...] [-t TYPE]`.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{ArgAction, Parser};

use crate::common_arguments::StateFolderArguments;
use crate::{arguments, mount};

/// The name by which mount(8) finds the helper of a type.
const NAME: &str = "mount.comity";

/// Exit codes of mount(8): wrong arguments, and a mount that failed.
const USAGE: u8 = 1;
const FAILURE: u8 = 32;

/// The arguments from mount(8).
#[derive(Debug, Parser)]
#[command(name = NAME, disable_version_flag = true)]
struct Called {
    source: PathBuf,
    dir: PathBuf,
    /// Options of the line in fstab(5)
    #[arg(short = 'o', value_delimiter = ',')]
    options: Vec<String>,
    /// Do all but mount
    #[arg(short = 'f')]
    fake: bool,
    /// Tolerate unknown options; they are refused all the same
    #[arg(short = 's')]
    sloppy: bool,
    /// Write no line to /etc/mtab, as always
    #[arg(short = 'n')]
    no_table: bool,
    /// Log more
    #[arg(short = 'v', action = ArgAction::Count)]
    verbose: u8,
    /// The namespace to mount in; it is ignored
    #[arg(short = 'N')]
    namespace: Option<PathBuf>,
    /// The type as it was written
    #[arg(short = 't')]
    kind: Option<String>,
}

/// Returns whether this program was called as `mount.comity`.
pub(crate) fn is_called() -> bool {
    let called = env::args_os().next().unwrap_or_default();
    Path::new(&called).file_name() == Some(OsStr::new(NAME))
}

/// Mounts with the arguments and exit codes of mount(8).
pub(crate) fn run() -> ExitCode {
    let called = match Called::try_parse() {
        Ok(called) => called,
        Err(error) => {
            eprintln!("{NAME}: {}", error.to_string().trim_end());
            return ExitCode::from(USAGE);
        }
    };
    if let Some(namespace) = &called.namespace {
        let shown = namespace.display();
        eprintln!("{NAME}: -N {shown}: mount in it by `nsenter --mount={shown} mount ...` instead");
        return ExitCode::from(USAGE);
    }
    let log = if called.verbose > 0 { "debug" } else { "info" };
    let typed = arguments::MountCommand {
        source: called.source,
        dir: called.dir,
        options: called.options,
        foreground: false,
        report: false,
        log: log.to_owned(),
        state: StateFolderArguments { state_dir: None },
    };
    if called.fake {
        return ExitCode::SUCCESS;
    }
    match mount::mount(&typed) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("{NAME}: {error:#}");
            ExitCode::from(FAILURE)
        }
    }
}
