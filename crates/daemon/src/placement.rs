//! The data servers of exports: connections from the metadata server, and the shared key.

use std::fs;
use std::net::ToSocketAddrs;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use comity_export::{DataServerSpec, PlacementSpec};
use comity_placement::{DataServer, Placed, PlacementKey, PlacementSettings};
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
    let (first, firsts) = channel();
    let dial = |(number, spec)| connect(spec, (number, first.clone()));
    let servers: Result<Vec<_>> = spec.servers.iter().enumerate().map(dial).collect();
    let servers = servers?;
    drop(first);
    for (spec, why) in unanswered(&spec.servers, &firsts) {
        let why = why.context(format!(
            "data server {}: start it by `comity serve --data-server`, with --for this server",
            spec.name
        ));
        if unreached == Unreached::Refused {
            return Err(why);
        }
        tracing::warn!(why = format!("{why:#}"), "clients wait for files of this data server");
    }
    let (unit_bytes, threshold) = (spec.unit_bytes, spec.threshold);
    let settings = PlacementSettings { key, unit_bytes, threshold, servers };
    Ok(Arc::new(Placed::new(below, settings)))
}

/// Starts to dial a data server.
fn connect(spec: &DataServerSpec, first: (usize, Sender<(usize, Dialed)>)) -> Result<DataServer> {
    let named = || format!("data server {}", spec.name);
    let (host, port) = spec.host_and_port().map_err(|what| anyhow!(what)).with_context(named)?;
    let address = (host, port).to_socket_addrs().ok().and_then(|mut found| found.next());
    let address = address
        .with_context(|| format!("{host} has no address: name a host that is known here"))
        .with_context(named)?;
    let files = DataServerLink::dial(spec, address, first).with_context(named)?;
    let (name, is_draining) = (spec.name.as_str().into(), spec.is_draining);
    Ok(DataServer { name, address, is_draining, files })
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
