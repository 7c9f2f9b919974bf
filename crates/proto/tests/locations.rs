//! The XDR of `fs_locations`: the bytes are those of RFC 7531, values are decoded as they were
//! encoded, and counts and lengths beyond the bounds are refused.

use comity_proto::nfs4::*;
use comity_xdr::{Counted, Decoder, Encode, Encoder, Malformed, Opaque};
use proptest::prelude::*;

fn encoded(value: &impl Encode) -> Vec<u8> {
    let mut encoder = Encoder::new();
    encoder.value(value);
    encoder.bytes().to_vec()
}

fn path<'a>(names: &[&'a [u8]]) -> Pathname4<'a> {
    Counted(names.iter().map(|name| Opaque(name)).collect())
}

fn moved() -> FsLocations4<'static> {
    let server = Counted(vec![Opaque(b"b"), Opaque(b"192.0.2.7")]);
    let location = FsLocation4 { server, rootpath: path(&[b"x"]) };
    FsLocations4 { fs_root: path(&[b"srv", b"away"]), locations: Counted(vec![location]) }
}

#[test]
fn the_bytes_are_those_of_the_rfc() {
    let expected = [
        &[0, 0, 0, 2, 0, 0, 0, 3][..],
        b"srv\0",
        &[0, 0, 0, 4],
        b"away",
        &[0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 1],
        b"b\0\0\0",
        &[0, 0, 0, 9],
        b"192.0.2.7\0\0\0",
        &[0, 0, 0, 1, 0, 0, 0, 1],
        b"x\0\0\0",
    ];
    assert_eq!(encoded(&moved()), expected.concat());
}

#[test]
fn values_are_decoded_as_they_were_encoded_and_every_other_length_is_refused() {
    let nothing = FsLocations4 { fs_root: path(&[]), locations: Counted(Vec::new()) };
    for value in [moved(), nothing] {
        let bytes = encoded(&value);
        assert_eq!(Decoder::whole::<FsLocations4<'_>>(&bytes), Ok(value));
        for length in 0..bytes.len() {
            assert!(Decoder::whole::<FsLocations4<'_>>(&bytes[..length]).is_err(), "{length}");
        }
        let longer = [&bytes[..], &[0; 4]].concat();
        assert!(Decoder::whole::<FsLocations4<'_>>(&longer).is_err());
    }
}

#[test]
fn more_servers_locations_and_components_than_the_bounds_are_refused() {
    let location = |servers| FsLocation4 {
        server: Counted(vec![Opaque(b"b"); servers as usize]),
        rootpath: path(&[]),
    };
    let whole =
        |value: &FsLocations4<'_>| Decoder::whole::<FsLocations4<'_>>(&encoded(value)).map(drop);
    let with = |fs_root, locations| FsLocations4 { fs_root, locations: Counted(locations) };
    let names = |count: u32| Counted(vec![Opaque(&b"n"[..]); count as usize]);
    for (value, fits) in [
        (with(names(COMPONENTS_MAX), Vec::new()), true),
        (with(names(COMPONENTS_MAX + 1), Vec::new()), false),
        (with(names(0), vec![location(SERVERS_MAX)]), true),
        (with(names(0), vec![location(SERVERS_MAX + 1)]), false),
        (with(names(0), vec![location(1); LOCATIONS_MAX as usize]), true),
        (with(names(0), vec![location(1); LOCATIONS_MAX as usize + 1]), false),
    ] {
        let found = whole(&value);
        assert_eq!(found.is_ok(), fits, "{found:?}");
        let is_limit = |why| matches!(why, Malformed::TooLong { .. });
        assert!(fits || found.is_err_and(is_limit));
    }
}

proptest! {
    #[test]
    fn no_bytes_make_the_decoder_panic(bytes in prop::collection::vec(any::<u8>(), 0..256)) {
        let _ = Decoder::whole::<FsLocations4<'_>>(&bytes);
    }
}
