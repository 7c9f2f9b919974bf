//! RPC-with-TLS (RFC 9289): the server's key, the identity of a peer, and the client's side.
//!
//! **Answers:** which certificate the server shows in a handshake, which key a peer has proved by
//! its certificate, which configured authorities are above it, and which user they confirm.
//!
//! **May not know:** sockets, event loops, exports, what a key may do.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod accepting;
mod acceptor;
mod authorities;
mod certificate;
pub mod client;
mod client_verifier;
mod der;
mod handshake;
pub mod limits;
mod moment;
mod object_id;
mod peer_certificate;
mod provider;
mod record_layer;
mod self_made;
mod server_key;
mod trust;

pub use acceptor::Acceptor;
pub use authorities::{Authorities, AuthorityError};
pub use certificate::{Certificate, MalformedCertificate};
pub use handshake::{Established, Handshake, HandshakeError, HandshakeStep};
pub use object_id::ObjectId;
pub use peer_certificate::IdentityError;
pub use record_layer::{
    RECORD_BYTES_MAX, RECORD_DATA_BYTES_MAX, RECORD_HEADER_BYTES, RecordContent, RecordLayer,
    record_bytes,
};
pub use self_made::{NotMade, SelfMade, self_made};
pub use server_key::{ServerKey, ServerKeyError};
pub use trust::Trust;

pub use rustls::Error as TlsError;
