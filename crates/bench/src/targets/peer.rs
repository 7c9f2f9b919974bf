use std::fmt::Write as _;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;

use super::ganesha::{self, Ganesha, GaneshaBackEnd};
use super::keyed::KeyedTarget;
use super::server::{self, NfsTarget};
use super::{mount, namespace};
use crate::limits::START_SECONDS_MAX;
use crate::process::StartedServer;
use crate::suite::{Target, Version};

/// A server that the harness starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// `comity serve` of this program, on a folder.
    Comity,
    /// `comity serve` of this program, on an empty file system in memory.
    Memory,
    /// `comity serve` of this program over TLS, which authenticates callers by their keys.
    Keys,
    /// The installed nfs-ganesha.
    Ganesha,
}

/// The resources that live as long as a target that was started.
#[derive(Debug)]
pub(super) struct StartedTarget {
    /// The processes, which are stopped before the folder is removed.
    running: Mutex<Running>,
    _folder: TempDir,
}

#[derive(Debug)]
enum Running {
    Comity(StartedServer),
    Ganesha(Ganesha),
}

impl StartedTarget {
    /// Returns whether the server still runs.
    pub(super) fn check(&self) -> Result<()> {
        match &mut *self.running.lock().unwrap_or_else(PoisonError::into_inner) {
            Running::Comity(server) => server.check(),
            Running::Ganesha(running) => running.server.check(),
        }
    }
}

/// Returns whether a peer can be started only in namespaces of its own.
#[must_use]
pub fn needs_namespace(peer: Peer) -> bool {
    peer == Peer::Ganesha && !namespace::is_inside()
}

impl Peer {
    /// Returns the peer with a name on the command line.
    ///
    /// # Errors
    /// There is no such peer.
    pub fn parse(name: &str) -> Result<Self> {
        match name {
            "comity" => Ok(Self::Comity),
            "memory" => Ok(Self::Memory),
            "keys" => Ok(Self::Keys),
            "ganesha" => Ok(Self::Ganesha),
            "knfsd" => bail!(
                "peer:knfsd: the kernel's server is not started here; \
                 name its export: nfs://host/export"
            ),
            other => bail!(
                "peer:{other}: there are peer:comity, peer:memory, peer:keys and peer:ganesha"
            ),
        }
    }

    /// The name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Comity => "peer:comity",
            Self::Memory => "peer:memory",
            Self::Keys => "peer:keys",
            Self::Ganesha => "peer:ganesha",
        }
    }

    /// Starts it on an empty directory in `place`, or in the temporary folder; it is called `name`
    /// and spoken to in a version of NFS.
    ///
    /// # Errors
    /// It is not installed, needs rights, or does not come up.
    pub fn start(
        self,
        (name, version): (&str, Version),
        place: Option<&Path>,
        program: Option<&Path>,
    ) -> Result<Box<dyn Target>> {
        let place = place.map_or_else(std::env::temp_dir, Path::to_path_buf);
        let folder = tempfile::Builder::new().prefix("comity-bench-peer-").tempdir_in(&place);
        let folder = folder.with_context(|| format!("{name}: no folder in {}", place.display()))?;
        let export = folder.path().join("export");
        fs::create_dir(&export)?;
        let program = || program.map_or_else(std::env::current_exe, |path| Ok(path.into()));
        Ok(match self {
            Self::Ganesha => Box::new(start_ganesha((name, version), folder, &export)?),
            Self::Keys => {
                Box::new(KeyedTarget::start((name, version), (folder, &export), &program()?)?)
            }
            Self::Comity | Self::Memory => {
                let own = Own { program: program()?, in_memory: self == Self::Memory };
                Box::new(start_comity((name, version), folder, &export, &own)?)
            }
        })
    }
}

/// The settings of a comity server to be started.
struct Own {
    program: PathBuf,
    in_memory: bool,
}

