use std::io::{Error, Result as IoResult};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use comity_proto::nfs4::{
    ChannelAttrs4, ClientOwner4, Clientid4, CreateSession4args, CreateSession4resok,
    ExchangeId4args, ExchangeId4resok, NfsFh4, Open4args, Open4resok, OpenClaim4, Openflag4,
    PROGRAM, Sequence4args, Sessionid4, StateOwner4, StateProtect4a, Stateid4, VERSION, exchgid,
    operation as op, procedure, share,
};
use comity_xdr::{Counted, Encode, Opaque};
use rustix::rand::{GetRandomFlags, getrandom};

use super::compound::{Arguments, Compound, Reply, broken, failure, is_later};
use crate::limits::SILENCE_SECONDS_MAX;
use crate::nfs::Caller;

/// Program, version and procedure of every call but one.
const COMPOUND: (u32, u32, u32) = (PROGRAM, VERSION, procedure::COMPOUND);
/// Bytes of a READ's or WRITE's data at most.
const DATA_BYTES_MAX: u32 = 1 << 20;
/// Room for what else is in their COMPOUNDs.
const ROOM_BYTES: u32 = 4096;
/// Operations of the longest COMPOUND.
const OPERATIONS_MAX: u32 = 8;
/// The first and the longest wait after which a server that says DELAY is asked again.
const DELAY_WAITS: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(50)];

/// A client of its own with a session of one slot: it makes one call at a time.
#[derive(Debug)]
pub(crate) struct Session {
    caller: Caller,
    clientid: Clientid4,
    /// Of the next CREATE_SESSION.
    creations: u32,
    sessions: Vec<Sessionid4>,
    own: Sessionid4,
    /// Of the last call.
    sequenceid: u32,
    data_bytes: usize,
}

/// A file that was opened.
#[derive(Debug, Clone)]
pub(crate) struct Opened {
    pub(crate) handle: Vec<u8>,
    pub(crate) stateid: Stateid4,
}

impl Session {
    /// Introduces a client to a server, as a user.
    pub(crate) fn open(address: SocketAddr, who: (u32, u32)) -> IoResult<Self> {
        let caller = Caller::connect_as(address, who.0, who.1).map_err(|error| broken(&error))?;
        let mut session = Self {
            caller,
            clientid: 0,
            creations: 0,
            sessions: Vec::new(),
            own: [0; 16],
            sequenceid: 0,
            data_bytes: 0,
        };
        session.introduce()?;
        let made = session.create(1)?;
        session.own = made.sessionid;
        let channel = made.fore_chan;
        let most = channel.maxrequestsize.min(channel.maxresponsesize);
        // Whole pages, as many as fit.
        let data = most.saturating_sub(ROOM_BYTES).min(DATA_BYTES_MAX) & !(ROOM_BYTES - 1);
        session.data_bytes = data.max(ROOM_BYTES) as usize;
        session.perform(&Compound::new().with(op::RECLAIM_COMPLETE, &false))?;
        Ok(session)
    }

    fn introduce(&mut self) -> IoResult<()> {
        static CLIENTS: AtomicU64 = AtomicU64::new(0);
        let number = CLIENTS.fetch_add(1, Ordering::Relaxed);
        let mut verifier = [0; 8];
        getrandom(&mut verifier, GetRandomFlags::empty())?;
        let chance = u64::from_be_bytes(verifier);
        let id = format!("comity-bench {} {number} {chance:016x}", std::process::id());
        let arguments = ExchangeId4args {
            clientowner: ClientOwner4 { verifier, id: Opaque(id.as_bytes()) },
            flags: exchgid::USE_NON_PNFS,
            state_protect: StateProtect4a::None,
            client_impl_id: None,
        };
        let reply = self.alone(&Compound::new().with(op::EXCHANGE_ID, &arguments))?;
        let known: ExchangeId4resok<'_> = reply.results().next(op::EXCHANGE_ID)?;
        (self.clientid, self.creations) = (known.clientid, known.sequenceid);
        Ok(())
    }

    /// Another session of the client, with as many slots as the server grants of those wished for.
    pub(crate) fn another(&mut self, slots: u32) -> IoResult<(Sessionid4, u32)> {
        let made = self.create(slots)?;
        self.sessions.push(made.sessionid);
        Ok((made.sessionid, made.fore_chan.maxrequests))
    }

