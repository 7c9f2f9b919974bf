//! A client of NFSv4.1 built by hand, so that a test decides about each of its operations and sees
//! each callback.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use comity_proto::nfs4::callback::{
    CbCompoundHead, CbCompoundResultHead, CbRecall4args, CbResultHead, CbSequence4args,
    CbSequence4resok, operation as cb,
};
use comity_proto::nfs4::layout_callback::{CbLayoutrecall4args, Layoutrecall4};
use comity_proto::nfs4::{
    Bitmap4, ChannelAttrs4, ClientOwner4, CompoundHead, CompoundResultHead, CreateSession4args,
    CreateSession4resok, Createhow4, ExchangeId4args, ExchangeId4resok, Fattr4, Lock4args, Locker4,
    Locku4args, NfsLockType4, Nfsstat4, Open4args, Open4resok, OpenClaim4, OpenDelegation4,
    OpenDelegationType4, OpenToLockOwner4, Openflag4, PROGRAM, Sequence4args, Sequence4resok,
    Sessionid4, Setattr4args, StableHow4, StateOwner4, StateProtect4a, Stateid4, Write4args,
    attribute, operation as op, share,
};
use comity_xdr::{Counted, Decode, Decoder, Encode, Encoder, Opaque};

use super::PATIENCE;
use super::line::Line;
use super::raw::{number, opaque};

const CALLBACKS: u32 = 0x4000_0000;

/// A client with one session over one connection, which carries callbacks, too.
pub struct Four {
    stream: Line,
    uid: u32,
    xid: u32,
    pub clientid: u64,
    /// The minor version of its calls, 1 at first.
    pub minor: u32,
    session: Sessionid4,
    seqid: u32,
    /// Delegations that the server has recalled.
    pub recalled: Vec<Stateid4>,
    /// Layouts that the server has recalled.
    pub recalled_layouts: Vec<Stateid4>,
    probed: bool,
}

/// A file that was opened.
#[derive(Debug, Clone)]
pub struct Opened {
    pub stateid: Stateid4,
    pub delegation: Option<Stateid4>,
    pub handle: Vec<u8>,
}

/// The number of an operation, and its arguments.
pub type Operation = (u32, Vec<u8>);

pub fn operation(number: u32, args: &impl Encode) -> Operation {
    let mut encoder = Encoder::new();
    encoder.value(args);
    (number, encoder.bytes().to_vec())
}

pub fn bare(number: u32) -> Operation {
    (number, Vec::new())
}

/// The operations that look up a path from the root.
pub fn walk(path: &Path) -> Vec<Operation> {
    let names = path.iter().filter(|name| *name != "/");
    let lookups = names.map(|name| operation(op::LOOKUP, &Opaque::<4096>(name.as_bytes())));
    std::iter::once(bare(op::PUTROOTFH)).chain(lookups).collect()
}

impl Four {
    /// Connects a client that can be given delegations.
    pub fn connect(port: u16, uid: u32, name: &str) -> Self {
        Self::try_connect(port, uid, name).unwrap()
    }

    /// Like [`Self::connect`]; returns the error if the server refuses the client.
    pub fn try_connect(port: u16, uid: u32, name: &str) -> Result<Self, Nfsstat4> {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        Self::try_on(stream, uid, name)
    }

    /// Like [`Self::try_connect`], on an open connection.
    pub fn try_on(stream: impl Into<Line>, uid: u32, name: &str) -> Result<Self, Nfsstat4> {
        let mut client = Self::met(stream.into(), uid, name)?;
        client.perform(vec![operation(op::RECLAIM_COMPLETE, &false)])?;
        client.listen(PATIENCE, |client| client.probed);
        Ok(client)
    }

