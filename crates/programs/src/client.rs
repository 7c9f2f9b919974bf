//! The client side of a program of this project.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use comity_proto::grants::{Status, Text};
use comity_tls::client::{ClientIdentity, ServerTrust, StartError, TlsStream, start};
use comity_xdr::{Decode, Decoder, Encode, Encoder, Opaque};

/// Longest wait for the server at any step.
const PATIENCE: Duration = Duration::from_secs(10);

/// Largest reply in bytes: a full list of credentials.
const REPLY_BYTES_MAX: usize = 8 << 20;

/// A connection to a program of a server, with a key.
pub struct ProgramClient {
    program: (u32, u32),
    stream: TlsStream,
    xid: u32,
}

/// The reason why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The name of the server has no address.
    #[error("{0} is not found: {1}")]
    NotFound(String, io::Error),
    /// The server cannot be reached.
    #[error("{0} does not answer: {1}")]
    Unreachable(String, io::Error),
    /// TLS could not be established.
    #[error(transparent)]
    Tls(#[from] StartError),
    /// The connection failed.
    #[error("the connection to the server failed: {0}")]
    Connection(#[from] io::Error),
    /// The reply is malformed.
    #[error("the server's reply makes no sense")]
    Garbled,
    /// The server does not offer the program, or does not let this client call it.
    #[error(
        "the server does not let this host call the program: it must be a client of an export, \
         or a peer"
    )]
    Refused,
    /// The server returned this status and message.
    #[error("{1}")]
    Failed(Status, String),
}

impl ProgramClient {
    /// Connects to a server with a key, to call the program with this number and version.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn connect(
        (host, port): (&str, u16),
        program: (u32, u32),
        identity: Arc<ClientIdentity>,
        trust: &Arc<ServerTrust>,
    ) -> Result<Self, ClientError> {
        let name = format!("{host}:{port}");
        let not_found = |error| ClientError::NotFound(name.clone(), error);
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for address in (host, port).to_socket_addrs().map_err(not_found)? {
            match TcpStream::connect_timeout(&address, PATIENCE) {
                Ok(socket) => {
                    socket.set_read_timeout(Some(PATIENCE))?;
                    socket.set_write_timeout(Some(PATIENCE))?;
                    socket.set_nodelay(true)?;
                    let stream = start(socket, program, Some(identity), trust)?;
                    return Ok(Self { program, stream, xid: 0 });
                }
                Err(error) => last = error,
            }
        }
        Err(ClientError::Unreachable(name, last))
    }

    /// Calls a procedure; `read` decodes the result, which follows OK.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn call<T: Encode, R>(
        &mut self,
        procedure: u32,
        arguments: &T,
        read: impl FnOnce(&mut Decoder<'_>) -> Option<R>,
    ) -> Result<R, ClientError> {
        self.send(procedure, arguments)?;
        let record = self.receive()?;
        let mut reply = Decoder::new(&record);
        accepted(&mut reply, self.xid)?;
        match reply.value::<Status>().map_err(|_| ClientError::Garbled)? {
            Status::Ok => read(&mut reply).ok_or(ClientError::Garbled),
            status => {
                let text: Text<'_> = reply.value().map_err(|_| ClientError::Garbled)?;
                Err(ClientError::Failed(status, String::from_utf8_lossy(text.0).into_owned()))
            }
        }
    }

    /// Calls a procedure whose result is one value.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn value<T: Encode, R: for<'a> Decode<'a>>(
        &mut self,
        procedure: u32,
        arguments: &T,
    ) -> Result<R, ClientError> {
        self.call(procedure, arguments, |reply| whole(reply))
    }

    /// Calls a procedure whose result is a text.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn text<T: Encode>(
        &mut self,
        procedure: u32,
        arguments: &T,
    ) -> Result<String, ClientError> {
        self.call(procedure, arguments, |reply| {
            let Opaque(text) = reply.value::<Text<'_>>().ok()?;
            Some(String::from_utf8_lossy(text).into_owned())
        })
    }

    fn send<T: Encode>(&mut self, procedure: u32, arguments: &T) -> Result<(), ClientError> {
        self.xid = self.xid.wrapping_add(1);
        let mut call = Encoder::new();
        let (program, version) = self.program;
        let record = call.begin_record();
        // CALL, RPC version 2; credential and verifier are AUTH_NONE, because the TLS key
        // identifies the caller.
        call.words([self.xid, 0, 2, program, version, procedure, 0, 0, 0, 0]);
        call.value(arguments);
        call.end_record(record);
        self.stream.write_all(call.bytes())?;
        Ok(self.stream.flush()?)
    }

    fn receive(&mut self) -> Result<Vec<u8>, ClientError> {
        let mut record = Vec::new();
        loop {
            let mut mark = [0; 4];
            self.stream.read_exact(&mut mark)?;
            let mark = u32::from_be_bytes(mark);
            let (is_last, length) = (mark >> 31 == 1, (mark & 0x7fff_ffff) as usize);
            if record.len() + length > REPLY_BYTES_MAX {
                return Err(ClientError::Garbled);
            }
            let start = record.len();
            record.resize(start + length, 0);
            self.stream.read_exact(record.get_mut(start..).unwrap_or_default())?;
            if is_last {
                return Ok(record);
            }
        }
    }
}

/// Reads the head of a reply up to the results.
fn accepted(reply: &mut Decoder<'_>, xid: u32) -> Result<(), ClientError> {
    let mut word = || reply.value::<u32>().map_err(|_| ClientError::Garbled);
    let [its_xid, kind, is_denied] = [word()?, word()?, word()?];
    if its_xid != xid || kind != 1 {
        return Err(ClientError::Garbled);
    }
    if is_denied != 0 {
        return Err(ClientError::Refused);
    }
    let _flavor = word()?;
    let _verifier = reply.opaque(400).map_err(|_| ClientError::Garbled)?;
    match reply.value::<u32>().map_err(|_| ClientError::Garbled)? {
        0 => Ok(()),
        _ => Err(ClientError::Refused),
    }
}

/// Decodes one value; `None` if bytes follow it.
pub fn whole<'a, T: Decode<'a>>(reply: &mut Decoder<'a>) -> Option<T> {
    let value = reply.value().ok()?;
    reply.rest().is_empty().then_some(value)
}