    fn create(&mut self, slots: u32) -> IoResult<CreateSession4resok> {
        let fore_chan = ChannelAttrs4 {
            headerpadsize: 0,
            maxrequestsize: DATA_BYTES_MAX + ROOM_BYTES,
            maxresponsesize: DATA_BYTES_MAX + ROOM_BYTES,
            maxresponsesize_cached: ROOM_BYTES,
            maxoperations: OPERATIONS_MAX,
            maxrequests: slots,
            rdma_ird: None,
        };
        let back_chan = ChannelAttrs4 { maxrequests: 1, ..fore_chan };
        let arguments = CreateSession4args {
            clientid: self.clientid,
            sequence: self.creations,
            flags: 0,
            fore_chan,
            back_chan: ChannelAttrs4 { maxrequestsize: ROOM_BYTES, ..back_chan },
            cb_program: 0x4000_0000,
            sec_parms: Counted(vec![comity_proto::nfs4::CallbackSecParms4::None]),
        };
        let reply = self.alone(&Compound::new().with(op::CREATE_SESSION, &arguments))?;
        let made = reply.results().next(op::CREATE_SESSION)?;
        self.creations += 1;
        Ok(made)
    }

    /// Most bytes of one READ or WRITE.
    pub(crate) const fn data_bytes(&self) -> usize {
        self.data_bytes
    }

    /// The client's name with the server.
    pub(crate) const fn clientid(&self) -> Clientid4 {
        self.clientid
    }

    /// Has the operations done, all of them.
    ///
    /// # Errors
    /// The first that the server refused, by its number; or that nobody answers. A server that
    /// wants to be asked later is, for as long as one may be silent.
    pub(crate) fn perform(&mut self, compound: &Compound) -> IoResult<Reply> {
        let started = Instant::now();
        let mut wait = DELAY_WAITS[0];
        loop {
            let reply = self.attempt(compound)?;
            let patience = Duration::from_secs(SILENCE_SECONDS_MAX.into());
            if !is_later(reply.status) || started.elapsed() > patience {
                return settled(reply);
            }
            sleep(wait);
            wait = (wait * 2).min(DELAY_WAITS[1]);
        }
    }

    fn attempt(&mut self, compound: &Compound) -> IoResult<Reply> {
        let reply = self.call(&Arguments(Some(self.next()), compound))?;
        self.sequenced(reply)
    }

    /// The slot's next request.
    const fn next(&self) -> Sequence4args {
        Sequence4args {
            sessionid: self.own,
            sequenceid: self.sequenceid.wrapping_add(1),
            slotid: 0,
            highest_slotid: 0,
            cachethis: false,
        }
    }

    /// The slot has had its request.
    fn sequenced(&mut self, mut reply: Reply) -> IoResult<Reply> {
        reply.sequence()?;
        self.sequenceid = self.sequenceid.wrapping_add(1);
        Ok(reply)
    }

    /// A COMPOUND outside of any session.
    fn alone(&mut self, compound: &Compound) -> IoResult<Reply> {
        settled(self.call(&Arguments(None, compound))?)
    }

    fn call(&mut self, arguments: &impl Encode) -> IoResult<Reply> {
        Reply::new(self.caller.program(COMPOUND, arguments).map_err(|error| broken(&error))?)
    }

    /// The record of a call as it is sent next in the session's slot, with `payload` bytes to come
    /// behind it.
    pub(super) fn record(&self, compound: &Compound, payload: usize) -> Vec<u8> {
        self.caller.record(COMPOUND, &Arguments(Some(self.next()), compound), payload).0
    }

    /// Where in a record the arguments of SEQUENCE begin.
    pub(super) fn sequence_at(&self) -> usize {
        self.caller.record(COMPOUND, &(), 0).1 + Arguments::BEFORE_SEQUENCE
    }

    /// The record of a call that does nothing, and the record of its reply.
    pub(super) fn nothing(&mut self) -> IoResult<(Vec<u8>, Vec<u8>)> {
        let (call, _) = self.caller.record((PROGRAM, VERSION, procedure::NULL), &(), 0);
        let reply = self.caller.exchange(&[&call]).map_err(|error| broken(&error))?;
        Ok((call, reply))
    }

