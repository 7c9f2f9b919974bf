//! GET_DIR_DELEGATION (RFC 8881, 18.39). A delegation that was granted is recalled before anybody
//! else changes the directory; no notifications are sent. New clients send this operation unasked,
//! and stop using a session that answers NOTSUPP.

use std::sync::Arc;

use comity_export::{DirectoryGrants, Node, View};
use comity_proto::nfs4::{
    Bitmap4, GetDirDelegation4args, GetDirDelegation4res, GetDirDelegation4resok, Nfsstat4,
};
use comity_state::{
    Adaptive, Always, DirectoryPolicy, DirectoryRequest, Never, NoDirectory, SecondAsk, Stateid,
};
use comity_vfs::Status;
use comity_xdr::{Decoder, Encoder};

use crate::compound::Compound;
use crate::filehandle::Object;
use crate::limits::COOKIEVERF;
use crate::stop::Stop;

pub(super) fn get(
    compound: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    reply: &mut Encoder,
) -> Result<(), Stop> {
    args.value::<GetDirDelegation4args>()?;
    let answer = match delegate(compound)? {
        Some(stateid) => GetDirDelegation4res::Ok(GetDirDelegation4resok {
            cookieverf: COOKIEVERF,
            stateid: compound.leave(stateid),
            notification: Bitmap4::EMPTY,
            child_attributes: Bitmap4::EMPTY,
            dir_attributes: Bitmap4::EMPTY,
        }),
        None => GetDirDelegation4res::Unavail { will_signal_deleg_avail: false },
    };
    reply.value(&answer);
    Ok(())
}

/// Returns the delegation of the current directory, if it may be granted.
fn delegate(compound: &Compound<'_>) -> Result<Option<Stateid>, Stop> {
    let Object::In(view, dir) = compound.object()? else { return Ok(None) };
    let parent = match view.may_delegate_directory(dir) {
        Ok(true) => view.parent(dir),
        Err(Status::NotDir) => return Err(Nfsstat4::NotDir.into()),
        Ok(false) => Err(Status::Acces),
        Err(status) => Err(status),
    };
    match parent {
        Ok(parent) => request(compound, (view, dir), &parent.node),
        Err(_) => {
            compound.engine().refuse_directory(NoDirectory::Export);
            Ok(None)
        }
    }
}

fn request(
    compound: &Compound<'_>,
    (view, dir): (&View<'_>, &Node),
    parent: &Node,
) -> Result<Option<Stateid>, Stop> {
    let client = compound.client().ok_or(Nfsstat4::OpNotInSession)?;
    let request = DirectoryRequest {
        client,
        caller: compound.caller,
        directory: view.key(dir),
        parent: view.key(parent),
        user: view.user(),
        policy: policy(view.rules().dir_delegations.grants),
    };
    let Ok(stateid) = compound.engine().delegate_directory(compound.now(), &request) else {
        return Ok(None);
    };
    if is_in_force(compound) {
        return Ok(Some(stateid));
    }
    // The delegations of the old plan were recalled before this one was granted. The client cannot
    // have returned it.
    let _ = compound.engine().delegreturn((compound.sender(), &request.directory), &stateid);
    Ok(None)
}

/// Returns whether the exports by which the request was judged are still in force.
fn is_in_force(compound: &Compound<'_>) -> bool {
    let current = Arc::clone(&compound.nfs.exports().current());
    std::ptr::eq(compound.plan, &*current)
}

fn policy(grants: DirectoryGrants) -> &'static dyn DirectoryPolicy {
    match grants {
        DirectoryGrants::Never => &Never,
        DirectoryGrants::Always => &Always,
        DirectoryGrants::SecondAsk => &SecondAsk,
        DirectoryGrants::Adaptive => &Adaptive,
    }
}
