//! The victim: its transcript, and all that strangers may know of it.

use comity_proto::nfs4::{
    self, Bitmap4, CbClient4, ChannelAttrs4, ClientOwner4, Close4args, CompoundHead,
    CreateSession4args, CreateSession4resok, Createhow4, ExchangeId4args, ExchangeId4resok,
    ExistLockOwner4, Fattr4, Lock4args, Locker4, Locku4args, Netaddr4, NfsFh4, NfsLockType4,
    Nfsstat4, Open4args, OpenClaim4, OpenConfirm4args, OpenToLockOwner4, Openflag4, Read4args,
    Sequence4args, Setclientid4args, SetclientidConfirm4, StableHow4, StateOwner4, StateProtect4a,
    Stateid4, Write4args, attribute, operation as op, share,
};
use comity_proto::nlm::{Nlm4Lock, Nlm4Lockargs, Nlm4Testargs, Nlm4Unlockargs};
use comity_proto::{mount, nlm};
use comity_xdr::{Counted, Decode, Decoder, Encode, Encoder, Opaque};

use super::Strangers;
use crate::results::{self, Results};

/// Bytes of a reply before its results: record mark, and the header of an accepted call.
const HEADER_BYTES: usize = 28;
/// Bytes before the body of the first result of a COMPOUND without a tag.
const BODY_AT: usize = HEADER_BYTES + 4 + 4 + 4 + 4 + 4;

/// The names of the victim's clients of 4.0 and 4.1.
const CLIENTS: [&[u8]; 2] = [b"the victim's client of 4.0", b"the victim's client of 4.1"];
/// The name of all its owners.
const OWNER: &[u8] = b"the victim's owner";

/// The victim's handles, stateids and ids, all of which strangers know.
#[derive(Default)]
pub(super) struct Known {
    /// The root, the file of 4.0 and that of 4.1.
    handles: Vec<Vec<u8>>,
    stateids: Vec<Stateid4>,
    clientids: [u64; 2],
    session: [u8; 16],
    sequenceid: u32,
    /// The sequenceid of the second slot, which another user of the victim's client has.
    beside: u32,
}

/// The answer to a step: for NLM the reply; for a COMPOUND its status, those of its operations, and
/// the seqids of the stateids in it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Told {
    Reply(Vec<u8>),
    Results(u32, Vec<(u32, Nfsstat4)>, Vec<u32>),
}

/// The steps of the victim while there are strangers. It holds something in each of its clients
/// until the last of them: RFC 7530, 9.1.1, leaves the name of a client that holds nothing to any
/// principal.
pub(super) const STEPS: [fn(&mut Strangers) -> Told; 10] = [
    Strangers::write_zero,
    Strangers::lock_more,
    Strangers::nlm_test,
    Strangers::renew,
    Strangers::read_one,
    Strangers::unlock_zero,
    Strangers::unlock_one,
    Strangers::nlm_unlock,
    Strangers::close_zero,
    Strangers::close_one,
];

impl Known {
    pub(super) fn handle(&self, which: u8) -> &[u8] {
        &self.handles[usize::from(which) % self.handles.len()]
    }

    pub(super) fn stateid(&self, which: u8) -> Stateid4 {
        self.stateids[usize::from(which) % self.stateids.len()]
    }

    /// A SEQUENCE of the victim's session, whose sequenceid is `ahead` above the last one's.
    pub(super) const fn sequence(&self, ahead: u32) -> Sequence4args {
        let (sessionid, sequenceid) = (self.session, self.sequenceid + ahead);
        Sequence4args { sessionid, sequenceid, slotid: 0, highest_slotid: 0, cachethis: false }
    }

    /// A SEQUENCE of the second slot of the victim's session, by another user of its client.
    pub(super) const fn sequence_beside(&mut self, ahead: u32) -> Sequence4args {
        // A request that comes next takes a turn, and others do not.
        self.beside += (ahead == 1) as u32;
        let sequenceid = if ahead == 1 { self.beside } else { self.beside + ahead };
        Sequence4args { sequenceid, slotid: 1, highest_slotid: 1, ..self.sequence(0) }
    }

