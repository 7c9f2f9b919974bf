use std::time::Duration;

use comity_proto::nfs4::Nfsstat4;
use comity_proto::nfs4::callback::{
    CbCompoundHead, CbCompoundResultHead, CbRecall4args, CbRecallSlot4args, CbSequence4args,
    ReferringCall4, ReferringCallList4, VERSION, operation, procedure,
};
use comity_rpc::{CallHeader, OpaqueAuth};
use comity_vfs::{DelegationKind, OpenAccess, RangeLock};
use comity_xdr::{Counted, Decoder, Encode, Encoder, Opaque};

use crate::machine::StateEvent;
use crate::session::sim::world::settings;
use crate::session::sim::*;
use crate::session::{OpenAnswer, SessionRequest};

fn delegating() -> ServerSettings {
    ServerSettings { delegations: true, ..ServerSettings::default() }
}

/// A callback with one operation after CB_SEQUENCE.
struct Callback {
    slotid: u32,
    sequenceid: u32,
    referring: Vec<ReferringCall4>,
}

impl Callback {
    fn record(&self, world: &World, operation: u32, arguments: &impl Encode) -> Vec<u8> {
        let (credential, verifier) = (OpaqueAuth::NONE, OpaqueAuth::NONE);
        let mut encoder = Encoder::new();
        let (program, version) = (crate::session::control::CALLBACK_PROGRAM, VERSION);
        let procedure = procedure::CB_COMPOUND;
        encoder.value(&CallHeader { xid: 5, program, version, procedure, credential, verifier });
        let minorversion = world.clients[0].machine.minor();
        let tag = Opaque(&b""[..]);
        encoder.value(&CbCompoundHead { tag, minorversion, callback_ident: 0, operations: 2 });
        encoder.value(&operation::CB_SEQUENCE);
        let sessionid = world.clients[0].machine.sessionid();
        let calls = Counted(self.referring.clone());
        let lists = vec![ReferringCallList4 { sessionid, calls }];
        encoder.value(&CbSequence4args {
            sessionid,
            sequenceid: self.sequenceid,
            slotid: self.slotid,
            highest_slotid: 0,
            cachethis: false,
            referring_call_lists: Counted(if self.referring.is_empty() { vec![] } else { lists }),
        });
        encoder.value(&operation);
        encoder.value(arguments);
        encoder.bytes().to_vec()
    }
}

/// The last reply to a callback.
fn answer(world: &World) -> &Vec<u8> {
    let is_answer = |sent: &&Vec<u8>| sent[4..12] == [0, 0, 0, 5, 0, 0, 0, 1];
    world.sent.iter().rfind(is_answer).unwrap()
}

/// The status of the last reply to a callback.
fn status(world: &World) -> u32 {
    let answer = answer(world);
    let mut decoder = Decoder::new(&answer[4 + 24..]);
    decoder.value::<CbCompoundResultHead<'_>>().unwrap().status
}

fn call_back(
    world: &mut World,
    callback: &Callback,
    operation: u32,
    arguments: &impl Encode,
) -> u32 {
    let record = callback.record(world, operation, arguments);
    world.say(0, record);
    world.pass(Duration::from_millis(1));
    status(world)
}

fn slot(slotid: u32, sequenceid: u32) -> Callback {
    Callback { slotid, sequenceid, referring: Vec::new() }
}

#[test]
fn a_repeated_callback_is_executed_once_and_answered_twice() {
    let mut world = World::new(1, ServerSettings::default());
    world.pass(Duration::from_secs(1));
    let wish = CbRecallSlot4args { target_highest_slotid: 3 };
    let first = call_back(&mut world, &slot(3, 1), operation::CB_RECALL_SLOT, &wish);
    assert_eq!(world.clients[0].machine.usable_slots(), 4);
    let before = answer(&world).clone();
    world.pass(Duration::from_secs(1));
    // Repeat slot and sequence number with another operation: the cached reply must come.
    let other = CbRecallSlot4args { target_highest_slotid: 0 };
    let again = call_back(&mut world, &slot(3, 1), operation::CB_RECALL_SLOT, &other);
    assert_eq!((first, again), (0, 0));
    assert_eq!(
        world.clients[0].machine.usable_slots(),
        64,
        "the repeated callback must not be executed"
    );
    assert_eq!(*answer(&world), before);
}

