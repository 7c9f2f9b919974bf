//! The arguments of a call: a file that the caller may use, a range, an owner.

use std::sync::Arc;

use comity_coherence::host_name;
use comity_export::{Door, ExportId, Node, View};
use comity_proto::nlm::{Nlm4Lock, Nlm4Stats};
use comity_state::{ByteRange, Client, Error, FileKey, HostLock, LockType};
use comity_vfs::{Access, ReadInto, Status};

use super::Nlm;
use super::owner::HostOwner;
use super::status::{failed, stopped};
use crate::request::{Request, Stop};

/// The subject of a call.
pub(super) struct Locked {
    pub(super) host: Arc<Client>,
    pub(super) owner: Vec<u8>,
    pub(super) file: FileKey,
    pub(super) range: ByteRange,
}

impl Locked {
    /// Lets the caller in for a lock: the caller must be able to open the file.
    pub(super) fn open(
        nlm: &Nlm,
        request: &Request<'_>,
        lock: &Nlm4Lock<'_>,
    ) -> Result<Self, Stop> {
        let (view, node) = request.enter(Door::Handle(lock.fh.0))?;
        may_open(&view, &node)?;
        let range = range(lock).ok_or(Status::FBig)?;
        let (host, owner) = (host(nlm, request)?, HostOwner::of(lock).name());
        Ok(Self { host, owner, file: view.key(&node), range })
    }

    /// Returns the locks that the caller's host may hold, to be freed. They are freed even
    /// if the caller may not use the file any more, or does not see it: such a lock would
    /// block others for ever. `None` for a host that is not known; it holds nothing.
    fn held(
        nlm: &Nlm,
        request: &Request<'_>,
        lock: &Nlm4Lock<'_>,
    ) -> Result<(FileKey, Option<Self>), Stop> {
        let (file, range) = (held_key(request, lock.fh.0)?, range(lock).ok_or(Status::FBig)?);
        let owner = HostOwner::of(lock).name();
        let locked = known_host(nlm, request).map(|host| Self { host, owner, file, range });
        Ok((file, locked))
    }

    pub(super) fn lock(&self, exclusive: bool) -> HostLock<'_> {
        let kind = if exclusive { LockType::Write } else { LockType::Read };
        HostLock { owner: &self.owner, file: self.file, range: self.range, kind }
    }
}

/// The host that calls.
pub(super) fn host(nlm: &Nlm, request: &Request<'_>) -> Result<Arc<Client>, Stop> {
    let visitor = request.visitor;
    let host = nlm.engine.host(nlm.now(), &host_name(visitor), visitor.origin());
    let host = host.map_err(|_| Stop::Status(Status::Delay))?;
    host.set_server_address(request.visitor.local());
    Ok(host)
}

/// Returns the host that calls, if it is known.
pub(super) fn known_host(nlm: &Nlm, request: &Request<'_>) -> Option<Arc<Client>> {
    let host = nlm.engine.known_host(nlm.now(), &host_name(request.visitor))?;
    host.set_server_address(request.visitor.local());
    Some(host)
}

/// Frees the lock or share of a call by `free`; returns the status of the reply, and the export.
pub(super) fn let_go(
    nlm: &Nlm,
    request: &Request<'_>,
    lock: &Nlm4Lock<'_>,
    free: impl FnOnce(&Locked) -> Result<(), Error>,
) -> Result<(Nlm4Stats, Option<u32>), Stop> {
    match Locked::held(nlm, request, lock) {
        Ok((file, locked)) => {
            let stat = match locked.as_ref().map_or(Ok(()), free) {
                Ok(()) => freed(request, lock.fh.0)?,
                Err(error) => failed(error),
            };
            Ok((stat, Some(file.export)))
        }
        Err(stop) => Ok((stopped(stop)?, None)),
    }
}

/// Returns the key of a file that the caller's host may have locked.
pub(super) fn held_key(request: &Request<'_>, handle: &[u8]) -> Result<FileKey, Stop> {
    match request.plan.unseal_key(handle) {
        // The state of an export that moves has been sent, or will be: it must not change.
        Ok(key) if request.plan.is_moving(&key) => Err(Status::Delay.into()),
        Ok(key) if request.visitor.may_use(ExportId(key.export)) => Ok(key),
        // The export may be at another server.
        _ => Err(request.enter(Door::Handle(handle)).err().unwrap_or(Status::Stale.into())),
    }
}

/// Returns GRANTED if the caller sees such a file: nothing is locked there any more.
pub(super) fn freed(request: &Request<'_>, handle: &[u8]) -> Result<Nlm4Stats, Stop> {
    match request.enter(Door::Handle(handle)) {
        Ok(_) => Ok(Nlm4Stats::Granted),
        Err(stop) => stopped(stop),
    }
}

/// Checks that the caller may read or write the file: another one could not have opened it. The
/// owner passes in any case: it may have opened the file before the mode changed, or made the
/// file so, and NFSv3 lets it read all the same.
///
/// A key that acts by grants locks nothing by NLM: the server could not tell its host that the
/// right to a lock has ended, and the host would go on as if it had the lock.
pub(super) fn may_open(view: &View<'_>, node: &Node) -> Result<(), Status> {
    if view.is_by_grants() {
        return Err(Status::NotSupp);
    }
    let wanted = Access::READ | Access::MODIFY;
    let (granted, _) = view.access(node, wanted)?;
    if granted.contains(Access::READ) || granted.contains(Access::MODIFY) {
        return Ok(());
    }
    let mut nothing = Vec::new();
    view.read(node, 0, 0, &mut ReadInto::new(&mut nothing)).map(drop)
}

/// Returns the bytes of a lock. A length of 0 reaches to the end of the file.
fn range(lock: &Nlm4Lock<'_>) -> Option<ByteRange> {
    let length = if lock.l_len == 0 { u64::MAX } else { lock.l_len };
    ByteRange::new(lock.l_offset, length)
}
