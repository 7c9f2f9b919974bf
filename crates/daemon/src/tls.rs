//! The server's key for RPC-with-TLS, and the authorities that it trusts.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use comity_credential::KeyId;
use comity_export::{Diagnostic, Location, Plan, Severity};
use comity_tls::{Acceptor, Authorities, ObjectId, ServerKey, Trust};
use comity_vfs::AsServer;
use serde_json::{Value, json};

use crate::state_folder::StateFolder;

/// The source of the server's TLS key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TlsKey {
    /// TLS is off.
    None,
    /// The server makes a key and a certificate in its state folder.
    SelfMade,
    /// The key and certificate of these files in PEM.
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
    /// Files with certificates of the authorities whose certificates may give clients' names and
    /// users.
    pub client_authorities: Vec<PathBuf>,
    /// The object identifier of otherName entries that name a user.
    pub user_names: Option<ObjectId>,
}

/// RPC-with-TLS of a running server.
pub(crate) struct Tls {
    acceptor: Arc<Acceptor>,
    certificate: PathBuf,
    key: PathBuf,
    options: TlsOptions,
    /// The current key.
    shown: Mutex<Arc<ServerKey>>,
}

/// Days before its expiry from which a certificate is reported by `comity check` and in the log.
pub(crate) const EXPIRES_SOON_DAYS: i64 = 30;

impl Tls {
    /// Reads the server's key, or makes one for a server that listens at `addresses`; `None` if TLS
    /// is off. The authorities are those of the options and of the exports in `plan`.
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
        warn_of_end(&certificate, read.days_left());
        let (acceptor, shown) = (Arc::new(acceptor), Mutex::new(Arc::new(read)));
        Ok(Some(Self { acceptor, certificate, key, options: options.clone(), shown }))
    }

    /// Returns the acceptor of TLS handshakes.
    pub(crate) fn acceptor(&self) -> Arc<Acceptor> {
        Arc::clone(&self.acceptor)
    }

    /// Returns the current key.
    pub(crate) fn shown(&self) -> Arc<ServerKey> {
        Arc::clone(&self.shown.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Describes the key, for `comity status` and for the banner.
    pub(crate) fn json(&self) -> Value {
        let shown = self.shown();
        json!({
            "key": shown.public().to_string(),
            "certificate": self.certificate.display().to_string(),
            "names": shown.names(),
            "days_left": shown.days_left(),
        })
    }

    /// The certificate's file, which clients may be told to trust.
    pub(crate) fn certificate(&self) -> &Path {
        &self.certificate
    }

    /// Reads the key and the authorities again: the next handshakes use them, and open connections
    /// continue.
    ///
    /// # Errors
    /// The reason why something cannot be used; everything then stays the same.
    pub(crate) fn renew(&self, plan: &Plan) -> Result<()> {
        let read = read(&self.certificate, &self.key)?;
        let renewed = self.acceptor.renew(&read, trust(&self.options, plan)?);
        renewed.context("no TLS with this key")?;
        warn_of_end(&self.certificate, read.days_left());
        tracing::info!(key = %read.public(), days_left = read.days_left(), "TLS key read");
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(read);
        Ok(())
    }
}

/// Reports errors in the certificates and keys of a configuration, and certificates that expire
/// soon. `files` are the server's certificate and key.
#[must_use]
pub fn check_tls(files: Option<(&Path, &Path)>, authorities: &[&Path]) -> Vec<Diagnostic> {
    let own = files.map(|(certificate, key)| {
        (certificate, ServerKey::read(certificate, key).map(|key| key.days_left()).map_err(text))
    });
    let authorities =
        authorities.iter().map(|path| (*path, Authorities::days_left(path).map_err(text)));
    let judged = own.into_iter().chain(authorities);
    judged.filter_map(|(path, days)| finding(path, days)).collect()
}

fn text(error: impl std::error::Error) -> String {
    error.to_string()
}

fn finding(path: &Path, days: Result<i64, String>) -> Option<Diagnostic> {
    let (severity, text) = match days {
        Ok(days) if days < 0 => (Severity::Error, "the certificate has expired: renew it".into()),
        Ok(days) if days <= EXPIRES_SOON_DAYS => {
            (Severity::Warning, format!("the certificate expires in {days} days: renew it"))
        }
        Ok(_) => return None,
        Err(error) => (Severity::Error, error),
    };
    let place = Location::file(&path.display().to_string());
    Some(Diagnostic { place, severity, text })
}

fn warn_of_end(certificate: &Path, days_left: i64) {
    if days_left <= EXPIRES_SOON_DAYS {
        let certificate = certificate.display();
        tracing::warn!(%certificate, days_left, "the certificate expires: renew it, then reload");
    }
}

fn read(certificate: &Path, key: &Path) -> Result<ServerKey> {
    ServerKey::read(certificate, key).context("the server's key for TLS")
}

/// The names of the keys of the authorities in a file.
///
/// # Errors
/// The reason why they cannot be read.
pub(crate) fn authority_keys(path: &Path) -> Result<Vec<KeyId>, String> {
    // A peer that hands exports over has the configuration read on a thread that serves.
    let _server = AsServer::here().map_err(|status| status.to_string())?;
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

/// The names and addresses by which clients may reach this machine.
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

/// The addresses from which this machine reaches other networks, if it does. Connecting a UDP
/// socket sends no packets; the targets are addresses reserved for documentation.
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