#[test]
fn callbacks_out_of_order_and_of_other_sessions_are_refused() {
    let mut world = World::new(1, ServerSettings::default());
    world.pass(Duration::from_secs(1));
    let wish = CbRecallSlot4args { target_highest_slotid: 3 };
    for (callback, expected) in [
        (slot(3, 7), Nfsstat4::SeqMisordered),
        (slot(3, 0), Nfsstat4::SeqMisordered),
        (slot(99, 1), Nfsstat4::BadSlot),
    ] {
        let found = call_back(&mut world, &callback, operation::CB_RECALL_SLOT, &wish);
        assert_eq!(found, expected as u32);
    }
    let mut record = slot(3, 1).record(&world, operation::CB_RECALL_SLOT, &wish);
    let session = world.clients[0].machine.sessionid();
    let at = record.windows(16).position(|bytes| bytes == session).unwrap();
    record[at] ^= 1;
    world.say(0, record);
    world.pass(Duration::from_millis(1));
    assert_eq!(status(&world), Nfsstat4::BadSession as u32);
}

#[test]
fn a_callback_about_an_unanswered_request_is_answered_with_delay() {
    let mut world = World::new(1, ServerSettings::default());
    let top = top(&mut world);
    world.pass(Duration::from_secs(1));
    let id = world.submit(0, nothing(&top));
    let (slotid, sequenceid) = world.clients[0].machine.slot_of(id).unwrap();
    let referring = vec![ReferringCall4 { sequenceid, slotid }];
    let callback = Callback { slotid: 5, sequenceid: 1, referring };
    let wish = CbRecallSlot4args { target_highest_slotid: 3 };
    let found = call_back(&mut world, &callback, operation::CB_RECALL_SLOT, &wish);
    assert_eq!(found, Nfsstat4::Delay as u32);
    world.outcome(0, id).unwrap();
    let found = call_back(&mut world, &callback, operation::CB_RECALL_SLOT, &wish);
    assert_eq!(found, 0);
}

#[test]
fn each_operation_gets_its_status() {
    let mut world = World::new(1, ServerSettings::default());
    let top = top(&mut world);
    world.pass(Duration::from_secs(1));
    let fh = Opaque(top.bytes());
    let stateid = comity_proto::nfs4::Stateid4 { seqid: 1, other: [9; 12] };
    let recall = CbRecall4args { stateid, truncate: false, fh };
    let notify = comity_proto::nfs4::CbNotify4args { stateid, fh, changes: Counted(vec![]) };
    let mut sequenceid = 0;
    let mut ask = |operation, arguments: &dyn Fn(&mut Encoder)| {
        sequenceid += 1;
        let mut encoder = Encoder::new();
        arguments(&mut encoder);
        let raw = Raw(encoder.bytes().to_vec());
        call_back(&mut world, &slot(7, sequenceid), operation, &raw)
    };
    for (operation, arguments, expected) in [
        (operation::CB_RECALL, &|e: &mut Encoder| e.value(&recall), Nfsstat4::BadStateid),
        (operation::CB_NOTIFY, &|e: &mut Encoder| e.value(&notify), Nfsstat4::BadStateid),
        (operation::CB_NOTIFY_DEVICEID, &|e: &mut Encoder| e.value(&0_u32), Nfsstat4::Ok),
        (operation::CB_LAYOUTRECALL, &|_: &mut Encoder| {}, Nfsstat4::NoMatchingLayout),
        (operation::CB_PUSH_DELEG, &|_: &mut Encoder| {}, Nfsstat4::RejectDeleg),
        (operation::CB_RECALLABLE_OBJ_AVAIL, &|e: &mut Encoder| e.value(&true), Nfsstat4::Ok),
        (77, &|_: &mut Encoder| {}, Nfsstat4::OpIllegal),
    ] as [(u32, &dyn Fn(&mut Encoder), Nfsstat4); 7]
    {
        assert_eq!(ask(operation, arguments), expected as u32, "{operation}");
    }
}

struct Raw(Vec<u8>);

impl Encode for Raw {
    fn encode(&self, encoder: &mut Encoder) {
        encoder.raw(&self.0);
    }
}

/// Returns how many of many requests are under way at once.
fn most_at_once(world: &mut World, top: &crate::server_handle::ServerHandle) -> usize {
    // The client learns from the first replies how many slots it may use.
    for _ in 0..3 {
        world.perform(0, nothing(top)).unwrap();
    }
    let sent = world.sent.len();
    let ids: Vec<u64> = (0..200).map(|_| world.submit(0, nothing(top))).collect();
    let most = world.sent.len() - sent;
    for id in ids {
        world.outcome(0, id).unwrap();
    }
    most
}

