use anyhow::{Context, Result, ensure};
use comity_proto::nfs4::{
    CallbackSecParms4, ChannelAttrs4, ClientOwner4, CreateSession4args, CreateSession4resok,
    ExchangeId4args, ExchangeId4resok, NfsFh4, Nfsstat4, PROGRAM, Sequence4args, Sequence4resok,
    Sessionid4, StateProtect4a, VERSION, create_session, operation as op, procedure,
};
use comity_xdr::{Counted, Encode, Opaque};

use super::compound::{Compound, Results};
use crate::limits::REPLY_BYTES_MAX;
use crate::nfs::{RESULTS_AT, call_header, encoded_record};

/// What carries records to a server and replies back.
pub trait Wire {
    /// Sends a record, its mark included, and gives the reply's, without its mark.
    ///
    /// # Errors
    /// No reply, or one that does not accept the call.
    fn exchange(&mut self, record: &[u8]) -> Result<Vec<u8>>;
}

/// Whether the server may call back on the session's connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backchannel {
    /// It may: so it can delegate.
    Yes,
    /// It may not.
    No,
}

/// A client with a session, in which one COMPOUND is made at a time.
pub struct Session<W> {
    /// What carries its calls.
    pub wire: W,
    header: Vec<u8>,
    clientid: u64,
    /// The number of the client's next CREATE_SESSION.
    next: u32,
    back: Backchannel,
    id: Sessionid4,
    seqid: u32,
}

/// A reply, and the call that brought it.
pub struct Reply {
    /// The call's record, its mark included.
    pub call: Vec<u8>,
    /// The reply's record, without its mark.
    pub bytes: Vec<u8>,
}

/// Slots that are needed for one COMPOUND at a time.
const SLOTS_WANTED: u32 = 1;
/// Slots that are asked for: as many as Linux asks for.
const REQUESTS_MAX: u32 = 64;
/// The RPC program of callbacks.
const CALLBACK_PROGRAM: u32 = 0x4000_0000;

impl<W: Wire> Session<W> {
    /// A new client of this name, with a session, whose calls are made as this user and group.
    ///
    /// # Errors
    /// It is not let in.
    pub fn begin(
        mut wire: W,
        name: &[u8],
        (user, group): (u32, u32),
        back: Backchannel,
    ) -> Result<Self> {
        let header = call_header((PROGRAM, VERSION, procedure::COMPOUND), user, group);
        let owner = ClientOwner4 { verifier: verifier(), id: Opaque(name) };
        let reply = alone(&mut wire, &header, op::EXCHANGE_ID, &introduction(owner))?;
        let mut results = Results::of(&reply[RESULTS_AT..])?;
        let known: ExchangeId4resok<'_> = results.next(op::EXCHANGE_ID)?.value()?;
        let (clientid, next) = (known.clientid, known.sequenceid);
        let mut session = Self { wire, header, clientid, next, back, id: [0; 16], seqid: 0 };
        session.id = session.another(SLOTS_WANTED)?;
        let complete = Compound::new().then(op::RECLAIM_COMPLETE, &false);
        session.perform(&complete)?.results()?.next(op::RECLAIM_COMPLETE)?;
        Ok(session)
    }

    /// One more session of the client, which nobody has used.
    ///
    /// # Errors
    /// There can be no more, or none of so many slots.
    pub fn another(&mut self, slots: u32) -> Result<Sessionid4> {
        let wanted = channels(self.clientid, self.next, self.back);
        let reply = alone(&mut self.wire, &self.header, op::CREATE_SESSION, &wanted)?;
        let mut results = Results::of(&reply[RESULTS_AT..])?;
        let made: CreateSession4resok = results.next(op::CREATE_SESSION)?.value()?;
        let has = made.fore_chan.maxrequests;
        ensure!(has >= slots, "a session of {has} slots instead of {slots}");
        self.next = self.next.wrapping_add(1);
        Ok(made.sessionid)
    }

    /// Its clientid.
    #[must_use]
    pub const fn clientid(&self) -> u64 {
        self.clientid
    }

    /// Where SEQUENCE's arguments stand in a call: the sessionid first.
    pub(super) fn sequence_at(&self, call: &[u8]) -> Result<usize> {
        let place = call.windows(self.id.len()).position(|bytes| bytes == self.id);
        place.context("no sessionid in a call")
    }

