use crate::{Authorities, ObjectId};

/// The configuration of what a peer's certificate proves besides its key.
#[derive(Debug, Default)]
pub struct Trust {
    /// The authorities whose certificates may give names and users.
    pub authorities: Authorities,
    /// The object identifier of otherName entries that name a user
    /// (draft-cel-nfsv4-rpc-tls-othername, `id-on-rpcAuthSys`). IANA has not assigned one yet.
    pub user_names: Option<ObjectId>,
}
