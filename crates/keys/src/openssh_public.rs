//! Lines of OpenSSH public keys, and their fingerprints.

use crate::base64;
use crate::key_error::KeyError;
use crate::limits::LINE_BYTES_MAX;
use crate::public_key::PublicKey;

impl PublicKey {
    /// Reads the key and the comment of a line such as `ssh-ed25519 AAAA... alice@example.org`, as
    /// written by ssh-keygen. A line of `authorized_keys` with options is refused: options that are
    /// ignored would grant more than was intended.
    ///
    /// # Errors
    /// Anything else, another algorithm, or a key that [`PublicKey::from_raw`] refuses.
    pub fn from_openssh(line: &str) -> Result<(Self, String), KeyError> {
        if line.len() > LINE_BYTES_MAX {
            return Err(KeyError::TooLong);
        }
        let mut words = line.trim().splitn(3, [' ', '\t']);
        let name = words.next().unwrap_or_default();
        let wire = words.next().ok_or(KeyError::Malformed("a line of an OpenSSH public key"))?;
        let comment = words.next().unwrap_or_default().trim();
        if !name.starts_with("ssh-") && !name.starts_with("ecdsa-") && !name.starts_with("sk-") {
            return Err(KeyError::Malformed("the name of an algorithm of OpenSSH, and no options"));
        }
        let key = Self::from_ssh_wire(&base64::decode(wire)?)?;
        if key.algorithm().openssh_name() != name {
            return Err(KeyError::Malformed("one algorithm, not two"));
        }
        Ok((key, comment.to_owned()))
    }

    /// Writes the line that [`PublicKey::from_openssh`] reads. Line breaks and other control
    /// characters of the comment are omitted.
    #[must_use]
    pub fn to_openssh(&self, comment: &str) -> String {
        let comment: String = comment.chars().filter(|char| !char.is_control()).collect();
        let wire = base64::encode(&self.to_ssh_wire());
        let line = format!("{} {wire} {}", self.algorithm().openssh_name(), comment.trim());
        line.trim_end().to_owned()
    }

    /// The fingerprint in the format of `ssh-keygen -l`: `SHA256:` and 43 characters.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let hash = crate::sha256(&self.to_ssh_wire());
        format!("SHA256:{}", base64::encode_unpadded(&hash))
    }
}
