//! Sessions (RFC 8881, 2.10 and 18.33 to 18.46).
#![allow(missing_docs)]

use comity_xdr::{Counted, Decode, Encode, Opaque};

use super::{
    Bitmap4, Clientid4, Nfsstat4, Nfstime4, OPAQUE_BYTES_MAX, Seqid4, Stateid4, Verifier4,
};

/// The id of a session: `sessionid4`.
pub type Sessionid4 = [u8; 16];

/// Limits of a channel: `channel_attrs4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode)]
pub struct ChannelAttrs4 {
    pub headerpadsize: u32,
    pub maxrequestsize: u32,
    pub maxresponsesize: u32,
    pub maxresponsesize_cached: u32,
    pub maxoperations: u32,
    pub maxrequests: u32,
    /// `ca_rdma_ird<1>`.
    pub rdma_ird: Option<u32>,
}

/// The AUTH_SYS credential that callbacks must carry: `authsys_parms`.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct CallbackSys4<'a> {
    pub stamp: u32,
    pub machine_name: Opaque<'a, 255>,
    pub uid: u32,
    pub gid: u32,
    pub gids: Counted<u32, 16>,
}

/// `gss_cb_handles4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct GssCbHandles4<'a> {
    pub service: u32,
    pub handle_from_server: Opaque<'a, OPAQUE_BYTES_MAX>,
    pub handle_from_client: Opaque<'a, OPAQUE_BYTES_MAX>,
}

/// A credential that callbacks may carry: `callback_sec_parms4`.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum CallbackSecParms4<'a> {
    #[xdr(0)]
    None,
    #[xdr(1)]
    Sys(CallbackSys4<'a>),
    #[xdr(6)]
    Gss(GssCbHandles4<'a>),
}

/// Most callback credentials that are decoded.
pub const SEC_PARMS_MAX: u32 = 16;

/// Flags of CREATE_SESSION.
pub mod create_session {
    pub const PERSIST: u32 = 1;
    pub const CONN_BACK_CHAN: u32 = 2;
    pub const CONN_RDMA: u32 = 4;
}

#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct CreateSession4args<'a> {
    pub clientid: Clientid4,
    pub sequence: Seqid4,
    pub flags: u32,
    pub fore_chan: ChannelAttrs4,
    pub back_chan: ChannelAttrs4,
    pub cb_program: u32,
    pub sec_parms: Counted<CallbackSecParms4<'a>, SEC_PARMS_MAX>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct CreateSession4resok {
    pub sessionid: Sessionid4,
    pub sequence: Seqid4,
    pub flags: u32,
    pub fore_chan: ChannelAttrs4,
    pub back_chan: ChannelAttrs4,
}

#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct BackchannelCtl4args<'a> {
    pub cb_program: u32,
    pub sec_parms: Counted<CallbackSecParms4<'a>, SEC_PARMS_MAX>,
}

/// The channels of a connection. The numbers are those of the request (`channel_dir_from_client4`)
/// and of the result (`channel_dir_from_server4`).
pub mod channel_dir {
    pub const FORE: u32 = 1;
    pub const BACK: u32 = 2;
    pub const BOTH: u32 = 3;
    /// Only in requests.
    pub const FORE_OR_BOTH: u32 = 3;
    /// Only in requests.
    pub const BACK_OR_BOTH: u32 = 7;
}

/// The arguments and results of BIND_CONN_TO_SESSION.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct BindConnToSession4 {
    pub sessid: Sessionid4,
    pub dir: u32,
    pub use_conn_in_rdma_mode: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Sequence4args {
    pub sessionid: Sessionid4,
    pub sequenceid: Seqid4,
    pub slotid: u32,
    pub highest_slotid: u32,
    pub cachethis: bool,
}

/// Flags in the result of SEQUENCE.
pub mod seq4_status {
    pub const CB_PATH_DOWN: u32 = 0x0001;
    pub const CB_GSS_CONTEXTS_EXPIRING: u32 = 0x0002;
    pub const CB_GSS_CONTEXTS_EXPIRED: u32 = 0x0004;
    pub const EXPIRED_ALL_STATE_REVOKED: u32 = 0x0008;
    pub const EXPIRED_SOME_STATE_REVOKED: u32 = 0x0010;
    pub const ADMIN_STATE_REVOKED: u32 = 0x0020;
    pub const RECALLABLE_STATE_REVOKED: u32 = 0x0040;
    pub const LEASE_MOVED: u32 = 0x0080;
    pub const RESTART_RECLAIM_NEEDED: u32 = 0x0100;
    pub const CB_PATH_DOWN_SESSION: u32 = 0x0200;
    pub const BACKCHANNEL_FAULT: u32 = 0x0400;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Sequence4resok {
    pub sessionid: Sessionid4,
    pub sequenceid: Seqid4,
    pub slotid: u32,
    pub highest_slotid: u32,
    pub target_highest_slotid: u32,
    pub status_flags: u32,
}

/// Most stateids of one TEST_STATEID that are decoded.
pub const STATEIDS_MAX: u32 = 4096;

/// The arguments of TEST_STATEID.
pub type TestStateid4args = Counted<Stateid4, STATEIDS_MAX>;
/// The results of TEST_STATEID.
pub type TestStateid4resok = Counted<Nfsstat4, STATEIDS_MAX>;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct GetDirDelegation4args {
    pub signal_deleg_avail: bool,
    pub notification_types: Bitmap4,
    pub child_attr_delay: Nfstime4,
    pub dir_attr_delay: Nfstime4,
    pub child_attributes: Bitmap4,
    pub dir_attributes: Bitmap4,
}

/// A directory delegation that was granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct GetDirDelegation4resok {
    pub cookieverf: Verifier4,
    pub stateid: Stateid4,
    /// The notifications that will be sent.
    pub notification: Bitmap4,
    pub child_attributes: Bitmap4,
    pub dir_attributes: Bitmap4,
}

/// The non-fatal part of GET_DIR_DELEGATION's result: `gddrnf4_status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum GetDirDelegation4res {
    #[xdr(0)]
    Ok(GetDirDelegation4resok),
    #[xdr(1)]
    Unavail { will_signal_deleg_avail: bool },
}
