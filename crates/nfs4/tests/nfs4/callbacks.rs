//! The server's callbacks to clients that hold delegations, and its reaction to their answers.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use comity_proto::nfs4::callback::{
    CbCompoundHead, CbCompoundResultHead, CbGetattr4resok, CbRecallAny4args, CbRecallSlot4args,
    CbResultHead, CbSequence4args, CbSequence4resok, operation as cb, recall_any,
};
use comity_proto::nfs4::{
    Bitmap4, Component4, CompoundHead, CompoundResultHead, Fattr4, Nfsstat4, Open4args, Open4resok,
    OpenClaim4, OpenDelegation4, Openflag4, Readdir4args, Sequence4resok, Setxattr4args,
    SetxattrOption4, StateOwner4, Xattrkey4, attribute, operation as op, share,
};
use comity_rpc::OpaqueAuth;
use comity_state::{
    ByteRange, Claim, ClientId, Delegation, DelegationKind, DelegationWish, FileKey, Limits,
    LocalLock, Locals, LockType, Open, SessionId, Share, Taken,
};
use comity_vfs::{DirectoryHold, Handle};
use comity_xdr::{Decoder, Encoder, Opaque};

use crate::session::Session;
use crate::world::World;

const SIZE_AND_CHANGE: Bitmap4 = Bitmap4::of(&[attribute::CHANGE, attribute::SIZE]);

/// A client that can be called back, because it has answered the probe.
pub(crate) fn client(world: &World, minor: u32, name: &[u8]) -> Session {
    let mut session = Session::called_back(world, minor, name);
    for call in world.calls() {
        assert!(world.hear(accepted(&call).bytes()), "the probe is waited for");
    }
    perform(world, minor, &mut session, 1, |call| {
        call.value(&op::RECLAIM_COMPLETE);
        call.value(&false);
    });
    session
}

/// Sends a COMPOUND of this number of operations after SEQUENCE; returns its status and the results
/// after that of SEQUENCE.
pub(crate) fn perform(
    world: &World,
    minorversion: u32,
    session: &mut Session,
    operations: u32,
    say: impl FnOnce(&mut Encoder),
) -> (Nfsstat4, Vec<u8>) {
    let mut call = Encoder::new();
    call.value(&CompoundHead { tag: Opaque(b""), minorversion, operations: operations + 1 });
    session.sequence(&mut call);
    say(&mut call);
    let told = world.compound(call.bytes()).0;
    let mut told = Decoder::new(&told);
    let status = told.value::<CompoundResultHead<'_>>().unwrap().status;
    let _ = (told.value::<u32>().unwrap(), told.value::<u32>().unwrap());
    told.value::<Sequence4resok>().unwrap();
    (status, told.rest().to_vec())
}

pub(crate) fn go_to(call: &mut Encoder, names: &[&[u8]]) {
    call.value(&op::PUTROOTFH);
    for name in names {
        call.value(&op::LOOKUP);
        call.value::<Component4<'_>>(&Opaque(name));
    }
}

/// Opens the file for writing; returns the status and whether the file is delegated.
pub(crate) fn open(world: &World, minor: u32, session: &mut Session) -> (Nfsstat4, bool) {
    let (status, told) = perform(world, minor, session, 4, |call| {
        go_to(call, &[b"srv", b"pub"]);
        call.value(&op::OPEN);
        call.value(&Open4args {
            seqid: 0,
            share_access: share::BOTH,
            share_deny: 0,
            owner: StateOwner4 { clientid: 0, owner: Opaque(b"process") },
            openhow: Openflag4::NoCreate,
            claim: OpenClaim4::Null(Opaque(b"file")),
        });
    });
    if status != Nfsstat4::Ok {
        return (status, false);
    }
    let opened: Open4resok<'_> = Decoder::new(&told[4 * 8..]).value().unwrap();
    (status, matches!(opened.delegation, OpenDelegation4::Write(_)))
}

/// Asks for the size and the change attribute of the file.
fn getattr(world: &World, minor: u32, session: &mut Session) -> Result<(u64, u64), Nfsstat4> {
    let (status, told) = perform(world, minor, session, 5, |call| {
        go_to(call, &[b"srv", b"pub", b"file"]);
        call.value(&op::GETATTR);
        call.value(&SIZE_AND_CHANGE);
    });
    if status != Nfsstat4::Ok {
        return Err(status);
    }
    let told: Fattr4<'_> = Decoder::new(&told[4 * 10..]).value().unwrap();
    let mut values = Decoder::new(told.attr_vals.0);
    let change = values.value().unwrap();
    Ok((values.value().unwrap(), change))
}

