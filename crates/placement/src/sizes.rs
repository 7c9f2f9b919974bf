//! The size and the times of a file, which the file system of the metadata server keeps.

use comity_vfs::{Attr, Disk, FileType, Fs, Handle, Mode, Result, SetAttr, SetTime};

use crate::root::root;

/// The bits of a mode that a write clears: set-user-ID and set-group-ID.
const SET_ID: u32 = 0o6000;

/// Notes that data were written to data servers. The size never shrinks. Only one thread at a time
/// may call this for a file.
pub(crate) fn note(below: &dyn Fs, file: &Handle, end: Option<u64>) -> Result<Attr<Disk>> {
    let attr = below.getattr(file)?;
    let mode = attr.mode.bits();
    let set = SetAttr {
        size: end.filter(|end| *end > attr.size),
        mtime: Some(SetTime::Now),
        mode: (mode & SET_ID != 0).then(|| Mode::new(mode & !SET_ID)),
        ..SetAttr::default()
    };
    let change = below.setattr(&root(), file, &set, None)?;
    change.after.map_or_else(|| below.getattr(file), Ok).map(shown)
}

/// The attributes of a file as clients see them. The file system below has no data of a placed
/// file, and programs assume that a file without used space has only holes.
pub(crate) fn shown(attr: Attr<Disk>) -> Attr<Disk> {
    let is_hollow = attr.file_type == FileType::Regular && attr.used < attr.size && attr.used == 0;
    Attr { used: if is_hollow { attr.size } else { attr.used }, ..attr }
}
