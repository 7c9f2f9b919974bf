//! The state of a volume as bytes, and back (docs/formats.md, "State of a volume").

mod clients;
mod files;
mod primitive;
mod sections;
mod sessions;
mod states;
mod value;

#[cfg(test)]
mod tests;

use comity_xdr::{Decoder, Encoder, Malformed};
use siphasher::sip128::{Hasher128, SipHasher24};
use std::hash::Hasher;

use super::error::{Section, TransferError};
use super::export_volume::ExportedVolume;
use crate::{ExportedClient, Result};
use sections::{SectionReader, SectionWriter};
use value::Field;

/// The first bytes.
const MAGIC: &[u8; 8] = b"comityst";

/// The version of the format.
const VERSION: u32 = 2;

/// Bytes of the checksum.
const CHECKSUM_BYTES: usize = 16;

/// The lists of a client, each of which has a section of its own.
const LISTS: [(Section, Put, Take); 4] = [
    (Section::Sessions, |it, to| it.sessions.put(to), |it, from| read(&mut it.sessions, from)),
    (Section::Owners, |it, to| it.owners.put(to), |it, from| read(&mut it.owners, from)),
    (Section::States, |it, to| it.states.put(to), |it, from| read(&mut it.states, from)),
    (Section::Grants, |it, to| it.granted.put(to), |it, from| read(&mut it.granted, from)),
];

type Put = fn(&ExportedClient, &mut Encoder);
type Take = fn(&mut ExportedClient, &mut Decoder<'_>) -> Result<(), Malformed>;

impl ExportedVolume {
    /// Returns the volume as bytes.
    ///
    /// # Errors
    /// [`TransferError::SectionLength`]: there is more than a section may have.
    pub fn to_bytes(&self) -> Result<Vec<u8>, TransferError> {
        let mut writer = SectionWriter::new(MAGIC, VERSION);
        writer.section(Section::Volume, |to| self.volume.put(to))?;
        writer.section(Section::Clients, |to| self.clients.put(to))?;
        for (section, put, _) in LISTS {
            writer.section(section, |to| self.clients.iter().for_each(|client| put(client, to)))?;
        }
        writer.section(Section::Files, |to| self.files.put(to))?;
        let mut bytes = writer.into_bytes();
        let checksum = checksum(&bytes);
        bytes.extend_from_slice(&checksum);
        Ok(bytes)
    }

    /// Reads a volume from bytes, which another server has sent. The memory that is taken is a
    /// small multiple of the bytes. The values may still contradict each other:
    /// [`crate::Engine::import_volume`] checks that.
    ///
    /// # Errors
    /// [`TransferError`], which names the section.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, TransferError> {
        if !bytes.starts_with(MAGIC) {
            return Err(TransferError::Magic);
        }
        let (body, sum) =
            bytes.split_last_chunk::<CHECKSUM_BYTES>().ok_or(TransferError::Length)?;
        let mut reader = SectionReader::new(body.get(MAGIC.len()..).unwrap_or_default());
        let version = reader.version()?;
        if version != VERSION {
            return Err(TransferError::Version(version));
        }
        if checksum(body) != *sum {
            return Err(TransferError::Checksum);
        }
        let volume = reader.section(Section::Volume, u64::take)?;
        let mut clients = reader.section(Section::Clients, Vec::<ExportedClient>::take)?;
        for (section, _, take) in LISTS {
            let each =
                |from: &mut Decoder<'_>| clients.iter_mut().try_for_each(|it| take(it, from));
            reader.section(section, each)?;
        }
        let files = reader.section(Section::Files, Vec::take)?;
        reader.finish()?;
        Ok(Self { volume, clients, files })
    }
}

fn read<T: Field>(list: &mut Vec<T>, from: &mut Decoder<'_>) -> Result<(), Malformed> {
    *list = Vec::take(from)?;
    Ok(())
}

/// Returns the checksum of bytes: SipHash-2-4 with 128 bits and the key 0.
fn checksum(bytes: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let mut hasher = SipHasher24::new();
    hasher.write(bytes);
    hasher.finish128().as_bytes()
}
