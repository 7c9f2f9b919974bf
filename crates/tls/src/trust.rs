use crate::{Authorities, ObjectId};

/// The parts of a configuration that say what a peer's certificate proves beside its key.
#[derive(Debug, Default)]
pub struct Trust {
    /// The authorities whose certificates say names and users.
    pub authorities: Authorities,
    /// The object identifier of otherName entries that say a user
    /// (draft-cel-nfsv4-rpc-tls-othername, `id-on-rpcAuthSys`). IANA has assigned none yet.
    pub user_names: Option<ObjectId>,
}
