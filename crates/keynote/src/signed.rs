//! Signatures of assertions (RFC 2704, section 4.6.7; RFC 2792, section 4).
//!
//! The algorithms used here are not in these documents but follow their pattern: a signature is
//! `sig-ed25519-base64:` or `sig-p256-sha256-base64:` and 64 bytes in base64 (`-hex:` and
//! hexadecimal digits are accepted, too). It covers the text from the first field up to the line
//! break before the Signature field, followed by the algorithm's name with its colon.

use comity_keys::{Algorithm, PublicKey, SignError, Signature, Signer};

use crate::assertion::Assertion;
use crate::digest::AssertionDigest;
use crate::fixed::FixedValues;
use crate::limits::SIGNED_TEXT_BYTES_MAX;
use crate::parse_error::{ParseError, quoted};
use crate::prepared::PreparedAssertion;
use crate::principal::Principal;

/// An assertion with a verified signature by the key in its Authorizer field.
#[derive(Debug, Clone)]
pub struct SignedAssertion {
    prepared: PreparedAssertion,
    key: PublicKey,
    digest: AssertionDigest,
}

impl SignedAssertion {
    /// Parses a text and verifies its signature.
    ///
    /// # Errors
    /// The error of the text, or the reason why its signature is invalid.
    pub fn parse(text: impl AsRef<[u8]>) -> Result<Self, UnverifiedReason> {
        let text = text.as_ref();
        if text.len() > SIGNED_TEXT_BYTES_MAX {
            return Err(UnverifiedReason::TooLong);
        }
        Self::verify(Assertion::parse(text)?)
    }

    /// Verifies the signature of an assertion.
    ///
    /// # Errors
    /// The reason why its signature is invalid.
    pub fn verify(assertion: Assertion) -> Result<Self, UnverifiedReason> {
        if assertion.text().len() > SIGNED_TEXT_BYTES_MAX {
            return Err(UnverifiedReason::TooLong);
        }
        let mut fixed = FixedValues::new(&assertion.body().constants);
        let key = authorizing_key(&assertion, &mut fixed)?;
        let signature = assertion.signature().ok_or(UnverifiedReason::NoSignature)?;
        let signature = fixed.value(signature).ok_or(UnverifiedReason::BrokenSignature)?;
        let (name, signature) = read_signature(&signature, key.algorithm())?;
        let covered = [assertion.covered_text(), name].concat();
        if !key.verify(covered.as_bytes(), signature.as_bytes()) {
            return Err(UnverifiedReason::WrongSignature);
        }
        let digest = AssertionDigest::of(covered.as_bytes());
        Ok(Self { prepared: PreparedAssertion::new(assertion), key, digest })
    }

    /// The text, with the signature.
    #[must_use]
    pub fn text(&self) -> &str {
        self.prepared.assertion().text()
    }

    /// The key that signed.
    #[must_use]
    pub const fn key(&self) -> &PublicKey {
        &self.key
    }

    /// The digest by which it is revoked.
    #[must_use]
    pub const fn digest(&self) -> &AssertionDigest {
        &self.digest
    }

    /// The assertion for evaluation.
    #[must_use]
    pub const fn prepared(&self) -> &PreparedAssertion {
        &self.prepared
    }
}

/// Signs the text of an assertion without Signature field; returns the text with one.
///
/// # Errors
/// The text is not an assertion, is signed already or names another authorizer, or the key cannot
/// be used.
pub fn sign(text: &str, signer: &dyn Signer) -> Result<String, UnsignedReason> {
    let assertion = Assertion::parse(text)?;
    if assertion.signature().is_some() {
        return Err(UnsignedReason::SignedAlready);
    }
    let mut fixed = FixedValues::new(&assertion.body().constants);
    match authorizing_key(&assertion, &mut fixed) {
        Ok(key) if key == *signer.public_key() => {}
        _ => return Err(UnsignedReason::OtherAuthorizer(*signer.public_key())),
    }
    let name = algorithm_name(signer.public_key().algorithm());
    let line_break = if assertion.text().ends_with('\n') { "" } else { "\n" };
    let covered = [assertion.text(), line_break].concat();
    let signature = signer.sign([&covered, name].concat().as_bytes())?;
    let text = format!("{covered}Signature: \"{name}{}\"\n", signature.to_base64());
    if text.len() > SIGNED_TEXT_BYTES_MAX {
        return Err(UnsignedReason::TooLong);
    }
    Ok(text)
}

