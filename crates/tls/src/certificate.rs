use std::net::{Ipv4Addr, Ipv6Addr};

use aws_lc_rs::digest::{SHA256, digest};
use comity_credential::{KeyId, PeerKey};
use comity_vfs::{Cred, Gid, Uid, Wire};

use crate::der::{
    BOOLEAN, Der, INTEGER, OBJECT_ID, OCTET_STRING, SEQUENCE, Value, constructed, primitive,
};
use crate::limits::{CERTIFICATE_BYTES_MAX, GROUPS_MAX, NAMES_MAX};
use crate::{ObjectId, moment};

/// The contents of a peer's or the server's certificate (RFC 5280, 4.1). Signatures are not checked
/// here.
#[derive(Debug, Clone, Copy)]
pub struct Certificate<'a> {
    spki: &'a [u8],
    begins: u64,
    expires: u64,
    alternative_names: Option<&'a [u8]>,
}

/// A certificate that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the certificate is malformed")]
pub struct MalformedCertificate;

/// A name in a certificate that identifies a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum UserName {
    /// This user.
    User(Cred<Wire>),
    /// The name is malformed.
    Malformed,
}

/// The extension subjectAltName, 2.5.29.17.
const SUBJECT_ALT_NAME: [u8; 3] = [0x55, 0x1d, 0x11];

/// Numbers of the kinds of names (RFC 5280, 4.2.1.6).
const OTHER_NAME: u8 = 0;
const DNS_NAME: u8 = 2;
const IP_ADDRESS: u8 = 7;

impl<'a> Certificate<'a> {
    /// Reads a certificate in DER.
    ///
    /// # Errors
    /// It is malformed, or longer than [`CERTIFICATE_BYTES_MAX`].
    pub fn read(der: &'a [u8]) -> Result<Self, MalformedCertificate> {
        let fits = der.len() <= CERTIFICATE_BYTES_MAX;
        fits.then(|| read(der)).flatten().ok_or(MalformedCertificate)
    }

    /// Returns its public key.
    #[must_use]
    pub fn key(&self) -> PeerKey {
        let mut id = [0; 32];
        id.copy_from_slice(digest(&SHA256, self.spki).as_ref());
        PeerKey::new(self.spki, KeyId(id))
    }

    /// The time at which it expires, in seconds since 1970.
    #[must_use]
    pub const fn expires(&self) -> u64 {
        self.expires
    }

    /// Returns the whole days until it expires; negative ones after that.
    #[must_use]
    pub fn days_left(&self) -> i64 {
        (self.expires as i64).saturating_sub(moment::now() as i64).div_euclid(86_400)
    }

    /// The time from which it is valid, in seconds since 1970.
    pub(crate) const fn begins(&self) -> u64 {
        self.begins
    }

    /// Returns the host names and addresses in it, in lower case, [`NAMES_MAX`] at most.
    #[must_use]
    pub fn names(&self) -> Box<[Box<str>]> {
        self.alternative_names().filter_map(|name| host(&name)).collect()
    }

    /// The users that it names in otherName entries of this kind.
    pub(crate) fn users(&self, kind: &ObjectId) -> Vec<UserName> {
        let others = self.alternative_names().filter(|name| name.tag == constructed(OTHER_NAME));
        others.filter_map(|name| user(name.content, kind)).collect()
    }

    fn alternative_names(&self) -> impl Iterator<Item = Value<'a>> + use<'a> {
        let mut names = Der::new(self.alternative_names.unwrap_or_default());
        std::iter::from_fn(move || names.any()).take(NAMES_MAX)
    }
}

