//! Mounts file systems: `comity mount`.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio, exit};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use comity_backend::Location;
use comity_cache::Cache;
use comity_daemon::logging;
use comity_fuse::{FuseMount, Plain};
use comity_server::HttpService;
use comity_vfs::layers::{Layer, ReadOnly};
use comity_vfs::{Fs, OpenFiles};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::arguments;
use crate::mount_channel::absolute_option;
use crate::mount_control::{MountControl, OpenControl};
use crate::mount_metrics;
use crate::mount_options::MountOptions;
use crate::mount_socket::resolved;
use crate::mount_source::is_directory;
use crate::stdout::say;

/// The word by which a mount in the background reports to the command that it can be used.
const READY: &str = "ready";

/// Longest error message in bytes that a mount in the background reports to the command.
const REPORT_BYTES_MAX: u64 = 65_536;

/// Mounts a file system, in the background unless `--foreground` is given.
///
/// # Errors
/// The reason why it cannot be mounted, with what to do about it.
pub(crate) fn mount(typed: &arguments::MountCommand) -> Result<ExitCode> {
    let options = MountOptions::read(typed.options.iter().map(String::as_str))?;
    if !typed.foreground {
        return in_background(typed, &options);
    }
    if !typed.report {
        return serve(typed, &options, |greeting| {
            greeting.into_iter().for_each(|text| eprintln!("comity: {text}"));
            Ok(())
        });
    }
    // Errors go to the waiting command, not to the log.
    let served = serve(typed, &options, |greeting| {
        say(READY);
        greeting.into_iter().for_each(say);
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
    ready: impl FnOnce(Option<String>) -> io::Result<()>,
) -> Result<ExitCode> {
    logging::begin(&typed.log)?;
    let (dir, source) = (absolute(&typed.dir)?, typed.source.display().to_string());
    // The check comes before a server is called and a cache recovered.
    comity_fuse::check_directory(&dir, options.fuse.hides_entries)?;
    let opened = options.server.open(&typed.source, &dir)?;
    let mut options = options.clone();
    options.adapt(opened.is_remote);
    let cache = options.cache.put_over(&opened.fs, &opened.identity, opened.is_remote)?;
    let serve_page = |address| mount_metrics::serve(address, cache.as_ref());
    let page = options.metrics.map(serve_page).transpose()?;
    let fs = cache.clone().map_or(opened.fs, |cache| cache as Arc<dyn Fs>);
    let fs = if options.fuse.read_only { Arc::new(Layer::new(fs, ReadOnly)) } else { fs };
    let lower = Arc::new(Plain { keep: options.keep, missing: options.keep.entry });
    let fuse = comity_fuse::Options { source: source.clone(), ..options.fuse };
    let mounted = FuseMount::new(Arc::clone(&fs), lower, &dir, &fuse)?;
    let control = MountControl {
        dir: resolved(&dir),
        source,
        cache: cache.clone(),
        metrics: page.as_ref().map(HttpService::address),
        unsent: Arc::default(),
    };
    let control = OpenControl::start(&typed.state, control);
    unmount_by_signal(dir)?;
    let ticker = cache.as_ref().map(Ticker::start).transpose()?;
    ready(opened.greeting).context("cannot report that the mount is ready")?;
    let joined = mounted.join().context("the kernel ended the mount");
    drop(ticker);
    page.into_iter().for_each(HttpService::shutdown);
    // Sends the data that the server does not have yet.
    let unsent = cache.as_deref().map_or(0, Cache::finish);
    fs.open_files().into_iter().for_each(OpenFiles::leave);
    control.end(unsent as u64);
    told(unsent)?;
    joined.map(|()| ExitCode::SUCCESS)
}

/// Fails if data of files was not sent.
fn told(unsent: usize) -> Result<()> {
    match unsent {
        0 => Ok(()),
        failed => bail!(
            "{failed} files have data that could not be written; with -o dc_write=journal it is \
             written at the next mount"
        ),
    }
}

/// A thread that calls the cache's tick regularly, until this is dropped.
pub(crate) struct Ticker {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Pause between two ticks.
const TICK: Duration = Duration::from_millis(500);

impl Ticker {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(crate) fn start(cache: &Arc<Cache>) -> Result<Self> {
        let (cache, ended) = (Arc::clone(cache), Arc::new(AtomicBool::new(false)));
        let seen = Arc::clone(&ended);
        let work = move || {
            while !seen.load(Ordering::Acquire) {
                cache.tick();
                thread::park_timeout(TICK);
            }
        };
        let thread = thread::Builder::new().name("cache".to_owned()).spawn(work)?;
        Ok(Self { ended, thread: Some(thread) })
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            if thread.join().is_err() {
                tracing::error!("the thread of the cache has panicked");
            }
        }
    }
}

/// At the first signal, detaches the mount, which then ends once no program uses it; at the second
/// signal, ends this process.
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

fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).with_context(|| path.display().to_string())
}

/// Starts this program again to serve the mount, and waits until it reports that the mount can be
/// used.
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
    let mut lines = said.lines();
    match lines.next() {
        Some(READY) => {
            lines.for_each(|line| eprintln!("comity: {line}"));
            Ok(ExitCode::SUCCESS)
        }
        Some(_) => bail!("{}", said.trim_end()),
        None => bail!("the program that serves the mount ended at once; see it by --foreground"),
    }
}

fn arguments_of_background(typed: &arguments::MountCommand) -> Result<Vec<OsString>> {
    let mut words: Vec<OsString> =
        ["mount", "--foreground", "--report", "--log"].map(OsString::from).into();
    words.push(typed.log.clone().into());
    if let Some(folder) = &typed.state.state_dir {
        words.extend([OsString::from("--state-dir"), absolute(folder)?.into()]);
    }
    if !typed.options.is_empty() {
        let options: Vec<_> = typed.options.iter().map(|one| absolute_option(one)).collect();
        words.extend([OsString::from("-o"), options.join(",").into()]);
    }
    words.extend([OsString::from("--"), absolute_source(&typed.source)?.into()]);
    words.push(absolute(&typed.dir)?.into());
    Ok(words)
}

/// The path of a source as an absolute path, because the other program runs in another folder.
fn absolute_source(source: &Path) -> Result<PathBuf> {
    match is_directory(source) {
        true => absolute(Location::parse(source).place),
        false => Ok(source.to_owned()),
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

/// Redirects standard output to `/dev/null`, so that its reader sees the end of the pipe.
fn close_stdout() -> io::Result<()> {
    let nowhere = OpenOptions::new().write(true).open("/dev/null")?;
    Ok(rustix::stdio::dup2_stdout(nowhere)?)
}
