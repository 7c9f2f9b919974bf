//! The data servers of exports: connections from the metadata server, and the shared key.

use std::fs;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use comity_export::{DataServerSpec, PlacementSpec};
use comity_placement::{DataServer, Placed, PlacementKey, PlacementSettings, ReachFiles};
use comity_remote::{ClientIdentity, DelegationUse, MountOptions, Tcp};
use comity_vfs::layers::{Hook, Layer, Verb};
use comity_vfs::{AsServer, Cred, Fs, Gid, Handle, Status, Uid};

use crate::state_folder::check_secret;

/// Time after which a client whose call waits for a data server gets DELAY.
const PATIENCE: Duration = Duration::from_secs(5);

/// Time within which a data server must answer the first call.
const INTRODUCTION: Duration = Duration::from_secs(10);

/// First pause before a data server that did not answer is tried again.
const PAUSE_MIN: Duration = Duration::from_millis(500);

/// Longest pause between two attempts to reach a data server.
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// Reads the key of a placement.
///
/// # Errors
/// The file cannot be read, is not a key, or is readable by others.
pub(crate) fn key(path: &Path) -> Result<PlacementKey> {
    let _server = AsServer::here();
    let shown = path.display();
    let text = fs::read(path).with_context(|| {
        format!("cannot read the key of the placement, {shown}: copy it from the metadata server")
    })?;
    check_secret(path, "make another one for all servers of the placement")?;
    PlacementKey::parse(&text).with_context(|| shown.to_string())
}

/// The consequence if a data server does not answer at the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unreached {
    /// It is an error.
    Refused,
    /// It is tried again after pauses, and its files wait.
    TriedAgain,
}

/// Wraps the file system of an export's folder in its placement.
///
/// # Errors
/// The reason why a data server cannot be used, and what to do.
pub(crate) fn put_over(
    below: Arc<dyn Fs>,
    spec: &PlacementSpec,
    unreached: Unreached,
) -> Result<Arc<dyn Fs>> {
    let servers: Result<Vec<_>> = spec.servers.iter().map(|it| connect(it, unreached)).collect();
    let (key, unit_bytes, servers) = (key(&spec.key)?, spec.unit_bytes, servers?);
    Ok(Arc::new(Placed::new(below, PlacementSettings { key, unit_bytes, servers })))
}

fn connect(spec: &DataServerSpec, unreached: Unreached) -> Result<DataServer> {
    let named = || format!("data server {}", spec.name);
    let (host, port) = spec.host_and_port().map_err(|what| anyhow!(what)).with_context(named)?;
    let address = (host, port).to_socket_addrs().ok().and_then(|mut found| found.next());
    let address = address
        .with_context(|| format!("{host} has no address: name a host that is known here"))
        .with_context(named)?;
    let name = spec.name.as_str().into();
    let files = Arc::new(Remote { spec: spec.clone(), address, fs: OnceLock::new() });
    if let Err(why) = files.mount() {
        let why = why.context(format!(
            "{}: start it by `comity serve --data-server`, with --for this server",
            named()
        ));
        if unreached == Unreached::Refused {
            return Err(why);
        }
        tracing::warn!(why = format!("{why:#}"), "clients wait for files of this data server");
        try_again(&files).with_context(named)?;
    }
    Ok(DataServer { name, address, files })
}

/// The connection to a data server, which may still have to be made.
struct Remote {
    spec: DataServerSpec,
    address: SocketAddr,
    fs: OnceLock<Arc<dyn Fs>>,
}

impl Remote {
    fn mount(&self) -> Result<()> {
        let transport = Box::new(Tcp::from(self.address));
        let mounted = comity_remote::mount(transport, &options(&self.spec)?)?;
        // Nobody else mounts it meanwhile.
        let _ = self.fs.set(Arc::new(Layer::new(mounted.fs, Sleeping)));
        Ok(())
    }
}

impl ReachFiles for Remote {
    fn reach(&self) -> comity_vfs::Result<Arc<dyn Fs>> {
        self.fs.get().cloned().ok_or(Status::Delay)
    }
}

/// Starts a thread that mounts a data server as soon as it answers. It ends when the placement is
/// gone.
fn try_again(files: &Arc<Remote>) -> Result<()> {
    let files = Arc::downgrade(files);
    let work = move || {
        let mut pause = PAUSE_MIN;
        loop {
            thread::sleep(pause);
            let Some(files) = files.upgrade() else { return };
            if files.mount().is_ok() {
                tracing::info!(server = files.spec.name, "a data server was reached");
                return;
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
    };
    thread::Builder::new().name("data-server".into()).spawn(work)?;
    Ok(())
}

/// The options for mounting a data server. A client gets DELAY while a data server does not answer.
/// Delegations are off, because clients write to data servers directly by layouts.
fn options(spec: &DataServerSpec) -> Result<MountOptions> {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let process = rustix::process::getpid().as_raw_nonzero();
    let owner = format!("comity placement {host} {process} {}", spec.name);
    let root = Cred::new(Uid::new(0), Gid::new(0));
    Ok(MountOptions {
        patience: PATIENCE,
        retries: 0,
        is_soft: true,
        late: Status::Delay,
        delegations: DelegationUse::None,
        introduction: INTRODUCTION,
        ..MountOptions::new(ClientIdentity::new(owner)?, root)
    })
}

/// Runs calls to a data server, which block until it answers, outside of the event loop.
struct Sleeping;

impl Hook for Sleeping {
    fn around<T>(
        &self,
        _: Verb,
        _: &Handle,
        work: impl FnOnce() -> comity_vfs::Result<T>,
    ) -> comity_vfs::Result<T> {
        comity_backend::blocking(work)
    }
}
