//! A private key in memory.

use std::fmt;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair,
};
use zeroize::Zeroizing;

use crate::algorithm::Algorithm;
use crate::key_error::KeyError;
use crate::public_key::PublicKey;
use crate::signature::{SignError, Signature, Signer};
use crate::{openssh_private, pem};

/// A private key with its public key. Its bytes are overwritten when it is dropped.
pub struct PrivateKey {
    pair: Pair,
    public: PublicKey,
}

enum Pair {
    Ed25519(Ed25519KeyPair),
    P256(EcdsaKeyPair),
}

const PKCS8: &str = "PRIVATE KEY";

impl PrivateKey {
    /// Makes a new key.
    ///
    /// # Errors
    /// The system supplied no random numbers.
    pub fn generate(algorithm: Algorithm) -> Result<Self, KeyError> {
        let failed = |_| KeyError::NotGenerated;
        match algorithm {
            Algorithm::Ed25519 => Self::of_ed25519(Ed25519KeyPair::generate().map_err(failed)?),
            Algorithm::P256 => {
                let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING);
                Self::of_p256(pair.map_err(failed)?)
            }
        }
    }

    /// Reads a key from a text: PKCS#8 in PEM (RFC 5958), an EC key in PEM (RFC 5915), or a private
    /// key of OpenSSH, which may be encrypted.
    ///
    /// # Errors
    /// Anything else, another algorithm, or a passphrase that is missing or wrong.
    pub fn from_text(text: &str, passphrase: Option<&str>) -> Result<Self, KeyError> {
        if !pem::is_pem(text) && PublicKey::from_text(text).is_ok() {
            return Err(KeyError::Public);
        }
        let block = pem::read(text)?;
        match block.label {
            PKCS8 => Self::from_pkcs8(&block.der),
            "EC PRIVATE KEY" => {
                let pair = EcdsaKeyPair::from_private_key_der(
                    &ECDSA_P256_SHA256_FIXED_SIGNING,
                    &block.der,
                );
                Self::of_p256(pair.map_err(|_| KeyError::Malformed("a private key of P-256"))?)
            }
            openssh_private::LABEL => {
                let (public, secret) = openssh_private::read(&block.der, passphrase)?;
                Self::from_secret(&secret, &public)
            }
            "ENCRYPTED PRIVATE KEY" => {
                Err(KeyError::UnsupportedEncryption("the means of PKCS#8".into()))
            }
            "PUBLIC KEY" | "CERTIFICATE" => Err(KeyError::Public),
            label => Err(KeyError::unsupported(label)),
        }
    }

    /// Reads a PrivateKeyInfo in DER (RFC 5958).
    ///
    /// # Errors
    /// Other bytes, or another algorithm.
    pub fn from_pkcs8(der: &[u8]) -> Result<Self, KeyError> {
        if let Ok(pair) = Ed25519KeyPair::from_pkcs8(der) {
            return Self::of_ed25519(pair);
        }
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der);
        let wrong = |_| KeyError::Malformed("a private key of Ed25519 or P-256 in PKCS#8");
        Self::of_p256(pair.map_err(wrong)?)
    }

    /// The PrivateKeyInfo in DER, version 1, which openssl can read, too. The caller must keep it
    /// secret.
    ///
    /// # Errors
    /// Memory is exhausted.
    pub fn to_pkcs8(&self) -> Result<Zeroizing<Vec<u8>>, KeyError> {
        let document = match &self.pair {
            Pair::Ed25519(pair) => pair.to_pkcs8v1(),
            Pair::P256(pair) => pair.to_pkcs8v1(),
        };
        let document = document.map_err(|_| KeyError::NotGenerated)?;
        Ok(Zeroizing::new(document.as_ref().to_vec()))
    }

    /// The PrivateKeyInfo in PEM. The caller must keep it secret.
    ///
    /// # Errors
    /// Memory is exhausted.
    pub fn to_pem(&self) -> Result<Zeroizing<String>, KeyError> {
        Ok(pem::write(PKCS8, &self.to_pkcs8()?))
    }

    /// Makes a key from its secret and the public key that belongs to it.
    fn from_secret(secret: &[u8; 32], public: &PublicKey) -> Result<Self, KeyError> {
        let inconsistent = |_| KeyError::Inconsistent;
        match public.algorithm() {
            Algorithm::Ed25519 => {
                let pair = Ed25519KeyPair::from_seed_and_public_key(secret, public.as_bytes());
                Self::of_ed25519(pair.map_err(inconsistent)?)
            }
            Algorithm::P256 => {
                let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
                let point = public.as_bytes();
                let pair = EcdsaKeyPair::from_private_key_and_public_key(algorithm, secret, point);
                Self::of_p256(pair.map_err(inconsistent)?)
            }
        }
    }

    fn of_ed25519(pair: Ed25519KeyPair) -> Result<Self, KeyError> {
        let public = PublicKey::from_raw(Algorithm::Ed25519, pair.public_key().as_ref())?;
        Ok(Self { pair: Pair::Ed25519(pair), public })
    }

    fn of_p256(pair: EcdsaKeyPair) -> Result<Self, KeyError> {
        let public = PublicKey::from_raw(Algorithm::P256, pair.public_key().as_ref())?;
        Ok(Self { pair: Pair::P256(pair), public })
    }
}

impl Signer for PrivateKey {
    fn public_key(&self) -> &PublicKey {
        &self.public
    }

    fn sign(&self, message: &[u8]) -> Result<Signature, SignError> {
        let signature = match &self.pair {
            Pair::Ed25519(pair) => pair.try_sign(message),
            Pair::P256(pair) => pair.sign(&SystemRandom::new(), message),
        };
        let signature = signature.map_err(|_| SignError::Failed)?;
        Signature::from_bytes(signature.as_ref()).ok_or(SignError::Failed)
    }
}

/// Shows only the public key.
impl fmt::Debug for PrivateKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "PrivateKey({})", self.public)
    }
}
