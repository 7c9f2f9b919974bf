//! The file format of OpenSSH private keys, part by part.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod wire;

use comity_keys::{Algorithm, KeyError, PrivateKey, PublicKey, Signer};
use wire::{number, pem, strings};

/// The parts of a file, which the tests break one at a time.
#[derive(Clone)]
struct Parts {
    magic: Vec<u8>,
    cipher: Vec<u8>,
    derivation: Vec<u8>,
    options: Vec<u8>,
    count: u32,
    public: Vec<u8>,
    checks: [u32; 2],
    /// The name of the algorithm, the point and the secret.
    key: Vec<u8>,
    padding: Vec<u8>,
}

/// A way to break a file.
type Change = fn(&mut Parts);

impl Parts {
    fn text(&self) -> String {
        let checks = self.checks.map(u32::to_be_bytes).concat();
        let private = [&checks[..], &self.key, &strings(&[b"a comment"]), &self.padding].concat();
        let head = strings(&[&self.cipher, &self.derivation, &self.options]);
        let count = self.count.to_be_bytes();
        let keys = strings(&[&self.public, &private]);
        pem("OPENSSH PRIVATE KEY", &[&self.magic[..], &head, &count, &keys].concat())
    }

    fn read(&self) -> Result<PublicKey, KeyError> {
        PrivateKey::from_text(&self.text(), None).map(|key| *key.public_key())
    }
}

/// The secret of a key: the end of its PKCS#8 for Ed25519, and the 32 bytes after a fixed beginning
/// for P-256.
fn secret(key: &PrivateKey) -> Vec<u8> {
    let der = key.to_pkcs8().unwrap();
    match key.public_key().algorithm() {
        Algorithm::Ed25519 => der[der.len() - 32..].to_vec(),
        Algorithm::P256 => der[36..68].to_vec(),
    }
}

fn name(key: &PublicKey) -> &'static [u8] {
    key.algorithm().openssh_name().as_bytes()
}

fn point(key: &PublicKey) -> Vec<u8> {
    match key.algorithm() {
        Algorithm::Ed25519 => strings(&[key.as_bytes()]),
        Algorithm::P256 => strings(&[b"nistp256", key.as_bytes()]),
    }
}

fn parts(key: &PrivateKey) -> Parts {
    let public = key.public_key();
    let secret = match public.algorithm() {
        Algorithm::Ed25519 => strings(&[&[&secret(key)[..], public.as_bytes()].concat()]),
        Algorithm::P256 => number(&secret(key)),
    };
    Parts {
        magic: b"openssh-key-v1\0".to_vec(),
        cipher: b"none".to_vec(),
        derivation: b"none".to_vec(),
        options: Vec::new(),
        count: 1,
        public: [strings(&[name(public)]), point(public)].concat(),
        checks: [7, 7],
        key: [strings(&[name(public)]), point(public), secret].concat(),
        padding: vec![1, 2, 3],
    }
}

fn keys() -> [PrivateKey; 2] {
    Algorithm::ALL.map(|algorithm| PrivateKey::generate(algorithm).unwrap())
}

#[test]
fn a_file_is_read_from_its_parts() {
    for key in keys() {
        assert_eq!(parts(&key).read(), Ok(*key.public_key()));
    }
}

#[test]
fn numbers_with_leading_zeros_and_with_high_bits_are_read() {
    let mut seen = [false; 2];
    // Half of all numbers have the high bit, and one in 256 has a leading zero.
    for _ in 0..5000 {
        let key = PrivateKey::generate(Algorithm::P256).unwrap();
        let first = secret(&key)[0];
        let kind = if first == 0 { 0 } else { 1 };
        if (first == 0 || first >= 0x80) && !std::mem::replace(&mut seen[kind], true) {
            assert_eq!(parts(&key).read(), Ok(*key.public_key()));
        }
        if seen == [true; 2] {
            return;
        }
    }
    panic!("no such numbers were generated: {seen:?}");
}

#[test]
fn each_broken_part_is_refused() {
    for key in keys() {
        let whole = parts(&key);
        let broken: [(&str, Change); 13] = [
            ("magic", |parts| parts.magic[0] = b'O'),
            ("version", |parts| parts.magic[13] = b'2'),
            ("no key", |parts| parts.count = 0),
            ("two keys", |parts| parts.count = 2),
            ("public name", |parts| parts.public[4] ^= 1),
            ("public length", |parts| parts.public[3] ^= 1),
            ("public end", |parts| parts.public.push(0)),
            ("checks", |parts| parts.checks[1] = 8),
            ("private name", |parts| parts.key[4] ^= 1),
            ("private end", |parts| parts.key.truncate(parts.key.len() - 1)),
            ("padding", |parts| parts.padding = vec![1, 2, 4]),
            ("derivation", |parts| parts.derivation = b"bcrypt".to_vec()),
            ("cipher", |parts| parts.cipher = b"aes256-ctr".to_vec()),
        ];
        for (name, change) in broken {
            let mut parts = whole.clone();
            change(&mut parts);
            assert!(parts.read().is_err(), "{name}");
        }
    }
}