    /// Sends a record and what comes behind it as they are.
    pub(super) fn exchange(&mut self, parts: &[&[u8]]) -> IoResult<Reply> {
        let answered = self.caller.exchange(parts).map_err(|error| broken(&error))?;
        settled(self.sequenced(Reply::new(answered)?)?)
    }

    /// The handle of a path from the server's root on.
    pub(crate) fn mount(&mut self, path: &str) -> IoResult<Vec<u8>> {
        let reply = self.perform(&Compound::new().then(op::PUTROOTFH).then(op::GETFH))?;
        let mut results = reply.results();
        results.next::<()>(op::PUTROOTFH)?;
        let root = results.next::<NfsFh4<'_>>(op::GETFH)?.0.to_vec();
        self.walk(&root, path)
    }

    /// The handle of a path below a directory.
    pub(crate) fn walk(&mut self, root: &[u8], path: &str) -> IoResult<Vec<u8>> {
        let mut names = path.split('/').filter(|name| !name.is_empty());
        names.try_fold(root.to_vec(), |handle, name| self.lookup(&handle, name))
    }

    fn lookup(&mut self, dir: &[u8], name: &str) -> IoResult<Vec<u8>> {
        let name: comity_proto::nfs4::Component4<'_> = Opaque(name.as_bytes());
        let reply = self.perform(&Compound::on(dir).with(op::LOOKUP, &name).then(op::GETFH))?;
        let mut results = reply.on_object()?;
        results.next::<()>(op::LOOKUP)?;
        Ok(results.next::<NfsFh4<'_>>(op::GETFH)?.0.to_vec())
    }

    /// Opens a name in a directory. Two opens under one owner would be one.
    pub(crate) fn open_file(
        &mut self,
        (dir, name): (&[u8], &str),
        owner: &[u8],
        openhow: Openflag4<'_>,
        access: u32,
    ) -> IoResult<Opened> {
        let arguments = self.opening(owner, openhow, access, name);
        let reply = self.perform(&Compound::on(dir).with(op::OPEN, &arguments).then(op::GETFH))?;
        let mut results = reply.on_object()?;
        let stateid = results.next::<Open4resok<'_>>(op::OPEN)?.stateid;
        let handle = results.next::<NfsFh4<'_>>(op::GETFH)?.0.to_vec();
        Ok(Opened { handle, stateid })
    }

    /// The arguments of an OPEN that wants no delegation.
    pub(super) const fn opening<'a>(
        &self,
        owner: &'a [u8],
        openhow: Openflag4<'a>,
        access: u32,
        name: &'a str,
    ) -> Open4args<'a> {
        Open4args {
            seqid: 0,
            share_access: access | share::WANT_NO_DELEG,
            share_deny: 0,
            owner: StateOwner4 { clientid: self.clientid, owner: Opaque(owner) },
            openhow,
            claim: OpenClaim4::Null(Opaque(name.as_bytes())),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // The lease ends what cannot be ended in order.
        for id in self.sessions.drain(..).chain([self.own]).collect::<Vec<_>>() {
            let _ = self.alone(&Compound::new().with(op::DESTROY_SESSION, &id));
        }
        let _ = self.alone(&Compound::new().with(op::DESTROY_CLIENTID, &self.clientid));
    }
}

fn settled(reply: Reply) -> IoResult<Reply> {
    match reply.status {
        comity_proto::nfs4::Nfsstat4::Ok => Ok(reply),
        status => Err(refused(status)),
    }
}

/// What ends the client tells why.
fn refused(status: comity_proto::nfs4::Nfsstat4) -> Error {
    use comity_proto::nfs4::Nfsstat4::{
        BadSession, BadStateid, DeadSession, Expired, MinorVersMismatch, StaleClientid,
    };
    match status {
        MinorVersMismatch => Error::other("the server does not speak NFS 4.1"),
        BadSession | DeadSession | StaleClientid | Expired | BadStateid => Error::other(format!(
            "the server says {status:?}: it restarted, or the lease ended while nothing was asked"
        )),
        status => failure(status),
    }
}
