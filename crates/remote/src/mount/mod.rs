//! Mounting: options and errors.

mod error;
mod options;

use std::sync::Arc;

use comity_vfs::{Fs, HandleTable};

pub use error::MountError;
pub use options::{DelegationUse, MountOptions, NfsVersion};

use crate::engine::ClientEngine;
use crate::fs3::{self, Settings3};
use crate::fs4::{self, Settings4};
use crate::session::ClientMachine;
use crate::stateless::{ProgramFinder, StatelessMachine};
use crate::transport::Transport;

/// A file system of a server, mounted.
pub struct Mounted {
    /// The file system. Its root is the directory that was mounted.
    pub fs: Arc<dyn Fs>,
    /// The version in use.
    pub version: NfsVersion,
    /// The server's own handles, which those of the file system stand for.
    pub handles: Arc<HandleTable>,
}

/// Mounts a directory of a server with the highest version that both sides support. The mount ends
/// when the last reference to the file system is dropped.
///
/// # Errors
/// [`MountError`], which says what to do.
pub fn mount(transport: Box<dyn Transport>, options: &MountOptions) -> Result<Mounted, MountError> {
    match options.versions.1 {
        NfsVersion::Three => mount3(transport, options),
        NfsVersion::FourOne | NfsVersion::FourTwo => mount4(transport, options),
    }
}

fn mount4(transport: Box<dyn Transport>, options: &MountOptions) -> Result<Mounted, MountError> {
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
        late: options.late,
        transfer_bytes: (options.read_bytes_max, options.write_bytes_max),
    };
    let fs = fs4::mount(engine, &settings)
        .map_err(|(name, status)| MountError::path(&peer, name.as_deref(), status))?;
    let (version, handles) = (NfsVersion::of_minor(fs.minor()), fs.handles());
    Ok(Mounted { fs: Arc::new(fs), version, handles })
}

fn mount3(transport: Box<dyn Transport>, options: &MountOptions) -> Result<Mounted, MountError> {
    let (peer, transport) = (transport.peer(), Arc::<dyn Transport>::from(transport));
    let settings = options.stateless_settings();
    let (machine, connections) = (StatelessMachine::new(settings.clone()), settings.connections);
    let of_nfs = Box::new(Arc::clone(&transport));
    let engine = ClientEngine::start(machine, connections, of_nfs, options.introduction)
        .map_err(|failure| MountError::start(&peer, failure))?;
    let seed = settings.seed;
    let programs = ProgramFinder::new(transport, settings, options.introduction);
    let settings = Settings3 {
        path: &options.path,
        cred: &options.cred,
        machine_name: &options.machine_name,
        late: options.late,
        transfer_bytes: (options.read_bytes_max, options.write_bytes_max),
        seed,
        server: &peer,
    };
    let fs = fs3::mount(engine, programs, &settings)
        .map_err(|(name, status)| MountError::path(&peer, name.as_deref(), status))?;
    let handles = fs.handles();
    Ok(Mounted { fs: Arc::new(fs), version: NfsVersion::Three, handles })
}
