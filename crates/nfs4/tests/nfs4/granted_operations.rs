//! Every operation of NFSv4 checks the rights of a key: a table has the rights that each needs, and
//! each is sent, in all minor versions that have it, by keys with one right, no right, or all
//! rights but one.

use std::collections::BTreeSet;

use comity_proto::nfs4::{
    ACCESS4_XALIST as XALIST, ACCESS4_XAREAD as XAREAD, ACCESS4_XAWRITE as XAWRITE, Bitmap4,
    Clone4args, Copy4args,
};
use comity_proto::nfs4::{
    Close4args, Commit4args, CompoundHead, CompoundResultHead, Create4args, Createhow4,
    Createtype4, Creatverfattr, GetDirDelegation4args, IoAdvise4args, Listxattrs4args, Lock4args,
    Locker4, Lockt4args, Locku4args, NfsLockType4, Nfsstat4, Nfstime4, Open4args, OpenClaim4,
    OpenConfirm4args, OpenDowngrade4args, OpenToLockOwner4, Openflag4, Range4args, Read4args,
    Readdir4args, Rename4args, Seek4args, Setattr4args, Setxattr4args, SetxattrOption4, StableHow4,
    StateOwner4, Stateid4, Write4args, operation as op, share,
};
use comity_vfs::Handle;
use comity_xdr::{Counted, Decoder, Encoder, Opaque};

use crate::attributes;
use crate::granted::{Furnished, Needs, Verdict};
use crate::hunt::coverage::{NOT_SERVED, OF_PLACEMENTS, WITHOUT_A_FILE};
use crate::hunt::shot::{Ops, Shot};
use crate::hunt::twins::Target;
use crate::owners::introduce;
use crate::session::Session;
use crate::world::World;

/// A COMPOUND whose last operation is the one that is tested.
struct Row {
    number: u32,
    told: &'static str,
    needs: Needs,
    /// The first minor version in which the operation is tested.
    first: u32,
    /// The last minor version in which the operation is tested.
    last: u32,
    operations: fn(&At, Ops) -> Ops,
}

const fn row(number: u32, needs: Needs, operations: fn(&At, Ops) -> Ops) -> Row {
    let first = if number <= op::RELEASE_LOCKOWNER {
        0
    } else if number <= op::RECLAIM_COMPLETE {
        1
    } else {
        2
    };
    Row { number, told: "", needs, first, last: 2, operations }
}

impl Row {
    const fn called(self, told: &'static str) -> Self {
        Self { told, ..self }
    }

    /// The row, for minor versions with sessions only: its operation uses the stateid of an OPEN in
    /// the same COMPOUND.
    const fn with_sessions(self) -> Self {
        Self { first: 1, ..self }
    }
}

/// The objects of the calls, and the clientid of the caller in 4.0.
struct At {
    dir: Target,
    file: Target,
    other: Target,
    link: Target,
    sub: Target,
    clientid: u64,
}

