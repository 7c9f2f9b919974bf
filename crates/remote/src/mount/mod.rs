//! Mounting: options, and what can go wrong.

mod error;
mod options;

use std::sync::Arc;

use comity_vfs::Fs;

pub use error::MountError;
pub use options::{DelegationUse, MountOptions, NfsVersion};

use crate::engine::ClientEngine;
use crate::fs4::{self, Settings4};
use crate::session::ClientMachine;
use crate::transport::Transport;

/// A file system of a server, mounted.
pub struct Mounted {
    /// The file system. Its root is the directory that was asked for.
    pub fs: Arc<dyn Fs>,
    /// The version that is spoken.
    pub version: NfsVersion,
}

/// Mounts a directory of a server. The highest version that both speak is taken. The mount ends
/// when nobody holds the file system any more.
///
/// # Errors
/// [`MountError`], which says what to do.
pub fn mount(transport: Box<dyn Transport>, options: &MountOptions) -> Result<Mounted, MountError> {
    let peer = transport.peer();
    let machine = ClientMachine::new(options.machine_settings());
    let connections = options.connections();
    let engine = ClientEngine::start(machine, connections, transport, options.introduction)
        .map_err(|failure| MountError::start(&peer, failure))?;
    let settings = Settings4 {
        path: &options.path,
        cred: &options.cred,
        machine_name: &options.machine_name,
        owners: &options.owners,
        wants_delegations: options.delegations != DelegationUse::None,
        transfer_bytes: (options.read_bytes_max, options.write_bytes_max),
    };
    let fs = fs4::mount(engine, &settings)
        .map_err(|(name, status)| MountError::path(&peer, name.as_deref(), status))?;
    let version = NfsVersion::of_minor(fs.minor());
    Ok(Mounted { fs: Arc::new(fs), version })
}
