//! A client: its identity, the state it believes to hold, and its introduction to the server.

use std::sync::{Arc, PoisonError};

use comity_export::RpcPeer;
use comity_proto::nfs4::{
    self, CbClient4, ChannelAttrs4, ClientOwner4, CompoundHead, CreateSession4args,
    CreateSession4resok, ExchangeId4args, ExchangeId4resok, Netaddr4, Nfsstat4, Setclientid4args,
    SetclientidConfirm4, StateProtect4a, Stateid4, create_session, operation as op,
};
use comity_rpc::Backchannel;
use comity_xdr::{Counted, Decode, Decoder, Encoder, Opaque};

use super::{FILES, Town};
use crate::results::{self, Results};
use crate::{PEER, call_record};

/// One client of each of 4.0, 4.1 and 4.2.
pub(super) const PEOPLE: usize = 3;

/// Bytes of a reply before the body of its first result: record mark, header of an accepted call,
/// status, tag, count, number, status.
const BODY_AT: usize = 28 + 4 + 4 + 4 + 4 + 4;

/// A client.
pub(super) struct Person {
    number: u8,
    pub(super) minor: u32,
    life: u8,
    pub(super) line: Arc<Backchannel>,
    pub(super) visitor: RpcPeer,
    pub(super) clientid: u64,
    pub(super) session: Option<nfs4::Sessionid4>,
    slot_seqid: u32,
    /// The generation of its owners. The client begins a new one when it no longer knows their
    /// seqids.
    pub(super) turn: u8,
    /// The numbers of its open-owner and its lock-owner, in 4.0.
    pub(super) open_seqid: u32,
    pub(super) lock_seqid: u32,
    pub(super) has: [Has; FILES.len()],
    /// Callbacks of the server that are not answered yet.
    pub(super) heard: Vec<Vec<u8>>,
}

/// The state that a client believes to hold on a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Has {
    pub(super) open: Stateid4,
    pub(super) lock: Stateid4,
    pub(super) delegation: Stateid4,
}

const NOTHING: Has =
    Has { open: Stateid4::ANONYMOUS, lock: Stateid4::ANONYMOUS, delegation: Stateid4::ANONYMOUS };

impl Person {
    pub(super) fn new(number: usize, line: Arc<Backchannel>) -> Self {
        Self {
            number: number as u8,
            minor: number as u32,
            life: 0,
            visitor: RpcPeer::on(PEER, &line),
            line,
            clientid: 0,
            session: None,
            slot_seqid: 0,
            turn: 0,
            open_seqid: 0,
            lock_seqid: 0,
            has: [NOTHING; FILES.len()],
            heard: Vec::new(),
        }
    }

    /// Restarts the client, which loses all its state.
    pub(super) fn reboot(&mut self) {
        self.life = self.life.wrapping_add(1);
        self.has = [NOTHING; FILES.len()];
        self.begin_anew();
    }

    /// Replaces the connection, which has broken.
    pub(super) fn reconnect(&mut self) {
        self.line = Arc::new(Backchannel::new(|| {}));
        self.visitor = RpcPeer::on(PEER, &self.line);
        self.begin_anew();
    }

    /// Forgets all state, which the server no longer has.
    pub(super) fn begin_anew(&mut self) {
        (self.clientid, self.session) = (0, None);
        self.turn = self.turn.wrapping_add(1);
        (self.open_seqid, self.lock_seqid) = (0, 0);
        self.heard.clear();
    }

    fn owner(&self) -> ClientOwner4<'_> {
        let id = std::slice::from_ref(&self.number);
        ClientOwner4 { verifier: [self.life; 8], id: Opaque(id) }
    }
}

impl Town {
    /// Sends a COMPOUND; in a session after a SEQUENCE. A client that the server does not know any
    /// more introduces itself the next time.
    pub(super) fn compound(
        &mut self,
        who: usize,
        operations: u32,
        say: impl FnOnce(&Person, &mut Encoder),
    ) -> Results {
        self.introduce(who);
        let person = &mut self.people[who];
        let mut call = Encoder::new();
        let (tag, minorversion) = (Opaque(&b"fuzz"[..]), person.minor);
        let sequenced = u32::from(person.session.is_some());
        let operations = operations + sequenced;
        call.value(&CompoundHead { tag, minorversion, operations });
        if let Some(sessionid) = person.session {
            person.slot_seqid += 1;
            let (sequenceid, slotid, highest_slotid) = (person.slot_seqid, 0, 0);
            let cachethis = sequenceid % 2 == 0;
            call.value(&op::SEQUENCE);
            call.value(&nfs4::Sequence4args {
                sessionid,
                sequenceid,
                slotid,
                highest_slotid,
                cachethis,
            });
        }
        say(person, &mut call);
        let told = results::read(&self.send(who, call.bytes()));
        let lost = [
            Nfsstat4::BadSession,
            Nfsstat4::DeadSession,
            Nfsstat4::StaleClientid,
            Nfsstat4::Expired,
            Nfsstat4::BadSeqid,
        ];
        if lost.iter().any(|status| *status as u32 == told.status) {
            self.people[who].begin_anew();
        }
        told
    }

