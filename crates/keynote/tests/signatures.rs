//! Signed assertions are made and verified, and each of their bytes is changed.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use comity_keynote::{
    Assertion, AssertionDigest, SignedAssertion, UnsignedReason, UnverifiedReason, limits, sign,
};
use comity_keys::{Algorithm, PrivateKey, Signer, sha256};
use proptest::prelude::*;

fn keys() -> [PrivateKey; 2] {
    Algorithm::ALL.map(|algorithm| PrivateKey::generate(algorithm).unwrap())
}

fn text_of(key: &PrivateKey) -> String {
    format!(
        "KeyNote-Version: 2\nLocal-Constants: ME = \"{}\"\nAuthorizer: ME # by name\n\
         Licensees: \"bob\"\nConditions: app_domain == \"Comity\" -> \"rw\";\n",
        key.public_key().to_keynote()
    )
}

#[test]
fn an_assertion_is_signed_and_verified_with_keys_of_both_algorithms() {
    for (key, name) in keys().iter().zip(["sig-ed25519-base64:", "sig-p256-sha256-base64:"]) {
        let text = sign(&text_of(key), key).unwrap();
        let signed = SignedAssertion::parse(&text).unwrap();
        assert_eq!(signed.text(), text);
        assert_eq!(signed.key(), key.public_key());
        assert!(text.lines().last().unwrap().starts_with(&format!("Signature: \"{name}")));
        // The signed bytes as RFC 2792 defines them, computed here independently.
        let covered = format!("{}{name}", text_of(key));
        assert_eq!(*signed.digest().as_bytes(), sha256(covered.as_bytes()));
        let (_, encoded) = text.trim_end().rsplit_once(':').unwrap();
        let signature = comity_keys::Signature::from_base64(encoded.trim_end_matches('"')).unwrap();
        assert!(key.public_key().verify(covered.as_bytes(), signature.as_bytes()));
    }
}

#[test]
fn a_signature_in_hexadecimal_digits_or_in_upper_case_is_valid() {
    let [key, _] = keys();
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    for name in ["sig-ed25519-hex:", "SIG-ED25519-HEX:"] {
        let covered = text_of(&key) + name;
        let signature = hex(key.sign(covered.as_bytes()).unwrap().as_bytes());
        let text = format!("{}signature: \"{name}\" . \"{signature}\"", text_of(&key));
        let signed = SignedAssertion::parse(text).unwrap();
        assert_eq!(*signed.digest().as_bytes(), sha256(covered.as_bytes()));
    }
}

#[test]
fn the_digest_does_not_depend_on_the_form_of_the_signature() {
    for key in keys() {
        let text = sign(&text_of(&key), &key).unwrap();
        let again = sign(&text_of(&key), &key).unwrap();
        let (covered, signature) = text.split_once("Signature:").unwrap();
        let folded = format!("{covered}SIGNATURE:{}", signature.replace(':', ":\\\n\t  "));
        let behind = format!("# before\n\n{text} # behind\n");
        let digests = [&text, &again, &folded, &behind]
            .map(|text| *SignedAssertion::parse(text).unwrap().digest());
        assert!(digests.iter().all(|digest| *digest == digests[0]), "{digests:?}");
        let other = sign(&text_of(&key).replace("rw", "r"), &key).unwrap();
        assert_ne!(*SignedAssertion::parse(other).unwrap().digest(), digests[0]);
        assert_eq!(digests[0].to_string().parse(), Ok(digests[0]));
    }
}

#[test]
fn texts_that_are_no_digest_are_refused() {
    let digest = AssertionDigest::from_bytes([0xa5; 32]).to_string();
    assert_eq!(digest, "a5".repeat(32));
    for wrong in
        ["", &digest[1..], &digest[2..], &format!("{digest}00"), &digest.replace("a5", "g5")]
    {
        assert!(wrong.parse::<AssertionDigest>().is_err(), "{wrong}");
    }
}

