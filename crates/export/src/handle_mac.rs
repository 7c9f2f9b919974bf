//! Handles on the wire: the backend's bytes, the export, and a MAC over both, so that a client
//! cannot construct the handle of an object that it was never shown.
//!
//! Layout: version (1 byte), export id (4, big endian), MAC (8), the backend's bytes (1 to 48).

use std::hash::{Hash, Hasher};
use std::net::IpAddr;

use comity_vfs::limits::HANDLE_BYTES_MAX;
use comity_vfs::{Handle, Result, Status};
use siphasher::sip::SipHasher24;
use siphasher::sip128;

use crate::ExportId;

const VERSION: u8 = 1;
const HEADER_BYTES: usize = 13;

/// Longest handle in bytes: the limit of NFSv3 (NFS3_FHSIZE).
const SEALED_BYTES_MAX: usize = 64;

const _: () = assert!(HEADER_BYTES + HANDLE_BYTES_MAX <= SEALED_BYTES_MAX);

/// The server's secret for handles. It must be the same after a restart, or all clients' handles
/// become stale.
#[derive(Clone)]
pub struct HandleKey {
    handles: SipHasher24,
    /// The key for verifiers. Clients see its results in the times of files that they make, so it
    /// must reveal nothing about the key of handles.
    verifiers: SipHasher24,
}

/// A handle with its MAC, as it is sent.
#[derive(Clone, Copy)]
pub struct SealedHandle {
    length: u8,
    bytes: [u8; SEALED_BYTES_MAX],
}

impl SealedHandle {
    /// An empty handle, which names no object.
    pub(crate) const NONE: Self = Self { length: 0, bytes: [0; SEALED_BYTES_MAX] };

    /// Its bytes.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or_default()
    }
}

/// Length in bytes to which a purpose is padded: longer than any handle with its export.
const PURPOSE_BYTES: usize = 64;

const _: () = assert!(PURPOSE_BYTES > size_of::<ExportId>() + HANDLE_BYTES_MAX);

/// Derives a key for one purpose from the secret of the handles. The secret itself is used only for
/// handles, so that handles of earlier versions stay valid. The text hashed here is longer than the
/// input of a handle's MAC, so that no MAC is part of a key.
#[must_use]
pub fn derived_key(secret: &[u8; 16], purpose: &'static str) -> [u8; 16] {
    debug_assert!(purpose.len() <= PURPOSE_BYTES, "purposes are told apart by all of their bytes");
    let mut message = [0; PURPOSE_BYTES];
    message.iter_mut().zip(purpose.bytes()).for_each(|(place, byte)| *place = byte);
    sip128::SipHasher24::new_with_key(secret).hash(&message).as_bytes()
}

/// The export that a handle off the wire claims; only opening the handle verifies the claim.
#[inline]
pub(crate) fn claimed(sealed: &[u8]) -> Option<ExportId> {
    let (_, rest) = sealed.split_first()?;
    rest.first_chunk().map(|id| ExportId(u32::from_be_bytes(*id)))
}

impl HandleKey {
    /// Makes a key of 16 secret random bytes.
    #[must_use]
    pub fn new(secret: [u8; 16]) -> Self {
        let verifiers = derived_key(&secret, "exclusive verifiers");
        Self {
            handles: SipHasher24::new_with_key(&secret),
            verifiers: SipHasher24::new_with_key(&verifiers),
        }
    }

    /// Adds the export and the MAC to a backend's handle.
    #[must_use]
    pub fn seal(&self, export: ExportId, handle: &Handle) -> SealedHandle {
        let [a, b, c, d] = export.0.to_be_bytes();
        let [s, t, u, v, w, x, y, z] = self.mac(export, handle);
        let mut bytes = [0; SEALED_BYTES_MAX];
        // All pieces have fixed lengths, for speed: a listing seals a handle for each entry.
        if let Some((header, rest)) = bytes.split_first_chunk_mut::<HEADER_BYTES>() {
            *header = [VERSION, a, b, c, d, s, t, u, v, w, x, y, z];
            rest.first_chunk_mut().into_iter().for_each(|place| *place = *handle.padded());
        }
        SealedHandle { length: (HEADER_BYTES + handle.bytes().len()) as u8, bytes }
    }

