//! A COMPOUND, which is sent to both servers.

use comity_proto::nfs4::{
    Bitmap4, Close4args, Commit4args, Component4, GetDirDelegation4args, IoAdvise4args,
    Listxattrs4args, Locku4args, NfsFh4, NfsLockType4, Nfstime4, OpenConfirm4args,
    OpenDowngrade4args, Range4args, Read4args, Readdir4args, Seek4args, Stateid4, operation as op,
};
use comity_xdr::{Encode, Encoder, Opaque};

use super::exception::Place;
use super::rng::Rng;
use super::twins::{Target, sealed};
use crate::attributes;

pub(crate) struct Shot {
    /// The operations for each server.
    pub(crate) operations: [Ops; 2],
    /// The name that the call would make.
    pub(crate) onto: Option<Place>,
    /// The object that the call would remove or replace.
    pub(crate) emptied: Option<Place>,
    pub(crate) told: String,
}

impl Shot {
    pub(crate) fn new(told: String, ask: impl Fn(Ops) -> Ops) -> Self {
        let ops = |side| ask(Ops { side, call: Encoder::new(), asked: Vec::new() });
        Self { operations: [ops(0), ops(1)], onto: None, emptied: None, told }
    }

    pub(crate) fn onto(self, dir: &Target, name: &[u8]) -> Self {
        Self { onto: Some((dir.clone(), name.to_vec())), ..self }
    }

    pub(crate) fn emptying(self, dir: &Target, name: &[u8]) -> Self {
        Self { emptied: Some((dir.clone(), name.to_vec())), ..self }
    }
}

/// The operations for one server.
pub(crate) struct Ops {
    side: usize,
    pub(crate) call: Encoder,
    /// The numbers of the operations.
    pub(crate) asked: Vec<u32>,
}

impl Ops {
    pub(crate) fn op(mut self, number: u32, arguments: &impl Encode) -> Self {
        self.call.value(&number);
        self.call.value(arguments);
        self.asked.push(number);
        self
    }

    pub(crate) fn raw(mut self, number: u32, arguments: &[u8]) -> Self {
        self.call.value(&number);
        self.call.raw(arguments);
        self.asked.push(number);
        self
    }

    pub(crate) fn bare(self, number: u32) -> Self {
        self.op(number, &())
    }

    /// Appends PUTFH.
    pub(crate) fn at(self, target: &Target) -> Self {
        let handle = sealed(&target.handles[self.side]);
        self.op(op::PUTFH, &handle_of(&handle))
    }

    pub(crate) fn named(self, number: u32, name: &[u8]) -> Self {
        let name: Component4<'_> = Opaque(name);
        self.op(number, &name)
    }

    /// Appends GETFH, and GETATTR of all attributes.
    pub(crate) fn look(self) -> Self {
        self.bare(op::GETFH).op(op::GETATTR, &all())
    }
}

/// All attributes that can be read.
fn all() -> Bitmap4 {
    let write_only = ["time_access_set", "time_modify_set", "mode_umask"];
    let numbers: Vec<u32> = (0..90).collect();
    Bitmap4::of(&numbers).without(&attributes::bitmap(&write_only))
}

/// All calls about an object by its handle that do not change it.
pub(crate) fn questions(rng: &mut Rng, target: &Target, top: &Target) -> Vec<Shot> {
    let shot = |told: &str, ask: &dyn Fn(Ops) -> Ops| {
        Shot::new(format!("{told} on {}", target.path), |ops| ask(ops.at(target)))
    };
    let (stateid, offset) = (Stateid4::ANONYMOUS, 2);
    let rights = *rng.pick(&[0x3f, 0x1ff, 0x21]);
    let style = rng.below(2) as u32;
    let (hints, range) = (Bitmap4::EMPTY, Read4args { stateid, offset, count: 100 });
    vec![
        shot("GETATTR", &Ops::look),
        shot("ACCESS", &|ops| ops.op(op::ACCESS, &rights)),
        shot("READLINK", &|ops| ops.bare(op::READLINK)),
        shot("READ", &|ops| ops.op(op::READ, &range)),
        shot("READ_PLUS", &|ops| ops.op(op::READ_PLUS, &range)),
        shot("SEEK", &|ops| ops.op(op::SEEK, &Seek4args { stateid, offset, what: 1 })),
        shot("COMMIT", &|ops| ops.op(op::COMMIT, &Commit4args { offset: 0, count: 0 })),
        shot("IO_ADVISE", &|ops| {
            ops.op(op::IO_ADVISE, &IoAdvise4args { stateid, offset, count: 3, hints })
        }),
        shot("LOOKUPP", &|ops| ops.bare(op::LOOKUPP).look()),
        shot("SECINFO_NO_NAME", &|ops| ops.op(op::SECINFO_NO_NAME, &style)),
        shot("GETXATTR", &|ops| ops.named(op::GETXATTR, b"user.mark")),
        shot("LISTXATTRS", &|ops| {
            ops.op(op::LISTXATTRS, &Listxattrs4args { cookie: 0, maxcount: 4096 })
        }),
        shot("GET_DIR_DELEGATION", &|ops| ops.op(op::GET_DIR_DELEGATION, &directory_wish())),
        shot("VERIFY", &|ops| ops.raw(op::VERIFY, &attributes::encode(&["type=1"])).look()),
        shot("NVERIFY", &|ops| ops.raw(op::NVERIFY, &attributes::encode(&["size=20"])).look()),
        shot("SAVEFH", &|ops| ops.bare(op::SAVEFH).at(top).bare(op::RESTOREFH).look()),
        Shot::new(format!("PUTFH of {} behind SAVEFH", target.path), |ops| {
            ops.at(top).bare(op::SAVEFH).at(target).bare(op::RESTOREFH).look()
        }),
        shot("PUTPUBFH", &|ops| ops.bare(op::PUTPUBFH).look()),
    ]
}

