use std::io;

use rustls::{AlertDescription, Error};

/// Returns the alert by which a server refuses a client's key, or demands one, if an error of a
/// connection is such an alert. In TLS 1.3 it may arrive after the client has finished its
/// handshake (RFC 8446, 4.4.2.4 and 6.2), with the first read.
#[must_use]
pub fn key_refusal(error: &io::Error) -> Option<String> {
    match error.get_ref()?.downcast_ref::<Error>()? {
        Error::AlertReceived(
            alert @ (AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnknownCA
            | AlertDescription::AccessDenied
            | AlertDescription::DecryptError
            | AlertDescription::CertificateRequired),
        ) => Some(format!("{alert:?}")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_alerts_about_the_key_count_as_its_refusal() {
        let invalid = |error: Error| io::Error::new(io::ErrorKind::InvalidData, error);
        let alert = |alert| invalid(Error::AlertReceived(alert));
        let told = key_refusal(&alert(AlertDescription::UnknownCA));
        assert_eq!(told.as_deref(), Some("UnknownCA"));
        assert_eq!(key_refusal(&alert(AlertDescription::InternalError)), None);
        assert_eq!(key_refusal(&invalid(Error::DecryptError)), None);
        assert_eq!(key_refusal(&io::ErrorKind::ConnectionReset.into()), None);
    }
}
