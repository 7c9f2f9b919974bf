use anyhow::{Context, Result, ensure};
use comity_proto::nfs4::{
    Close4args, ExistLockOwner4, Lock4args, Locker4, Locku4args, NfsLockType4, Nfsstat4, Open4args,
    Open4resok, OpenClaim4, OpenDelegation4, OpenToLockOwner4, Openflag4, StateOwner4, Stateid4,
    operation as op, share,
};
use comity_xdr::Opaque;

use super::attentive::Attentive;
use crate::in_session::{Backchannel, Compound, Session};
use crate::nfs::caller_ids;
use crate::target::Target;

/// A client that opens, locks and is delegated files, one call at a time.
pub(super) struct Person {
    pub(super) session: Session<Attentive>,
}

/// A file that is open.
#[derive(Debug, Clone)]
pub(super) struct Opened {
    pub(super) handle: Vec<u8>,
    pub(super) stateid: Stateid4,
    pub(super) delegation: Option<Stateid4>,
}

/// Who locks: a lock-owner under an open, with its lock stateid once it has had a lock.
#[derive(Debug, Clone)]
pub(super) struct Locker {
    pub(super) owner: String,
    pub(super) stateid: Option<Stateid4>,
}

/// Bytes of a file: where, and how many.
pub(super) type Stretch = (u64, u64);
/// All of it.
pub(super) const WHOLE: Stretch = (0, u64::MAX);

impl Person {
    pub(super) fn new(target: &Target, name: &str, back: Backchannel) -> Result<Self> {
        let wire = Attentive::connect(target.address)?;
        let session = Session::begin(wire, name.as_bytes(), caller_ids(), back)?;
        Ok(Self { session })
    }

    /// A COMPOUND that does nothing but take its slot: a round trip.
    pub(super) fn nothing(&mut self) -> Result<()> {
        self.session.perform(&Compound::new()).map(|_| ())
    }

    /// OPEN by name; nothing if it has to be tried again.
    pub(super) fn open(
        &mut self,
        dir: &[u8],
        (name, owner): (&str, &str),
        share_access: u32,
    ) -> Result<Option<Opened>> {
        let clientid = self.session.clientid();
        let arguments = Open4args {
            seqid: 0,
            share_access,
            share_deny: 0,
            owner: StateOwner4 { clientid, owner: Opaque(owner.as_bytes()) },
            openhow: Openflag4::NoCreate,
            claim: OpenClaim4::Null(Opaque(name.as_bytes())),
        };
        let compound = Compound::new().at(dir).then(op::OPEN, &arguments).then(op::GETFH, &());
        let reply = self.session.perform_kept(&compound, true)?;
        if reply.status()? == Nfsstat4::Delay {
            return Ok(None);
        }
        let mut results = reply.results()?;
        results.next(op::PUTFH)?;
        let said: Open4resok<'_> = results.next(op::OPEN)?.value()?;
        let handle: comity_proto::nfs4::NfsFh4<'_> = results.next(op::GETFH)?.value()?;
        let delegation = match said.delegation {
            OpenDelegation4::Read(read) => Some(read.stateid),
            OpenDelegation4::Write(write) => Some(write.stateid),
            OpenDelegation4::None | OpenDelegation4::NoneExt(_) => None,
        };
        Ok(Some(Opened { handle: handle.0.to_vec(), stateid: said.stateid, delegation }))
    }

    /// OPEN for reading and writing that gets the file at once, and no delegation.
    pub(super) fn open_plainly(&mut self, dir: &[u8], name: &str) -> Result<Opened> {
        let opened = self.open(dir, (name, "opener"), share::BOTH | share::WANT_NO_DELEG)?;
        opened.context("OPEN has to wait")
    }

    pub(super) fn close(&mut self, opened: &Opened) -> Result<()> {
        let arguments = Close4args { seqid: 0, open_stateid: opened.stateid };
        let compound = Compound::new().at(&opened.handle).then(op::CLOSE, &arguments);
        self.done(&compound, op::CLOSE)
    }

    pub(super) fn return_delegation(&mut self, opened: &Opened) -> Result<()> {
        let stateid = opened.delegation.context("no delegation")?;
        let compound = Compound::new().at(&opened.handle).then(op::DELEGRETURN, &stateid);
        self.done(&compound, op::DELEGRETURN)
    }

    /// LOCK for writing, waiting for it if it cannot be had: whether it is held now.
    pub(super) fn lock(
        &mut self,
        opened: &Opened,
        locker: &mut Locker,
        (offset, length): Stretch,
    ) -> Result<bool> {
        let clientid = self.session.clientid();
        let lock_owner = StateOwner4 { clientid, owner: Opaque(locker.owner.as_bytes()) };
        let (open_seqid, lock_seqid, open_stateid) = (0, 0, opened.stateid);
        let who = match locker.stateid {
            Some(lock_stateid) => Locker4::Exist(ExistLockOwner4 { lock_stateid, lock_seqid }),
            None => {
                Locker4::New(OpenToLockOwner4 { open_seqid, open_stateid, lock_seqid, lock_owner })
            }
        };
        let (locktype, reclaim) = (NfsLockType4::WriteWait, false);
        let arguments = Lock4args { locktype, reclaim, offset, length, locker: who };
        let compound = Compound::new().at(&opened.handle).then(op::LOCK, &arguments);
        let reply = self.session.perform_kept(&compound, true)?;
        if reply.status()? == Nfsstat4::Denied {
            return Ok(false);
        }
        let mut results = reply.results()?;
        results.next(op::PUTFH)?;
        locker.stateid = Some(results.next(op::LOCK)?.value()?);
        Ok(true)
    }

    /// LOCK that must be had at once.
    pub(super) fn lock_now(
        &mut self,
        opened: &Opened,
        locker: &mut Locker,
        stretch: Stretch,
    ) -> Result<()> {
        ensure!(self.lock(opened, locker, stretch)?, "somebody has {stretch:?}");
        Ok(())
    }

    pub(super) fn unlock(
        &mut self,
        opened: &Opened,
        locker: &mut Locker,
        (offset, length): Stretch,
    ) -> Result<()> {
        let lock_stateid = locker.stateid.context("nothing was locked")?;
        let locktype = NfsLockType4::Write;
        let arguments = Locku4args { locktype, seqid: 0, lock_stateid, offset, length };
        let compound = Compound::new().at(&opened.handle).then(op::LOCKU, &arguments);
        let reply = self.session.perform_kept(&compound, true)?;
        let mut results = reply.results()?;
        results.next(op::PUTFH)?;
        locker.stateid = Some(results.next(op::LOCKU)?.value()?);
        Ok(())
    }

    /// Whether a stateid is as good as ever.
    pub(super) fn is_good(&mut self, stateid: Stateid4) -> Result<bool> {
        let stateids = comity_xdr::Counted::<Stateid4, 4096>(vec![stateid]);
        let compound = Compound::new().then(op::TEST_STATEID, &stateids);
        let reply = self.session.perform(&compound)?;
        let mut results = reply.results()?;
        let said: comity_proto::nfs4::TestStateid4resok =
            results.next(op::TEST_STATEID)?.value()?;
        Ok(said.0 == [Nfsstat4::Ok])
    }

    fn done(&mut self, compound: &Compound, last: u32) -> Result<()> {
        let reply = self.session.perform_kept(compound, true)?;
        let mut results = reply.results()?;
        results.next(op::PUTFH)?;
        results.next(last).map(|_| ())
    }
}

impl Locker {
    pub(super) fn new(owner: impl Into<String>) -> Self {
        Self { owner: owner.into(), stateid: None }
    }
}