/// All calls about an object with a stateid that belongs to no client.
pub(crate) fn by_stateid(target: &Target) -> Vec<Shot> {
    let shot = |told: &str, ask: &dyn Fn(Ops) -> Ops| {
        Shot::new(format!("{told} on {}", target.path), |ops| ask(ops.at(target)))
    };
    let (stateid, seqid) = (Stateid4::ANONYMOUS, 1);
    let (open_stateid, lock_stateid, locktype) = (stateid, stateid, NfsLockType4::Write);
    let (share_access, share_deny, offset, length) = (1, 0, 0, 10);
    let downgrade = OpenDowngrade4args { open_stateid, seqid, share_access, share_deny };
    let unlock = Locku4args { locktype, seqid, lock_stateid, offset, length };
    vec![
        shot("DELEGRETURN", &|ops| ops.op(op::DELEGRETURN, &stateid)),
        shot("CLOSE", &|ops| ops.op(op::CLOSE, &Close4args { seqid, open_stateid })),
        shot("OPEN_CONFIRM", &|ops| {
            ops.op(op::OPEN_CONFIRM, &OpenConfirm4args { open_stateid, seqid })
        }),
        shot("OPEN_DOWNGRADE", &|ops| ops.op(op::OPEN_DOWNGRADE, &downgrade)),
        shot("LOCKU", &|ops| ops.op(op::LOCKU, &unlock)),
        shot("OFFLOAD_STATUS", &|ops| ops.op(op::OFFLOAD_STATUS, &stateid)),
        shot("OFFLOAD_CANCEL", &|ops| ops.op(op::OFFLOAD_CANCEL, &stateid)),
    ]
}

/// All calls about a name that do not change it.
pub(crate) fn by_name(dir: &Target, name: &[u8]) -> Vec<Shot> {
    let shot = |told: &str, ask: &dyn Fn(Ops) -> Ops| {
        let told = format!("{told} {:?} in {}", String::from_utf8_lossy(name), dir.path);
        Shot::new(told, |ops| ask(ops.at(dir)))
    };
    vec![
        shot("LOOKUP", &|ops| ops.named(op::LOOKUP, name).look()),
        shot("SECINFO", &|ops| ops.named(op::SECINFO, name)),
        shot("SAVEFH, LOOKUP", &|ops| {
            ops.bare(op::SAVEFH).named(op::LOOKUP, name).bare(op::RESTOREFH).look()
        }),
    ]
}

/// LOOKUPs of an object from the root of the server.
pub(crate) fn from_the_top(target: &Target) -> Shot {
    Shot::new(format!("LOOKUP of /srv{}", target.path), |ops| {
        let names = target.path.split('/').filter(|name| !name.is_empty());
        let ops = ops.bare(op::PUTROOTFH).named(op::LOOKUP, b"srv");
        names.fold(ops, |ops, name| ops.named(op::LOOKUP, name.as_bytes())).look()
    })
}

/// Calls that list a directory from any cookie, with small and large counts.
pub(crate) fn listings(rng: &mut Rng, dir: &Target) -> Vec<Shot> {
    let last = dir.names.as_ref().map_or(0, |names| names.len() as u64 + 4);
    (0..=last)
        .map(|cookie| {
            let maxcount = *rng.pick(&[120, 700, 1500, 1 << 15]);
            listing(dir, cookie, (maxcount / 4, maxcount), all())
        })
        .chain((0..=last).map(|cookie| listing(dir, cookie, (0, 200), Bitmap4::EMPTY)))
        .collect()
}

/// Calls that list a whole directory at once.
pub(crate) fn whole_listings(dir: &Target) -> Vec<Shot> {
    vec![listing(dir, 0, (0, 1 << 18), all()), listing(dir, 0, (0, 1 << 18), Bitmap4::EMPTY)]
}

fn listing(dir: &Target, cookie: u64, (dircount, maxcount): (u32, u32), all: Bitmap4) -> Shot {
    let (cookieverf, attr_request) = ([0; 8], all);
    let args = Readdir4args { cookie, cookieverf, dircount, maxcount, attr_request };
    let told = format!("READDIR of {} from {cookie} on", dir.path);
    Shot::new(told, |ops| ops.at(dir).op(op::READDIR, &args))
}

/// Usually a name that existed at the beginning.
pub(crate) fn name_in(rng: &mut Rng, dir: &Target) -> Vec<u8> {
    match &dir.names {
        Some(names) if !names.is_empty() && !rng.one_in(4) => rng.pick(names).clone(),
        _ => odd_name(rng),
    }
}

pub(crate) fn odd_name(rng: &mut Rng) -> Vec<u8> {
    let names = [&b"."[..], b"..", b"n00", b"n03", b"new", b"newer", b"", b"a/b", &[b'x'; 256]];
    rng.pick(&names).to_vec()
}

/// A range of a file, with the anonymous stateid.
pub(crate) const fn range() -> Range4args {
    Range4args { stateid: Stateid4::ANONYMOUS, offset: 3, length: 9 }
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

fn handle_of(handle: &[u8]) -> NfsFh4<'_> {
    Opaque(handle)
}
