use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, KeyPair,
    KeyUsagePurpose, PKCS_ED25519, SerialNumber, date_time_ymd,
};

/// A private key and a certificate that it has signed itself, both in PEM.
pub struct SelfMade {
    /// The certificate.
    pub certificate: String,
    /// The private key (PKCS #8).
    pub key: String,
}

/// The years in which the certificate is valid. A clock that is wrong by decades does not end it,
/// and nobody has to renew it: clients that pin it trust the key, not a date.
const YEARS: [i32; 2] = [2020, 2100];

/// Makes an Ed25519 key and a certificate of it for a server with these names and addresses. Those
/// that are no names are left out.
///
/// # Errors
/// There are no random bytes.
pub fn self_made(names: &[String]) -> Result<SelfMade, rcgen::Error> {
    let key = KeyPair::generate_for(&PKCS_ED25519)?;
    let is_name = |name: &&String| CertificateParams::new([(*name).clone()]).is_ok();
    let names: Vec<String> = names.iter().filter(is_name).cloned().collect();
    let mut params = CertificateParams::new(names)?;
    let mut subject = DistinguishedName::new();
    subject.push(DnType::CommonName, "comity");
    params.distinguished_name = subject;
    [params.not_before, params.not_after] = YEARS.map(|year| date_time_ymd(year, 1, 1));
    params.serial_number = Some(SerialNumber::from(1_u64));
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let certificate = params.self_signed(&key)?;
    Ok(SelfMade { certificate: certificate.pem(), key: key.serialize_pem() })
}
