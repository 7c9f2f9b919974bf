//! The calls of NFS version 4.1 that are measured: what they contain, and that they can be repeated
//! in slots.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

mod served;

use comity_bench::call_templates::{CallSlot, CallTemplates, SlotPlace, Stamp};
use comity_bench::fixture_tree::FixtureTree;
use comity_bench::prober::Pages;
use comity_bench::prober::nfs4::Prober;
use comity_bench::{InSession, Operation};
use comity_proto::nfs4::{
    Close4args, Lock4args, Locker4, Locku4args, NfsFh4, Open4args, OpenClaim4, Read4args,
    Sequence4args, operation as op,
};
use comity_remote::nfs4::{Backchannel, Session};
use comity_xdr::{Decode, Decoder};
use served::Served;

/// The number of slots, which are used in turn.
const SLOTS: u32 = 32;
/// The byte that is locked.
const LOCKED: u64 = 77;

/// The call templates of an operation; each slot has made its call twelve times.
fn made(operation: InSession) -> CallTemplates {
    let folder = tempfile::tempdir().unwrap();
    let layout = FixtureTree::build(folder.path()).unwrap();
    let line = Served::new(layout.root()).line([1; 8]);
    let mut session = Session::begin(line, (0, 0), Backchannel::No).unwrap();
    let root = session.mount(&layout.root().to_string_lossy()).unwrap();
    let mut prober = Prober { session: &mut session, root, locked: LOCKED };
    let script = prober.script(Operation::InSession(operation), &Pages::default()).unwrap();
    let (sessionid, slots) = session.another(SLOTS).unwrap();
    assert!(slots >= SLOTS);
    let mut stamps = [Stamp::default(); SLOTS as usize];
    let mut call = Vec::new();
    for number in 0..SLOTS * 12 {
        let (slotid, before) = (number % SLOTS, number / SLOTS);
        let place = SlotPlace { sessionid, sequenceid: before + 1, slotid, highest: SLOTS - 1 };
        let stamp = &mut stamps[slotid as usize];
        *stamp = Stamp { xid: number, place, ..*stamp };
        let (place, before) = (slotid as usize, before as usize);
        let template = script.choose(CallSlot { number: number.into(), place, before });
        call.clear();
        script.encode(template, stamp, &mut call);
        let reply = session.wire.answer(&call).unwrap();
        script.settle(template, stamp, &reply[4..]).unwrap_or_else(|wrong| panic!("{}", wrong.0));
    }
    script
}

/// The arguments of SEQUENCE in a call, and a decoder of what follows PUTFH.
fn call(script: &CallTemplates, number: usize) -> (Sequence4args, Decoder<'_>) {
    let bytes = &script.templates[number].bytes;
    let mut call = Decoder::new(&bytes[script.sequence_at.unwrap()..]);
    let sequence = call.value().unwrap();
    assert_eq!(call.value::<u32>().unwrap(), op::PUTFH);
    call.value::<NfsFh4<'_>>().unwrap();
    (sequence, call)
}

/// Reads the number of an operation, which must be this one, and its arguments.
fn next<'a, T: Decode<'a>>(call: &mut Decoder<'a>, operation: u32) -> T {
    assert_eq!(call.value::<u32>().unwrap(), operation);
    call.value().unwrap()
}

#[test]
fn getattr_asks_for_what_linux_asks_for() {
    let script = made(InSession::Getattr);
    assert_eq!(script.templates.len(), 1000, "all small files have their turn");
    let (sequence, mut rest) = call(&script, 7);
    assert!(!sequence.cachethis);
    assert_eq!(rest.value::<u32>().unwrap(), op::GETATTR);
    // The attribute words that the Linux client sends, as seen on the wire.
    let words: Vec<u32> =
        rest.rest().chunks(4).map(|w| u32::from_be_bytes(w.try_into().unwrap())).collect();
    assert_eq!(words, [2, 0x0010_011a, 0x00b0_a23a]);
}

#[test]
fn read_has_seqid_zero_for_the_newest_state_of_an_open() {
    let script = made(InSession::Read(4096));
    let (sequence, mut rest) = call(&script, 3);
    assert!(!sequence.cachethis);
    let read: Read4args = next(&mut rest, op::READ);
    assert!(rest.rest().is_empty());
    assert_eq!((read.offset, read.count, read.stateid.seqid), (3 * 4096, 4096, 0));
}

#[test]
fn each_slot_opens_and_closes_a_file_of_its_own_and_asks_for_cached_replies() {
    let script = made(InSession::OpenClose);
    assert_eq!(script.templates.len(), 64);
    let (sequence, mut rest) = call(&script, 10);
    assert!(sequence.cachethis);
    let open: Open4args<'_> = next(&mut rest, op::OPEN);
    next::<()>(&mut rest, op::GETFH);
    assert!(rest.rest().is_empty());
    // Access is read and write, and no delegation is wanted.
    assert_eq!((open.share_access, open.share_deny), (0x403, 0));
    assert_eq!(open.owner.owner.0, b"process 5");
    assert!(matches!(open.claim, OpenClaim4::Null(name) if name.0 == b"f000005"));
    let (sequence, mut rest) = call(&script, 11);
    assert!(sequence.cachethis);
    next::<Close4args>(&mut rest, op::CLOSE);
    assert!(rest.rest().is_empty());
}

#[test]
fn each_slot_locks_and_unlocks_a_byte_and_asks_for_cached_replies() {
    let script = made(InSession::LockUnlock);
    assert_eq!(script.templates.len(), 64);
    let (sequence, mut rest) = call(&script, 10);
    assert!(sequence.cachethis);
    let lock: Lock4args<'_> = next(&mut rest, op::LOCK);
    assert!(rest.rest().is_empty());
    assert_eq!((lock.offset, lock.length, lock.reclaim), (LOCKED, 1, false));
    assert!(matches!(lock.locker, Locker4::Exist(held) if held.lock_stateid.seqid == 0));
    let (sequence, mut rest) = call(&script, 11);
    assert!(sequence.cachethis);
    let unlock: Locku4args = next(&mut rest, op::LOCKU);
    assert!(rest.rest().is_empty());
    assert_eq!((unlock.offset, unlock.length, unlock.lock_stateid.seqid), (LOCKED, 1, 0));
}
