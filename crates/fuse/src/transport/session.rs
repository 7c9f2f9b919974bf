//! A session with the kernel: mounting, threads, messages, unmounting.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use fuser::{BackgroundSession, Config, INodeNo, MountOption, Session, SessionACL};

use super::filesystem::Filesystem;
use crate::invalidation::Notifier;
use crate::mounted::Mounted;

/// The choices of a session.
#[derive(Debug, Clone)]
pub(crate) struct SessionOptions {
    /// The source that `mount` and `df` show.
    pub(crate) source: String,
    /// True if nothing may be changed.
    pub(crate) read_only: bool,
    /// True if other users than the one who mounts may use it.
    pub(crate) all_users: bool,
    /// True if the kernel compares modes and ids itself, before it asks.
    pub(crate) kernel_judges: bool,
    /// True if set-id bits of programs in it are heeded.
    pub(crate) set_ids: bool,
    /// True if devices in it are devices.
    pub(crate) devices: bool,
    /// True if programs in it cannot be executed.
    pub(crate) no_execution: bool,
    /// Threads that answer the kernel.
    pub(crate) threads: usize,
}

impl SessionOptions {
    fn config(&self) -> Config {
        let chosen = [
            (self.read_only, MountOption::RO),
            (self.kernel_judges, MountOption::DefaultPermissions),
            (self.set_ids, MountOption::Suid),
            (self.devices, MountOption::Dev),
            (self.no_execution, MountOption::NoExec),
        ];
        let mut config = Config::default();
        config.mount_options = vec![
            MountOption::FSName(self.source.clone()),
            MountOption::Subtype("comity".to_owned()),
            // The layer below decides about access times.
            MountOption::NoAtime,
        ];
        let chosen = chosen.into_iter().filter(|(chosen, _)| *chosen);
        config.mount_options.extend(chosen.map(|(_, option)| option));
        config.acl = if self.all_users { SessionACL::All } else { SessionACL::Owner };
        config.n_threads = Some(self.threads.max(1));
        config.clone_fd = true;
        config
    }
}

/// A mounted file system whose requests are being answered.
pub(crate) struct FuseSession(BackgroundSession);

/// Mounts on a directory and answers the kernel from now on.
///
/// # Errors
/// The kernel's error, or that of fusermount3 in words.
pub(crate) fn start(
    mounted: Arc<Mounted>,
    dir: &Path,
    options: &SessionOptions,
) -> io::Result<FuseSession> {
    Session::new(Filesystem(mounted), dir, &options.config())?.spawn().map(FuseSession)
}

impl FuseSession {
    /// The way to send messages to the kernel.
    pub(crate) fn notifier(&self) -> Arc<dyn Notifier> {
        Arc::new(self.0.notifier())
    }

    /// Waits until somebody unmounts it.
    ///
    /// # Errors
    /// The reason why the session ended otherwise.
    pub(crate) fn join(self) -> io::Result<()> {
        self.0.join()
    }

    /// Unmounts it and waits for the end of its requests.
    ///
    /// # Errors
    /// The kernel's error: EBUSY while programs use it.
    pub(crate) fn unmount(self) -> io::Result<()> {
        self.0.umount_and_join()
    }
}

impl Notifier for fuser::Notifier {
    fn forget_object(&self, number: u64) -> io::Result<()> {
        // All pages, from the first to the last.
        self.inval_inode(INodeNo(number), 0, 0)
    }

    fn forget_name(&self, dir: u64, name: &[u8]) -> io::Result<()> {
        self.inval_entry(INodeNo(dir), OsStr::from_bytes(name))
    }
}
