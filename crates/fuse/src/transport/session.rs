//! A session with the kernel: mounting, threads, invalidations, unmounting.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use fuser::{BackgroundSession, Config, INodeNo, MountOption, Session, SessionACL};

use super::filesystem::Filesystem;
use crate::invalidation::Notifier;
use crate::mounted::Mounted;

/// The options of a session.
#[derive(Debug, Clone)]
pub(crate) struct SessionOptions {
    /// The source that `mount` and `df` show.
    pub(crate) source: String,
    /// True for a read-only mount.
    pub(crate) read_only: bool,
    /// True if other users may use the mount, too.
    pub(crate) all_users: bool,
    /// True if the kernel checks modes and ids before each request.
    pub(crate) kernel_judges: bool,
    /// True if set-id bits of programs are effective.
    pub(crate) set_ids: bool,
    /// True if device files are usable.
    pub(crate) devices: bool,
    /// True if programs in it cannot be executed.
    pub(crate) no_execution: bool,
    /// Number of threads that answer the kernel.
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
            // The layer below updates access times.
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

/// A mounted file system with running threads.
pub(crate) struct FuseSession(BackgroundSession);

/// Mounts on a directory and starts the threads.
///
/// # Errors
/// The kernel's error, or the message of fusermount3.
pub(crate) fn start(
    mounted: Arc<Mounted>,
    dir: &Path,
    options: &SessionOptions,
) -> io::Result<FuseSession> {
    Session::new(Filesystem(mounted), dir, &options.config())?.spawn().map(FuseSession)
}

impl FuseSession {
    /// Returns the sender of invalidations to the kernel.
    pub(crate) fn notifier(&self) -> Arc<dyn Notifier> {
        Arc::new(self.0.notifier())
    }

    /// Waits until the file system is unmounted.
    ///
    /// # Errors
    /// The reason why the session ended otherwise.
    pub(crate) fn join(self) -> io::Result<()> {
        self.0.join()
    }

    /// Unmounts the file system and waits for the end of its requests.
    ///
    /// # Errors
    /// The kernel's error: EBUSY while programs use it.
    pub(crate) fn unmount(self) -> io::Result<()> {
        self.0.umount_and_join()
    }
}

impl Notifier for fuser::Notifier {
    fn forget_object(&self, number: u64) -> io::Result<()> {
        // An offset and length of 0 mean all pages.
        self.inval_inode(INodeNo(number), 0, 0)
    }

    fn forget_name(&self, dir: u64, name: &[u8]) -> io::Result<()> {
        self.inval_entry(INodeNo(dir), OsStr::from_bytes(name))
    }
}