    /// Something of the victim as XDR.
    pub(super) fn named(&self, kind: u8, which: u8) -> Vec<u8> {
        let at = usize::from(which) % 2;
        match kind % 6 {
            0 => encoded(&Opaque::<128>(self.handle(which))),
            1 => encoded(&self.stateid(which)),
            2 => encoded(&self.clientids[at]),
            3 => self.session.to_vec(),
            4 => encoded(&Opaque::<64>(CLIENTS[at])),
            _ => encoded(&Opaque::<64>(OWNER)),
        }
    }
}

impl Strangers {
    /// Takes a lock by NLM, by 4.0 and by 4.1.
    pub(super) fn begin(&mut self) {
        let mut path = Encoder::new();
        path.opaque(b"/export");
        let reply = self.ask((mount::PROGRAM, 3), mount::procedure::MNT, path.bytes());
        let root = Decoder::new(&reply[HEADER_BYTES + 4..]).opaque(64).expect("a handle");
        self.known.handles.push(root.to_vec());
        self.announce();
        self.open_session();
        self.open_zero();
        self.open_one();
        let file = self.known.handles[1].clone();
        let alock = range(&file);
        let (cookie, block, exclusive, reclaim) = (Opaque(&b"1"[..]), false, true, false);
        let args = Nlm4Lockargs { cookie, block, exclusive, alock, reclaim, state: 3 };
        self.ask((nlm::PROGRAM, 4), nlm::procedure::LOCK, &encoded(&args));
        let census = self.engine.census();
        assert_eq!((census.opens, census.locks), (2, 3), "the victim holds its files");
    }

    fn announce(&mut self) {
        let client = ClientOwner4 { verifier: [1; 8], id: Opaque(CLIENTS[0]) };
        let cb_location = Netaddr4 { netid: Opaque(b"tcp"), addr: Opaque(b"127.0.0.1.0.1") };
        let callback = CbClient4 { cb_program: 0x4000_0000, cb_location };
        let args = Setclientid4args { client, callback, callback_ident: 1 };
        let reply = self.compound(0, &[operation(op::SETCLIENTID, &args)]);
        let told: SetclientidConfirm4 = body(&reply);
        self.compound(0, &[operation(op::SETCLIENTID_CONFIRM, &told)]);
        self.known.clientids[0] = told.clientid;
    }

    fn open_session(&mut self) {
        let clientowner = ClientOwner4 { verifier: [1; 8], id: Opaque(CLIENTS[1]) };
        let (flags, state_protect) = (0, StateProtect4a::None);
        let args = ExchangeId4args { clientowner, flags, state_protect, client_impl_id: None };
        let reply = self.compound(1, &[operation(op::EXCHANGE_ID, &args)]);
        let known: ExchangeId4resok<'_> = body(&reply);
        self.known.clientids[1] = known.clientid;
        let channel = ChannelAttrs4 {
            headerpadsize: 0,
            maxrequestsize: 1 << 16,
            maxresponsesize: 1 << 16,
            maxresponsesize_cached: 1 << 12,
            maxoperations: 64,
            maxrequests: 2,
            rdma_ird: None,
        };
        let args = CreateSession4args {
            clientid: known.clientid,
            sequence: known.sequenceid,
            flags: 0,
            fore_chan: channel,
            back_chan: channel,
            cb_program: 0x4000_0000,
            sec_parms: Counted(Vec::new()),
        };
        let reply = self.compound(1, &[operation(op::CREATE_SESSION, &args)]);
        self.known.session = body::<CreateSession4resok>(&reply).sessionid;
        self.in_session(vec![operation(op::RECLAIM_COMPLETE, &false)]);
    }

