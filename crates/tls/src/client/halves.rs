use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::ClientConnection;

use super::TlsStream;

/// Most bytes that are received with one system call.
const RECEIVED_BYTES: usize = 64 << 10;

/// Splits a TLS connection, so that one thread can read while others write.
///
/// # Errors
/// The system supplied no second descriptor.
pub fn split(stream: TlsStream) -> io::Result<(TlsReader, TlsWriter)> {
    let (connection, socket) = stream.into_parts();
    let connection = Arc::new(Mutex::new(connection));
    let reader = TlsReader {
        connection: Arc::clone(&connection),
        socket: socket.try_clone()?,
        received: vec![0; RECEIVED_BYTES].into(),
        unread: 0..0,
    };
    Ok((reader, TlsWriter { connection, socket, sealed: Vec::new(), sent: 0, accepted: 0 }))
}

/// The receiving half.
pub struct TlsReader {
    connection: Arc<Mutex<ClientConnection>>,
    socket: TcpStream,
    received: Box<[u8]>,
    /// The received bytes that have not been passed to TLS.
    unread: std::ops::Range<usize>,
}

impl TlsReader {
    /// Decrypts received bytes; `None` if more must be received first.
    fn open(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let mut connection = lock(&self.connection);
        loop {
            match connection.reader().read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                read => return read.map(Some),
            }
            let mut rest = self.received.get(self.unread.clone()).unwrap_or_default();
            if rest.is_empty() {
                return Ok(None);
            }
            self.unread.start += connection.read_tls(&mut rest)?;
            connection.process_new_packets().map_err(invalid)?;
        }
    }
}

