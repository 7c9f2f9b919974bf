//! The common part of COPY and CLONE: both copy bytes of the saved file into the current one.

use comity_coherence::Clearance;
use comity_export::{Node, View};
use comity_proto::nfs4::{Nfsstat4, Stateid4};
use comity_vfs::FileType;

use crate::compound::Compound;
use crate::stateid::{may_read_saved, may_write};
use crate::stop::Stop;

/// Two files of one export: the first may be read, the second may be written.
pub(crate) struct Transfer<'c, 'a> {
    /// The export.
    pub(crate) view: &'c View<'a>,
    /// The clearance to write the target.
    pub(crate) clearance: Clearance<'c>,
    /// The file that is read.
    pub(crate) source: &'c Node,
    /// The file that is written.
    pub(crate) target: &'c Node,
    /// Size of the source in bytes.
    source_size: u64,
}

impl<'c, 'a> Transfer<'c, 'a> {
    /// Returns the saved and the current file, after a check of both stateids.
    ///
    /// # Errors
    /// The errors of an invalid stateid; WRONG_TYPE if an object is no file; XDEV.
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

    /// Returns the number of bytes to copy. A `count` of 0 stands for all bytes up to the end.
    ///
    /// # Errors
    /// INVAL: the source has fewer bytes, or the ranges overlap in one file.
    pub(crate) fn length(&self, (from, to): (u64, u64), count: u64) -> Result<u64, Stop> {
        let rest = self.source_size.checked_sub(from).ok_or(Nfsstat4::Inval)?;
        let length = if count == 0 { rest } else { count };
        let overlaps = self.source == self.target && from.abs_diff(to) < length;
        if length > rest || overlaps { Err(Nfsstat4::Inval.into()) } else { Ok(length) }
    }
}

/// Checks that an object is a regular file. COPY, CLONE, ALLOCATE and DEALLOCATE have the same
/// error for all other types, directories and symbolic links included (RFC 7862, 15.1.3, 15.2.3,
/// 15.4.3, 15.13.3).
///
/// # Errors
/// WRONG_TYPE.
pub(crate) const fn must_have_blocks(file_type: FileType) -> Result<(), Nfsstat4> {
    match file_type {
        FileType::Regular => Ok(()),
        _ => Err(Nfsstat4::WrongType),
    }
}
