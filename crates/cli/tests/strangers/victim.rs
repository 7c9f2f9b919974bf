//! The victim: an ordinary user of a host that uses NFSv3 with NLM, 4.0 and 4.1.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use comity_proto::nfs4::{
    Bitmap4, CbClient4, ChannelAttrs4, ClientOwner4, Close4args, CreateSession4args,
    CreateSession4resok, Createhow4, ExchangeId4args, ExchangeId4resok, ExistLockOwner4, Fattr4,
    Lock4args, Locker4, Lockt4args, Locku4args, Netaddr4, NfsLockType4, Open4args, Open4resok,
    OpenClaim4, OpenConfirm4args, OpenDelegation4, OpenDowngrade4args, OpenToLockOwner4, Openflag4,
    Sequence4args, Setclientid4args, SetclientidConfirm4, StableHow4, StateOwner4, StateProtect4a,
    Stateid4, Write4args, Write4resok, operation as op, share,
};
use comity_proto::nlm::{Nlm4Lock, Nlm4Lockargs, Nlm4Testargs, Nlm4Unlockargs};
use comity_proto::{mount, nfs3, nlm, portmap};
use comity_xdr::{Counted, Decode, Decoder, Encode, Opaque};

use crate::portmapper;
use crate::wire::{Call, Datagrams, Operation, Source, Wire, bytes, compound, operation, putfh};

/// The victim's user. Others may not enter the directory of its files.
pub(crate) const USER: u32 = 2000;
/// The victim's host.
pub(crate) const HOST: [u8; 4] = [127, 0, 0, 1];

/// The owner strings of the victim's two NFSv4 clients.
pub(crate) const OWNERS: [&[u8]; 2] = [b"victim of 4.0", b"victim of 4.1"];
/// The name of all the victim's owners of opens and locks.
pub(crate) const OWNER: &[u8] = b"owner";
/// The verifier of the victim's clients.
pub(crate) const VERIFIER: [u8; 8] = *b"thislife";

/// Offsets in a reply of the results of a call, and of the results in a COMPOUND.
const RESULTS_AT: usize = 24;
const OPERATIONS_AT: usize = RESULTS_AT + 12;

/// All facts that attackers may know about the victim.
#[derive(Default)]
pub(crate) struct Known {
    /// The root of the export and the directory of the victim's files.
    pub(crate) directories: Vec<Vec<u8>>,
    pub(crate) files: Vec<Vec<u8>>,
    /// The file that is delegated for writing.
    pub(crate) delegated: Option<Vec<u8>>,
    pub(crate) stateids: Vec<Stateid4>,
    pub(crate) clientids: Vec<u64>,
    pub(crate) confirms: Vec<[u8; 8]>,
    pub(crate) session: Option<[u8; 16]>,
    /// The seqid of the slot that the victim uses.
    pub(crate) sequenceid: u32,
    /// True for each client of [`OWNERS`] that has state.
    pub(crate) holds: [bool; 2],
}

pub(crate) struct Victim {
    three: Wire,
    zero: Wire,
    one: Wire,
    pub(crate) known: Known,
    /// All replies.
    pub(crate) heard: Vec<Vec<u8>>,
    export: Vec<u8>,
    zero_open: Stateid4,
    zero_lock: Stateid4,
    one_open: Stateid4,
    delegation: Stateid4,
    two_open: Stateid4,
    two_lock: Stateid4,
}

