use std::fmt;

use comity_rpc::{AuthSys, CallHeader, Flavor, OpaqueAuth, limits::AUTH_SYS_GROUPS_MAX};
use comity_vfs::{Cred, Disk};
use comity_xdr::{Counted, Decoder, Encoder, Malformed, Opaque, RecordStart};

/// The bytes of the xid in a record with its mark.
const XID: std::ops::Range<usize> = 4..8;

/// Numbers of a program, its version and a procedure.
pub(crate) type ProcedureId = (u32, u32, u32);

/// The body of an AUTH_SYS credential for a caller. AUTH_SYS has room for 16 supplementary groups
/// (RFC 5531, appendix A); further groups are omitted, as all clients do.
pub(crate) fn auth_sys(cred: &Cred<Disk>, machine_name: &[u8]) -> Vec<u8> {
    let groups = cred.groups.iter().take(AUTH_SYS_GROUPS_MAX as usize);
    let mut encoder = Encoder::new();
    encoder.value(&AuthSys {
        stamp: 0,
        machine_name: Opaque(machine_name),
        uid: cred.uid.number(),
        gid: cred.gid.number(),
        gids: Counted(groups.map(|group| group.number()).collect()),
    });
    encoder.bytes().to_vec()
}

/// Begins the record of a call with an AUTH_SYS credential and xid 0.
pub(crate) fn begin_call(
    (program, version, procedure): ProcedureId,
    credential: &[u8],
) -> (Encoder, RecordStart) {
    let mut encoder = Encoder::new();
    let start = encoder.begin_record();
    let credential = OpaqueAuth { flavor: Flavor::SYS, body: Opaque(credential) };
    let verifier = OpaqueAuth::NONE;
    encoder.value(&CallHeader { xid: 0, program, version, procedure, credential, verifier });
    (encoder, start)
}

/// Sets the xid of a record.
pub(crate) fn set_xid(record: &mut [u8], xid: u32) {
    if let Some(place) = record.get_mut(XID) {
        place.copy_from_slice(&xid.to_be_bytes());
    }
}

/// The kind of a record that was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordKind {
    /// A call by the server.
    Call,
    /// The reply to the call of this xid.
    Reply(u32),
}

/// Classifies a record by its first words.
///
/// # Errors
/// The record is neither a call nor a reply.
pub(crate) fn kind(record: &[u8]) -> Result<RecordKind, Malformed> {
    match Decoder::new(record).words()? {
        [_, 0] => Ok(RecordKind::Call),
        [xid, 1] => Ok(RecordKind::Reply(xid)),
        [_, found] => Err(Malformed::Discriminant { of: "msg_type", found }),
    }
}

/// The code of a credential that is too weak (`auth_stat`; RFC 5531, 9).
const AUTH_TOOWEAK: u32 = 5;

/// The reason why the RPC layer of the server did not execute a call (RFC 5531, 9).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RpcRefusal {
    /// The header of the reply is malformed.
    Malformed(Malformed),
    /// The server uses another version of RPC.
    RpcMismatch,
    /// The credential was refused, with this `auth_stat`.
    Auth(u32),
    /// There is no such program.
    ProgramUnavailable,
    /// The server has other versions of the program, from the lowest to the highest.
    VersionMismatch(u32, u32),
    /// The program has no such procedure.
    ProcedureUnavailable,
    /// The server could not read the arguments.
    GarbageArguments,
    /// The server reports an error of its own.
    SystemError,
}

impl From<Malformed> for RpcRefusal {
    fn from(reason: Malformed) -> Self {
        Self::Malformed(reason)
    }
}

