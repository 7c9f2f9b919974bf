//! OPEN: its arguments and its result.

use comity_proto::nfs4::{
    Access4res, Fattr4, NfsFh4, Open4args, Open4resok, OpenClaim4, OpenDelegation4, Openflag4,
    StateOwner4, Stateid4, open_result, operation as op, share,
};
use comity_vfs::{Access, DelegationKind, OpenAccess};
use comity_xdr::{Encode, Encoder, Opaque};

use super::reply::{CompoundReply, OpFailure};
use crate::server_handle::ServerHandle;

/// The arguments of an OPEN that denies nothing to others.
#[derive(Debug)]
pub(crate) struct OpenArguments<'a> {
    /// The number of the open-owner.
    pub(crate) owner: u32,
    /// The bits of the access.
    pub(crate) access: u32,
    /// True if the client wants a delegation.
    pub(crate) wants_delegation: bool,
    /// The choice to create the file or not.
    pub(crate) how: Openflag4<'a>,
    /// The name, handle or delegation by which the file is opened.
    pub(crate) claim: OpenClaim4<'a>,
}

impl Encode for OpenArguments<'_> {
    fn encode(&self, encoder: &mut Encoder) {
        let wish =
            if self.wants_delegation { share::WANT_NO_PREFERENCE } else { share::WANT_NO_DELEG };
        let owner = self.owner.to_be_bytes();
        encoder.value(&Open4args {
            seqid: 0,
            share_access: self.access | wish,
            share_deny: 0,
            // RFC 8881, 18.16.3: the server takes the client from the session and ignores this
            // clientid.
            owner: StateOwner4 { clientid: 0, owner: Opaque(&owner) },
            openhow: self.how,
            claim: self.claim,
        });
    }
}

/// The bits of `share_access`.
pub(crate) const fn share_bits(access: OpenAccess) -> u32 {
    match access {
        OpenAccess::Read => share::READ,
        OpenAccess::Write => share::WRITE,
        OpenAccess::Both => share::BOTH,
    }
}

/// The result of an OPEN.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OpenResult {
    /// The file, if it was opened by name.
    pub(crate) file: Option<ServerHandle>,
    /// The open's stateid.
    pub(crate) stateid: Stateid4,
    /// The delegation that came with it, and whether the server wants it returned at once.
    pub(crate) delegation: Option<(Stateid4, DelegationKind, bool)>,
    /// Share bits that the server grants although the caller lacks the right: servers let a client
    /// open a file for reading that the caller may only execute (RFC 8881, 18.16.3).
    pub(crate) denied: u32,
    /// True if the server notifies this client when a lock it waits for may be free.
    pub(crate) notifies_locks: bool,
}

/// Reads the results of PUTFH and OPEN, or, with `by_name`, of PUTFH, SAVEFH, GETATTR, OPEN and
/// GETFH. An ACCESS after an OPEN by handle is read too.
///
/// # Errors
/// [`OpFailure`] if nothing was opened.
pub(crate) fn read_open(reply: &CompoundReply, by_name: bool) -> Result<OpenResult, OpFailure> {
    let mut results = reply.results();
    results.status(op::PUTFH)?;
    if by_name {
        results.status(op::SAVEFH)?;
        results.next::<Fattr4<'_>>(op::GETATTR)?;
    }
    let opened: Open4resok<'_> = results.next(op::OPEN)?;
    let file = if by_name {
        let handle: NfsFh4<'_> = results.next(op::GETFH)?;
        ServerHandle::new(handle.0)
    } else {
        None
    };
    let delegation = match opened.delegation {
        OpenDelegation4::Read(read) => Some((read.stateid, DelegationKind::Read, read.recall)),
        OpenDelegation4::Write(write) => Some((write.stateid, DelegationKind::Write, write.recall)),
        OpenDelegation4::None | OpenDelegation4::NoneExt(_) => None,
    };
    let notifies_locks = opened.rflags & open_result::MAY_NOTIFY_LOCK != 0;
    let denied = match results.next::<Access4res>(op::ACCESS) {
        Ok(granted) if granted.access & Access::READ.bits() == 0 => share_bits(OpenAccess::Read),
        _ => 0,
    };
    Ok(OpenResult { file, stateid: opened.stateid, delegation, denied, notifies_locks })
}
