//! The leak hunt in NFSv4: the whole reply to any call about hidden objects, by name or by handle,
//! is that of a server on which these objects do not exist. Trees, cloaks and exceptions are those
//! of the hunt in NFSv3.

pub(crate) mod changes;
mod climb;
pub(crate) mod coverage;
#[path = "../../../../nfs3/tests/nfs3/hunt/exception.rs"]
mod exception;
#[path = "../../../../nfs3/tests/nfs3/hunt/grants.rs"]
mod grants;
#[path = "../../../../nfs3/tests/nfs3/hunt/ground.rs"]
mod ground;
pub(crate) mod level;
pub(crate) mod opens;
#[path = "../../../../nfs3/tests/nfs3/hunt/rng.rs"]
pub(crate) mod rng;
#[path = "../../../../nfs3/tests/nfs3/hunt/rule.rs"]
mod rule;
pub(crate) mod shot;
#[path = "../../../../nfs3/tests/nfs3/hunt/tally.rs"]
mod tally;
#[path = "../../../../nfs3/tests/nfs3/hunt/twins.rs"]
pub(crate) mod twins;

use std::collections::BTreeSet;

use comity_proto::nfs4::{CompoundHead, Nfsstat4};
use comity_xdr::{Encoder, Opaque};

use self::changes::change;
use self::exception::Exception;
use self::ground::Ground;
use self::level::{gist, level};
use self::rng::Rng;
use self::shot::{
    Shot, by_name, by_stateid, from_the_top, listings, odd_name, questions, whole_listings,
};
use self::tally::Tally;
use self::twins::{Identified, Target, Twins};
use crate::session::Session;
use crate::world::set_clock;

const SEEDS: u64 = 90;
const SEEDS_BY_KEY: u64 = 60;
const SEEDS_ON_DISK: u64 = 40;
/// The number of times that a call is repeated while it is answered with DELAY.
const TRIES: usize = 20;
const CHANGES: usize = 200;

#[test]
fn hidden_objects_cannot_be_distinguished_from_missing_ones() {
    hunt(SEEDS, || Ground::Memory, Identified::ByIds);
}

#[test]
fn on_a_real_file_system_statuses_and_listings_are_the_same_too() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: needs root");
        return;
    }
    hunt(SEEDS_ON_DISK, Ground::disk, Identified::ByIds);
}

#[test]
fn a_key_learns_nothing_about_objects_that_were_not_granted_to_it() {
    hunt(SEEDS_BY_KEY, || Ground::Memory, Identified::ByKey);
}

fn hunt(seeds: u64, ground: impl Fn() -> Ground, identified: Identified) {
    let (mut met, mut asked) = (Tally::default(), BTreeSet::new());
    for seed in 0..seeds {
        let mut hunt = Hunt::new(seed, ground(), identified);
        hunt.ask();
        met.buried += hunt.climb();
        met.excepted += u64::from(hunt.change());
        met.hidden += hunt.twins.hidden;
        asked.extend(hunt.asked);
    }
    coverage::assert_whole(&asked);
    met.assert_rich(seeds, identified);
}

struct Hunt {
    seed: u64,
    minor: u32,
    rng: Rng,
    twins: Twins,
    sessions: Option<[Session; 2]>,
    now: i64,
    /// The operations that were sent.
    asked: BTreeSet<u32>,
}

impl Hunt {
    fn new(seed: u64, ground: Ground, identified: Identified) -> Self {
        set_clock(1);
        let mut rng = Rng::new(seed);
        let twins = Twins::new(&mut rng, ground, identified);
        let minor = [2, 1, 2, 0][seed as usize % 4];
        let open = || twins.twins.each_ref().map(|twin| Session::open(&twin.world, minor));
        let sessions = (minor > 0).then(open);
        Self { seed, minor, rng, twins, sessions, now: 2, asked: BTreeSet::new() }
    }

    /// Makes all calls that change nothing, about all objects.
    fn ask(&mut self) {
        for target in self.twins.targets.clone() {
            for shot in self.shots(&target) {
                let outcome = self.shoot(&shot);
                assert!(outcome.is_same(), "{}", self.told(&shot, &outcome));
            }
        }
    }

