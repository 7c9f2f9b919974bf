use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use comity_proto::portmap::{
    PORT, PORTMAP_VERSION, PROGRAM, RPCBIND_VERSION_4, procedure, universal_address,
};
use comity_rpc::{CallHeader, OpaqueAuth};
use comity_xdr::{Decoder, Encode, Encoder};

use super::Advertised;
use super::program::{mapping, rpcb};
use crate::limits::{DATAGRAM_BYTES_MAX, PORTMAP_PATIENCE_SECONDS};

/// The socket at which rpcbind accepts registrations from local programs.
const LOCAL_SOCKET: &str = "/run/rpcbind.sock";

/// Programs that were registered with the machine's portmapper.
#[derive(Debug)]
pub struct Registration {
    offered: Vec<Advertised>,
}

/// The reason why programs could not be registered.
#[derive(Debug, thiserror::Error)]
pub enum RegisterError {
    /// No portmapper runs here.
    #[error("no portmapper runs on this machine")]
    Absent,
    /// The portmapper cannot be reached.
    #[error("the portmapper does not answer: {0}")]
    Broken(#[from] io::Error),
    /// The portmapper refuses.
    #[error(
        "the portmapper refuses program {program} version {version}; root may register it, or \
             another server already has"
    )]
    Refused {
        /// The program's number.
        program: u32,
        /// Its version.
        version: u32,
    },
}

impl Registration {
    /// Registers programs with the portmapper of this machine, if there is one. Entries of an
    /// earlier server are replaced, but those of other programs under `if_free` are kept.
    ///
    /// # Errors
    /// [`RegisterError`]; programs that were registered before the error stay registered.
    pub fn new(offered: &[Advertised], if_free: &[Advertised]) -> Result<Self, RegisterError> {
        let mut portmapper = Portmapper::find()?;
        for one in offered {
            portmapper.ask(procedure::UNSET, one)?;
        }
        for one in offered {
            if !portmapper.ask(procedure::SET, one)? {
                let Advertised { program, version, .. } = *one;
                return Err(RegisterError::Refused { program, version });
            }
        }
        let mut offered = offered.to_vec();
        for one in if_free {
            if portmapper.ask(procedure::SET, one)? {
                offered.push(*one);
            }
        }
        Ok(Self { offered })
    }

    /// Removes the registrations.
    ///
    /// # Errors
    /// [`RegisterError`].
    pub fn withdraw(self) -> Result<(), RegisterError> {
        let mut portmapper = Portmapper::find()?;
        for one in &self.offered {
            portmapper.ask(procedure::UNSET, one)?;
        }
        Ok(())
    }
}

/// A connection to the machine's portmapper.
enum Portmapper {
    /// The connection goes to rpcbind, which knows the user of the caller.
    Local(UnixStream),
    /// The connection goes to a portmapper of version 2.
    Loopback(TcpStream),
}

impl Portmapper {
    fn find() -> Result<Self, RegisterError> {
        let patience = Some(Duration::from_secs(PORTMAP_PATIENCE_SECONDS));
        if let Ok(stream) = UnixStream::connect(Path::new(LOCAL_SOCKET)) {
            stream.set_read_timeout(patience)?;
            stream.set_write_timeout(patience)?;
            return Ok(Self::Local(stream));
        }
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, PORT));
        let Ok(stream) = TcpStream::connect(address) else { return Err(RegisterError::Absent) };
        stream.set_read_timeout(patience)?;
        stream.set_write_timeout(patience)?;
        Ok(Self::Loopback(stream))
    }

    /// Calls SET or UNSET; returns whether it was done.
    fn ask(&mut self, procedure: u32, offered: &Advertised) -> io::Result<bool> {
        match self {
            Self::Local(stream) => {
                let address = universal_address(offered.address);
                ask(stream, RPCBIND_VERSION_4, procedure, &rpcb(offered, &address))
            }
            Self::Loopback(stream) => ask(stream, PORTMAP_VERSION, procedure, &mapping(offered)),
        }
    }
}

