//! A client of RPC-with-TLS, which uses rustls with a key and certificate of its own.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use comity_rpc::{CallHeader, Flavor, OpaqueAuth};
use comity_xdr::{Encoder, Opaque};
use rcgen::{CertificateParams, KeyPair, PKCS_ED25519, date_time_ymd};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, Error, SignatureScheme, StreamOwned,
};

use crate::toy::PROGRAM;

/// A certificate chain, beginning with the client's own certificate, and its private key.
pub(crate) struct Identity {
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: KeyPair,
}

impl Identity {
    /// A new key and its certificate, which expires at the end of this year.
    pub(crate) fn until(year: i32) -> Self {
        Self::with_end(|params| params.not_after = date_time_ymd(year, 12, 31))
    }

    /// A new key and its certificate, which expires after this time.
    pub(crate) fn for_a_while(time: Duration) -> Self {
        Self::with_end(|params| params.not_after = (SystemTime::now() + time).into())
    }

    fn with_end(set_end: impl FnOnce(&mut CertificateParams)) -> Self {
        let key = KeyPair::generate_for(&PKCS_ED25519).unwrap();
        let mut params = CertificateParams::new(vec!["client.example".to_owned()]).unwrap();
        params.not_before = date_time_ymd(2001, 1, 1);
        set_end(&mut params);
        let chain = vec![params.self_signed(&key).unwrap().der().clone()];
        Self { chain, key }
    }

    pub(crate) fn private(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::try_from(self.key.serialize_der()).unwrap()
    }
}

/// Accepts any certificate of a server.
#[derive(Debug)]
struct AnyServer(CryptoProvider);

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
        Err(Error::General("TLS 1.2".into()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// The configuration of a client with this identity, which offers these protocols.
pub(crate) fn config(identity: Option<&Identity>, alpn: &[&[u8]]) -> ClientConfig {
    let provider = aws_lc_rs::default_provider();
    let builder = ClientConfig::builder_with_provider(Arc::new(provider.clone()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyServer(provider)));
    let mut config = match identity {
        Some(identity) => {
            builder.with_client_auth_cert(identity.chain.clone(), identity.private()).unwrap()
        }
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    config
}

/// The probe of RFC 9289 as a whole record.
pub(crate) fn probe(xid: u32, procedure: u32) -> Vec<u8> {
    let credential = OpaqueAuth { flavor: Flavor::TLS, body: Opaque(&[]) };
    let verifier = OpaqueAuth::NONE;
    let mut encoder = Encoder::new();
    let start = encoder.begin_record();
    let header = CallHeader { xid, program: PROGRAM, version: 1, procedure, credential, verifier };
    encoder.value(&header);
    encoder.end_record(start);
    encoder.bytes().to_vec()
}

/// The reply to a probe with this xid that begins TLS.
pub(crate) fn start_tls(xid: u32) -> Vec<u8> {
    let mut encoder = Encoder::new();
    let start = encoder.begin_record();
    encoder.words([xid, 1, 0, 0]);
    encoder.opaque(b"STARTTLS");
    encoder.value(&0_u32);
    encoder.end_record(start);
    encoder.bytes().to_vec()
}

pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// A connection on which the server has answered STARTTLS.
pub(crate) fn probed(address: SocketAddr) -> TcpStream {
    let mut stream = connect(address);
    stream.write_all(&probe(7, 0)).unwrap();
    let expected = start_tls(7);
    let mut reply = vec![0; expected.len()];
    stream.read_exact(&mut reply).unwrap();
    assert_eq!(reply, expected);
    stream
}

pub(crate) type Encrypted = StreamOwned<ClientConnection, TcpStream>;

/// A connection after its handshake, if the handshake succeeds.
pub(crate) fn handshake(address: SocketAddr, config: ClientConfig) -> std::io::Result<Encrypted> {
    let name = ServerName::try_from("server.example").unwrap();
    let client = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = StreamOwned::new(client, probed(address));
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut stream.sock)?;
    }
    Ok(stream)
}

/// The next reply as a whole record.
pub(crate) fn next_reply(stream: &mut impl Read) -> std::io::Result<Vec<u8>> {
    let mut mark = [0; 4];
    stream.read_exact(&mut mark)?;
    let mut reply = vec![0; (u32::from_be_bytes(mark) & !(1 << 31)) as usize];
    stream.read_exact(&mut reply)?;
    Ok(reply)
}

/// Makes a call; returns its results.
pub(crate) fn call(
    stream: &mut (impl Read + Write),
    xid: u32,
    (procedure, arguments): (u32, &[u8]),
) -> std::io::Result<Vec<u8>> {
    stream.write_all(&crate::toy::record(xid, procedure, arguments))?;
    let reply = next_reply(stream)?;
    assert_eq!(reply[..4], xid.to_be_bytes());
    Ok(reply[24..].to_vec())
}