    fn shots(&mut self, target: &Target) -> Vec<Shot> {
        let (rng, top) = (&mut self.rng, &self.twins.targets[0]);
        let mut shots = questions(rng, target, top);
        shots.extend(by_stateid(target));
        shots.push(from_the_top(target));
        let names = target.names.iter().flatten().cloned();
        for name in names.chain((0..2).map(|_| odd_name(rng))).collect::<Vec<_>>() {
            shots.extend(by_name(target, &name));
            if self.minor > 0 {
                shots.extend(opens::by_name(rng, target, &name));
            }
        }
        if self.minor > 0 {
            shots.extend(opens::by_handle(rng, target));
        }
        shots.extend(match self.twins.are_on_disk() {
            true => whole_listings(target),
            false => listings(rng, target),
        });
        shots
    }

    /// Makes random changes until one meets an exception; returns whether one did.
    fn change(&mut self) -> bool {
        for _ in 0..CHANGES {
            let shot = change(&mut self.rng, &self.twins.targets, self.minor > 0);
            let cannot_be_hidden = self.exception(&shot);
            let outcome = self.shoot(&shot);
            if outcome.is_same() {
                continue;
            }
            let status = outcome.status();
            let told = self.told(&shot, &outcome);
            assert_eq!(cannot_be_hidden.map(|status| status as u32), Some(status), "{told}");
            return true;
        }
        false
    }

    /// The status of a call that meets an exception.
    fn exception(&self, shot: &Shot) -> Option<Nfsstat4> {
        match self.twins.exception(shot.onto.as_ref(), shot.emptied.as_ref())? {
            Exception::OntoHidden => Some(Nfsstat4::Exist),
            Exception::OnlyHidden => Some(Nfsstat4::NotEmpty),
        }
    }

    /// Makes a call to both servers.
    fn shoot(&mut self, shot: &Shot) -> Outcome {
        self.now += 1;
        self.asked.extend(&shot.operations[0].asked);
        let no_client_cache = self.twins.options.contains("no_client_cache");
        let answers = [0, 1].map(|side| {
            set_clock(self.now);
            let reply = self.answer_at_last(side, shot);
            match self.twins.are_on_disk() {
                true => gist(&reply),
                false => level(&reply, no_client_cache),
            }
        });
        Outcome(answers)
    }

    /// Repeats a call while it is answered with DELAY, as a client does. On a disk, DELAY is the
    /// answer for a handle while its object is being removed.
    fn answer_at_last(&mut self, side: usize, shot: &Shot) -> Vec<u8> {
        let later = (Nfsstat4::Delay as u32).to_be_bytes();
        let tries = if self.twins.are_on_disk() { TRIES } else { 1 };
        let mut replies = (0..tries).map(|_| self.answer(side, shot));
        let first = replies.next().unwrap();
        if !first.starts_with(&later) {
            return first;
        }
        replies.find(|reply| !reply.starts_with(&later)).unwrap_or(first)
    }

    fn answer(&mut self, side: usize, shot: &Shot) -> Vec<u8> {
        let ops = &shot.operations[side];
        let mut call = Encoder::new();
        let operations = ops.asked.len() as u32 + u32::from(self.minor > 0);
        call.value(&CompoundHead { tag: Opaque(b""), minorversion: self.minor, operations });
        if let Some(sessions) = &mut self.sessions {
            sessions[side].sequence(&mut call);
        }
        call.raw(ops.call.bytes());
        self.twins.twins[side].world.compound(call.bytes()).0
    }

    fn told(&self, shot: &Shot, outcome: &Outcome) -> String {
        let Self { seed, minor, twins, .. } = self;
        let Twins { options, caller, .. } = twins;
        let [one, other] = &outcome.0;
        let asked = format!("seed {seed}, 4.{minor}: {} by {caller:?} under {options}", shot.told);
        format!("{asked}:\n{one:x?}\n{other:x?}")
    }
}

/// The replies of both servers.
struct Outcome([Vec<u8>; 2]);

impl Outcome {
    fn is_same(&self) -> bool {
        self.0[0] == self.0[1]
    }

    /// The status in the reply of the first server.
    fn status(&self) -> u32 {
        u32::from_be_bytes(self.0[0][..4].try_into().unwrap())
    }
}