/// A step of the victim and its name.
type Step = (&'static str, fn(&mut Victim));

/// The victim's calls, in their order.
pub(crate) const STEPS: &[Step] = &[
    ("MNT", Victim::mount),
    ("CREATE", Victim::create_three),
    ("NLM LOCK", Victim::nlm_lock),
    ("SETCLIENTID", Victim::setclientid),
    ("SETCLIENTID_CONFIRM", Victim::confirm_client),
    ("OPEN of 4.0", Victim::open_zero),
    ("OPEN_CONFIRM", Victim::confirm_open),
    ("LOCK of 4.0", Victim::lock_zero),
    ("WRITE of 4.0", Victim::write_zero),
    ("EXCHANGE_ID", Victim::exchange_id),
    ("CREATE_SESSION", Victim::create_session),
    ("RECLAIM_COMPLETE", Victim::reclaim_complete),
    ("OPEN with a delegation", Victim::open_one),
    ("WRITE by the delegation", Victim::write_one),
    ("OPEN that denies writing", Victim::open_two),
    ("LOCK", Victim::lock_two),
    ("LOCK of more", Victim::lock_two_again),
    ("TEST_STATEID", Victim::test_stateids),
    ("RENEW", Victim::renew),
    ("LOCKT of 4.0", Victim::lockt_zero),
    ("NLM TEST", Victim::nlm_test),
    ("LOCKU", Victim::unlock_two),
    ("CLOSE", Victim::close_two),
    ("DELEGRETURN", Victim::delegreturn),
    ("CLOSE of the other", Victim::close_one),
    ("LOCKU of 4.0", Victim::unlock_zero),
    ("OPEN_DOWNGRADE", Victim::downgrade_zero),
    ("CLOSE of 4.0", Victim::close_zero),
    ("NLM UNLOCK", Victim::nlm_unlock),
    ("READ", Victim::read_three),
    ("REMOVE", Victim::remove_three),
    ("DESTROY_SESSION", Victim::destroy_session),
    ("DESTROY_CLIENTID", Victim::destroy_clientid),
];

impl Victim {
    pub(crate) fn connect(port: u16, export: &Path) -> Self {
        let connect = || Wire::connect(port, Source { address: HOST, low_port: true, uid: USER });
        let nothing = Stateid4::ANONYMOUS;
        Self {
            three: connect(),
            zero: connect(),
            one: connect(),
            known: Known::default(),
            heard: Vec::new(),
            export: export.as_os_str().as_bytes().to_vec(),
            zero_open: nothing,
            zero_lock: nothing,
            one_open: nothing,
            delegation: nothing,
            two_open: nothing,
            two_lock: nothing,
        }
    }

    /// The number of callbacks other than NULL that have arrived so far.
    pub(crate) fn callbacks(&mut self) -> usize {
        self.one.listen();
        self.one.callbacks.len()
    }

    /// Returns the answers of the portmapper to the victim's host.
    pub(crate) fn registered(&self) -> [Vec<u8>; 3] {
        let source = Source { address: HOST, low_port: false, uid: USER };
        let mut portmapper = Datagrams::to(portmap::PORT, source);
        let by_datagram = portmapper::looks().map(|call| portmapper.ask_until_answered(&call));
        let mut portmapper = Wire::connect(portmap::PORT, source);
        let by_connection = portmapper::looks().map(|call| portmapper.ask(&call).unwrap());
        let body = |reply: Vec<u8>| reply[RESULTS_AT..].to_vec();
        let [by_datagram, by_connection] = [by_datagram, by_connection].map(|all| all.map(body));
        assert_eq!(by_datagram, by_connection);
        by_datagram
    }

    fn mount(&mut self) {
        let path = Opaque::<1024>(&self.export.clone());
        let reply = self.v3((mount::PROGRAM, 3, mount::procedure::MNT), &path);
        let root = Decoder::new(&reply[RESULTS_AT + 4..]).opaque(64).unwrap().to_vec();
        let place = (Opaque::<64>(&root), Opaque::<255>(b"private"));
        let mut arguments = bytes(&place.0);
        arguments.extend(bytes(&place.1));
        let reply = self.v3_raw((nfs3::PROGRAM, 3, nfs3::procedure::LOOKUP), arguments);
        let directory = Decoder::new(&reply[RESULTS_AT + 4..]).opaque(64).unwrap().to_vec();
        self.known.directories = vec![root, directory];
    }

    fn create_three(&mut self) {
        let mut arguments = bytes(&Opaque::<64>(&self.known.directories[1]));
        arguments.extend(bytes(&Opaque::<255>(b"three")));
        // The mode UNCHECKED, with the file mode 0600 and no other attributes.
        [0_u32, 1, 0o600, 0, 0, 0, 0, 0].iter().for_each(|word| arguments.extend(bytes(word)));
        let reply = self.v3_raw((nfs3::PROGRAM, 3, nfs3::procedure::CREATE), arguments);
        let file = Decoder::new(&reply[RESULTS_AT + 8..]).opaque(64).unwrap().to_vec();
        let mut arguments = bytes(&Opaque::<64>(&file));
        // The offset, the count, FILE_SYNC and the length of the data.
        [0_u32, 0, 4, 2].iter().for_each(|word| arguments.extend(bytes(word)));
        arguments.extend(bytes(&Opaque::<64>(b"data")));
        self.v3_raw((nfs3::PROGRAM, 3, nfs3::procedure::WRITE), arguments);
        self.known.files.push(file);
    }

    fn nlm_lock(&mut self) {
        let file = self.known.files[0].clone();
        let (cookie, alock) = (Opaque(&b"1"[..]), nlm_range(&file));
        let (block, exclusive, reclaim, state) = (false, true, false, 7);
        let args = Nlm4Lockargs { cookie, block, exclusive, alock, reclaim, state };
        self.v3((nlm::PROGRAM, 4, nlm::procedure::LOCK), &args);
    }

    fn nlm_test(&mut self) {
        let file = self.known.files[0].clone();
        let args = Nlm4Testargs { cookie: Opaque(b"2"), exclusive: true, alock: nlm_range(&file) };
        self.v3((nlm::PROGRAM, 4, nlm::procedure::TEST), &args);
    }

    fn nlm_unlock(&mut self) {
        let file = self.known.files[0].clone();
        let args = Nlm4Unlockargs { cookie: Opaque(b"3"), alock: nlm_range(&file) };
        self.v3((nlm::PROGRAM, 4, nlm::procedure::UNLOCK), &args);
    }

    fn read_three(&mut self) {
        let mut arguments = bytes(&Opaque::<64>(&self.known.files[0]));
        [0_u32, 0, 100].iter().for_each(|word| arguments.extend(bytes(word)));
        self.v3_raw((nfs3::PROGRAM, 3, nfs3::procedure::READ), arguments);
        let mut arguments = bytes(&Opaque::<64>(&self.known.directories[1]));
        [0_u32; 4].iter().for_each(|word| arguments.extend(bytes(word)));
        arguments.extend(bytes(&4096_u32));
        self.v3_raw((nfs3::PROGRAM, 3, nfs3::procedure::READDIR), arguments);
    }

    fn remove_three(&mut self) {
        let mut arguments = bytes(&Opaque::<64>(&self.known.directories[1]));
        arguments.extend(bytes(&Opaque::<255>(b"three")));
        self.v3_raw((nfs3::PROGRAM, 3, nfs3::procedure::REMOVE), arguments);
    }

    fn setclientid(&mut self) {
        let client = ClientOwner4 { verifier: VERIFIER, id: Opaque(OWNERS[0]) };
        let told: SetclientidConfirm4 = self.v40(vec![operation(
            op::SETCLIENTID,
            &Setclientid4args { client, callback: nobody(), callback_ident: 1 },
        )]);
        self.known.clientids.push(told.clientid);
        self.known.confirms.push(told.confirm);
    }

    fn confirm_client(&mut self) {
        let (clientid, confirm) = (self.known.clientids[0], self.known.confirms[0]);
        let args = SetclientidConfirm4 { clientid, confirm };
        let () = self.v40(vec![operation(op::SETCLIENTID_CONFIRM, &args)]);
    }

    fn open_zero(&mut self) {
        let open = self.opening(0, 1, (b"zero", share::BOTH, 0));
        let directory = putfh(&self.known.directories[1]);
        let reply = self.say_v40(&[directory, open, (op::GETFH, Vec::new())]);
        let mut results = Decoder::new(&reply[OPERATIONS_AT..]);
        skip(&mut results);
        self.zero_open = result::<Open4resok<'_>>(&mut results).stateid;
        self.learn(&mut results);
        self.known.stateids.push(self.zero_open);
        self.known.holds[0] = true;
    }

    fn confirm_open(&mut self) {
        let args = OpenConfirm4args { open_stateid: self.zero_open, seqid: 2 };
        self.zero_open = self.v40(vec![self.file(1), operation(op::OPEN_CONFIRM, &args)]);
        self.known.stateids.push(self.zero_open);
    }

    fn lock_zero(&mut self) {
        let lock_owner = self.owner(0);
        let open_stateid = self.zero_open;
        let new = OpenToLockOwner4 { open_seqid: 3, open_stateid, lock_seqid: 1, lock_owner };
        let lock = operation(op::LOCK, &locking(0, Locker4::New(new)));
        self.zero_lock = self.v40(vec![self.file(1), lock]);
        self.known.stateids.push(self.zero_lock);
    }

    fn write_zero(&mut self) {
        let _: Write4resok = self.v40(vec![self.file(1), writing(self.zero_lock)]);
    }

    fn renew(&mut self) {
        let () = self.v40(vec![operation(op::RENEW, &self.known.clientids[0])]);
    }

    fn lockt_zero(&mut self) {
        let (locktype, owner) = (NfsLockType4::Write, self.owner(0));
        let args = Lockt4args { locktype, offset: 0, length: u64::MAX, owner };
        let lockt = operation(op::LOCKT, &args);
        let () = self.v40(vec![self.file(1), lockt]);
    }

    fn unlock_zero(&mut self) {
        let unlock = operation(op::LOCKU, &unlocking(2, self.zero_lock));
        self.zero_lock = self.v40(vec![self.file(1), unlock]);
    }

    fn downgrade_zero(&mut self) {
        let (open_stateid, share_access) = (self.zero_open, share::BOTH);
        let args = OpenDowngrade4args { open_stateid, seqid: 4, share_access, share_deny: 0 };
        self.zero_open = self.v40(vec![self.file(1), operation(op::OPEN_DOWNGRADE, &args)]);
    }

    fn close_zero(&mut self) {
        let args = Close4args { seqid: 5, open_stateid: self.zero_open };
        self.zero_open = self.v40(vec![self.file(1), operation(op::CLOSE, &args)]);
        self.known.holds[0] = false;
    }

    fn exchange_id(&mut self) {
        let clientowner = ClientOwner4 { verifier: VERIFIER, id: Opaque(OWNERS[1]) };
        let (flags, state_protect) = (0, StateProtect4a::None);
        let args = ExchangeId4args { clientowner, flags, state_protect, client_impl_id: None };
        let reply = self.say_one(&compound(1, &[operation(op::EXCHANGE_ID, &args)]));
        let mut results = Decoder::new(&reply[OPERATIONS_AT..]);
        let known: ExchangeId4resok<'_> = result(&mut results);
        self.known.clientids.push(known.clientid);
        assert_eq!(known.sequenceid, 1);
    }

    fn create_session(&mut self) {
        let args = session_of(self.known.clientids[1], 1);
        let reply = self.say_one(&compound(1, &[operation(op::CREATE_SESSION, &args)]));
        let made: CreateSession4resok = result(&mut Decoder::new(&reply[OPERATIONS_AT..]));
        self.known.session = Some(made.sessionid);
        self.known.holds[1] = true;
        // The server waits a few seconds for the answer to its probe, and attacks may take longer.
        self.one.await_probe();
    }

    fn reclaim_complete(&mut self) {
        let () = self.v41(vec![operation(op::RECLAIM_COMPLETE, &false)]);
    }

    fn open_one(&mut self) {
        let open = self.opening(1, 0, (b"one", share::BOTH, 0));
        let (stateid, delegation) = self.open_by_one(open);
        (self.one_open, self.delegation) = (stateid, delegation.expect("a delegation"));
        self.known.delegated = self.known.files.last().cloned();
        self.known.stateids.extend([self.one_open, self.delegation]);
    }

    fn write_one(&mut self) {
        let _: Write4resok = self.v41(vec![self.file(2), writing(self.delegation)]);
    }

    fn open_two(&mut self) {
        let open = self.opening(1, 0, (b"two", share::BOTH | share::WANT_NO_DELEG, 2));
        self.two_open = self.open_by_one(open).0;
        self.known.stateids.push(self.two_open);
    }

    fn lock_two(&mut self) {
        let (open_stateid, lock_owner) = (self.two_open, self.owner(1));
        let new = OpenToLockOwner4 { open_seqid: 0, open_stateid, lock_seqid: 0, lock_owner };
        let lock = operation(op::LOCK, &locking(0, Locker4::New(new)));
        self.two_lock = self.v41(vec![self.file(3), lock]);
        self.known.stateids.push(self.two_lock);
    }

    fn lock_two_again(&mut self) {
        let locker = ExistLockOwner4 { lock_stateid: self.two_lock, lock_seqid: 0 };
        let lock = operation(op::LOCK, &locking(100, Locker4::Exist(locker)));
        self.two_lock = self.v41(vec![self.file(3), lock]);
        self.known.stateids.push(self.two_lock);
    }

    fn test_stateids(&mut self) {
        let all = vec![self.one_open, self.delegation, self.two_open, self.two_lock];
        let args = Counted::<_, 64>(all);
        let reply = self.say_v41(vec![operation(op::TEST_STATEID, &args)]);
        let good = [0_u32; 4].map(u32::to_be_bytes).concat();
        assert!(reply.ends_with(&good), "all stateids are good");
    }

    fn unlock_two(&mut self) {
        let unlock = operation(op::LOCKU, &unlocking(0, self.two_lock));
        self.two_lock = self.v41(vec![self.file(3), unlock]);
    }

    fn close_two(&mut self) {
        let args = Close4args { seqid: 0, open_stateid: self.two_open };
        let _: Stateid4 = self.v41(vec![self.file(3), operation(op::CLOSE, &args)]);
    }

    fn delegreturn(&mut self) {
        let returned = operation(op::DELEGRETURN, &self.delegation);
        let () = self.v41(vec![self.file(2), returned]);
        self.known.delegated = None;
    }

    fn close_one(&mut self) {
        let args = Close4args { seqid: 0, open_stateid: self.one_open };
        let _: Stateid4 = self.v41(vec![self.file(2), operation(op::CLOSE, &args)]);
    }

    fn destroy_session(&mut self) {
        let session = self.known.session.unwrap();
        self.say_one(&compound(1, &[operation(op::DESTROY_SESSION, &session)]));
        self.known.holds[1] = false;
    }

    fn destroy_clientid(&mut self) {
        let clientid = self.known.clientids[1];
        self.say_one(&compound(1, &[operation(op::DESTROY_CLIENTID, &clientid)]));
    }

    /// An OPEN that creates a file for its owner only.
    fn opening(&self, client: usize, seqid: u32, how: (&[u8], u32, u32)) -> Operation {
        let (name, share_access, share_deny) = how;
        let mode = 0o600_u32.to_be_bytes();
        let attrmask = Bitmap4::of(&[comity_proto::nfs4::attribute::MODE]);
        let attributes = Fattr4 { attrmask, attr_vals: Opaque(&mode) };
        let openhow = Openflag4::Create(Createhow4::Unchecked(attributes));
        let (owner, claim) = (self.owner(client), OpenClaim4::Null(Opaque(name)));
        let args = Open4args { seqid, share_access, share_deny, owner, openhow, claim };
        operation(op::OPEN, &args)
    }

    fn open_by_one(&mut self, open: Operation) -> (Stateid4, Option<Stateid4>) {
        let directory = putfh(&self.known.directories[1]);
        let reply = self.say_v41(vec![directory, open, (op::GETFH, Vec::new())]);
        let mut results = Decoder::new(&reply[OPERATIONS_AT..]);
        let _: comity_proto::nfs4::Sequence4resok = result(&mut results);
        skip(&mut results);
        let Open4resok { stateid, delegation, .. } = result(&mut results);
        self.learn(&mut results);
        let delegation = match delegation {
            OpenDelegation4::Write(write) => Some(write.stateid),
            _ => None,
        };
        (stateid, delegation)
    }

    /// Keeps the handle that GETFH returned.
    fn learn(&mut self, results: &mut Decoder<'_>) {
        skip(results);
        self.known.files.push(results.opaque(128).unwrap().to_vec());
    }

    const fn owner(&self, client: usize) -> StateOwner4<'static> {
        StateOwner4 { clientid: self.clientid(client), owner: Opaque(OWNER) }
    }

    const fn clientid(&self, client: usize) -> u64 {
        self.known.clientids.as_slice()[client]
    }

    fn file(&self, number: usize) -> Operation {
        putfh(&self.known.files[number])
    }

    fn v3(&mut self, program: (u32, u32, u32), arguments: &impl Encode) -> Vec<u8> {
        self.v3_raw(program, bytes(arguments))
    }

    fn v3_raw(&mut self, program: (u32, u32, u32), arguments: Vec<u8>) -> Vec<u8> {
        let reply = self.three.ask(&(program, arguments)).expect("a reply");
        self.heard.push(reply.clone());
        reply
    }

    fn say_v40(&mut self, operations: &[Operation]) -> Vec<u8> {
        let reply = self.zero.ask(&compound(0, operations)).expect("a reply");
        self.heard.push(reply.clone());
        reply
    }

    /// Does operations; returns the body of the last result, which is the second one if there are
    /// two.
    fn v40<T: for<'r> Decode<'r>>(&mut self, operations: Vec<Operation>) -> T {
        let reply = self.say_v40(&operations);
        let mut results = Decoder::new(&reply[OPERATIONS_AT..]);
        operations[1..].iter().for_each(|_| skip(&mut results));
        result(&mut results)
    }

    fn say_one(&mut self, call: &Call) -> Vec<u8> {
        let reply = self.one.ask(call).expect("a reply");
        self.heard.push(reply.clone());
        reply
    }

    fn say_v41(&mut self, mut operations: Vec<Operation>) -> Vec<u8> {
        self.known.sequenceid += 1;
        let (sessionid, sequenceid) = (self.known.session.unwrap(), self.known.sequenceid);
        operations.insert(0, sequence(sessionid, sequenceid));
        self.say_one(&compound(1, &operations))
    }

    /// Does operations in the session; returns the body of the last result.
    fn v41<T: for<'r> Decode<'r>>(&mut self, operations: Vec<Operation>) -> T {
        let reply = self.say_v41(operations.clone());
        let mut results = Decoder::new(&reply[OPERATIONS_AT..]);
        let _: comity_proto::nfs4::Sequence4resok = result(&mut results);
        operations[1..].iter().for_each(|_| skip(&mut results));
        result(&mut results)
    }
}

