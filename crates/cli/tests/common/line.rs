//! A connection to the server, plain or encrypted.

use std::io::{Read, Result, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, CustomExtension, DnType, IsCa, KeyPair,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::PATIENCE;
use super::raw::{NFS, number};

pub enum Line {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

/// A client's certificate chain and private key.
pub struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

/// A certificate authority.
pub type Authority = CertifiedIssuer<'static, KeyPair>;

/// The OID 1.3.6.1.4.1.99999.1 in DER.
const USER: &[u8] = &[0x2b, 6, 1, 4, 1, 0x86, 0x8d, 0x1f, 1];

/// A new certificate authority.
pub fn authority() -> Authority {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "authority of a test");
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

impl Identity {
    /// Makes a key and a certificate that is signed by that key itself.
    pub fn self_signed() -> Self {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["client.example".to_owned()]).unwrap();
        Self::new(params.self_signed(&key).unwrap().der().clone(), &key)
    }

    /// Makes a key and a certificate for a host of this name, signed by `authority`. The
    /// certificate names the users (each an RPCAuthSys in DER) in otherName entries of [`USER`].
    pub fn signed(authority: &Authority, name: &str, users: &[&[u8]]) -> Self {
        let wrap = |tag: u8, content: &[u8]| [&[tag, content.len() as u8], content].concat();
        let user = |user: &&[u8]| wrap(0xa0, &[&wrap(6, USER), &*wrap(0xa0, user)].concat());
        let others: Vec<u8> = users.iter().flat_map(user).collect();
        let names = wrap(0x30, &[wrap(0x82, name.as_bytes()), others].concat());
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.custom_extensions = vec![CustomExtension::from_oid_content(&[2, 5, 29, 17], names)];
        let certificate = params.signed_by(&key, &**authority).unwrap();
        Self::new(certificate.der().clone(), &key)
    }

    pub fn new(certificate: CertificateDer<'static>, key: &KeyPair) -> Self {
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        Self { chain: vec![certificate], key }
    }

    /// The text of the public key, as the server writes it.
    pub fn public(&self) -> String {
        comity_tls::Certificate::read(&self.chain[0]).unwrap().key().to_string()
    }
}

impl Line {
    /// Begins TLS on a connection; trusts the certificate in this file and nothing else.
    pub fn secure(plain: TcpStream, trusted: &Path, identity: Option<&Identity>) -> Self {
        Self::try_secure(plain, trusted, identity).unwrap()
    }

    /// Like [`Self::secure`]; returns the error if the handshake fails.
    pub fn try_secure(
        mut plain: TcpStream,
        trusted: &Path,
        identity: Option<&Identity>,
    ) -> Result<Self> {
        plain.set_read_timeout(Some(PATIENCE)).unwrap();
        plain.write_all(&probe()).unwrap();
        let mut reply = [0; 36];
        plain.read_exact(&mut reply).unwrap();
        assert_eq!(reply[24..32], *b"STARTTLS");
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(trusted).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_root_certificates(roots);
        let config = match identity {
            Some(Identity { chain, key }) => {
                builder.with_client_auth_cert(chain.clone(), key.clone_key()).unwrap()
            }
            None => builder.with_no_client_auth(),
        };
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let client = ClientConnection::new(Arc::new(config), name).unwrap();
        let mut stream = StreamOwned::new(client, plain);
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock)?;
        }
        Ok(Self::Tls(Box::new(stream)))
    }

    /// The public key of the server, if this is TLS.
    pub fn server_key(&self) -> Option<String> {
        let Self::Tls(stream) = self else { return None };
        let chain = stream.conn.peer_certificates()?;
        Some(comity_tls::Certificate::read(&chain[0]).unwrap().key().to_string())
    }

    pub fn set_read_timeout(&self, patience: Duration) {
        let socket = match self {
            Self::Plain(socket) => socket,
            Self::Tls(stream) => &stream.sock,
        };
        socket.set_read_timeout(Some(patience)).unwrap();
    }
}

impl From<TcpStream> for Line {
    fn from(stream: TcpStream) -> Self {
        Self::Plain(stream)
    }
}

impl Read for Line {
    fn read(&mut self, room: &mut [u8]) -> Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(room),
            Self::Tls(stream) => stream.read(room),
        }
    }
}

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        match self {
            Self::Plain(socket) => socket.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> Result<()> {
        match self {
            Self::Plain(socket) => socket.flush(),
            Self::Tls(stream) => stream.flush(),
        }
    }
}

/// The record of a probe for TLS: a NULL call of NFS with flavor 7.
pub fn probe() -> Vec<u8> {
    let mut call = Vec::new();
    for field in [0x8000_0000 | 40, 1, 0, 2, NFS, 3, 0, 7, 0, 0, 0] {
        number(&mut call, field);
    }
    call
}