    fn send(&mut self, who: usize, arguments: &[u8]) -> Vec<u8> {
        self.xid += 1;
        let program = (nfs4::PROGRAM, nfs4::VERSION);
        let record = call_record(self.xid, program, nfs4::procedure::COMPOUND, arguments);
        self.call(who, &record)
    }

    fn introduce(&mut self, who: usize) {
        match self.people[who].minor {
            0 if self.people[who].clientid == 0 => self.announce(who),
            0 => {}
            _ if self.people[who].session.is_none() => self.open_session(who),
            _ => {}
        }
    }

    fn announce(&mut self, who: usize) {
        let person = &self.people[who];
        let address = format!("127.0.0.1.0.{}", who + 1);
        let location = Netaddr4 { netid: Opaque(b"tcp"), addr: Opaque(address.as_bytes()) };
        let args = Setclientid4args {
            client: person.owner(),
            callback: CbClient4 { cb_program: 0x4000_0000, cb_location: location },
            callback_ident: 7,
        };
        let mut call = alone(0, op::SETCLIENTID);
        call.value(&args);
        let told = self.send(who, call.bytes());
        let Some(told) = body::<SetclientidConfirm4>(&told) else { return };
        let mut call = alone(0, op::SETCLIENTID_CONFIRM);
        call.value(&told);
        if results::read(&self.send(who, call.bytes())).status == 0 {
            self.people[who].clientid = told.clientid;
        }
    }

    fn open_session(&mut self, who: usize) {
        let (person, state_protect) = (&self.people[who], StateProtect4a::None);
        let (minor, clientowner) = (person.minor, person.owner());
        let mut call = alone(minor, op::EXCHANGE_ID);
        call.value(&ExchangeId4args { clientowner, flags: 0, state_protect, client_impl_id: None });
        let told = self.send(who, call.bytes());
        let Some(known) = body::<ExchangeId4resok<'_>>(&told) else { return };
        let channel = ChannelAttrs4 {
            headerpadsize: 0,
            maxrequestsize: 1 << 16,
            maxresponsesize: 1 << 16,
            maxresponsesize_cached: 1 << 12,
            maxoperations: 64,
            maxrequests: 2,
            rdma_ird: None,
        };
        let mut call = alone(minor, op::CREATE_SESSION);
        call.value(&CreateSession4args {
            clientid: known.clientid,
            sequence: known.sequenceid,
            flags: create_session::CONN_BACK_CHAN,
            fore_chan: channel,
            back_chan: channel,
            cb_program: 0x4000_0000,
            sec_parms: Counted(Vec::new()),
        });
        let told = self.send(who, call.bytes());
        let Some(made) = body::<CreateSession4resok>(&told) else { return };
        let person = &mut self.people[who];
        (person.session, person.slot_seqid) = (Some(made.sessionid), 0);
        person.clientid = known.clientid;
    }

    /// The connection over which a client is called back.
    pub(super) fn line(&self, who: usize) -> Arc<Backchannel> {
        let dialled = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        match self.people[who].minor {
            0 => Arc::clone(&dialled[who]),
            _ => Arc::clone(&self.people[who].line),
        }
    }
}

/// A COMPOUND of one operation, whose arguments follow.
fn alone(minorversion: u32, number: u32) -> Encoder {
    let mut call = Encoder::new();
    call.value(&CompoundHead { tag: Opaque(b""), minorversion, operations: 1 });
    call.value(&number);
    call
}

/// The body of the only result, if that is OK.
fn body<'r, T: Decode<'r>>(reply: &'r [u8]) -> Option<T> {
    let told = results::read(reply);
    (told.status == 0).then(|| Decoder::new(&reply[BODY_AT..]).value().expect("a body"))
}