/// The key that the Authorizer field names.
fn authorizing_key(
    assertion: &Assertion,
    fixed: &mut FixedValues<'_>,
) -> Result<PublicKey, UnverifiedReason> {
    let name = fixed.value(&assertion.body().authorizer).unwrap_or_default();
    let key = Principal::named(&name).key().copied();
    key.ok_or_else(|| UnverifiedReason::NoKey(quoted(&name)))
}

/// The name of a signature algorithm, with its colon.
const fn algorithm_name(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::Ed25519 => "sig-ed25519-base64:",
        Algorithm::P256 => "sig-p256-sha256-base64:",
    }
}

/// Splits a signature into the algorithm's name as written, with its colon, and the signature.
fn read_signature(text: &str, algorithm: Algorithm) -> Result<(&str, Signature), UnverifiedReason> {
    let colon = text.find(':').ok_or(UnverifiedReason::BrokenSignature)?;
    let (name, encoded) = text.split_at_checked(colon + 1).unwrap_or((text, ""));
    let in_base64 = algorithm_name(algorithm);
    let in_hex = in_base64.replace("base64", "hex");
    let signature = if name.eq_ignore_ascii_case(in_base64) {
        Signature::from_base64(encoded)
    } else if name.eq_ignore_ascii_case(&in_hex) {
        Signature::from_hex(encoded)
    } else {
        return Err(UnverifiedReason::OtherAlgorithm(quoted(name), in_base64));
    };
    Ok((name, signature.map_err(|_| UnverifiedReason::BrokenSignature)?))
}

/// The reason why an assertion does not count as signed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnverifiedReason {
    /// The text is not an assertion.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// The text is longer than a signed assertion may be.
    #[error("the assertion has more than {SIGNED_TEXT_BYTES_MAX} bytes")]
    TooLong,
    /// The Authorizer field names no key of a supported algorithm; the name is shortened.
    #[error("the authorizer {0} is no Ed25519 or ECDSA P-256 key, so nobody can sign for it")]
    NoKey(String),
    /// There is no Signature field.
    #[error("the assertion has no signature")]
    NoSignature,
    /// The signature has another algorithm than the key; the name is shortened.
    #[error("the signature is {0}, but the authorizer's key makes {1}")]
    OtherAlgorithm(String, &'static str),
    /// The Signature field is not a name and 64 encoded bytes.
    #[error("the signature is broken: expected an algorithm, a colon and 64 bytes in base64")]
    BrokenSignature,
    /// The signature does not match the text and the key.
    #[error("the signature does not fit: the text was changed, or another key signed it")]
    WrongSignature,
}

/// The reason why an assertion was not signed.
#[derive(Debug, thiserror::Error)]
pub enum UnsignedReason {
    /// The text is not an assertion.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// The text already has a Signature field.
    #[error("the assertion is signed already")]
    SignedAlready,
    /// The text with its signature is longer than a signed assertion may be.
    #[error("the signed assertion would have more than {SIGNED_TEXT_BYTES_MAX} bytes")]
    TooLong,
    /// The Authorizer field does not name the signing key.
    #[error("the authorizer of the assertion is not the key {0}, which is to sign it")]
    OtherAuthorizer(PublicKey),
    /// Signing with the key failed.
    #[error(transparent)]
    Sign(#[from] SignError),
}
