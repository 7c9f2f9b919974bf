use std::io::Result as IoResult;

use comity_proto::nfs4::{
    ExistLockOwner4, Lock4args, Locker4, Locku4args, NfsLockType4, OpenToLockOwner4, StateOwner4,
    Stateid4, operation as op,
};
use comity_xdr::Opaque;
use rustix::io::Errno;

use super::compound::Compound;
use super::opened::Opened;
use super::session::{Session, Wire};

/// A lock owner under an open, with its lock stateid after its first lock.
#[derive(Debug, Clone)]
pub struct Locker {
    /// The lock owner, opaque to the server.
    pub owner: Vec<u8>,
    /// The stateid of its locks, after the first.
    pub stateid: Option<Stateid4>,
}

/// Bytes of a file: offset and length; `u64::MAX` reaches to the end.
pub type Stretch = (u64, u64);

impl Locker {
    /// Makes a lock owner without locks.
    pub fn new(owner: impl Into<Vec<u8>>) -> Self {
        Self { owner: owner.into(), stateid: None }
    }

    /// The COMPOUND that unlocks bytes.
    ///
    /// # Errors
    /// The owner has never had a lock.
    pub fn unlocking(&self, handle: &[u8], stretch: Stretch) -> IoResult<Compound> {
        let (lock_stateid, (offset, length)) = (self.stateid.ok_or(Errno::BADF)?, stretch);
        let locktype = NfsLockType4::Write;
        let arguments = Locku4args { locktype, seqid: 0, lock_stateid, offset, length };
        Ok(Compound::on(handle).with(op::LOCKU, &arguments))
    }
}

impl<W: Wire> Session<W> {
    /// Locks bytes of an open file.
    ///
    /// # Errors
    /// `WouldBlock` if another owner has a conflicting lock.
    pub fn lock(
        &mut self,
        opened: &Opened,
        locker: &mut Locker,
        how: (NfsLockType4, Stretch),
    ) -> IoResult<()> {
        let reply = self.perform(&self.locking(opened, locker, how))?;
        locker.stateid = Some(reply.on_object()?.next(op::LOCK)?);
        Ok(())
    }

    /// Unlocks bytes.
    ///
    /// # Errors
    /// The owner has never had a lock.
    pub fn unlock(
        &mut self,
        opened: &Opened,
        locker: &mut Locker,
        stretch: Stretch,
    ) -> IoResult<()> {
        let reply = self.perform(&locker.unlocking(&opened.handle, stretch)?)?;
        locker.stateid = Some(reply.on_object()?.next(op::LOCKU)?);
        Ok(())
    }

    /// The COMPOUND that locks bytes.
    pub fn locking(
        &self,
        opened: &Opened,
        locker: &Locker,
        (locktype, (offset, length)): (NfsLockType4, Stretch),
    ) -> Compound {
        let (clientid, owner) = (self.clientid(), Opaque(&locker.owner));
        let locker = match locker.stateid {
            Some(lock_stateid) => Locker4::Exist(ExistLockOwner4 { lock_stateid, lock_seqid: 0 }),
            None => Locker4::New(OpenToLockOwner4 {
                open_seqid: 0,
                open_stateid: opened.stateid,
                lock_seqid: 0,
                lock_owner: StateOwner4 { clientid, owner },
            }),
        };
        let arguments = Lock4args { locktype, reclaim: false, offset, length, locker };
        Compound::on(&opened.handle).with(op::LOCK, &arguments)
    }
}
