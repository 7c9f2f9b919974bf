//! Heads that ask etcd over TLS, with a certificate of their own.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use comity_store::etcd::TlsSettings;
use comity_tls::client::{ServiceFiles, ServiceTls};
use rcgen::ExtendedKeyUsagePurpose::{self, ClientAuth, ServerAuth};
use rcgen::{CertificateParams, KeyPair};
use tempfile::TempDir;

use crate::common::line::{Authority, authority};
use crate::common::{run, wait_until};
use crate::etcd::EtcdServer;
use crate::heads::Heads;

/// An authority and the certificates that it signed, as files.
struct Keys {
    folder: TempDir,
    authority: Authority,
}

impl Keys {
    fn new() -> Self {
        let keys = Self { folder: tempfile::tempdir().unwrap(), authority: authority() };
        fs::write(keys.path("ca.pem"), keys.authority.pem()).unwrap();
        // The JSON gateway of a member calls the member itself, as a client.
        keys.sign("member", &[ServerAuth, ClientAuth]);
        keys.sign("head", &[ClientAuth]);
        keys
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// Makes `NAME.pem` and `NAME.key`.
    fn sign(&self, name: &str, usages: &[ExtendedKeyUsagePurpose]) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        params.extended_key_usages = usages.to_vec();
        let certificate = params.signed_by(&key, &*self.authority).unwrap();
        fs::write(self.path(&format!("{name}.pem")), certificate.pem()).unwrap();
        fs::write(self.path(&format!("{name}.key")), key.serialize_pem()).unwrap();
    }

    fn settings(&self) -> TlsSettings {
        let own = Some((self.path("head.pem"), self.path("head.key")));
        let files = ServiceFiles { authorities: self.path("ca.pem"), own };
        let tls = ServiceTls::read(files).unwrap();
        Box::new(move || tls.config())
    }

    /// Starts an etcd that takes clients with a certificate of this authority only.
    fn etcd(&self) -> Option<EtcdServer> {
        let arguments = [
            ["--cert-file", &self.text("member.pem")],
            ["--key-file", &self.text("member.key")],
            ["--trusted-ca-file", &self.text("ca.pem")],
        ];
        let arguments = [&arguments.concat()[..], &["--client-cert-auth"]].concat();
        EtcdServer::start_with("https", &arguments, Some(self.settings()))
    }

    fn heads(&self) -> Vec<String> {
        let files =
            [("--etcd-ca", "ca.pem"), ("--etcd-cert", "head.pem"), ("--etcd-key", "head.key")];
        files.iter().flat_map(|(flag, name)| [(*flag).to_owned(), self.text(name)]).collect()
    }
}

#[test]
fn heads_ask_etcd_over_tls_and_renew_their_certificate_while_they_run() {
    let keys = Keys::new();
    let Some(etcd) = keys.etcd() else { return };
    let mut heads = Heads::over(etcd, (Duration::from_secs(90), ""), keys.heads());
    wait_until("each head serves its export", || {
        let exports = heads.status(0)["exports"].clone();
        exports[0]["head"] == "a" && exports[1]["head"] == "b"
    });
    keys.sign("head", &[ClientAuth]);
    heads.kill(0);
    wait_until("the other head takes over", || heads.status(1)["exports"][0]["head"] == "b");

    // The next certificate is of an authority that etcd does not trust.
    let stranger = Keys::new();
    for file in ["head.pem", "head.key"] {
        fs::copy(stranger.path(file), keys.path(file)).unwrap();
    }
    heads.wait_for_end(1);
    let log = heads.log(1);
    assert!(log.contains("received fatal alert"), "{log}");
}

#[test]
fn a_head_whose_files_do_not_fit_etcd_is_refused() {
    let (keys, stranger) = (Keys::new(), Keys::new());
    let Some(etcd) = keys.etcd() else { return };
    let heads = Heads::over(etcd, (Duration::from_secs(90), ""), keys.heads());
    let serve = |arguments: &[&str], scheme: &str| {
        let mut command = crate::common::comity();
        let address = heads.etcd.address().replace("https", scheme);
        command.arg("serve").arg(heads.place.data()).args(["--head", "c", "--port", "0"]);
        command.args(["--cluster", &address]).args(arguments);
        run(command.arg("--state-dir").arg(heads.place.path("state-c"))).err
    };
    let own = |keys: &Keys| ["head.pem", "head.key"].map(|name| keys.text(name));
    let (ca, [certificate, key]) = (keys.text("ca.pem"), own(&keys));
    let said = serve(&["--etcd-ca", &stranger.text("ca.pem")], "https");
    assert!(said.contains("invalid peer certificate"), "{said}");
    let said = serve(&["--etcd-ca", &ca], "https");
    assert!(said.contains("received fatal alert"), "{said}");
    let said = serve(&[], "https");
    assert!(said.contains("--etcd-ca"), "{said}");
    let said = serve(&["--etcd-ca", &ca], "http");
    assert!(said.contains("https://"), "{said}");
    let said = serve(&["--etcd-cert", &certificate, "--etcd-key", &key], "https");
    assert!(said.contains("add --etcd-ca FILE"), "{said}");
    let said = serve(&["--etcd-ca", &ca, "--etcd-cert", &certificate], "https");
    assert!(said.contains("--etcd-key"), "{said}");
    let said = serve(&["--etcd-ca", &keys.text("none")], "https");
    assert!(said.contains("none cannot be read"), "{said}");
}
