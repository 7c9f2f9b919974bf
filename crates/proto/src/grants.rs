//! The grant program: keys submit credentials, list and revoke them, and ask why something is
//! allowed. It is a program of this project, served on the NFS port over TLS only. docs/formats.md
//! describes it.

use comity_xdr::{Counted, Decode, Encode, Opaque};

/// Program number, from the range that RFC 5531 (section 13.1) leaves to users.
pub const PROGRAM: u32 = 0x2043_4d54;
/// The only version.
pub const VERSION: u32 = 1;

/// Procedure numbers.
pub mod procedure {
    #![allow(missing_docs)]
    pub const NULL: u32 = 0;
    pub const WHOAMI: u32 = 1;
    pub const SUBMIT: u32 = 2;
    pub const LIST: u32 = 3;
    pub const DROP: u32 = 4;
    pub const REVOKE: u32 = 5;
    pub const WHY: u32 = 6;
    pub const ID: u32 = 7;
    pub const FETCH: u32 = 8;
}

/// Longest submission in bytes.
pub const SUBMISSION_BYTES_MAX: u32 = 1 << 20;
/// Longest text of a reply, a key or a path in bytes.
pub const TEXT_BYTES_MAX: u32 = 64 << 10;
/// Most credentials in one reply.
pub const LISTED_MAX: u32 = 64;

/// A UTF-8 text.
pub type Text<'a> = Opaque<'a, TEXT_BYTES_MAX>;

/// The SHA-256 of a credential, by which it is revoked.
pub type Digest = [u8; 32];

/// The status of a reply. After a status other than OK, only a text for people follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Encode, Decode)]
pub enum Status {
    /// The call succeeded.
    Ok = 0,
    /// The caller has proved no key, or may not do this.
    Denied = 1,
    /// The arguments are invalid.
    Invalid = 2,
    /// The object does not exist, or the caller may not know of it.
    NotFound = 3,
    /// The server has no room for it.
    Full = 4,
    /// The server failed.
    Fault = 5,
}

/// The outcome of submitting a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Encode, Decode)]
pub enum Outcome {
    /// The server holds the credential from now on.
    Held = 0,
    /// The server held the credential before.
    Known = 1,
    /// The credential was revoked.
    Revoked = 2,
    /// The credential has expired.
    Ended = 3,
    /// Its signer has no rights from any account of the server.
    NoAccount = 4,
    /// The credential does not lead to the key that submitted it.
    NotYours = 5,
}

/// A submitted credential with its outcome.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Submitted<'a> {
    /// Its digest.
    pub digest: Digest,
    /// The key that signed it.
    pub authorizer: Text<'a>,
    /// The outcome.
    pub outcome: Outcome,
}

/// The result of SUBMIT, after OK.
pub type SubmitOk<'a> = Counted<Submitted<'a>, LISTED_MAX>;

/// Arguments of LIST.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct ListArgs {
    /// True to list the credentials that the caller signed, instead of those that it holds.
    pub given: bool,
    /// The digest of the last credential in the previous reply; zeros at the start.
    pub after: Digest,
}

/// A listed credential.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Listed<'a> {
    /// Its digest.
    pub digest: Digest,
    /// The key that holds it.
    pub holder: Text<'a>,
    /// Its text.
    pub text: Text<'a>,
    /// True if it, its signer or its licensee was revoked.
    pub revoked: bool,
}

/// The result of LIST, after OK.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ListOk<'a> {
    /// The credentials, in the order of their digests.
    pub listed: Counted<Listed<'a>, LISTED_MAX>,
    /// True if this is the last part of the list.
    pub end: bool,
}

/// Arguments of DROP: the digests of credentials that the caller holds.
pub type DropArgs = Counted<Digest, LISTED_MAX>;

/// The kinds of revocations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Encode, Decode)]
pub enum RevokeKind {
    /// The credential whose digest is the text, in hexadecimal digits.
    Digest = 0,
    /// The credential whose text is given.
    Credential = 1,
    /// All rights that the key in the text received from the caller.
    Key = 2,
}

/// Arguments of REVOKE.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct RevokeArgs<'a> {
    /// The kind of the text.
    pub kind: RevokeKind,
    /// A digest, a credential or a key.
    pub text: Text<'a>,
}

/// Arguments of WHY.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct WhyArgs<'a> {
    /// The path of an object, from the server's root.
    pub path: Text<'a>,
    /// The name of an operation; empty for all.
    pub operation: Text<'a>,
    /// The key to report on; empty for the caller's.
    pub key: Text<'a>,
}