/// The beginning of an accepted reply to a call.
pub(crate) fn accepted(call: &[u8]) -> Encoder {
    let mut reply = Encoder::new();
    reply.raw(&call[..4]);
    [1_u32, 0].iter().for_each(|word| reply.value(word));
    reply.value(&OpaqueAuth::NONE);
    reply.value(&0_u32);
    reply
}

/// Reads a CB_COMPOUND; returns its minor version, its CB_SEQUENCE and the number of the next
/// operation.
fn read(call: &[u8]) -> (u32, CbSequence4args, u32) {
    let (head, sequence, operation, _) = opened(call);
    (head.minorversion, sequence, operation)
}

/// Reads a CB_COMPOUND; returns its head, its CB_SEQUENCE, and the number and the arguments of the
/// next operation.
pub(crate) fn opened(call: &[u8]) -> (CbCompoundHead<'_>, CbSequence4args, u32, Decoder<'_>) {
    let mut call = Decoder::new(&call[6 * 4..]);
    let _ = (call.value::<OpaqueAuth<'_>>().unwrap(), call.value::<OpaqueAuth<'_>>().unwrap());
    let head = call.value().unwrap();
    assert_eq!(call.value::<u32>().unwrap(), cb::CB_SEQUENCE);
    let (sequence, operation) = (call.value().unwrap(), call.value().unwrap());
    (head, sequence, operation, call)
}

/// Answers a CB_GETATTR with a size and a change attribute, or with an error.
fn answer(world: &World, call: &[u8], said: Option<(u64, u64)>) {
    let mut body = Encoder::new();
    if let Some((size, change)) = said {
        let mut values = Encoder::new();
        [change, size].iter().for_each(|value| values.value(value));
        let (attrmask, attr_vals) = (SIZE_AND_CHANGE, Opaque(values.bytes()));
        body.value(&CbGetattr4resok { attrmask, attr_vals });
    }
    let status = if said.is_some() { Nfsstat4::Ok } else { Nfsstat4::BadHandle };
    reply(world, call, (status, body.bytes()));
}

/// Answers a callback with this status and body.
pub(crate) fn reply(world: &World, call: &[u8], answer: (Nfsstat4, &[u8])) {
    assert!(world.hear(replied(call, answer).bytes()), "it was waited for");
}

/// The reply to a callback.
pub(crate) fn replied(call: &[u8], (status, body): (Nfsstat4, &[u8])) -> Encoder {
    let (_, sequence, operation) = read(call);
    let status = status as u32;
    let mut reply = accepted(call);
    reply.value(&CbCompoundResultHead { status, tag: Opaque(b""), results: 2 });
    reply.value(&CbResultHead { operation: cb::CB_SEQUENCE, status: 0 });
    reply.value(&CbSequence4resok {
        sessionid: sequence.sessionid,
        sequenceid: sequence.sequenceid,
        slotid: sequence.slotid,
        highest_slotid: 0,
        target_highest_slotid: 0,
    });
    reply.value(&CbResultHead { operation, status });
    reply.raw(body);
    reply
}

/// Sends a request that only renews the lease.
fn nothing(world: &World, session: &mut Session) {
    let (status, _) = perform(world, 1, session, 1, |call| call.value(&op::PUTROOTFH));
    assert_eq!(status, Nfsstat4::Ok);
}

#[test]
fn a_callback_is_of_the_minor_version_of_its_session() {
    for minor in [1, 2] {
        let world = World::new();
        let (mut writer, mut other) =
            (client(&world, minor, b"writer"), client(&world, minor, b"other"));
        assert_eq!(open(&world, minor, &mut writer), (Nfsstat4::Ok, true));
        assert_eq!(open(&world, minor, &mut other), (Nfsstat4::Delay, false));
        let calls = world.calls();
        let (found, _, operation) = read(&calls[0]);
        assert_eq!((found, operation, calls.len()), (minor, cb::CB_RECALL, 1));
    }
}