#[test]
fn a_secret_of_another_key_is_refused() {
    for algorithm in Algorithm::ALL {
        let [one, other] = [0; 2].map(|_| PrivateKey::generate(algorithm).unwrap());
        let mut mixed = parts(&one);
        mixed.public = parts(&other).public;
        assert_eq!(mixed.read(), Err(KeyError::Inconsistent));
        // The private part has the point of the public part, but another secret.
        let public = other.public_key();
        let secret = match algorithm {
            Algorithm::Ed25519 => strings(&[&[&secret(&one)[..], public.as_bytes()].concat()]),
            Algorithm::P256 => number(&secret(&one)),
        };
        mixed.key = [strings(&[name(public)]), point(public), secret].concat();
        assert_eq!(mixed.read(), Err(KeyError::Inconsistent));
    }
    let [ed25519, p256] = keys();
    let mut mixed = parts(&ed25519);
    mixed.public = parts(&p256).public;
    assert_eq!(mixed.read(), Err(KeyError::Inconsistent));
}

#[test]
fn negative_and_long_numbers_are_refused() {
    // Half of all numbers have the high bit.
    let mut keys = (0..200).map(|_| PrivateKey::generate(Algorithm::P256).unwrap());
    let key = keys.find(|key| secret(key)[0] >= 0x80).unwrap();
    let public = key.public_key();
    let with = |secret: Vec<u8>| {
        let private = [strings(&[name(public)]), point(public), secret].concat();
        Parts { key: private, ..parts(&key) }.read()
    };
    assert!(with(number(&secret(&key))).is_ok());
    // Without the leading zero, the number is negative.
    assert!(with(strings(&[&secret(&key)])).is_err());
    assert!(with(strings(&[&[0x80; 32]])).is_err());
    assert!(with(strings(&[&[1; 33]])).is_err());
    assert!(with(strings(&[&[]])).is_err());
    assert!(with(vec![0xff; 4]).is_err());
}

#[test]
fn a_curve_of_another_name_is_refused() {
    let key = PrivateKey::generate(Algorithm::P256).unwrap();
    let mut parts = parts(&key);
    let wrong = strings(&[name(key.public_key()), b"nistp384", key.public_key().as_bytes()]);
    parts.public = wrong;
    assert_eq!(parts.read(), Err(KeyError::Malformed("the point of a public key")));
}

#[test]
fn rounds_without_end_are_refused_before_they_are_made() {
    let key = PrivateKey::generate(Algorithm::Ed25519).unwrap();
    let options = |rounds: u32| [strings(&[b"salt"]), rounds.to_be_bytes().to_vec()].concat();
    let encrypted = |options| Parts {
        cipher: b"aes256-ctr".to_vec(),
        derivation: b"bcrypt".to_vec(),
        options,
        padding: vec![1, 2, 3, 4],
        ..parts(&key)
    };
    let error = |options, passphrase| {
        PrivateKey::from_text(&encrypted(options).text(), passphrase).unwrap_err()
    };
    let rounds = KeyError::UnsupportedEncryption("4294967295 rounds of bcrypt".into());
    assert_eq!(error(options(u32::MAX), Some("x")), rounds);
    assert_eq!(error(options(u32::MAX), None), KeyError::Encrypted);
    let malformed = KeyError::Malformed("the private part of an OpenSSH key");
    assert_eq!(error(options(0), Some("x")), malformed);
    assert_eq!(error(vec![1, 2, 3], Some("x")), malformed);
}

#[test]
fn a_file_that_ends_anywhere_is_refused() {
    for key in keys() {
        let text = parts(&key).text();
        let (_, body) = text.split_once('\n').unwrap();
        let (encoded, _) = body.split_once('\n').unwrap();
        for end in (0..encoded.len()).step_by(4) {
            let cut = format!(
                "-----BEGIN OPENSSH PRIVATE KEY-----\n{}\n-----END OPENSSH PRIVATE KEY-----\n",
                &encoded[..end]
            );
            let read = PrivateKey::from_text(&cut, None);
            // Shorter padding is still padding.
            assert!(read.is_err() || end + 4 >= encoded.len(), "{end} of {}", encoded.len());
        }
    }
}