#[test]
fn invalid_signatures_have_different_reasons() {
    let [key, other] = keys();
    let text = sign(&text_of(&key), &key).unwrap();
    let reason = |text: &str| SignedAssertion::parse(text).unwrap_err();
    let replaced = |from: &str, to: &str| reason(&text.replace(from, to));
    assert_eq!(reason(&text_of(&key)), UnverifiedReason::NoSignature);
    assert_eq!(replaced("\"rw\"", "\"rwx\""), UnverifiedReason::WrongSignature);
    assert_eq!(replaced(" # by name", ""), UnverifiedReason::WrongSignature);
    assert_eq!(
        replaced(&key.public_key().to_keynote(), "POLICY"),
        UnverifiedReason::NoKey("`POLICY`".into())
    );
    let name = "`sig-rsa-sha1-base64:`".to_owned();
    assert_eq!(
        replaced("sig-ed25519", "sig-rsa-sha1"),
        UnverifiedReason::OtherAlgorithm(name, "sig-ed25519-base64:")
    );
    assert_eq!(
        replaced("sig-ed25519-base64:", "sig-ed25519-hex:"),
        UnverifiedReason::BrokenSignature
    );
    assert_eq!(replaced("==\"\n", "=\"\n"), UnverifiedReason::BrokenSignature);
    assert!(matches!(replaced("Conditions", "Condition"), UnverifiedReason::Parse(_)));
    let stolen = text.replace(&key.public_key().to_keynote(), &other.public_key().to_keynote());
    assert!(matches!(reason(&stolen), UnverifiedReason::OtherAlgorithm(..)));
    let attribute = text.replace("Authorizer: ME", "Authorizer: HE");
    assert_eq!(reason(&attribute), UnverifiedReason::NoKey("``".into()));
}

#[test]
fn a_signature_of_another_assertion_is_refused() {
    let [key, _] = keys();
    let one = sign(&text_of(&key), &key).unwrap();
    let other = sign(&text_of(&key).replace("bob", "eve"), &key).unwrap();
    let (covered, _) = other.split_once("Signature:").unwrap();
    let (_, signature) = one.split_once("Signature:").unwrap();
    let error = SignedAssertion::parse(format!("{covered}Signature:{signature}")).unwrap_err();
    assert_eq!(error, UnverifiedReason::WrongSignature);
}

#[test]
fn texts_that_the_key_may_not_sign_are_refused() {
    let [key, other] = keys();
    let text = text_of(&key);
    let signed = sign(&text, &key).unwrap();
    assert!(matches!(sign(&signed, &key), Err(UnsignedReason::SignedAlready)));
    assert!(matches!(sign(&text, &other), Err(UnsignedReason::OtherAuthorizer(_))));
    assert!(matches!(sign("Comment: x\n", &key), Err(UnsignedReason::Parse(_))));
    let without_line_break = sign(text.trim_end(), &key).unwrap();
    assert!(SignedAssertion::parse(without_line_break).is_ok());
}

#[test]
fn the_length_of_a_signed_assertion_is_limited_with_its_signature() {
    let [key, _] = keys();
    let with = |length| format!("{}Comment: {}\n", text_of(&key), "x".repeat(length));
    let overhead = sign(&with(0), &key).unwrap().len();
    let longest = limits::SIGNED_TEXT_BYTES_MAX - overhead;
    let text = sign(&with(longest), &key).unwrap();
    assert!(SignedAssertion::parse(&text).is_ok());
    assert!(matches!(sign(&with(longest + 1), &key), Err(UnsignedReason::TooLong)));
    let longer = format!("{text} # too long");
    assert_eq!(SignedAssertion::parse(&longer).unwrap_err(), UnverifiedReason::TooLong);
    let assertion = Assertion::parse(&longer).unwrap();
    assert_eq!(SignedAssertion::verify(assertion).unwrap_err(), UnverifiedReason::TooLong);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Each change either breaks the assertion or leaves the signed content the same.
    #[test]
    fn a_text_with_one_changed_byte_is_refused_or_has_the_same_content(
        algorithm in 0..2_usize,
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let key = PrivateKey::generate(Algorithm::ALL[algorithm]).unwrap();
        let text = sign(&text_of(&key), &key).unwrap();
        let before = SignedAssertion::parse(&text).unwrap();
        let mut bytes = text.into_bytes();
        let place = at.index(bytes.len());
        bytes[place] = byte;
        if let Ok(after) = SignedAssertion::parse(&bytes) {
            let body = |signed: &SignedAssertion| signed.prepared().assertion().body().clone();
            prop_assert_eq!(body(&after), body(&before));
            prop_assert_eq!(after.digest(), before.digest());
        }
    }
}
