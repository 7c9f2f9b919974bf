//! The caller of a transcript: its address and port, and the ids of its credential.

use std::net::SocketAddr;

use comity_credential::{CredentialRef, Flavor, OpaqueAuth};
use comity_export::{Door, Node, Plan, Refusal, RpcPeer, View};
use comity_rpc::AuthSys;
use comity_vfs::{Cred, Gid, Uid, Wire};
use comity_xdr::{Counted, Encoder, Opaque};

/// A caller by AUTH_SYS, or by AUTH_NONE if it has no ids.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) peer: SocketAddr,
    pub(crate) ids: Option<Vec<u32>>,
}

impl Caller {
    /// Reads `PEER[:PORT] UID GID [GID...]`; without ids it calls by AUTH_NONE. The port is 700
    /// unless it is given.
    pub(crate) fn parse(words: &[&str]) -> Self {
        let peer = words[0].parse().or_else(|_| format!("{}:700", words[0]).parse());
        let ids: Vec<u32> = words[1..].iter().map(|id| id.parse().unwrap()).collect();
        Self { peer: peer.unwrap(), ids: (!ids.is_empty()).then_some(ids) }
    }

    /// Returns the credential, for which a script has a decision explained.
    pub(crate) fn cred(&self) -> Cred<Wire> {
        let ids = self.ids.clone().unwrap();
        let groups = ids[2..].iter().copied().map(Gid::new);
        Cred::new(Uid::new(ids[0]), Gid::new(ids[1])).with_groups(groups)
    }

    pub(crate) fn enter<'p>(
        &self,
        plan: &'p Plan,
        path: &str,
    ) -> Result<(View<'p>, Node), Refusal> {
        let mut encoder = Encoder::new();
        let flavor = match &self.ids {
            Some(ids) => {
                let gids = Counted(ids[2..].to_vec());
                let (uid, gid, machine_name) = (ids[0], ids[1], Opaque(&b"c"[..]));
                encoder.value(&AuthSys { stamp: 1, machine_name, uid, gid, gids });
                Flavor::SYS
            }
            None => Flavor::NONE,
        };
        let auth = OpaqueAuth { flavor, body: Opaque(encoder.bytes()) };
        let peer = RpcPeer::new(self.peer);
        View::enter(plan, &peer, &CredentialRef::parse(&auth), Door::Path(path.as_bytes()))
    }
}
