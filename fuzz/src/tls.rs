//! A TLS client whose keys are in the hands of an attacker, and the server's end of its connection.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use comity_tls::{
    Acceptor, Handshake, HandshakeStep, RECORD_BYTES_MAX, RecordContent, RecordLayer, ServerKey,
    Trust, record_bytes, self_made,
};
use rustls::client::UnbufferedClientConnection;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::cipher::{MessageEncrypter, OutboundChunks, OutboundPlainMessage};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::unbuffered::ConnectionState;
use rustls::{
    ClientConfig, ConnectionTrafficSecrets, ContentType, DigitallySignedStruct, Error,
    ProtocolVersion, SignatureScheme,
};

/// Most bytes of an input that are one piece.
const PIECE_BYTES: usize = 255;

/// The server's end of a new connection, and its client.
pub struct Eavesdropped {
    server: Box<Handshake>,
    client: UnbufferedClientConnection,
}

/// Accepts any certificate, because no input depends on it.
#[derive(Debug)]
struct AnyServer;

impl ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }
}

/// Encrypts records that an honest client would not send.
struct Sealer {
    cipher: Box<dyn MessageEncrypter>,
    sequence: u64,
}

impl Eavesdropped {
    /// Begins a connection; nothing has been sent.
    ///
    /// # Panics
    /// There is no key for the server.
    #[must_use]
    pub fn new() -> Self {
        static ACCEPTOR: OnceLock<Acceptor> = OnceLock::new();
        let acceptor = ACCEPTOR.get_or_init(|| {
            Acceptor::new(&server_key(), Trust::default()).expect("a key that serves")
        });
        let name = ServerName::try_from("server.example").expect("a name");
        let client = UnbufferedClientConnection::new(client_config(), name).expect("a client");
        Self { server: acceptor.begin().expect("a handshake"), client }
    }

    /// The first byte says when the input begins to replace what the client sends: at once, after
    /// its hello, or after the handshake.
    pub fn attack(mut self, input: &[u8]) {
        let Some((&when, input)) = input.split_first() else { return };
        if when % 3 == 0 {
            return self.feed(input);
        }
        let Some(hello) = self.client_flight(&mut Vec::new()) else { return };
        let mut answer = Vec::new();
        if self.server.receive(&hello).is_err() {
            return;
        }
        self.server = match self.server.advance(&mut answer) {
            Ok(HandshakeStep::Pending(server)) => server,
            _ => return,
        };
        if when % 3 == 1 {
            return self.feed(input);
        }
        let Some(finished) = self.client_flight(&mut answer) else { return };
        if self.server.receive(&finished).is_err() {
            return;
        }
        let Ok(HandshakeStep::Done(done)) = self.server.advance(&mut Vec::new()) else { return };
        let Ok((secrets, kernel)) = self.client.dangerous_into_kernel_connection() else { return };
        let suite = kernel.negotiated_cipher_suite().tls13().expect("TLS 1.3");
        let (sequence, secrets) = secrets.tx;
        let (key, iv) = match secrets {
            ConnectionTrafficSecrets::Aes128Gcm { key, iv }
            | ConnectionTrafficSecrets::Aes256Gcm { key, iv }
            | ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => (key, iv),
            _ => return,
        };
        let sealer = Sealer { cipher: suite.aead_alg.encrypter(key, iv), sequence };
        after_handshake(done.session, sealer, input);
    }

    /// Gives the server pieces of the input as they are.
    fn feed(self, input: &[u8]) {
        let mut server = self.server;
        for piece in input.chunks(PIECE_BYTES) {
            if server.receive(piece).is_err() {
                return;
            }
            server = match server.advance(&mut Vec::new()) {
                Ok(HandshakeStep::Pending(server)) => server,
                _ => return,
            };
        }
    }

    /// The bytes that the client sends next, after those of the server.
    fn client_flight(&mut self, received: &mut Vec<u8>) -> Option<Vec<u8>> {
        let mut sent = Vec::new();
        for _ in 0..32 {
            let status = self.client.process_tls_records(received);
            let discard = status.discard;
            let is_done = match status.state.ok()? {
                ConnectionState::EncodeTlsData(mut data) => {
                    let mut room = vec![0; 1 << 15];
                    let written = data.encode(&mut room).ok()?;
                    sent.extend_from_slice(room.get(..written)?);
                    false
                }
                ConnectionState::TransmitTlsData(data) => {
                    data.done();
                    false
                }
                _ => true,
            };
            received.drain(..discard);
            if is_done {
                return Some(sent);
            }
        }
        None
    }
}

impl Default for Eavesdropped {
    fn default() -> Self {
        Self::new()
    }
}

/// Each piece of the input is a content type and content. It is encrypted with the client's keys,
/// or sent as it is.
fn after_handshake(mut session: RecordLayer, mut sealer: Sealer, mut input: &[u8]) {
    let mut answers = VecDeque::new();
    while let Some((&[kind, length], rest)) = input.split_first_chunk() {
        let (content, behind) = rest.split_at(rest.len().min(length.into()));
        input = behind;
        let mut record = match kind {
            20..=23 => sealer.seal(ContentType::from(kind), content),
            _ => content.to_vec(),
        };
        match record_bytes(&record) {
            Ok(Some(bytes)) if bytes == record.len() => assert!(bytes <= RECORD_BYTES_MAX),
            Ok(_) => continue,
            Err(_) => return,
        }
        match session.open(&mut record) {
            Ok(RecordContent::Data(data)) => assert!(data.len() <= content.len()),
            Ok(RecordContent::Closed) | Err(_) => return,
        }
        if session.answer(&mut answers).is_err() || session.seal(content, &mut answers).is_err() {
            return;
        }
        answers.clear();
    }
}

impl Sealer {
    fn seal(&mut self, typ: ContentType, content: &[u8]) -> Vec<u8> {
        let (version, payload) = (ProtocolVersion::TLSv1_2, OutboundChunks::Single(content));
        let plain = OutboundPlainMessage { typ, version, payload };
        let sealed = self.cipher.encrypt(plain, self.sequence).expect("a short record");
        self.sequence += 1;
        sealed.encode()
    }
}

fn client_config() -> Arc<ClientConfig> {
    static CONFIG: OnceLock<Arc<ClientConfig>> = OnceLock::new();
    let config = CONFIG.get_or_init(|| {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("TLS 1.3")
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyServer))
            .with_no_client_auth();
        config.enable_secret_extraction = true;
        Arc::new(config)
    });
    Arc::clone(config)
}

fn server_key() -> ServerKey {
    let made = self_made(&["server.example".to_owned()], None).expect("a key");
    let folder = std::env::temp_dir().join(format!("comity-fuzz-tls-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let [certificate, key] = ["cert.pem", "key.pem"].map(|name| folder.join(name));
    std::fs::write(&certificate, made.certificate).expect("a file");
    std::fs::write(&key, made.key).expect("a file");
    let read = ServerKey::read(&certificate, &key).expect("what was made");
    let _ = std::fs::remove_dir_all(folder);
    read
}
