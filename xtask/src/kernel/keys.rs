//! Keys and certificates of a test with RPC-with-TLS (RFC 9289): PEM files for the server and the
//! guests, and configurations of tlshd, which makes the handshakes of a Linux client.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::ValueEnum;
use comity_keys::{Algorithm, PrivateKey, PublicKey};
use rcgen::{CertificateParams, DnType, KeyPair, date_time_ymd};

use super::ground::Ground;
use super::network::SERVER;

/// The folder of the keys as guests see it; on this machine it is `tls` in the test's input folder.
const IN_GUESTS: &str = "/mnt/input/tls";

/// The name under which guests mount the server; `init.sh` adds it with the server's address.
pub(super) const SERVER_NAME: &str = "server";

/// The years between which a certificate is valid.
const VALID: [i32; 2] = [2020, 2100];

/// The years of a certificate that has expired.
const EXPIRED: [i32; 2] = [2020, 2021];

/// The security of a connection; the values are those of `xprtsec` in mounts and exports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Xprtsec {
    /// TLS; the host shows no certificate.
    Tls,
    /// TLS; the host shows its certificate.
    Mtls,
}

impl Xprtsec {
    /// The option of a mount and of an export.
    pub(super) const fn option(self) -> &'static str {
        match self {
            Self::Tls => ",xprtsec=tls",
            Self::Mtls => ",xprtsec=mtls",
        }
    }
}

/// A key to make, with a self-signed certificate.
#[derive(Clone, Copy)]
pub(super) struct NewKey<'a> {
    /// The name of the files and the common name of the certificate.
    name: &'a str,
    /// The names and addresses that the certificate is for.
    hosts: &'a [&'a str],
    algorithm: Algorithm,
    years: [i32; 2],
}

impl<'a> NewKey<'a> {
    /// An Ed25519 key of a host without a name.
    pub(super) const fn client(name: &'a str) -> Self {
        Self { name, hosts: &[], algorithm: Algorithm::Ed25519, years: VALID }
    }

    /// An Ed25519 key of the server.
    pub(super) const fn server(name: &'a str) -> Self {
        Self { hosts: &[SERVER_NAME, SERVER], ..Self::client(name) }
    }

    /// A copy with a key for ECDSA over P-256.
    pub(super) const fn with_p256(self) -> Self {
        Self { algorithm: Algorithm::P256, ..self }
    }

    /// A copy with an expired certificate.
    pub(super) const fn expired(self) -> Self {
        Self { years: EXPIRED, ..self }
    }

    /// A copy with a certificate for these names and addresses only.
    pub(super) const fn of_hosts(self, hosts: &'a [&'a str]) -> Self {
        Self { hosts, ..self }
    }
}

/// The folder with the keys of a test.
pub(super) struct Keys {
    folder: PathBuf,
}

impl Keys {
    /// Makes the folder of a test's keys, unless it exists.
    ///
    /// # Errors
    /// If the folder cannot be made.
    pub(super) fn of(ground: &Ground) -> Result<Self> {
        Self::below(&ground.input())
    }

    /// Makes the folder below the input folder of a test's guests, unless it exists.
    ///
    /// # Errors
    /// If the folder cannot be made.
    pub(super) fn below(input: &Path) -> Result<Self> {
        let folder = input.join("tls");
        fs::create_dir_all(&folder)?;
        Ok(Self { folder })
    }

    /// The file with the certificate of a key.
    fn certificate(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.crt"))
    }

    /// The file with a private key.
    fn private_key(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.key"))
    }

    /// The public key of a certificate, whose text is that of the server's log.
    ///
    /// # Errors
    /// If the certificate cannot be read.
    pub(super) fn public_key(&self, name: &str) -> Result<PublicKey> {
        Ok(PublicKey::from_text(&fs::read_to_string(self.certificate(name))?)?)
    }

