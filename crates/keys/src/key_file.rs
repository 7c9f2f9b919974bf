//! Files with keys, in all supported formats.

use crate::key_error::KeyError;
use crate::limits::FILE_BYTES_MAX;
use crate::public_key::PublicKey;
use crate::{openssh_private, pem};

impl PublicKey {
    /// Reads a public key from a text: this project's own format, the format of KeyNote, a line of
    /// OpenSSH, or a public key or certificate in PEM. Empty lines and lines that begin with `#`
    /// may precede it.
    ///
    /// # Errors
    /// Anything else; the error says if it is a private key.
    pub fn from_text(text: &str) -> Result<Self, KeyError> {
        if text.len() > FILE_BYTES_MAX {
            return Err(KeyError::TooLong);
        }
        if pem::is_pem(text) {
            return from_pem(text);
        }
        let mut lines = text.lines().map(str::trim);
        let line = lines.find(|line| !line.is_empty() && !line.starts_with('#'));
        let line = line.ok_or(KeyError::Malformed("a public key"))?;
        if line.contains([' ', '\t']) {
            return Self::from_openssh(line).map(|(key, _)| key);
        }
        match Self::from_keynote(line)? {
            Some(key) => Ok(key),
            None => line.parse(),
        }
    }

    /// Its SubjectPublicKeyInfo in PEM, in openssl's format.
    #[must_use]
    pub fn to_pem(&self) -> String {
        pem::write(PUBLIC, &self.to_spki()).to_string()
    }
}

const PUBLIC: &str = "PUBLIC KEY";

fn from_pem(text: &str) -> Result<PublicKey, KeyError> {
    let block = pem::read(text)?;
    match block.label {
        PUBLIC => PublicKey::from_spki(&block.der),
        "CERTIFICATE" => PublicKey::from_certificate(&block.der),
        openssh_private::LABEL => Err(KeyError::Private),
        label if label.ends_with("PRIVATE KEY") => Err(KeyError::Private),
        label => Err(KeyError::unsupported(label)),
    }
}
