use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use super::ffi::{CephInode, CephMount, MountSource, Vino};
use super::files::CephFiles;
use super::handle;
use super::holds::CephHolds;
use super::mount_number::MountNumber;
use super::{Ceph, CephSiblings, snapshot};
use crate::LeaseWatch;

/// The file system to open, and as whom.
#[derive(Debug, Clone, Default)]
pub struct CephOptions<'a> {
    /// The configuration file of Ceph; without it, the first of Ceph's own places.
    pub configuration: Option<&'a Path>,
    /// The user of Ceph, without `client.`; without it, `admin`.
    pub id: Option<&'a str>,
    /// The name of the file system; without it, the default of the cluster.
    pub file_system: Option<&'a str>,
    /// A name that is this server's and no other one's, the same after a restart: what an earlier
    /// run has left in Ceph ends at once then. Without it, it times out.
    pub server: Option<&'a str>,
    /// The part that is common to all mounts of this process.
    pub siblings: CephSiblings,
    /// The watch whose thread is told of files that other clients of Ceph wait for; without it, no
    /// file is held against them.
    pub leases: Option<Arc<LeaseWatch>>,
}

/// Settings on which this backend relies, whatever the configuration file says.
const SETTINGS: &[(&CStr, &CStr)] = &[
    // libcephfs checks the rights of callers, ACLs among them.
    (c"fuse_default_permissions", c"false"),
    (c"client_acl_type", c"posix_acl"),
    // The size of a directory does not change with files far below it.
    (c"client_dirsize_rbytes", c"false"),
    // Object numbers are the cluster's own.
    (c"client_use_faked_inos", c"false"),
    (c"client_snapdir", snapshot::NAME),
    // A file system that cannot be reached is an error at the start. Ceph waits for a minute until
    // it takes directories from a client that is gone, such as another server that was killed.
    (c"client_mount_timeout", c"90"),
    // A barrier waits for the attributes that it writes itself, and not for those that libcephfs
    // has begun to write after this time (in seconds).
    (c"client_caps_release_delay", c"3600"),
];

/// Time after which a file system that has not been mounted is an error: more than
/// `client_mount_timeout`, after which libcephfs says itself what it has waited for.
const OPEN_TIME_MAX: Duration = Duration::from_secs(120);

const NO_ANSWER: &str = "no metadata server of Ceph answers (see `ceph fs status`)";

/// Longest value of the attributes that identify a cluster: a UUID in text.
const ID_BYTES_MAX: usize = 64;

impl Ceph {
    /// Opens a directory of a file system, named by its path in it.
    ///
    /// # Errors
    /// A text for the operator: the step that failed, and why.
    pub fn open(path: &Path, options: CephOptions<'_>) -> Result<Self, String> {
        let text = |bytes: Option<&[u8]>| {
            let text = bytes.map(CString::new).transpose();
            text.map_err(|_| "the name has a zero byte".to_owned())
        };
        let path = Some(path.as_os_str().as_bytes()).filter(|path| !path.is_empty());
        let number = options.siblings.take_number();
        let client = options.server.map(|server| format!("comity-{server}-{}", number.get()));
        let source = MountSource {
            path: text(Some(path.unwrap_or(b"/")))?.unwrap_or_default(),
            configuration: text(options.configuration.map(|it| it.as_os_str().as_bytes()))?,
            id: text(options.id.map(str::as_bytes))?,
            file_system: text(options.file_system.map(str::as_bytes))?,
            client: text(client.as_deref().map(str::as_bytes))?,
        };
        let mount = Arc::new(open_in_time(source, number)?);
        let (volume, root) = identify(&mount)?;
        let root = handle::encode(volume, root).map_err(|error| error.to_string())?;
        let files = CephFiles::default();
        let siblings = options.siblings;
        siblings.enter(volume);
        let (cut_off, holds) = (AtomicBool::new(false), CephHolds::new(options.leases, &mount));
        Ok(Self { siblings, files, holds, mount, root, volume, cut_off })
    }
}

/// Mounts a file system. libcephfs waits without a limit for a metadata server if the session of an
/// earlier run has to be ended.
fn open_in_time(source: MountSource, number: MountNumber) -> Result<CephMount, String> {
    let (sender, receiver) = mpsc::channel();
    let open = move || sender.send(CephMount::open(&source, SETTINGS, number));
    let thread = thread::Builder::new().name("ceph mount".into()).spawn(open);
    thread.map_err(|error| format!("cannot start a thread: {error}"))?;
    receiver.recv_timeout(OPEN_TIME_MAX).unwrap_or_else(|_| Err(NO_ANSWER.to_owned()))
}

/// Returns the numbers of the volume and of the root directory. The volume is one file system of
/// one cluster.
fn identify(mount: &CephMount) -> Result<(u64, Vino), String> {
    let failed = |what: &str| format!("libcephfs cannot tell {what}");
    let root = mount.root_inode().map_err(|error| format!("{}: {error}", failed("its root")))?;
    let stat = root.getattr().map_err(|error| format!("{}: {error}", failed("its root")))?;
    let cluster = cluster_id(&root).ok_or_else(|| failed("the number of its cluster"))?;
    let id = mount.file_system_id().map_err(|_| failed("the number of its file system"))?;
    let [high, low] = [cluster >> 64, cluster].map(|half| half as u64);
    Ok((handle::mixed(&[high, low, id as u64]), Vino { ino: stat.ino, snapid: stat.dev }))
}

/// Returns the UUID of the cluster.
fn cluster_id(root: &CephInode<'_>) -> Option<u128> {
    let text = root.getxattr(c"ceph.cluster_fsid", ID_BYTES_MAX).ok()?;
    let digits: String =
        std::str::from_utf8(&text).ok()?.chars().filter(|it| *it != '-' && *it != '\0').collect();
    u128::from_str_radix(&digits, 16).ok()
}
