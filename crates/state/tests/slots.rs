//! The slots of a session, compared with a simple model: each request is done exactly once.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod introduction;

use std::sync::Arc;
use std::time::Duration;

use comity_state::{
    Caller, ChannelAttrs, ClientOwner, ConnectionId, CreateSession, Engine, Error, ExchangeId,
    Origin, Principal, Recovered, Sequence, Sequenced, SessionId, Settings, Ticket, Verifier,
};
use introduction::session_of;
use proptest::prelude::*;

const NOW: Duration = Duration::from_secs(10);
const SLOTS: u32 = 3;
const KEPT_BYTES: u32 = 2000;
/// Replies of at most this length are kept even if the request does not ask for it.
const SMALL_BYTES: usize = 1024;

fn caller() -> Caller {
    Caller { principal: Principal(0), origin: Origin::from_bytes([1; 16]) }
}

/// A session with [`SLOTS`] slots.
fn session(engine: &Engine) -> SessionId {
    let owner = ClientOwner { verifier: Verifier([1; 8]), id: b"client"[..].into() };
    let args = ExchangeId { owner, caller: caller(), update: false };
    let known = engine.exchange_id(NOW, args).unwrap();
    let attrs = ChannelAttrs {
        request_bytes_max: 4096,
        response_bytes_max: 4096,
        response_cached_bytes_max: KEPT_BYTES,
        operations_max: 8,
        requests_max: SLOTS,
    };
    let args = CreateSession { back_wanted: false, ..session_of(&known, (caller(), 1), attrs) };
    engine.create_session(NOW, &args).unwrap().session
}

/// An event of a slot.
#[derive(Debug, Clone)]
enum Step {
    /// A request arrives, with its seqid relative to the slot's last one.
    Request { slot: u32, ahead: u32, digest: u64, cache_this: bool },
    /// The request under way is answered with a reply of this length.
    Answer { slot: u32, bytes: usize },
    /// The request under way is dropped without an answer.
    Drop { slot: u32 },
}

fn step() -> impl Strategy<Value = Step> {
    let slot = || 0..SLOTS + 1;
    let bytes = prop_oneof![Just(10), Just(SMALL_BYTES), Just(1500), Just(2000), Just(2001)];
    prop_oneof![
        5 => (slot(), 0..3_u32, 0..2_u64, any::<bool>()).prop_map(
            |(slot, ahead, digest, cache_this)| Step::Request { slot, ahead, digest, cache_this }
        ),
        4 => (0..SLOTS, bytes).prop_map(|(slot, bytes)| Step::Answer { slot, bytes }),
        1 => (0..SLOTS).prop_map(|slot| Step::Drop { slot }),
    ]
}

/// The part of a slot's last answer that the model keeps.
#[derive(Debug, Clone, PartialEq)]
enum CachedReply {
    Nothing,
    Sequence,
    Whole(Vec<u8>),
}

/// A slot of the model.
#[derive(Debug)]
struct Slot {
    seqid: u32,
    digest: u64,
    kept: CachedReply,
    busy: Option<(Ticket, bool)>,
}

struct World {
    engine: Engine,
    session: SessionId,
    slots: Vec<Slot>,
    answers: u8,
}

impl World {
    fn new() -> Self {
        let engine = Engine::new(NOW, Settings::new(1, [7; 16]), Recovered::new());
        let session = session(&engine);
        let empty = |_| Slot { seqid: 0, digest: 0, kept: CachedReply::Nothing, busy: None };
        Self { engine, session, slots: (0..SLOTS).map(empty).collect(), answers: 0 }
    }

    fn perform(&mut self, step: &Step) {
        match *step {
            Step::Request { slot, ahead, digest, cache_this } => {
                self.request(slot, ahead, digest, cache_this);
            }
            Step::Answer { slot, bytes } => self.answer(slot, bytes),
            Step::Drop { slot } => {
                let slot = &mut self.slots[slot as usize];
                if slot.busy.take().is_some() {
                    slot.kept = CachedReply::Sequence;
                }
            }
        }
    }

