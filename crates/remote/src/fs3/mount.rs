//! Mounting: MNT finds the directory, and FSINFO describes its file system.

use std::sync::Arc;

use comity_proto::mount::{self, Dirpath, MountOk, Mountstat3};
use comity_vfs::{Cred, Disk, Handle, HandleTable, Result, Status};
use comity_xdr::{Decoder, Opaque};

use super::locks::LockManager;
use super::remote3::Remote3;
use super::status::malformed;
use crate::callers::Callers;
use crate::compound::OpenOwner;
use crate::cookie_verifiers::Verifiers;
use crate::engine::ClientEngine;
use crate::rpc::auth_sys;
use crate::stateless::{ProgramFinder, StatelessCall, StatelessMachine, StatelessReply};
use crate::unstable::UnstableWrites;
use crate::volume_number;

/// Settings of a mount beyond those of the client.
#[derive(Debug)]
pub(crate) struct Settings3<'a> {
    /// Names of the directory, from the server's root on.
    pub(crate) path: &'a [Vec<u8>],
    /// The owner of the mount.
    pub(crate) cred: &'a Cred<Disk>,
    /// The name of this machine.
    pub(crate) machine_name: &'a [u8],
    /// The error of calls that timed out too often.
    pub(crate) late: Status,
    /// Most bytes of a READ and of a WRITE.
    pub(crate) transfer_bytes: (u32, u32),
    /// A number that differs from run to run.
    pub(crate) seed: u32,
    /// The server's name for messages.
    pub(crate) server: &'a str,
}

/// Mounts a directory of a server over version 3. `programs` finds its other programs.
///
/// # Errors
/// The path that cannot be mounted, and the reason.
pub(crate) fn mount(
    engine: ClientEngine<StatelessMachine>,
    programs: ProgramFinder,
    settings: &Settings3<'_>,
) -> std::result::Result<Remote3, (Option<Vec<u8>>, Status)> {
    let path = [b"/".as_slice(), &settings.path.join(b"/".as_slice())].concat();
    let credential = auth_sys(settings.cred, settings.machine_name);
    let (handles, opens) = (Arc::default(), super::opens::OpenTable::default());
    let root = find_root(&engine, &programs, (&credential, &path), &handles);
    let locks = LockManager::new(programs, settings.machine_name, settings.seed);
    let root = root.map_err(|status| (Some(path), status))?;
    let mut remote = Remote3 {
        engine,
        owner: Arc::new(OpenOwner { id: 0, credential }),
        callers: Callers::new(settings.machine_name),
        handles,
        root,
        volume: 0,
        late: settings.late,
        transfer_bytes: settings.transfer_bytes,
        verifiers: Verifiers::default(),
        unstable: UnstableWrites::default(),
        opens,
        locks,
    };
    remote.adopt(settings.server).map_err(|status| (None, status))?;
    Ok(remote)
}

/// Returns the handle of a path, by the procedure MNT.
fn find_root(
    engine: &ClientEngine<StatelessMachine>,
    programs: &ProgramFinder,
    (credential, path): (&[u8], &[u8]),
    handles: &HandleTable,
) -> Result<Handle> {
    let dirpath: Dirpath<'_> = Opaque(path);
    let procedure = (mount::PROGRAM, mount::VERSION, mount::procedure::MNT);
    let call = || StatelessCall::new(procedure, credential, &dirpath);
    let reply = programs.ask(engine, (mount::PROGRAM, mount::VERSION), &call)?;
    handles.handle(mounted_handle(&reply)?)
}

fn mounted_handle(reply: &StatelessReply) -> Result<&[u8]> {
    let mut results = Decoder::new(reply.results());
    match results.value().map_err(malformed)? {
        Mountstat3::Ok => Ok(results.value::<MountOk<'_>>().map_err(malformed)?.handle.0),
        Mountstat3::Perm => Err(Status::Perm),
        Mountstat3::NoEnt => Err(Status::NoEnt),
        Mountstat3::Io => Err(Status::Io),
        Mountstat3::Acces => Err(Status::Acces),
        Mountstat3::NotDir => Err(Status::NotDir),
        Mountstat3::Inval => Err(Status::Inval),
        Mountstat3::NameTooLong => Err(Status::NameTooLong),
        Mountstat3::NotSupp => Err(Status::NotSupp),
        Mountstat3::ServerFault => Err(Status::ServerFault),
    }
}

impl Remote3 {
    /// Adopts the limits that the server announces for the file system.
    fn adopt(&mut self, server: &str) -> Result<()> {
        let info = self.fsinfo(&self.root)?;
        let limit = |wanted: u32, most: u32| if most == 0 { wanted } else { wanted.min(most) };
        let (read, write) = self.transfer_bytes;
        self.transfer_bytes = (limit(read, info.rtmax), limit(write, info.wtmax));
        self.volume = volume_number::of_file_system(server, self.getattr(&self.root)?.fsid);
        Ok(())
    }
}
