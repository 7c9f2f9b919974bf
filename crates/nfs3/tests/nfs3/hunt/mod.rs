//! The leak hunt: the whole reply to any call about hidden objects, by name or by handle, is that
//! of a server on which these objects do not exist. The comparison leaves out only the traces that
//! docs/semantics.md says cannot be hidden.

mod climb;
pub(crate) mod coverage;
mod exception;
mod gist;
mod grants;
mod ground;
pub(crate) mod level;
mod locks;
mod log;
pub(crate) mod rng;
mod rule;
pub(crate) mod shot;
mod tally;
pub(crate) mod twins;

use std::collections::BTreeSet;

use comity_nfs3::Message;
use comity_proto::nfs3::{self, Nfsstat3, procedure};
use comity_proto::{mount, nlm};

use self::exception::Exception;
use self::gist::gist;
use self::ground::Ground;
use self::level::level;
use self::locks::{hold, locks};
use self::log::Log;
use self::rng::Rng;
use self::shot::{Shot, change, listings, questions, whole_listings};
use self::tally::Tally;
use self::twins::{Identified, OBJECTS, Twins};
use crate::world::{Reply, set_clock};

const SEEDS: u64 = 200;
const SEEDS_BY_KEY: u64 = 100;
const SEEDS_ON_DISK: u64 = 40;
const CHANGES: usize = 150;
/// The number of times that a call is repeated while it is answered with JUKEBOX.
const TRIES: usize = 100;
/// Ids that clients try to make owners and groups: some of them mapped, some not, and nobody.
const OWNERS: [u32; 7] = [100, 101, 104, 200, 204, 7, u32::MAX];

#[test]
fn on_a_real_file_system_statuses_and_listings_are_the_same_too() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: needs root");
        return;
    }
    let log = Log::default();
    let to_log = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::INFO)
        .with_writer(log.clone())
        .finish();
    tracing::subscriber::with_default(to_log, || {
        tracing::info!("the hunt begins");
        hunt(SEEDS_ON_DISK, Ground::disk, Identified::ByIds);
    });
    let log = log.text();
    assert!(log.contains("the hunt begins"));
    let named = (0..OBJECTS).flat_map(|n| [format!("n{n:02}"), format!("l{n:02}")]);
    named.for_each(|name| assert!(!log.contains(&name), "{name} stands in the log: {log}"));
}

#[test]
fn hidden_objects_cannot_be_distinguished_from_missing_ones() {
    hunt(SEEDS, || Ground::Memory, Identified::ByIds);
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
        hunt.descend();
        met.excepted += u64::from(hunt.change());
        met.hidden += hunt.twins.hidden;
        asked.extend(hunt.asked);
    }
    coverage::assert_whole(&asked);
    met.assert_rich(seeds, identified);
}

struct Hunt {
    seed: u64,
    rng: Rng,
    twins: Twins,
    now: i64,
    /// All programs and procedures that were called.
    asked: BTreeSet<(u32, u32)>,
}

impl Hunt {
    fn new(seed: u64, ground: Ground, identified: Identified) -> Self {
        set_clock(1);
        let mut rng = Rng::new(seed);
        let twins = Twins::new(&mut rng, ground, identified);
        hold(&twins);
        Self { seed, rng, twins, now: 2, asked: BTreeSet::new() }
    }

    /// Makes all calls that change nothing, about all objects.
    fn ask(&mut self) {
        for target in self.twins.targets.clone() {
            let mut shots = questions(&mut self.rng, &target);
            shots.extend(match self.twins.are_on_disk() {
                true => whole_listings(&target),
                false => listings(&mut self.rng, &target),
            });
            shots.extend(locks(&target));
            for shot in shots {
                let outcome = self.shoot(&shot);
                assert!(outcome.is_same(), "{}", self.told(&shot, &outcome));
            }
        }
    }

    /// Makes random changes until one meets an exception; returns whether one did.
    fn change(&mut self) -> bool {
        for _ in 0..CHANGES {
            let shot = change(&mut self.rng, &self.twins.targets, &OWNERS);
            let cannot_be_hidden = self.exception(&shot);
            let outcome = self.shoot(&shot);
            if outcome.is_same() {
                continue;
            }
            let statuses = outcome.statuses();
            let told = self.told(&shot, &outcome);
            assert_eq!(cannot_be_hidden.map(|status| status as u32), Some(statuses[0]), "{told}");
            return true;
        }
        false
    }

    /// The status of a call that meets an exception.
    fn exception(&self, shot: &Shot) -> Option<Nfsstat3> {
        match self.twins.exception(shot.onto.as_ref(), shot.emptied.as_ref())? {
            Exception::OntoHidden => Some(Nfsstat3::Exist),
            Exception::OnlyHidden => Some(Nfsstat3::NotEmpty),
        }
    }

    /// Makes a call to both servers.
    fn shoot(&mut self, shot: &Shot) -> Outcome {
        self.now += 1;
        self.asked.insert((shot.program, shot.procedure));
        let nocache = self.twins.options.contains("no_client_cache");
        let answer = |side: usize| {
            set_clock(self.now);
            let world = &self.twins.twins[side].world;
            let record = || world.record(shot.program, shot.procedure, &shot.arguments[side]);
            let reply = patiently(shot.program, || world.send(&record()));
            let level = match shot.program {
                nlm::PROGRAM => [reply.body, told(&world.messages())].concat(),
                mount::PROGRAM if shot.procedure != mount::procedure::MNT => reply.body,
                _ if self.twins.are_on_disk() => gist(shot.procedure, &reply.body),
                nfs3::PROGRAM => level(shot.procedure, &reply.body, nocache),
                _ => level(procedure::NULL, &reply.body, nocache),
            };
            (reply.verdict, level)
        };
        Outcome([answer(0), answer(1)])
    }

    fn told(&self, shot: &Shot, outcome: &Outcome) -> String {
        let Self { seed, twins, .. } = self;
        let Twins { options, caller, .. } = twins;
        let [one, other] = &outcome.0;
        format!("seed {seed}: {} by {caller:?} under {options}:\n{one:?}\n{other:?}", shot.told)
    }
}

/// Repeats a call while it is answered with JUKEBOX, as a client does: a handle whose object is
/// just being removed has this answer.
fn patiently(program: u32, ask: impl Fn() -> Reply) -> Reply {
    let later = (Nfsstat3::Jukebox as u32).to_be_bytes();
    let is_later = |reply: &Reply| program == nfs3::PROGRAM && reply.body.starts_with(&later);
    let mut tries = (0..TRIES).map(|_| ask());
    let answered = tries.find(|reply| !is_later(reply));
    answered.unwrap_or_else(|| panic!("{TRIES} times told to come again"))
}

/// The replies of the lock manager that are calls to the client.
fn told(messages: &[Message]) -> Vec<u8> {
    messages.iter().flat_map(|message| message.arguments.clone()).collect()
}

/// The replies of both servers: the verdict of RPC and the body.
struct Outcome([((u32, u32), Vec<u8>); 2]);

impl Outcome {
    fn is_same(&self) -> bool {
        self.0[0] == self.0[1]
    }

    fn statuses(&self) -> [u32; 2] {
        let status = |body: &[u8]| u32::from_be_bytes(body[..4].try_into().unwrap());
        self.0.each_ref().map(|(_, body)| status(body))
    }
}
