//! The client's side of RPC-with-TLS (RFC 9289): the certificate that it shows, the key of the
//! server that it expects, the start of TLS on a connection, and the connection's two halves.

mod halves;
mod identity;
mod key_refusal;
mod start;
mod trust;

pub use halves::{TlsReader, TlsWriter, split};
pub use identity::{ClientIdentity, IdentityNotMade};
pub use key_refusal::key_refusal;
pub use start::{StartError, TlsStream, handshake, start};
pub use trust::ServerTrust;
