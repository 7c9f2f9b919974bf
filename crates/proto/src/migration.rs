//! The migration program: a server hands an export, with the state of its clients, over to another
//! one. It is a program of this project, served on the NFS port over TLS only, to servers that have
//! proved a key of the configuration. docs/formats.md describes it.
//!
//! A reply begins with a [`Status`] of the programs of this project; after a status other than OK,
//! only a text for people follows.

use comity_xdr::{Counted, Decode, Encode, Opaque};

pub use crate::grants::{Status, Text};

/// Program number, from the range that RFC 5531 (section 13.1) leaves to users.
pub const PROGRAM: u32 = 0x2043_4d55;
/// The only version.
pub const VERSION: u32 = 1;

/// Procedure numbers.
pub mod procedure {
    #![allow(missing_docs)]
    pub const NULL: u32 = 0;
    pub const OFFER: u32 = 1;
    pub const SEND: u32 = 2;
    pub const TAKE: u32 = 3;
    pub const OUTCOME: u32 = 4;
    pub const FORWARD: u32 = 5;
    pub const HOSTS: u32 = 6;
    pub const LOAD: u32 = 7;
}

/// Most exports that move together.
pub const EXPORTS_MAX: u32 = 64;
/// Most bytes of state in one call.
pub const CHUNK_BYTES_MAX: u32 = 256 << 10;
/// Most bytes of a call of a client that is forwarded: the largest WRITE of NFSv3 and its header.
pub const CALL_BYTES_MAX: u32 = (1 << 20) + (32 << 10);
/// Most bytes of the reply to such a call.
pub const REPLY_BYTES_MAX: u32 = CALL_BYTES_MAX;
/// Most hosts in a reply.
pub const HOSTS_MAX: u32 = 16_384;
/// Longest handle in bytes.
const HANDLE_BYTES_MAX: u32 = 64;

/// A number that names one migration. The source chooses it at random.
pub type MigrationId = [u8; 16];

/// An export of the source, as the target needs to recognize it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct OfferedExport<'a> {
    /// Its path.
    pub path: Text<'a>,
    /// The handle of its top directory, as clients know it. The target can read it only if it has
    /// the same key of handles.
    pub top: Opaque<'a, HANDLE_BYTES_MAX>,
    /// The number of its volume.
    pub volume: u64,
    /// The file number of its top directory.
    pub fileid: u64,
    /// The change attribute of its top directory.
    pub change: u64,
}

/// Arguments of OFFER and TAKE. OFFER asks whether the target could take these exports, and begins
/// a transfer; TAKE, after all bytes were sent, makes the target serve them.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct MigrationArgs<'a> {
    /// The migration.
    pub id: MigrationId,
    /// The exports.
    pub exports: Counted<OfferedExport<'a>, EXPORTS_MAX>,
}

/// Arguments of SEND.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct SendArgs<'a> {
    /// The migration.
    pub id: MigrationId,
    /// The number of bytes that were sent before.
    pub offset: u64,
    /// The next bytes of the state.
    pub bytes: Opaque<'a, CHUNK_BYTES_MAX>,
}

/// Arguments of FORWARD: a call of a client of NFSv3 that has not followed its export. The target
/// answers it as if the client had called there. The result is a [`ForwardedReply`].
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ForwardArgs<'a> {
    /// The address of the client; an IPv4 address is mapped (RFC 4291, 2.5.5.2).
    pub address: [u8; 16],
    /// Its port.
    pub port: u32,
    /// The RPC message, without a record mark.
    pub call: Opaque<'a, CALL_BYTES_MAX>,
}

/// The reply to a forwarded call: an RPC message without a record mark; empty if the client gets no
/// reply.
pub type ForwardedReply<'a> = Opaque<'a, REPLY_BYTES_MAX>;

/// The result of HOSTS, which has no arguments: the hosts of NFSv3 that have locks in exports which
/// the caller has handed over, so that the caller can notify them of a restart.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode)]
pub struct HostsReply {
    /// A number that differs in every run of this server. In a new run the hosts have lost their
    /// locks, and may reclaim them.
    pub run: u64,
    /// The addresses of the hosts; an IPv4 address is mapped (RFC 4291, 2.5.5.2).
    pub hosts: Counted<[u8; 16], HOSTS_MAX>,
}

/// The result of LOAD, which has no arguments: the load of the server, as averages over a minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode)]
pub struct LoadReply {
    /// The time in seconds since the server began to sample its load.
    pub sampled_seconds: u64,
    /// Thousandths of a call that clients make in a second.
    pub millicalls: u64,
    /// Bytes that the server receives in a second.
    pub received_bytes: u64,
    /// Bytes that the server sends in a second.
    pub sent_bytes: u64,
    /// Thousandths of a processor that the server itself uses.
    pub own_millicores: u64,
    /// Thousandths of a processor that all programs use, of those on which the server may run.
    pub millicores: LoadAmount,
    /// Thousandths of the time that the server takes for its work, of what it would take without
    /// others on its processors.
    pub processor_slowdown: u32,
    /// The number of network lines whose capacity is known.
    pub lines: u32,
    /// Bytes a second that the fullest network line receives.
    pub receive: LoadAmount,
    /// Bytes a second that the fullest network line sends.
    pub send: LoadAmount,
    /// Thousandths of the time in which a task waited for memory.
    pub memory_stall: u32,
    /// Thousandths of the time in which a task waited for storage.
    pub storage_stall: u32,
}

/// An amount of a resource in use, and its capacity; 0 if the capacity is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode)]
pub struct LoadAmount {
    /// The amount in use.
    pub used: u64,
    /// The capacity, in the same unit.
    pub capacity: u64,
}
