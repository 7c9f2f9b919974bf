use std::io::{Error, Result as IoResult};
use std::net::SocketAddr;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::Result;
use comity_proto::nfs4::{
    CallbackSecParms4, ChannelAttrs4, ClientOwner4, Clientid4, Component4, CreateSession4args,
    CreateSession4resok, ExchangeId4args, ExchangeId4resok, NfsFh4, PROGRAM, Sequence4args,
    Sessionid4, StateProtect4a, VERSION, create_session, exchgid, operation as op, procedure,
};
use comity_xdr::{Counted, Opaque};
use rustix::rand::{GetRandomFlags, getrandom};

use super::compound::{Arguments, Compound, Reply};
use super::failure::is_later;
use crate::limits::SILENCE_SECONDS_MAX;
use crate::rpc::{Caller, call_error, call_header, record_before, set_xid};

/// A transport that sends records to a server and receives the replies.
pub trait Wire {
    /// Sends a record in pieces, with its mark, and returns the record of the reply, without its
    /// mark.
    ///
    /// # Errors
    /// The server sent no reply, or did not accept the call.
    fn exchange(&mut self, record: &[&[u8]]) -> Result<Vec<u8>>;
}

impl crate::nfs4::Wire for Caller {
    fn exchange(&mut self, record: &[&[u8]]) -> Result<Vec<u8>> {
        Self::exchange(self, record)
    }
}

/// Permission for the server to call back over the session's connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backchannel {
    /// It may, so it can grant delegations.
    Yes,
    /// It may not.
    No,
}

/// Most bytes of the data of a READ or WRITE.
const DATA_BYTES_MAX: u32 = 1 << 20;
/// Bytes for the other parts of their COMPOUNDs.
const ROOM_BYTES: u32 = 4096;
/// Most operations of a COMPOUND.
const OPERATIONS_MAX: u32 = 16;
/// Slots requested for a session: as many as Linux requests.
const SLOTS_WANTED: u32 = 64;
/// The RPC program of callbacks.
const CALLBACK_PROGRAM: u32 = 0x4000_0000;
/// The first and the longest wait after a server replied DELAY.
const DELAY_WAITS: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(50)];

/// A client with an own client ID and a session, in which it makes one call at a time. Dropping it
/// ends its state at the server.
#[derive(Debug)]
pub struct Session<W: Wire> {
    /// The transport of its calls.
    pub wire: W,
    /// User and group of the calls.
    who: (u32, u32),
    /// The header of its calls.
    header: Vec<u8>,
    /// The xid of the last call.
    xid: u32,
    clientid: Clientid4,
    /// The seqid of the next CREATE_SESSION.
    creations: u32,
    back: Backchannel,
    sessions: Vec<Sessionid4>,
    own: Sessionid4,
    /// The seqid of the last request in the slot.
    sequenceid: u32,
    data_bytes: usize,
}

impl Session<Caller> {
    /// Connects to a server as a user and group, and makes a session without callbacks.
    pub fn connect(address: SocketAddr, who: (u32, u32)) -> IoResult<Self> {
        let caller =
            Caller::connect_as(address, who.0, who.1).map_err(|error| call_error(&error))?;
        Self::begin(caller, who, Backchannel::No)
    }
}

