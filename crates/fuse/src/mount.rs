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

/// The options of a mount.
#[derive(Debug, Clone)]
pub struct Options {
    /// The source that `mount` and `df` show.
    pub source: String,
    /// True for a read-only mount.
    pub read_only: bool,
    /// True if other users may use the mount, too. An ordinary user needs permission for this in
    /// /etc/fuse.conf.
    pub all_users: bool,
    /// True if the kernel checks modes, ids and ACLs before each request. Otherwise the `Fs` alone
    /// decides, as it must if its ids are not those of this machine. Then several users may share
    /// the mount only if names are not cached, because the kernel shows cached names to all users.
    pub kernel_judges: bool,
    /// True if set-id bits of programs are effective; for root only.
    pub set_ids: bool,
    /// True if device files are usable; for root only.
    pub devices: bool,
    /// True if programs in it cannot be executed.
    pub no_execution: bool,
    /// True if the directory need not be empty; the mount hides its entries.
    pub hides_entries: bool,
    /// Number of threads that answer the kernel.
    pub threads: usize,
    /// Time for which the supplementary groups of a process are cached.
    pub groups_life: Duration,
}

impl Default for Options {
    /// For the mounting user alone; for all users if that is root.
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
            tracing::debug!(%error, "cannot raise the kernel's read-ahead above its default");
        }
        let notifier = running.notifier();
        let threads = Threads::start(&mounted, receiver, &notifier);
        Ok(Self { running: Some(running), mounted, threads })
    }

    /// Waits until the file system is unmounted.
    ///
    /// # Errors
    /// The reason why the session with the kernel ended otherwise.
    pub fn join(mut self) -> io::Result<()> {
        let result = self.running.take().map_or(Ok(()), FuseSession::join);
        self.end();
        result
    }

    /// Unmounts the file system.
    ///
    /// # Errors
    /// The kernel's error: EBUSY while programs use it. It is then unmounted after they have ended.
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

/// The threads of a mount that answer no requests.
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
            Err(error) => tracing::error!(%error, name, "cannot start a thread of the mount"),
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

/// Raises the kernel's read-ahead to the size of one READ; the default is an eighth. Only root may
/// do so.
fn read_ahead(dir: &Path) -> io::Result<()> {
    let device = fs::metadata(dir)?.dev();
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let file = format!("/sys/class/bdi/{major}:{minor}/read_ahead_kb");
    fs::write(file, (TRANSFER_BYTES_MAX / 1024).to_string())
}

/// Checks whether a directory can be mounted on. With `hides_entries` it need not be empty.
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

/// Returns whether a directory is a mount point: it is on another device than its parent, or is the
/// root.
///
/// # Errors
/// The kernel's error; ENOTCONN for a mount whose program has ended.
pub fn is_mount_point(dir: &Path) -> io::Result<bool> {
    let dir = fs::canonicalize(dir)?;
    let Some(above) = dir.parent() else { return Ok(true) };
    let (one, other) = (fs::metadata(&dir)?, fs::metadata(above)?);
    Ok(one.dev() != other.dev())
}

/// Unmounts a directory now, or with `lazy` once no program uses it. This also works if the program
/// of the mount has ended.
///
/// # Errors
/// [`MountError::Busy`] and others, which say what to do.
pub fn unmount(dir: &Path, lazy: bool) -> Result<(), MountError> {
    let flags = if lazy { UnmountFlags::DETACH } else { UnmountFlags::empty() };
    let flags = flags | UnmountFlags::NOFOLLOW;
    // Do not resolve the last component: that would call the program of the mount, which may have
    // ended.
    let path = resolve_above(dir)?;
    match rustix::mount::unmount(&path, flags) {
        Ok(()) => Ok(()),
        Err(Errno::PERM) => unmount_by_helper(&path, lazy),
        Err(Errno::BUSY) => Err(MountError::Busy(dir.to_owned())),
        Err(Errno::INVAL) => Err(MountError::NotMounted(dir.to_owned())),
        Err(errno) => Err(MountError::of_looking(dir, &errno.into())),
    }
}

/// The path of a directory, with its parent resolved.
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
