use std::sync::Arc;

use comity_proto::nfs4::Stateid4;
use comity_state::{Share, Shown};
use comity_vfs::{Cred, Disk};

use crate::compound::Compound;
use crate::memory::file_of;
use crate::table::Stop;

/// Whether the current file may be read by who shows this stateid; tells who opened it for that, if
/// it was judged then whether he may.
pub(crate) fn may_read(
    compound: &Compound<'_>,
    stateid: &Stateid4,
) -> Result<Option<Arc<Cred<Disk>>>, Stop> {
    Ok(shows(compound, stateid, Share::READ)?.and_then(|shown| shown.user))
}

/// The same of writing.
pub(crate) fn may_write(
    compound: &Compound<'_>,
    stateid: &Stateid4,
) -> Result<Option<Arc<Cred<Disk>>>, Stop> {
    Ok(shows(compound, stateid, Share::WRITE)?.and_then(|shown| shown.user))
}

/// Who shows this stateid of the current file, if it is of anybody's state; it is one for this
/// access.
pub(crate) fn shows<'c>(
    compound: &'c Compound<'_>,
    stateid: &Stateid4,
    access: u32,
) -> Result<Option<Shown<'c>>, Stop> {
    compound.may_access(compound.current.as_ref().and_then(file_of), stateid, access)
}

/// The same of the saved file, which is read.
pub(crate) fn may_read_saved(compound: &Compound<'_>, stateid: &Stateid4) -> Result<(), Stop> {
    compound.may_access(compound.saved.as_ref().and_then(file_of), stateid, Share::READ)?;
    Ok(())
}
