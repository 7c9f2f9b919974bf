use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::version::TLS13;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use super::{ClientIdentity, ServerTrust};

/// A connection with TLS.
pub type TlsStream = StreamOwned<ClientConnection, TcpStream>;

/// The reason why TLS could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The connection failed.
    #[error("the connection failed: {0}")]
    Connection(#[from] io::Error),
    /// The server does not offer TLS.
    #[error("the server does not offer TLS at this port: it is not a Comity server with TLS")]
    NotOffered,
    /// The handshake failed.
    #[error("the TLS handshake failed: {0}")]
    Handshake(#[from] rustls::Error),
}

/// The application protocol of RPC (RFC 9289, section 8.2).
const SUNRPC: &[u8] = b"sunrpc";

/// Largest reply to a probe in bytes.
const REPLY_BYTES_MAX: usize = 1024;

/// Starts TLS on a new connection: probes for it with the procedure NULL of a program (RFC 9289,
/// section 4.1), and performs the handshake.
///
/// # Errors
/// [`StartError`].
pub fn start(
    mut socket: TcpStream,
    program: (u32, u32),
    identity: Option<Arc<ClientIdentity>>,
    trust: &Arc<ServerTrust>,
) -> Result<TlsStream, StartError> {
    probe(&mut socket, program)?;
    handshake(socket, identity, trust)
}

/// Performs the handshake with a server that expects TLS at once, without a probe.
///
/// # Errors
/// [`StartError`].
pub fn handshake(
    socket: TcpStream,
    identity: Option<Arc<ClientIdentity>>,
    trust: &Arc<ServerTrust>,
) -> Result<TlsStream, StartError> {
    let config = ClientConfig::builder_with_provider(Arc::clone(trust.provider()))
        .with_protocol_versions(&[&TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::clone(trust) as Arc<_>);
    let mut config = match identity {
        Some(identity) => config.with_client_cert_resolver(identity),
        None => config.with_no_client_auth(),
    };
    config.alpn_protocols = vec![SUNRPC.to_vec()];
    config.resumption = rustls::client::Resumption::disabled();
    config.enable_sni = false;
    let name = ServerName::IpAddress(socket.peer_addr()?.ip().into());
    let connection = ClientConnection::new(Arc::new(config), name)?;
    let mut stream = StreamOwned::new(connection, socket);
    while stream.conn.is_handshaking() {
        if let Err(error) = stream.conn.complete_io(&mut stream.sock) {
            return Err(cause(error));
        }
    }
    Ok(stream)
}

/// The TLS error inside an error of the connection, if there is one.
fn cause(error: io::Error) -> StartError {
    match error.downcast::<rustls::Error>() {
        Ok(error) => StartError::Handshake(error),
        Err(error) => StartError::Connection(error),
    }
}

/// Calls NULL with the flavor AUTH_TLS and checks that the verifier is STARTTLS.
fn probe(socket: &mut TcpStream, (program, version): (u32, u32)) -> Result<(), StartError> {
    const XID: u32 = 0x434d_5459;
    const AUTH_TLS: u32 = 7;
    // xid, CALL, RPC version 2, program, version, NULL, credential AUTH_TLS, verifier AUTH_NONE.
    let call = [XID, 0, 2, program, version, 0, AUTH_TLS, 0, 0, 0];
    let mut record = Vec::new();
    record.extend((0x8000_0000 | (4 * call.len() as u32)).to_be_bytes());
    call.iter().for_each(|word| record.extend(word.to_be_bytes()));
    socket.write_all(&record)?;
    let mut mark = [0; 4];
    socket.read_exact(&mut mark)?;
    let length = (u32::from_be_bytes(mark) & 0x7fff_ffff) as usize;
    if length > REPLY_BYTES_MAX {
        return Err(StartError::NotOffered);
    }
    let mut reply = vec![0; length];
    socket.read_exact(&mut reply)?;
    // xid, REPLY, MSG_ACCEPTED, verifier AUTH_NONE of 8 bytes "STARTTLS", SUCCESS.
    let mut wanted = Vec::new();
    [XID, 1, 0, 0, 8].iter().for_each(|word| wanted.extend(word.to_be_bytes()));
    wanted.extend(b"STARTTLS\0\0\0\0");
    if reply == wanted { Ok(()) } else { Err(StartError::NotOffered) }
}
