//! The keys and values of the store's tables, as bytes.

use comity_state::{
    ClientProtocol, FileKey, Identity, KeyId, Origin, OriginChannel, Principal, RecordedClient,
    Verifier,
};
use comity_vfs::Handle;

const SETCLIENTID: u8 = 0;
const EXCHANGE_ID: u8 = 1;
const NLM: u8 = 2;

/// Added to the protocol number of a client that came by TLS without a key.
const TLS: u8 = 16;
/// Added to the protocol number of a client that came with a key, whose name follows.
const KEY: u8 = 32;

/// Returns the bytes for a client: its protocol and channel (1 byte), the name of its key (32
/// bytes) if it has one, and its owner id.
pub(crate) fn of_client(client: &RecordedClient) -> Vec<u8> {
    let protocol = match client.protocol {
        ClientProtocol::Setclientid => SETCLIENTID,
        ClientProtocol::ExchangeId => EXCHANGE_ID,
        ClientProtocol::Nlm => NLM,
    };
    match client.channel {
        OriginChannel::Plain => [&[protocol], &*client.id].concat(),
        OriginChannel::Tls => [&[protocol + TLS], &*client.id].concat(),
        OriginChannel::Key(key) => [&[protocol + KEY][..], &key.0, &client.id].concat(),
    }
}

/// Returns the client that these bytes encode; `None` if its protocol is unknown.
pub(crate) fn client(key: &[u8]) -> Option<RecordedClient> {
    let (first, rest) = key.split_first()?;
    let protocol = match *first % TLS {
        SETCLIENTID => ClientProtocol::Setclientid,
        EXCHANGE_ID => ClientProtocol::ExchangeId,
        NLM => ClientProtocol::Nlm,
        _ => return None,
    };
    let (channel, id) = match *first - *first % TLS {
        0 => (OriginChannel::Plain, rest),
        TLS => (OriginChannel::Tls, rest),
        KEY => {
            let (key, id) = rest.split_first_chunk()?;
            (OriginChannel::Key(KeyId(*key)), id)
        }
        _ => return None,
    };
    Some(RecordedClient { protocol, channel, id: id.into() })
}

/// Returns the bytes for an identity: its principal (8 bytes, big endian), its origin (16) and its
/// verifier (8). They are empty for a client that an earlier version recorded without an identity.
pub(crate) fn of_identity(identity: Option<Identity>) -> Vec<u8> {
    let Some(Identity { principal, origin, verifier }) = identity else { return Vec::new() };
    [&principal.0.to_be_bytes(), &origin.bytes()[..], &verifier.0].concat()
}

/// Returns the identity that these bytes encode: `Some(None)` if the client was recorded without
/// one, and `None` if the bytes are invalid. The client came by `channel`.
pub(crate) fn identity(bytes: &[u8], channel: OriginChannel) -> Option<Option<Identity>> {
    if bytes.is_empty() {
        return Some(None);
    }
    let (principal, rest) = bytes.split_first_chunk()?;
    let (origin, verifier) = rest.split_first_chunk()?;
    Some(Some(Identity {
        principal: Principal(u64::from_be_bytes(*principal)),
        origin: Origin::from_bytes(*origin).over(channel),
        verifier: Verifier(verifier.try_into().ok()?),
    }))
}

/// Returns the bytes for a file: the volume's number (8 bytes, big endian) and the backend's
/// handle. The export through which the client used the file does not matter for reclaims.
pub(crate) fn of_file(file: &FileKey) -> Vec<u8> {
    [&file.volume.to_be_bytes(), file.handle.bytes()].concat()
}

/// Returns the bytes for the export through which a client used a file: its number (4 bytes, big
/// endian).
pub(crate) const fn of_export(file: &FileKey) -> [u8; 4] {
    file.export.to_be_bytes()
}

/// Returns the file that these bytes encode, in the export that the others encode; `None` if they
/// are invalid.
pub(crate) fn file_in(key: &[u8], export: &[u8]) -> Option<FileKey> {
    let export = u32::from_be_bytes(export.try_into().ok()?);
    file(key).map(|file| FileKey { export, ..file })
}

/// Returns the file that these bytes encode; `None` if they contain no valid handle.
pub(crate) fn file(key: &[u8]) -> Option<FileKey> {
    let (volume, handle) = key.split_first_chunk()?;
    let handle = Handle::new(handle).ok()?;
    Some(FileKey { volume: u64::from_be_bytes(*volume), export: 0, handle })
}
