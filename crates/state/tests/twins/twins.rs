//! Two engines that get the same requests. The state of one of them moves.

use std::sync::Arc;

use comity_state::{
    Census, Claim, DelegationWish, Effect, Engine, ExportedVolume, FileKey, HostLock,
    LockRequestKind, LockType, Open, Recovered, Share,
};

use crate::person::Person;
use crate::side::{Side, Time, VOLUME, key, settings};
use crate::step::{HOST, PEOPLE, Step};

const ELSEWHERE: u64 = 2;

/// The engines to which the state moves.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// They have the same secret and boot number. Clients may be forgotten: they get the same
    /// clientids in both engines afterwards.
    SameSecret,
    /// They have other secrets and boot numbers. All clients renew their leases in time.
    OtherSecrets,
    /// The state moves there and back between two engines. All clients renew their leases in time,
    /// but not at the engine that they have left.
    ThereAndBack,
}

pub(super) struct Twins {
    stays: Side,
    moves: Side,
    /// The engine from which the state has come last.
    left: Option<Engine>,
    next: Next,
    moved: u32,
    lives: [u8; PEOPLE],
}

impl Twins {
    pub(super) fn new(next: Next) -> Self {
        let (stays, moves) = (Side::new(), Side::new());
        Self { stays, moves, left: None, next, moved: 0, lives: [0; PEOPLE] }
    }

    pub(super) fn perform(&mut self, step: Step) {
        let step = match step {
            Step::Ahead { seconds } if self.next != Next::SameSecret => {
                Step::Ahead { seconds: seconds.min(80) }
            }
            step => step,
        };
        (0..PEOPLE).for_each(|who| self.prepare(who, step));
        if matches!(step, Step::Move) {
            self.move_state();
        }
        assert_eq!(self.stays.perform(step), self.moves.perform(step), "{step:?}");
        assert_eq!(state_of(&self.stays), state_of(&self.moves), "{step:?}");
        // The export may have removed owners that are gone from a queue.
        assert_eq!(self.stays.effects(), self.moves.effects(), "{step:?}");
    }

    /// Introduces a client again that both engines have forgotten, or renews its lease.
    fn prepare(&mut self, who: usize, step: Step) {
        let lost = self.stays.has_lost(who);
        assert_eq!(lost, self.moves.has_lost(who), "client {who} is lost");
        if lost {
            self.lives[who] += 1;
            self.stays.arrive(who, self.lives[who]);
            self.moves.arrive(who, self.lives[who]);
        } else if matches!(step, Step::Ahead { .. }) && self.next != Next::SameSecret {
            self.stays.request(who);
            self.moves.request(who);
        }
    }

    fn move_state(&mut self) {
        let side = &mut self.moves;
        if self.next == Next::OtherSecrets {
            inhabit(&side.engine, side.now);
        }
        let exported = side.engine.export_volume(side.now, VOLUME).unwrap();
        let sent = ExportedVolume::from_bytes(&exported.to_bytes().unwrap()).unwrap();
        assert_eq!(sent, exported);
        self.moved += 1;
        let next = match (self.next, self.left.take()) {
            (Next::ThereAndBack, Some(left)) => {
                left.tick(side.now);
                left
            }
            (Next::SameSecret, _) => Engine::new(side.now, settings(1, 1), Recovered::new()),
            _ => {
                let settings = settings(self.moved + 1, self.moved as u8 + 1);
                Engine::new(side.now, settings, Recovered::new())
            }
        };
        next.import_volume(side.now, &sent).unwrap();
        // Clients have received these messages before.
        while next.poll_effect().is_some() {}
        let left = std::mem::replace(&mut side.engine, next);
        forget(side.now, &left);
        (0..PEOPLE).for_each(|who| side.follow(who));
        self.left = (self.next == Next::ThereAndBack).then_some(left);
    }
}

/// Has an engine forget the volume that has moved. It keeps the state of other volumes.
fn forget(now: Time, left: &Engine) {
    let (clients, sessions) = (left.census().clients, left.census().sessions);
    let reply_cache_bytes = left.census().reply_cache_bytes;
    let elsewhere = left.export_volume(now, ELSEWHERE).unwrap();
    left.forget_volume(now, VOLUME, &[1]);
    assert_eq!(left.export_volume(now, ELSEWHERE).unwrap(), elsewhere);
    let alone = Engine::new(now, settings(1, 1), Recovered::new());
    if !elsewhere.clients.is_empty() {
        inhabit(&alone, now);
    }
    let alone = Census { clients, sessions, reply_cache_bytes, ..alone.census() };
    assert_eq!(left.census(), alone);
    assert_eq!(left.has_delegations(), alone.delegations > 0);
    assert!(!left.has_denies());
    let mut effects = std::iter::from_fn(|| left.poll_effect());
    assert!(effects.all(|it| matches!(it, Effect::Probe { .. })), "nobody is told");
    let empty = left.export_volume(now, VOLUME).unwrap();
    assert!(empty.clients.is_empty() && empty.files.is_empty());
}

/// Adds a client with a delegation of another volume, and hosts of which one waits for the other.
fn inhabit(engine: &Engine, now: Time) {
    let client = Person::arrive(engine, now, HOST + 1, 0).client;
    let file = |number| FileKey { volume: ELSEWHERE, ..key(number) };
    let (caller, claim, wish) = (client.caller(), Claim::New, DelegationWish::NoPreference);
    let (owner, share, empties) = (&b"opener"[..], Share::access(Share::BOTH), false);
    let (client, file_key, user, grantee) = (&client, file(0), None, None);
    let args =
        Open { client, caller, owner, file: file_key, share, claim, wish, user, grantee, empties };
    engine.open(now, &args).unwrap();
    let (range, kind) = (comity_state::ByteRange::ALL, LockType::Write);
    let wish = HostLock { owner: b"process", file: file(1), range, kind };
    for name in [&b"first"[..], b"second"] {
        let host = engine.host(now, name, client.caller().origin).unwrap();
        let _ = engine.lock_host(now, &host, &wish, LockRequestKind::Blocking);
    }
}

impl Side {
    /// Lets a client go on at a new engine.
    fn follow(&mut self, who: usize) {
        let client = self.engine.client_by_id(self.people[who].client.id()).unwrap();
        if who != HOST {
            self.engine.callbacks_work(&client);
        }
        self.people[who].client = Arc::clone(&client);
    }
}

/// Returns the state of a side, without counts of the engine and the order of clients in it.
fn state_of(side: &Side) -> ExportedVolume {
    let mut state = side.engine.export_volume(side.now, VOLUME).unwrap();
    for client in &mut state.clients {
        (client.given_out, client.confirmed_by) = (0, None);
    }
    state.clients.sort_by_key(|client| client.id);
    state
}
