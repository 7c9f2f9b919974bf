//! The results of OPEN.

use std::sync::Arc;

use comity_proto::nfs4::{
    NfsSpaceLimit4, Nfsace4, Open4args, Open4resok, OpenDelegation4, OpenNoneDelegation4,
    OpenReadDelegation4, OpenWriteDelegation4, ace, open_result, share,
};
use comity_state::{Client, Delegation, DelegationKind, FileKey, NoDelegation, Opened, Sender};
use comity_xdr::{Encoder, Opaque};

use super::file::File;
use crate::compound::Compound;
use crate::state_context::on_wire;

/// The `permissions` of a delegation: an ACE that permits nothing, so that the client asks the
/// server for every user but the opener.
const NOBODY_ELSE: Nfsace4<'static> =
    Nfsace4 { acetype: ace::ALLOWED, flag: 0, access_mask: 0, who: Opaque(b"") };

pub(super) fn say(
    compound: &Compound<'_>,
    (args, client): (&Open4args<'_>, &Arc<Client>),
    file: &File<'_>,
    opened: &Opened,
    reply: &mut Encoder,
) {
    let mut rflags = open_result::LOCKTYPE_POSIX;
    if opened.confirm {
        rflags |= open_result::CONFIRM;
    }
    if compound.minor > 0 && client.has_callbacks() {
        rflags |= open_result::MAY_NOTIFY_LOCK;
    }
    let asked = compound.minor > 0 && args.share_access & share::WANT_MASK != 0;
    reply.value(&Open4resok {
        stateid: on_wire(opened.stateid),
        cinfo: file.cinfo,
        rflags,
        attrset: file.attrset,
        delegation: delegation(&opened.delegation, asked),
    });
}

fn delegation(given: &Delegation, asked: bool) -> OpenDelegation4<'static> {
    let permissions = NOBODY_ELSE;
    match *given {
        Delegation::Granted { stateid, kind: DelegationKind::Read, recall } => {
            let stateid = on_wire(stateid);
            OpenDelegation4::Read(OpenReadDelegation4 { stateid, recall, permissions })
        }
        Delegation::Granted { stateid, kind: DelegationKind::Write, recall } => {
            let (stateid, space_limit) = (on_wire(stateid), NfsSpaceLimit4::Size(u64::MAX));
            OpenDelegation4::Write(OpenWriteDelegation4 {
                stateid,
                recall,
                space_limit,
                permissions,
            })
        }
        // OPEN delegates no directories.
        Delegation::Granted { kind: DelegationKind::Directory, .. } => OpenDelegation4::None,
        Delegation::Refused(_) if !asked => OpenDelegation4::None,
        Delegation::Refused(why) => OpenDelegation4::NoneExt(match why {
            NoDelegation::NotWanted => OpenNoneDelegation4::NotWanted,
            NoDelegation::Contention => OpenNoneDelegation4::Contention { server_will_push: false },
            NoDelegation::Resource => OpenNoneDelegation4::Resource { server_will_signal: false },
            NoDelegation::Cancelled => OpenNoneDelegation4::Cancelled,
        }),
    }
}

/// Asks the kernel to report opens by programs of a file that was delegated a moment ago. If a
/// program has the file open already, the delegation is taken back.
pub(super) fn hold(
    compound: &Compound<'_>,
    client: &Arc<Client>,
    file: &FileKey,
    opened: &mut Opened,
) {
    let Delegation::Granted { stateid, kind, .. } = opened.delegation else { return };
    if compound.keeps(file, kind) {
        return;
    }
    let sender = Sender::of(compound.now(), client);
    // The delegation was granted a moment ago, so the client cannot have returned it.
    let _ = compound.engine().delegreturn((sender, file), &stateid);
    opened.delegation = Delegation::Refused(NoDelegation::Contention);
}
