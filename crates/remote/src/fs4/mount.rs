//! Mounting: lookups from the server's root, and the attributes of the file system found there.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use comity_idmap::Owners;
use comity_proto::nfs4::{Bitmap4, Component4, Fattr4, Nfstime4, attribute as a, operation as op};
use comity_vfs::{Cred, Disk, Handle, Name, Properties, Result, Space, Status, Time};
use comity_xdr::{Decoder, Malformed};

use super::names::component;
use super::remote4::{Remote4, malformed};
use crate::callers::Callers;
use crate::compound::{CompoundCall, CompoundReply, OpenOwner};
use crate::cookie_verifiers::Verifiers;
use crate::engine::ClientEngine;
use crate::limits::COMPOUND_BYTES;
use crate::rpc::auth_sys;
use crate::session::ClientMachine;
use crate::unstable::UnstableWrites;
use crate::volume_number;

/// Settings of a mount beyond those of the client.
#[derive(Debug)]
pub(crate) struct Settings4<'a> {
    /// Names of the directory, from the server's root on.
    pub(crate) path: &'a [Vec<u8>],
    /// The owner of the mount.
    pub(crate) cred: &'a Cred<Disk>,
    /// The name of this machine.
    pub(crate) machine_name: &'a [u8],
    /// Converts between owner strings and ids.
    pub(crate) owners: &'a Owners,
    /// True if the client wants delegations.
    pub(crate) wants_delegations: bool,
    /// The error of calls that timed out too often.
    pub(crate) late: Status,
    /// Most bytes of a READ and of a WRITE.
    pub(crate) transfer_bytes: (u32, u32),
}

/// Attributes of the file system.
const OF_FILE_SYSTEM: Bitmap4 = Bitmap4::of(&[
    a::LINK_SUPPORT,
    a::SYMLINK_SUPPORT,
    a::LEASE_TIME,
    a::CASE_INSENSITIVE,
    a::CASE_PRESERVING,
    a::CHOWN_RESTRICTED,
    a::MAXFILESIZE,
    a::MAXLINK,
    a::MAXNAME,
    a::MAXREAD,
    a::MAXWRITE,
    a::TIME_DELTA,
    a::CLONE_BLKSIZE,
]);

/// Attributes of the space in a file system.
const OF_SPACE: Bitmap4 = Bitmap4::of(&[
    a::FILES_AVAIL,
    a::FILES_FREE,
    a::FILES_TOTAL,
    a::SPACE_AVAIL,
    a::SPACE_FREE,
    a::SPACE_TOTAL,
]);

/// Mounts a directory of a server that has accepted this client.
///
/// # Errors
/// The name that was not found, and the reason; `None` stands for the root.
pub(crate) fn mount(
    engine: ClientEngine<ClientMachine>,
    settings: &Settings4<'_>,
) -> std::result::Result<Remote4, (Option<Vec<u8>>, Status)> {
    let credential = auth_sys(settings.cred, settings.machine_name);
    let minor = engine.with(|machine, _| machine.minor());
    let volume = engine.with(|machine, _| volume_number::of_server(machine.server_identity()));
    let mut remote = Remote4 {
        engine,
        minor,
        owner: Arc::new(OpenOwner { id: 0, credential }),
        callers: Callers::new(settings.machine_name),
        owners: settings.owners.clone(),
        handles: Arc::default(),
        root: Handle::new(b"root").map_err(|status| (None, status))?,
        volume,
        wants_delegations: settings.wants_delegations,
        late: settings.late,
        lacks_directories: AtomicBool::new(false),
        transfer_bytes: settings.transfer_bytes,
        verifiers: Verifiers::default(),
        unstable: UnstableWrites::default(),
    };
    remote.root = remote.find_root().map_err(|status| (None, status))?;
    for name in settings.path {
        let found = Name::new(name).and_then(|name| remote.enter(name));
        remote.root = found.map_err(|status| (Some(name.clone()), status))?;
    }
    let known = remote.file_system(&remote.root).map_err(|status| (None, status))?;
    remote.adopt(&known);
    Ok(remote)
}

impl Remote4 {
    fn own_call(&self) -> CompoundCall {
        CompoundCall::new(self.minor, &self.owner.credential)
    }

    fn find_root(&self) -> Result<Handle> {
        let reply = self.perform(self.own_call().bare(op::PUTROOTFH).bare(op::GETFH))?;
        let mut results = reply.results();
        results.status(op::PUTROOTFH)?;
        self.handle(&mut results)
    }

    /// Looks up a name in the directory reached so far (`root`), and returns its handle.
    fn enter(&self, name: Name<'_>) -> Result<Handle> {
        let name: Component4<'_> = component(name);
        let call =
            self.own_call().on(&self.file(&self.root)?).op(op::LOOKUP, &name).bare(op::GETFH);
        let reply = self.perform(call)?;
        let mut results = reply.results();
        results.status(op::PUTFH)?;
        results.status(op::LOOKUP)?;
        self.handle(&mut results)
    }