const ROWS: &[Row] = &[
    row(op::PUTROOTFH, Needs::Nothing, |_, ops| ops.bare(op::PUTROOTFH)),
    row(op::PUTPUBFH, Needs::Nothing, |_, ops| ops.bare(op::PUTPUBFH)),
    row(op::PUTFH, Needs::Any, |at, ops| ops.at(&at.file)),
    row(op::GETFH, Needs::Any, |at, ops| ops.at(&at.file).bare(op::GETFH)),
    row(op::SAVEFH, Needs::Any, |at, ops| ops.at(&at.file).bare(op::SAVEFH)),
    row(op::RESTOREFH, Needs::Any, |at, ops| {
        ops.at(&at.file).bare(op::SAVEFH).bare(op::PUTROOTFH).bare(op::RESTOREFH)
    }),
    row(op::ACCESS, Needs::Any, |at, ops| ops.at(&at.file).op(op::ACCESS, &0x3f_u32)),
    row(op::GETATTR, Needs::Any, |at, ops| ops.at(&at.file).op(op::GETATTR, &asked(&["mode"]))),
    row(op::GETATTR, Needs::Any, |at, ops| ops.at(&at.dir).op(op::GETATTR, &asked(&["acl"])))
        .called("of an ACL"),
    row(op::VERIFY, Needs::Any, |at, ops| {
        ops.at(&at.file).raw(op::VERIFY, &attributes::encode(&["size=20"]))
    }),
    row(op::NVERIFY, Needs::Any, |at, ops| {
        ops.at(&at.file).raw(op::NVERIFY, &attributes::encode(&["size=7"]))
    }),
    row(op::READLINK, Needs::Any, |at, ops| ops.at(&at.link).bare(op::READLINK)),
    row(op::COMMIT, Needs::Any, |at, ops| {
        ops.at(&at.file).op(op::COMMIT, &Commit4args { offset: 0, count: 0 })
    }),
    row(op::GET_DIR_DELEGATION, Needs::Any, |at, ops| {
        ops.at(&at.dir).op(op::GET_DIR_DELEGATION, &directory_wish())
    }),
    row(op::IO_ADVISE, Needs::Any, |at, ops| {
        let (stateid, hints) = (Stateid4::ANONYMOUS, Bitmap4::EMPTY);
        ops.at(&at.file).op(op::IO_ADVISE, &IoAdvise4args { stateid, offset: 0, count: 3, hints })
    }),
    row(op::SECINFO_NO_NAME, Needs::Any, |at, ops| {
        ops.at(&at.file).op(op::SECINFO_NO_NAME, &0_u32)
    }),
    row(op::SECINFO_NO_NAME, Needs::All("x"), |at, ops| {
        ops.at(&at.sub).op(op::SECINFO_NO_NAME, &1_u32)
    })
    .called("of the directory above"),
    row(op::SECINFO, Needs::All("x"), |at, ops| ops.at(&at.dir).named(op::SECINFO, b"file")),
    row(op::LOOKUP, Needs::All("x"), |at, ops| ops.at(&at.dir).named(op::LOOKUP, b"file")),
    row(op::LOOKUP, Needs::All("x"), |_, ops| {
        let ops = ops.bare(op::PUTROOTFH).named(op::LOOKUP, b"srv");
        ops.named(op::LOOKUP, b"dir").named(op::LOOKUP, b"file")
    })
    .called("from the top"),
    row(op::LOOKUPP, Needs::All("x"), |at, ops| ops.at(&at.sub).bare(op::LOOKUPP)),
    row(op::READ, Needs::All("r"), |at, ops| ops.at(&at.file).op(op::READ, &reading())),
    row(op::READ_PLUS, Needs::All("r"), |at, ops| ops.at(&at.file).op(op::READ_PLUS, &reading())),
    row(op::SEEK, Needs::All("r"), |at, ops| {
        let args = Seek4args { stateid: Stateid4::ANONYMOUS, offset: 0, what: 1 };
        ops.at(&at.file).op(op::SEEK, &args)
    }),
    row(op::READDIR, Needs::All("r"), |at, ops| {
        let (cookie, cookieverf, attr_request) = (0, [0; 8], asked(&["mode"]));
        let (dircount, maxcount) = (0, 1 << 15);
        let args = Readdir4args { cookie, cookieverf, dircount, maxcount, attr_request };
        ops.at(&at.dir).op(op::READDIR, &args)
    }),
    row(op::GETXATTR, Needs::All("r"), |at, ops| ops.at(&at.file).named(op::GETXATTR, b"tag")),
    row(op::LISTXATTRS, Needs::All("r"), |at, ops| {
        ops.at(&at.file).op(op::LISTXATTRS, &Listxattrs4args { cookie: 0, maxcount: 4096 })
    }),
    row(op::WRITE, Needs::All("w"), |at, ops| ops.at(&at.file).op(op::WRITE, &writing())),
    row(op::ALLOCATE, Needs::All("w"), |at, ops| ops.at(&at.file).op(op::ALLOCATE, &range())),
    row(op::DEALLOCATE, Needs::All("w"), |at, ops| ops.at(&at.file).op(op::DEALLOCATE, &range())),
    row(op::SETATTR, Needs::All("w"), |at, ops| setattr(ops.at(&at.file), &["size=0"]))
        .called("of a size"),
    row(op::SETATTR, Needs::All("a"), |at, ops| setattr(ops.at(&at.file), &["mode=600"]))
        .called("of a mode"),
    row(op::SETATTR, Needs::All("aw"), |at, ops| {
        setattr(ops.at(&at.file), &["size=0", "mode=600"])
    })
    .called("of a size and a mode"),
    row(op::SETATTR, Needs::All("a"), |at, ops| {
        setattr(ops.at(&at.file), &["acl=A:0:16019f:OWNER@"])
    })
    .called("of an ACL"),
    row(op::SETATTR, Needs::All("aw"), |at, ops| {
        setattr(ops.at(&at.file), &["size=0", "acl=A:0:16019f:OWNER@"])
    })
    .called("of a size and an ACL"),
    row(op::SETXATTR, Needs::All("a"), |at, ops| {
        let (option, key, value) =
            (SetxattrOption4::Either, Opaque(&b"tag"[..]), Opaque(&b"x"[..]));
        ops.at(&at.file).op(op::SETXATTR, &Setxattr4args { option, key, value })
    }),
    row(op::REMOVEXATTR, Needs::All("a"), |at, ops| {
        ops.at(&at.file).named(op::REMOVEXATTR, b"tag")
    }),
    row(op::COPY, Needs::All("rw"), |at, ops| {
        ops.at(&at.file).bare(op::SAVEFH).at(&at.other).op(op::COPY, &copy())
    }),
    row(op::CLONE, Needs::All("rw"), |at, ops| {
        let (src_stateid, dst_stateid) = (Stateid4::ANONYMOUS, Stateid4::ANONYMOUS);
        let (src_offset, dst_offset, count) = (0, 0, 0);
        let args = Clone4args { src_stateid, dst_stateid, src_offset, dst_offset, count };
        ops.at(&at.file).bare(op::SAVEFH).at(&at.other).op(op::CLONE, &args)
    }),
    row(op::CREATE, Needs::All("c"), |at, ops| create(ops.at(&at.dir), Createtype4::Dir)),
    row(op::CREATE, Needs::All("c"), |at, ops| create(ops.at(&at.dir), Createtype4::Fifo)),
    row(op::CREATE, Needs::All("c"), |at, ops| {
        create(ops.at(&at.dir), Createtype4::Lnk(Opaque(b"file")))
    }),
    row(op::LINK, Needs::All("c"), |at, ops| {
        ops.at(&at.file).bare(op::SAVEFH).at(&at.dir).named(op::LINK, b"new")
    }),
    row(op::REMOVE, Needs::All("d"), |at, ops| ops.at(&at.dir).named(op::REMOVE, b"file")),
    row(op::REMOVE, Needs::All("d"), |at, ops| ops.at(&at.dir).named(op::REMOVE, b"sub"))
        .called("of a directory"),
    row(op::RENAME, Needs::All("cd"), |at, ops| rename(ops, &at.dir, &at.dir, b"new")),
    row(op::RENAME, Needs::All("cd"), |at, ops| rename(ops, &at.dir, &at.dir, b"other"))
        .called("onto a file"),
    row(op::RENAME, Needs::All("cd"), |at, ops| rename(ops, &at.dir, &at.sub, b"new"))
        .called("between directories"),
    row(op::OPEN, Needs::All("xr"), |at, ops| by_name(at, ops, share::READ)).called("for reading"),
    row(op::OPEN, Needs::All("xw"), |at, ops| by_name(at, ops, share::WRITE)).called("for writing"),
    row(op::OPEN, Needs::All("r"), |at, ops| opened(at, ops, share::READ))
        .called("by handle for reading")
        .with_sessions(),
    row(op::OPEN, Needs::All("w"), |at, ops| opened(at, ops, share::WRITE))
        .called("by handle for writing")
        .with_sessions(),
    row(op::OPEN, Needs::All("rw"), |at, ops| opened(at, ops, share::BOTH))
        .called("by handle for both")
        .with_sessions(),
    row(op::OPEN, Needs::All("c"), |at, ops| {
        making(at, ops, b"new", Createhow4::Guarded(Decoder::whole(&[0; 8]).unwrap()))
    })
    .called("that makes a file, guarded"),
    row(op::OPEN, Needs::All("c"), |at, ops| {
        making(at, ops, b"new", Createhow4::Exclusive([3; 8]))
    })
    .called("that makes a file, exclusive"),
    row(op::OPEN, Needs::All("c"), |at, ops| {
        let attrs = Decoder::whole(&[0; 8]).unwrap();
        let how = Createhow4::Exclusive41(Creatverfattr { verf: [3; 8], attrs });
        making(at, ops, b"new", how)
    })
    .called("that makes a file, exclusive, of 4.1")
    .with_sessions(),
    row(op::OPEN, Needs::All("c"), |at, ops| {
        let attrs = attributes::encode(&["mode=600", "acl=A:0:16019f:OWNER@"]);
        let attrs = Decoder::whole(&attrs).unwrap();
        let how = Createhow4::Exclusive41(Creatverfattr { verf: [3; 8], attrs });
        making(at, ops, b"new", how)
    })
    .called("that makes a file with attributes, exclusive, of 4.1")
    .with_sessions(),
    row(op::OPEN, Needs::All("c"), |at, ops| {
        let ops = making(at, ops, b"new", Createhow4::Exclusive([3; 8]));
        setattr(ops, &["mode=600"])
    })
    .called("that makes a file, exclusive, before the mode is set"),
    // An unchecked creation first looks up the name, which needs the right to search.
    row(op::OPEN, Needs::All("xc"), |at, ops| {
        making(at, ops, b"new", Createhow4::Unchecked(Decoder::whole(&[0; 8]).unwrap()))
    })
    .called("that makes a file, unchecked"),
    row(op::OPEN, Needs::All("xrw"), |at, ops| {
        let attrs = attributes::encode(&["size=0"]);
        making(at, ops, b"file", Createhow4::Unchecked(Decoder::whole(&attrs).unwrap()))
    })
    .called("that empties a file"),
    row(op::LOCK, Needs::All("r"), |at, ops| {
        lock(opened(at, ops, share::READ), NfsLockType4::Read)
    })
    .with_sessions(),
    row(op::LOCK, Needs::All("w"), |at, ops| {
        lock(opened(at, ops, share::WRITE), NfsLockType4::Write)
    })
    .with_sessions(),
    row(op::LOCKT, Needs::Any, |at, ops| {
        let (locktype, offset, length, owner) = (NfsLockType4::Write, 0, 10, owner(at));
        ops.at(&at.file).op(op::LOCKT, &Lockt4args { locktype, offset, length, owner })
    }),
    row(op::LOCKU, Needs::All("r"), |at, ops| {
        let (locktype, seqid, lock_stateid) = (NfsLockType4::Read, 0, Stateid4::CURRENT);
        let unlock = Locku4args { locktype, seqid, lock_stateid, offset: 0, length: 10 };
        lock(opened(at, ops, share::READ), NfsLockType4::Read).op(op::LOCKU, &unlock)
    })
    .with_sessions(),
    row(op::CLOSE, Needs::All("r"), |at, ops| {
        let close = Close4args { seqid: 0, open_stateid: Stateid4::CURRENT };
        opened(at, ops, share::READ).op(op::CLOSE, &close)
    })
    .with_sessions(),
    row(op::OPEN_DOWNGRADE, Needs::All("rw"), |at, ops| {
        let (seqid, share_access, share_deny) = (0, share::BOTH, 0);
        let open_stateid = Stateid4::CURRENT;
        let args = OpenDowngrade4args { open_stateid, seqid, share_access, share_deny };
        opened(at, ops, share::BOTH).op(op::OPEN_DOWNGRADE, &args)
    })
    .with_sessions(),
    // The stateid is unknown to the server, so that the operation fails whatever rights the key
    // has.
    row(op::OPEN_CONFIRM, Needs::Any, |at, ops| {
        let (open_stateid, seqid) = (UNTOLD, 1);
        ops.at(&at.file).op(op::OPEN_CONFIRM, &OpenConfirm4args { open_stateid, seqid })
    })
    .until(0),
    row(op::DELEGRETURN, Needs::Any, |at, ops| ops.at(&at.file).op(op::DELEGRETURN, &UNTOLD)),
    row(op::OFFLOAD_STATUS, Needs::Any, |at, ops| ops.at(&at.file).op(op::OFFLOAD_STATUS, &UNTOLD)),
    row(op::OFFLOAD_CANCEL, Needs::Any, |at, ops| ops.at(&at.file).op(op::OFFLOAD_CANCEL, &UNTOLD)),
];

