//! The common part of COPY and CLONE: bytes of the saved file go into the current one.

use comity_coherence::Clearance;
use comity_export::{Node, View};
use comity_proto::nfs4::{Nfsstat4, Stateid4};
use comity_vfs::FileType;

use crate::compound::Compound;
use crate::stateid::{may_read_saved, may_write};
use crate::stop::Stop;

/// Two files of one export, the first of which may be read and the second written.
pub(crate) struct Transfer<'c, 'a> {
    /// The export.
    pub(crate) view: &'c View<'a>,
    /// Leave to write the target.
    pub(crate) clearance: Clearance,
    /// The file that is read.
    pub(crate) source: &'c Node,
    /// The file that is written.
    pub(crate) target: &'c Node,
    /// Bytes of the source.
    source_size: u64,
}

impl<'c, 'a> Transfer<'c, 'a> {
    /// The saved and the current file, as these stateids may use them.
    ///
    /// # Errors
    /// As a stateid is refused; WRONG_TYPE of what is no file; XDEV.
    pub(crate) fn of(
        compound: &'c Compound<'a>,
        (source_stateid, target_stateid): (&Stateid4, &Stateid4),
    ) -> Result<Self, Stop> {
        may_read_saved(compound, source_stateid)?;
        let (_, clearance) = may_write(compound, target_stateid)?;
        let (view, target) = compound.real(Nfsstat4::WrongType)?;
        let (from, source) = compound.real_saved(Nfsstat4::WrongType)?;
        let attr = from.getattr(source)?;
        must_have_blocks(attr.file_type)?;
        must_have_blocks(view.getattr(target)?.file_type)?;
        if from.export_id() != view.export_id() {
            return Err(Nfsstat4::XDev.into());
        }
        Ok(Self { view, clearance, source, target, source_size: attr.size })
    }

    /// Returns the bytes that `count` means, 0 being all the rest.
    ///
    /// # Errors
    /// INVAL: there are not so many, or they would be written over themselves.
    pub(crate) fn length(&self, (from, to): (u64, u64), count: u64) -> Result<u64, Stop> {
        let rest = self.source_size.checked_sub(from).ok_or(Nfsstat4::Inval)?;
        let length = if count == 0 { rest } else { count };
        let overlaps = self.source == self.target && from.abs_diff(to) < length;
        if length > rest || overlaps { Err(Nfsstat4::Inval.into()) } else { Ok(length) }
    }
}

/// Nothing, if the object is a regular file. Of what else is no READ or WRITE there is one word,
/// for directories and symbolic links, too (RFC 7862, 15.1.3, 15.2.3, 15.4.3, 15.13.3).
///
/// # Errors
/// WRONG_TYPE.
pub(crate) const fn must_have_blocks(file_type: FileType) -> Result<(), Nfsstat4> {
    match file_type {
        FileType::Regular => Ok(()),
        _ => Err(Nfsstat4::WrongType),
    }
}
