use std::sync::Arc;

use comity_credential::CredentialRef;
use comity_export::{Door, Node, Plan, Refusal, RpcPeer, View};
use comity_grants::Grants;
use comity_keys::PublicKey;
use comity_programs::CallFailure;
use comity_rpc::Call;
use comity_vfs::Status;

use crate::answer::of_path;

/// A call of a caller who has proved a key.
pub(crate) struct Request<'a> {
    pub(crate) grants: &'a Arc<Grants>,
    pub(crate) plan: &'a Plan,
    pub(crate) key: PublicKey,
    pub(crate) visitor: &'a RpcPeer,
    pub(crate) call: &'a Call<'a>,
}

impl<'a> Request<'a> {
    /// Enters the caller's view at an object, given by its path.
    pub(crate) fn enter(&self, path: &str) -> Result<(View<'a>, Node), CallFailure> {
        let credential = CredentialRef::parse(&self.call.header.credential);
        let door = Door::Path(path.as_bytes());
        let entered = View::enter(self.plan, self.visitor, &credential, door);
        entered.map_err(|refusal| match refusal {
            Refusal::Status(status) => of_path(status),
            Refusal::Denied(_) | Refusal::Referred(_) => of_path(Status::Acces),
        })
    }
}
