use std::hash::Hasher;
use std::time::Duration;

use comity_state::{Engine, ExportedVolume, Section, TransferError};
use proptest::prelude::*;
use siphasher::sip128::{Hasher128, SipHasher24};

use crate::site::{NOW, VOLUME, client, engine, file, opened, sample};

fn bytes_of(engine: &Engine) -> Vec<u8> {
    engine.export_volume(NOW, VOLUME).unwrap().to_bytes().unwrap()
}

/// Replaces the checksum by that of the bytes before it.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let length = bytes.len() - 16;
    let mut hasher = SipHasher24::new();
    hasher.write(&bytes[..length]);
    bytes[length..].copy_from_slice(&hasher.finish128().as_bytes());
    bytes
}

#[test]
fn the_first_bytes_are_the_magic_and_the_version() {
    let bytes = bytes_of(&engine(1));
    assert_eq!(bytes[..12], *b"comityst\0\0\0\x02");
    let mut other = bytes.clone();
    other[0] = b'C';
    assert_eq!(ExportedVolume::from_bytes(&other), Err(TransferError::Magic));
    let mut newer = bytes;
    newer[11] = 3;
    assert_eq!(ExportedVolume::from_bytes(&sealed(newer)), Err(TransferError::Version(3)));
}

#[test]
fn every_truncation_is_refused() {
    let bytes = bytes_of(&sample());
    for length in 0..bytes.len() {
        let cut = &bytes[..length];
        assert!(ExportedVolume::from_bytes(cut).is_err(), "{length} bytes");
        if length >= 28 {
            assert!(ExportedVolume::from_bytes(&sealed(cut.to_vec())).is_err(), "{length} sealed");
        }
    }
    let longer = [&bytes[..], &[0; 4]].concat();
    assert_eq!(ExportedVolume::from_bytes(&longer), Err(TransferError::Checksum));
    assert_eq!(ExportedVolume::from_bytes(&sealed(longer)), Err(TransferError::Length));
}

#[test]
fn every_changed_byte_is_found_by_the_checksum() {
    let bytes = bytes_of(&sample());
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1 << (at % 8);
        assert!(ExportedVolume::from_bytes(&changed).is_err(), "byte {at}");
    }
}

#[test]
fn a_section_that_is_malformed_is_named() {
    // The bytes of an empty volume: the sections begin at byte 12, with 8 bytes of head.
    let bytes = bytes_of(&engine(1));
    let changed = |at: usize, value: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = value;
        ExportedVolume::from_bytes(&sealed(bytes)).unwrap_err()
    };
    assert_eq!(changed(15, 2), TransferError::Misplaced(Section::Volume));
    assert_eq!(changed(19, 9), TransferError::SectionLength(Section::Volume));
    assert_eq!(changed(32, 0xff), TransferError::SectionLength(Section::Clients));
    let counted = changed(36, 0xff);
    assert!(matches!(counted, TransferError::Malformed(Section::Clients, _)), "{counted}");
    assert!(counted.to_string().starts_with("section clients: "));
    assert_eq!(changed(43, 6), TransferError::Misplaced(Section::Sessions));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    /// The bytes of a server that lies about its state: the checksum is right. They are refused and
    /// change nothing, or the state is as sound as any other.
    #[test]
    fn changed_bytes_are_imported_as_a_whole_or_not_at_all(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5),
    ) {
        let mut bytes = SAMPLE.with(Clone::clone);
        let length = bytes.len();
        for (at, value) in changes {
            bytes[at.index(length)] = value;
        }
        let to = engine(2);
        let (here, _) = client(&to, "here");
        opened(&to, &here, file(VOLUME, 9));
        while to.poll_effect().is_some() {}
        let (census, state) = (to.census(), to.export_volume(NOW, VOLUME));
        let volume = ExportedVolume::from_bytes(&sealed(bytes));
        match volume.map(|volume| to.import_volume(NOW, &volume)) {
            Ok(Ok(clients)) => {
                to.tick(NOW + Duration::from_secs(1));
                clients.iter().for_each(|client| to.evict(NOW, client));
                    }
            Ok(Err(_)) => prop_assert!(!to.has_effects()),
            Err(_) => {}
        }
        // The delays of files are over then, and the lease of the client is not. The first tick may
        // offer a lock to an owner that is gone; the second one ends the offer.
        to.tick(NOW + Duration::from_secs(70));
        to.tick(NOW + Duration::from_secs(80));
        prop_assert_eq!(to.export_volume(NOW, VOLUME), state);
        prop_assert_eq!(to.census(), census);
    }
}

thread_local! {
    static SAMPLE: Vec<u8> = bytes_of(&sample());
}