#[test]
fn getattr_of_a_delegated_file_returns_the_attributes_of_its_writer() {
    let world = World::new();
    let (mut writer, mut other) = (client(&world, 1, b"writer"), client(&world, 1, b"other"));
    assert_eq!(open(&world, 1, &mut writer), (Nfsstat4::Ok, true));
    let (size, change) =
        getattr(&world, 1, &mut writer).expect("the writer is asked about its own file");
    assert!(world.calls().is_empty());
    assert_eq!(getattr(&world, 1, &mut other), Err(Nfsstat4::Delay));
    let calls = world.calls();
    assert_eq!((calls.len(), read(&calls[0]).2), (1, cb::CB_GETATTR));
    answer(&world, &calls[0], Some((999, change + 1)));
    let (size_now, change_now) = getattr(&world, 1, &mut other).expect("it has said it");
    assert_eq!((size, size_now), (12, 999));
    assert!(change_now > change, "it has changed");
}

#[test]
fn the_delegation_of_a_writer_that_cannot_answer_is_recalled() {
    let world = World::new();
    let (mut writer, mut other) = (client(&world, 1, b"writer"), client(&world, 1, b"other"));
    assert_eq!(open(&world, 1, &mut writer), (Nfsstat4::Ok, true));
    assert_eq!(getattr(&world, 1, &mut other), Err(Nfsstat4::Delay));
    answer(&world, &world.calls()[0], None);
    assert_eq!(getattr(&world, 1, &mut other), Err(Nfsstat4::Delay));
    assert_eq!(read(&world.calls()[0]).2, cb::CB_RECALL);
}

#[test]
fn a_change_of_an_extended_attribute_waits_for_the_delegation() {
    let world = World::new();
    let (mut writer, mut other) = (client(&world, 2, b"writer"), client(&world, 2, b"other"));
    assert_eq!(open(&world, 2, &mut writer), (Nfsstat4::Ok, true));
    let key = Opaque(&b"a"[..]);
    let set = |session: &mut Session| {
        perform(&world, 2, session, 5, |call| {
            go_to(call, &[b"srv", b"pub", b"file"]);
            call.value(&op::SETXATTR);
            let (option, value) = (SetxattrOption4::Either, Opaque(&b"one"[..]));
            call.value(&Setxattr4args { option, key, value });
        })
    };
    assert_eq!(set(&mut writer).0, Nfsstat4::Ok, "the delegation is its own");
    assert!(world.calls().is_empty());
    assert_eq!(set(&mut other).0, Nfsstat4::Delay);
    assert_eq!(read(&world.calls()[0]).2, cb::CB_RECALL);
    let (status, _) = perform(&world, 2, &mut other, 5, |call| {
        go_to(call, &[b"srv", b"pub", b"file"]);
        call.value(&op::REMOVEXATTR);
        call.value::<Xattrkey4<'_>>(&key);
    });
    assert_eq!(status, Nfsstat4::Delay);
}

#[test]
fn a_listing_waits_for_a_writer_only_if_rdattr_error_is_not_asked_for() {
    let world = World::new();
    let (mut writer, mut other) = (client(&world, 1, b"writer"), client(&world, 1, b"other"));
    assert_eq!(open(&world, 1, &mut writer), (Nfsstat4::Ok, true));
    let mut list = |attr_request: Bitmap4| {
        let told = perform(&world, 1, &mut other, 4, |call| {
            go_to(call, &[b"srv", b"pub"]);
            call.value(&op::READDIR);
            let (cookie, cookieverf, dircount, maxcount) = (0, [0; 8], 0, 4096);
            call.value(&Readdir4args { cookie, cookieverf, dircount, maxcount, attr_request });
        });
        (told.0, String::from_utf8_lossy(&told.1).contains("file"))
    };
    let errors = Bitmap4::of(&[attribute::SIZE, attribute::RDATTR_ERROR]);
    assert_eq!(list(errors), (Nfsstat4::Ok, true), "the entry has the error DELAY");
    let calls = world.calls();
    assert_eq!((calls.len(), read(&calls[0]).2), (1, cb::CB_GETATTR));
    let (status, shown) = list(Bitmap4::of(&[attribute::SIZE]));
    assert!(!shown, "{status:?}: neither hidden for ever nor shown with an old size");
}

