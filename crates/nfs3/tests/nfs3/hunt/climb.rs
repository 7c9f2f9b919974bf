//! The ways upward from a visible directory below a hidden one, for a caller who has its handle
//! from former times.

use comity_proto::nfs3::{Diropargs3, Nfsstat3, Readdir3args, Readdirplus3args, procedure};
use comity_xdr::{Decoder, Opaque};

use super::Hunt;
use super::gist::names;
use super::shot::Shot;
use super::twins::Buried;
use crate::world::encoded;

const DOT_DOT: Opaque<'static, 4096> = Opaque(b"..");
/// Room for all entries.
const COUNT: u32 = 1 << 15;

impl Hunt {
    /// Goes upward from every buried directory: nothing hidden is told of, and no path leads there.
    /// Counts those directly below a hidden one.
    pub(super) fn climb(&mut self) -> usize {
        let buried = self.twins.buried.clone();
        for one in &buried {
            let path = Shot::mount(&one.target.path);
            let outcome = self.shoot(&path);
            assert!(outcome.is_same(), "{}", self.told(&path, &outcome));
            self.look_up(one);
            for plus in [false, true] {
                (0..2).for_each(|cookie| self.list(one, (cookie, plus)));
            }
        }
        buried.iter().filter(|one| one.under_hidden).count()
    }

    fn look_up(&self, one: &Buried) {
        let shot = Shot::on(procedure::LOOKUP, &one.target, |dir| {
            encoded(&Diropargs3 { dir: Opaque(dir), name: DOT_DOT })
        });
        let body = self.upward(&shot);
        let status: Nfsstat3 = Decoder::new(&body).value().unwrap();
        let refused = [Nfsstat3::NoEnt, Nfsstat3::Acces].contains(&status);
        let path = &one.target.path;
        assert!(refused || !one.under_hidden, "seed {}: {status:?} above {path}", self.seed);
    }

    fn list(&self, one: &Buried, (cookie, plus): (u64, bool)) {
        let (called, cookieverf) = match plus {
            true => (procedure::READDIRPLUS, [0; 8]),
            false => (procedure::READDIR, [0; 8]),
        };
        let shot = Shot::on(called, &one.target, |dir| match plus {
            true => {
                let (dir, dircount, maxcount) = (Opaque(dir), COUNT, COUNT);
                encoded(&Readdirplus3args { dir, cookie, cookieverf, dircount, maxcount })
            }
            false => encoded(&Readdir3args { dir: Opaque(dir), cookie, cookieverf, count: COUNT }),
        });
        let names = names(&self.upward(&shot), plus);
        let told = names.contains(&b"..".to_vec());
        let path = &one.target.path;
        assert!(!(told && one.under_hidden), "seed {}: `..` of {path} is listed", self.seed);
    }

    /// What the first server answers.
    fn upward(&self, shot: &Shot) -> Vec<u8> {
        let world = &self.twins.twins[0].world;
        let body = world.send(&world.record(shot.program, shot.procedure, &shot.arguments[0])).body;
        let (seed, told) = (self.seed, &shot.told);
        assert!(!self.twins.betrays(&body), "seed {seed}: {told} tells a hidden handle");
        body
    }
}
