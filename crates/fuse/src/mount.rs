//! Mounting and unmounting.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use comity_vfs::Fs;
use rustix::io::Errno;
use rustix::mount::UnmountFlags;
use rustix::process::geteuid;

use crate::invalidation::{self, Invalidation, InvalidationQueue, Notifier};
use crate::limits::{CALLER_LIFE, THREADS, TRANSFER_BYTES_MAX};
use crate::lower::Lower;
use crate::mount_error::{HELPER, MountError};
use crate::mounted::Mounted;
use crate::transport::{self, FuseSession, SessionOptions};

/// The choices that a mount leaves to its user.
#[derive(Debug, Clone)]
pub struct Options {
    /// The source that `mount` and `df` show.
    pub source: String,
    /// True if nothing may be changed.
    pub read_only: bool,
    /// True if other users than the one who mounts may use it. An ordinary user may ask for it only
    /// where /etc/fuse.conf says so.
    pub all_users: bool,
    /// True if the kernel compares modes, ids and ACLs before it asks. Without it the `Fs` alone
    /// decides, as it must where its ids are not those of this machine; names are then to be kept
    /// for no time where several users share the mount, because the kernel shows those that it
    /// knows to everybody.
    pub kernel_judges: bool,
    /// True if set-id bits of programs in it are heeded; for root only.
    pub set_ids: bool,
    /// True if devices in it are devices; for root only.
    pub devices: bool,
    /// True if programs in it cannot be executed.
    pub no_execution: bool,
    /// True if the directory may have entries, which the mount hides.
    pub hides_entries: bool,
    /// Threads that answer the kernel.
    pub threads: usize,
    /// Time for which the supplementary groups of a process are remembered.
    pub groups_life: Duration,
}

impl Default for Options {
    /// For the user who mounts alone, unless that is root.
    fn default() -> Self {
        Self {
            source: "comity".to_owned(),
            read_only: false,
            all_users: geteuid().is_root(),
            kernel_judges: false,
            set_ids: false,
            devices: false,
            no_execution: false,
            hides_entries: false,
            threads: THREADS,
            groups_life: CALLER_LIFE,
        }
    }
}

impl Options {
    fn session(&self) -> SessionOptions {
        SessionOptions {
            source: self.source.clone(),
            read_only: self.read_only,
            all_users: self.all_users,
            kernel_judges: self.kernel_judges,
            set_ids: self.set_ids,
            devices: self.devices,
            no_execution: self.no_execution,
            threads: self.threads,
        }
    }
}

/// A mounted file system. Dropping it unmounts it.
pub struct FuseMount {
    running: Option<FuseSession>,
    mounted: Arc<Mounted>,
    threads: Threads,
}

impl FuseMount {
    /// Mounts `fs` on a directory.
    ///
    /// # Errors
    /// [`MountError`], which says what to do.
    pub fn new(
        fs: Arc<dyn Fs>,
        lower: Arc<dyn Lower>,
        dir: &Path,
        options: &Options,
    ) -> Result<Self, MountError> {
        check_directory(dir, options.hides_entries)?;
        let (queue, receiver) = InvalidationQueue::new();
        let queue = Arc::new(queue);
        let judging = (options.groups_life, options.kernel_judges);
        let mounted = Arc::new(Mounted::new(fs, lower, Arc::clone(&queue), judging));
        let running = transport::start(Arc::clone(&mounted), dir, &options.session())
            .map_err(|error| MountError::of_mounting(dir, &error, geteuid().is_root()))?;
        if let Err(error) = read_ahead(dir) {
            tracing::debug!(%error, "the kernel reads ahead no more than by default");
        }
        let notifier = running.notifier();
        let threads = Threads::start(&mounted, receiver, &notifier);
        Ok(Self { running: Some(running), mounted, threads })
    }

    /// Waits until somebody unmounts it.
    ///
    /// # Errors
    /// The reason why the session with the kernel ended otherwise.
    pub fn join(mut self) -> io::Result<()> {
        let result = self.running.take().map_or(Ok(()), FuseSession::join);
        self.end();
        result
    }

    /// Unmounts it.
    ///
    /// # Errors
    /// The kernel's error: EBUSY while programs use it. It is then gone all the same once they have
    /// ended.
    pub fn unmount(mut self) -> io::Result<()> {
        let result = self.running.take().map_or(Ok(()), FuseSession::unmount);
        self.end();
        result
    }

    fn end(&mut self) {
        self.mounted.close();
        self.threads.join();
    }
}

/// The threads that look after a mount and answer no requests.
struct Threads {
    running: Vec<JoinHandle<()>>,
    ended: Arc<AtomicBool>,
}

