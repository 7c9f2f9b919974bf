//! Bytes of a hostile peer: each call gets an answer, without a panic.

use std::cell::RefCell;

use comity_proto::nfs4::{CompoundHead, CompoundResultHead, Nfsstat4, operation as op};
use comity_xdr::{Decoder, Encoder, Opaque};
use proptest::prelude::*;

use crate::session::Session;
use crate::world::World;

/// Random words, among which small numbers are frequent because decoders give them a meaning.
fn words() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![Just(0), Just(1), Just(2), 0..16_u32, Just(u32::MAX), any::<u32>()];
    let words = proptest::collection::vec(word, 0..24);
    words.prop_map(|words| words.into_iter().flat_map(u32::to_be_bytes).collect())
}

thread_local! {
    static PEER: RefCell<(World, Session)> = RefCell::new({
        let world = World::new();
        let session = Session::open(&world, 2);
        (world, session)
    });
}

/// Appends PUTROOTFH and the LOOKUPs of a file, so that the operations are reached.
fn at_a_file(call: &mut Encoder) {
    call.value(&op::PUTROOTFH);
    for name in [&b"srv"[..], b"pub", b"file"] {
        call.value(&op::LOOKUP);
        call.opaque(name);
    }
}

#[test]
fn an_operation_that_is_counted_and_missing_has_a_result_of_its_own() {
    let mut call = Encoder::new();
    call.value(&CompoundHead { tag: Opaque(b""), minorversion: 0, operations: 2 });
    call.value(&op::PUTROOTFH);
    let reply = World::new().compound(call.bytes()).0;
    let mut results = Decoder::new(&reply);
    let head: CompoundResultHead<'_> = results.value().unwrap();
    assert_eq!((head.status, head.results), (Nfsstat4::BadXdr, 2));
    let each = [(); 2].map(|()| (results.value().unwrap(), results.value().unwrap()));
    assert_eq!(each, [(op::PUTROOTFH, Nfsstat4::Ok), (op::ILLEGAL, Nfsstat4::BadXdr)]);
    results.finish().unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn any_words_as_arguments_of_any_operation(
        minorversion in 0..4_u32,
        number in prop_oneof![0..80_u32, any::<u32>()],
        (rest, more) in (words(), 0..3_u32),
    ) {
        PEER.with_borrow_mut(|(world, session)| {
            let mut call = Encoder::new();
            let in_session = u32::from(minorversion == 1 || minorversion == 2);
            let operations = in_session + 5 + more;
            call.value(&CompoundHead { tag: Opaque(b""), minorversion, operations });
            if in_session == 1 {
                session.sequence(&mut call);
            }
            at_a_file(&mut call);
            call.value(&number);
            call.raw(&rest);
            assert!(!world.compound(call.bytes()).0.is_empty());
        });
    }
}
