use comity_vfs::{Handle, Result, SplitMix64, Status};

use super::ffi::Vino;

/// Bytes of a handle: a part of the number of the volume, the numbers of the object and of the
/// snapshot, and a check of all three.
const HANDLE_BYTES: usize = 24;

/// Mixes numbers into one that hardly any others give. Handles and volumes depend on it: another
/// function would make all handles stale.
pub(super) fn mixed(numbers: &[u64]) -> u64 {
    numbers.iter().fold(0, |seed, number| SplitMix64::at(seed ^ number, 1))
}

/// Returns the handle of an object of a volume.
pub(super) fn encode(volume: u64, vino: Vino) -> Result<Handle> {
    let mut bytes = [0; HANDLE_BYTES];
    bytes[..4].copy_from_slice(&(volume as u32).to_be_bytes());
    bytes[4..12].copy_from_slice(&vino.ino.to_be_bytes());
    bytes[12..20].copy_from_slice(&vino.snapid.to_be_bytes());
    bytes[20..].copy_from_slice(&check(volume, vino).to_be_bytes());
    Handle::new(&bytes)
}

/// Returns the object that a handle names.
///
/// # Errors
/// [`Status::BadHandle`] if it is no handle of a Ceph file system; [`Status::Stale`] if it is one
/// of another file system.
pub(super) fn decode(volume: u64, handle: &Handle) -> Result<Vino> {
    let bytes: &[u8; HANDLE_BYTES] = handle.bytes().try_into().map_err(|_| Status::BadHandle)?;
    let number = |at: usize| bytes[at..].first_chunk().map_or(0, |it| u64::from_be_bytes(*it));
    let vino = Vino { ino: number(4), snapid: number(12) };
    if encode(volume, vino)? == *handle { Ok(vino) } else { Err(Status::Stale) }
}

fn check(volume: u64, vino: Vino) -> u32 {
    mixed(&[volume, vino.ino, vino.snapid]) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const VINO: Vino = Vino { ino: 0x100_0000_0001, snapid: u64::MAX - 1 };

    #[test]
    fn a_handle_is_the_same_in_all_versions() {
        let handle = encode(7, VINO).unwrap();
        assert_eq!(
            format!("{handle:?}"),
            "Handle(000000070000010000000001fffffffffffffffe2c9838ad)"
        );
    }

    #[test]
    fn only_the_handle_of_the_volume_is_decoded() {
        let handle = encode(7, VINO).unwrap();
        assert_eq!(decode(7, &handle), Ok(VINO));
        assert_eq!(decode(8, &handle), Err(Status::Stale));
        assert_eq!(decode(7 | 1 << 40, &handle), Err(Status::Stale));
        assert_eq!(decode(7, &Handle::new(b"short").unwrap()), Err(Status::BadHandle));
        let other = encode(7, Vino { ino: VINO.ino ^ 1, ..VINO }).unwrap();
        let mut bytes = handle.bytes().to_vec();
        bytes[11] ^= 1;
        assert_ne!(bytes, other.bytes(), "a forged number has another check");
        assert_eq!(decode(7, &Handle::new(&bytes).unwrap()), Err(Status::Stale));
    }
}
