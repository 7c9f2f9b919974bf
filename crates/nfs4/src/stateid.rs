use comity_coherence::{Checked, Clearance};
use comity_proto::nfs4::{Nfsstat4, Stateid4};
use comity_state::{Share, Shown};

use crate::compound::Compound;
use crate::filehandle::Object;
use crate::stop::Stop;

/// Checks that the current file may be read under a stateid; returns whether the caller opened it
/// for that, and was judged then.
pub(crate) fn may_read(compound: &Compound<'_>, stateid: &Stateid4) -> Result<bool, Stop> {
    let checked = of_object(compound, compound.current.as_ref(), (stateid, Share::READ))?;
    Ok(checked.is_some_and(|(shown, _)| was_opened(shown.as_ref())))
}

/// Checks the same of writing. What is no object of an export is refused as a directory is.
pub(crate) fn may_write(
    compound: &Compound<'_>,
    stateid: &Stateid4,
) -> Result<(bool, Clearance), Stop> {
    let (shown, clearance) = shows(compound, stateid, Share::WRITE)?;
    Ok((was_opened(shown.as_ref()), clearance))
}

/// Returns who shows a stateid for this access to the current file, if it is of anybody's state.
pub(crate) fn shows<'c>(
    compound: &'c Compound<'_>,
    stateid: &Stateid4,
    access: u32,
) -> Result<Checked<'c>, Stop> {
    compound.check_io(compound.real(Nfsstat4::IsDir)?, stateid, access)
}

/// Checks that the saved file may be read. What is no object of an export, the operation refuses.
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
        Some(Object::Pseudo(_)) | None => Ok(None),
    }
}