    /// Does these operations, behind a SEQUENCE.
    ///
    /// # Errors
    /// No reply, or the SEQUENCE is refused.
    pub fn perform(&mut self, operations: &Compound) -> Result<Reply> {
        self.perform_kept(operations, false)
    }

    /// The same, its reply kept for a retry if wished: what must not be done twice.
    ///
    /// # Errors
    /// As [`Session::perform`].
    pub fn perform_kept(&mut self, operations: &Compound, cachethis: bool) -> Result<Reply> {
        self.seqid += 1;
        let (sessionid, sequenceid) = (self.id, self.seqid);
        let (slotid, highest_slotid) = (0, 0);
        let sequence = Sequence4args { sessionid, sequenceid, slotid, highest_slotid, cachethis };
        let compound = Compound::new().then(op::SEQUENCE, &sequence).and(operations);
        let call = encoded_record(&self.header, &compound);
        let bytes = self.wire.exchange(&call)?;
        let reply = Reply { call, bytes };
        reply.results()?;
        Ok(reply)
    }

    /// The handle of a path from the server's root.
    ///
    /// # Errors
    /// A name is not there.
    pub fn walk(&mut self, path: &str) -> Result<Vec<u8>> {
        self.look_up(Compound::new().then(op::PUTROOTFH, &()), path)
    }

    /// The handle of a path below an object.
    ///
    /// # Errors
    /// A name is not there.
    pub fn walk_from(&mut self, handle: &[u8], path: &str) -> Result<Vec<u8>> {
        self.look_up(Compound::new().at(handle), path)
    }

    fn look_up(&mut self, from: Compound, path: &str) -> Result<Vec<u8>> {
        let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
        let mut compound = from;
        for name in &names {
            let name: comity_proto::nfs4::Component4<'_> = Opaque(name.as_bytes());
            compound = compound.then(op::LOOKUP, &name);
        }
        let reply = self.perform(&compound.then(op::GETFH, &()))?;
        let mut results = reply.results()?;
        results.next_any()?;
        names
            .iter()
            .try_for_each(|_| results.next(op::LOOKUP).map(|_| ()))
            .context(path.to_owned())?;
        Ok(results.next(op::GETFH)?.value::<NfsFh4<'_>>()?.0.to_vec())
    }
}

impl Reply {
    /// Its results behind SEQUENCE's.
    ///
    /// # Errors
    /// SEQUENCE was refused.
    pub fn results(&self) -> Result<Results<'_>> {
        let mut results = Results::of(&self.bytes[RESULTS_AT..])?;
        results.next(op::SEQUENCE)?.value::<Sequence4resok>()?;
        Ok(results)
    }

    /// How its COMPOUND ended.
    ///
    /// # Errors
    /// SEQUENCE was refused.
    pub fn status(&self) -> Result<Nfsstat4> {
        Ok(self.results()?.status())
    }
}

/// Another client each time: what an earlier one of the same name had is nobody's.
fn verifier() -> [u8; 8] {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    (now.map_or(0, |time| time.as_nanos()) as u64).to_be_bytes()
}

fn introduction(clientowner: ClientOwner4<'_>) -> ExchangeId4args<'_> {
    let state_protect = StateProtect4a::None;
    ExchangeId4args { clientowner, flags: 0, state_protect, client_impl_id: None }
}

fn channels(clientid: u64, sequence: u32, back: Backchannel) -> CreateSession4args<'static> {
    let channel = |maxrequests| ChannelAttrs4 {
        headerpadsize: 0,
        maxrequestsize: REPLY_BYTES_MAX as u32,
        maxresponsesize: REPLY_BYTES_MAX as u32,
        maxresponsesize_cached: 4096,
        maxoperations: 16,
        maxrequests,
        rdma_ird: None,
    };
    let flags = if back == Backchannel::Yes { create_session::CONN_BACK_CHAN } else { 0 };
    let (fore_chan, back_chan) = (channel(REQUESTS_MAX), channel(1));
    let sec_parms = Counted(vec![CallbackSecParms4::None]);
    let cb_program = CALLBACK_PROGRAM;
    CreateSession4args { clientid, sequence, flags, fore_chan, back_chan, cb_program, sec_parms }
}

/// A COMPOUND of one operation outside of sessions.
fn alone(
    wire: &mut impl Wire,
    header: &[u8],
    number: u32,
    arguments: &impl Encode,
) -> Result<Vec<u8>> {
    wire.exchange(&encoded_record(header, &Compound::new().then(number, arguments)))
}
