//! GET_DIR_DELEGATION (RFC 8881, 18.39). A delegation that was granted is recalled before anybody
//! else changes the directory, or the client is notified of the change, if it asks for
//! notifications of this kind. New clients send this operation unasked, and stop using a session
//! that answers NOTSUPP.

use std::sync::Arc;
use std::time::Duration;

use comity_export::{DirectoryGrants, Node, View};
use comity_proto::nfs4::{
    GetDirDelegation4args, GetDirDelegation4res, GetDirDelegation4resok, Nfsstat4,
};
use comity_state::{
    Adaptive, Always, DirectoryPolicy, DirectoryRequest, Never, NoDirectory, NoticeWishes,
    SecondAsk, Stateid,
};
use comity_vfs::{Access, Status};
use comity_xdr::{Decoder, Encoder};

use crate::callback::notify::{NO_NOTICES, NoticeBounds, granted_notices, wishes};
use crate::compound::Compound;
use crate::filehandle::Object;
use crate::limits::{CALLBACK_HEAD_BYTES, COOKIEVERF};
use crate::stop::Stop;

/// A delegation that was granted, and the notifications that it has.
type Granted = (Stateid, Option<NoticeWishes>);

pub(super) fn get(
    compound: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    reply: &mut Encoder,
) -> Result<(), Stop> {
    let args: GetDirDelegation4args = args.value()?;
    let answer = match delegate(compound, &args)? {
        Some((stateid, notices)) => {
            let (notification, child_attributes, dir_attributes) =
                notices.map_or(NO_NOTICES, |wishes| granted_notices(&args, &wishes));
            GetDirDelegation4res::Ok(GetDirDelegation4resok {
                cookieverf: COOKIEVERF,
                stateid: compound.leave(stateid),
                notification,
                child_attributes,
                dir_attributes,
            })
        }
        None => GetDirDelegation4res::Unavail { will_signal_deleg_avail: false },
    };
    reply.value(&answer);
    Ok(())
}

/// Returns the delegation of the current directory, if it may be granted.
fn delegate(
    compound: &Compound<'_>,
    args: &GetDirDelegation4args,
) -> Result<Option<Granted>, Stop> {
    let Object::In(view, dir) = compound.object()? else { return Ok(None) };
    let parent = match view.may_delegate_directory(dir) {
        Ok(true) => view.parent(dir),
        Err(Status::NotDir) => return Err(Nfsstat4::NotDir.into()),
        Ok(false) => Err(Status::Acces),
        Err(status) => Err(status),
    };
    match parent {
        Ok(parent) => request(compound, (view, dir), &parent.node, args),
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
    args: &GetDirDelegation4args,
) -> Result<Option<Granted>, Stop> {
    let client = compound.client().ok_or(Nfsstat4::OpNotInSession)?;
    let rules = view.rules().dir_delegations;
    let bounds = NoticeBounds {
        bytes_max: callback_bytes_max(compound, client),
        unacknowledged_max: rules.notifications_max as usize,
        children: view.may_notify_of_children(),
        delay_max: Duration::from_secs(rules.delay_seconds_max.unwrap_or_default().into()),
    };
    // Notifications tell names to whoever may list them, and handles to whoever may look them up.
    let both = Access::READ | Access::LOOKUP;
    let may_know = !rules.recall_only && view.access(dir, both)?.0.contains(both);
    let notices = wishes(args, &bounds).filter(|_| may_know);
    let request = DirectoryRequest {
        client,
        caller: compound.caller,
        directory: view.key(dir),
        parent: view.key(parent),
        user: view.user(),
        policy: policy(rules.grants),
        notices,
    };
    let Ok(stateid) = compound.engine().delegate_directory(compound.now(), &request) else {
        return Ok(None);
    };
    // The delegations of the old plan were recalled before this one was granted.
    if is_in_force(compound) && compound.watches(&request.directory, rules.hold()) {
        return Ok(Some((stateid, notices)));
    }
    // The client cannot have returned it.
    let _ = compound.engine().delegreturn((compound.sender(), &request.directory), &stateid);
    Ok(None)
}

/// Returns the most bytes of notifications in one call to a client, over any of its sessions.
fn callback_bytes_max(compound: &Compound<'_>, client: &comity_state::Client) -> usize {
    let sessions = client.sessions();
    let backs = sessions.iter().filter_map(|id| compound.engine().session(id)?.back());
    let bytes = backs.map(|back| back.attrs.request_bytes_max as usize).min();
    bytes.unwrap_or(0).saturating_sub(CALLBACK_HEAD_BYTES)
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