/// Makes one call; returns its boolean result.
fn ask(
    stream: &mut (impl Read + Write),
    version: u32,
    procedure: u32,
    argument: &impl Encode,
) -> io::Result<bool> {
    let (credential, verifier) = (OpaqueAuth::NONE, OpaqueAuth::NONE);
    let mut encoder = Encoder::new();
    let start = encoder.begin_record();
    let header =
        CallHeader { xid: procedure, program: PROGRAM, version, procedure, credential, verifier };
    encoder.value(&header);
    encoder.value(argument);
    encoder.end_record(start);
    stream.write_all(encoder.bytes())?;
    let mut mark = [0; 4];
    stream.read_exact(&mut mark)?;
    let length = (u32::from_be_bytes(mark) & !(1 << 31)) as usize;
    if length > DATAGRAM_BYTES_MAX {
        return Err(io::Error::other("its answer is too long"));
    }
    let mut reply = vec![0; length];
    stream.read_exact(&mut reply)?;
    // The expected words: REPLY, MSG_ACCEPTED, an empty verifier, SUCCESS, and the result (RFC
    // 5531, 9).
    let words: Vec<u32> = {
        let mut decoder = Decoder::new(&reply);
        std::iter::from_fn(|| decoder.value().ok()).collect()
    };
    match words[..] {
        [_, 1, 0, 0, 0, 0, done] => Ok(done != 0),
        [_, 1, 0, 0, 0, _, ..] | [_, 1, 1, ..] => Ok(false),
        _ => Err(io::Error::other("its answer is malformed")),
    }
}

#[cfg(test)]
mod tests {
    use comity_proto::portmap::Mapping;

    use super::*;

    const OFFERED: Mapping = Mapping { program: 100_003, version: 3, protocol: 6, port: 2049 };
    const LAST: u32 = 1 << 31;

    /// A portmapper that answers with these bytes, and the request that it received.
    struct Answers<'a> {
        sent: Vec<u8>,
        answer: &'a [u8],
    }

    impl Read for Answers<'_> {
        fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
            self.answer.read(room)
        }
    }

    impl Write for Answers<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.sent.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_be_bytes()).collect()
    }

    /// Sends a request to a portmapper that answers with this body and a correct record mark.
    fn asked(body: &[u32]) -> io::Result<bool> {
        let mark = LAST | (4 * body.len()) as u32;
        asked_raw(&words(&[&[mark], body].concat()))
    }

    fn asked_raw(answer: &[u8]) -> io::Result<bool> {
        let mut stream = Answers { sent: Vec::new(), answer };
        let done = ask(&mut stream, PORTMAP_VERSION, procedure::SET, &OFFERED);
        let expected = [LAST | 56, procedure::SET, 0, 2, PROGRAM, 2, procedure::SET];
        assert_eq!(stream.sent[..28], words(&expected));
        assert_eq!(stream.sent[44..], words(&[100_003, 3, 6, 2049]));
        done
    }

    #[test]
    fn the_answer_of_a_portmapper_is_read() {
        assert!(asked(&[1, 1, 0, 0, 0, 0, 1]).unwrap());
        assert!(!asked(&[1, 1, 0, 0, 0, 0, 0]).unwrap());
    }

    #[test]
    fn a_call_that_is_refused_or_unknown_was_not_done() {
        assert!(!asked(&[1, 1, 0, 0, 0, 3]).unwrap(), "PROC_UNAVAIL");
        assert!(!asked(&[1, 1, 0, 0, 0, 2, 3, 4]).unwrap(), "PROG_MISMATCH");
        assert!(!asked(&[1, 1, 1, 1, 5]).unwrap(), "AUTH_TOOWEAK");
    }

    #[test]
    fn an_answer_that_is_no_reply_is_an_error() {
        for body in [&[][..], &[1], &[1, 0, 2, PROGRAM, 2, 1], &[1, 2, 0, 0, 0, 0, 1], &[1, 1, 0]] {
            let error = asked(body).unwrap_err().to_string();
            assert!(error.contains("malformed"), "{body:?}: {error}");
        }
    }

    #[test]
    fn an_answer_that_is_too_long_is_not_waited_for() {
        for length in [DATAGRAM_BYTES_MAX as u32 + 1, !LAST] {
            let error = asked_raw(&words(&[LAST | length])).unwrap_err().to_string();
            assert!(error.contains("too long"), "{error}");
        }
    }

    #[test]
    fn an_answer_that_breaks_off_is_an_error() {
        let whole = words(&[LAST | 28, 1, 1, 0, 0, 0, 0, 1]);
        for length in 0..whole.len() {
            let error = asked_raw(&whole[..length]).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{length}");
        }
    }
}
