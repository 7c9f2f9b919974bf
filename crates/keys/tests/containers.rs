//! PEM, SubjectPublicKeyInfo and certificates, part by part.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod wire;

use comity_keys::{Algorithm, KeyError, PrivateKey, PublicKey, Signer};
use wire::{base64, pem};

const PUBLIC: &str = include_str!("files/openssl_ed25519_public.pem");
const PRIVATE: &str = include_str!("files/openssl_p256.pem");

/// An element of DER.
fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = match content.len() {
        short @ 0..=0x7f => vec![short as u8],
        long => vec![0x82, (long >> 8) as u8, long as u8],
    };
    [&[tag], &length[..], content].concat()
}

/// A certificate with these elements in its signed part.
fn certificate(elements: &[Vec<u8>]) -> Vec<u8> {
    let signed = element(0x30, &elements.concat());
    element(0x30, &[signed, element(0x30, &[]), element(0x03, &[0])].concat())
}

/// The elements in front of the key: the version, the serial number, the algorithm, the issuer,
/// the validity, the subject.
fn front() -> Vec<Vec<u8>> {
    let mut elements = vec![element(0xa0, &[2, 1, 2]), element(0x02, &[1])];
    elements.extend([element(0x30, &[]), element(0x30, &[]), element(0x30, &[])]);
    elements.push(element(0x30, &[7; 300]));
    elements
}

fn key() -> PublicKey {
    *PrivateKey::generate(Algorithm::Ed25519).unwrap().public_key()
}

#[test]
fn the_key_of_a_certificate_is_found_behind_its_other_parts() {
    let key = key();
    let mut elements = front();
    elements.push(key.to_spki());
    assert_eq!(PublicKey::from_certificate(&certificate(&elements)), Ok(key));
    // Extensions may follow, and certificates of version 1 have no version.
    elements.push(element(0xa3, &[0; 200]));
    assert_eq!(PublicKey::from_certificate(&certificate(&elements)), Ok(key));
    elements.remove(0);
    assert_eq!(PublicKey::from_certificate(&certificate(&elements)), Ok(key));
    assert_eq!(PublicKey::from_text(&pem("CERTIFICATE", &certificate(&elements))), Ok(key));
}

#[test]
fn broken_certificates_are_refused() {
    let key = key();
    let mut elements = front();
    elements.push(key.to_spki());
    let whole = certificate(&elements);
    for end in 0..whole.len() {
        assert!(PublicKey::from_certificate(&whole[..end]).is_err(), "{end}");
    }
    assert!(PublicKey::from_certificate(&[&whole[..], &[0]].concat()).is_err());
    for missing in 1..elements.len() {
        let mut fewer = elements.clone();
        fewer.remove(missing);
        assert!(PublicKey::from_certificate(&certificate(&fewer)).is_err(), "{missing}");
    }
    for at in 1..elements.len() {
        let mut other = elements.clone();
        other[at][0] = 0x04;
        assert!(PublicKey::from_certificate(&certificate(&other)).is_err(), "{at}");
    }
    for length in [&[0x80][..], &[0x84, 0, 0, 0, 1], &[0xff], &[0x83, 0xff, 0xff, 0xff]] {
        let der = [&[0x30], length, &whole[..]].concat();
        assert!(PublicKey::from_certificate(&der).is_err(), "{length:x?}");
    }
}

#[test]
fn keys_of_other_algorithms_are_named_as_unsupported() {
    let rsa = element(0x30, &[element(0x30, &[6, 1, 1]), element(0x03, &[0, 0x30, 0])].concat());
    let error = PublicKey::from_spki(&rsa).unwrap_err();
    assert_eq!(error, KeyError::Unsupported("this type of key".into()));
    let spki = PrivateKey::generate(Algorithm::P256).unwrap().public_key().to_spki();
    // A compressed point begins in the same way except for two lengths.
    let mut compressed = spki[..26 + 33].to_vec();
    (compressed[1], compressed[24], compressed[26]) = (0x39, 0x22, 2);
    assert!(PublicKey::from_spki(&compressed).is_err());
    assert!(PublicKey::from_spki(&spki[..spki.len() - 1]).is_err());
    assert!(PublicKey::from_spki(&[&spki[..], &[0]].concat()).is_err());
}

