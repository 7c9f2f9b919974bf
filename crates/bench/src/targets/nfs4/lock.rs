use std::io::{ErrorKind, Result as IoResult};
use std::thread::sleep;
use std::time::Duration;

use comity_proto::nfs4::{NfsLockType4, operation as op};
use comity_remote::nfs4::{Compound, Stretch};
use rustix::io::Errno;

use super::Nfs4Files;
use crate::suite::{FileId, LockKind, Range, Wait};

/// A client that waits for a lock asks again after so long. It has no back channel on which it
/// could be told.
const POLL: Duration = Duration::from_millis(1);

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
        let open = self.open.get_mut(file.0 as usize).ok_or(Errno::BADF)?;
        let how = (locktype, stretch(range));
        loop {
            match self.session.lock(&open.file, &mut open.locker, how) {
                Err(error) if error.kind() == ErrorKind::WouldBlock && wait == Wait::Yes => {
                    sleep(POLL);
                }
                tried => return tried,
            }
        }
    }

    fn unlock(&mut self, file: FileId, range: Range) -> IoResult<()> {
        let open = self.open.get_mut(file.0 as usize).ok_or(Errno::BADF)?;
        if open.locker.stateid.is_none() {
            return Ok(());
        }
        self.session.unlock(&open.file, &mut open.locker, stretch(range))
    }

    /// Gives back all locks of an open file, before it is closed.
    pub(super) fn unlock_all(&mut self, file: FileId) -> IoResult<()> {
        self.unlock(file, Range { offset: 0, length: 0 })?;
        let open = self.opened(file)?;
        let Some(stateid) = open.locker.stateid.take() else { return Ok(()) };
        self.session.perform(&Compound::new().with(op::FREE_STATEID, &stateid)).map(drop)
    }
}

/// Returns the offset and length for the wire. Length 0 reaches to the end of the file, which is
/// `u64::MAX` there.
const fn stretch(range: Range) -> Stretch {
    (range.offset, if range.length == 0 { u64::MAX } else { range.length })
}
