//! Files of OpenSSH 9.2 and OpenSSL 3.0, made once by:
//!
//! ```text
//! ssh-keygen -t ed25519 -N '' -C alice@example.org -f ssh_ed25519
//! ssh-keygen -t ecdsa -b 256 -N '' -C 'bob at work' -f ssh_p256
//! ssh-keygen -t ed25519 -N 'open sesame' -a 4 -C carol -f ssh_ed25519_encrypted
//! ssh-keygen -t ecdsa -b 256 -N 'open sesame' -a 4 -C dave -f ssh_p256_encrypted
//! ssh-keygen -t ed25519 -N 'open sesame' -a 1 -Z aes128-gcm@openssh.com -f ssh_ed25519_gcm
//! ssh-keygen -t rsa -b 2048 -N '' -C rsa -f ssh_rsa
//! openssl genpkey -algorithm ED25519 -out openssl_ed25519.pem
//! openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out openssl_p256.pem
//! openssl pkey -in openssl_KIND.pem -pubout -out openssl_KIND_public.pem
//! openssl ec -in openssl_p256.pem -out openssl_p256_ec.pem
//! openssl pkey -in openssl_p256.pem -aes256 -out openssl_p256_encrypted.pem
//! openssl req -x509 -new -key openssl_KIND.pem -subj ... -out openssl_KIND_certificate.pem
//! openssl pkeyutl -sign -rawin -in message -inkey openssl_ed25519.pem
//! openssl dgst -sha256 -sign openssl_p256.pem message    # its two numbers, 32 bytes each
//! ```
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use comity_keys::{KeyError, PrivateKey, PublicKey, Signer};

macro_rules! file {
    ($name:literal) => {
        include_str!(concat!("files/", $name))
    };
}

const MESSAGE: &[u8] = include_bytes!("files/message");
const PASSPHRASE: Option<&str> = Some("open sesame");

/// Private and public keys of OpenSSH, and the fingerprints that `ssh-keygen -l` shows.
const OPENSSH: [(&str, &str, &str); 4] = [
    (
        file!("ssh_ed25519"),
        file!("ssh_ed25519.pub"),
        "SHA256:ShGxqPS4W0VfGMggZ7cNPAmd/VhHMTriYEy1BpP/go4",
    ),
    (
        file!("ssh_p256"),
        file!("ssh_p256.pub"),
        "SHA256:XEmxx1ySB8ryAl4S1N3W1mJ14+l5Mbrm7o6BTMLteUo",
    ),
    (
        file!("ssh_ed25519_encrypted"),
        file!("ssh_ed25519_encrypted.pub"),
        "SHA256:nlHjNWIiHozzKofJ8QCXJgD9eL0j3CeRtlglv2hwiec",
    ),
    (
        file!("ssh_p256_encrypted"),
        file!("ssh_p256_encrypted.pub"),
        "SHA256:E6YA+P9BNYLZMhvInetKJjmVlfW1mi7zP4Sq6SOJaIE",
    ),
];

/// Private keys, public keys and certificates of openssl.
const OPENSSL: [(&str, &str, &str); 2] = [
    (
        file!("openssl_ed25519.pem"),
        file!("openssl_ed25519_public.pem"),
        file!("openssl_ed25519_certificate.pem"),
    ),
    (
        file!("openssl_p256.pem"),
        file!("openssl_p256_public.pem"),
        file!("openssl_p256_certificate.pem"),
    ),
];

#[test]
fn lines_of_openssh_are_read_and_written_as_ssh_keygen_does() {
    for (_, line, fingerprint) in OPENSSH {
        let (key, comment) = PublicKey::from_openssh(line).unwrap();
        assert_eq!(key.fingerprint(), fingerprint);
        assert_eq!(key.to_openssh(&comment), line.trim_end());
        assert_eq!(PublicKey::from_text(line).unwrap(), key);
    }
    let (_, comment) = PublicKey::from_openssh(OPENSSH[1].1).unwrap();
    assert_eq!(comment, "bob at work");
}

#[test]
fn private_keys_of_openssh_sign_for_their_public_keys() {
    for (private, public, _) in OPENSSH {
        let key = PrivateKey::from_text(private, PASSPHRASE).unwrap();
        let public = PublicKey::from_text(public).unwrap();
        assert_eq!(*key.public_key(), public);
        assert!(public.verify(MESSAGE, key.sign(MESSAGE).unwrap().as_bytes()));
    }
}