    /// Makes a key and its certificate.
    ///
    /// # Errors
    /// If there are no random bytes or the files cannot be written.
    pub(super) fn make(&self, wanted: &NewKey<'_>) -> Result<()> {
        let hosts: Vec<String> = wanted.hosts.iter().map(|&host| host.to_owned()).collect();
        let mut parameters = CertificateParams::new(hosts)?;
        parameters.distinguished_name.push(DnType::CommonName, wanted.name);
        let [from, to] = wanted.years.map(|year| date_time_ymd(year, 1, 1));
        (parameters.not_before, parameters.not_after) = (from, to);
        // This is the form that tlshd reads: its library refuses an Ed25519 key with a public key
        // next to it.
        let pem = PrivateKey::generate(wanted.algorithm)?.to_pem()?;
        let certificate = parameters.self_signed(&KeyPair::from_pem(&pem)?)?;
        fs::write(self.certificate(wanted.name), certificate.pem())?;
        let private_key = self.private_key(wanted.name);
        fs::write(&private_key, pem.as_bytes())?;
        Ok(fs::set_permissions(private_key, fs::Permissions::from_mode(0o600))?)
    }

    /// Replaces the private key and certificate of `name` by those of `by`.
    ///
    /// # Errors
    /// If a file cannot be copied.
    pub(super) fn replace(&self, name: &str, by: &str) -> Result<()> {
        fs::copy(self.private_key(by), self.private_key(name))?;
        fs::copy(self.certificate(by), self.certificate(name))?;
        Ok(())
    }

    /// Makes the server's key, and a key for each host `guest-1`, `guest-2` and so on.
    ///
    /// # Errors
    /// If there are no random bytes or the files cannot be written.
    pub(super) fn equip_all(&self, guests: u8) -> Result<()> {
        self.make(&NewKey::server(SERVER_NAME))?;
        (1..=guests).try_for_each(|number| {
            self.equip(&NewKey::client(&format!("guest-{number}")), &[SERVER_NAME])
        })
    }

    /// Makes a host's key and configures tlshd for it. The host trusts the server's certificates of
    /// these names.
    ///
    /// # Errors
    /// If a file cannot be read or written.
    pub(super) fn equip(&self, host: &NewKey<'_>, servers: &[&str]) -> Result<()> {
        self.make(host)?;
        let name = host.name;
        let own = format!(
            "x509.certificate={IN_GUESTS}/{name}.crt\nx509.private_key={IN_GUESTS}/{name}.key\n"
        );
        self.configure(name, &own, servers)
    }

    /// Configures tlshd for a host without a key, which can mount with `xprtsec=tls` only.
    ///
    /// # Errors
    /// If a file cannot be read or written.
    pub(super) fn equip_without_key(&self, name: &str, servers: &[&str]) -> Result<()> {
        self.configure(name, "", servers)
    }

    fn configure(&self, name: &str, own: &str, servers: &[&str]) -> Result<()> {
        self.trust(name, servers)?;
        let text = format!(
            "[debug]\nloglevel=1\ntls=0\nnl=0\n\n[authenticate.client]\n\
             x509.truststore={IN_GUESTS}/{name}.trusted\n{own}"
        );
        Ok(fs::write(self.folder.join(format!("{name}.conf")), text)?)
    }

    /// Makes a host trust these certificates only, from its next handshake on.
    ///
    /// # Errors
    /// If a certificate is missing, or the file cannot be written.
    pub(super) fn trust(&self, host: &str, servers: &[&str]) -> Result<()> {
        let read = |name: &&str| fs::read_to_string(self.certificate(name));
        let trusted: String = servers.iter().map(read).collect::<Result<_, _>>()?;
        let draft = self.folder.join(format!("{host}.trusted.new"));
        fs::write(&draft, trusted)?;
        Ok(fs::rename(draft, self.folder.join(format!("{host}.trusted")))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_trusts_the_certificates_that_it_was_given_and_has_its_own_key() {
        let ground = Ground::new(&crate::root(), "test-hosts").unwrap();
        let keys = Keys::of(&ground).unwrap();
        keys.make(&NewKey::server("one")).unwrap();
        keys.make(&NewKey::server("two")).unwrap();
        keys.equip(&NewKey::client("host"), &["one", "two"]).unwrap();
        keys.equip_without_key("bare", &["one"]).unwrap();
        let read = |name: &str| fs::read_to_string(keys.folder.join(name)).unwrap();
        assert_eq!(read("host.trusted").matches("BEGIN CERTIFICATE").count(), 2);
        assert_eq!(read("bare.trusted"), read("one.crt"));
        assert!(read("host.conf").contains("x509.private_key=/mnt/input/tls/host.key"));
        assert!(!read("bare.conf").contains("private_key"));
        ground.clear();
    }
}
