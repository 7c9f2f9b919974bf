use std::io::{Error, Result as IoResult};

use comity_proto::nfs4::{
    CompoundHead, CompoundResultHead, NfsFh4, Nfsstat4, Sequence4args, Sequence4resok,
    operation as op,
};
use comity_xdr::{Decode, Decoder, Encode, Encoder, Malformed, Opaque};
use rustix::io::Errno;

use super::MINOR;
use crate::nfs::RESULTS_AT;

/// The operations of a COMPOUND, SEQUENCE left out.
#[derive(Debug, Default)]
pub(crate) struct Compound {
    body: Encoder,
    operations: u32,
}

impl Compound {
    /// One that begins with nothing.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// One on the object of a handle.
    pub(crate) fn on(handle: &[u8]) -> Self {
        let handle: NfsFh4<'_> = Opaque(handle);
        Self::new().with(op::PUTFH, &handle)
    }

    /// With another operation behind.
    pub(crate) fn with(mut self, operation: u32, arguments: &impl Encode) -> Self {
        self.body.value(&operation);
        self.body.value(arguments);
        self.operations += 1;
        self
    }

    /// With another that has no arguments.
    pub(crate) fn then(self, operation: u32) -> Self {
        self.with(operation, &())
    }
}

/// The arguments of a COMPOUND: its operations, in a slot if it has one.
pub(super) struct Arguments<'a>(pub(super) Option<Sequence4args>, pub(super) &'a Compound);

impl Arguments<'_> {
    /// Bytes before those of SEQUENCE: tag, minor version, number of operations, SEQUENCE's number.
    pub(super) const BEFORE_SEQUENCE: usize = 16;
}

impl Encode for Arguments<'_> {
    fn encode(&self, encoder: &mut Encoder) {
        let Self(sequence, compound) = self;
        let operations = compound.operations + u32::from(sequence.is_some());
        encoder.value(&CompoundHead { tag: Opaque(b""), minorversion: MINOR, operations });
        if let Some(sequence) = sequence {
            encoder.value(&op::SEQUENCE);
            encoder.value(sequence);
        }
        encoder.raw(compound.body.bytes());
    }
}

/// A reply to a COMPOUND.
#[derive(Debug)]
pub(crate) struct Reply {
    /// The record.
    pub(crate) bytes: Vec<u8>,
    /// Of the first operation that failed, or of all.
    pub(super) status: Nfsstat4,
    /// Where the results begin that have not been read.
    at: usize,
}

impl Reply {
    pub(super) fn new(bytes: Vec<u8>) -> IoResult<Self> {
        let mut decoder = Decoder::new(bytes.get(RESULTS_AT..).unwrap_or_default());
        let head: CompoundResultHead<'_> = decoder.value().map_err(malformed)?;
        let (status, at) = (head.status, bytes.len() - decoder.rest().len());
        Ok(Self { bytes, status, at })
    }

    /// Reads the result of SEQUENCE.
    pub(super) fn sequence(&mut self) -> IoResult<Sequence4resok> {
        let mut results = self.results();
        let sequence = results.next(op::SEQUENCE)?;
        self.at = self.bytes.len() - results.0.rest().len();
        Ok(sequence)
    }

    /// What comes behind SEQUENCE.
    pub(crate) fn results(&self) -> Results<'_> {
        Results(Decoder::new(self.bytes.get(self.at..).unwrap_or_default()))
    }

    /// Passes over the result of PUTFH.
    pub(crate) fn on_object(&self) -> IoResult<Results<'_>> {
        let mut results = self.results();
        results.next::<()>(op::PUTFH)?;
        Ok(results)
    }
}

/// Results of operations, one after the other.
#[derive(Debug)]
pub(crate) struct Results<'a>(Decoder<'a>);

impl<'a> Results<'a> {
    /// The body of the next result, which is of this operation.
    pub(crate) fn next<T: Decode<'a>>(&mut self, operation: u32) -> IoResult<T> {
        let found: u32 = self.0.value().map_err(malformed)?;
        match self.0.value().map_err(malformed)? {
            Nfsstat4::Ok if found == operation => self.0.value().map_err(malformed),
            Nfsstat4::Ok => Err(Error::other(format!("a result of operation {found}"))),
            status => Err(failure(status)),
        }
    }

    /// Whether the next result is of this operation.
    pub(crate) fn is_of(&self, operation: u32) -> bool {
        self.0.rest().starts_with(&operation.to_be_bytes())
    }
}

/// NFS4ERR numbers up to 70 are those of Unix; where Linux has others, they are translated.
pub(super) fn failure(status: Nfsstat4) -> Error {
    let errno = match status {
        Nfsstat4::NameTooLong => Errno::NAMETOOLONG,
        Nfsstat4::NotEmpty => Errno::NOTEMPTY,
        Nfsstat4::DQuot => Errno::DQUOT,
        Nfsstat4::Stale | Nfsstat4::BadHandle | Nfsstat4::FhExpired => Errno::STALE,
        Nfsstat4::NotSupp | Nfsstat4::AttrNotSupp | Nfsstat4::LockNotSupp => Errno::OPNOTSUPP,
        Nfsstat4::Denied | Nfsstat4::Locked => Errno::AGAIN,
        Nfsstat4::Deadlock => Errno::DEADLK,
        Nfsstat4::Symlink => Errno::LOOP,
        status if (status as u32) < 63 => Errno::from_raw_os_error(status as i32),
        status => return Error::other(format!("the server says {status:?}")),
    };
    errno.into()
}

/// Whether the server wants to be asked again.
pub(super) const fn is_later(status: Nfsstat4) -> bool {
    matches!(status, Nfsstat4::Delay | Nfsstat4::Grace)
}

/// What went wrong below the protocol.
pub(crate) fn broken(error: &anyhow::Error) -> Error {
    Error::other(format!("{error:#}"))
}

pub(super) fn malformed(error: Malformed) -> Error {
    Error::new(std::io::ErrorKind::InvalidData, format!("a reply that is malformed: {error}"))
}