    fn request(&mut self, slot: u32, ahead: u32, digest: u64, cache_this: bool) {
        let seqid = self.slots.get(slot as usize).map_or(1, |slot| slot.seqid + ahead);
        let request = Sequence {
            session: self.session,
            seqid,
            slot,
            highest_slot: 0,
            cache_this,
            operations: 2,
            request_bytes: 100,
            digest,
            connection: ConnectionId(1),
            origin: caller().origin,
        };
        let answer = self.engine.sequence(NOW, &request);
        let Some(known) = self.slots.get_mut(slot as usize) else {
            assert_eq!(answer.err(), Some(Error::BadSlot));
            return;
        };
        match (ahead, &known.busy) {
            (1, None) => {
                let Ok(Sequenced::New(ticket)) = answer else { panic!("{answer:?}") };
                assert_eq!((ticket.answer().slot, ticket.answer().seqid), (slot, seqid));
                assert_eq!(ticket.cache_this(), cache_this);
                (known.seqid, known.digest, known.kept) = (seqid, digest, CachedReply::Nothing);
                known.busy = Some((ticket, cache_this));
            }
            (0, Some(_)) => assert_eq!(answer.err(), Some(Error::Delay)),
            (0, None) => check_retry(known, digest, answer),
            _ => assert_eq!(answer.err(), Some(Error::SeqMisordered)),
        }
    }

    fn answer(&mut self, slot: u32, bytes: usize) {
        let slot = &mut self.slots[slot as usize];
        let Some((ticket, cache_this)) = slot.busy.take() else { return };
        self.answers = self.answers.wrapping_add(1);
        let reply = vec![self.answers; bytes];
        ticket.answered(Some(&reply));
        let most = if cache_this { KEPT_BYTES as usize } else { SMALL_BYTES };
        slot.kept = if bytes <= most { CachedReply::Whole(reply) } else { CachedReply::Sequence };
    }
}

/// Asserts that a retry of an answered request is not done again.
fn check_retry(slot: &Slot, digest: u64, answer: Result<Sequenced, Error>) {
    match (&slot.kept, digest == slot.digest) {
        (CachedReply::Nothing, _) => assert_eq!(answer.err(), Some(Error::SeqMisordered)),
        (_, false) => assert_eq!(answer.err(), Some(Error::SeqFalseRetry)),
        (CachedReply::Whole(reply), true) => {
            let Ok(Sequenced::Again(again)) = answer else { panic!("{answer:?}") };
            assert_eq!(&*again, &**reply);
        }
        (CachedReply::Sequence, true) => {
            let Ok(Sequenced::Forgotten(again)) = answer else { panic!("{answer:?}") };
            assert_eq!(again.seqid, slot.seqid);
        }
    }
}

proptest! {
    #[test]
    fn a_request_is_done_once_and_a_retry_gets_its_answer(
        steps in proptest::collection::vec(step(), 1..150),
    ) {
        let mut world = World::new();
        steps.iter().for_each(|step| world.perform(step));
    }
}

#[test]
fn the_seqid_of_a_slot_wraps_to_zero() {
    // The slot is imported with that seqid, because no test can send four billion requests.
    let mut world = World::new();
    world.perform(&Step::Request { slot: 0, ahead: 1, digest: 1, cache_this: true });
    world.perform(&Step::Answer { slot: 0, bytes: 10 });
    let client = Arc::clone(world.engine.session(&world.session).unwrap().client());
    let mut exported = world.engine.export_client(NOW, &client).unwrap();
    exported.sessions[0].slots[0].seqid = u32::MAX;
    let engine = Engine::new(NOW, Settings::new(1, [7; 16]), Recovered::new());
    engine.import_client(NOW, &exported).unwrap();
    let request = Sequence {
        session: world.session,
        seqid: 0,
        slot: 0,
        highest_slot: 0,
        cache_this: false,
        operations: 1,
        request_bytes: 100,
        digest: 2,
        connection: ConnectionId(1),
        origin: caller().origin,
    };
    assert!(matches!(engine.sequence(NOW, &request), Ok(Sequenced::New(_))));
}