#[test]
fn a_missing_or_wrong_passphrase_is_distinguished_from_a_broken_file() {
    for (private, _, _) in &OPENSSH[2..] {
        let read = |passphrase| PrivateKey::from_text(private, passphrase).unwrap_err();
        assert_eq!(read(None), KeyError::Encrypted);
        assert_eq!(read(Some("open barley")), KeyError::WrongPassphrase);
        assert_eq!(read(Some("")), KeyError::WrongPassphrase);
    }
    let gcm = PrivateKey::from_text(file!("ssh_ed25519_gcm"), PASSPHRASE).unwrap_err();
    assert_eq!(gcm, KeyError::UnsupportedEncryption("`aes128-gcm@openssh.com`".into()));
    let pkcs8 = PrivateKey::from_text(file!("openssl_p256_encrypted.pem"), PASSPHRASE).unwrap_err();
    assert!(matches!(pkcs8, KeyError::UnsupportedEncryption(_)), "{pkcs8}");
}

#[test]
fn files_of_openssl_are_read_and_written_as_openssl_does() {
    for (private, public, certificate) in OPENSSL {
        let key = PrivateKey::from_text(private, None).unwrap();
        assert_eq!(*key.to_pem().unwrap(), *private);
        assert_eq!(key.public_key().to_pem(), public);
        assert_eq!(PublicKey::from_text(public).unwrap(), *key.public_key());
        assert_eq!(PublicKey::from_text(certificate).unwrap(), *key.public_key());
    }
    let old = PrivateKey::from_text(file!("openssl_p256_ec.pem"), None).unwrap();
    let new = PrivateKey::from_text(OPENSSL[1].0, None).unwrap();
    assert_eq!(old.public_key(), new.public_key());
}

#[test]
fn signatures_of_openssl_are_verified_and_those_of_ed25519_made_alike() {
    let ed25519 = include_bytes!("files/message.ed25519.signature");
    let p256 = include_bytes!("files/message.p256.signature");
    let keys = OPENSSL.map(|(private, ..)| PrivateKey::from_text(private, None).unwrap());
    assert_eq!(keys[0].sign(MESSAGE).unwrap().as_bytes(), ed25519);
    for (key, signature) in keys.iter().zip([ed25519, p256]) {
        assert!(key.public_key().verify(MESSAGE, signature));
        assert!(!key.public_key().verify(b"another message\n", signature));
        assert!(!key.public_key().verify(MESSAGE, &signature[..63]));
        assert!(!key.public_key().verify(MESSAGE, &[&signature[..], &[0]].concat()));
    }
    assert!(!keys[0].public_key().verify(MESSAGE, p256));
    assert!(!keys[1].public_key().verify(MESSAGE, ed25519));
}

#[test]
fn keys_in_the_wrong_place_and_of_other_algorithms_are_named() {
    for (private, public, _) in OPENSSH {
        assert_eq!(PublicKey::from_text(private).unwrap_err(), KeyError::Private);
        assert_eq!(PrivateKey::from_text(public, None).unwrap_err(), KeyError::Public);
    }
    assert_eq!(PublicKey::from_text(OPENSSL[1].0).unwrap_err(), KeyError::Private);
    assert_eq!(PrivateKey::from_text(OPENSSL[1].1, None).unwrap_err(), KeyError::Public);
    let rsa = PublicKey::from_text(file!("ssh_rsa.pub")).unwrap_err();
    assert_eq!(rsa.to_string(), "`ssh-rsa` is not supported: use an Ed25519 or an ECDSA P-256 key");
}

#[test]
fn a_line_with_options_is_refused() {
    let line = format!("from=\"192.0.2.1\" {}", OPENSSH[0].1);
    assert!(PublicKey::from_openssh(&line).is_err());
    let swapped = OPENSSH[0].1.replace("ssh-ed25519 ", "ecdsa-sha2-nistp256 ");
    assert!(PublicKey::from_openssh(&swapped).is_err());
}

#[test]
fn a_comment_cannot_begin_another_line() {
    let (key, _) = PublicKey::from_openssh(OPENSSH[0].1).unwrap();
    assert_eq!(key.to_openssh("a\nssh-rsa\r b").lines().count(), 1);
}
