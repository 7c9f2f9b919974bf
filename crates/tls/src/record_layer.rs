use std::collections::VecDeque;

use rustls::crypto::cipher::{
    InboundOpaqueMessage, MessageDecrypter, MessageEncrypter, OutboundChunks, OutboundPlainMessage,
};
use rustls::kernel::KernelConnection;
use rustls::server::ServerConnectionData;
use rustls::{
    AlertDescription, ConnectionTrafficSecrets, ContentType, Error, ExtractedSecrets,
    InvalidMessage, PeerMisbehaved, ProtocolVersion, Tls13CipherSuite,
};

use crate::limits::{EMPTY_RECORDS_MAX, KEY_UPDATES_MAX};

/// Most bytes of data in one record (RFC 8446, 5.1).
pub const RECORD_DATA_BYTES_MAX: usize = 1 << 14;

/// Bytes before the encrypted part of a record: its type, version and length.
pub const RECORD_HEADER_BYTES: usize = 5;

/// Most bytes of a record with its header: the data, and 256 bytes for cipher and padding.
pub const RECORD_BYTES_MAX: usize = RECORD_HEADER_BYTES + RECORD_DATA_BYTES_MAX + 256;

/// The head of a handshake message KeyUpdate, type 24 (RFC 8446, 4.6.3). Its only byte follows,
/// which is 1 if the peer must update its keys, too.
const KEY_UPDATE: [u8; 4] = [24, 0, 0, 1];

/// The alert close_notify, with which a connection ends without an error.
const CLOSE_NOTIFY: [u8; 2] = [1, 0];

/// The keys of a connection after its handshake: it decrypts and encrypts records, and has no
/// socket. The keys come from rustls, which also derives the next ones after a KeyUpdate.
pub struct RecordLayer {
    kernel: KernelConnection<ServerConnectionData>,
    suite: &'static Tls13CipherSuite,
    sealer: Sealer,
    opener: Opener,
    /// True if the peer requested new keys and was not answered yet.
    owes_key_update: bool,
    /// KeyUpdates and empty records that the peer may still send before it must send data.
    key_updates_left: u32,
    empty_records_left: u32,
}

struct Sealer {
    cipher: Box<dyn MessageEncrypter>,
    sequence: u64,
}

struct Opener {
    cipher: Box<dyn MessageDecrypter>,
    sequence: u64,
}

/// The content of a record.
#[derive(Debug, PartialEq, Eq)]
pub enum RecordContent<'a> {
    /// Data; empty for the record of a KeyUpdate.
    Data(&'a [u8]),
    /// The peer has ended its stream.
    Closed,
}

impl RecordLayer {
    pub(crate) fn new(
        secrets: ExtractedSecrets,
        kernel: KernelConnection<ServerConnectionData>,
    ) -> Result<Self, Error> {
        let suite = kernel.negotiated_cipher_suite().tls13();
        let suite = suite.ok_or_else(|| Error::General("no cipher suite of TLS 1.3".into()))?;
        let (sealer, opener) = (Sealer::new(suite, secrets.tx), Opener::new(suite, secrets.rx));
        Ok(Self {
            kernel,
            suite,
            sealer,
            opener,
            owes_key_update: false,
            key_updates_left: KEY_UPDATES_MAX,
            empty_records_left: EMPTY_RECORDS_MAX,
        })
    }

