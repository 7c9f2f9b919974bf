//! A connection from a chosen address and port, and COMPOUNDs built by hand.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
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

impl Wire {
    /// Connects in clear.
    pub(crate) fn connect(port: u16, source: Source) -> Self {
        Self::connect_by(port, source, None)
    }

    /// Connects by TLS if settings are given, otherwise in clear.
    pub(crate) fn connect_by(port: u16, source: Source, tls: Option<&Arc<Tls>>) -> Self {
        let server = SocketAddr::from(([127, 0, 0, 1], port));
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

    /// Makes a call; returns the whole reply, or `None` if the server closed the connection.
    pub(crate) fn ask(&mut self, (program, arguments): &Call) -> Option<Vec<u8>> {
        self.xid += 1;
        let credential = self.credential();
        let mut call = Encoder::new();
        let (number, version, procedure) = *program;
        [self.xid, 0, 2, number, version, procedure, 1].iter().for_each(|word| call.value(word));
        call.opaque(&credential);
        call.raw(&[0; 8]);
        call.raw(arguments);
        self.send(call.bytes())?;
        loop {
            let record = self.record(PATIENCE)?;
            if record[..4] == self.xid.to_be_bytes() && record[4..8] == [0, 0, 0, 1] {
                return Some(record);
            }
            self.called(&record);
        }
    }

    /// Answers calls of the server until it has probed the back channel.
    pub(crate) fn await_probe(&mut self) {
        while !self.is_probed {
            let record = self.record(PATIENCE).expect("the probe of the way back");
            self.called(&record);
        }
    }

    /// Answers calls that the server has already sent.
    pub(crate) fn listen(&mut self) {
        while let Some(record) = self.record(Duration::from_millis(50)) {
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

    fn credential(&self) -> Vec<u8> {
        bytes(&comity_rpc::AuthSys {
            stamp: 0,
            machine_name: Opaque(b"victim"),
            uid: self.uid,
            gid: self.uid,
            gids: Counted(Vec::new()),
        })
    }

    fn send(&mut self, record: &[u8]) -> Option<()> {
        let mark = 1 << 31 | record.len() as u32;
        self.stream.write_all(&[&mark.to_be_bytes()[..], record].concat()).ok()
    }

    /// Returns the next record; `None` if none begins in time or the server closed the connection.
    fn record(&mut self, patience: Duration) -> Option<Vec<u8>> {
        let mut mark = [0; 4];
        self.stream.set_read_timeout(patience);
        match self.stream.read(&mut mark[..1]) {
            Ok(1) => {}
            Ok(_) => return None,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return None,
            Err(error) => panic!("{error}"),
        }
        self.stream.set_read_timeout(PATIENCE);
        self.stream.read_exact(&mut mark[1..]).unwrap();
        let mut record = vec![0; (u32::from_be_bytes(mark) & !(1 << 31)) as usize];
        self.stream.read_exact(&mut record).unwrap();
        Some(record)
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
