use std::io::ErrorKind;
use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use comity_proto::nfs4::{
    NfsLockType4, Nfsstat4, Openflag4, Stateid4, TestStateid4args, TestStateid4resok,
    operation as op, share,
};
use comity_remote::nfs4::{Backchannel, Compound, Locker, Opened, Opening, Session, Stretch};
use comity_remote::rpc::caller_ids;
use comity_xdr::Counted;

use super::callback_client::CallbackClient;
use crate::server_process::ServerProcess;

/// A client that opens and locks files and gets delegations, one call at a time.
pub(crate) struct Person {
    pub(crate) session: Session<CallbackClient>,
}

/// All of a file.
pub(crate) const WHOLE: Stretch = (0, u64::MAX);

impl Person {
    pub(crate) fn new(target: &ServerProcess, back: Backchannel) -> Result<Self> {
        Self::at(target.address, back)
    }

    /// Makes one of the server at an address.
    pub(crate) fn at(address: SocketAddr, back: Backchannel) -> Result<Self> {
        let wire = CallbackClient::connect(address)?;
        Ok(Self { session: Session::begin(wire, caller_ids(), back)? })
    }

    /// Sends a COMPOUND that only uses its slot, which takes one round trip.
    pub(crate) fn nothing(&mut self) -> Result<()> {
        Ok(self.session.perform(&Compound::new()).map(drop)?)
    }

    /// OPEN by name. Returns `None` if the server answers with DELAY.
    pub(crate) fn open(
        &mut self,
        dir: &[u8],
        (name, owner): (&str, &str),
        access: u32,
    ) -> Result<Option<Opened>> {
        let (owner, how) = (owner.as_bytes(), Openflag4::NoCreate);
        let opening = self.session.opening(&Opening { dir, name, owner, how, access });
        let reply = self.session.attempt(&opening, &[])?;
        if reply.status == Nfsstat4::Delay {
            return Ok(None);
        }
        Ok(Some(Opened::of(&reply.settled()?)?))
    }

    /// OPEN for reading and writing that succeeds at once, and gets no delegation.
    pub(crate) fn open_plainly(&mut self, dir: &[u8], name: &str) -> Result<Opened> {
        let opened = self.open(dir, (name, "opener"), share::BOTH | share::WANT_NO_DELEG)?;
        opened.context("OPEN has to wait")
    }

    pub(crate) fn close(&mut self, opened: &Opened) -> Result<()> {
        Ok(self.session.perform(&opened.closing()).map(drop)?)
    }

    pub(crate) fn return_delegation(&mut self, opened: &Opened) -> Result<()> {
        let stateid = opened.delegation.context("no delegation")?;
        let compound = Compound::on(&opened.handle).with(op::DELEGRETURN, &stateid);
        Ok(self.session.perform(&compound).map(drop)?)
    }

    /// LOCK for writing, which waits for the lock if it conflicts. Returns whether the lock is held
    /// now.
    pub(crate) fn lock(
        &mut self,
        opened: &Opened,
        locker: &mut Locker,
        stretch: Stretch,
    ) -> Result<bool> {
        match self.session.lock(opened, locker, (NfsLockType4::WriteWait, stretch)) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            locked => Ok(locked.map(|()| true)?),
        }
    }

    /// LOCK that has to succeed at once.
    pub(crate) fn lock_now(
        &mut self,
        opened: &Opened,
        locker: &mut Locker,
        stretch: Stretch,
    ) -> Result<()> {
        ensure!(self.lock(opened, locker, stretch)?, "somebody has {stretch:?}");
        Ok(())
    }

    pub(crate) fn unlock(
        &mut self,
        opened: &Opened,
        locker: &mut Locker,
        stretch: Stretch,
    ) -> Result<()> {
        Ok(self.session.unlock(opened, locker, stretch)?)
    }

    /// Returns whether a stateid is still valid.
    pub(crate) fn is_good(&mut self, stateid: Stateid4) -> Result<bool> {
        let stateids: TestStateid4args = Counted(vec![stateid]);
        let compound = Compound::new().with(op::TEST_STATEID, &stateids);
        let reply = self.session.perform(&compound)?;
        let said: TestStateid4resok = reply.results().next(op::TEST_STATEID)?;
        Ok(said.0 == [Nfsstat4::Ok])
    }
}
