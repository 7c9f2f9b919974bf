//! Mounts and unmounts file systems: `comity mount`, `comity umount`.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio, exit};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::{Context, Result, anyhow, bail};
use comity_backend::{
    DIRECTORY, Location, MEMORY, Memory, MemoryOptions, OpenRequest, Passthrough,
    PassthroughOptions, Registry,
};
use comity_daemon::logging;
use comity_fuse::{FuseMount, Plain};
use comity_vfs::layers::{Layer, ReadOnly};
use comity_vfs::{Fs, Gid, Uid};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::arguments;
use crate::mount_options::MountOptions;
use crate::stdout::say;

/// The word by which a mount in the background tells the command that it can be used.
const READY: &str = "ready";

/// Most bytes that such a mount says about why it cannot.
const REPORT_BYTES_MAX: u64 = 65_536;

/// Mounts a file system, in the background unless it is asked to stay.
///
/// # Errors
/// The reason why it cannot be mounted, with what to do about it.
pub(crate) fn mount(typed: &arguments::MountCommand) -> Result<ExitCode> {
    let options = MountOptions::read(typed.options.iter().map(String::as_str))?;
    if !typed.foreground {
        return in_background(typed, &options);
    }
    if !typed.report {
        return serve(typed, &options, || Ok(()));
    }
    // Errors go to the command that waits, not to the log.
    let served = serve(typed, &options, || {
        say(READY);
        close_stdout()
    });
    if let Err(error) = &served {
        say(format!("{error:#}"));
    }
    Ok(served.unwrap_or(ExitCode::FAILURE))
}

/// Mounts, calls `ready`, and serves until the file system is unmounted or a signal comes.
fn serve(
    typed: &arguments::MountCommand,
    options: &MountOptions,
    ready: impl FnOnce() -> io::Result<()>,
) -> Result<ExitCode> {
    logging::begin(&typed.log)?;
    let (dir, source) = (absolute(&typed.dir)?, typed.source.display().to_string());
    let fuse = comity_fuse::Options { source, ..options.fuse.clone() };
    let lower = Arc::new(Plain { keep: options.keep, missing: options.keep.entry });
    let fs = open(&typed.source)?;
    let fs = if fuse.read_only { Arc::new(Layer::new(fs, ReadOnly)) } else { fs };
    let mounted = FuseMount::new(fs, lower, &dir, &fuse)?;
    unmount_by_signal(dir)?;
    ready().context("cannot report that the mount is ready")?;
    mounted.join().context("the kernel ended the mount")?;
    Ok(ExitCode::SUCCESS)
}

/// At the first signal the mount is detached, and ends once no program uses it; at the second this
/// process ends.
fn unmount_by_signal(dir: PathBuf) -> Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT]).context("cannot wait for signals")?;
    let again = AtomicBool::new(false);
    let work = move || {
        for _ in signals.forever() {
            if again.swap(true, Ordering::Relaxed) {
                exit(1);
            }
            if let Err(error) = comity_fuse::unmount(&dir, true) {
                tracing::error!(%error, "cannot unmount; a second signal ends the program");
            }
        }
    };
    thread::Builder::new().name("signals".to_owned()).spawn(work)?;
    Ok(())
}

/// Opens the file system of a source.
fn open(source: &Path) -> Result<Arc<dyn Fs>> {
    let backends = Registry::default().with(DIRECTORY, open_directory).with(MEMORY, |_| memory());
    let request = OpenRequest { location: Location::parse(source), cross_mounts: true };
    backends.open(&request).map_err(|said| anyhow!("cannot mount: {said}"))
}

fn open_directory(request: &OpenRequest<'_>) -> Result<Arc<dyn Fs>, String> {
    let cross_mounts = request.cross_mounts;
    let options = PassthroughOptions { cross_mounts, ..PassthroughOptions::default() };
    match Passthrough::open(request.location.place, options) {
        Ok(opened) => Ok(Arc::new(opened)),
        Err(error) => Err(error.to_string()),
    }
}

fn memory() -> Result<Arc<dyn Fs>, String> {
    let options = MemoryOptions {
        root_uid: Uid::new(rustix::process::geteuid().as_raw()),
        root_gid: Gid::new(rustix::process::getegid().as_raw()),
        ..MemoryOptions::default()
    };
    match Memory::new(options) {
        Ok(memory) => Ok(Arc::new(memory)),
        Err(status) => Err(status.to_string()),
    }
}

fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).with_context(|| path.display().to_string())
}

/// Starts this program again, to serve the mount, and waits until it says that it does.
fn in_background(typed: &arguments::MountCommand, options: &MountOptions) -> Result<ExitCode> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let log = match &options.log_file {
        None => Stdio::null(),
        Some(path) => {
            let opened = OpenOptions::new().create(true).append(true).open(path);
            let failed = || format!("cannot log to {}: name another file", path.display());
            opened.with_context(failed)?.into()
        }
    };
    let mut child = Command::new(program)
        .arg0("comity")
        .args(arguments_of_background(typed)?)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log)
        .process_group(0)
        .spawn()
        .context("cannot start the program that serves the mount")?;
    let said = read_report(&mut child)?;
    match said.lines().next() {
        Some(READY) => Ok(ExitCode::SUCCESS),
        Some(_) => bail!("{}", said.trim_end()),
        None => bail!("the program that serves the mount ended at once; see it by --foreground"),
    }
}

fn arguments_of_background(typed: &arguments::MountCommand) -> Result<Vec<OsString>> {
    let mut words: Vec<OsString> =
        ["mount", "--foreground", "--report", "--log"].map(OsString::from).into();
    words.push(typed.log.clone().into());
    if !typed.options.is_empty() {
        words.extend([OsString::from("-o"), typed.options.join(",").into()]);
    }
    words.extend([OsString::from("--"), absolute_source(&typed.source)?.into()]);
    words.push(absolute(&typed.dir)?.into());
    Ok(words)
}

/// A relative path means the same in the folder that the other program runs in.
fn absolute_source(source: &Path) -> Result<PathBuf> {
    match Location::parse(source) {
        Location { scheme: DIRECTORY, place } => absolute(place),
        _ => Ok(source.to_owned()),
    }
}

/// Reads until the other program closes its output, or has ended.
fn read_report(child: &mut Child) -> Result<String> {
    let mut said = Vec::new();
    if let Some(output) = child.stdout.take() {
        output.take(REPORT_BYTES_MAX).read_to_end(&mut said)?;
    }
    Ok(String::from_utf8_lossy(&said).into_owned())
}

/// Lets standard output lead nowhere, so that whoever reads it comes to its end.
fn close_stdout() -> io::Result<()> {
    let nowhere = OpenOptions::new().write(true).open("/dev/null")?;
    Ok(rustix::stdio::dup2_stdout(nowhere)?)
}

/// Unmounts what is mounted on a directory.
///
/// # Errors
/// The reason why it cannot, with what to do about it.
pub(crate) fn unmount(typed: &arguments::UmountCommand) -> Result<ExitCode> {
    comity_fuse::unmount(&typed.dir, typed.lazy)?;
    Ok(ExitCode::SUCCESS)
}
