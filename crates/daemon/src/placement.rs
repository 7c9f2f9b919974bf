//! The data servers of exports: connections from the metadata server, and the shared key.

use std::fs;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use comity_export::{DataServerSpec, PlacementSpec};
use comity_placement::{DataServer, Placed, PlacementKey, PlacementSettings};
use comity_server::blocking_hook;
use comity_vfs::{AsServer, Fs};

use crate::data_server_link::{DataServerLink, Dialed};
use crate::state_folder::check_secret;

/// Time for which a start waits for all data servers together.
const START: Duration = Duration::from_secs(3);

/// Reads the key of a placement.
///
/// # Errors
/// The file cannot be read, is not a key, or is readable by others.
pub(crate) fn key(path: &Path) -> Result<PlacementKey> {
    let server = AsServer::here()?;
    let shown = path.display();
    let text = fs::read(path).with_context(|| {
        format!("cannot read the key of the placement, {shown}: copy it from the metadata server")
    })?;
    check_secret(&server, path, "make another one for all servers of the placement")?;
    PlacementKey::parse(&text).with_context(|| shown.to_string())
}

/// The consequence if a data server does not answer at the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unreached {
    /// It is an error.
    Refused,
    /// Its files wait until it is reached.
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
    let key = key(&spec.key)?;
    let settings = settings(spec, (&key, &[]), unreached)?;
    Ok(Arc::new(Placed::new(below, key, settings).blocking(blocking_hook)))
}

/// Returns the settings of a placement. The connections to the data servers in `known` are kept;
/// the other data servers are dialed.
///
/// # Errors
/// The reason why a data server cannot be used, and what to do.
pub(crate) fn settings(
    spec: &PlacementSpec,
    (key, known): (&PlacementKey, &[DataServer]),
    unreached: Unreached,
) -> Result<PlacementSettings> {
    let (first, firsts) = channel();
    let server = |(number, spec): (usize, &DataServerSpec)| {
        let first = (number, first.clone());
        let server = match known.iter().find(|known| *known.name == *spec.name) {
            Some(known) => keep(known, spec, first),
            None => connect(spec, key, first),
        };
        server.with_context(|| format!("data server {}", spec.name))
    };
    let servers: Result<Vec<_>> = spec.servers.iter().enumerate().map(server).collect();
    let servers = servers?;
    drop(first);
    for (spec, why) in unanswered(&spec.servers, &firsts) {
        let why = advised(spec, why);
        if unreached == Unreached::Refused {
            return Err(why);
        }
        tracing::warn!(why = format!("{why:#}"), "clients wait for files of this data server");
    }
    let (name, mirrors) = (name(&AsServer::here()?, &spec.export), spec.mirrors);
    let (unit_bytes, threshold) = (spec.unit_bytes, spec.threshold);
    Ok(PlacementSettings { name, mirrors, unit_bytes, threshold, servers })
}

/// Dials a data server that the configuration does not name yet.
///
/// # Errors
/// The reason why it cannot be used, and what to do.
pub(crate) fn dial_once(spec: &DataServerSpec, key: &PlacementKey) -> Result<DataServer> {
    let (first, firsts) = channel();
    let server = connect(spec, key, (0, first))?;
    match unanswered(std::slice::from_ref(spec), &firsts).pop() {
        Some((spec, why)) => Err(advised(spec, why)),
        None => Ok(server),
    }
}

/// The error of a data server that cannot be used, with what to do.
fn advised(spec: &DataServerSpec, why: anyhow::Error) -> anyhow::Error {
    let advice = match &spec.path {
        None => "start it by `comity serve --data-server`, with --for this server".to_owned(),
        Some(path) => format!("have it export {path} over NFSv3 to this server"),
    };
    why.context(format!("data server {}: {advice}", spec.name))
}

/// The name of the placement of a folder, which is the same by all paths to the folder.
fn name(_: &AsServer, folder: &Path) -> Box<[u8]> {
    let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    folder.as_os_str().as_bytes().into()
}

/// Has the first outcome of a data server sent to a channel, with this number.
type First = (usize, Sender<(usize, Dialed)>);

/// Starts to dial a data server.
fn connect(spec: &DataServerSpec, key: &PlacementKey, first: First) -> Result<DataServer> {
    let address = addresses(spec)?.next();
    let address = address.context("its host has no address: name a host that is known here")?;
    let files = DataServerLink::dial(spec, (address, key), first)?;
    let (name, path) = (spec.name.as_str().into(), spec.path.as_deref().map(Into::into));
    Ok(DataServer { name, address, path, is_draining: spec.is_draining, files })
}

/// Keeps the connection to a data server, which may be down. Its host need not be known any more.
fn keep(known: &DataServer, spec: &DataServerSpec, (number, first): First) -> Result<DataServer> {
    let mut addresses = addresses(spec)?.peekable();
    if addresses.peek().is_some() && !addresses.any(|address| address == known.address) {
        bail!(
            "a reload does not change its address, which is {} so far: restart the server",
            known.address
        );
    }
    if known.path.as_deref() != spec.path.as_deref() {
        bail!("a reload does not change its path: restart the server");
    }
    // Nobody awaits the outcome if another data server cannot be used.
    let _ = first.send((number, Ok(())));
    Ok(DataServer { is_draining: spec.is_draining, ..known.clone() })
}

/// The addresses of a data server; none if its host is unknown.
fn addresses(spec: &DataServerSpec) -> Result<impl Iterator<Item = SocketAddr>> {
    let (host, port) = spec.host_and_port().map_err(|what| anyhow!(what))?;
    Ok((host, port).to_socket_addrs().into_iter().flatten())
}

/// Waits for the first outcome of each data server, no longer than [`START`] for all of them.
/// Returns the data servers that cannot be used yet, with the reasons.
fn unanswered<'s>(
    servers: &'s [DataServerSpec],
    firsts: &Receiver<(usize, Dialed)>,
) -> Vec<(&'s DataServerSpec, anyhow::Error)> {
    let until = Instant::now() + START;
    let silent = |_| Err(anyhow!("it did not answer within {} s", START.as_secs()));
    let mut outcomes: Vec<Dialed> = servers.iter().map(silent).collect();
    let left = || until.saturating_duration_since(Instant::now());
    while let Ok((number, outcome)) = firsts.recv_timeout(left()) {
        if let Some(known) = outcomes.get_mut(number) {
            *known = outcome;
        }
    }
    servers.iter().zip(outcomes).filter_map(|(spec, it)| Some((spec, it.err()?))).collect()
}