#[test]
fn a_late_answer_is_ignored_and_the_connection_is_kept() {
    let world = World::new();
    let (mut writer, mut other) = (client(&world, 1, b"writer"), client(&world, 1, b"other"));
    assert_eq!(open(&world, 1, &mut writer), (Nfsstat4::Ok, true));
    assert_eq!(getattr(&world, 1, &mut other), Err(Nfsstat4::Delay));
    let call = world.calls().remove(0);
    answer(&world, &call, Some((1, 1)));
    answer(&world, &call, Some((1, 1)));
    assert!(!world.hear(accepted(&[0, 0, 99, 0]).bytes()), "a reply to no call is accepted");
}

/// Gives the client of this name read delegations of `count` files of an export, and recalls all of
/// them.
fn recalled(world: &World, name: &[u8], (export, count): (u32, u8)) {
    let now = world.now();
    let clients = world.engine.clients_after(now, ClientId(0), 9);
    let client = clients.iter().map(|it| &it.client).find(|client| client.owner() == name).unwrap();
    for number in 0..count {
        let volume = u64::from(export);
        let file = FileKey { volume, export, handle: Handle::new(&[number]).unwrap() };
        let (share, claim, wish) = (Share::access(Share::READ), Claim::New, DelegationWish::Read);
        let open = Open {
            client,
            caller: client.caller(),
            owner: b"process",
            file,
            share,
            claim,
            wish,
            user: None,
            grantee: None,
            empties: false,
        };
        let opened = world.engine.open(now, &open).unwrap();
        assert!(matches!(opened.delegation, Delegation::Granted { .. }), "{opened:?}");
    }
    world.engine.recall_export(now, export);
}

#[test]
fn recalls_above_the_slots_of_a_client_are_sent_as_it_answers() {
    let world = World::new();
    let _reader = client(&world, 1, b"reader");
    recalled(&world, b"reader", (1, 20));
    let (mut calls, mut answered) = (world.calls(), 0);
    assert_eq!(calls.len(), 8, "as many as it has slots");
    while let Some(call) = calls.pop() {
        reply(&world, &call, (Nfsstat4::Ok, &[]));
        answered += 1;
        calls.append(&mut world.calls());
        assert!(calls.len() <= 8);
    }
    assert_eq!(answered, 20);
}

#[test]
fn a_writer_without_a_free_slot_is_asked_when_one_is_free() {
    let world = World::new();
    let (mut writer, mut other) = (client(&world, 1, b"writer"), client(&world, 1, b"other"));
    assert_eq!(open(&world, 1, &mut writer), (Nfsstat4::Ok, true));
    recalled(&world, b"writer", (2, 8));
    let calls = world.calls();
    assert_eq!(calls.len(), 8);
    assert_eq!(getattr(&world, 1, &mut other), Err(Nfsstat4::Delay));
    assert!(world.calls().is_empty());
    reply(&world, &calls[0], (Nfsstat4::Ok, &[]));
    let asked = world.calls();
    assert_eq!((asked.len(), read(&asked[0]).2), (1, cb::CB_GETATTR));
    answer(&world, &asked[0], Some((999, 1)));
    assert!(matches!(getattr(&world, 1, &mut other), Ok((999, _))));
}

#[test]
fn a_wait_for_a_silent_client_does_not_hold_up_others() {
    let world = World::new();
    let (mut writer, mut other) = (client(&world, 1, b"writer"), client(&world, 1, b"other"));
    assert_eq!(open(&world, 1, &mut writer), (Nfsstat4::Ok, true));
    recalled(&world, b"writer", (2, 9));
    assert_eq!(world.calls().len(), 8);
    assert_eq!(getattr(&world, 1, &mut other), Err(Nfsstat4::Delay));
    assert!(world.calls().is_empty());
    world.pass(Duration::from_secs(10));
    assert_eq!(getattr(&world, 1, &mut other), Err(Nfsstat4::Delay), "it is recalled now");
    world.pass(Duration::from_secs(11));
    let calls = world.calls();
    let recalls = calls.iter().filter(|call| read(call).2 == cb::CB_RECALL);
    assert_eq!((calls.len(), recalls.count()), (8, 8), "they are recalled again");
}

/// A server whose memory for replies is almost used up, and a client that has half of it in eight
/// slots, each of which keeps replies of up to eight kilobytes. Two other clients have four slots
/// each.
fn short_of_memory() -> (World, Session) {
    let mut world = World::bearing(Limits { reply_cache_bytes: 133_000, ..Limits::DEFAULT });
    let session = client(&world, 1, b"wide");
    for (name, last) in [(&b"second"[..], 2), (b"third", 3)] {
        world.come_from([192, 0, 2, last].into());
        client(&world, 1, name);
    }
    (world, session)
}

