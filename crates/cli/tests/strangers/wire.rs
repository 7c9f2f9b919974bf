//! A connection from a chosen address and port, and COMPOUNDs built by hand.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use comity_proto::nfs4::{self, CompoundHead};
use comity_xdr::{Counted, Decoder, Encode, Encoder, Opaque};
use rustix::net::sockopt::set_socket_linger;
use rustix::net::{AddressFamily, SocketType, bind, connect, socket};

use crate::common::PATIENCE;
use crate::common::line::{Identity, Line};

/// A call of any program: number, version, procedure, arguments.
pub(crate) type Call = ((u32, u32, u32), Vec<u8>);

/// An operation of NFSv4: its number and its arguments.
pub(crate) type Operation = (u32, Vec<u8>);

/// The address of the server.
const SERVER: Ipv4Addr = Ipv4Addr::LOCALHOST;

/// The address, port and uid of a caller.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source {
    pub(crate) address: [u8; 4],
    /// True if connections come from a port below 1024.
    pub(crate) low_port: bool,
    pub(crate) uid: u32,
}

/// The TLS settings of a caller.
pub(crate) struct Tls {
    /// The file with the certificate of the server.
    pub(crate) trusted: PathBuf,
    /// The key that the caller proves, if any.
    pub(crate) identity: Option<Identity>,
}

/// The server neither sent a record in time nor closed the connection.
#[derive(Debug)]
struct Late;

/// A connection on which one call is made at a time.
pub(crate) struct Wire {
    stream: Line,
    uid: u32,
    xid: u32,
    /// True once the server has called NULL, by which it tests the back channel.
    pub(crate) is_probed: bool,
    /// Callbacks other than NULL.
    pub(crate) callbacks: Vec<Vec<u8>>,
}

pub(crate) fn bytes(value: &impl Encode) -> Vec<u8> {
    let mut encoder = Encoder::new();
    encoder.value(value);
    encoder.bytes().to_vec()
}

pub(crate) fn operation(number: u32, arguments: &impl Encode) -> Operation {
    (number, bytes(arguments))
}

pub(crate) fn putfh(handle: &[u8]) -> Operation {
    operation(nfs4::operation::PUTFH, &Opaque::<128>(handle))
}

pub(crate) fn compound(minorversion: u32, operations: &[Operation]) -> Call {
    let mut call = Encoder::new();
    let (tag, count) = (Opaque(&b""[..]), operations.len() as u32);
    call.value(&CompoundHead { tag, minorversion, operations: count });
    for (number, arguments) in operations {
        call.value(number);
        call.raw(arguments);
    }
    let program = (nfs4::PROGRAM, nfs4::VERSION, nfs4::procedure::COMPOUND);
    (program, call.bytes().to_vec())
}

/// The message of a call.
fn message(xid: u32, uid: u32, (program, arguments): &Call) -> Vec<u8> {
    let credential = bytes(&comity_rpc::AuthSys {
        stamp: 0,
        machine_name: Opaque(b"victim"),
        uid,
        gid: uid,
        gids: Counted(Vec::new()),
    });
    let mut call = Encoder::new();
    let (number, version, procedure) = *program;
    [xid, 0, 2, number, version, procedure, 1].iter().for_each(|word| call.value(word));
    call.opaque(&credential);
    call.raw(&[0; 8]);
    call.raw(arguments);
    call.bytes().to_vec()
}

/// A socket for datagrams, by which one call is made at a time.
pub(crate) struct Datagrams {
    socket: UdpSocket,
    uid: u32,
    xid: u32,
}

/// Time for which an attacker waits for a datagram: some of its calls are dropped.
const DATAGRAM_PATIENCE: Duration = Duration::from_millis(3);

impl Datagrams {
    /// Sends to this port of the server.
    pub(crate) fn to(port: u16, source: Source) -> Self {
        let ports = if source.low_port { 600..=1023 } else { 0..=0 };
        let bind = |own| UdpSocket::bind(SocketAddr::from((source.address, own))).ok();
        let socket = ports.into_iter().find_map(bind).expect("a free port");
        socket.connect((SERVER, port)).unwrap();
        socket.set_read_timeout(Some(DATAGRAM_PATIENCE)).unwrap();
        Self { socket, uid: source.uid, xid: 0 }
    }