/// A stateid that the server has given to no client.
const UNTOLD: Stateid4 = Stateid4 { seqid: 1, other: [9; 12] };

/// The operations that are tested with that stateid.
const BY_STATEID: [u32; 4] =
    [op::OPEN_CONFIRM, op::DELEGRETURN, op::OFFLOAD_STATUS, op::OFFLOAD_CANCEL];

impl Row {
    const fn until(self, last: u32) -> Self {
        Self { last, ..self }
    }
}

#[test]
fn every_operation_asks_for_the_rights_that_it_needs() {
    let faults: Vec<String> = ROWS.iter().flat_map(faults).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_operation_has_a_row() {
    let rows: BTreeSet<u32> = ROWS.iter().map(|row| row.number).collect();
    let without = WITHOUT_A_FILE.into_iter().chain(NOT_SERVED).chain(OF_PLACEMENTS);
    let without: BTreeSet<u32> = without.collect();
    let all: BTreeSet<u32> = (op::ACCESS..=op::REMOVEXATTR).collect();
    assert_eq!(rows, all.difference(&without).copied().collect());
}

/// The calls whose answers or effects differ from the table.
fn faults(row: &Row) -> Vec<String> {
    let fault = |(minor, rights): (u32, String)| {
        let at = Furnished::granting(&rights);
        let (before, expected) = (at.snapshot(), row.needs.verdict(&rights));
        let answer = answered(row, &at, minor);
        let is_unchanged = expected == Verdict::Done || at.snapshot() == before;
        let Row { number, told, .. } = row;
        let told = format!("operation {number} {told} of 4.{minor} with {rights:?}: {answer:?}");
        (answer != Ok(expected) || !is_unchanged).then_some(told)
    };
    let trials = |minor| row.needs.trials().into_iter().map(move |rights| (minor, rights));
    (row.first..=row.last).flat_map(trials).filter_map(fault).collect()
}

/// The bits that ACCESS of 4.2 reports to a key with one right to a file that its owner may not
/// execute, and to a directory. Every key may read the attributes `user.comity.why` and the like
/// (XAREAD).
const BITS: [(&str, u32, u32); 6] = [
    ("r", 0x1 | XAREAD | XALIST, 0x1 | XAREAD | XALIST),
    ("w", 0x4 | 0x8 | XAREAD, XAREAD),
    ("x", XAREAD, 0x2 | XAREAD),
    ("c", XAREAD, 0x4 | 0x8 | XAREAD),
    ("d", XAREAD, 0x10 | XAREAD),
    ("a", XAREAD | XAWRITE, XAREAD | XAWRITE),
];

#[test]
fn access_reports_what_the_rights_of_a_key_allow() {
    for (rights, of_file, of_dir) in BITS {
        let site = Furnished::granting(rights);
        let bits = |row: Row| {
            let reply = sent(&row, &site, 2);
            u32::from_be_bytes(reply[reply.len() - 4..].try_into().unwrap())
        };
        let file =
            row(op::ACCESS, Needs::Any, |at, ops| ops.at(&at.file).op(op::ACCESS, &0x1ff_u32));
        let dir = row(op::ACCESS, Needs::Any, |at, ops| ops.at(&at.dir).op(op::ACCESS, &0x1ff_u32));
        assert_eq!((bits(file), bits(dir)), (of_file, of_dir), "rights {rights}");
    }
}

/// Sends the COMPOUND; returns its status, which is that of the last operation that was tried.
fn answered(row: &Row, site: &Furnished, minor: u32) -> Result<Verdict, Nfsstat4> {
    let reply = sent(row, site, minor);
    let head: CompoundResultHead<'_> = Decoder::new(&reply).value().unwrap();
    match head.status {
        Nfsstat4::Ok => Ok(Verdict::Done),
        Nfsstat4::BadStateid | Nfsstat4::StaleStateid if BY_STATEID.contains(&row.number) => {
            Ok(Verdict::Done)
        }
        Nfsstat4::Access => Ok(Verdict::Refused),
        Nfsstat4::Stale | Nfsstat4::NoEnt => Ok(Verdict::Gone),
        other => Err(other),
    }
}

fn sent(row: &Row, site: &Furnished, minorversion: u32) -> Vec<u8> {
    let world = World::at(&site.exports).by_channel(site.channel.clone());
    let clientid = if minorversion == 0 { introduce(&world) } else { 0 };
    let mut session = (minorversion > 0).then(|| Session::open(&world, minorversion));
    session.iter().for_each(|session| session.call_back(&world));
    let target = |handle: Handle| Target { handles: [handle; 2], path: String::new(), names: None };
    let at = At {
        dir: target(site.dir),
        file: target(site.file),
        other: target(site.other),
        link: target(site.link),
        sub: target(site.sub),
        clientid,
    };
    let shot = Shot::new(String::new(), |ops| (row.operations)(&at, ops));
    let [ops, _] = &shot.operations;
    let operations = ops.asked.len() as u32 + u32::from(session.is_some());
    let mut call = Encoder::new();
    call.value(&CompoundHead { tag: Opaque(b""), minorversion, operations });
    session.iter_mut().for_each(|session| session.sequence(&mut call));
    call.raw(ops.call.bytes());
    world.compound(call.bytes()).0
}

fn asked(names: &[&str]) -> Bitmap4 {
    attributes::bitmap(names)
}

const fn reading() -> Read4args {
    Read4args { stateid: Stateid4::ANONYMOUS, offset: 0, count: 10 }
}

fn writing() -> Write4args<'static> {
    let (stateid, stable, data) = (Stateid4::ANONYMOUS, StableHow4::Unstable, Opaque(&b"new"[..]));
    Write4args { stateid, offset: 0, stable, data }
}

