//! The server's key for RPC-with-TLS, and the authorities that it trusts.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use comity_credential::KeyId;
use comity_export::Plan;
use comity_tls::{Acceptor, Authorities, ObjectId, ServerKey, Trust};

use crate::state_folder::StateFolder;

/// The way in which the server gets its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TlsKey {
    /// There is no TLS.
    None,
    /// The server makes a key and a certificate and keeps them in its state folder.
    SelfMade,
    /// From these files in PEM.
    Files {
        /// The certificates, the server's first.
        certificate: PathBuf,
        /// The private key.
        key: PathBuf,
    },
}

/// The settings of RPC-with-TLS.
#[derive(Debug, Clone)]
pub struct TlsOptions {
    /// The server's key.
    pub key: TlsKey,
    /// Files with the certificates of authorities whose word on names and users counts.
    pub client_authorities: Vec<PathBuf>,
    /// The object identifier of otherName entries that say a user.
    pub user_names: Option<ObjectId>,
}

/// RPC-with-TLS of a running server.
pub(crate) struct Tls {
    acceptor: Arc<Acceptor>,
    certificate: PathBuf,
    key: PathBuf,
    options: TlsOptions,
    fingerprint: String,
}

impl Tls {
    /// Reads the server's key, or makes one for a server that listens at `addresses`; none if there
    /// is to be no TLS. The authorities are those of the options and of the exports in `plan`.
    ///
    /// # Errors
    /// The reason why the key or an authority cannot be used, with its file.
    pub(crate) fn open(
        options: &TlsOptions,
        (state, plan): (&StateFolder, &Plan),
        addresses: &[SocketAddr],
    ) -> Result<Option<Self>> {
        let (certificate, key) = match &options.key {
            TlsKey::None => return Ok(None),
            TlsKey::SelfMade => state.tls_key(&names(addresses))?,
            TlsKey::Files { certificate, key } => (certificate.clone(), key.clone()),
        };
        let read = read(&certificate, &key)?;
        let acceptor =
            Acceptor::new(&read, trust(options, plan)?).context("no TLS with this key")?;
        let (acceptor, fingerprint) = (Arc::new(acceptor), read.public().to_string());
        Ok(Some(Self { acceptor, certificate, key, options: options.clone(), fingerprint }))
    }

    /// Begins handshakes for the server.
    pub(crate) fn acceptor(&self) -> Arc<Acceptor> {
        Arc::clone(&self.acceptor)
    }

    /// The server's public key when it started, as clients can be told of it.
    pub(crate) fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// The file with the certificate, which clients may be given as what they trust.
    pub(crate) fn certificate(&self) -> &Path {
        &self.certificate
    }

    /// Reads everything again: the next handshakes use it, and open connections go on.
    ///
    /// # Errors
    /// The reason why something cannot be used; all stays as it was then.
    pub(crate) fn renew(&self, plan: &Plan) -> Result<()> {
        let read = read(&self.certificate, &self.key)?;
        let renewed = self.acceptor.renew(&read, trust(&self.options, plan)?);
        renewed.context("no TLS with this key")?;
        tracing::info!(key = %read.public(), days_left = read.days_left(), "TLS");
        Ok(())
    }
}

fn read(certificate: &Path, key: &Path) -> Result<ServerKey> {
    ServerKey::read(certificate, key).context("the server's key for TLS")
}

/// The names of the keys of the authorities in a file, or why they cannot be read.
pub(crate) fn authority_keys(path: &Path) -> Result<Vec<KeyId>, String> {
    Authorities::default().add(path).map_err(|error| error.to_string())
}

fn trust(options: &TlsOptions, plan: &Plan) -> Result<Trust> {
    let mut authorities = Authorities::default();
    let files = options.client_authorities.iter().map(PathBuf::as_path);
    for path in files.chain(plan.authority_files()) {
        authorities.add(path).context("the authorities of clients")?;
    }
    Ok(Trust { authorities, user_names: options.user_names.clone() })
}

/// The names and addresses by which clients may mount from this machine.
fn names(addresses: &[SocketAddr]) -> Vec<String> {
    let node = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let mut names = vec![node, "localhost".into(), "127.0.0.1".into(), "::1".into()];
    for address in addresses.iter().map(|address| address.ip().to_canonical()) {
        match (address.is_unspecified(), address) {
            (false, address) => names.push(address.to_string()),
            (true, _) => names.extend(outward().iter().map(IpAddr::to_string)),
        }
    }
    names.sort();
    names.dedup();
    names
}

/// The addresses from which this machine reaches others, if it reaches any. To connect a datagram
/// socket sends nothing; the targets are addresses of documentation.
fn outward() -> Vec<IpAddr> {
    let from = |here: &str, there: &str| {
        let socket = UdpSocket::bind(here)?;
        socket.connect(there)?;
        socket.local_addr().map(|address| address.ip())
    };
    let found = [from("0.0.0.0:0", "192.0.2.1:9"), from("[::]:0", "[2001:db8::1]:9")];
    found.into_iter().flatten().filter(|address| !address.is_unspecified()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_has_the_names_of_its_machine_and_the_addresses_it_listens_at() {
        let found = names(&["192.0.2.7:2049".parse().unwrap(), "[::]:2049".parse().unwrap()]);
        for name in ["localhost", "127.0.0.1", "::1", "192.0.2.7"] {
            assert!(found.iter().any(|found| found == name), "{name} in {found:?}");
        }
        assert!(!found.iter().any(|name| name == "::"), "{found:?}");
    }
}