#[test]
fn a_server_with_little_memory_gets_slots_back() {
    // A client may take part of the memory that is left, so three together take more than three
    // quarters.
    let reply_cache_bytes = 130 * 4300;
    let mut world = World::new(1, ServerSettings { reply_cache_bytes, ..Default::default() });
    let top = top(&mut world);
    assert_eq!(most_at_once(&mut world, &top), 64);
    for number in [1, 2] {
        let other = world.join(settings(number));
        world.until(|world| world.clients[other].ready > 0);
    }
    // Requests that are under way in higher slots are still answered.
    let ids: Vec<u64> = (0..64).map(|_| world.submit(0, nothing(&top))).collect();
    world.pass(Duration::from_secs(30));
    for id in ids {
        world.outcome(0, id).unwrap();
    }
    assert!(most_at_once(&mut world, &top) < 64);
    let engine = world.server.engine();
    let census = engine.census();
    assert!(census.reply_cache_bytes < reply_cache_bytes * 3 / 4, "{census:?}");
    assert!(engine.totals().slot_recalls_heeded > 0);
}

#[test]
fn a_recall_while_the_file_is_read_loses_no_read() {
    let mut world = World::new(2, delegating());
    let top = top(&mut world);
    let file = file(&mut world, &top, "f");
    reply(world.perform(0, write(0, &file, b"data")));
    world.pass(Duration::from_secs(10));
    let open_one = opened(world.perform(0, open(0, &file, OpenAccess::Read)));
    assert_eq!(open_one.delegation, Some(DelegationKind::Read));
    let ids: Vec<u64> = (0..50).map(|_| world.submit(0, read(0, &file))).collect();
    let other = world.submit(1, open(0, &file, OpenAccess::Both));
    for id in ids {
        assert_eq!(bytes(world.outcome(0, id)), Ok(b"data".to_vec()));
    }
    opened(world.outcome(1, other));
    assert_eq!(bytes(world.perform(0, read(0, &file))), Ok(b"data".to_vec()));
    let now = world.now;
    assert_eq!(world.clients[0].machine.delegation(now, &file), None);
    assert_eq!(world.server.engine().census().delegations, 0);
    assert!(world.clients[0].notices.is_empty(), "{:?}", world.clients[0].notices);
}

#[test]
fn a_delegated_file_is_opened_and_read_again_without_a_call_to_open_it() {
    let mut world = World::new(1, delegating());
    let top = top(&mut world);
    let file = file(&mut world, &top, "f");
    world.pass(Duration::from_secs(10));
    let first = opened(world.perform(0, open(0, &file, OpenAccess::Read)));
    world.perform(0, SessionRequest::Close(first.open)).unwrap();
    world.pass(Duration::from_secs(5));
    let sent = world.sent.len();
    let again = opened(world.perform(0, open(0, &file, OpenAccess::Read)));
    assert!(again.reply.is_none() && again.delegation == Some(DelegationKind::Read));
    world.perform(0, SessionRequest::Close(again.open)).unwrap();
    assert_eq!(world.sent.len(), sent, "the open needs no call");
    // The server decides whether another user may open the file.
    assert!(opened(world.perform(0, open(5, &file, OpenAccess::Read))).reply.is_some());
}

#[test]
fn opens_under_a_delegation_are_made_at_the_server_before_its_return() {
    let mut world = World::new(2, delegating());
    let top = top(&mut world);
    let file = file(&mut world, &top, "f");
    world.pass(Duration::from_secs(10));
    let first = opened(world.perform(0, open(0, &file, OpenAccess::Both)));
    world.perform(0, SessionRequest::Close(first.open)).unwrap();
    world.pass(Duration::from_secs(5));
    opened(world.perform(0, open(0, &file, OpenAccess::Both)));
    assert_eq!(world.server.engine().census().opens, 0);
    opened(world.perform(1, open(0, &file, OpenAccess::Read)));
    assert_eq!(world.server.engine().census().opens, 2);
    assert_eq!(world.server.engine().census().delegations, 0);
}

#[test]
fn a_recall_is_reported_and_the_delegation_returned_on_request() {
    let mut one = settings(0);
    one.hands_up_recalls = true;
    let mut world = World::with(delegating(), vec![one, settings(1)]);
    let top = top(&mut world);
    let file = file(&mut world, &top, "f");
    world.pass(Duration::from_secs(10));
    opened(world.perform(0, open(0, &file, OpenAccess::Both)));
    let other = world.submit(1, open(0, &file, OpenAccess::Both));
    world.pass(Duration::from_secs(5));
    let recalled = StateEvent::Recalled { file, is_truncated: false };
    assert_eq!(world.clients[0].events, [recalled]);
    assert!(!world.clients[1].done.contains_key(&other));
    // Cached data is written under the delegation before its return.
    reply(world.perform(0, write(0, &file, b"kept")));
    world.perform(0, SessionRequest::Return(file)).unwrap();
    opened(world.outcome(1, other));
    assert_eq!(bytes(world.perform(1, read(0, &file))), Ok(b"kept".to_vec()));
}