impl Read for TlsReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(read) = self.open(buffer)? {
                return Ok(read);
            }
            // The lock is not held while waiting for bytes, so that others can write.
            self.unread = 0..self.socket.read(&mut self.received)?;
            if self.unread.is_empty() {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

/// The sending half.
///
/// A write that exceeds the socket's timeout returns [`ErrorKind::WouldBlock`] or
/// [`ErrorKind::TimedOut`]. The next write must begin with the same bytes: they are encrypted
/// already, and only their rest is sent.
pub struct TlsWriter {
    connection: Arc<Mutex<ClientConnection>>,
    socket: TcpStream,
    sealed: Vec<u8>,
    /// Encrypted bytes that were sent.
    sent: usize,
    /// Bytes of the caller that are contained in `sealed`.
    accepted: usize,
}

impl TlsWriter {
    fn seal(&mut self, parts: &[IoSlice<'_>]) -> io::Result<()> {
        let mut connection = lock(&self.connection);
        (self.sent, self.accepted) = (0, connection.writer().write_vectored(parts)?);
        self.sealed.clear();
        while connection.wants_write() {
            connection.write_tls(&mut self.sealed)?;
        }
        Ok(())
    }

    fn send(&mut self) -> io::Result<()> {
        while let Some(rest) = self.sealed.get(self.sent..).filter(|rest| !rest.is_empty()) {
            match self.socket.write(rest) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => self.sent += written,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl Write for TlsWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        if self.sent == self.sealed.len() {
            self.seal(parts)?;
        }
        self.send()?;
        Ok(self.accepted)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.send()
    }
}

fn lock(connection: &Mutex<ClientConnection>) -> MutexGuard<'_, ClientConnection> {
    connection.lock().unwrap_or_else(PoisonError::into_inner)
}

fn invalid(error: rustls::Error) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, error)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;
    use std::time::Duration;

    use rustls::client::danger::HandshakeSignatureValid;
    use rustls::pki_types::{CertificateDer, UnixTime};
    use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
    use rustls::{
        DigitallySignedStruct, DistinguishedName, ServerConfig, ServerConnection, SignatureScheme,
        StreamOwned,
    };

    use super::*;
    use crate::accepting::Accepting;
    use crate::client::{ServerTrust, key_refusal, start};
    use crate::provider::provider;
    use crate::{ServerKey, Trust, self_made};

    /// Accepts one connection, answers its probe, and then returns all bytes it receives, with
    /// pauses in which it does not read.
    fn echo(listener: &TcpListener, accepting: &Accepting, bytes: usize) {
        let (mut socket, _) = listener.accept().unwrap();
        let mut probe = [0; 44];
        socket.read_exact(&mut probe).unwrap();
        let head = [0x8000_0020, 0x434d_5459, 1, 0, 0, 8].map(u32::to_be_bytes).concat();
        socket.write_all(&[&head[..], b"STARTTLS\0\0\0\0"].concat()).unwrap();
        let connection = ServerConnection::new(Arc::clone(&accepting.config)).unwrap();
        let mut stream = StreamOwned::new(connection, socket);
        let mut all = vec![0; bytes];
        for part in all.chunks_mut(bytes / 3) {
            thread::sleep(Duration::from_millis(50));
            stream.read_exact(part).unwrap();
        }
        stream.write_all(&all).unwrap();
        stream.conn.send_close_notify();
        stream.flush().unwrap();
    }

    fn accepting() -> Accepting {
        let folder = tempfile::tempdir().unwrap();
        let made = self_made(&["localhost".to_owned()], None).unwrap();
        let [certificate, key] = ["certificate", "key"].map(|name| folder.path().join(name));
        std::fs::write(&certificate, made.certificate).unwrap();
        std::fs::write(&key, made.key).unwrap();
        let key = ServerKey::read(&certificate, &key).unwrap();
        Accepting::new(&key, Trust::default()).unwrap()
    }

    fn write_all(writer: &mut TlsWriter, mut bytes: &[u8]) -> usize {
        let mut slow = 0;
        while !bytes.is_empty() {
            match writer.write(bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => slow += 1,
                Err(error) => panic!("{error}"),
            }
        }
        slow
    }

    #[test]
    fn bytes_arrive_whole_in_both_directions_although_the_peer_reads_slowly() {
        let data: Vec<u8> = (0..12_000_000_u32).map(|at| (at % 251) as u8).collect();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (accepting, bytes) = (accepting(), data.len());
        let server = thread::spawn(move || echo(&listener, &accepting, bytes));
        let stream = start(socket, (100_003, 4), None, &ServerTrust::new(None)).unwrap();
        stream.sock.set_write_timeout(Some(Duration::from_millis(5))).unwrap();
        let (mut reader, mut writer) = split(stream).unwrap();
        let mut seen = Vec::new();
        let reading = thread::spawn(move || reader.read_to_end(&mut seen).map(|_| seen));
        assert!(write_all(&mut writer, &data) > 0, "no write was delayed");
        assert!(reading.join().unwrap().unwrap() == data);
        server.join().unwrap();
    }

    /// Demands a certificate, and then refuses it.
    #[derive(Debug)]
    struct Demanding;

    impl ClientCertVerifier for Demanding {
        fn root_hint_subjects(&self) -> &[DistinguishedName] {
            &[]
        }

        fn verify_client_cert(
            &self,
            _: &CertificateDer<'_>,
            _: &[CertificateDer<'_>],
            _: UnixTime,
        ) -> Result<ClientCertVerified, rustls::Error> {
            Err(rustls::CertificateError::UnknownIssuer.into())
        }

        fn verify_tls12_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, rustls::Error> {
            Ok(HandshakeSignatureValid::assertion())
        }

        fn verify_tls13_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, rustls::Error> {
            Ok(HandshakeSignatureValid::assertion())
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            vec![SignatureScheme::ED25519]
        }
    }

    /// A server that refuses every client.
    fn refusing() -> Accepting {
        let mut accepting = accepting();
        let mut config = ServerConfig::builder_with_provider(Arc::new(provider()))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_client_cert_verifier(Arc::new(Demanding))
            .with_cert_resolver(Arc::clone(&accepting.config.cert_resolver));
        config.alpn_protocols.clone_from(&accepting.config.alpn_protocols);
        accepting.config = Arc::new(config);
        accepting
    }

    #[test]
    fn a_key_refused_after_the_handshake_is_distinguished_from_a_lost_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let accepting = refusing();
        let server = thread::spawn(move || echo(&listener, &accepting, 3));
        let stream = start(socket, (100_003, 4), None, &ServerTrust::new(None)).unwrap();
        let (mut reader, _) = split(stream).unwrap();
        let error = reader.read(&mut [0; 4]).unwrap_err();
        assert_eq!(key_refusal(&error).as_deref(), Some("CertificateRequired"), "{error}");
        assert!(server.join().is_err(), "the server has ended the connection");
    }
}
