use comity_export::Plan;
use comity_proto::nfs4::layout_callback::{CbLayoutrecall4args, Layoutrecall4, LayoutrecallFile4};
use comity_proto::nfs4::{Layoutiomode4, Stateid4};
use comity_state::Stateid;
use comity_vfs::{FileKey, LayoutKind};
use comity_xdr::{Opaque, encoded};

use crate::layout_kind::type_of;

/// Returns the arguments of the CB_LAYOUTRECALL of a file.
pub(super) fn arguments(plan: &Plan, file: &FileKey, stateid: &Stateid) -> Vec<u8> {
    let kind = plan.layout_kind(file).unwrap_or(LayoutKind::Files);
    let stateid = Stateid4 { seqid: stateid.seqid, other: stateid.other };
    let handle = plan.seal_key(file);
    let (fh, offset, length) = (Opaque(handle.bytes()), 0, u64::MAX);
    encoded(&CbLayoutrecall4args {
        layout_type: type_of(kind),
        iomode: Layoutiomode4::Any,
        // The places of the bytes stay the same, so the client may still write its data.
        changed: false,
        recall: Layoutrecall4::File(LayoutrecallFile4 { fh, offset, length, stateid }),
    })
}
