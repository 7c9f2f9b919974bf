use comity_keys::{Algorithm, KeyError, PrivateKey};
use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, KeyPair,
    KeyUsagePurpose, SerialNumber, date_time_ymd,
};

/// A private key with a self-signed certificate, both in PEM.
pub struct SelfMade {
    /// The certificate.
    pub certificate: String,
    /// The private key (PKCS #8, version 1, which GnuTLS can read, too).
    pub key: String,
}

/// The error if no key could be made.
#[derive(Debug, thiserror::Error)]
#[error("no key for TLS could be made: {0}")]
pub struct NotMade(String);

/// The years in which the certificate is valid. A clock that is wrong by decades does not
/// invalidate it, and nobody has to renew it: clients that pin it trust the key, not a date.
const YEARS: [i32; 2] = [2020, 2100];

/// Makes a certificate for a server with these names and addresses, for the private key in PEM or a
/// new one (Ed25519). Invalid names are skipped.
///
/// # Errors
/// The PEM contains no key, or the system supplied no random bytes.
pub fn self_made(names: &[String], key: Option<&str>) -> Result<SelfMade, NotMade> {
    let private = private_key(key).map_err(|error| NotMade(error.to_string()))?;
    let certificate = certificate(names, &private.0).map_err(|error| NotMade(error.to_string()))?;
    Ok(SelfMade { certificate, key: private.1 })
}

/// A private key in DER and in PEM; a new one if `pem` is `None`.
fn private_key(pem: Option<&str>) -> Result<(Vec<u8>, String), KeyError> {
    let private = match pem {
        Some(pem) => PrivateKey::from_text(pem, None)?,
        None => PrivateKey::generate(Algorithm::Ed25519)?,
    };
    Ok((private.to_pkcs8()?.to_vec(), private.to_pem()?.to_string()))
}

fn certificate(names: &[String], private: &[u8]) -> Result<String, rcgen::Error> {
    let key = KeyPair::try_from(private)?;
    let is_name = |name: &&String| CertificateParams::new([(*name).clone()]).is_ok();
    let names: Vec<String> = names.iter().filter(is_name).cloned().collect();
    let mut params = CertificateParams::new(names)?;
    let mut subject = DistinguishedName::new();
    subject.push(DnType::CommonName, "comity");
    params.distinguished_name = subject;
    [params.not_before, params.not_after] = YEARS.map(|year| date_time_ymd(year, 1, 1));
    params.serial_number = Some(SerialNumber::from(1_u64));
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    Ok(params.self_signed(&key)?.pem())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ServerKey, ServerKeyError};

    #[test]
    fn a_made_key_is_a_server_key_with_the_valid_names() {
        let names = ["host.example.org", "localhost", "192.0.2.7", "no name"].map(str::to_owned);
        let made = self_made(&names, None).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let [certificate, key] = ["cert", "key"].map(|name| folder.path().join(name));
        std::fs::write(&certificate, &made.certificate).unwrap();
        std::fs::write(&key, &made.key).unwrap();
        let read = ServerKey::read(&certificate, &key).unwrap();
        assert_eq!(*read.names(), ["host.example.org", "localhost", "192.0.2.7"].map(Into::into));
        assert!(read.public().to_string().starts_with("ed25519:"));
        assert!(read.days_left() > 20_000);
        let again = self_made(&names[..1], Some(&made.key)).unwrap();
        assert_eq!(again.key, made.key);
        std::fs::write(&certificate, again.certificate).unwrap();
        let renewed = ServerKey::read(&certificate, &key).unwrap();
        assert_eq!((renewed.public(), renewed.names().len()), (read.public(), 1));
        // Another key does not match the certificate, and a certificate is not a key.
        std::fs::write(&key, self_made(&names, None).unwrap().key).unwrap();
        let mismatch = ServerKey::read(&certificate, &key);
        assert!(matches!(mismatch, Err(ServerKeyError::Mismatch { .. })));
        let no_key = ServerKey::read(&certificate, &certificate);
        assert!(matches!(no_key, Err(ServerKeyError::NoKey(..))));
        let no_certificate = ServerKey::read(&key, &key).unwrap_err().to_string();
        assert!(no_certificate.contains("holds no certificate"), "{no_certificate}");
    }
}
