//! Ids are mapped whenever they pass between clients and the file system: a layer checks each id
//! that reaches the file system, and each reply is searched for ids of the server.

mod ground;
mod maps;
mod watch;

use std::sync::Arc;

use comity_backend::{Memory, MemoryOptions};
use comity_proto::nfs3::{
    Create3args, Createhow3, Diropargs3, Nfsstat3, Sattr3, Setattr3args, procedure,
};
use comity_vfs::{Fs, SetAttr, Uid};
use comity_xdr::Opaque;

use self::ground::{Ground, is_server_id, number, planned};
use self::maps::{CLIENT, IDS, Map, Maps};
use crate::hunt::level::level;
use crate::hunt::rng::Rng;
use crate::hunt::shot::{Shot, change, listings, questions};
use crate::hunt::twins::{EXPORT, Target, planted, sealed};
use crate::world::{World, decoded, set_clock};

const SEEDS: u64 = 80;
const CALLERS: usize = 4;
const CHANGES: usize = 60;

#[test]
fn no_reply_contains_a_server_id_and_no_unmapped_id_reaches_the_file_system() {
    let (mut plans, mut told) = (0, 0);
    for seed in 0..SEEDS {
        let mut rng = Rng::new(seed);
        // The server refuses ambiguous maps; those are skipped.
        let Some(site) = MappedServer::new(&mut rng) else { continue };
        plans += 1;
        for _ in 0..CALLERS {
            told += site.visit(&mut rng);
        }
    }
    assert!(plans > SEEDS / 4, "{plans} plans");
    assert!(told > 100 * plans, "{told} ids were shown: the search is for nothing");
}

struct MappedServer {
    world: World,
    maps: Maps,
    targets: Vec<Target>,
}

impl MappedServer {
    fn new(rng: &mut Rng) -> Option<Self> {
        set_clock(1);
        let Ground { plan, maps, targets } = Ground::new(rng)?;
        Some(Self { world: World::of(plan), maps, targets })
    }

    /// Tries every operation as one caller; returns the number of ids that the replies showed.
    fn visit(&self, rng: &mut Rng) -> u64 {
        let (uid, gid) = (number(rng), number(rng));
        let gids: Vec<u32> = (0..rng.below(3)).map(|_| number(rng)).collect();
        self.world.act_as(uid, gid, &gids);
        let owners: Vec<u32> = (0..6).map(|_| number(rng)).chain([u32::MAX]).collect();
        let mut told = 0;
        for target in &self.targets {
            for shot in questions(rng, target).into_iter().chain(listings(rng, target)) {
                told += self.call(&shot, (uid, gid));
            }
        }
        for _ in 0..CHANGES {
            told += self.call(&change(rng, &self.targets, &owners), (uid, gid));
        }
        told
    }

    /// Makes a call and searches the reply; returns the number of the client's ids in it.
    fn call(&self, shot: &Shot, (uid, gid): (u32, u32)) -> u64 {
        let record = self.world.record(shot.program, shot.procedure, &shot.arguments[0]);
        let body = level(shot.procedure, &self.world.send(&record).body, false);
        let word = |word: &[u8]| u32::from_be_bytes(word.try_into().unwrap());
        let words: Vec<u32> = body.chunks_exact(4).map(word).collect();
        let mut told = 0;
        for (at, &word) in words.iter().enumerate() {
            // The caller's own number reveals nothing to it.
            if is_server_id(word) && word != uid && word != gid {
                let may = self.map_at(&words, at).is_some_and(|map| map.may_show(word));
                assert!(may, "{} holds {word} at {at} under {}", shot.told, self.maps);
            }
            told += u64::from((CLIENT..CLIENT + 2 * IDS).contains(&word));
        }
        told
    }

    /// Returns the map of a word if the word is the owner or the group of a fattr3. These are found
    /// by their distance to the fsid.
    fn map_at(&self, words: &[u32], at: usize) -> Option<&Map> {
        let is_fsid = |ahead: usize| words.get(at + ahead..at + ahead + 2) == Some(&[EXPORT; 2]);
        let group = || is_fsid(7).then_some(&self.maps.groups);
        is_fsid(8).then_some(&self.maps.users).or_else(group)
    }
}

/// An id without a client id in the domain cannot be made an owner, by any call that sets one.
#[test]
fn setting_an_owner_outside_the_domain_is_perm_and_changes_nothing() {
    let fs = Arc::new(Memory::new(MemoryOptions::default()).unwrap());
    let set = SetAttr { uid: Some(Uid::new(51_005)), ..SetAttr::default() };
    let (file, root) = (sealed(&planted(&*fs, &fs.root(), "f", 5, &set)), sealed(&fs.root()));
    let maps = "no_root_squash,range_map_uid=0:0,range_map_uid=1000-1999:51000-51999";
    let text = format!("/srv *(rw,insecure,fsid={EXPORT},{maps})\n");
    let world = World::of(planned(fs, text).unwrap());
    let wanted = |uid| Sattr3 { uid: Some(uid), ..Sattr3::default() };
    let status = |body: Vec<u8>| decoded::<Nfsstat3>(&body[..4]);
    for uid in [2000, 51_006, 65_534] {
        let new_attributes = wanted(uid);
        let set = Setattr3args { object: Opaque(&file), new_attributes, guard: None };
        assert_eq!(status(world.call(procedure::SETATTR, &set)), Nfsstat3::Perm, "{uid}");
        let place = Diropargs3 { dir: Opaque(&root), name: Opaque(b"new") };
        let create = Create3args { place, how: Createhow3::Guarded(wanted(uid)) };
        assert_eq!(status(world.call(procedure::CREATE, &create)), Nfsstat3::Perm, "{uid}");
    }
    let new_attributes = wanted(1006);
    let set = Setattr3args { object: Opaque(&file), new_attributes, guard: None };
    assert_eq!(status(world.call(procedure::SETATTR, &set)), Nfsstat3::Ok);
}
