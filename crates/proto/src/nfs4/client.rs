//! Clients of 4.0 (RFC 7530, 16.33, 16.34) and of 4.1 (RFC 8881, 18.35, 18.50, 18.51). RENEW,
//! DELEGPURGE and DESTROY_CLIENTID take only a [`Clientid4`], RECLAIM_COMPLETE only a boolean.
#![allow(missing_docs)]

use comity_xdr::{Counted, Decode, Encode, Opaque};

use super::{Bitmap4, Clientid4, Component4, Nfstime4, OPAQUE_BYTES_MAX, Seqid4, Verifier4};

/// The identifying string of a client, an owner or a server.
pub type Opaque4<'a> = Opaque<'a, OPAQUE_BYTES_MAX>;

/// A network address in universal form (RFC 5665): `netaddr4`, `clientaddr4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Netaddr4<'a> {
    pub netid: Component4<'a>,
    pub addr: Component4<'a>,
}

/// A client's identifying string, with a verifier that changes when it restarts: `nfs_client_id4`,
/// `client_owner4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct ClientOwner4<'a> {
    pub verifier: Verifier4,
    pub id: Opaque4<'a>,
}

/// The callback program and address of a client of 4.0: `cb_client4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct CbClient4<'a> {
    pub cb_program: u32,
    pub cb_location: Netaddr4<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Setclientid4args<'a> {
    pub client: ClientOwner4<'a>,
    pub callback: CbClient4<'a>,
    pub callback_ident: u32,
}

/// The result of SETCLIENTID and the argument of SETCLIENTID_CONFIRM. If the client string is in
/// use (CLID_INUSE), a [`Netaddr4`] follows the status instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct SetclientidConfirm4 {
    pub clientid: Clientid4,
    pub confirm: Verifier4,
}

/// Flags of EXCHANGE_ID.
pub mod exchgid {
    pub const SUPP_MOVED_REFER: u32 = 0x0000_0001;
    pub const SUPP_MOVED_MIGR: u32 = 0x0000_0002;
    pub const SUPP_FENCE_OPS: u32 = 0x0000_0004;
    pub const BIND_PRINC_STATEID: u32 = 0x0000_0100;
    pub const USE_NON_PNFS: u32 = 0x0001_0000;
    pub const USE_PNFS_MDS: u32 = 0x0002_0000;
    pub const USE_PNFS_DS: u32 = 0x0004_0000;
    pub const UPD_CONFIRMED_REC_A: u32 = 0x4000_0000;
    pub const CONFIRMED_R: u32 = 0x8000_0000;
}

/// The operations for which state protection is requested: `state_protect_ops4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct StateProtectOps4 {
    pub must_enforce: Bitmap4,
    pub must_allow: Bitmap4,
}

/// `ssv_sp_parms4`.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct SsvSpParms4<'a> {
    pub ops: StateProtectOps4,
    pub hash_algs: Counted<Opaque4<'a>, 32>,
    pub encr_algs: Counted<Opaque4<'a>, 32>,
    pub window: u32,
    pub num_gss_handles: u32,
}

/// `state_protect4_a`.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum StateProtect4a<'a> {
    #[xdr(0)]
    None,
    #[xdr(1)]
    MachCred(StateProtectOps4),
    #[xdr(2)]
    Ssv(SsvSpParms4<'a>),
}

/// The granted state protection: `state_protect4_r`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum StateProtect4r {
    #[xdr(0)]
    None,
    #[xdr(1)]
    MachCred(StateProtectOps4),
}

/// The name of an implementation: `nfs_impl_id4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct NfsImplId4<'a> {
    pub domain: Component4<'a>,
    pub name: Component4<'a>,
    pub date: Nfstime4,
}

#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ExchangeId4args<'a> {
    pub clientowner: ClientOwner4<'a>,
    pub flags: u32,
    pub state_protect: StateProtect4a<'a>,
    pub client_impl_id: Option<NfsImplId4<'a>>,
}

/// The identity of a server: `server_owner4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct ServerOwner4<'a> {
    pub minor_id: u64,
    pub major_id: Opaque4<'a>,
}

#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ExchangeId4resok<'a> {
    pub clientid: Clientid4,
    pub sequenceid: Seqid4,
    pub flags: u32,
    pub state_protect: StateProtect4r,
    pub server_owner: ServerOwner4<'a>,
    pub server_scope: Opaque4<'a>,
    pub server_impl_id: Option<NfsImplId4<'a>>,
}
