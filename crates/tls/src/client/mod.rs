//! The client's side of RPC-with-TLS (RFC 9289): its certificate, the expected key of the server,
//! starting TLS on a connection, and splitting the connection; and TLS with a service over HTTP.

mod halves;
mod identity;
mod key_refusal;
mod service;
mod start;
mod trust;

pub use halves::{TlsReader, TlsWriter, split};
pub use identity::{ClientIdentity, IdentityNotMade};
pub use key_refusal::key_refusal;
pub use service::{ServiceFiles, ServiceFilesError, ServiceTls};
pub use start::{StartError, TlsStream, handshake, start};
pub use trust::ServerTrust;
