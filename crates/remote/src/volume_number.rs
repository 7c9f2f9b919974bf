//! Numbers of volumes. A cache on disk knows its files and its unsent writes by them, so that a
//! number must be the same in all versions of this program: docs/formats.md.

use std::hash::Hasher;

use siphasher::sip::SipHasher13;

/// Returns the number of what a server of version 4 serves, by the identity that the server gives
/// in EXCHANGE_ID.
pub(crate) fn of_server(identity: &[u8]) -> u64 {
    let length = u64::try_from(identity.len()).unwrap_or(u64::MAX);
    hash(&[&length.to_le_bytes(), identity])
}

/// Returns the number of a file system of a server of version 3, by the server's name and the
/// `fsid` of the file system.
pub(crate) fn of_file_system(server: &str, fsid: u64) -> u64 {
    hash(&[server.as_bytes(), &[0xff], &fsid.to_le_bytes()])
}

/// Returns SipHash-1-3 of bytes, with a key of zeros.
fn hash(parts: &[&[u8]]) -> u64 {
    let mut hasher = SipHasher13::new();
    parts.iter().for_each(|part| hasher.write(part));
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected numbers were computed by another program, of the algorithm's description.
    #[test]
    fn a_number_is_the_same_in_all_versions_of_this_program() {
        assert_eq!(of_server(b"server.example.org"), 0x3fe2_f7a4_85a2_c2fe);
        assert_eq!(of_file_system("server.example.org", 42), 0x2d7f_aa92_a107_eb2c);
    }

    /// Caches of earlier versions are known by the numbers of the standard library, which may
    /// change its algorithm one day; then this test can go.
    #[test]
    fn caches_of_earlier_versions_are_found() {
        use std::hash::{DefaultHasher, Hash};

        let mut hasher = DefaultHasher::new();
        b"server.example.org"[..].hash(&mut hasher);
        assert_eq!(of_server(b"server.example.org"), hasher.finish());
        let mut hasher = DefaultHasher::new();
        ("server.example.org", 42_u64).hash(&mut hasher);
        assert_eq!(of_file_system("server.example.org", 42), hasher.finish());
    }
}
