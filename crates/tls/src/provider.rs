use rustls::crypto::{CryptoProvider, aws_lc_rs};

/// The cryptography of this process.
pub(crate) fn provider() -> CryptoProvider {
    aws_lc_rs::default_provider()
}
