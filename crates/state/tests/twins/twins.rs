//! Two engines that get the same requests. The state of one of them moves.

use std::sync::Arc;

use comity_state::{Engine, ExportedVolume, Recovered};

use crate::side::{Side, VOLUME, settings};
use crate::step::{HOST, PEOPLE, Step};

/// The engines to which the state moves.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// They have the same secret and boot number. Clients may be forgotten: they get the same
    /// clientids in both engines afterwards.
    SameSecret,
    /// They have other secrets and boot numbers. All clients renew their leases in time.
    OtherSecrets,
}

pub(super) struct Twins {
    stays: Side,
    moves: Side,
    next: Next,
    moved: u32,
    lives: [u8; PEOPLE],
}

impl Twins {
    pub(super) fn new(next: Next) -> Self {
        Self { stays: Side::new(), moves: Side::new(), next, moved: 0, lives: [0; PEOPLE] }
    }

    pub(super) fn perform(&mut self, step: Step) {
        let step = match step {
            Step::Ahead { seconds } if self.next == Next::OtherSecrets => {
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
        } else if matches!(step, Step::Ahead { .. }) && self.next == Next::OtherSecrets {
            self.stays.request(who);
            self.moves.request(who);
        }
    }

    fn move_state(&mut self) {
        let side = &mut self.moves;
        let exported = side.engine.export_volume(side.now, VOLUME).unwrap();
        let sent = ExportedVolume::from_bytes(&exported.to_bytes().unwrap()).unwrap();
        assert_eq!(sent, exported);
        self.moved += 1;
        let (boot, secret) = match self.next {
            Next::SameSecret => (1, 1),
            Next::OtherSecrets => (self.moved + 1, self.moved as u8 + 1),
        };
        let next = Engine::new(side.now, settings(boot, secret), Recovered::new());
        next.import_volume(side.now, &sent).unwrap();
        // Clients have received these messages before.
        while next.poll_effect().is_some() {}
        side.engine = next;
        (0..PEOPLE).for_each(|who| side.follow(who));
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
