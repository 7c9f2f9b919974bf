use std::hash::Hasher;

use siphasher::sip128::{Hasher128, SipHasher24};

/// The magic and the version in front of the sections of a volume.
const HEAD: &[u8] = b"comityst\0\0\0\x01";

/// Bytes of the checksum after them.
const CHECKSUM_BYTES: usize = 16;

/// The bytes of a volume with these sections: an input need not guess the checksum.
#[must_use]
pub fn volume_bytes(sections: &[u8]) -> Vec<u8> {
    let bytes = [HEAD, sections].concat();
    let mut hasher = SipHasher24::new();
    hasher.write(&bytes);
    [&bytes[..], &hasher.finish128().as_bytes()].concat()
}

/// The sections in the bytes of a volume.
#[must_use]
pub fn sections_of(volume: &[u8]) -> &[u8] {
    volume.get(HEAD.len()..volume.len().saturating_sub(CHECKSUM_BYTES)).unwrap_or_default()
}
