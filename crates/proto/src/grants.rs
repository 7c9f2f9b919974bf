//! The grant program: keys submit credentials, list and revoke them, and ask why something is
//! allowed. It is Comity's own, spoken at the port of NFS over TLS only. docs/formats.md describes
//! it.

use comity_xdr::{Counted, Decode, Encode, Opaque};

/// Program number, of the range that RFC 5531 (section 13.1) leaves to users.
pub const PROGRAM: u32 = 0x2043_4d54;
/// The version spoken.
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
/// Longest text of an answer, a key or a path in bytes.
pub const TEXT_BYTES_MAX: u32 = 64 << 10;
/// Most credentials of one answer.
pub const LISTED_MAX: u32 = 64;

/// A text of UTF-8.
pub type Text<'a> = Opaque<'a, TEXT_BYTES_MAX>;

/// The SHA-256 of a credential, by which it is revoked.
pub type Digest = [u8; 32];

/// The status of an answer. If it is not OK a text for people follows and nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Encode, Decode)]
pub enum Status {
    /// The operation is done.
    Ok = 0,
    /// The caller proved no key, or may not do this.
    Denied = 1,
    /// The arguments cannot be used.
    Invalid = 2,
    /// The object does not exist, or the caller may not know of it.
    NotFound = 3,
    /// The server has no room for it.
    Full = 4,
    /// The server failed.
    Fault = 5,
}

/// The outcome for a submitted credential.
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
    /// No account of the server leads to its signer.
    NoAccount = 4,
    /// The credential does not lead to the key that submitted it.
    NotYours = 5,
}

/// A submitted credential and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Submitted<'a> {
    /// Its digest.
    pub digest: Digest,
    /// The key that signed it.
    pub authorizer: Text<'a>,
    /// The outcome for it.
    pub outcome: Outcome,
}

/// The answer to SUBMIT, behind OK.
pub type SubmitOk<'a> = Counted<Submitted<'a>, LISTED_MAX>;

/// Arguments of LIST.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct ListArgs {
    /// The credentials that the caller signed, instead of those that it holds.
    pub given: bool,
    /// The digest of the last one that was listed before; zeros at the start.
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

/// The answer to LIST, behind OK: the credentials, and whether there are more.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ListOk<'a> {
    /// The credentials, in the order of their digests.
    pub listed: Counted<Listed<'a>, LISTED_MAX>,
    /// True if none follows.
    pub end: bool,
}

/// Arguments of DROP: the digests of credentials that the caller holds.
pub type DropArgs = Counted<Digest, LISTED_MAX>;

/// The kinds of things that REVOKE revokes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Encode, Decode)]
pub enum RevokeKind {
    /// The credential whose digest, in hexadecimal digits, is the text.
    Digest = 0,
    /// The credential that is the text.
    Credential = 1,
    /// All that the key in the text was given by the caller.
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
    /// The key that is asked about; empty for the caller's.
    pub key: Text<'a>,
}
