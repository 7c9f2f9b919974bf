use std::io::{ErrorKind, Result as IoResult};
use std::thread::sleep;
use std::time::Duration;

use comity_proto::nfs4::{
    ExistLockOwner4, Lock4args, Locker4, Locku4args, NfsLockType4, OpenToLockOwner4, StateOwner4,
    Stateid4, operation as op,
};
use comity_xdr::Opaque;

use super::Nfs4Files;
use crate::nfs4::{Compound, Opened};
use crate::suite::{FileId, LockKind, Range, Wait};

/// How long a client that waits for a lock waits until it asks again. It has no back channel on
/// which it could be told.
const POLL: Duration = Duration::from_millis(1);

/// The length that reaches to the end, as it is sent.
const TO_THE_END: u64 = u64::MAX;

impl Nfs4Files {
    /// Takes or gives back a lock for an open file: each is a lock-owner of its own.
    pub(super) fn lock_range(
        &mut self,
        file: FileId,
        kind: LockKind,
        range: Range,
        wait: Wait,
    ) -> IoResult<()> {
        let locktype = match (kind, wait) {
            (LockKind::Unlock, _) => return self.unlock(file, range),
            (LockKind::Shared, Wait::No) => NfsLockType4::Read,
            (LockKind::Shared, Wait::Yes) => NfsLockType4::ReadWait,
            (LockKind::Exclusive, Wait::No) => NfsLockType4::Write,
            (LockKind::Exclusive, Wait::Yes) => NfsLockType4::WriteWait,
        };
        self.lockers += 1;
        let owner = self.lockers.to_be_bytes();
        loop {
            match self.try_lock(file, locktype, range, &owner) {
                Err(error) if error.kind() == ErrorKind::WouldBlock && wait == Wait::Yes => {
                    sleep(POLL);
                }
                tried => return tried,
            }
        }
    }

    fn try_lock(
        &mut self,
        file: FileId,
        locktype: NfsLockType4,
        range: Range,
        owner: &[u8],
    ) -> IoResult<()> {
        let clientid = self.session.clientid();
        let open = self.opened(file)?;
        let Opened { handle, stateid } = &open.file;
        let locker = match open.locked {
            Some(lock_stateid) => Locker4::Exist(ExistLockOwner4 { lock_stateid, lock_seqid: 0 }),
            None => Locker4::New(OpenToLockOwner4 {
                open_seqid: 0,
                open_stateid: *stateid,
                lock_seqid: 0,
                lock_owner: StateOwner4 { clientid, owner: Opaque(owner) },
            }),
        };
        let (offset, length) = (range.offset, length(range));
        let arguments = Lock4args { locktype, reclaim: false, offset, length, locker };
        let compound = Compound::on(handle).with(op::LOCK, &arguments);
        let reply = self.session.perform(&compound)?;
        let stateid: Stateid4 = reply.on_object()?.next(op::LOCK)?;
        self.opened(file)?.locked = Some(stateid);
        Ok(())
    }

    fn unlock(&mut self, file: FileId, range: Range) -> IoResult<()> {
        let open = self.opened(file)?;
        let Some(lock_stateid) = open.locked else { return Ok(()) };
        let (locktype, offset, length) = (NfsLockType4::Write, range.offset, length(range));
        let arguments = Locku4args { locktype, seqid: 0, lock_stateid, offset, length };
        let compound = Compound::on(&open.file.handle).with(op::LOCKU, &arguments);
        let reply = self.session.perform(&compound)?;
        let stateid: Stateid4 = reply.on_object()?.next(op::LOCKU)?;
        self.opened(file)?.locked = Some(stateid);
        Ok(())
    }

    /// Gives back all locks of an open file, before it is closed.
    pub(super) fn unlock_all(&mut self, file: FileId) -> IoResult<()> {
        self.unlock(file, Range { offset: 0, length: 0 })?;
        let open = self.opened(file)?;
        let Some(stateid) = open.locked.take() else { return Ok(()) };
        self.session.perform(&Compound::new().with(op::FREE_STATEID, &stateid)).map(drop)
    }
}

const fn length(range: Range) -> u64 {
    if range.length == 0 { TO_THE_END } else { range.length }
}