/// Recalls the delegation of client 0 while its request is under way; returns the time until the
/// file is open for client 1.
fn recalled_during(request: impl Fn(&OpenAnswer) -> SessionRequest) -> Duration {
    let mut world = World::new(2, delegating());
    let top = top(&mut world);
    let file = file(&mut world, &top, "f");
    world.pass(Duration::from_secs(10));
    let first = opened(world.perform(0, open(0, &file, OpenAccess::Both)));
    assert_eq!(first.delegation, Some(DelegationKind::Write));
    let begun = world.now;
    let other = world.submit(1, open(0, &file, OpenAccess::Both));
    world.pass(Duration::from_micros(1500));
    // The recall arrives half a millisecond from now, and the reply to this after two.
    world.submit(0, request(&first));
    opened(world.outcome(1, other));
    world.now - begun
}

#[test]
fn a_delegation_recalled_during_an_operation_on_its_open_is_returned_after_it() {
    let locked = recalled_during(|open| lock(open, 1, RangeLock::Exclusive, false));
    let closed = recalled_during(|open| SessionRequest::Close(open.open));
    for taken in [locked, closed] {
        assert!(taken < Duration::from_secs(5), "{taken:?}");
    }
}

#[test]
fn a_recall_that_nobody_handles_still_ends_in_time() {
    let mut one = settings(0);
    one.hands_up_recalls = true;
    let mut world = World::with(delegating(), vec![one, settings(1)]);
    world.clients[0].machine.set_lease(Duration::from_secs(30));
    let top = top(&mut world);
    let file = file(&mut world, &top, "f");
    world.pass(Duration::from_secs(10));
    opened(world.perform(0, open(0, &file, OpenAccess::Both)));
    let begun = world.now;
    opened(world.perform(1, open(0, &file, OpenAccess::Both)));
    assert!(world.now - begun < Duration::from_secs(20), "before the server revokes it");
    let late =
        |notice: &crate::machine::Notice| matches!(notice, crate::machine::Notice::ReturnedLate(_));
    assert!(world.clients[0].notices.iter().any(late));
    // Data that is still unsent must not be written over the other client's.
    let recalled = StateEvent::Recalled { file, is_truncated: false };
    assert_eq!(world.clients[0].events, [recalled, StateEvent::DelegationLost(file)]);
}

#[test]
fn the_server_is_told_the_size_of_a_file_with_unsent_data() {
    let mut one = settings(0);
    one.hands_up_recalls = true;
    let mut world = World::with(delegating(), vec![one, settings(1)]);
    let top = top(&mut world);
    let file = file(&mut world, &top, "f");
    world.pass(Duration::from_secs(10));
    let open = opened(world.perform(0, open(0, &file, OpenAccess::Both)));
    assert_eq!(open.delegation, Some(DelegationKind::Write));
    world.clients[0].machine.note_known(&file, 0, 100);
    world.clients[0].machine.note_unwritten(&file, Some(4711));
    let sizes = |world: &mut World| size(world.perform(1, getattr_size(&file)));
    assert_eq!(sizes(&mut world), 4711);
    world.clients[0].machine.note_unwritten(&file, None);
}

#[test]
fn the_recall_of_a_directory_with_an_unanswered_grant_is_answered_with_delay() {
    let mut world = World::new(1, delegating());
    let top = top(&mut world);
    world.pass(Duration::from_secs(1));
    let id = world.submit(0, delegate(&top));
    let stateid = comity_proto::nfs4::Stateid4 { seqid: 1, other: [9; 12] };
    let recall = CbRecall4args { stateid, truncate: false, fh: Opaque(top.bytes()) };
    let found = call_back(&mut world, &slot(5, 1), operation::CB_RECALL, &recall);
    assert_eq!(found, Nfsstat4::Delay as u32);
    assert!(granted(world.outcome(0, id)).is_some());
    let found = call_back(&mut world, &slot(5, 2), operation::CB_RECALL, &recall);
    assert_eq!(found, Nfsstat4::BadStateid as u32, "it is another delegation");
}
