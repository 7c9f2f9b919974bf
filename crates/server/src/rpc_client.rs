//! Calls to programs of other hosts, one at a time, by threads that may wait.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;

use comity_proto::portmap::{self, Mapping, PORTMAP_VERSION, TCP, UDP, procedure};
use comity_rpc::{CallHeader, OpaqueAuth};
use comity_xdr::{Decoder, Encoder, encoded};
use socket2::{Domain, Socket, Type};

use crate::limits::{DATAGRAM_BYTES_MAX, REMOTE_CALL_SECONDS};

/// A call to a program of another host.
#[derive(Debug, Clone, Copy)]
pub struct RemoteCall<'a> {
    /// Program number.
    pub program: u32,
    /// Version of the program.
    pub version: u32,
    /// Procedure number.
    pub procedure: u32,
    /// The arguments, in XDR.
    pub arguments: &'a [u8],
    /// The address of this machine from which to call, if that matters: hosts recognize a server by
    /// the address that they use.
    pub source: Option<IpAddr>,
}

/// The reason why a call has no results.
#[derive(Debug)]
pub enum CallError {
    /// The call was not sent.
    Unsent(io::Error),
    /// The call may have been executed: no reply came in time, or only a malformed one.
    Unanswered(io::Error),
}

impl From<CallError> for io::Error {
    fn from((CallError::Unsent(error) | CallError::Unanswered(error)): CallError) -> Self {
        error
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsent(error) => write!(f, "not sent: {error}"),
            Self::Unanswered(error) => write!(f, "not answered: {error}"),
        }
    }
}

impl std::error::Error for CallError {}

/// The address to which calls without replies are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OneWayTarget {
    /// The calls are datagrams.
    Udp(SocketAddr),
    /// The calls go over a connection.
    Tcp(SocketAddr),
}

impl RemoteCall<'_> {
    /// Asks the host's portmapper for the port of the program, calls it over TCP, and waits for its
    /// results: at most three times [`REMOTE_CALL_SECONDS`].
    ///
    /// # Errors
    /// [`CallError::Unsent`]: the host or its portmapper cannot be reached, or has no such program;
    /// [`CallError::Unanswered`]: it does not reply in time, or sends a malformed reply.
    pub fn run(&self, host: IpAddr) -> Result<Vec<u8>, CallError> {
        let port = self.find(host, TCP).and_then(|port| port.ok_or_else(no_program));
        self.ask(SocketAddr::new(host, port.map_err(CallError::Unsent)?))
    }

    /// Asks the host's portmapper for the port of the program, for datagrams or else for TCP: at
    /// most twice [`REMOTE_CALL_SECONDS`].
    ///
    /// # Errors
    /// The host's portmapper cannot be reached, does not reply, or does not know the program.
    pub fn find_one_way_target(&self, host: IpAddr) -> io::Result<OneWayTarget> {
        let at = |port| SocketAddr::new(host, port);
        Ok(match self.find(host, UDP)? {
            Some(port) => OneWayTarget::Udp(at(port)),
            None => OneWayTarget::Tcp(at(self.find(host, TCP)?.ok_or_else(no_program)?)),
        })
    }

    /// Sends the call without waiting for a reply: for procedures without results.
    ///
    /// # Errors
    /// The call could not be sent. A call that was sent may still be lost.
    pub fn send(&self, to: OneWayTarget) -> io::Result<()> {
        let record = self.record();
        match to {
            OneWayTarget::Udp(address) => {
                let socket = self.socket(address, Type::DGRAM)?;
                // A datagram has no record mark.
                socket.send_to(record.get(4..).unwrap_or_default(), &address.into()).map(drop)
            }
            OneWayTarget::Tcp(address) => self.connect(address)?.write_all(&record),
        }
    }

    /// Returns the port of the program, if the host has it.
    fn find(&self, host: IpAddr, protocol: u32) -> io::Result<Option<u16>> {
        let mapping = Mapping { program: self.program, version: self.version, protocol, port: 0 };
        let question = RemoteCall {
            program: portmap::PROGRAM,
            version: PORTMAP_VERSION,
            procedure: procedure::GETPORT,
            arguments: &encoded(&mapping),
            source: self.source,
        };
        let answer = question.ask(SocketAddr::new(host, portmap::PORT))?;
        let port = Decoder::whole::<u32>(&answer).map_err(|_| nonsense())?;
        let port = u16::try_from(port).map_err(|_| nonsense())?;
        Ok((port != 0).then_some(port))
    }

    fn connect(&self, address: SocketAddr) -> io::Result<TcpStream> {
        let patience = Duration::from_secs(REMOTE_CALL_SECONDS);
        let socket = self.socket(address, Type::STREAM)?;
        socket.connect_timeout(&address.into(), patience)?;
        socket.set_read_timeout(Some(patience))?;
        socket.set_write_timeout(Some(patience))?;
        Ok(socket.into())
    }

    /// Opens a socket at the address from which to call.
    fn socket(&self, to: SocketAddr, kind: Type) -> io::Result<Socket> {
        let socket = Socket::new(Domain::for_address(to), kind.cloexec(), None)?;
        let source = self.source.filter(|source| source.is_ipv4() == to.is_ipv4());
        if let Some(source) = source {
            socket.bind(&SocketAddr::new(source, 0).into())?;
        }
        Ok(socket)
    }

    fn ask(&self, address: SocketAddr) -> Result<Vec<u8>, CallError> {
        let mut stream = self.connect(address).map_err(CallError::Unsent)?;
        let asked = stream.write_all(&self.record());
        asked.and_then(|()| answer(&mut stream)).map_err(CallError::Unanswered)
    }

    fn record(&self) -> Vec<u8> {
        let Self { program, version, procedure, arguments, .. } = *self;
        let (credential, verifier) = (OpaqueAuth::NONE, OpaqueAuth::NONE);
        let mut encoder = Encoder::new();
        let start = encoder.begin_record();
        let header = CallHeader { xid: 1, program, version, procedure, credential, verifier };
        encoder.value(&header);
        encoder.raw(arguments);
        encoder.end_record(start);
        encoder.bytes().to_vec()
    }
}