    /// Makes a call; returns the lengths of the call and the whole reply, if one arrives.
    pub(crate) fn ask(&mut self, call: &Call) -> Option<(usize, Vec<u8>)> {
        self.xid += 1;
        let message = message(self.xid, self.uid, call);
        self.socket.send(&message).ok()?;
        let mut reply = vec![0; 1 << 16];
        loop {
            let length = self.socket.recv(&mut reply).ok()?;
            if reply[..4] == self.xid.to_be_bytes() {
                reply.truncate(length);
                return Some((message.len(), reply));
            }
        }
    }

    /// Makes a call until a reply arrives.
    pub(crate) fn ask_until_answered(&mut self, call: &Call) -> Vec<u8> {
        let mut tries = (0..500).filter_map(|_| self.ask(call));
        tries.next().expect("an answer to a datagram").1
    }
}

impl Wire {
    /// Connects in clear.
    pub(crate) fn connect(port: u16, source: Source) -> Self {
        Self::connect_by(port, source, None)
    }

    /// Connects by TLS if settings are given, otherwise in clear.
    pub(crate) fn connect_by(port: u16, source: Source, tls: Option<&Arc<Tls>>) -> Self {
        let server = SocketAddr::from((SERVER, port));
        // A port that was closed a moment ago may still be refused; then the next one is tried.
        let ports = if source.low_port { 600..=1023 } else { 1..=9 };
        let own = |port| SocketAddr::from((source.address, if source.low_port { port } else { 0 }));
        let mut streams = ports.filter_map(|port| from(own(port), server));
        let stream = streams.next().expect("a free port");
        stream.set_nodelay(true).unwrap();
        let stream = match tls {
            Some(tls) => Line::secure(stream, &tls.trusted, tls.identity.as_ref()),
            None => stream.into(),
        };
        let (uid, callbacks) = (source.uid, Vec::new());
        Self { stream, uid, xid: 0, is_probed: false, callbacks }
    }

    /// Makes a call; returns the whole reply, or `None` if the server closed the connection. Panics
    /// if the server does neither in time.
    pub(crate) fn ask(&mut self, call: &Call) -> Option<Vec<u8>> {
        self.xid += 1;
        self.send(&message(self.xid, self.uid, call))?;
        loop {
            let record = self.record(PATIENCE).expect("an answer in time")?;
            if record[..4] == self.xid.to_be_bytes() && record[4..8] == [0, 0, 0, 1] {
                return Some(record);
            }
            self.called(&record);
        }
    }

    /// Answers calls of the server until it has probed the back channel.
    pub(crate) fn await_probe(&mut self) {
        while !self.is_probed {
            let record = self.record(PATIENCE).expect("the probe of the way back in time");
            self.called(&record.expect("the probe of the way back"));
        }
    }

    /// Answers calls that the server has already sent.
    pub(crate) fn listen(&mut self) {
        while let Ok(Some(record)) = self.record(Duration::from_millis(50)) {
            self.called(&record);
        }
    }

    fn called(&mut self, record: &[u8]) {
        let procedure = Decoder::new(&record[20..]).value::<u32>();
        if procedure == Ok(0) {
            self.is_probed = true;
            let xid = &record[..4];
            let accepted = [1, 0, 0, 0, 0].map(u32::to_be_bytes).concat();
            let _ = self.send(&[xid, &accepted].concat());
        } else {
            self.callbacks.push(record.to_vec());
        }
    }

    fn send(&mut self, record: &[u8]) -> Option<()> {
        let mark = 1 << 31 | record.len() as u32;
        self.stream.write_all(&[&mark.to_be_bytes()[..], record].concat()).ok()
    }

    /// Returns the next record, or `None` if the server closed the connection. It is an error if
    /// neither happens in time.
    fn record(&mut self, patience: Duration) -> Result<Option<Vec<u8>>, Late> {
        let mut mark = [0; 4];
        self.stream.set_read_timeout(patience);
        match self.stream.read(&mut mark[..1]) {
            Ok(1) => {}
            Ok(_) => return Ok(None),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Err(Late),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(None),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => panic!("{error}"),
        }
        self.stream.set_read_timeout(PATIENCE);
        self.stream.read_exact(&mut mark[1..]).unwrap();
        let mut record = vec![0; (u32::from_be_bytes(mark) & !(1 << 31)) as usize];
        self.stream.read_exact(&mut record).unwrap();
        Ok(Some(record))
    }
}

fn from(own: SocketAddr, server: SocketAddr) -> Option<TcpStream> {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    // The port can be used again as soon as the connection is closed.
    set_socket_linger(&socket, Some(Duration::ZERO)).unwrap();
    bind(&socket, &own).ok()?;
    connect(&socket, &server).ok()?;
    Some(TcpStream::from(socket))
}