pub(crate) fn sequence(sessionid: [u8; 16], sequenceid: u32) -> Operation {
    sequence_in(0, sessionid, sequenceid)
}

/// SEQUENCE in a slot.
pub(crate) fn sequence_in(slotid: u32, sessionid: [u8; 16], sequenceid: u32) -> Operation {
    let (highest_slotid, cachethis) = (slotid, true);
    let args = Sequence4args { sessionid, sequenceid, slotid, highest_slotid, cachethis };
    operation(op::SEQUENCE, &args)
}

/// CREATE_SESSION with two slots and a back channel.
pub(crate) fn session_of(clientid: u64, sequence: u32) -> CreateSession4args<'static> {
    let channel = ChannelAttrs4 {
        headerpadsize: 0,
        maxrequestsize: 1 << 16,
        maxresponsesize: 1 << 16,
        maxresponsesize_cached: 4096,
        maxoperations: 16,
        maxrequests: 1,
        rdma_ird: None,
    };
    let fore_chan = ChannelAttrs4 { maxrequests: 2, ..channel };
    let (back_chan, cb_program) = (channel, 0x4000_0000);
    let sec_parms = Counted(Vec::new());
    CreateSession4args { clientid, sequence, flags: 2, fore_chan, back_chan, cb_program, sec_parms }
}