    /// Connects a client that follows its state to another server, where it reclaims nothing.
    pub fn follow(port: u16, uid: u32, name: &str) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        Self::met(stream.into(), uid, name).unwrap()
    }

    fn met(stream: Line, uid: u32, name: &str) -> Result<Self, Nfsstat4> {
        let (recalled, probed, session) = (Vec::new(), false, Sessionid4::default());
        let mut client = Self {
            stream,
            uid,
            xid: 1,
            clientid: 0,
            minor: 1,
            session,
            seqid: 0,
            recalled,
            recalled_layouts: Vec::new(),
            probed,
        };
        client.introduce(name)?;
        Ok(client)
    }

    /// Sends EXCHANGE_ID and CREATE_SESSION.
    pub fn introduce(&mut self, name: &str) -> Result<(), Nfsstat4> {
        let clientowner = ClientOwner4 { verifier: *b"thislife", id: Opaque(name.as_bytes()) };
        let (flags, state_protect) = (0, StateProtect4a::None);
        let args = ExchangeId4args { clientowner, flags, state_protect, client_impl_id: None };
        let known = self.compound(&[operation(op::EXCHANGE_ID, &args)])?;
        let known: ExchangeId4resok<'_> = result(&mut Decoder::new(&known));
        self.clientid = known.clientid;
        let channel = ChannelAttrs4 {
            headerpadsize: 0,
            maxrequestsize: 1 << 20,
            maxresponsesize: 1 << 20,
            maxresponsesize_cached: 4096,
            maxoperations: 16,
            maxrequests: 4,
            rdma_ird: None,
        };
        let args = CreateSession4args {
            clientid: known.clientid,
            sequence: known.sequenceid,
            flags: 2,
            fore_chan: channel,
            back_chan: channel,
            cb_program: CALLBACKS,
            sec_parms: Counted(Vec::new()),
        };
        let made = self.compound(&[operation(op::CREATE_SESSION, &args)])?;
        let made: CreateSession4resok = result(&mut Decoder::new(&made));
        (self.session, self.seqid) = (made.sessionid, 0);
        Ok(())
    }

    /// Another client that uses this client's session on another connection.
    pub fn with_session_on(&self, stream: impl Into<Line>) -> Self {
        Self {
            stream: stream.into(),
            uid: self.uid,
            xid: 100,
            clientid: self.clientid,
            session: self.session,
            seqid: self.seqid,
            recalled: Vec::new(),
            recalled_layouts: Vec::new(),
            minor: 1,
            probed: false,
        }
    }

    /// Sends BIND_CONN_TO_SESSION for this connection, in both directions.
    pub fn bind(&mut self) -> Result<(), Nfsstat4> {
        const BOTH_OR_FORE: u32 = 3;
        let args = [&self.session[..], &BOTH_OR_FORE.to_be_bytes(), &[0; 4]].concat();
        self.compound(&[(op::BIND_CONN_TO_SESSION, args)]).map(|_| ())
    }

    /// Opens a file by its path for `access`; creates it if it does not exist.
    pub fn open(&mut self, path: &Path, access: u32) -> Result<Opened, Nfsstat4> {
        let mut operations = walk(path.parent().unwrap());
        let steps = operations.len();
        let nothing = Fattr4 { attrmask: Bitmap4::default(), attr_vals: Opaque(&[]) };
        let openhow = match access & share::WRITE {
            0 => Openflag4::NoCreate,
            _ => Openflag4::Create(Createhow4::Unchecked(nothing)),
        };
        let args = Open4args {
            seqid: 0,
            share_access: access,
            share_deny: 0,
            owner: StateOwner4 { clientid: self.clientid, owner: Opaque(b"opener") },
            openhow,
            claim: OpenClaim4::Null(Opaque(path.file_name().unwrap().as_bytes())),
        };
        operations.extend([operation(op::OPEN, &args), bare(op::GETFH)]);
        let results = self.perform(operations)?;
        let mut results = Decoder::new(&results);
        (0..steps).for_each(|_| skip(&mut results));
        let Open4resok { stateid, delegation, .. } = result(&mut results);
        skip(&mut results);
        let handle = results.opaque(128).unwrap().to_vec();
        let delegation = match delegation {
            OpenDelegation4::Read(read) => Some(read.stateid),
            OpenDelegation4::Write(write) => Some(write.stateid),
            _ => None,
        };
        Ok(Opened { stateid, delegation, handle })
    }

    /// Reclaims an open after a restart of the server.
    pub fn reclaim(&mut self, file: &Opened, access: u32) -> Result<Opened, Nfsstat4> {
        let args = Open4args {
            seqid: 0,
            share_access: access,
            share_deny: 0,
            owner: StateOwner4 { clientid: self.clientid, owner: Opaque(b"opener") },
            openhow: Openflag4::NoCreate,
            claim: OpenClaim4::Previous(OpenDelegationType4::None),
        };
        let handle = operation(op::PUTFH, &Opaque::<128>(&file.handle));
        let results = self.perform(vec![handle, operation(op::OPEN, &args)])?;
        let mut results = Decoder::new(&results);
        skip(&mut results);
        let Open4resok { stateid, .. } = result(&mut results);
        Ok(Opened { stateid, delegation: None, handle: file.handle.clone() })
    }

    /// Locks bytes as an owner that has not locked anything yet.
    pub fn lock(
        &mut self,
        file: &Opened,
        locktype: NfsLockType4,
        range: (u64, u64),
    ) -> Result<Stateid4, Nfsstat4> {
        let locker = self.locker(file);
        self.lock_as(file, (locker, false), locktype, range)
    }

    /// An owner that has not locked anything yet.
    pub const fn locker(&self, file: &Opened) -> Locker4<'static> {
        let lock_owner = StateOwner4 { clientid: self.clientid, owner: Opaque(b"locker") };
        let open_stateid = file.stateid;
        Locker4::New(OpenToLockOwner4 { open_seqid: 0, open_stateid, lock_seqid: 0, lock_owner })
    }

    /// Locks bytes as an owner, or reclaims a lock of it.
    pub fn lock_as(
        &mut self,
        file: &Opened,
        (locker, reclaim): (Locker4<'_>, bool),
        locktype: NfsLockType4,
        (offset, length): (u64, u64),
    ) -> Result<Stateid4, Nfsstat4> {
        let args = Lock4args { locktype, reclaim, offset, length, locker };
        self.on(&file.handle, operation(op::LOCK, &args))
    }

    /// Unlocks bytes of a file.
    pub fn unlock(
        &mut self,
        file: &Opened,
        lock_stateid: Stateid4,
        (offset, length): (u64, u64),
    ) -> Result<Stateid4, Nfsstat4> {
        let locktype = NfsLockType4::Write;
        let args = Locku4args { locktype, seqid: 0, lock_stateid, offset, length };
        self.on(&file.handle, operation(op::LOCKU, &args))
    }

    /// Sends a WRITE of a few bytes and a SETATTR of the mode, both with this stateid.
    pub fn change(&mut self, file: &Opened, stateid: Stateid4) -> Result<(), Nfsstat4> {
        let (stable, data) = (StableHow4::FileSync, Opaque(&b"more"[..]));
        let write = Write4args { stateid, offset: 0, stable, data };
        let mode = 0o640u32.to_be_bytes();
        let attrmask = Bitmap4::of(&[attribute::MODE]);
        let obj_attributes = Fattr4 { attrmask, attr_vals: Opaque(&mode) };
        let setattr = operation(op::SETATTR, &Setattr4args { stateid, obj_attributes });
        let handle = operation(op::PUTFH, &Opaque::<128>(&file.handle));
        self.perform(vec![handle, operation(op::WRITE, &write), setattr]).map(|_| ())
    }

    /// Sends DELEGRETURN.
    pub fn give_back(&mut self, file: &Opened, delegation: Stateid4) -> Result<(), Nfsstat4> {
        let handle = operation(op::PUTFH, &Opaque::<128>(&file.handle));
        let returned = operation(op::DELEGRETURN, &delegation);
        self.perform(vec![handle, returned]).map(|_| ())
    }

    fn on(&mut self, handle: &[u8], what: Operation) -> Result<Stateid4, Nfsstat4> {
        let results = self.perform(vec![operation(op::PUTFH, &Opaque::<128>(handle)), what])?;
        let mut results = Decoder::new(&results);
        skip(&mut results);
        Ok(result(&mut results))
    }

    /// Does operations in the session; returns their results.
    pub fn perform(&mut self, mut operations: Vec<Operation>) -> Result<Vec<u8>, Nfsstat4> {
        self.seqid += 1;
        let args = Sequence4args {
            sessionid: self.session,
            sequenceid: self.seqid,
            slotid: 0,
            highest_slotid: 0,
            cachethis: false,
        };
        operations.insert(0, operation(op::SEQUENCE, &args));
        let results = self.compound(&operations)?;
        let mut decoder = Decoder::new(&results);
        let _: Sequence4resok = result(&mut decoder);
        Ok(decoder.rest().to_vec())
    }

    fn compound(&mut self, operations: &[Operation]) -> Result<Vec<u8>, Nfsstat4> {
        let mut call = Encoder::new();
        let count = operations.len() as u32;
        call.value(&CompoundHead { tag: Opaque(b""), minorversion: self.minor, operations: count });
        for (number, args) in operations {
            call.value(number);
            call.raw(args);
        }
        let reply = self.call(call.bytes());
        let mut decoder = Decoder::new(&reply);
        let head: CompoundResultHead<'_> = decoder.value().unwrap();
        if head.status == Nfsstat4::Ok { Ok(decoder.rest().to_vec()) } else { Err(head.status) }
    }

    fn call(&mut self, arguments: &[u8]) -> Vec<u8> {
        self.xid += 1;
        let (mut call, mut credential) = (Vec::new(), Vec::new());
        number(&mut credential, 0);
        opaque(&mut credential, b"test");
        [self.uid, self.uid, 0].iter().for_each(|field| number(&mut credential, *field));
        let fields = [self.xid, 0, 2, PROGRAM, 4, 1, 1];
        fields.iter().for_each(|field| number(&mut call, *field));
        opaque(&mut call, &credential);
        call.extend([0; 8]);
        call.extend(arguments);
        self.send(&call);
        loop {
            let record = self.record(PATIENCE).expect("no reply in time");
            if record[4..8] == [0, 0, 0, 0] {
                self.heard(&record);
                continue;
            }
            assert_eq!(record[..4], self.xid.to_be_bytes());
            return record[24..].to_vec();
        }
    }

    /// Answers calls of the server until `enough` is true or `patience` has passed; returns whether
    /// it is true.
    pub fn listen(&mut self, patience: Duration, enough: impl Fn(&Self) -> bool) -> bool {
        let until = Instant::now() + patience;
        while !enough(self) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            if let Some(record) = self.record(left) {
                self.heard(&record);
            }
        }
        true
    }

    /// Answers a call of the server; notes the stateid of a recall.
    fn heard(&mut self, record: &[u8]) {
        let mut call = Decoder::new(record);
        let xid: u32 = call.value().unwrap();
        let [_, _, _, _, procedure] = [(); 5].map(|()| call.value::<u32>().unwrap());
        for _ in ["credential", "verifier"] {
            let _: u32 = call.value().unwrap();
            call.opaque(400).unwrap();
        }
        let mut reply = Encoder::new();
        [xid, 1, 0, 0, 0, 0].iter().for_each(|field| reply.value(field));
        if procedure == 0 {
            self.probed = true;
        } else {
            self.answer(&mut call, &mut reply);
        }
        self.send(reply.bytes());
    }

    fn answer(&mut self, call: &mut Decoder<'_>, reply: &mut Encoder) {
        let head: CbCompoundHead<'_> = call.value().unwrap();
        reply.value(&CbCompoundResultHead {
            status: 0,
            tag: Opaque(b""),
            results: head.operations,
        });
        for _ in 0..head.operations {
            let operation: u32 = call.value().unwrap();
            reply.value(&CbResultHead { operation, status: 0 });
            match operation {
                cb::CB_SEQUENCE => {
                    let args: CbSequence4args = call.value().unwrap();
                    let CbSequence4args { sessionid, sequenceid, slotid, highest_slotid, .. } =
                        args;
                    reply.value(&CbSequence4resok {
                        sessionid,
                        sequenceid,
                        slotid,
                        highest_slotid,
                        target_highest_slotid: highest_slotid,
                    });
                }
                cb::CB_RECALL => {
                    let args: CbRecall4args<'_> = call.value().unwrap();
                    self.recalled.push(args.stateid);
                }
                cb::CB_LAYOUTRECALL => {
                    let args: CbLayoutrecall4args<'_> = call.value().unwrap();
                    let Layoutrecall4::File(file) = args.recall else {
                        panic!("a recall of one file was expected: {args:?}")
                    };
                    assert_eq!((file.offset, file.length), (0, u64::MAX));
                    self.recalled_layouts.push(file.stateid);
                }
                other => panic!("callback operation {other}"),
            }
        }
    }

    fn send(&mut self, record: &[u8]) {
        let mark = 0x8000_0000 | record.len() as u32;
        self.stream.write_all(&[&mark.to_be_bytes()[..], record].concat()).unwrap();
    }

    /// Returns the next record, or `None` if none begins in time.
    fn record(&mut self, patience: Duration) -> Option<Vec<u8>> {
        let mut mark = [0; 4];
        self.stream.set_read_timeout(patience);
        let read = loop {
            match self.stream.read(&mut mark[..1]) {
                // A server that ends is a child of this process, which gets a signal then.
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        match read {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return None;
            }
            read => assert_eq!(read.unwrap(), 1, "the server hung up"),
        }
        self.stream.set_read_timeout(PATIENCE);
        self.stream.read_exact(&mut mark[1..]).unwrap();
        let mut record = vec![0; (u32::from_be_bytes(mark) & 0x7fff_ffff) as usize];
        self.stream.read_exact(&mut record).unwrap();
        Some(record)
    }
}

/// Reads the result of an operation that succeeded.
pub fn result<'r, T: Decode<'r>>(results: &mut Decoder<'r>) -> T {
    skip(results);
    results.value().unwrap()
}

/// Skips the number and the status of an operation.
pub fn skip(results: &mut Decoder<'_>) {
    let _: [u32; 2] = [results.value().unwrap(), results.value().unwrap()];
}
