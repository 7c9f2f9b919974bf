//! NFS version 4: 4.0 (RFC 7530, 7531), 4.1 (RFC 8881, 5662), 4.2 (RFC 7862, 7863), extended
//! attributes (RFC 8276). Result types are bodies only: the status before them is decoded with the
//! COMPOUND.

mod attributes;
mod bitmap;
pub mod callback;
mod client;
mod compound;
mod copy;
mod delegation;
mod extended;
pub mod files_layout;
pub mod flexible_files;
mod io;
mod layout;
pub mod layout_callback;
mod locations;
mod lock;
mod names;
mod notify;
mod open;
pub mod operation;
mod session;
mod status;

pub use attributes::*;
pub use bitmap::Bitmap4;
pub use client::*;
pub use compound::*;
pub use copy::*;
pub use delegation::*;
pub use extended::*;
pub use io::*;
pub use layout::*;
pub use locations::*;
pub use lock::*;
pub use names::*;
pub use notify::*;
pub use open::*;
pub use session::*;
pub use status::Nfsstat4;

use comity_xdr::{Decode, Encode, Opaque};

/// Program number.
pub const PROGRAM: u32 = 100_003;
/// The version in use.
pub const VERSION: u32 = 4;

/// Procedure numbers.
pub mod procedure {
    #![allow(missing_docs)]
    pub const NULL: u32 = 0;
    pub const COMPOUND: u32 = 1;
}

/// Longest handle in bytes (NFS4_FHSIZE).
pub const HANDLE_BYTES_MAX: u32 = 128;
/// Longest identifying string of a client, an owner or a server in bytes (NFS4_OPAQUE_LIMIT).
pub const OPAQUE_BYTES_MAX: u32 = 1024;
/// Longest name or path that is decoded, in bytes. The RFCs have no limit: a name above the file
/// system's limit is answered with NAMETOOLONG, and one above this limit with BADXDR.
pub const NAME_BYTES_MAX: u32 = 4096;
/// Largest data of READ and WRITE that is decoded, in bytes.
pub const DATA_BYTES_MAX: u32 = 1 << 20;
/// Most bytes of attribute values that are decoded: more than the largest ACL.
pub const ATTRIBUTES_BYTES_MAX: u32 = 256 << 10;

/// A file handle: `nfs_fh4`.
pub type NfsFh4<'a> = Opaque<'a, HANDLE_BYTES_MAX>;
/// A name in a directory: `component4`.
pub type Component4<'a> = Opaque<'a, NAME_BYTES_MAX>;
/// The target of a symbolic link: `linktext4`.
pub type Linktext4<'a> = Opaque<'a, NAME_BYTES_MAX>;
/// Eight bytes for comparison with another verifier: `verifier4`.
pub type Verifier4 = [u8; 8];
/// The id that the server assigned to a client: `clientid4`.
pub type Clientid4 = u64;
/// A sequence number of requests: `seqid4`, `sequenceid4`.
pub type Seqid4 = u32;

/// A moment: `nfstime4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode)]
pub struct Nfstime4 {
    /// Seconds since 1970; negative before.
    pub seconds: i64,
    /// Nanoseconds within the second.
    pub nseconds: u32,
}

/// A device's numbers: `specdata4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode)]
pub struct Specdata4 {
    /// Major number.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
}

/// Identifies a piece of state at the server: `stateid4` (RFC 8881, 8.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Encode, Decode)]
pub struct Stateid4 {
    /// The number of its changes.
    pub seqid: u32,
    /// The bytes that identify the state.
    pub other: [u8; 12],
}

impl Stateid4 {
    /// Stands for no state.
    pub const ANONYMOUS: Self = Self { seqid: 0, other: [0; 12] };
    /// Stands for no state; a READ ignores locks.
    pub const READ_BYPASS: Self = Self { seqid: u32::MAX, other: [0xff; 12] };
    /// The current stateid (4.1 and later).
    pub const CURRENT: Self = Self { seqid: 1, other: [0; 12] };
    /// A stateid that is always invalid (4.1 and later).
    pub const INVALID: Self = Self { seqid: u32::MAX, other: [0; 12] };
}

/// A directory's change attribute before and after an operation: `change_info4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode)]
pub struct ChangeInfo4 {
    /// True if no other change came between the two values.
    pub atomic: bool,
    /// The value before the change.
    pub before: u64,
    /// The value after the change.
    pub after: u64,
}
