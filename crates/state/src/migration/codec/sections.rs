//! The sections of the bytes. Each has its kind and its length in front, so that an error names it.

use comity_xdr::{Decoder, Encoder, Malformed};

use crate::Result;
use crate::migration::error::{Section, TransferError};

impl Section {
    /// Its number in the bytes.
    const fn number(self) -> u32 {
        match self {
            Self::Volume => 1,
            Self::Clients => 2,
            Self::Sessions => 3,
            Self::Owners => 4,
            Self::States => 5,
            Self::Grants => 6,
            Self::Files => 7,
        }
    }

    /// The most bytes that it may have. The bounds of the engine (`Limits::DEFAULT`) keep it below
    /// them: 512 MiB of replies, 1 GiB of owners, states and ranges, 16,384 clients.
    const fn bytes_max(self) -> u32 {
        match self {
            Self::Volume => 8,
            Self::Clients => 128 << 20,
            Self::Sessions => 768 << 20,
            Self::Owners | Self::States => 1 << 30,
            Self::Grants => 64 << 20,
            Self::Files => 256 << 20,
        }
    }
}

/// Writes sections.
pub(super) struct SectionWriter(Encoder);

impl SectionWriter {
    pub(super) fn new(magic: &[u8], version: u32) -> Self {
        let mut encoder = Encoder::new();
        encoder.raw(magic);
        encoder.value(&version);
        Self(encoder)
    }

    pub(super) fn section(
        &mut self,
        section: Section,
        write: impl FnOnce(&mut Encoder),
    ) -> Result<(), TransferError> {
        self.0.value(&section.number());
        let length = self.0.word();
        let begin = self.0.bytes().len();
        write(&mut self.0);
        let bytes = u32::try_from(self.0.bytes().len() - begin).unwrap_or(u32::MAX);
        self.0.set(length, bytes);
        let fits = bytes <= section.bytes_max();
        if fits { Ok(()) } else { Err(TransferError::SectionLength(section)) }
    }

    pub(super) fn into_bytes(mut self) -> Vec<u8> {
        std::mem::take(self.0.bytes_mut())
    }
}

/// Reads sections.
pub(super) struct SectionReader<'a>(Decoder<'a>);

impl<'a> SectionReader<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self(Decoder::new(bytes))
    }

    pub(super) fn version(&mut self) -> Result<u32, TransferError> {
        self.0.value().map_err(|_| TransferError::Length)
    }

    /// Reads all of the next section, which must be this one.
    pub(super) fn section<T>(
        &mut self,
        section: Section,
        read: impl FnOnce(&mut Decoder<'a>) -> Result<T, Malformed>,
    ) -> Result<T, TransferError> {
        let number = self.0.value::<u32>();
        if number != Ok(section.number()) {
            return Err(TransferError::Misplaced(section));
        }
        let too_long = |_| TransferError::SectionLength(section);
        let length = self.0.length(section.bytes_max()).map_err(too_long)?;
        let mut decoder = Decoder::new(self.0.fixed(length).map_err(too_long)?);
        let value = read(&mut decoder).and_then(|value| decoder.finish().map(|()| value));
        value.map_err(|why| TransferError::Malformed(section, why))
    }

    pub(super) fn finish(&self) -> Result<(), TransferError> {
        self.0.finish().map_err(|_| TransferError::Length)
    }
}
