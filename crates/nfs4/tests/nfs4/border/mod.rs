//! Ids are mapped whenever they pass between clients and the file system, in owner strings and ACLs
//! as in numbers: a layer checks each id that reaches the file system, and each reply is searched
//! for ids of the server.

#[path = "../../../../nfs3/tests/nfs3/border/ground.rs"]
mod ground;
#[path = "../../../../nfs3/tests/nfs3/border/maps.rs"]
mod maps;
#[path = "../../../../nfs3/tests/nfs3/border/watch.rs"]
mod watch;

use comity_proto::nfs4::{
    CompoundHead, Create4args, Createtype4, Setattr4args, Stateid4, operation as op,
};
use comity_xdr::{Decoder, Encoder, Opaque};

use self::ground::{Ground, is_server_id, number};
use self::maps::{CLIENT, IDS};
use crate::attributes;
use crate::hunt::level::owners;
use crate::hunt::rng::Rng;
use crate::hunt::shot::{Shot, by_name, listings, questions};
use crate::hunt::twins::Target;
use crate::hunt::{changes, opens};
use crate::session::Session;
use crate::world::{World, set_clock};

const SEEDS: u64 = 60;
const CALLERS: usize = 3;
const CHANGES: usize = 60;

#[test]
fn no_reply_contains_a_server_id_and_no_unmapped_id_reaches_the_file_system() {
    let (mut plans, mut told) = (0, 0);
    for seed in 0..SEEDS {
        let mut rng = Rng::new(seed);
        set_clock(1);
        // The server refuses ambiguous maps; those are skipped.
        let Some(ground) = Ground::new(&mut rng) else { continue };
        plans += 1;
        told += Visit::new(ground).all(&mut rng);
    }
    assert!(plans > SEEDS / 4, "{plans} plans");
    assert!(told > 100 * plans, "{told} ids were shown: the search has met too few");
}

struct Visit {
    world: World,
    session: Session,
    maps: maps::Maps,
    targets: Vec<Target>,
}

impl Visit {
    fn new(Ground { plan, maps, targets }: Ground) -> Self {
        let world = World::of(plan);
        let session = Session::open(&world, 2);
        session.call_back(&world);
        Self { world, session, maps, targets }
    }

    /// Lets callers try everything; returns the number of ids that they were shown.
    fn all(mut self, rng: &mut Rng) -> u64 {
        let mut told = 0;
        for _ in 0..CALLERS {
            let (uid, gid) = (number(rng), number(rng));
            let gids: Vec<u32> = (0..rng.below(3)).map(|_| number(rng)).collect();
            self.world.act_as(uid, gid, &gids);
            for shot in self.shots(rng) {
                told += self.call(&shot, (uid, gid));
            }
        }
        told
    }

    fn shots(&self, rng: &mut Rng) -> Vec<Shot> {
        let mut shots = Vec::new();
        for target in &self.targets {
            shots.extend(questions(rng, target, &self.targets[0]));
            shots.extend(listings(rng, target));
            shots.extend(opens::by_handle(rng, target));
            for name in target.names.iter().flatten() {
                shots.extend(by_name(target, name));
            }
        }
        for _ in 0..CHANGES {
            shots.push(changes::change(rng, &self.targets, true));
            shots.push(given_away(rng, &self.targets));
        }
        shots
    }

    /// Makes a call and searches the reply; returns the number of the client's ids in it.
    fn call(&mut self, shot: &Shot, (uid, gid): (u32, u32)) -> u64 {
        let ops = &shot.operations[0];
        let mut call = Encoder::new();
        let operations = ops.asked.len() as u32 + 1;
        call.value(&CompoundHead { tag: Opaque(b""), minorversion: 2, operations });
        self.session.sequence(&mut call);
        call.raw(ops.call.bytes());
        let (reply, _) = self.world.compound(call.bytes());
        for word in reply.chunks_exact(4) {
            let word = u32::from_be_bytes(word.try_into().unwrap());
            assert!(!is_server_id(word), "{} holds {word} under {}", shot.told, self.maps);
        }
        let mut told = 0;
        for (is_group, owner) in owners(&reply) {
            let Ok(owner) = String::from_utf8(owner).unwrap().parse() else { continue };
            // The caller's own number reveals nothing to it.
            if is_server_id(owner) && owner != uid && owner != gid {
                let map = if is_group { &self.maps.groups } else { &self.maps.users };
                assert!(map.may_show(owner), "{}: {owner} under {}", shot.told, self.maps);
            }
            told += u64::from((CLIENT..CLIENT + 2 * IDS).contains(&owner));
        }
        told
    }
}

/// A call that sets an owner or an ACL of any ids, on an existing or a new file.
fn given_away(rng: &mut Rng, targets: &[Target]) -> Shot {
    let target = rng.pick(targets);
    let (one, other) = (number(rng), number(rng));
    let setting = match rng.below(4) {
        0 => format!("owner={one}"),
        1 => format!("owner_group={one}"),
        2 => format!("acl=A:0:16019f:OWNER@,A:0:120081:{one},A:40:120081:{other}"),
        _ => format!("acl=A:40:120081:{one},A:0:120081:EVERYONE@"),
    };
    let encoded = attributes::encode(&[&setting]);
    let attributes = Decoder::whole(&encoded).unwrap();
    if rng.one_in(2) {
        let args = Setattr4args { stateid: Stateid4::ANONYMOUS, obj_attributes: attributes };
        return Shot::new(format!("SETATTR {setting} of {}", target.path), |ops| {
            ops.at(target).op(op::SETATTR, &args).look()
        });
    }
    let objname = Opaque(&b"given"[..]);
    let args = Create4args { objtype: Createtype4::Dir, objname, createattrs: attributes };
    Shot::new(format!("CREATE with {setting} in {}", target.path), |ops| {
        ops.at(target).op(op::CREATE, &args).look().at(target).named(op::REMOVE, b"given")
    })
}
