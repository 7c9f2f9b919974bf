//! The ways upward from a visible directory below a hidden one, for a caller that got its handle
//! earlier.

use comity_proto::nfs4::{
    Bitmap4, CompoundResultHead, Create4args, Createtype4, Nfsstat4, Readdir4args, operation as op,
};
use comity_xdr::{Decoder, Opaque};

use super::Hunt;
use super::shot::{Ops, Shot, from_the_top};
use super::twins::{Buried, Target};
use crate::attributes;

/// `SECINFO_STYLE4_PARENT`.
const PARENT: u32 = 1;

impl Hunt {
    /// Looks upward from each buried directory, and checks that no reply reveals a hidden object
    /// and that no path leads to one. Returns the number of those directly below a hidden
    /// directory.
    pub(super) fn climb(&mut self) -> usize {
        let buried = self.twins.buried.clone();
        for one in &buried {
            let Buried { target, under_hidden } = one;
            let path = from_the_top(target);
            let outcome = self.shoot(&path);
            assert!(outcome.is_same(), "{}", self.told(&path, &outcome));
            for shot in self.upward(one) {
                // Both servers are asked, so that the sequence numbers of their sessions stay the
                // same.
                let [reply, _] = [0, 1].map(|side| self.answer(side, &shot));
                let head: CompoundResultHead<'_> = Decoder::new(&reply).value().unwrap();
                let told = format!("seed {}: {}: {:?}", self.seed, shot.told, head.status);
                assert!(!self.twins.betrays(&reply), "{told} tells a hidden handle");
                let refused = [Nfsstat4::NoEnt, Nfsstat4::Access].contains(&head.status);
                assert!(refused || !under_hidden, "{told}");
            }
        }
        buried.iter().filter(|one| one.under_hidden).count()
    }

    fn upward(&self, one: &Buried) -> Vec<Shot> {
        let mut shots = looks(&one.target);
        if self.minor > 0 {
            shots.push(shot("SECINFO_NO_NAME", &one.target, &|ops| {
                ops.op(op::SECINFO_NO_NAME, &PARENT)
            }));
        }
        if one.under_hidden {
            shots.push(make(&one.target));
        }
        shots
    }
}

/// All calls about the parent directory that do not change it.
fn looks(target: &Target) -> Vec<Shot> {
    let (cookie, cookieverf, attr_request) = (0, [0; 8], Bitmap4::EMPTY);
    let (dircount, maxcount) = (0, 1 << 15);
    let list = Readdir4args { cookie, cookieverf, dircount, maxcount, attr_request };
    let shot = |told: &str, ask: &dyn Fn(Ops) -> Ops| {
        shot(told, target, &|ops| ask(ops.bare(op::LOOKUPP)))
    };
    vec![
        shot("LOOKUPP", &Ops::look),
        shot("LOOKUPP", &|ops| ops.bare(op::LOOKUPP).look()),
        shot("READDIR", &|ops| ops.op(op::READDIR, &list)),
        shot("LOOKUP", &|ops| ops.named(op::LOOKUP, b"n00").look()),
        shot("RESTOREFH", &|ops| ops.bare(op::SAVEFH).bare(op::RESTOREFH).look()),
    ]
}

/// A call that makes a directory in the parent directory.
fn make(target: &Target) -> Shot {
    let encoded = attributes::encode(&[]);
    let createattrs = Decoder::whole(&encoded).unwrap();
    let (objtype, objname) = (Createtype4::Dir, Opaque(&b"climbed"[..]));
    let create = Create4args { objtype, objname, createattrs };
    shot("CREATE", target, &|ops| ops.bare(op::LOOKUPP).op(op::CREATE, &create))
}

fn shot(told: &str, target: &Target, ask: &dyn Fn(Ops) -> Ops) -> Shot {
    Shot::new(format!("{told} above {}", target.path), |ops| ask(ops.at(target)))
}
