//! Bytes of a hostile peer: each record gets a reply or ends the connection, without a panic.

use comity_proto::mount;
use comity_proto::nfs3::PROGRAM;
use comity_xdr::Opaque;
use proptest::prelude::*;

use crate::world::{Ground, World, encoded};

/// Arguments that begin with a valid handle, so that the verbs are reached, and continue with any
/// bytes.
fn after_a_handle(world: &World, rest: &[u8]) -> Vec<u8> {
    [&encoded(&Opaque::<64>(&world.root))[..], rest].concat()
}

/// Random words, among which small numbers are frequent because decoders give them a meaning.
fn words() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![Just(0), Just(1), Just(2), 0..16_u32, Just(u32::MAX), any::<u32>()];
    let words = proptest::collection::vec(word, 0..24);
    words.prop_map(|words| words.into_iter().flat_map(u32::to_be_bytes).collect())
}

thread_local! {
    static WORLD: World = World::new(Ground::default());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_words_as_arguments(procedure in 0..24_u32, rest in words(), handle in any::<bool>()) {
        WORLD.with(|world| {
            let arguments = if handle { after_a_handle(world, &rest) } else { rest };
            let record = world.record(PROGRAM, procedure, &arguments);
            assert!(world.send_watching(&record, &mut |_| {}).is_some());
        });
    }

    #[test]
    fn any_bytes_as_arguments_of_mount(
        procedure in 0..8_u32,
        arguments in proptest::collection::vec(any::<u8>(), 0..64),
    ) {
        WORLD.with(|world| {
            let record = world.record(mount::PROGRAM, procedure, &arguments);
            assert!(world.send_watching(&record, &mut |_| {}).is_some());
        });
    }

    #[test]
    fn any_bytes_as_a_record(record in proptest::collection::vec(any::<u8>(), 0..128)) {
        WORLD.with(|world| drop(world.send_watching(&record, &mut |_| {})));
    }

    #[test]
    fn a_good_record_with_a_byte_changed(
        procedure in 1..22_u32,
        rest in words(),
        at in any::<usize>(),
        flip in 1..=255_u8,
    ) {
        WORLD.with(|world| {
            let mut record = world.record(PROGRAM, procedure, &after_a_handle(world, &rest));
            let at = at % record.len();
            record[at] ^= flip;
            drop(world.send_watching(&record, &mut |_| {}));
        });
    }
}
