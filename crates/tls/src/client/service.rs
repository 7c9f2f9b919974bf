use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use rustls::version::TLS13;
use rustls::{ClientConfig, Error, RootCertStore};

use super::ClientIdentity;
use crate::authorities::{AuthorityError, certificates};
use crate::provider::provider;
use crate::{ServerKey, ServerKeyError};

/// The application protocol of HTTP/1.1 (RFC 7301).
const HTTP: &[u8] = b"http/1.1";

/// The files by which a client of a service over HTTP trusts it, and proves its own identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceFiles {
    /// Certificates of the authorities that may certify the service, in PEM.
    pub authorities: PathBuf,
    /// The client's own certificate and its private key, in PEM.
    pub own: Option<(PathBuf, PathBuf)>,
}

/// The reason why the files cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ServiceFilesError {
    /// The file of the authorities cannot be used.
    #[error(transparent)]
    Authorities(#[from] AuthorityError),
    /// The client's own certificate or key cannot be used.
    #[error(transparent)]
    Own(#[from] ServerKeyError),
    /// The provider of cryptography lacks TLS 1.3.
    #[error(transparent)]
    Tls(#[from] Error),
}

/// TLS 1.3 with a service over HTTP, such as etcd.
#[derive(Debug)]
pub struct ServiceTls {
    files: ServiceFiles,
    read: Mutex<(Vec<Option<SystemTime>>, Arc<ClientConfig>)>,
}

impl ServiceTls {
    /// Reads the files.
    ///
    /// # Errors
    /// [`ServiceFilesError`].
    pub fn read(files: ServiceFiles) -> Result<Self, ServiceFilesError> {
        let read = (files.changed(), Arc::new(files.config()?));
        Ok(Self { files, read: Mutex::new(read) })
    }

    /// Returns the settings for a new connection. Files that have changed are read again; while
    /// they cannot be used, as in the middle of a renewal, the settings stay as they were.
    #[must_use]
    pub fn config(&self) -> Arc<ClientConfig> {
        let changed = self.files.changed();
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if read.0 != changed
            && let Ok(config) = self.files.config()
        {
            *read = (changed, Arc::new(config));
        }
        Arc::clone(&read.1)
    }
}

impl ServiceFiles {
    fn config(&self) -> Result<ClientConfig, ServiceFilesError> {
        let config = ClientConfig::builder_with_provider(Arc::new(provider()))
            .with_protocol_versions(&[&TLS13])?
            .with_root_certificates(roots(&self.authorities)?);
        let mut config = match &self.own {
            Some((certificate, key)) => {
                let own = ServerKey::read(certificate, key)?;
                config.with_client_cert_resolver(Arc::new(ClientIdentity::of_server(&own)))
            }
            None => config.with_no_client_auth(),
        };
        config.alpn_protocols = vec![HTTP.to_vec()];
        Ok(config)
    }

    /// The times at which the files were modified.
    fn changed(&self) -> Vec<Option<SystemTime>> {
        let own = self.own.iter().flat_map(|(certificate, key)| [certificate, key]);
        let time = |path: &PathBuf| std::fs::metadata(path).ok()?.modified().ok();
        own.chain([&self.authorities]).map(time).collect()
    }
}

fn roots(path: &Path) -> Result<RootCertStore, AuthorityError> {
    let mut roots = RootCertStore::empty();
    for (at, certificate) in certificates(path)?.into_iter().enumerate() {
        let malformed = |_| AuthorityError::Malformed(path.to_owned(), at + 1);
        roots.add(certificate).map_err(malformed)?;
    }
    Ok(roots)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use super::*;
    use crate::self_made;

    #[test]
    fn files_that_have_changed_are_read_again_unless_they_cannot_be_used() {
        let folder = tempfile::tempdir().unwrap();
        let [certificate, key] = ["cert", "key"].map(|name| folder.path().join(name));
        let write = |pair: &crate::SelfMade, seconds| {
            for (path, text) in [(&certificate, &pair.certificate), (&key, &pair.key)] {
                fs::write(path, &**text).unwrap();
                let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
                fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
            }
        };
        let [one, two] = [(); 2].map(|()| self_made(&["a".into()], None).unwrap());
        write(&one, 1);
        let own = Some((certificate.clone(), key.clone()));
        let tls = ServiceTls::read(ServiceFiles { authorities: certificate.clone(), own }).unwrap();
        let first = tls.config();
        assert!(Arc::ptr_eq(&first, &tls.config()), "nothing has changed");

        fs::write(&certificate, &*two.certificate).unwrap();
        assert!(Arc::ptr_eq(&first, &tls.config()), "the key is still that of the other one");
        write(&two, 2);
        let second = tls.config();
        assert!(!Arc::ptr_eq(&first, &second));
        fs::remove_file(&key).unwrap();
        assert!(Arc::ptr_eq(&second, &tls.config()));
    }

    #[test]
    fn a_file_that_cannot_be_used_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let none = folder.path().join("none");
        let files = ServiceFiles { authorities: none.clone(), own: None };
        let why = ServiceTls::read(files).unwrap_err().to_string();
        assert!(why.starts_with(&format!("{} cannot be read", none.display())), "{why}");
    }
}