    fn open_zero(&mut self) {
        let open = self.opening(0, b"zero");
        let told = results::read(&self.compound(0, &[self.at(0), open]));
        let args = OpenConfirm4args { open_stateid: told.stateids[0].1, seqid: 2 };
        self.look(b"zero");
        let confirm = operation(op::OPEN_CONFIRM, &args);
        let told = results::read(&self.compound(0, &[self.at(1), confirm]));
        self.known.stateids.push(told.stateids[0].1);
        let lock = self.locking(0, (3, 1));
        let told = results::read(&self.compound(0, &[self.at(1), lock]));
        self.known.stateids.push(told.stateids[0].1);
    }

    fn open_one(&mut self) {
        let open = self.opening(1, b"one");
        let told = self.in_session(vec![self.at(0), open]);
        self.known.stateids.push(told.stateids[0].1);
        self.look(b"one");
        let lock = self.locking(1, (0, 0));
        let told = self.in_session(vec![self.at(2), lock]);
        self.known.stateids.push(told.stateids[0].1);
    }

    /// Learns a handle.
    fn look(&mut self, name: &[u8]) {
        let name = operation(op::LOOKUP, &Opaque::<64>(name));
        let reply = self.compound(0, &[self.at(0), name, (op::GETFH, Vec::new())]);
        // Two results without a body stand before that of GETFH.
        let handle = Decoder::new(&reply[BODY_AT + 16..]).opaque(128).expect("a handle");
        self.known.handles.push(handle.to_vec());
    }

    fn write_zero(&mut self) -> Told {
        let (stateid, data) = (self.known.stateids[1], Opaque(&b"text"[..]));
        let args = Write4args { stateid, offset: 0, stable: StableHow4::FileSync, data };
        self.tell_zero(operation(op::WRITE, &args))
    }

    fn renew(&mut self) -> Told {
        let renew = operation(op::RENEW, &self.known.clientids[0]);
        told(results::read(&self.compound(0, &[renew])))
    }

    fn unlock_zero(&mut self) -> Told {
        let args = unlocking(2, self.known.stateids[1]);
        self.tell_zero(operation(op::LOCKU, &args))
    }

    fn close_zero(&mut self) -> Told {
        let args = Close4args { seqid: 4, open_stateid: self.known.stateids[0] };
        self.tell_zero(operation(op::CLOSE, &args))
    }

    fn lock_more(&mut self) -> Told {
        let locker = ExistLockOwner4 { lock_stateid: self.known.stateids[3], lock_seqid: 0 };
        let locker = Locker4::Exist(locker);
        let told = self.in_session(vec![self.at(2), lock(100, locker)]);
        self.known.stateids[3] = told.stateids[0].1;
        self::told(told)
    }

    fn read_one(&mut self) -> Told {
        let args = Read4args { stateid: self.known.stateids[2], offset: 0, count: 100 };
        told(self.in_session(vec![self.at(2), operation(op::READ, &args)]))
    }

    fn unlock_one(&mut self) -> Told {
        let args = unlocking(0, self.known.stateids[3]);
        told(self.in_session(vec![self.at(2), operation(op::LOCKU, &args)]))
    }

    fn close_one(&mut self) -> Told {
        let args = Close4args { seqid: 0, open_stateid: self.known.stateids[2] };
        told(self.in_session(vec![self.at(2), operation(op::CLOSE, &args)]))
    }

    fn nlm_test(&mut self) -> Told {
        let file = self.known.handles[1].clone();
        let args = Nlm4Testargs { cookie: Opaque(b"2"), exclusive: true, alock: range(&file) };
        self.tell_nlm(nlm::procedure::TEST, &args)
    }

    fn nlm_unlock(&mut self) -> Told {
        let file = self.known.handles[1].clone();
        let args = Nlm4Unlockargs { cookie: Opaque(b"3"), alock: range(&file) };
        self.tell_nlm(nlm::procedure::UNLOCK, &args)
    }

    fn tell_nlm(&mut self, procedure: u32, arguments: &impl Encode) -> Told {
        Told::Reply(self.ask((nlm::PROGRAM, 4), procedure, &encoded(arguments)))
    }

    fn tell_zero(&mut self, asked: Operation) -> Told {
        told(results::read(&self.compound(0, &[self.at(1), asked])))
    }

