use anyhow::{Result, ensure};
use comity_proto::nfs4::{CompoundHead, CompoundResultHead, Nfsstat4, operation};
use comity_xdr::{Decoder, Encode, Encoder, Opaque};

/// A COMPOUND of minor version 1 that is being written.
#[derive(Default)]
pub struct Compound {
    operations: Encoder,
    count: u32,
}

impl Compound {
    /// One without operations.
    #[must_use]
    pub fn new() -> Self {
        Self { operations: Encoder::new(), count: 0 }
    }

    /// Appends an operation with its arguments.
    #[must_use]
    pub fn then(mut self, number: u32, arguments: &impl Encode) -> Self {
        self.operations.value(&number);
        self.operations.value(arguments);
        self.count += 1;
        self
    }

    /// Appends PUTFH.
    #[must_use]
    pub fn at(self, handle: &[u8]) -> Self {
        let handle: comity_proto::nfs4::NfsFh4<'_> = Opaque(handle);
        self.then(operation::PUTFH, &handle)
    }

    /// Puts another COMPOUND's operations behind these.
    #[must_use]
    pub(super) fn and(mut self, other: &Self) -> Self {
        self.operations.raw(other.operations.bytes());
        self.count += other.count;
        self
    }
}

impl Encode for Compound {
    fn encode(&self, encoder: &mut Encoder) {
        let operations = self.count;
        encoder.value(&CompoundHead { tag: Opaque(b""), minorversion: 1, operations });
        encoder.raw(self.operations.bytes());
    }
}

/// The results of a COMPOUND, read one after the other.
pub struct Results<'a> {
    rest: Decoder<'a>,
    status: Nfsstat4,
}

impl<'a> Results<'a> {
    /// Of the bytes behind the RPC header of a reply.
    ///
    /// # Errors
    /// They are no results.
    pub fn of(results: &'a [u8]) -> Result<Self> {
        let mut rest = Decoder::new(results);
        let status = rest.value::<CompoundResultHead<'_>>()?.status;
        Ok(Self { rest, status })
    }

    /// How the COMPOUND ended.
    #[must_use]
    pub const fn status(&self) -> Nfsstat4 {
        self.status
    }

    /// The result of the next operation, which must be this one and OK.
    ///
    /// # Errors
    /// Another operation, or one that failed.
    pub fn next(&mut self, number: u32) -> Result<&mut Decoder<'a>> {
        let status = self.next_status(number)?;
        ensure!(status == Nfsstat4::Ok, "operation {number} is answered {status:?}");
        Ok(&mut self.rest)
    }

    /// Passes by a result without a body, of whichever operation.
    pub(super) fn next_any(&mut self) -> Result<()> {
        let (number, status) = (self.rest.value::<u32>()?, self.rest.value::<Nfsstat4>()?);
        ensure!(status == Nfsstat4::Ok, "operation {number} is answered {status:?}");
        Ok(())
    }

    /// The status of the next operation, which must be this one.
    ///
    /// # Errors
    /// Another operation, or the end.
    pub fn next_status(&mut self, number: u32) -> Result<Nfsstat4> {
        let found = self.rest.value::<u32>()?;
        ensure!(found == number, "a result of operation {found} instead of {number}");
        Ok(self.rest.value()?)
    }
}
