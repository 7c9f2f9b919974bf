//! The size and the times of a file, which the file system of the metadata server keeps.

use comity_vfs::{Attr, Cred, Disk, Fs, Handle, Mode, Result, SetAttr, SetTime};

/// The bits of a mode that a write clears: set-user-ID and set-group-ID.
const SET_ID: u32 = 0o6000;

/// The effect of a write on the bits set-user-ID and set-group-ID of the mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SetIdBits {
    /// The bits are kept: root has written.
    Kept,
    /// The bits are cleared: another user than root has written, or an unknown one.
    Cleared,
}

impl SetIdBits {
    pub(crate) fn after_write_of(cred: &Cred<Disk>) -> Self {
        if cred.uid.number() == 0 { Self::Kept } else { Self::Cleared }
    }
}

/// Notes that data were written to data servers. The size never shrinks. Only one thread at a time
/// may call this for a file.
pub(crate) fn note(
    below: &dyn Fs,
    file: &Handle,
    (end, set_id): (Option<u64>, SetIdBits),
) -> Result<Attr<Disk>> {
    let attr = below.getattr(file)?;
    let mode = attr.mode.bits();
    let set = SetAttr {
        size: end.filter(|end| *end > attr.size),
        mtime: Some(SetTime::Now),
        mode: (mode & SET_ID != 0 && set_id == SetIdBits::Cleared)
            .then(|| Mode::new(mode & !SET_ID)),
        ..SetAttr::default()
    };
    let change = below.setattr(&Cred::root(), file, &set, None)?;
    change.after.map_or_else(|| below.getattr(file), Ok)
}