impl<W: Wire> Session<W> {
    /// Makes a client with a session, whose calls are made as this user and group.
    ///
    /// # Errors
    /// The server refused the client.
    pub fn begin(wire: W, who: (u32, u32), back: Backchannel) -> IoResult<Self> {
        let header = call_header((PROGRAM, VERSION, procedure::COMPOUND), who);
        let mut session = Self {
            wire,
            who,
            header,
            xid: 0,
            clientid: 0,
            creations: 0,
            back,
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
        // A multiple of the page size, as large as fits.
        let data = most.saturating_sub(ROOM_BYTES).min(DATA_BYTES_MAX) & !(ROOM_BYTES - 1);
        session.data_bytes = data.max(ROOM_BYTES) as usize;
        session.perform(&Compound::new().with(op::RECLAIM_COMPLETE, &false))?;
        Ok(session)
    }

    /// Sends EXCHANGE_ID with a random owner, so that the server ties no earlier state to this
    /// client.
    fn introduce(&mut self) -> IoResult<()> {
        let mut verifier = [0; 8];
        getrandom(&mut verifier, GetRandomFlags::empty())?;
        let id = format!("comity-bench {:016x}", u64::from_be_bytes(verifier));
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

    /// Makes another session of the client. Returns its id and the number of slots that the server
    /// granted.
    ///
    /// # Errors
    /// The server refused the session.
    pub fn another(&mut self, slots: u32) -> IoResult<(Sessionid4, u32)> {
        let made = self.create(slots)?;
        self.sessions.push(made.sessionid);
        Ok((made.sessionid, made.fore_chan.maxrequests))
    }

    fn create(&mut self, slots: u32) -> IoResult<CreateSession4resok> {
        let channel = |maxrequests| ChannelAttrs4 {
            headerpadsize: 0,
            maxrequestsize: DATA_BYTES_MAX + ROOM_BYTES,
            maxresponsesize: DATA_BYTES_MAX + ROOM_BYTES,
            maxresponsesize_cached: ROOM_BYTES,
            maxoperations: OPERATIONS_MAX,
            maxrequests,
            rdma_ird: None,
        };
        let back = self.back == Backchannel::Yes;
        let arguments = CreateSession4args {
            clientid: self.clientid,
            sequence: self.creations,
            flags: if back { create_session::CONN_BACK_CHAN } else { 0 },
            fore_chan: channel(slots.max(SLOTS_WANTED)),
            back_chan: channel(1),
            cb_program: CALLBACK_PROGRAM,
            sec_parms: Counted(vec![CallbackSecParms4::None]),
        };
        let reply = self.alone(&Compound::new().with(op::CREATE_SESSION, &arguments))?;
        let made = reply.results().next(op::CREATE_SESSION)?;
        self.creations = self.creations.wrapping_add(1);
        Ok(made)
    }

    /// Most bytes of one READ or WRITE.
    pub const fn data_bytes(&self) -> usize {
        self.data_bytes
    }

    /// The client ID that the server assigned.
    pub const fn clientid(&self) -> Clientid4 {
        self.clientid
    }

    /// Performs all operations; while the server replies DELAY or GRACE, retries for up to
    /// [`SILENCE_SECONDS_MAX`].
    ///
    /// # Errors
    /// The error of the first operation that failed, as an OS error; or the server sent no reply.
    pub fn perform(&mut self, compound: &Compound) -> IoResult<Reply> {
        self.perform_with(compound, &[])
    }

    /// The same with data after the last operation, whose arguments give its length.
    pub fn perform_with(&mut self, compound: &Compound, data: &[u8]) -> IoResult<Reply> {
        let started = Instant::now();
        let mut wait = DELAY_WAITS[0];
        loop {
            let reply = self.attempt(compound, data)?;
            let patience = Duration::from_secs(SILENCE_SECONDS_MAX.into());
            if !is_later(reply.status) || started.elapsed() > patience {
                return reply.settled();
            }
            sleep(wait);
            wait = (wait * 2).min(DELAY_WAITS[1]);
        }
    }

    /// Sends the operations once, with data after the last.
    ///
    /// # Errors
    /// The server sent no reply, or SEQUENCE failed.
    pub fn attempt(&mut self, compound: &Compound, data: &[u8]) -> IoResult<Reply> {
        let mut reply = self.call(self.record(compound, data.len()), data)?;
        reply.sequence()?;
        self.sequenceid = self.sequenceid.wrapping_add(1);
        Ok(reply)
    }

    /// Sends a COMPOUND without a session.
    fn alone(&mut self, compound: &Compound) -> IoResult<Reply> {
        self.call(record_before(&self.header, &Arguments(None, compound), 0), &[])?.settled()
    }

    fn call(&mut self, mut record: Vec<u8>, data: &[u8]) -> IoResult<Reply> {
        let answer = self.exchange(&mut record, data)?;
        Reply::new(record, answer)
    }

    fn exchange(&mut self, record: &mut [u8], data: &[u8]) -> IoResult<Vec<u8>> {
        self.xid = self.xid.wrapping_add(1);
        let xid = self.xid.to_be_bytes();
        set_xid(record, self.xid);
        let answer = self.wire.exchange(&[record, data]).map_err(|error| call_error(&error))?;
        let is_ours = answer.starts_with(&xid);
        if is_ours { Ok(answer) } else { Err(Error::other("a reply to another call")) }
    }

    /// Encodes the next call of the session's slot, followed by `payload` bytes, which its record
    /// mark counts.
    pub fn record(&self, compound: &Compound, payload: usize) -> Vec<u8> {
        let sequence = Sequence4args {
            sessionid: self.own,
            sequenceid: self.sequenceid.wrapping_add(1),
            slotid: 0,
            highest_slotid: 0,
            cachethis: compound.is_kept,
        };
        record_before(&self.header, &Arguments(Some(sequence), compound), payload)
    }

    /// Returns the offset of the arguments of SEQUENCE in a record.
    pub const fn sequence_at(&self) -> usize {
        4 + self.header.len() + Arguments::BEFORE_SEQUENCE
    }

    /// Makes a NULL call; returns its record and that of the reply.
    pub fn nothing(&mut self) -> IoResult<(Vec<u8>, Vec<u8>)> {
        let header = call_header((PROGRAM, VERSION, procedure::NULL), self.who);
        let mut call = record_before(&header, &(), 0);
        let reply = self.exchange(&mut call, &[])?;
        Ok((call, reply))
    }

    /// Returns the handle of a path from the server's root.
    ///
    /// # Errors
    /// A name was not found.
    pub fn mount(&mut self, path: &str) -> IoResult<Vec<u8>> {
        let reply = self.perform(&Compound::new().then(op::PUTROOTFH).then(op::GETFH))?;
        let mut results = reply.results();
        results.next::<()>(op::PUTROOTFH)?;
        let root = results.next::<NfsFh4<'_>>(op::GETFH)?.0.to_vec();
        self.walk(&root, path)
    }

    /// Returns the handle of a path below a directory.
    ///
    /// # Errors
    /// A name was not found.
    pub fn walk(&mut self, root: &[u8], path: &str) -> IoResult<Vec<u8>> {
        let mut names = path.split('/').filter(|name| !name.is_empty());
        names.try_fold(root.to_vec(), |handle, name| self.lookup(&handle, name))
    }

    fn lookup(&mut self, dir: &[u8], name: &str) -> IoResult<Vec<u8>> {
        let name: Component4<'_> = Opaque(name.as_bytes());
        let reply = self.perform(&Compound::on(dir).with(op::LOOKUP, &name).then(op::GETFH))?;
        let mut results = reply.on_object()?;
        results.next::<()>(op::LOOKUP)?;
        Ok(results.next::<NfsFh4<'_>>(op::GETFH)?.0.to_vec())
    }
}

impl<W: Wire> Drop for Session<W> {
    fn drop(&mut self) {
        // Errors are ignored: the server drops the state when the lease expires.
        for id in self.sessions.drain(..).chain([self.own]).collect::<Vec<_>>() {
            let _ = self.alone(&Compound::new().with(op::DESTROY_SESSION, &id));
        }
        let _ = self.alone(&Compound::new().with(op::DESTROY_CLIENTID, &self.clientid));
    }
}
