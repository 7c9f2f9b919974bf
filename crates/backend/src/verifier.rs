//! The verifier of an exclusive CREATE, kept in the times of the file.

use comity_vfs::{Disk, Mode, SetAttr, SetTime, Time};

/// Mode of a file whose attributes come later, with the call after an exclusive CREATE.
pub(crate) const EXCLUSIVE_MODE: u32 = 0o600;

/// The verifier of an exclusive CREATE is kept in the file's times until its maker sets them (RFC
/// 1813, 3.3.8), so it outlives a restart. Not all file systems hold the highest bit of a second.
pub(crate) fn times_of_verifier(verifier: [u8; 8]) -> (i64, i64) {
    let [a, b, c, d, e, f, g, h] = verifier;
    let seconds = |bytes| i64::from(u32::from_be_bytes(bytes) & 0x7fff_ffff);
    (seconds([a, b, c, d]), seconds([e, f, g, h]))
}

/// Returns the attributes of a file that is made with a verifier.
pub(crate) fn set_of_verifier(verifier: [u8; 8]) -> SetAttr<Disk> {
    let (atime, mtime) = times_of_verifier(verifier);
    let time = |seconds| Some(SetTime::To(Time { seconds, nanoseconds: 0 }));
    let mode = Some(Mode::new(EXCLUSIVE_MODE));
    SetAttr { mode, atime: time(atime), mtime: time(mtime), ..SetAttr::default() }
}
