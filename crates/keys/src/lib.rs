//! Keys and signatures: Ed25519 (RFC 8032) and ECDSA over P-256 with SHA-256 (FIPS 186-5).
//!
//! **Answers:** which public key this is, whether it signed these bytes, how keys are written in
//! text, in DER, in PEM and in the files of OpenSSH; signs with a key from a file or in ssh-agent.
//!
//! **May not know:** what is signed and why; users, grants, sessions; where files and sockets are.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod agent;
mod agent_error;
mod algorithm;
mod base64;
mod certificate;
mod key_error;
mod key_file;
pub mod limits;
mod openssh_private;
mod openssh_public;
mod pem;
mod private_key;
mod public_key;
mod signature;
mod spki;
mod ssh_wire;

pub use agent::{AgentKey, SshAgent};
pub use agent_error::AgentError;
pub use algorithm::Algorithm;
pub use key_error::KeyError;
pub use private_key::PrivateKey;
pub use public_key::PublicKey;
pub use signature::{SignError, Signature, Signer};

/// The SHA-256 hash of bytes (FIPS 180-4).
#[must_use]
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut hash = [0; 32];
    hash.copy_from_slice(aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, bytes).as_ref());
    hash
}
