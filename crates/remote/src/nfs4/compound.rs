use std::io::{Error, Result as IoResult};

use comity_proto::nfs4::{
    CompoundHead, CompoundResultHead, NfsFh4, Nfsstat4, Sequence4args, Sequence4resok,
    operation as op,
};
use comity_xdr::{Decode, Decoder, Encode, Encoder, Opaque};

use super::failure::{malformed, numbered, refused};
use crate::rpc::RESULTS_AT;

/// The minor version in use.
const MINOR: u32 = 1;

/// Operations that must not be executed twice: the server is asked to cache the reply for a retry,
/// as Linux's client does.
const ONCE: [u32; 7] =
    [op::CLOSE, op::CREATE, op::DELEGRETURN, op::LOCK, op::LOCKU, op::OPEN, op::REMOVE];

/// The operations of a COMPOUND, without SEQUENCE.
#[derive(Debug, Default)]
pub struct Compound {
    body: Encoder,
    operations: u32,
    /// True if the server is asked to cache the reply.
    pub(super) is_kept: bool,
}

impl Compound {
    /// Returns a COMPOUND without operations.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a COMPOUND that begins with PUTFH of a handle.
    pub fn on(handle: &[u8]) -> Self {
        let handle: NfsFh4<'_> = Opaque(handle);
        Self::new().with(op::PUTFH, &handle)
    }

    /// Adds an operation at the end.
    pub fn with(mut self, operation: u32, arguments: &impl Encode) -> Self {
        self.body.value(&operation);
        self.body.value(arguments);
        self.operations += 1;
        self.is_kept |= ONCE.contains(&operation);
        self
    }

    /// Adds an operation without arguments at the end.
    pub fn then(self, operation: u32) -> Self {
        self.with(operation, &())
    }
}

/// The arguments of a COMPOUND: its operations, after SEQUENCE if it has a slot.
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

/// A reply to a COMPOUND, with its call.
#[derive(Debug)]
pub struct Reply {
    /// The record of the call, with its mark but without a payload.
    pub call: Vec<u8>,
    /// The record of the reply, without its mark.
    pub bytes: Vec<u8>,
    /// The status of the first operation that failed, or OK.
    pub status: Nfsstat4,
    /// Offset of the results that have not been read.
    at: usize,
}

impl Reply {
    pub(super) fn new(call: Vec<u8>, bytes: Vec<u8>) -> IoResult<Self> {
        let mut decoder = Decoder::new(bytes.get(RESULTS_AT..).unwrap_or_default());
        let head: CompoundResultHead<'_> = decoder.value().map_err(malformed)?;
        let (status, at) = (head.status, bytes.len() - decoder.rest().len());
        Ok(Self { call, bytes, status, at })
    }

    /// Reads the result of SEQUENCE.
    pub(super) fn sequence(&mut self) -> IoResult<Sequence4resok> {
        let mut results = self.results();
        let sequence = results.next(op::SEQUENCE)?;
        self.at = self.bytes.len() - results.0.rest().len();
        Ok(sequence)
    }

    /// Fails if an operation failed.
    pub fn settled(self) -> IoResult<Self> {
        if self.status == Nfsstat4::Ok { Ok(self) } else { Err(refused(self.status)) }
    }

    /// Returns the results after SEQUENCE.
    pub fn results(&self) -> Results<'_> {
        Results(Decoder::new(self.bytes.get(self.at..).unwrap_or_default()))
    }

    /// Returns the results after PUTFH.
    pub fn on_object(&self) -> IoResult<Results<'_>> {
        let mut results = self.results();
        results.next::<()>(op::PUTFH)?;
        Ok(results)
    }
}

/// Results of operations, in order.
#[derive(Debug)]
pub struct Results<'a>(Decoder<'a>);

impl<'a> Results<'a> {
    /// Reads the body of the next result, which must be of this operation.
    pub fn next<T: Decode<'a>>(&mut self, operation: u32) -> IoResult<T> {
        let found: u32 = self.0.value().map_err(malformed)?;
        match self.0.value().map_err(malformed)? {
            Nfsstat4::Ok if found == operation => self.0.value().map_err(malformed),
            Nfsstat4::Ok => Err(Error::other(format!("a result of operation {found}"))),
            status => Err(numbered(status)),
        }
    }

    /// Returns whether the next result is of this operation.
    pub fn is_of(&self, operation: u32) -> bool {
        self.0.rest().starts_with(&operation.to_be_bytes())
    }
}
