//! Calls to programs of other hosts, one at a time, for who can wait.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;

use comity_proto::portmap::{self, Mapping, PORTMAP_VERSION, TCP, procedure};
use comity_rpc::{CallHeader, OpaqueAuth};
use comity_xdr::{Decoder, Encode, Encoder};

use crate::limits::{DATAGRAM_BYTES_MAX, ERRAND_SECONDS};

/// A call to a program of another host.
#[derive(Debug, Clone, Copy)]
pub struct Errand<'a> {
    /// Which program.
    pub program: u32,
    /// Which version of it.
    pub version: u32,
    /// Which procedure.
    pub procedure: u32,
    /// The arguments, in XDR.
    pub arguments: &'a [u8],
}

impl Errand<'_> {
    /// Asks the host's portmapper where the program is, calls it over TCP, and waits for its
    /// results: three times [`ERRAND_SECONDS`] at most.
    ///
    /// # Errors
    /// The host or its portmapper cannot be reached, has no such program, does not answer in time,
    /// or answers nonsense.
    pub fn run(&self, host: IpAddr) -> io::Result<Vec<u8>> {
        let mapping =
            Mapping { program: self.program, version: self.version, protocol: TCP, port: 0 };
        let question = Errand {
            program: portmap::PROGRAM,
            version: PORTMAP_VERSION,
            procedure: procedure::GETPORT,
            arguments: &encoded(&mapping),
        };
        let answer = question.ask(SocketAddr::new(host, portmap::PORT))?;
        let port = Decoder::whole::<u32>(&answer).map_err(|_| nonsense())?;
        match u16::try_from(port) {
            Ok(0) => Err(io::Error::new(io::ErrorKind::NotFound, "no such program there")),
            Ok(port) => self.ask(SocketAddr::new(host, port)),
            Err(_) => Err(nonsense()),
        }
    }

    fn ask(&self, address: SocketAddr) -> io::Result<Vec<u8>> {
        let patience = Duration::from_secs(ERRAND_SECONDS);
        let mut stream = TcpStream::connect_timeout(&address, patience)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        stream.write_all(&self.record())?;
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

    fn record(&self) -> Vec<u8> {
        let Self { program, version, procedure, arguments } = *self;
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

fn encoded(value: &impl Encode) -> Vec<u8> {
    let mut encoder = Encoder::new();
    encoder.value(value);
    encoder.bytes().to_vec()
}

/// What stands behind the header of a reply to an accepted call that was done (RFC 5531, 9).
fn results(reply: &[u8]) -> Option<&[u8]> {
    let mut decoder = Decoder::new(reply);
    let [xid, kind, accepted]: [u32; 3] =
        [decoder.value().ok()?, decoder.value().ok()?, decoder.value().ok()?];
    decoder.value::<OpaqueAuth<'_>>().ok()?;
    let status: u32 = decoder.value().ok()?;
    ([xid, kind, accepted, status] == [1, 1, 0, 0]).then(|| decoder.rest())
}

fn nonsense() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the answer makes no sense")
}

#[cfg(test)]
mod tests {
    use comity_rpc::accepted;

    use super::*;

    #[test]
    fn results_are_what_stands_behind_the_header() {
        let mut reply = Encoder::new();
        accepted::success(&mut reply, 1);
        reply.value(&7_u32);
        assert_eq!(results(reply.bytes()), Some(&[0, 0, 0, 7][..]));
        reply.clear(0);
        accepted::garbage_args(&mut reply, 1);
        assert_eq!(results(reply.bytes()), None);
        assert_eq!(results(&[0; 8]), None);
    }

    #[test]
    fn who_is_not_there_is_an_error() {
        let nobody = Errand { program: 1, version: 1, procedure: 1, arguments: &[] };
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        assert!(nobody.ask(address).is_err());
    }
}