#[test]
fn blocks_are_found_with_other_text_and_line_ends_around_them() {
    let key = PublicKey::from_text(PUBLIC).unwrap();
    for text in [
        format!("subject=CN = x\nissuer: y\n{PUBLIC}"),
        PUBLIC.replace('\n', "\r\n"),
        PUBLIC.replace("\n-----END", "  \n-----END"),
        format!("{PUBLIC}{PRIVATE}"),
        PUBLIC.trim_end().to_owned(),
    ] {
        assert_eq!(PublicKey::from_text(&text), Ok(key), "{text}");
    }
    let one_line = pem("PUBLIC KEY", &key.to_spki());
    assert_eq!(PublicKey::from_text(&one_line), Ok(key));
    let lines: Vec<String> =
        base64(&key.to_spki()).chars().map(|char| format!("{char}\n")).collect();
    let text = format!("-----BEGIN PUBLIC KEY-----\n{}-----END PUBLIC KEY-----", lines.concat());
    assert_eq!(PublicKey::from_text(&text), Ok(key));
}

#[test]
fn broken_blocks_are_refused() {
    for text in [
        PUBLIC.replace("-----END", "----END"),
        PUBLIC.replace("END PUBLIC", "END PRIVATE"),
        PUBLIC.replace("BEGIN PUBLIC KEY-----", "BEGIN PUBLIC KEY----"),
        PUBLIC.replace('M', "*"),
        PUBLIC.replace("MC", "MC "),
        PUBLIC.replace("\n-----END", "=\n-----END"),
        PUBLIC.replace("PUBLIC KEY", "RSA PUBLIC KEY"),
        PUBLIC.replace("PUBLIC KEY", "X509 CRL"),
        "-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----\n".into(),
        "-----BEGIN PUBLIC KEY-----".into(),
        String::new(),
        "# nothing\n\n".into(),
    ] {
        assert!(PublicKey::from_text(&text).is_err(), "{text}");
    }
}

#[test]
fn old_encrypted_files_are_named_as_such() {
    let headers = "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\
                   DEK-Info: AES-128-CBC,00\n\nAAAA\n-----END EC PRIVATE KEY-----\n";
    let error = PrivateKey::from_text(headers, Some("x")).unwrap_err();
    assert_eq!(error, KeyError::UnsupportedEncryption("`4,ENCRYPTED`".into()));
    assert!(error.to_string().contains("openssl pkey"), "{error}");
}

#[test]
fn private_keys_of_other_kinds_are_refused() {
    for label in ["PRIVATE KEY", "EC PRIVATE KEY", "RSA PRIVATE KEY", "OPENSSH PRIVATE KEY"] {
        for der in [&[][..], &[0x30, 0], &[0x30, 0x80], &[0xff; 60]] {
            assert!(PrivateKey::from_text(&pem(label, der), None).is_err(), "{label}");
        }
    }
    let p256 = PrivateKey::generate(Algorithm::P256).unwrap().to_pkcs8().unwrap();
    // The object identifiers of the curves P-256 and P-384 differ in their last bytes, so that
    // another curve has an unknown identifier.
    let at = p256.windows(3).position(|window| window == [3, 1, 7]).unwrap();
    let mut other = p256.to_vec();
    other[at + 2] = 6;
    assert!(PrivateKey::from_pkcs8(&other).is_err());
    assert!(PrivateKey::from_pkcs8(&p256[..p256.len() - 1]).is_err());
}

#[test]
fn a_private_key_is_shown_as_its_public_key() {
    for algorithm in Algorithm::ALL {
        let key = PrivateKey::generate(algorithm).unwrap();
        assert_eq!(format!("{key:?}"), format!("PrivateKey({})", key.public_key()));
        assert_eq!(format!("{:?}", key.public_key()), key.public_key().to_string());
        let signature = key.sign(b"m").unwrap();
        assert_eq!(format!("{signature:?}"), format!("Signature({})", signature.to_base64()));
    }
}

#[test]
fn new_keys_differ() {
    for algorithm in Algorithm::ALL {
        let [one, other] = [0; 2].map(|_| PrivateKey::generate(algorithm).unwrap());
        assert_ne!(one.public_key(), other.public_key());
        assert!(!one.public_key().verify(b"m", other.sign(b"m").unwrap().as_bytes()));
    }
}
