//! The client's side of RPC-with-TLS (RFC 9289): the certificate that it shows, the key of the
//! server that it expects, and the start of TLS on a connection.

mod identity;
mod start;
mod trust;

pub use identity::{ClientIdentity, IdentityNotMade};
pub use start::{StartError, TlsStream, start};
pub use trust::ServerTrust;