/// Receives the reply over a connection; returns its results.
fn answer(stream: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut mark = [0; 4];
    stream.read_exact(&mut mark)?;
    let mark = u32::from_be_bytes(mark);
    let length = (mark & !(1 << 31)) as usize;
    if mark >> 31 == 0 || length > DATAGRAM_BYTES_MAX {
        return Err(nonsense());
    }
    let mut reply = vec![0; length];
    stream.read_exact(&mut reply)?;
    results(&reply).map(<[u8]>::to_vec).ok_or_else(nonsense)
}

/// Returns the results after the header of a successful reply (RFC 5531, 9).
fn results(reply: &[u8]) -> Option<&[u8]> {
    let mut decoder = Decoder::new(reply);
    let [xid, kind, accepted]: [u32; 3] =
        [decoder.value().ok()?, decoder.value().ok()?, decoder.value().ok()?];
    decoder.value::<OpaqueAuth<'_>>().ok()?;
    let status: u32 = decoder.value().ok()?;
    ([xid, kind, accepted, status] == [1, 1, 0, 0]).then(|| decoder.rest())
}

fn no_program() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "the host does not run the program")
}

fn nonsense() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the answer is malformed")
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, UdpSocket};
    use std::thread;

    use comity_rpc::{ReplyVerifier, accepted};

    use super::*;

    #[test]
    fn results_are_the_bytes_after_the_header() {
        let mut reply = Encoder::new();
        accepted::success(&mut reply, 1, &ReplyVerifier::Empty);
        reply.value(&7_u32);
        assert_eq!(results(reply.bytes()), Some(&[0, 0, 0, 7][..]));
        reply.clear(0);
        accepted::garbage_args(&mut reply, 1, &ReplyVerifier::Empty);
        assert_eq!(results(reply.bytes()), None);
        assert_eq!(results(&[0; 8]), None);
    }

    #[test]
    fn a_missing_host_is_an_error() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        assert!(matches!(remote_call(None).ask(address), Err(CallError::Unsent(_))));
    }

    #[test]
    fn a_host_that_does_not_answer_may_have_done_it() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let says = |answer: &'static [u8]| {
            let listener = listener.try_clone().unwrap();
            let host = thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let mut call = [0; 4];
                stream.read_exact(&mut call).unwrap();
                stream.write_all(answer).unwrap();
            });
            let asked = remote_call(None).ask(address);
            host.join().unwrap();
            asked
        };
        for answer in [&b""[..], &[0x80], &[0xFF; 4], &[0x80, 0, 0, 4, 0, 0, 0, 1]] {
            assert!(matches!(says(answer), Err(CallError::Unanswered(_))), "{answer:?}");
        }
    }

    fn remote_call(source: Option<&str>) -> RemoteCall<'static> {
        let source = source.map(|source| source.parse().unwrap());
        RemoteCall { program: 7, version: 1, procedure: 3, arguments: b"args", source }
    }

    /// A call without a record mark: xid, type, RPC version, program, version, procedure.
    const CALL: [u8; 24] = [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0, 3];

    #[test]
    fn a_call_leaves_from_the_address_that_the_host_knows() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let there = OneWayTarget::Tcp(listener.local_addr().unwrap());
        for source in ["127.0.0.2", "127.0.0.3"] {
            remote_call(Some(source)).send(there).unwrap();
            let (mut stream, from) = listener.accept().unwrap();
            assert_eq!(from.ip().to_string(), source);
            let mut told = Vec::new();
            stream.read_to_end(&mut told).unwrap();
            assert_eq!((&told[4..28], told.ends_with(b"args")), (&CALL[..], true));
        }
        // An address of another family cannot be used for this call.
        remote_call(Some("::1")).send(there).unwrap();
        assert_eq!(listener.accept().unwrap().1.ip().to_string(), "127.0.0.1");
    }

    #[test]
    fn a_datagram_is_a_call_without_a_mark() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        remote_call(Some("127.0.0.2"))
            .send(OneWayTarget::Udp(socket.local_addr().unwrap()))
            .unwrap();
        let mut told = [0; 100];
        let (length, from) = socket.recv_from(&mut told).unwrap();
        assert_eq!(from.ip().to_string(), "127.0.0.2");
        assert_eq!((&told[..24], told[..length].ends_with(b"args")), (&CALL[..], true));
    }
}