    pub(super) fn properties(&self, node: &Handle) -> Result<Properties> {
        self.file_system(node).map(|known| known.properties)
    }

    fn file_system(&self, node: &Handle) -> Result<FileSystem> {
        let reply = self.perform(self.call_unnamed(node)?.op(op::GETATTR, &OF_FILE_SYSTEM))?;
        FileSystem::decode(&fattr(&reply)?).map_err(malformed)
    }

    /// Adopts the lease time and limits that the server announces.
    fn adopt(&mut self, known: &FileSystem) {
        let lease = Duration::from_secs(known.lease_seconds.into());
        let (request, response) = self.engine.with(|machine, _| {
            machine.set_lease(lease);
            machine.message_bytes()
        });
        let most = |wanted: u32, message: u32, told: u64| {
            let told = u32::try_from(told).unwrap_or(u32::MAX);
            wanted.min(message.saturating_sub(COMPOUND_BYTES)).min(told).max(1)
        };
        let (read, write) = self.transfer_bytes;
        self.transfer_bytes =
            (most(read, response, known.read_bytes), most(write, request, known.write_bytes));
    }

    pub(super) fn statfs(&self, cred: &Cred<Disk>, node: &Handle) -> Result<Space> {
        let reply = self.perform(self.call(cred, node)?.op(op::GETATTR, &OF_SPACE))?;
        space(&fattr(&reply)?).map_err(malformed)
    }
}

/// Reads the attributes of a COMPOUND of PUTFH and GETATTR.
fn fattr(reply: &CompoundReply) -> Result<Fattr4<'_>> {
    let mut results = reply.results();
    results.status(op::PUTFH)?;
    Ok(results.next(op::GETATTR)?)
}

/// The attributes of a file system.
#[derive(Debug, Clone, Copy)]
struct FileSystem {
    properties: Properties,
    lease_seconds: u32,
    read_bytes: u64,
    write_bytes: u64,
}

/// The values of attributes that the server does not send.
const FIRST: FileSystem = FileSystem {
    properties: Properties {
        file_size_max: i64::MAX as u64,
        name_bytes_max: 255,
        links_max: 255,
        time_delta: Time { seconds: 1, nanoseconds: 0 },
        hard_links: true,
        symbolic_links: true,
        chown_restricted: true,
        case_insensitive: false,
        case_preserving: true,
        clone_bytes: 1,
        maker: None,
    },
    lease_seconds: 90,
    read_bytes: u64::MAX,
    write_bytes: u64::MAX,
};

impl FileSystem {
    fn decode(fattr: &Fattr4<'_>) -> std::result::Result<Self, Malformed> {
        let mut known = FIRST;
        let mut values = Decoder::new(fattr.attr_vals.0);
        for number in fattr.attrmask.iter() {
            known.decode_one(number, &mut values)?;
        }
        values.finish()?;
        Ok(known)
    }

    fn decode_one(
        &mut self,
        number: u32,
        values: &mut Decoder<'_>,
    ) -> std::result::Result<(), Malformed> {
        let properties = &mut self.properties;
        match number {
            a::LINK_SUPPORT => properties.hard_links = values.value()?,
            a::SYMLINK_SUPPORT => properties.symbolic_links = values.value()?,
            a::LEASE_TIME => self.lease_seconds = values.value()?,
            a::CASE_INSENSITIVE => properties.case_insensitive = values.value()?,
            a::CASE_PRESERVING => properties.case_preserving = values.value()?,
            a::CHOWN_RESTRICTED => properties.chown_restricted = values.value()?,
            a::MAXFILESIZE => properties.file_size_max = values.value()?,
            a::MAXLINK => properties.links_max = values.value()?,
            a::MAXNAME => properties.name_bytes_max = values.value()?,
            a::MAXREAD => self.read_bytes = values.value()?,
            a::MAXWRITE => self.write_bytes = values.value()?,
            a::TIME_DELTA => {
                let Nfstime4 { seconds, nseconds } = values.value()?;
                properties.time_delta = Time { seconds, nanoseconds: nseconds };
            }
            a::CLONE_BLKSIZE => properties.clone_bytes = values.value()?,
            found => return Err(Malformed::Discriminant { of: "attribute asked for", found }),
        }
        Ok(())
    }
}

fn space(fattr: &Fattr4<'_>) -> std::result::Result<Space, Malformed> {
    let mut space = Space::default();
    let mut values = Decoder::new(fattr.attr_vals.0);
    for number in fattr.attrmask.iter() {
        let place = match number {
            a::FILES_AVAIL => &mut space.files_available,
            a::FILES_FREE => &mut space.files_free,
            a::FILES_TOTAL => &mut space.files_total,
            a::SPACE_AVAIL => &mut space.bytes_available,
            a::SPACE_FREE => &mut space.bytes_free,
            a::SPACE_TOTAL => &mut space.bytes_total,
            found => return Err(Malformed::Discriminant { of: "attribute asked for", found }),
        };
        *place = values.value()?;
    }
    values.finish()?;
    Ok(space)
}