fn start_comity(
    (name, version): (&str, Version),
    folder: TempDir,
    export: &Path,
    own: &Own,
) -> Result<NfsTarget> {
    let [address, metrics] = [free_address()?, free_address()?];
    let log = folder.path().join("log");
    let mut command = comity(own, &folder, export)?;
    command
        .args(["--listen", "127.0.0.1", "--no-register"])
        .args(["--port", &address.port().to_string(), "--metrics", &metrics.to_string()])
        .stdout(File::create(&log)?)
        .stderr(File::options().append(true).open(&log)?);
    let mut server = StartedServer::start(&mut command, &processors()?)?;
    let who = caller();
    let come_up = wait_for(&mut server, (address, version), who, export).with_context(|| {
        let said = fs::read_to_string(&log).unwrap_or_default();
        let said = if said.trim().is_empty() { "it said nothing" } else { said.trim() };
        format!("{name} does not come up: {said}")
    });
    let root = come_up?;
    let kept = StartedTarget { running: Mutex::new(Running::Comity(server)), _folder: folder };
    let durability = match own.in_memory {
        true => "memory: nothing outlives the server".to_owned(),
        false => format!("sync export on {}", filesystem_of(export)),
    };
    Ok(NfsTarget {
        name: name.to_owned(),
        address,
        root,
        version,
        who,
        server: Some(version_of(&own.program)),
        durability,
        metrics: Some(metrics),
        kept: Some(kept),
    })
}

fn comity(own: &Own, folder: &TempDir, export: &Path) -> Result<Command> {
    let exports = folder.path().join("exports");
    let mut line = String::new();
    writeln!(line, "{} 127.0.0.1(rw,insecure,no_root_squash,sync)", export.display())?;
    fs::write(&exports, line)?;
    let mut command = Command::new(&own.program);
    command.arg("serve").arg("--exports").arg(exports);
    command.arg("--state-dir").arg(folder.path().join("state"));
    command.args(own.in_memory.then_some("--in-memory"));
    Ok(command)
}

fn wait_for(
    server: &mut StartedServer,
    place: (SocketAddr, Version),
    who: (u32, u32),
    export: &Path,
) -> Result<Vec<u8>> {
    let path = export.to_str().context("a folder whose name is no text")?;
    let mut root = None;
    server.until(START_SECONDS_MAX, || {
        root = server::enter(place, who, path).ok();
        root.is_some()
    })?;
    root.map_or_else(|| server::enter(place, who, path), Ok)
}

fn start_ganesha(
    (name, version): (&str, Version),
    folder: TempDir,
    export: &Path,
) -> Result<NfsTarget> {
    ensure!(
        ganesha::is_installed(),
        "{name}: nfs-ganesha is not installed (Debian: nfs-ganesha, nfs-ganesha-vfs, rpcbind)"
    );
    ensure!(namespace::is_inside(), "{name} needs root: it gets a network of its own");
    let work = folder.path().join("work");
    fs::create_dir(&work)?;
    let running = ganesha::start((export, GaneshaBackEnd::Vfs), &work, &processors()?)?;
    let address = running.address;
    let root = match version {
        Version::Three => running.root.clone(),
        Version::FourOne => {
            let path = export.to_str().context("a folder whose name is no text")?;
            server::enter((address, version), caller(), path)?
        }
    };
    let kept = StartedTarget { running: Mutex::new(Running::Ganesha(running)), _folder: folder };
    Ok(NfsTarget {
        name: name.to_owned(),
        address,
        root,
        version,
        who: caller(),
        server: Some(version_of(Path::new("/usr/bin/ganesha.nfsd"))),
        durability: format!("VFS back end on {}", filesystem_of(export)),
        metrics: None,
        kept: Some(kept),
    })
}

/// Returns the uid and gid for calls: those of the user who runs the suite.
pub(super) fn caller() -> (u32, u32) {
    (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw())
}

pub(super) fn processors() -> Result<Vec<usize>> {
    let allowed = rustix::thread::sched_getaffinity(None)?;
    Ok((0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect())
}

pub(super) fn filesystem_of(path: &Path) -> String {
    mount::of(path).map_or_else(|| "an unknown file system".into(), |mount| mount.filesystem)
}

/// The version that a program prints, in its first line.
pub(super) fn version_of(program: &Path) -> String {
    let flag = if program.ends_with("ganesha.nfsd") { "-v" } else { "--version" };
    let said = Command::new(program).arg(flag).output();
    let said = said.map(|said| String::from_utf8_lossy(&said.stdout).into_owned());
    let line = said.unwrap_or_default().lines().next().unwrap_or_default().trim().to_owned();
    if line.is_empty() { program.display().to_string() } else { line }
}

/// Returns a free address on loopback.
///
/// # Errors
/// There is none.
pub fn free_address() -> Result<SocketAddr> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}
