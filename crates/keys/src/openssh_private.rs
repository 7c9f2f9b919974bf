//! Private keys of OpenSSH: the format `openssh-key-v1`, plain or encrypted with aes256-ctr.

use aws_lc_rs::cipher::{AES_256, DecryptingKey, DecryptionContext, UnboundCipherKey};
use aws_lc_rs::iv::FixedLength;
use zeroize::Zeroizing;

use crate::algorithm::Algorithm;
use crate::key_error::{KeyError, quoted};
use crate::limits::BCRYPT_ROUNDS_MAX;
use crate::public_key::PublicKey;
use crate::ssh_wire::WireReader;

/// The PEM label.
pub(crate) const LABEL: &str = "OPENSSH PRIVATE KEY";

const MAGIC: &[u8] = b"openssh-key-v1\0";
const CIPHER: &[u8] = b"aes256-ctr";
const CIPHER_BLOCK_BYTES: usize = 16;

/// Bytes derived by bcrypt: the key of the cipher and its first counter block.
const DERIVED_BYTES: usize = 32 + 16;

/// The sections of a file.
struct Sections<'a> {
    cipher: &'a [u8],
    derivation: &'a [u8],
    derivation_options: &'a [u8],
    public: &'a [u8],
    private: &'a [u8],
}

/// The secret of a key: the seed for Ed25519, or the private number for P-256.
pub(crate) type Secret = Zeroizing<[u8; 32]>;

/// Reads a file with one key. It is not checked yet whether the secret belongs to the public key.
///
/// # Errors
/// The file is malformed, its algorithm or encryption is not supported, or the passphrase is
/// missing or wrong.
pub(crate) fn read(
    bytes: &[u8],
    passphrase: Option<&str>,
) -> Result<(PublicKey, Secret), KeyError> {
    let file = split(bytes).ok_or(KeyError::Malformed("the file of one OpenSSH private key"))?;
    let public = PublicKey::from_ssh_wire(file.public)?;
    if file.cipher == b"none" && file.derivation == b"none" {
        return Ok((public, private_part(file.private, &public).ok_or(MALFORMED)??));
    }
    let private = decrypt(&file, passphrase.ok_or(KeyError::Encrypted)?)?;
    Ok((public, private_part(&private, &public).ok_or(KeyError::WrongPassphrase)??))
}

const MALFORMED: KeyError = KeyError::Malformed("the private part of an OpenSSH key");

fn split(bytes: &[u8]) -> Option<Sections<'_>> {
    let mut reader = WireReader::new(bytes.strip_prefix(MAGIC)?);
    let (cipher, derivation) = (reader.string()?, reader.string()?);
    let derivation_options = reader.string()?;
    if reader.number()? != 1 {
        return None;
    }
    let (public, private) = (reader.string()?, reader.string()?);
    Some(Sections { cipher, derivation, derivation_options, public, private })
}

fn decrypt(file: &Sections<'_>, passphrase: &str) -> Result<Zeroizing<Vec<u8>>, KeyError> {
    for (name, known) in [(file.cipher, CIPHER), (file.derivation, b"bcrypt")] {
        if name != known {
            let name = quoted(&String::from_utf8_lossy(name));
            return Err(KeyError::UnsupportedEncryption(name));
        }
    }
    let derived = derive(file.derivation_options, passphrase)?;
    let (key, counter) = derived.split_at(32);
    let counter = FixedLength::<16>::try_from(counter).map_err(|_| MALFORMED)?;
    let key = UnboundCipherKey::new(&AES_256, key).and_then(DecryptingKey::ctr);
    let key = key.map_err(|_| MALFORMED)?;
    let mut private = Zeroizing::new(file.private.to_vec());
    if !private.len().is_multiple_of(CIPHER_BLOCK_BYTES) {
        return Err(MALFORMED);
    }
    let context = DecryptionContext::Iv128(counter);
    key.decrypt(&mut private, context).map_err(|_| MALFORMED)?;
    Ok(private)
}

/// Derives the bytes from a passphrase by bcrypt.
fn derive(options: &[u8], passphrase: &str) -> Result<Zeroizing<[u8; DERIVED_BYTES]>, KeyError> {
    let mut reader = WireReader::new(options);
    let (salt, rounds) = (reader.string(), reader.number());
    let (Some(salt), Some(rounds)) = (salt, rounds) else { return Err(MALFORMED) };
    if rounds > BCRYPT_ROUNDS_MAX {
        return Err(KeyError::UnsupportedEncryption(format!("{rounds} rounds of bcrypt")));
    }
    if passphrase.is_empty() {
        return Err(KeyError::WrongPassphrase);
    }
    let mut derived = Zeroizing::new([0; DERIVED_BYTES]);
    bcrypt_pbkdf::bcrypt_pbkdf(passphrase.as_bytes(), salt, rounds, &mut *derived)
        .map_err(|_| MALFORMED)?;
    Ok(derived)
}

/// Reads the private part; `None` if its beginning is wrong, which means a wrong passphrase.
fn private_part(bytes: &[u8], public: &PublicKey) -> Option<Result<Secret, KeyError>> {
    let mut reader = WireReader::new(bytes);
    if reader.number()? != reader.number()? {
        return None;
    }
    let algorithm = Algorithm::from_openssh_name(reader.string()?);
    if algorithm != Some(public.algorithm()) {
        return Some(Err(KeyError::Inconsistent));
    }
    Some(match reader.point(public.algorithm()) {
        Ok(point) if point != *public => Err(KeyError::Inconsistent),
        Ok(_) => secret(&mut reader, public).ok_or(MALFORMED),
        Err(error) => Err(error),
    })
}

/// Reads the secret, skips the comment, and checks the padding.
fn secret(reader: &mut WireReader<'_>, public: &PublicKey) -> Option<Secret> {
    let secret = match public.algorithm() {
        // The seed, followed by the public key.
        Algorithm::Ed25519 => {
            let seed = reader.string()?.strip_suffix(public.as_bytes())?;
            Zeroizing::new(seed.try_into().ok()?)
        }
        Algorithm::P256 => reader.number_of_32_bytes()?,
    };
    reader.string()?;
    let is_padding = reader.rest().iter().zip(1..).all(|(byte, at)| *byte == at);
    is_padding.then_some(secret)
}