impl fmt::Display for RpcRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(reason) => write!(f, "the reply is malformed: {reason}"),
            Self::RpcMismatch => f.write_str("the server does not speak RPC version 2"),
            Self::Auth(AUTH_TOOWEAK) => f.write_str(
                "the server refuses the credential as too weak: its exports may demand TLS (-o \
                 xprtsec=tls, or mtls with a key), or calls from a port below 1024, which needs \
                 root",
            ),
            Self::Auth(why) => write!(f, "the server refuses the credential (auth_stat {why})"),
            Self::ProgramUnavailable => f.write_str("the server does not offer the program"),
            Self::VersionMismatch(low, high) => {
                write!(f, "the server speaks versions {low} to {high} of the program")
            }
            Self::ProcedureUnavailable => f.write_str("the server does not offer the procedure"),
            Self::GarbageArguments => f.write_str("the server could not read the arguments"),
            Self::SystemError => f.write_str("the server reports a fault of its own"),
        }
    }
}

/// Returns the offset of the results in a reply's record.
///
/// # Errors
/// [`RpcRefusal`] if there are none.
pub(crate) fn results_at(record: &[u8]) -> Result<usize, RpcRefusal> {
    let mut decoder = Decoder::new(record);
    let [_, _, denied]: [u32; 3] = decoder.words()?;
    if denied != 0 {
        return Err(match decoder.words()? {
            [0] => RpcRefusal::RpcMismatch,
            [_] => RpcRefusal::Auth(decoder.value()?),
        });
    }
    decoder.value::<OpaqueAuth<'_>>()?;
    match decoder.value::<u32>()? {
        0 => Ok(record.len() - decoder.rest().len()),
        1 => Err(RpcRefusal::ProgramUnavailable),
        2 => Err(RpcRefusal::VersionMismatch(decoder.value()?, decoder.value()?)),
        3 => Err(RpcRefusal::ProcedureUnavailable),
        4 => Err(RpcRefusal::GarbageArguments),
        5 => Err(RpcRefusal::SystemError),
        found => Err(Malformed::Discriminant { of: "accept_stat", found }.into()),
    }
}

#[cfg(test)]
mod tests {
    use comity_rpc::{AuthStat, ReplyVerifier, accepted, denied};
    use comity_vfs::{Gid, Uid};

    use super::*;

    #[test]
    fn a_credential_has_the_first_16_groups() {
        let cred = Cred::new(Uid::new(7), Gid::new(8)).with_groups((0..20).map(Gid::new));
        let bytes = auth_sys(&cred, b"host");
        let read: AuthSys<'_> = Decoder::whole(&bytes).unwrap();
        assert_eq!((read.uid, read.gid, read.machine_name.0), (7, 8, &b"host"[..]));
        assert_eq!(read.gids.0, (0..16).collect::<Vec<_>>());
    }

    #[test]
    fn results_follow_a_verifier_of_any_length() {
        for body in [&b""[..], b"four", b"STARTTLS"] {
            let verifier = ReplyVerifier::filled(Flavor(7), body).unwrap();
            let mut reply = Encoder::new();
            accepted::success(&mut reply, 9, &verifier);
            reply.value(&0x0102_0304_u32);
            assert_eq!(kind(reply.bytes()), Ok(RecordKind::Reply(9)));
            assert_eq!(results_at(reply.bytes()), Ok(reply.bytes().len() - 4));
        }
    }

    #[test]
    fn refusals_are_distinguished() {
        let empty = ReplyVerifier::Empty;
        let check = |write: &dyn Fn(&mut Encoder), expected| {
            let mut reply = Encoder::new();
            write(&mut reply);
            assert_eq!(results_at(reply.bytes()), Err(expected));
        };
        check(&|reply| denied::rpc_mismatch(reply, 1), RpcRefusal::RpcMismatch);
        check(&|reply| denied::auth_error(reply, 1, AuthStat::TooWeak), RpcRefusal::Auth(5));
        let mismatch = |reply: &mut Encoder| accepted::prog_mismatch(reply, 1, &empty, 3, 4);
        check(&mismatch, RpcRefusal::VersionMismatch(3, 4));
        let garbage = |reply: &mut Encoder| accepted::garbage_args(reply, 1, &empty);
        check(&garbage, RpcRefusal::GarbageArguments);
        let nonsense = Malformed::Discriminant { of: "accept_stat", found: 9 };
        check(&|reply| reply.words([1, 1, 0, 0, 0, 9]), RpcRefusal::Malformed(nonsense));
    }
}
