use comity_coherence::{Checked, Clearance};
use comity_proto::nfs4::{Nfsstat4, Stateid4};
use comity_state::{Share, Shown};

use crate::compound::Compound;
use crate::filehandle::Object;
use crate::stop::Stop;

/// Checks that the current file may be read under a stateid. Returns whether the caller opened the
/// file for that, so that its rights were checked at the OPEN.
pub(crate) fn may_read(compound: &Compound<'_>, stateid: &Stateid4) -> Result<bool, Stop> {
    let checked = of_object(compound, compound.current.as_ref(), (stateid, Share::READ))?;
    Ok(checked.is_some_and(|(shown, _)| was_opened(shown.as_ref())))
}

/// Checks the same for writing. An object outside of exports gets the error of a directory.
pub(crate) fn may_write<'c>(
    compound: &'c Compound<'_>,
    stateid: &Stateid4,
) -> Result<(bool, Clearance<'c>), Stop> {
    let (shown, clearance) = shows(compound, stateid, Share::WRITE)?;
    Ok((was_opened(shown.as_ref()), clearance))
}

/// Returns the bearer of a stateid for this access to the current file, if the stateid names a
/// state.
pub(crate) fn shows<'c>(
    compound: &'c Compound<'_>,
    stateid: &Stateid4,
    access: u32,
) -> Result<Checked<'c>, Stop> {
    compound.check_io(compound.real(Nfsstat4::IsDir)?, stateid, access)
}

/// Checks that the saved file may be read. An object outside of exports passes; the operation
/// refuses it.
pub(crate) fn may_read_saved(compound: &Compound<'_>, stateid: &Stateid4) -> Result<(), Stop> {
    of_object(compound, compound.saved.as_ref(), (stateid, Share::READ)).map(drop)
}

fn was_opened(shown: Option<&Shown<'_>>) -> bool {
    shown.is_some_and(|shown| shown.opened)
}

fn of_object<'c>(
    compound: &'c Compound<'_>,
    object: Option<&Object<'_>>,
    (stateid, access): (&Stateid4, u32),
) -> Result<Option<Checked<'c>>, Stop> {
    match object {
        Some(Object::In(view, node)) => compound.check_io((view, node), stateid, access).map(Some),
        Some(Object::Pseudo(_) | Object::Absent(_)) | None => Ok(None),
    }
}