const fn range() -> Range4args {
    Range4args { stateid: Stateid4::ANONYMOUS, offset: 0, length: 9 }
}

fn copy() -> Copy4args<'static> {
    Copy4args {
        src_stateid: Stateid4::ANONYMOUS,
        dst_stateid: Stateid4::ANONYMOUS,
        src_offset: 0,
        dst_offset: 0,
        count: 0,
        consecutive: true,
        synchronous: true,
        source_server: Counted(Vec::new()),
    }
}

fn setattr(ops: Ops, settings: &[&str]) -> Ops {
    let encoded = attributes::encode(settings);
    let obj_attributes = Decoder::whole(&encoded).unwrap();
    ops.op(op::SETATTR, &Setattr4args { stateid: Stateid4::ANONYMOUS, obj_attributes })
}

fn create(ops: Ops, objtype: Createtype4<'_>) -> Ops {
    let createattrs = Decoder::whole(&[0; 8]).unwrap();
    ops.op(op::CREATE, &Create4args { objtype, objname: Opaque(b"new"), createattrs })
}

fn rename(ops: Ops, source: &Target, target: &Target, new: &[u8]) -> Ops {
    let args = Rename4args { oldname: Opaque(b"file"), newname: Opaque(new) };
    ops.at(source).bare(op::SAVEFH).at(target).op(op::RENAME, &args)
}

