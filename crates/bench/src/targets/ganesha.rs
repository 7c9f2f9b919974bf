use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use comity_remote::rpc::Caller;

use super::peer::free_address;
use crate::limits::START_SECONDS_MAX;
use crate::process::StartedServer;

const GANESHA: &str = "/usr/bin/ganesha.nfsd";
const RPCBIND: &str = "/usr/sbin/rpcbind";

/// The library with which nfs-ganesha serves a Ceph file system.
const FSAL_CEPH: &str = "/usr/lib/x86_64-linux-gnu/ganesha/libfsalceph.so";

/// The files that nfs-ganesha serves.
#[derive(Debug, Clone, Copy)]
pub enum GaneshaBackEnd<'a> {
    /// A local directory.
    Vfs,
    /// A directory of a Ceph file system.
    Ceph {
        /// The configuration of the cluster.
        configuration: &'a Path,
    },
}

impl GaneshaBackEnd<'_> {
    /// Returns whether Debian's packages for it are installed.
    #[must_use]
    pub fn is_installed(self) -> bool {
        is_installed() && (matches!(self, Self::Vfs) || Path::new(FSAL_CEPH).exists())
    }

    /// The block of an export, and the settings beside it.
    fn settings(self) -> (&'static str, String) {
        match self {
            Self::Vfs => ("FSAL { Name = VFS; }", String::new()),
            Self::Ceph { configuration } => {
                let beside = format!("CEPH {{ Ceph_Conf = \"{}\"; }}\n", configuration.display());
                ("FSAL { Name = CEPH; User_Id = admin; }", beside)
            }
        }
    }
}

/// A running nfs-ganesha.
#[derive(Debug)]
pub struct Ganesha {
    /// Its address for NFS.
    pub address: SocketAddr,
    /// The handle of the export's root.
    pub root: Vec<u8>,
    /// The server process.
    pub server: StartedServer,
    /// The rpcbind that it registered with.
    pub rpcbind: StartedServer,
}

/// Returns whether Debian's nfs-ganesha and rpcbind are installed.
#[must_use]
pub fn is_installed() -> bool {
    [GANESHA, RPCBIND].iter().all(|program| Path::new(program).exists())
}

/// Starts nfs-ganesha with one of its back ends on some processors. It ends at once if it cannot
/// register itself, so it gets an rpcbind of its own, which takes a separate network (see
/// `enter_namespace`).
///
/// # Errors
/// It does not come up; the end of its log is in the message.
pub fn start(
    (root, back_end): (&Path, GaneshaBackEnd<'_>),
    work: &Path,
    processors: &[usize],
) -> Result<Ganesha> {
    ["/run/rpcbind", "/run/ganesha", "/var/lib/nfs/ganesha"]
        .iter()
        .try_for_each(fs::create_dir_all)?;
    let mut rpcbind = StartedServer::start(Command::new(RPCBIND).arg("-f"), processors)?;
    let socket = PathBuf::from("/run/rpcbind.sock");
    rpcbind.until(START_SECONDS_MAX, || socket.exists()).context("rpcbind")?;
    let addresses = [free_address()?, free_address()?];
    let (settings, log) = (work.join("ganesha.conf"), work.join("ganesha.log"));
    fs::write(&settings, configuration(root, back_end, addresses))?;
    let mut command = Command::new(GANESHA);
    command.arg("-F").arg("-f").arg(&settings).arg("-L").arg(&log);
    command.arg("-p").arg(work.join("ganesha.pid"));
    command.stdout(File::create(work.join("ganesha.out"))?);
    let mut server = StartedServer::start(&mut command, processors)?;
    let [address, mount_address] = addresses;
    let handle = wait_for_export(&mut server, mount_address, root).with_context(|| {
        let said = fs::read_to_string(&log).unwrap_or_default();
        let end: Vec<_> = said.lines().rev().take(5).collect();
        format!("ganesha does not come up: {}", end.join("\n"))
    })?;
    Ok(Ganesha { address, root: handle, server, rpcbind })
}

/// Waits until a server exports a path, and returns its handle. MOUNT is served at `address`.
///
/// # Errors
/// The server ended, or the path is not exported in time.
pub fn wait_for_export(
    server: &mut StartedServer,
    address: SocketAddr,
    path: &Path,
) -> Result<Vec<u8>> {
    let mount = || Caller::connect(address)?.mount(path);
    let mut root = None;
    server.until(START_SECONDS_MAX, || {
        root = mount().ok();
        root.is_some()
    })?;
    // The last error is returned, so the call is made once more.
    root.map_or_else(mount, Ok)
}

/// Returns its settings: versions 3 and 4.1, otherwise as Debian delivers it wherever that bears on
/// speed. It has no grace period and asks nobody for the names of users.
fn configuration(root: &Path, back_end: GaneshaBackEnd<'_>, addresses: [SocketAddr; 2]) -> String {
    let [port, mount_port] = addresses.map(|address| address.port());
    let (path, (fsal, beside)) = (root.display(), back_end.settings());
    format!(
        "NFS_CORE_PARAM {{ Protocols = 3, 4; NFS_Port = {port}; MNT_Port = {mount_port};\n\
         Enable_NLM = false; Enable_RQUOTA = false; }}\n\
         NFSv4 {{ Graceless = true; Minor_Versions = 1; Only_Numeric_Owners = true; }}\n\
         LOG {{ Default_Log_Level = EVENT; }}\n\
         EXPORT {{ Export_Id = 1; Path = {path}; Pseudo = {path}; Protocols = 3, 4;\n\
         Transports = TCP; Access_Type = RW; Squash = No_Root_Squash; SecType = sys;\n\
         {fsal} }}\n{beside}"
    )
}