    /// OPEN that makes a file which only its owner may use.
    fn opening(&self, client: usize, name: &[u8]) -> Operation {
        let mode = 0o600_u32.to_be_bytes();
        let attrmask = Bitmap4::of(&[attribute::MODE]);
        let attributes = Fattr4 { attrmask, attr_vals: Opaque(&mode) };
        let openhow = Openflag4::Create(Createhow4::Unchecked(attributes));
        let (owner, claim) = (self.owner(client), OpenClaim4::Null(Opaque(name)));
        let (seqid, share_access, share_deny) = (1, share::BOTH, 0);
        let args = Open4args { seqid, share_access, share_deny, owner, openhow, claim };
        operation(op::OPEN, &args)
    }

    /// LOCK by a new owner under the last open.
    fn locking(&self, client: usize, (open_seqid, lock_seqid): (u32, u32)) -> Operation {
        let open_stateid = *self.known.stateids.last().expect("an open");
        let lock_owner = self.owner(client);
        lock(
            20,
            Locker4::New(OpenToLockOwner4 { open_seqid, open_stateid, lock_seqid, lock_owner }),
        )
    }

    const fn owner(&self, client: usize) -> StateOwner4<'static> {
        StateOwner4 { clientid: self.known.clientids[client], owner: Opaque(OWNER) }
    }

    /// PUTFH.
    fn at(&self, handle: usize) -> Operation {
        let handle: NfsFh4<'_> = Opaque(&self.known.handles[handle]);
        operation(op::PUTFH, &handle)
    }

    fn in_session(&mut self, mut operations: Vec<Operation>) -> Results {
        self.known.sequenceid += 1;
        operations.insert(0, operation(op::SEQUENCE, &self.known.sequence(0)));
        results::read(&self.compound(1, &operations))
    }

    fn compound(&mut self, minorversion: u32, operations: &[Operation]) -> Vec<u8> {
        let mut call = Encoder::new();
        let (tag, count) = (Opaque(&b""[..]), operations.len() as u32);
        call.value(&CompoundHead { tag, minorversion, operations: count });
        for (number, arguments) in operations {
            call.value(number);
            call.raw(arguments);
        }
        self.ask((nfs4::PROGRAM, 4), nfs4::procedure::COMPOUND, call.bytes())
    }
}

/// An operation's number and arguments.
type Operation = (u32, Vec<u8>);

fn operation(number: u32, arguments: &impl Encode) -> Operation {
    (number, encoded(arguments))
}

fn encoded(value: &impl Encode) -> Vec<u8> {
    let mut encoder = Encoder::new();
    encoder.value(value);
    encoder.bytes().to_vec()
}

fn lock(offset: u64, locker: Locker4<'_>) -> Operation {
    let (locktype, reclaim, length) = (NfsLockType4::Write, false, 10);
    operation(op::LOCK, &Lock4args { locktype, reclaim, offset, length, locker })
}

const fn unlocking(seqid: u32, lock_stateid: Stateid4) -> Locku4args {
    let locktype = NfsLockType4::Write;
    Locku4args { locktype, seqid, lock_stateid, offset: 0, length: u64::MAX }
}

/// The bytes that are locked by NLM.
fn range(file: &[u8]) -> Nlm4Lock<'_> {
    let (caller_name, oh) = (Opaque(&b"victim"[..]), Opaque(OWNER));
    Nlm4Lock { caller_name, fh: Opaque(file), oh, svid: 3, l_offset: 0, l_len: 10 }
}

fn told(results: Results) -> Told {
    let seqids = results.stateids.iter().map(|(_, stateid, _)| stateid.seqid).collect();
    Told::Results(results.status, results.each, seqids)
}

/// The body of the first result.
fn body<'r, T: Decode<'r>>(reply: &'r [u8]) -> T {
    assert_eq!(results::read(reply).status, 0, "the victim is let in");
    Decoder::new(&reply[BODY_AT..]).value().expect("a body")
}