fn owner(at: &At) -> StateOwner4<'static> {
    StateOwner4 { clientid: at.clientid, owner: Opaque(b"somebody") }
}

fn open(
    at: &At,
    ops: Ops,
    (share_access, openhow, claim): (u32, Openflag4<'_>, OpenClaim4<'_>),
) -> Ops {
    let (seqid, share_deny, owner) = (1, 0, owner(at));
    ops.op(op::OPEN, &Open4args { seqid, share_access, share_deny, owner, openhow, claim })
}

fn by_name(at: &At, ops: Ops, access: u32) -> Ops {
    let claim = OpenClaim4::Null(Opaque(b"file"));
    open(at, ops.at(&at.dir), (access, Openflag4::NoCreate, claim))
}

fn opened(at: &At, ops: Ops, access: u32) -> Ops {
    open(at, ops.at(&at.file), (access, Openflag4::NoCreate, OpenClaim4::Fh))
}

fn making(at: &At, ops: Ops, name: &[u8], how: Createhow4<'_>) -> Ops {
    let claim = OpenClaim4::Null(Opaque(name));
    open(at, ops.at(&at.dir), (share::READ, Openflag4::Create(how), claim))
}

fn lock(ops: Ops, locktype: NfsLockType4) -> Ops {
    let new = OpenToLockOwner4 {
        open_seqid: 0,
        open_stateid: Stateid4::CURRENT,
        lock_seqid: 0,
        lock_owner: StateOwner4 { clientid: 0, owner: Opaque(b"locker") },
    };
    let (reclaim, offset, length) = (false, 0, 10);
    ops.op(op::LOCK, &Lock4args { locktype, reclaim, offset, length, locker: Locker4::New(new) })
}

fn directory_wish() -> GetDirDelegation4args {
    let (delay, types) = (Nfstime4 { seconds: 1, nseconds: 0 }, Bitmap4::EMPTY);
    GetDirDelegation4args {
        signal_deleg_avail: false,
        notification_types: types,
        child_attr_delay: delay,
        dir_attr_delay: delay,
        child_attributes: types,
        dir_attributes: types,
    }
}
