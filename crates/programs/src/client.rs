//! The client side of a program of this project.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

use comity_proto::grants::{Status, Text};
use comity_tls::client::{ClientIdentity, ServerTrust, StartError, TlsStream, start};
use comity_xdr::{Decode, Decoder, Encode, Encoder, Opaque};

use crate::watchdog::Watchdog;

/// The times after which a server is given up.
#[derive(Debug, Clone, Copy)]
struct CallPatience {
    /// For a server that says nothing.
    silence: Duration,
    /// For a whole connection attempt, with TLS, and for a whole call.
    whole: Duration,
}

/// A call may send or receive some MiB over a slow line.
const PATIENCE: CallPatience =
    CallPatience { silence: Duration::from_secs(10), whole: Duration::from_secs(60) };

/// The accept_stat of a program without the procedure (RFC 5531, section 9).
const PROC_UNAVAIL: u32 = 3;

/// Largest reply in bytes: a full list of credentials.
const REPLY_BYTES_MAX: usize = 8 << 20;

/// A connection to a program of a server, with a key.
pub struct ProgramClient {
    /// The server, for errors.
    name: String,
    program: (u32, u32),
    stream: TlsStream,
    xid: u32,
    patience: CallPatience,
}

/// The reason why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The name of the server has no address.
    #[error("{0} is not found: {1}; look at the name, and at the name service of this host")]
    NotFound(String, io::Error),
    /// The server cannot be reached.
    #[error(
        "{0} cannot be reached: {1}; look whether the server runs at this port, and at the \
         network and its firewalls"
    )]
    Unreachable(String, io::Error),
    /// The server accepted the connection, and did not answer within this many seconds.
    #[error(
        "{0} did not answer within {1} s: it is stopped, hangs or is overloaded; try again, and \
         have its administrator look at its process and its log if it does not recover"
    )]
    Silent(String, u64),
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
        "the server does not offer this program, or does not let this host call it: it must be a \
         client of an export, or a [[peer]]; look also whether both have the same version"
    )]
    Refused,
    /// The server offers the program, and does not know the procedure.
    #[error("the server does not know this call: it runs an older version of comity; update it")]
    UnknownProcedure,
    /// The reply has a format that this version does not know.
    #[error("the server answers in a format that this version of comity does not know; update it")]
    UnknownFormat,
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
        Self::connect_with(PATIENCE, (host, port), program, (identity, trust))
    }

    /// Does the same as [`Self::connect`]; gives the server no more than this time for it, and for
    /// each call.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn connect_within(
        time: Duration,
        place: (&str, u16),
        program: (u32, u32),
        keys: (Arc<ClientIdentity>, &Arc<ServerTrust>),
    ) -> Result<Self, ClientError> {
        Self::connect_with(CallPatience { silence: time, whole: time }, place, program, keys)
    }

    fn connect_with(
        patience: CallPatience,
        (host, port): (&str, u16),
        program: (u32, u32),
        (identity, trust): (Arc<ClientIdentity>, &Arc<ServerTrust>),
    ) -> Result<Self, ClientError> {
        let name = format!("{host}:{port}");
        let not_found = |error| ClientError::NotFound(name.clone(), error);
        let addresses = (host, port).to_socket_addrs().map_err(not_found)?;
        let socket = match reached(addresses, patience) {
            Ok(socket) => socket,
            Err(error) => return Err(ClientError::Unreachable(name, error)),
        };
        socket.set_read_timeout(Some(patience.silence))?;
        socket.set_write_timeout(Some(patience.silence))?;
        socket.set_nodelay(true)?;
        let watchdog = Watchdog::start(&socket, patience.whole)?;
        match start(socket, program, Some(identity), trust) {
            Ok(stream) => Ok(Self { name, program, stream, xid: 0, patience }),
            Err(error) => Err(given_up(error.into(), &name, &watchdog, patience)),
        }
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
        self.perform(self.patience, (procedure, arguments), read)
    }

    fn perform<T: Encode, R>(
        &mut self,
        patience: CallPatience,
        (procedure, arguments): (u32, &T),
        read: impl FnOnce(&mut Decoder<'_>) -> Option<R>,
    ) -> Result<R, ClientError> {
        let watchdog = Watchdog::start(&self.stream.sock, patience.whole)?;
        let answered = self.send(procedure, arguments).and_then(|()| self.receive());
        let record = answered.map_err(|error| given_up(error, &self.name, &watchdog, patience))?;
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

    /// Does the same as [`Self::call`]; gives the server no more than this time, and a minute at
    /// most.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn call_within<T: Encode, R>(
        &mut self,
        time: Duration,
        (procedure, arguments): (u32, &T),
        read: impl FnOnce(&mut Decoder<'_>) -> Option<R>,
    ) -> Result<R, ClientError> {
        let patience = CallPatience { whole: time.min(self.patience.whole), ..self.patience };
        self.perform(patience, (procedure, arguments), read)
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

/// Connects to the first address that accepts a connection.
fn reached(
    addresses: impl Iterator<Item = SocketAddr>,
    patience: CallPatience,
) -> io::Result<TcpStream> {
    let (begun, mut last) = (Instant::now(), io::Error::from(ErrorKind::NotFound));
    for address in addresses {
        let left = patience.whole.saturating_sub(begun.elapsed()).min(patience.silence);
        if left.is_zero() {
            break;
        }
        match TcpStream::connect_timeout(&address, left) {
            Ok(socket) => return Ok(socket),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Returns [`ClientError::Silent`] if a call failed because its time was over, and the error itself
/// otherwise.
fn given_up(
    error: ClientError,
    name: &str,
    watchdog: &Watchdog,
    patience: CallPatience,
) -> ClientError {
    let cause = match &error {
        ClientError::Tls(StartError::Connection(cause)) | ClientError::Connection(cause) => {
            Some(cause.kind())
        }
        _ => None,
    };
    let silent = |patience: Duration| ClientError::Silent(name.to_owned(), patience.as_secs());
    match cause {
        _ if watchdog.has_ended() => silent(patience.whole),
        Some(ErrorKind::WouldBlock | ErrorKind::TimedOut) => silent(patience.silence),
        _ => error,
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
        PROC_UNAVAIL => Err(ClientError::UnknownProcedure),
        _ => Err(ClientError::Refused),
    }
}

/// Returns the results of a reply, an RPC message without a record mark.
///
/// # Errors
/// [`ClientError::Refused`], [`ClientError::UnknownProcedure`]: the call failed, or was not
/// executed. [`ClientError::Garbled`].
pub fn results(reply: &[u8], xid: u32) -> Result<&[u8], ClientError> {
    let mut decoder = Decoder::new(reply);
    accepted(&mut decoder, xid)?;
    Ok(decoder.rest())
}

/// Decodes one value; `None` if bytes follow it.
pub fn whole<'a, T: Decode<'a>>(reply: &mut Decoder<'a>) -> Option<T> {
    let value = reply.value().ok()?;
    reply.rest().is_empty().then_some(value)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use comity_keys::{Algorithm, PrivateKey};

    use super::*;

    /// Connects to a server whose only connection is handled by `serve`.
    fn connect_to(
        serve: impl FnOnce(TcpStream) + Send + 'static,
        patience: CallPatience,
    ) -> ClientError {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || serve(listener.accept().unwrap().0));
        let key = Arc::new(PrivateKey::generate(Algorithm::Ed25519).unwrap());
        let identity = Arc::new(ClientIdentity::new(key).unwrap());
        let trust = ServerTrust::new(None);
        let place = ("127.0.0.1", port);
        let connected = ProgramClient::connect_with(patience, place, (1, 1), (identity, &trust));
        connected.err().unwrap()
    }

    /// The reply to a call with the number 7: accepted, without a verifier.
    fn accepted_with(status: u32) -> Vec<u8> {
        [7, 1, 0, 0, 0, status].into_iter().flat_map(u32::to_be_bytes).collect()
    }

    #[test]
    fn a_server_without_the_procedure_is_told_from_one_that_refuses() {
        assert!(results(&accepted_with(0), 7).is_ok());
        let older = results(&accepted_with(3), 7).unwrap_err();
        assert!(matches!(older, ClientError::UnknownProcedure), "{older}");
        for status in [1, 2, 4, 5] {
            let refused = results(&accepted_with(status), 7).unwrap_err();
            assert!(matches!(refused, ClientError::Refused), "{status}: {refused}");
        }
    }

    #[test]
    fn a_server_that_says_nothing_is_given_up() {
        let patience =
            CallPatience { silence: Duration::from_secs(1), whole: Duration::from_secs(60) };
        let hang = |mut socket: TcpStream| {
            // It ends when the client gives up.
            let _ = socket.read_to_end(&mut Vec::new());
        };
        let error = connect_to(hang, patience);
        assert!(matches!(error, ClientError::Silent(_, 1)), "{error}");
    }

    /// Each byte comes in time.
    #[test]
    fn a_server_that_sends_a_byte_now_and_then_is_given_up() {
        let patience =
            CallPatience { silence: Duration::from_secs(9), whole: Duration::from_secs(1) };
        let drip = |mut socket: TcpStream| {
            // A record mark that announces 768 bytes.
            socket.write_all(&[0x80, 0, 3, 0]).unwrap();
            while socket.write_all(&[0]).is_ok() {
                thread::sleep(Duration::from_millis(300));
            }
        };
        let begun = Instant::now();
        let error = connect_to(drip, patience);
        assert!(matches!(error, ClientError::Silent(_, 1)), "{error}");
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    }
}