fn read(der: &[u8]) -> Option<Certificate<'_>> {
    let mut file = Der::new(der);
    let mut certificate = file.within(SEQUENCE)?;
    let mut signed = certificate.within(SEQUENCE)?;
    signed.optional(constructed(0));
    signed.content(INTEGER)?;
    let (_algorithm, _issuer) = (signed.content(SEQUENCE)?, signed.content(SEQUENCE)?);
    let mut validity = signed.within(SEQUENCE)?;
    let (begins, expires) = (moment::read(&validity.any()?)?, moment::read(&validity.any()?)?);
    let _subject = signed.content(SEQUENCE)?;
    let spki = signed.value(SEQUENCE)?.whole;
    let (_, _) = (signed.optional(primitive(1)), signed.optional(primitive(2)));
    let alternative_names = match signed.optional(constructed(3)) {
        Some(extensions) => alternative_names(Der::new(extensions).within(SEQUENCE)?)?,
        None => None,
    };
    file.is_empty().then_some(Certificate { spki, begins, expires, alternative_names })
}

/// Returns the content of the extension subjectAltName, if there is one; `None` if an extension is
/// malformed.
fn alternative_names(mut extensions: Der<'_>) -> Option<Option<&[u8]>> {
    while !extensions.is_empty() {
        let mut extension = extensions.within(SEQUENCE)?;
        let kind = extension.content(OBJECT_ID)?;
        extension.optional(BOOLEAN);
        let content = extension.content(OCTET_STRING)?;
        if kind == SUBJECT_ALT_NAME {
            return Der::new(content).content(SEQUENCE).map(Some);
        }
    }
    Some(None)
}

fn host(name: &Value<'_>) -> Option<Box<str>> {
    if name.tag == primitive(DNS_NAME) {
        let is_text = name.content.iter().all(u8::is_ascii_graphic);
        let text = std::str::from_utf8(name.content).ok().filter(|_| is_text)?;
        return Some(text.to_ascii_lowercase().into());
    }
    let address = Some(name.content).filter(|_| name.tag == primitive(IP_ADDRESS))?;
    let four = || address.try_into().ok().map(|bytes: [u8; 4]| Ipv4Addr::from(bytes).to_string());
    let six = || address.try_into().ok().map(|bytes: [u8; 16]| Ipv6Addr::from(bytes).to_string());
    four().or_else(six).map(Into::into)
}

/// Returns the user in an otherName of this kind; `None` if the name is of another kind.
fn user(other_name: &[u8], kind: &ObjectId) -> Option<UserName> {
    let mut other_name = Der::new(other_name);
    other_name.content(OBJECT_ID).filter(|found| kind.is(found))?;
    let value = other_name.within(constructed(0));
    Some(value.and_then(rpc_auth_sys).map_or(UserName::Malformed, UserName::User))
}