    /// Verifies a handle from the wire.
    ///
    /// # Errors
    /// [`Status::BadHandle`] if it was not sealed with this key.
    pub fn open(&self, sealed: &[u8]) -> Result<(ExportId, Handle)> {
        let (version, rest) = sealed.split_first().ok_or(Status::BadHandle)?;
        let (id, rest) = rest.split_first_chunk::<4>().ok_or(Status::BadHandle)?;
        let (mac, data) = rest.split_first_chunk::<8>().ok_or(Status::BadHandle)?;
        let export = ExportId(u32::from_be_bytes(*id));
        let handle = Handle::new(data)?;
        // The comparison of two u64 takes the same time wherever they differ.
        let genuine = u64::from_be_bytes(*mac) == u64::from_be_bytes(self.mac(export, &handle));
        if *version == VERSION && genuine { Ok((export, handle)) } else { Err(Status::BadHandle) }
    }

    /// Derives the stored verifier of an exclusive create from the client and its own verifier.
    pub(crate) fn verifier_of(&self, client: IpAddr, verifier: [u8; 8]) -> [u8; 8] {
        let mut hasher = self.verifiers;
        client.to_canonical().hash(&mut hasher);
        hasher.write(&verifier);
        hasher.finish().to_be_bytes()
    }

    fn mac(&self, export: ExportId, handle: &Handle) -> [u8; 8] {
        let mut message = [0; size_of::<ExportId>() + HANDLE_BYTES_MAX];
        let length = size_of::<ExportId>() + handle.bytes().len();
        if let Some((id, rest)) = message.split_first_chunk_mut() {
            *id = export.0.to_be_bytes();
            rest.copy_from_slice(handle.padded());
        }
        self.handles.hash(message.get(..length).unwrap_or_default()).to_be_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The expected handle comes from the reference implementation of SipHash-2-4. Clients keep
    /// handles for years, so that they have to stay valid after every change of this program.
    #[test]
    fn a_handle_is_sealed_as_in_earlier_versions() {
        let handle = Handle::new(b"fourteen bytes").unwrap();
        let sealed = HandleKey::new([7; 16]).seal(ExportId(0x0102_0304), &handle);
        let mut reference = SipHasher24::new_with_key(&[7; 16]);
        reference.write(&[1, 2, 3, 4]);
        reference.write(b"fourteen bytes");
        let mac = reference.finish().to_be_bytes();
        assert_eq!(sealed.bytes(), [&[1, 1, 2, 3, 4][..], &mac, b"fourteen bytes"].concat());
    }

    #[test]
    fn each_purpose_has_a_key_of_its_own() {
        let key = |secret: u8, purpose| derived_key(&[secret; 16], purpose);
        let keys = [[7; 16], key(7, "one"), key(7, "other"), key(7, "one more"), key(8, "one")];
        for (at, one) in keys.iter().enumerate() {
            assert!(keys.iter().skip(at + 1).all(|other| other != one));
        }
        assert_eq!(key(7, "one"), key(7, "one"));
    }

    /// A client chooses the hashed text and sees the result.
    #[test]
    fn a_verifier_reveals_nothing_about_the_mac_of_a_handle() {
        let client: IpAddr = "192.0.2.1".parse().unwrap();
        let mut message = SipHasher24::new_with_key(&[7; 16]);
        client.hash(&mut message);
        message.write(&[1; 8]);
        let told = HandleKey::new([7; 16]).verifier_of(client, [1; 8]);
        assert_ne!(told, message.finish().to_be_bytes());
    }

    proptest! {
        #[test]
        fn only_sealed_handles_are_opened(
            data in proptest::collection::vec(any::<u8>(), 1..=48),
            id in any::<u32>(),
            flip in any::<(u8, u8)>(),
        ) {
            let (key, handle) = (HandleKey::new([7; 16]), Handle::new(&data).unwrap());
            let mut sealed = key.seal(ExportId(id), &handle).bytes().to_vec();
            prop_assert_eq!(key.open(&sealed), Ok((ExportId(id), handle)));
            prop_assert_eq!(HandleKey::new([8; 16]).open(&sealed), Err(Status::BadHandle));
            let at = usize::from(flip.0) % sealed.len();
            sealed[at] ^= flip.1 | 1;
            prop_assert_eq!(key.open(&sealed), Err(Status::BadHandle));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            prop_assert_eq!(HandleKey::new([7; 16]).open(&bytes), Err(Status::BadHandle));
        }
    }
}
