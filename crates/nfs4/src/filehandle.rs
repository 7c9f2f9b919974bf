use comity_credential::{AuthStat, CredentialRef};
use comity_export::{Absent, Door, Export, Node, Plan, PseudoNode, Refusal, RpcPeer, View};
use comity_proto::nfs4::Nfsstat4;

use crate::stop::Stop;

/// The object of the current or the saved filehandle.
#[derive(Clone)]
pub(crate) enum Object<'a> {
    /// A directory above the exports.
    Pseudo(PseudoNode<'a>),
    /// An object inside an export.
    In(View<'a>, Node),
    /// A file system that other servers have. It has no objects here.
    Absent(Absent<'a>),
}

/// The result of a lookup.
pub(crate) enum Finding<'a> {
    /// An object in the same export or tree.
    Object(Object<'a>),
    /// The root of an export, which must still be entered.
    Export(&'a Export),
}

/// Opens a view for a caller at an object. All requests of NFSv4 call this function.
pub(crate) fn enter<'a>(
    plan: &'a Plan,
    visitor: &RpcPeer,
    credential: &CredentialRef<'_>,
    door: Door<'_>,
) -> Result<Object<'a>, Stop> {
    match View::enter(plan, visitor, credential, door) {
        Ok((view, node)) => Ok(Object::In(view, node)),
        Err(refusal) => refused(plan, refusal),
    }
}

#[cold]
fn refused(plan: &Plan, refusal: Refusal) -> Result<Object<'_>, Stop> {
    match refusal {
        Refusal::Status(status) => Err(status.into()),
        Refusal::Denied(AuthStat::TooWeak) => Err(Nfsstat4::WrongSec.into()),
        Refusal::Denied(_) => Err(Nfsstat4::Access.into()),
        Refusal::Referred(referred) => {
            plan.absent(referred).map(Object::Absent).ok_or(Nfsstat4::Stale.into())
        }
    }
}
