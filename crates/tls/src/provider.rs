use rustls::crypto::{CryptoProvider, aws_lc_rs};

/// The cryptography provider of this process.
pub(crate) fn provider() -> CryptoProvider {
    aws_lc_rs::default_provider()
}
