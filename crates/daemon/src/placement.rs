//! The data servers of exports: connections from the metadata server, and the shared key.

use std::fs;
use std::net::ToSocketAddrs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use comity_export::{DataServerSpec, PlacementSpec};
use comity_placement::{DataServer, Placed, PlacementKey, PlacementSettings};
use comity_remote::{ClientIdentity, DelegationUse, MountOptions, Tcp};
use comity_vfs::layers::{Hook, Layer, Verb};
use comity_vfs::{AsServer, Cred, Fs, Gid, Handle, Status, Uid};

use crate::state_folder::check_secret;

/// Time after which a client whose call waits for a data server gets DELAY.
const PATIENCE: Duration = Duration::from_secs(5);

/// Time within which a data server must answer the first call.
const INTRODUCTION: Duration = Duration::from_secs(10);

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

/// Wraps the file system of an export's folder in its placement.
///
/// # Errors
/// The reason why a data server cannot be used, and what to do.
pub(crate) fn put_over(below: Arc<dyn Fs>, spec: &PlacementSpec) -> Result<Arc<dyn Fs>> {
    let servers: Result<Vec<_>> = spec.servers.iter().map(connect).collect();
    let (key, unit_bytes, servers) = (key(&spec.key)?, spec.unit_bytes, servers?);
    Ok(Arc::new(Placed::new(below, PlacementSettings { key, unit_bytes, servers })))
}

fn connect(spec: &DataServerSpec) -> Result<DataServer> {
    let named = || format!("data server {}", spec.name);
    let (host, port) = spec.host_and_port().map_err(|what| anyhow!(what)).with_context(named)?;
    let address = (host, port).to_socket_addrs().ok().and_then(|mut found| found.next());
    let address = address
        .with_context(|| format!("{host} has no address: name a host that is known here"))
        .with_context(named)?;
    let mounted = comity_remote::mount(Box::new(Tcp::from(address)), &options(spec)?);
    let mounted = mounted.with_context(|| {
        format!("{}: start it by `comity serve --data-server`, with --for this server", named())
    })?;
    let fs = Arc::new(Layer::new(mounted.fs, Sleeping));
    Ok(DataServer { name: spec.name.as_str().into(), address, fs })
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