impl Threads {
    fn start(
        mounted: &Arc<Mounted>,
        receiver: Receiver<Invalidation>,
        notifier: &Arc<dyn Notifier>,
    ) -> Self {
        let mut threads = Self { running: Vec::new(), ended: Arc::default() };
        let told = Arc::clone(notifier);
        threads.spawn("invalidation", move || invalidation::run(&receiver, told.as_ref()));
        if mounted.open_files().is_some() {
            let watched = Arc::clone(mounted);
            threads.spawn("interrupts", move || watched.interrupts().run());
            let (polled, told) = (Arc::clone(mounted), Arc::clone(notifier));
            let ended = Arc::clone(&threads.ended);
            threads.spawn("events", move || {
                while !ended.load(Ordering::Acquire) {
                    polled.take_event(told.as_ref());
                }
            });
        }
        threads
    }

    fn spawn(&mut self, name: &str, work: impl FnOnce() + Send + 'static) {
        match thread::Builder::new().name(format!("fuse-{name}")).spawn(work) {
            Ok(thread) => self.running.push(thread),
            Err(error) => tracing::error!(%error, name, "a thread of the mount does not start"),
        }
    }

    fn join(&mut self) {
        self.ended.store(true, Ordering::Release);
        for thread in self.running.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a thread of the mount has panicked");
            }
        }
    }
}

impl Drop for FuseMount {
    fn drop(&mut self) {
        if let Some(Err(error)) = self.running.take().map(FuseSession::unmount) {
            tracing::warn!(%error, "the file system is still mounted");
        }
        self.end();
    }
}

/// Lets the kernel read ahead as much as one READ carries; by default it is an eighth. Only root
/// may.
fn read_ahead(dir: &Path) -> io::Result<()> {
    let device = fs::metadata(dir)?.dev();
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let file = format!("/sys/class/bdi/{major}:{minor}/read_ahead_kb");
    fs::write(file, (TRANSFER_BYTES_MAX / 1024).to_string())
}

/// Looks whether a directory can be mounted on. With `hides_entries` it need not be empty.
///
/// # Errors
/// [`MountError`], which says what to do.
pub fn check_directory(dir: &Path, hides_entries: bool) -> Result<(), MountError> {
    let looked = |error: io::Error| MountError::of_looking(dir, &error);
    if !fs::metadata(dir).map_err(looked)?.is_dir() {
        return Err(MountError::NotDirectory(dir.to_owned()));
    }
    let is_mounted = is_mount_point(dir).map_err(looked)?;
    let mut entries = fs::read_dir(dir).map_err(looked)?;
    if is_mounted {
        return Err(MountError::AlreadyMounted(dir.to_owned()));
    }
    if !hides_entries && entries.next().is_some() {
        return Err(MountError::NotEmpty(dir.to_owned()));
    }
    Ok(())
}

/// Returns whether something is mounted on a directory: it is then on another device than the
/// directory above, or is that directory.
///
/// # Errors
/// The kernel's error; ENOTCONN for a mount whose program has ended.
pub fn is_mount_point(dir: &Path) -> io::Result<bool> {
    let dir = fs::canonicalize(dir)?;
    let Some(above) = dir.parent() else { return Ok(true) };
    let (one, other) = (fs::metadata(&dir)?, fs::metadata(above)?);
    Ok(one.dev() != other.dev())
}

/// Unmounts what is mounted on a directory: now, or with `lazy` once nobody uses it. A mount whose
/// program has ended is unmounted, too.
///
/// # Errors
/// [`MountError::Busy`] and others, which say what to do.
pub fn unmount(dir: &Path, lazy: bool) -> Result<(), MountError> {
    let flags = if lazy { UnmountFlags::DETACH } else { UnmountFlags::empty() };
    let flags = flags | UnmountFlags::NOFOLLOW;
    // Resolving the whole path would ask a program that may have ended.
    let path = resolve_above(dir)?;
    match rustix::mount::unmount(&path, flags) {
        Ok(()) => Ok(()),
        Err(Errno::PERM) => unmount_by_helper(&path, lazy),
        Err(Errno::BUSY) => Err(MountError::Busy(dir.to_owned())),
        Err(Errno::INVAL) => Err(MountError::NotMounted(dir.to_owned())),
        Err(errno) => Err(MountError::of_looking(dir, &errno.into())),
    }
}

/// The path of a directory with what stands above it resolved.
fn resolve_above(dir: &Path) -> Result<PathBuf, MountError> {
    let looked = |error: io::Error| MountError::of_looking(dir, &error);
    let dir = std::path::absolute(dir).map_err(looked)?;
    match (dir.parent(), dir.file_name()) {
        (Some(above), Some(name)) => Ok(fs::canonicalize(above).map_err(looked)?.join(name)),
        _ => Ok(dir),
    }
}

fn unmount_by_helper(dir: &Path, lazy: bool) -> Result<(), MountError> {
    let mut command = Command::new(HELPER);
    command.args(["-u", "-q"]).args(lazy.then_some("-z")).arg("--").arg(dir);
    match command.output() {
        Err(_) => Err(MountError::NoHelper),
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            let said = said.trim();
            match said {
                _ if said.contains("busy") => Err(MountError::Busy(dir.to_owned())),
                _ => Err(MountError::Failed { dir: dir.to_owned(), reason: said.to_owned() }),
            }
        }
    }
}