/// A callback address that no program listens at.
pub(crate) fn nobody() -> CbClient4<'static> {
    let cb_location = Netaddr4 { netid: Opaque(b"tcp"), addr: Opaque(b"127.0.0.1.0.1") };
    CbClient4 { cb_program: 0x4000_0000, cb_location }
}

/// The lock that the victim has by NLM.
pub(crate) fn nlm_range(file: &[u8]) -> Nlm4Lock<'_> {
    let (caller_name, oh) = (Opaque(&b"victim"[..]), Opaque(OWNER));
    Nlm4Lock { caller_name, fh: Opaque(file), oh, svid: 3, l_offset: 0, l_len: 10 }
}

pub(crate) const fn locking(offset: u64, locker: Locker4<'_>) -> Lock4args<'_> {
    Lock4args { locktype: NfsLockType4::Write, reclaim: false, offset, length: 10, locker }
}

pub(crate) const fn unlocking(seqid: u32, lock_stateid: Stateid4) -> Locku4args {
    let locktype = NfsLockType4::Write;
    Locku4args { locktype, seqid, lock_stateid, offset: 0, length: u64::MAX }
}

pub(crate) fn writing(stateid: Stateid4) -> Operation {
    let (stable, data) = (StableHow4::FileSync, Opaque(&b"text"[..]));
    operation(op::WRITE, &Write4args { stateid, offset: 0, stable, data })
}

/// Reads the body of a result, whose status must be OK.
fn result<'r, T: Decode<'r>>(results: &mut Decoder<'r>) -> T {
    skip(results);
    results.value().unwrap()
}

/// Skips the number and the status of an operation; the status must be OK.
fn skip(results: &mut Decoder<'_>) {
    let number: u32 = results.value().unwrap();
    assert_eq!(results.value::<u32>(), Ok(0), "the victim is refused operation {number}");
}
