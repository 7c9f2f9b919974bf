//! Random operations that change something, or fail to.

use comity_proto::nfs4::{
    Clone4args, Copy4args, Create4args, Createtype4, Rename4args, Setattr4args, Setxattr4args,
    SetxattrOption4, Specdata4, StableHow4, Stateid4, Write4args, operation as op,
};
use comity_xdr::{Counted, Decoder, Opaque};

use super::opens;
use super::rng::Rng;
use super::shot::{Shot, name_in, range};
use super::twins::Target;
use crate::attributes;

/// The attributes that clients set, each in one of this number of cases. The owners are mapped ids,
/// unmapped ids, and names of no user.
const SETTINGS: [(usize, &[&str]); 5] = [
    (2, &["mode=600", "mode=755", "mode=070", "mode=2770"]),
    (6, &["owner=100", "owner=101", "owner=104", "owner=7", "owner=4294967295", "owner=x@y"]),
    (6, &["owner_group=200", "owner_group=204", "owner_group=7", "owner_group=4294967295"]),
    (4, &["size=0", "size=3"]),
    (4, &["time_modify_set=9.1", "time_modify_set=9.1000000000"]),
];
const ACLS: [&str; 3] = ["acl=A:0:16019f:OWNER@", "acl=A:0:120081:101", "acl=A:0:1:7"];

/// A random change. OPEN is among them only if `opens`, because it needs a session.
pub(crate) fn change(rng: &mut Rng, targets: &[Target], opens: bool) -> Shot {
    let (one, other) = (rng.pick(targets), rng.pick(targets));
    let (name, new) = (name_in(rng, one), name_in(rng, other));
    match rng.below(13) {
        0 | 1 => {
            Shot::new(told("REMOVE", one, &name), |ops| ops.at(one).named(op::REMOVE, &name).look())
                .emptying(one, &name)
        }
        2 | 3 => renamed((one, &name), (other, &new)),
        4 => Shot::new(format!("{} of {}", told("LINK", other, &new), one.path), |ops| {
            ops.at(one).bare(op::SAVEFH).at(other).named(op::LINK, &new).look()
        })
        .onto(other, &new),
        5 => set(rng, one),
        6 => of_data(rng, one, other),
        7 => xattr(rng, one),
        8..11 if opens => {
            let settings = settings(rng);
            opens::made(rng, other, &new, &settings)
        }
        _ => made(rng, other, &new),
    }
}

fn told(what: &str, dir: &Target, name: &[u8]) -> String {
    format!("{what} {:?} in {}", String::from_utf8_lossy(name), dir.path)
}

fn renamed((source, old): (&Target, &[u8]), (target, new): (&Target, &[u8])) -> Shot {
    let args = Rename4args { oldname: Opaque(old), newname: Opaque(new) };
    let told = format!("{} to {}", told("RENAME", source, old), told("", target, new));
    Shot::new(told, |ops| ops.at(source).bare(op::SAVEFH).at(target).op(op::RENAME, &args).look())
        .onto(target, new)
        .emptying(target, new)
}

fn made(rng: &mut Rng, dir: &Target, name: &[u8]) -> Shot {
    let device = Specdata4 { major: 1, minor: 3 };
    let objtype = *rng.pick(&[
        Createtype4::Dir,
        Createtype4::Dir,
        Createtype4::Lnk(Opaque(b"n01")),
        Createtype4::Fifo,
        Createtype4::Sock,
        Createtype4::Chr(device),
        Createtype4::Reg,
    ]);
    let encoded = attributes::encode(&settings(rng));
    let createattrs = Decoder::whole(&encoded).unwrap();
    let args = Create4args { objtype, objname: Opaque(name), createattrs };
    let told = format!("{} {objtype:?}", told("CREATE", dir, name));
    Shot::new(told, |ops| ops.at(dir).op(op::CREATE, &args).look()).onto(dir, name)
}

fn set(rng: &mut Rng, target: &Target) -> Shot {
    let mut settings = settings(rng);
    if rng.one_in(4) {
        settings.push(*rng.pick(&ACLS));
        settings.retain(|one| !one.starts_with("mode"));
    }
    let encoded = attributes::encode(&settings);
    let obj_attributes = Decoder::whole(&encoded).unwrap();
    let args = Setattr4args { stateid: Stateid4::ANONYMOUS, obj_attributes };
    let told = format!("SETATTR {settings:?} of {}", target.path);
    Shot::new(told, |ops| ops.at(target).op(op::SETATTR, &args).look())
}

fn of_data(rng: &mut Rng, one: &Target, other: &Target) -> Shot {
    let (stateid, stable, data) = (Stateid4::ANONYMOUS, StableHow4::Unstable, Opaque(b"other"));
    match rng.below(5) {
        0 => Shot::new(format!("ALLOCATE in {}", one.path), |ops| {
            ops.at(one).op(op::ALLOCATE, &range())
        }),
        1 => Shot::new(format!("DEALLOCATE in {}", one.path), |ops| {
            ops.at(one).op(op::DEALLOCATE, &range())
        }),
        2 => copied(one, other),
        3 => cloned(one, other),
        _ => Shot::new(format!("WRITE to {}", one.path), |ops| {
            ops.at(one).op(op::WRITE, &Write4args { stateid, offset: 3, stable, data })
        }),
    }
}

fn copied(from: &Target, to: &Target) -> Shot {
    let args = Copy4args {
        src_stateid: Stateid4::ANONYMOUS,
        dst_stateid: Stateid4::ANONYMOUS,
        src_offset: 0,
        dst_offset: 1,
        count: 0,
        consecutive: true,
        synchronous: true,
        source_server: Counted(Vec::new()),
    };
    Shot::new(format!("COPY of {} to {}", from.path, to.path), |ops| {
        ops.at(from).bare(op::SAVEFH).at(to).op(op::COPY, &args).look()
    })
}

fn cloned(from: &Target, to: &Target) -> Shot {
    let args = Clone4args {
        src_stateid: Stateid4::ANONYMOUS,
        dst_stateid: Stateid4::ANONYMOUS,
        src_offset: 0,
        dst_offset: 0,
        count: 0,
    };
    Shot::new(format!("CLONE of {} to {}", from.path, to.path), |ops| {
        ops.at(from).bare(op::SAVEFH).at(to).op(op::CLONE, &args).look()
    })
}

fn xattr(rng: &mut Rng, target: &Target) -> Shot {
    let option = *rng.pick(&[SetxattrOption4::Either, SetxattrOption4::Create]);
    let args = Setxattr4args { option, key: Opaque(b"user.mark"), value: Opaque(b"red") };
    if rng.one_in(4) {
        return Shot::new(format!("REMOVEXATTR of {}", target.path), |ops| {
            ops.at(target).named(op::REMOVEXATTR, b"user.mark")
        });
    }
    Shot::new(format!("SETXATTR {option:?} of {}", target.path), |ops| {
        ops.at(target).op(op::SETXATTR, &args).look()
    })
}

/// Sometimes sets an owner that the caller may not set, or that no id stands for.
fn settings(rng: &mut Rng) -> Vec<&'static str> {
    let mut settings = Vec::new();
    for (chance, values) in SETTINGS {
        if rng.one_in(chance) {
            settings.push(*rng.pick(values));
        }
    }
    settings
}
