//! COMPOUNDs, in each minor version.

use comity_proto::nfs4::{
    Bitmap4, Close4args, Component4, Create4args, Createhow4, Createtype4, Fattr4, Lock4args,
    Locker4, NfsFh4, NfsLockType4, Open4args, OpenClaim4, OpenToLockOwner4, Openflag4, Read4args,
    Readdir4args, StableHow4, StateOwner4, Stateid4, Write4args, operation as op,
};
use comity_xdr::{Encode, Encoder, Opaque};

use super::write;

const ROOT: NfsFh4<'static> = Opaque(b"fh\0\0");
const OWNER: StateOwner4<'static> = StateOwner4 { clientid: 0, owner: Opaque(b"owner") };
const NOTHING: Fattr4<'static> = Fattr4 { attrmask: Bitmap4::EMPTY, attr_vals: Opaque(&[]) };

/// The bit for a COMPOUND in a session; the other bits are its minor version.
const IN_SESSION: u8 = 0x80;

/// The operations of a COMPOUND, as they are collected.
#[derive(Default)]
struct Operations {
    count: u8,
    bytes: Encoder,
}

impl Operations {
    fn with(mut self, number: u32, args: &impl Encode) -> Self {
        self.count += 1;
        self.bytes.value(&number);
        self.bytes.value(args);
        self
    }

    /// The bytes as `TestServer::compounds` reads them.
    fn compound(&self, minor: u8) -> Vec<u8> {
        let length = (self.bytes.bytes().len() as u16).to_be_bytes();
        [&[minor, self.count], &length[..], self.bytes.bytes()].concat()
    }
}

pub(crate) fn all() -> std::io::Result<()> {
    let seeds = [("walk", walk()), ("names", names()), ("data", data()), ("locks", locks())];
    for (name, operations) in seeds {
        for minor in [0, IN_SESSION | 1, IN_SESSION | 2] {
            let name = format!("{name}-{}", minor & 0x7f);
            write("compound", &name, &operations.compound(minor))?;
        }
    }
    every_number()
}

fn walk() -> Operations {
    let attr_request = Bitmap4::from_words([u32::MAX; 3]);
    let (cookie, cookieverf, dircount, maxcount) = (0, [0; 8], 512, 8192);
    Operations::default()
        .with(op::PUTROOTFH, &())
        .with(op::READDIR, &Readdir4args { cookie, cookieverf, dircount, maxcount, attr_request })
        .with(op::LOOKUP, &name(b"export"))
        .with(op::GETFH, &())
        .with(op::LOOKUPP, &())
}

fn names() -> Operations {
    let objname = name(b"d");
    let dir = Create4args { objtype: Createtype4::Dir, objname, createattrs: NOTHING };
    Operations::default()
        .with(op::PUTFH, &ROOT)
        .with(op::CREATE, &dir)
        .with(op::GETATTR, &Bitmap4::of(&[1, 3, 33]))
        .with(op::PUTFH, &ROOT)
        .with(op::REMOVE, &name(b"d"))
}

fn open() -> Operations {
    let openhow = Openflag4::Create(Createhow4::Unchecked(NOTHING));
    let claim = OpenClaim4::Null(name(b"a"));
    let (seqid, share_access, share_deny, owner) = (0, 3, 0, OWNER);
    let args = Open4args { seqid, share_access, share_deny, owner, openhow, claim };
    Operations::default().with(op::PUTFH, &ROOT).with(op::OPEN, &args)
}

fn data() -> Operations {
    let (stateid, offset) = (Stateid4::CURRENT, 3);
    let (stable, data) = (StableHow4::FileSync, Opaque(&b"hello"[..]));
    open()
        .with(op::WRITE, &Write4args { stateid, offset, stable, data })
        .with(op::READ, &Read4args { stateid, offset: 0, count: 100 })
        .with(op::CLOSE, &Close4args { seqid: 0, open_stateid: stateid })
}

fn locks() -> Operations {
    let (open_stateid, lock_owner) = (Stateid4::CURRENT, OWNER);
    let new = OpenToLockOwner4 { open_seqid: 0, open_stateid, lock_seqid: 0, lock_owner };
    let (locktype, reclaim, locker) = (NfsLockType4::Write, false, Locker4::New(new));
    open().with(op::LOCK, &Lock4args { locktype, reclaim, offset: 0, length: 9, locker })
}

/// Each operation with words of zero for arguments.
fn every_number() -> std::io::Result<()> {
    for number in 3..=op::REMOVEXATTR {
        let operations = Operations::default().with(op::PUTFH, &ROOT).with(number, &[0_u8; 64]);
        let compound = operations.compound(IN_SESSION | 2);
        write("compound", &format!("operation-{number}"), &compound)?;
    }
    Ok(())
}

const fn name(bytes: &'static [u8]) -> Component4<'static> {
    Opaque(bytes)
}