    /// Decrypts a whole record in place.
    ///
    /// # Errors
    /// The record was not made by the peer, or is not allowed after a handshake. The connection
    /// cannot be used any longer.
    pub fn open<'b>(&mut self, record: &'b mut [u8]) -> Result<RecordContent<'b>, Error> {
        let Some((header, sealed)) = record.split_at_mut_checked(RECORD_HEADER_BYTES) else {
            return Err(Error::InvalidMessage(InvalidMessage::MessageTooShort));
        };
        if header.first() != Some(&u8::from(ContentType::ApplicationData)) {
            return Err(PeerMisbehaved::IllegalMiddleboxChangeCipherSpec.into());
        }
        let (kind, version) = (ContentType::ApplicationData, ProtocolVersion::TLSv1_2);
        let sealed = InboundOpaqueMessage::new(kind, version, sealed);
        let opened = self.opener.cipher.decrypt(sealed, self.opener.sequence)?;
        self.opener.sequence += 1;
        match opened.typ {
            ContentType::ApplicationData => {
                self.note_data(opened.payload)?;
                Ok(RecordContent::Data(opened.payload))
            }
            ContentType::Handshake => {
                self.update(opened.payload).map(|()| RecordContent::Data(&[]))
            }
            ContentType::Alert => end(opened.payload),
            _ => Err(unexpected()),
        }
    }

    /// Encrypts data, at most [`RECORD_DATA_BYTES_MAX`] in each record, and appends the records to
    /// `out`.
    ///
    /// # Errors
    /// The keys have reached their limit, which takes more bytes than anybody sends.
    pub fn seal(&mut self, data: &[u8], out: &mut VecDeque<Vec<u8>>) -> Result<(), Error> {
        self.answer(out)?;
        for part in data.chunks(RECORD_DATA_BYTES_MAX) {
            if self.sealer.sequence >= self.suite.common.confidentiality_limit {
                self.owes_key_update = true;
                self.answer(out)?;
            }
            out.push_back(self.sealer.seal(ContentType::ApplicationData, part)?);
        }
        Ok(())
    }

    /// Appends the record of a pending KeyUpdate, if there is one.
    ///
    /// # Errors
    /// As [`RecordLayer::seal`].
    pub fn answer(&mut self, out: &mut VecDeque<Vec<u8>>) -> Result<(), Error> {
        if !std::mem::take(&mut self.owes_key_update) {
            return Ok(());
        }
        let message = [&KEY_UPDATE[..], &[0]].concat();
        out.push_back(self.sealer.seal(ContentType::Handshake, &message)?);
        self.sealer = Sealer::new(self.suite, self.kernel.update_tx_secret()?);
        Ok(())
    }

    /// Returns the record that ends the stream.
    ///
    /// # Errors
    /// As [`RecordLayer::seal`].
    pub fn close(&mut self) -> Result<Vec<u8>, Error> {
        self.sealer.seal(ContentType::Alert, &CLOSE_NOTIFY)
    }

    /// Returns a fatal alert with the reason why a record was refused.
    ///
    /// # Errors
    /// As [`RecordLayer::seal`].
    pub fn alert(&mut self, why: &Error) -> Result<Vec<u8>, Error> {
        let description = match why {
            Error::DecryptError => AlertDescription::BadRecordMac,
            Error::PeerSentOversizedRecord => AlertDescription::RecordOverflow,
            Error::InvalidMessage(_) => AlertDescription::DecodeError,
            _ => AlertDescription::UnexpectedMessage,
        };
        self.sealer.seal(ContentType::Alert, &[2, u8::from(description)])
    }

    fn note_data(&mut self, data: &[u8]) -> Result<(), Error> {
        if !data.is_empty() {
            self.key_updates_left = KEY_UPDATES_MAX;
            self.empty_records_left = EMPTY_RECORDS_MAX;
            return Ok(());
        }
        let left = self.empty_records_left.checked_sub(1);
        self.empty_records_left = left.ok_or_else(unexpected)?;
        Ok(())
    }

    /// Handles the messages of a handshake record. Only one KeyUpdate is allowed, because
    /// certificates are requested only in the handshake.
    fn update(&mut self, messages: &[u8]) -> Result<(), Error> {
        let [head @ .., asks @ 0..=1] = messages else { return Err(unexpected()) };
        if *head != KEY_UPDATE {
            return Err(unexpected());
        }
        let left = self.key_updates_left.checked_sub(1);
        self.key_updates_left = left.ok_or(PeerMisbehaved::TooManyKeyUpdateRequests)?;
        self.opener = Opener::new(self.suite, self.kernel.update_rx_secret()?);
        self.owes_key_update |= *asks == 1;
        Ok(())
    }
}

impl Sealer {
    fn new(suite: &Tls13CipherSuite, (sequence, secrets): (u64, ConnectionTrafficSecrets)) -> Self {
        let (key, iv) = parts(secrets);
        Self { cipher: suite.aead_alg.encrypter(key, iv), sequence }
    }

    fn seal(&mut self, typ: ContentType, content: &[u8]) -> Result<Vec<u8>, Error> {
        let (version, payload) = (ProtocolVersion::TLSv1_2, OutboundChunks::Single(content));
        let plain = OutboundPlainMessage { typ, version, payload };
        let sealed = self.cipher.encrypt(plain, self.sequence)?;
        self.sequence += 1;
        Ok(sealed.encode())
    }
}

impl Opener {
    fn new(suite: &Tls13CipherSuite, (sequence, secrets): (u64, ConnectionTrafficSecrets)) -> Self {
        let (key, iv) = parts(secrets);
        Self { cipher: suite.aead_alg.decrypter(key, iv), sequence }
    }
}

/// The length of the first record of a stream with its header, if the header has arrived.
pub fn record_bytes(stream: &[u8]) -> Result<Option<usize>, Error> {
    // Types from change_cipher_spec to application_data; the version is always 3.1 or 3.3.
    if stream.first().is_some_and(|kind| !(20..=23).contains(kind)) {
        return Err(Error::InvalidMessage(InvalidMessage::InvalidContentType));
    }
    if stream.get(1).is_some_and(|major| *major != 3) {
        return Err(Error::InvalidMessage(InvalidMessage::UnknownProtocolVersion));
    }
    let Some([_, _, _, high, low]) = stream.first_chunk() else { return Ok(None) };
    let bytes = RECORD_HEADER_BYTES + usize::from(u16::from_be_bytes([*high, *low]));
    if bytes > RECORD_BYTES_MAX {
        return Err(Error::PeerSentOversizedRecord);
    }
    Ok(Some(bytes))
}

fn parts(
    secrets: ConnectionTrafficSecrets,
) -> (rustls::crypto::cipher::AeadKey, rustls::crypto::cipher::Iv) {
    use ConnectionTrafficSecrets::{Aes128Gcm, Aes256Gcm, Chacha20Poly1305};
    match secrets {
        Aes128Gcm { key, iv } | Aes256Gcm { key, iv } | Chacha20Poly1305 { key, iv } => (key, iv),
        _ => unreachable!("these are the ciphers of TLS 1.3"),
    }
}

/// Handles an alert of the peer: the end of its stream, or an error.
fn end<'a>(alert: &[u8]) -> Result<RecordContent<'a>, Error> {
    match alert {
        [_, 0] => Ok(RecordContent::Closed),
        [_, description] => Err(Error::AlertReceived(AlertDescription::from(*description))),
        _ => Err(unexpected()),
    }
}

fn unexpected() -> Error {
    Error::InvalidMessage(InvalidMessage::UnexpectedMessage("after the handshake"))
}
