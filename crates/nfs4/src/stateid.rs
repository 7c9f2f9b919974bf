use comity_proto::nfs4::Stateid4;
use comity_state::{Share, Shown};

use crate::compound::Compound;
use crate::filehandle::Object;
use crate::stop::Stop;

/// Whether the current file may be read by who shows this stateid; tells whether the caller opened
/// it for that, and was judged then.
pub(crate) fn may_read(compound: &Compound<'_>, stateid: &Stateid4) -> Result<bool, Stop> {
    Ok(shows(compound, stateid, Share::READ)?.is_some_and(|shown| shown.opened))
}

/// The same of writing.
pub(crate) fn may_write(compound: &Compound<'_>, stateid: &Stateid4) -> Result<bool, Stop> {
    Ok(shows(compound, stateid, Share::WRITE)?.is_some_and(|shown| shown.opened))
}

/// Who shows this stateid of the current file, if it is of anybody's state; it is one for this
/// access. What is no object of an export, the operation itself refuses.
pub(crate) fn shows<'c>(
    compound: &'c Compound<'_>,
    stateid: &Stateid4,
    access: u32,
) -> Result<Option<Shown<'c>>, Stop> {
    of_object(compound, compound.current.as_ref(), (stateid, access))
}

/// The same of the saved file, which is read.
pub(crate) fn may_read_saved(compound: &Compound<'_>, stateid: &Stateid4) -> Result<(), Stop> {
    of_object(compound, compound.saved.as_ref(), (stateid, Share::READ)).map(drop)
}

fn of_object<'c>(
    compound: &'c Compound<'_>,
    object: Option<&Object<'_>>,
    (stateid, access): (&Stateid4, u32),
) -> Result<Option<Shown<'c>>, Stop> {
    match object {
        Some(Object::In(view, node)) => compound.may_access((view, node), stateid, access),
        Some(Object::Pseudo(_)) | None => Ok(None),
    }
}