#[test]
fn slots_are_recalled_and_freed_when_the_client_stops_using_them() {
    let (world, mut session) = short_of_memory();
    world.tick();
    let calls = world.calls();
    let (_, sequence, operation, mut rest) = opened(&calls[0]);
    assert_eq!((operation, calls.len()), (cb::CB_RECALL_SLOT, 1));
    let wish: CbRecallSlot4args = rest.value().unwrap();
    assert_eq!(wish.target_highest_slotid, 3, "half of them");
    let slots = || world.engine.session(&SessionId(sequence.sessionid)).unwrap().slots_len();
    reply(&world, &calls[0], (Nfsstat4::Ok, &[]));
    assert_eq!(slots(), 8, "the answer to the recall is not there yet");
    nothing(&world, &mut session);
    assert_eq!(slots(), 4);
    world.tick();
    assert!(world.calls().is_empty(), "there is enough memory now");
}

#[test]
fn a_client_that_refuses_the_recall_of_slots_keeps_them() {
    let (world, mut session) = short_of_memory();
    world.tick();
    let call = world.calls().remove(0);
    reply(&world, &call, (Nfsstat4::BadHighSlot, &[]));
    let id = SessionId(read(&call).1.sessionid);
    nothing(&world, &mut session);
    assert_eq!(world.engine.session(&id).unwrap().slots_len(), 8);
    // The client has learned the lower target from a reply, and its next request uses it.
    nothing(&world, &mut session);
    assert_eq!(world.engine.session(&id).unwrap().slots_len(), 4);
}

#[test]
fn delegations_are_recalled_when_their_number_is_near_its_bound() {
    let world = World::bearing(Limits { delegations: 1, ..Limits::DEFAULT });
    let mut writer = client(&world, 1, b"writer");
    world.tick();
    assert!(world.calls().is_empty(), "there is no delegation yet");
    assert_eq!(open(&world, 1, &mut writer), (Nfsstat4::Ok, true));
    world.tick();
    let calls = world.calls();
    let (_, _, operation, mut rest) = opened(&calls[0]);
    assert_eq!((operation, calls.len()), (cb::CB_RECALL_ANY, 1));
    let CbRecallAny4args { objects_to_keep, type_mask } = rest.value().unwrap();
    assert_eq!(objects_to_keep, 0);
    let kinds = [recall_any::READ_DELEGATIONS, recall_any::WRITE_DELEGATIONS];
    assert_eq!(type_mask, Bitmap4::of(&kinds));
    reply(&world, &calls[0], (Nfsstat4::Ok, &[]));
    world.tick();
    assert!(world.calls().is_empty(), "it is not asked again so soon");
}

/// Programs on the server, and the files that the server wanted to protect from them.
#[derive(Default)]
struct Programs {
    have_all_open: bool,
    asked: Mutex<Vec<DelegationKind>>,
}

impl Locals for Programs {
    fn take(&self, _: &FileKey, _: &LocalLock, take: &mut dyn FnMut() -> Option<usize>) -> Taken {
        take();
        Taken::Done
    }

    fn give(&self, _: &FileKey, _: ByteRange, give: &mut dyn FnMut() -> Option<usize>) {
        give();
    }

    fn delegate(&self, _: &FileKey, kind: DelegationKind) -> bool {
        self.asked.lock().unwrap().push(kind);
        !self.have_all_open
    }

    fn delegate_directory(&self, _: &FileKey, _: DirectoryHold) -> bool {
        !self.have_all_open
    }

    fn settle(&self) {}

    fn is_free(&self, _: &FileKey, _: (ByteRange, LockType)) -> bool {
        true
    }
}

#[test]
fn a_file_that_a_program_has_open_is_opened_and_not_delegated() {
    for have_all_open in [false, true] {
        let programs = Arc::new(Programs { have_all_open, ..Programs::default() });
        let world = World::beside(Arc::clone(&programs) as Arc<dyn Locals>);
        let mut session = client(&world, 1, b"one");
        assert_eq!(open(&world, 1, &mut session), (Nfsstat4::Ok, !have_all_open));
        assert_eq!(*programs.asked.lock().unwrap(), [DelegationKind::Write]);
        assert_eq!(world.engine.has_delegations(), !have_all_open, "it was taken back");
    }
}
