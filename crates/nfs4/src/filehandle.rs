use comity_credential::{AuthStat, CredentialRef};
use comity_export::{Door, Export, Node, Plan, PseudoNode, Refusal, RpcPeer, View};
use comity_proto::nfs4::Nfsstat4;

use crate::stop::Stop;

/// An object that a COMPOUND works on: what the current or the saved file handle stands for.
#[derive(Clone)]
pub(crate) enum Object<'a> {
    /// A directory above the exports.
    Pseudo(PseudoNode<'a>),
    /// An object of an export.
    In(View<'a>, Node),
}

/// The target of a name.
pub(crate) enum Finding<'a> {
    /// An object where the name was looked for.
    Object(Object<'a>),
    /// The top of an export, which is still to be entered.
    Export(&'a Export),
}

/// Lets a caller in: the one door of this crate.
pub(crate) fn enter<'a>(
    plan: &'a Plan,
    visitor: &RpcPeer,
    credential: &CredentialRef<'_>,
    door: Door<'_>,
) -> Result<Object<'a>, Stop> {
    let entered = View::enter(plan, visitor, credential, door);
    entered.map(|(view, node)| Object::In(view, node)).map_err(|refusal| match refusal {
        Refusal::Status(status) => status.into(),
        Refusal::Denied(AuthStat::TooWeak) => Nfsstat4::WrongSec.into(),
        Refusal::Denied(_) => Nfsstat4::Access.into(),
    })
}
