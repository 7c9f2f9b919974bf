//! Layout types on the wire.

use comity_proto::nfs4::{Nfsstat4, layout_type};
use comity_vfs::LayoutKind;

use crate::stop::Stop;

/// Returns the number of a kind of layouts.
pub(crate) const fn type_of(kind: LayoutKind) -> u32 {
    match kind {
        LayoutKind::Files => layout_type::FILES,
        LayoutKind::FlexibleFiles => layout_type::FLEX_FILES,
    }
}

/// Returns the kind of a layout type that a client names.
///
/// # Errors
/// `NFS4ERR_UNKNOWN_LAYOUTTYPE`.
pub(crate) fn kind_of(layout_type: u32) -> Result<LayoutKind, Stop> {
    let kinds = [LayoutKind::Files, LayoutKind::FlexibleFiles];
    let found = kinds.into_iter().find(|kind| type_of(*kind) == layout_type);
    found.ok_or(Nfsstat4::UnknownLayoutType.into())
}

/// Checks that a layout type is that of an export, if the export has layouts at all.
///
/// # Errors
/// `NFS4ERR_UNKNOWN_LAYOUTTYPE`.
pub(crate) fn check_type(layout_type: u32, of_export: Option<LayoutKind>) -> Result<(), Stop> {
    let kind = kind_of(layout_type)?;
    match of_export {
        Some(own) if own != kind => Err(Nfsstat4::UnknownLayoutType.into()),
        _ => Ok(()),
    }
}
