use comity_proto::nfs4::{Nfsstat4, Stateid4};

use crate::compound::Compound;
use crate::table::Stop;

/// Whether the current file may be read by who shows this stateid.
pub(crate) fn may_read(compound: &Compound<'_>, stateid: &Stateid4) -> Result<(), Stop> {
    may(compound, stateid)
}

/// Whether the current file may be written by who shows this stateid.
pub(crate) fn may_write(compound: &Compound<'_>, stateid: &Stateid4) -> Result<(), Stop> {
    may(compound, stateid)
}

/// The same of the saved file, which is read.
pub(crate) fn may_read_saved(compound: &Compound<'_>, stateid: &Stateid4) -> Result<(), Stop> {
    may(compound, stateid)
}

fn may(_: &Compound<'_>, stateid: &Stateid4) -> Result<(), Stop> {
    match *stateid {
        Stateid4::ANONYMOUS | Stateid4::READ_BYPASS => Ok(()),
        _ => Err(Nfsstat4::BadStateid.into()),
    }
}
