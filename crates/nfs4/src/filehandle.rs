use comity_credential::{AuthStat, CredentialRef};
use comity_export::{Door, Export, Node, Plan, PseudoNode, Refusal, RpcPeer, View};
use comity_proto::nfs4::Nfsstat4;

use crate::stop::Stop;

/// The object of the current or the saved filehandle.
#[derive(Clone)]
pub(crate) enum Object<'a> {
    /// A directory above the exports.
    Pseudo(PseudoNode<'a>),
    /// An object inside an export.
    In(View<'a>, Node),
}

/// The result of a lookup.
pub(crate) enum Finding<'a> {
    /// An object in the same export or tree.
    Object(Object<'a>),
    /// The root of an export, which must still be entered.
    Export(&'a Export),
}

/// Enters an object for a caller. All requests of NFSv4 come through this function.
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
