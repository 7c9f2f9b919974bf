use comity_proto::nfs4::{CompoundHead, Nfsstat4, operation};

use crate::traits::Traits;

/// Checks that SEQUENCE is the first operation and appears only once. A few operations may stand
/// without it, but only alone (RFC 8881, 2.10.2, 18.46.3).
pub(super) fn admit(
    head: &CompoundHead<'_>,
    at: u32,
    (number, traits): (u32, Traits),
) -> Result<(), Nfsstat4> {
    match (at, number) {
        // ILLEGAL has its own error, at every position.
        (_, operation::ILLEGAL) => Ok(()),
        (0, operation::SEQUENCE) => Ok(()),
        (_, operation::SEQUENCE) => Err(Nfsstat4::SequencePos),
        (0, _) if !traits.has(Traits::SESSIONLESS) => Err(Nfsstat4::OpNotInSession),
        (0, _) if head.operations > 1 => Err(Nfsstat4::NotOnlyOp),
        _ => Ok(()),
    }
}
