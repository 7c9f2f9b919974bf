//! The ways upward from a visible directory below a hidden one, for a caller that got its handle
//! earlier, and the ways down to objects.

use comity_proto::mount::{MountOk, Mountstat3};
use comity_proto::nfs3::{
    Diropargs3, Ftype3, Lookup3res, Nfsstat3, Readdir3args, Readdirplus3args, Result3, procedure,
};
use comity_xdr::{Decoder, Opaque};

use super::Hunt;
use super::gist::names;
use super::shot::Shot;
use super::twins::{Buried, Target, sealed};
use crate::world::encoded;

const DOT_DOT: Opaque<'static, 4096> = Opaque(b"..");
/// A count large enough for all entries.
const COUNT: u32 = 1 << 15;

impl Hunt {
    /// Looks upward from each buried directory: no reply reveals a hidden object, and no path leads
    /// to one. Returns the number of those directly below a hidden directory.
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

    /// MNT of a path finds the object that LOOKUPs find, name by name, or fails as they do.
    pub(super) fn descend(&self) {
        for target in &self.twins.targets {
            let mount = Shot::mount(&target.path);
            let mounted = by_mount(&self.first(&mount));
            let walked = self.walked(target);
            assert_eq!(mounted, walked, "seed {}: {}", self.seed, mount.told);
        }
    }

    /// The handle of an object by LOOKUPs from the root, or the status of the first that fails.
    fn walked(&self, target: &Target) -> Result<Vec<u8>, u32> {
        let mut at = sealed(&self.twins.targets[0].handles[0]);
        let mut is_directory = true;
        for name in target.path.split('/').filter(|name| !name.is_empty()) {
            let (dir, name) = (Opaque(&at[..]), Opaque(name.as_bytes()));
            let world = &self.twins.twins[0].world;
            let body = world.call(procedure::LOOKUP, &Diropargs3 { dir, name });
            match Decoder::whole::<Lookup3res<'_>>(&body).unwrap() {
                Result3::Ok(found) => {
                    let kind = found.obj_attributes.unwrap().ftype;
                    (at, is_directory) = (found.object.0.to_vec(), kind == Ftype3::Dir);
                }
                Result3::Fail(status, _) => return Err(status as u32),
            }
        }
        if is_directory { Ok(at) } else { Err(Nfsstat3::NotDir as u32) }
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

    /// Makes a call to the first server; its reply must contain no hidden handle.
    fn upward(&self, shot: &Shot) -> Vec<u8> {
        let body = self.first(shot);
        let (seed, told) = (self.seed, &shot.told);
        assert!(!self.twins.betrays(&body), "seed {seed}: {told} tells a hidden handle");
        body
    }

    fn first(&self, shot: &Shot) -> Vec<u8> {
        let world = &self.twins.twins[0].world;
        world.send(&world.record(shot.program, shot.procedure, &shot.arguments[0])).body
    }
}

/// The handle in a reply of MNT, or its status, whose numbers are those of NFS.
fn by_mount(body: &[u8]) -> Result<Vec<u8>, u32> {
    let mut decoder = Decoder::new(body);
    match decoder.value().unwrap() {
        Mountstat3::Ok => Ok(decoder.value::<MountOk<'_>>().unwrap().handle.0.to_vec()),
        status => Err(status as u32),
    }
}