/// Reads an RPCAuthSys: a uid, and gids of which the first is the primary group. There must be a
/// gid, because the server has no user database to look it up.
fn rpc_auth_sys(mut value: Der<'_>) -> Option<Cred<Wire>> {
    let mut named = value.within(SEQUENCE)?;
    let uid = named.number()?;
    let mut gids = named.within(SEQUENCE)?;
    let gid = gids.number()?;
    let mut groups = Vec::new();
    while !gids.is_empty() && groups.len() < GROUPS_MAX {
        groups.push(Gid::new(gids.number()?));
    }
    let is_whole = gids.is_empty() && named.is_empty() && value.is_empty();
    is_whole.then(|| Cred::new(Uid::new(uid), Gid::new(gid)).with_groups(groups))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rcgen::{
        CertificateParams, CustomExtension, KeyPair, PKCS_ED25519, SanType, date_time_ymd,
    };

    fn kind() -> ObjectId {
        "1.3.6.1.5.5.7.8.99".parse().unwrap()
    }

    fn signed(params: CertificateParams) -> (Vec<u8>, KeyPair) {
        let key = KeyPair::generate_for(&PKCS_ED25519).unwrap();
        (params.self_signed(&key).unwrap().der().to_vec(), key)
    }

    #[test]
    fn key_validity_and_names_are_read() {
        let names =
            ["Host.Example.org".to_owned(), "192.0.2.7".to_owned(), "2001:db8::7".to_owned()];
        let mut params = CertificateParams::new(names).unwrap();
        params.not_before = date_time_ymd(2026, 1, 1);
        params.not_after = date_time_ymd(2060, 1, 1);
        let (der, key) = signed(params);
        let read = Certificate::read(&der).unwrap();
        assert_eq!((read.begins(), read.expires()), (1_767_225_600, 2_840_140_800));
        assert_eq!(*read.names(), ["host.example.org", "192.0.2.7", "2001:db8::7"].map(Into::into));
        // The SubjectPublicKeyInfo of Ed25519 (RFC 8410, 4): 12 bytes, then the key.
        assert_eq!(read.spki.len(), 44);
        assert!(read.spki.ends_with(key.public_key_raw()));
        let found = read.key();
        assert_eq!(found.id().0, *digest(&SHA256, read.spki).as_ref());
        assert_eq!(found.principal().unwrap().as_bytes(), key.public_key_raw());
    }

    /// A certificate with otherName entries of these values.
    fn with_users(values: &[&[u8]]) -> Vec<u8> {
        let wrap = |tag: u8, content: &[u8]| [&[tag, content.len() as u8], content].concat();
        let id = [OBJECT_ID, 8, 0x2b, 6, 1, 5, 5, 7, 8, 99];
        let other = |value: &&[u8]| wrap(0xa0, &[&id[..], &wrap(0xa0, value)].concat());
        let names = wrap(SEQUENCE, &values.iter().flat_map(other).collect::<Vec<_>>());
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        let extension = CustomExtension::from_oid_content(&[2, 5, 29, 17], names);
        params.custom_extensions = vec![extension];
        signed(params).0
    }

    #[test]
    fn a_user_is_read_with_groups() {
        let sys = [0x30, 12, 2, 2, 3, 0xe8, 0x30, 6, 2, 1, 100, 2, 1, 20];
        let der = with_users(&[&sys]);
        let expected = Cred::new(Uid::new(1000), Gid::new(100)).with_groups([Gid::new(20)]);
        let certificate = Certificate::read(&der).unwrap();
        assert_eq!(certificate.users(&kind()), [UserName::User(expected)]);
        assert_eq!(certificate.users(&"1.3.6.1".parse().unwrap()), []);
        let twice = with_users(&[&sys, &sys]);
        assert_eq!(Certificate::read(&twice).unwrap().users(&kind()).len(), 2);
    }

    #[test]
    fn a_malformed_user_is_distinguished_from_none() {
        for sys in [
            &[][..],
            &[0x30, 3, 2, 1, 5],
            &[0x30, 5, 2, 1, 5, 0x30, 0],
            &[0x30, 8, 2, 1, 0xff, 0x30, 3, 2, 1, 5],
            &[0x30, 11, 2, 1, 5, 0x30, 3, 2, 1, 5, 2, 1, 1],
        ] {
            let der = with_users(&[sys]);
            let users = Certificate::read(&der).unwrap().users(&kind());
            assert_eq!(users, [UserName::Malformed], "{sys:?}");
        }
    }

    #[test]
    fn names_are_bounded() {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        let name = |number: usize| SanType::DnsName(format!("h{number}").try_into().unwrap());
        params.subject_alt_names = (0..NAMES_MAX + 9).map(name).collect();
        let (der, _) = signed(params);
        assert_eq!(Certificate::read(&der).unwrap().names().len(), NAMES_MAX);
    }

    proptest! {
        #[test]
        fn no_change_of_a_certificate_causes_a_panic(
            at in any::<prop::sample::Index>(),
            byte in any::<u8>(),
            cut in any::<prop::sample::Index>(),
        ) {
            let params = CertificateParams::new(vec!["a.example".to_owned()]).unwrap();
            let (mut der, _) = signed(params);
            let index = at.index(der.len());
            der[index] = byte;
            for der in [&der[..], &der[..cut.index(der.len())]] {
                if let Ok(read) = Certificate::read(der) {
                    let _ = (read.key(), read.names(), read.users(&kind()));
                }
            }
        }
    }
}
