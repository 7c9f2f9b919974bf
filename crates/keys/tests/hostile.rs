//! Random keys, broken keys, and bytes that are no keys.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use comity_keys::{Algorithm, KeyError, PrivateKey, PublicKey, Signature, Signer, limits, sha256};
use proptest::prelude::*;

const FILES: [&str; 8] = [
    include_str!("files/ssh_ed25519"),
    include_str!("files/ssh_p256"),
    include_str!("files/ssh_p256.pub"),
    include_str!("files/openssl_ed25519.pem"),
    include_str!("files/openssl_p256.pem"),
    include_str!("files/openssl_p256_ec.pem"),
    include_str!("files/openssl_p256_public.pem"),
    include_str!("files/openssl_p256_certificate.pem"),
];

/// Reads a text in all ways, and returns the results.
fn read(text: &str) -> (Result<PublicKey, KeyError>, Option<PublicKey>) {
    let private = PrivateKey::from_text(text, None).ok();
    (PublicKey::from_text(text), private.map(|key| *key.public_key()))
}

proptest! {
    #[test]
    fn every_key_is_read_from_each_of_its_texts(seed in 0..2_usize) {
        let algorithm = Algorithm::ALL[seed];
        let private = PrivateKey::generate(algorithm).unwrap();
        let key = *private.public_key();
        prop_assert_eq!(key.algorithm(), algorithm);
        prop_assert_eq!(key.to_string().parse(), Ok(key));
        prop_assert_eq!(PublicKey::from_raw(algorithm, key.as_bytes()), Ok(key));
        prop_assert_eq!(PublicKey::from_spki(&key.to_spki()), Ok(key));
        prop_assert_eq!(PublicKey::from_keynote(&key.to_keynote()), Ok(Some(key)));
        prop_assert_eq!(PublicKey::from_openssh(&key.to_openssh("a  b")), Ok((key, "a  b".into())));
        for text in [key.to_string(), key.to_keynote(), key.to_openssh(""), key.to_pem()] {
            prop_assert_eq!(PublicKey::from_text(&format!("# c\n\n{text}\n")), Ok(key));
        }
        let again = PrivateKey::from_text(&private.to_pem().unwrap(), None).unwrap();
        prop_assert_eq!(again.public_key(), &key);
        prop_assert!(key.verify(b"m", again.sign(b"m").unwrap().as_bytes()));
    }

    #[test]
    fn a_changed_signature_or_message_does_not_verify(
        seed in 0..2_usize,
        message in prop::collection::vec(any::<u8>(), 1..200),
        at in any::<prop::sample::Index>(),
        bit in 0..8_u8,
    ) {
        let private = PrivateKey::generate(Algorithm::ALL[seed]).unwrap();
        let signature = *private.sign(&message).unwrap().as_bytes();
        prop_assert!(private.public_key().verify(&message, &signature));
        let mut changed = signature;
        changed[at.index(64)] ^= 1 << bit;
        prop_assert!(!private.public_key().verify(&message, &changed));
        let mut other = message.clone();
        other[at.index(message.len())] ^= 1 << bit;
        prop_assert!(!private.public_key().verify(&other, &signature));
    }

    #[test]
    fn texts_by_chance_are_refused_without_a_panic(text in "\\PC{0,200}", label in "[A-Z ]{0,20}") {
        let _ = read(&text);
        let _ = read(&format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n"));
        let _ = PublicKey::from_keynote(&format!("ed25519-hex:{text}"));
    }

    #[test]
    fn a_file_with_one_other_byte_gives_the_same_key_or_none(
        file in 0..FILES.len(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut bytes = FILES[file].as_bytes().to_vec();
        let place = at.index(bytes.len());
        bytes[place] = byte;
        let Ok(text) = String::from_utf8(bytes) else { return Ok(()) };
        let (before, _) = read(FILES[file]);
        let (public, private) = read(&text);
        // A public key is not protected against another point. A private file is protected by its
        // two halves.
        if FILES[file].contains("OPENSSH") {
            let whole = PrivateKey::from_text(FILES[file], None).unwrap();
            prop_assert!(private.is_none_or(|key| key == *whole.public_key()));
        }
        if text == FILES[file] {
            prop_assert_eq!(public, before);
        }
    }

    #[test]
    fn der_by_chance_is_refused_without_a_panic(der in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(PublicKey::from_spki(&der).is_err());
        prop_assert!(PublicKey::from_certificate(&der).is_err());
        prop_assert!(PrivateKey::from_pkcs8(&der).is_err());
    }
}

#[test]
fn points_of_small_order_are_refused() {
    let identity = format!("ed25519-hex:01{}", "00".repeat(31));
    assert_eq!(PublicKey::from_keynote(&identity), Err(KeyError::Weak));
    assert_eq!(PublicKey::from_raw(Algorithm::Ed25519, &[0; 32]), Err(KeyError::Weak));
    let with_sign = format!("ed25519-hex:01{}80", "00".repeat(30));
    assert_eq!(PublicKey::from_keynote(&with_sign), Err(KeyError::Weak));
}

#[test]
fn points_off_the_curve_and_compressed_points_are_refused() {
    let text = include_str!("files/ssh_p256.pub");
    let key = PublicKey::from_text(text).unwrap();
    let mut raw = key.as_bytes().to_vec();
    raw[64] ^= 1;
    assert_eq!(PublicKey::from_raw(Algorithm::P256, &raw), Err(KeyError::NotOnCurve));
    raw[0] = 3;
    assert!(PublicKey::from_raw(Algorithm::P256, &raw[..33]).is_err());
    assert!(PublicKey::from_raw(Algorithm::P256, &raw).is_err());
    assert!(PublicKey::from_raw(Algorithm::P256, &[]).is_err());
}

#[test]
fn names_of_other_algorithms_are_opaque_and_broken_keys_are_not() {
    for name in ["POLICY", "", ":", "rsa-hex:1023abcd", "ed25519:AAAA", "ed25519-dec:1", "-hex:00"]
    {
        assert_eq!(PublicKey::from_keynote(name), Ok(None), "{name}");
    }
    for name in
        ["ed25519-hex:0", "ed25519-hex:0g", "p256-base64:AAAA", "ed25519-base64:=", "p256-hex:"]
    {
        assert!(PublicKey::from_keynote(name).is_err(), "{name}");
    }
    assert!("rsa:AAAA".parse::<PublicKey>().is_err());
}

#[test]
fn algorithms_of_keynote_are_named_in_either_case() {
    let key = PublicKey::from_text(include_str!("files/ssh_ed25519.pub")).unwrap();
    let hex: String = key.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    for name in [format!("Ed25519-HEX:{hex}"), format!("ed25519-hex:{}", hex.to_uppercase())] {
        assert_eq!(PublicKey::from_keynote(&name), Ok(Some(key)), "{name}");
    }
}

#[test]
fn signatures_are_read_from_their_texts() {
    let key = PrivateKey::generate(Algorithm::P256).unwrap();
    let signature = key.sign(b"m").unwrap();
    assert_eq!(Signature::from_base64(&signature.to_base64()), Ok(signature));
    let hex: String = signature.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(Signature::from_hex(&hex), Ok(signature));
    assert!(Signature::from_hex(&hex[2..]).is_err());
    assert!(Signature::from_hex(&format!("{hex}0")).is_err());
    assert!(Signature::from_base64("AAAA").is_err());
}

/// The hash of three bytes in FIPS 180-2, appendix B.1.
#[test]
fn the_hash_is_that_of_the_standard() {
    let hash = sha256(b"abc");
    assert_eq!(
        (hash[..4].to_vec(), hash[28..].to_vec()),
        (vec![0xba, 0x78, 0x16, 0xbf], vec![0xf2, 0x00, 0x15, 0xad])
    );
}

#[test]
fn base64_has_one_spelling_for_a_key() {
    let key = PublicKey::from_text(include_str!("files/ssh_ed25519.pub")).unwrap();
    let text = key.to_string();
    assert!(text.ends_with('='));
    for other in [text.trim_end_matches('=').to_owned(), format!("{text}="), format!(" {text}x")] {
        assert!(other.parse::<PublicKey>().is_err(), "{other}");
    }
    // The last digit has two unused bits.
    let (head, last) = text.trim_end_matches('=').split_at(text.len() - 2);
    let alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digit = alphabet.find(last).unwrap();
    let other = alphabet.chars().nth(digit ^ 1).unwrap();
    assert!(format!("{head}{other}=").parse::<PublicKey>().is_err());
}

#[test]
fn each_limit_is_reached() {
    let long = "A".repeat(limits::FILE_BYTES_MAX + 1);
    assert_eq!(PublicKey::from_text(&long), Err(KeyError::TooLong));
    assert_eq!(PrivateKey::from_text(&long, None).unwrap_err(), KeyError::TooLong);
    assert_eq!(PublicKey::from_certificate(long.as_bytes()), Err(KeyError::TooLong));
    let line = format!("ssh-ed25519 {}", "A".repeat(limits::LINE_BYTES_MAX));
    assert_eq!(PublicKey::from_openssh(&line), Err(KeyError::TooLong));
}
