use std::sync::Arc;
use std::time::Duration;

use comity_vfs::{Cred, Disk, Handle};
use comity_xdr::{Decoder, Encoder, Malformed};
use proptest::prelude::*;

use super::value::Field;
use crate::{
    CallbackSecurity, ClientProtocol, DelegationKind, ExportedKind, ExportedReply, ExportedState,
    Grantee, LockType, Origin, OriginChannel, OwnerKind, Revocation,
};

fn bytes_of(value: &impl Field) -> Vec<u8> {
    let mut encoder = Encoder::new();
    value.put(&mut encoder);
    encoder.bytes().to_vec()
}

fn read<T: Field>(bytes: &[u8]) -> Result<T, Malformed> {
    let mut decoder = Decoder::new(bytes);
    let value = T::take(&mut decoder)?;
    decoder.finish().map(|()| value)
}

fn discriminant<T>(read: Result<T, Malformed>) -> (&'static str, u32) {
    match read.err() {
        Some(Malformed::Discriminant { of, found }) => (of, found),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_number_that_names_no_variant_is_refused_with_the_name_of_the_type() {
    let nine = &[0, 0, 0, 9][..];
    assert_eq!(discriminant(read::<ClientProtocol>(nine)), ("ClientProtocol", 9));
    assert_eq!(discriminant(read::<OriginChannel>(nine)), ("OriginChannel", 9));
    assert_eq!(discriminant(read::<LockType>(nine)), ("LockType", 9));
    assert_eq!(discriminant(read::<OwnerKind>(nine)), ("OwnerKind", 9));
    assert_eq!(discriminant(read::<DelegationKind>(nine)), ("DelegationKind", 9));
    assert_eq!(discriminant(read::<Revocation>(nine)), ("Revocation", 9));
    assert_eq!(discriminant(read::<CallbackSecurity>(nine)), ("CallbackSecurity", 9));
    assert_eq!(discriminant(read::<ExportedReply>(nine)), ("ExportedReply", 9));
    assert_eq!(discriminant(read::<ExportedKind>(nine)), ("ExportedKind", 9));
}

#[test]
fn names_and_replies_and_handles_are_bounded() {
    let limit_of = |read: Result<(), Malformed>| match read.err() {
        Some(Malformed::TooLong { limit, .. }) => limit,
        other => panic!("{other:?}"),
    };
    let long = bytes_of(&Arc::<[u8]>::from(vec![7; 1025]));
    assert_eq!(limit_of(read::<Box<[u8]>>(&long).map(drop)), 1024);
    assert!(read::<Arc<[u8]>>(&long).is_ok());
    let longer = bytes_of(&Arc::<[u8]>::from(vec![7; (64 << 10) + 1]));
    assert_eq!(limit_of(read::<Arc<[u8]>>(&longer).map(drop)), 64 << 10);
    let handle = bytes_of(&Box::<[u8]>::from([7; 49]));
    assert_eq!(limit_of(read::<Handle>(&handle).map(drop)), 48);
    assert_eq!(limit_of(read::<Handle>(&[0; 4]).map(drop)), 48, "it has no bytes");
    assert_eq!(limit_of(read::<u16>(&[0, 1, 0, 0]).map(drop)), 65535);
}

#[test]
fn a_count_is_not_believed_beyond_what_the_rest_can_hold() {
    // An `ExportedState` has 44 bytes at least, so that 87 bytes have one.
    let least = <ExportedState as Field>::BYTES_MIN;
    assert_eq!(least, 44);
    let bytes = [&[0, 0, 0, 2][..], &[0; 87]].concat();
    let refused = read::<Vec<ExportedState>>(&bytes).map(drop);
    assert_eq!(refused, Err(Malformed::TooLong { length: 2, limit: 1 }));
    let refused = read::<Vec<u64>>(&[0xff; 12]).map(drop);
    assert_eq!(refused, Err(Malformed::TooLong { length: u32::MAX, limit: 1 }));
}

#[test]
fn a_text_that_is_no_text_and_a_key_that_is_no_key_are_refused() {
    let text = bytes_of(&Box::<[u8]>::from([0xff]));
    assert_eq!(discriminant(read::<Arc<str>>(&text)), ("text", 0));
    let grantee = [bytes_of(&Arc::<str>::from("ed25519:no")), vec![0; 24]].concat();
    assert_eq!(discriminant(read::<Arc<Grantee>>(&grantee)), ("key", 0));
}

#[test]
fn a_time_is_a_number_of_nanoseconds() {
    assert_eq!(bytes_of(&Duration::from_nanos(258)), [0, 0, 0, 0, 0, 0, 1, 2]);
    assert_eq!(read::<Duration>(&[0xff; 8]), Ok(Duration::from_nanos(u64::MAX)));
    assert_eq!(bytes_of(&Duration::MAX), [0xff; 8], "584 years are the most");
}

#[test]
fn an_origin_keeps_its_address_and_its_channel() {
    let key = OriginChannel::Key(crate::KeyId([9; 32]));
    for channel in [OriginChannel::Plain, OriginChannel::Tls, key] {
        let origin = Origin::from_bytes([5; 16]).over(channel);
        let again = read::<Origin>(&bytes_of(&origin)).unwrap();
        assert_eq!((again.bytes(), again.channel()), (origin.bytes(), origin.channel()));
    }
}

#[test]
fn credentials_of_callbacks_are_read_again() {
    let (machine, gids) = (Box::<[u8]>::from(*b"host"), Box::from([1, 2]));
    let sys = CallbackSecurity::Sys { machine, uid: 3, gid: 4, gids };
    let list: Box<[CallbackSecurity]> = Box::new([CallbackSecurity::None, sys]);
    assert_eq!(read(&bytes_of(&list)), Ok(list));
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(0..4_u8, 0..200)) {
        let _ = read::<Vec<ExportedState>>(&bytes);
        let _ = read::<Vec<crate::ExportedSession>>(&bytes);
        let _ = read::<Vec<crate::ExportedOwner>>(&bytes);
        let _ = read::<Vec<crate::ExportedFile>>(&bytes);
        let _ = read::<Vec<crate::ExportedClient>>(&bytes);
        let _ = read::<Arc<Cred<Disk>>>(&bytes);
    }

    #[test]
    fn a_state_that_is_read_is_written_with_the_same_bytes(
        bytes in proptest::collection::vec(prop_oneof![9 => Just(0_u8), 1 => 0..4_u8], 0..200),
    ) {
        let mut decoder = Decoder::new(&bytes);
        if let Ok(state) = ExportedState::take(&mut decoder) {
            let length = bytes.len() - decoder.rest().len();
            prop_assert_eq!(&bytes_of(&state), &bytes[..length]);
        }
    }
}
