use comity_proto::nfs4::{CompoundResultHead, Nfsstat4};
use comity_xdr::{Decode, Decoder, Malformed};

use crate::rpc::{RpcRefusal, results_at};

/// The reply to a COMPOUND.
#[derive(Debug)]
pub(crate) struct CompoundReply {
    bytes: Vec<u8>,
    /// The status of the last operation that was executed.
    pub(crate) status: Nfsstat4,
    /// Number of results, that of SEQUENCE included.
    pub(crate) count: u32,
    /// The offset of the first result that has not been read.
    at: usize,
}

/// The reason why an operation has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpFailure {
    /// The server returned this error.
    Status(Nfsstat4),
    /// The bytes are not a result of this operation.
    Malformed(Malformed),
}

impl From<Malformed> for OpFailure {
    fn from(reason: Malformed) -> Self {
        Self::Malformed(reason)
    }
}

impl CompoundReply {
    /// Reads the head of the reply.
    ///
    /// # Errors
    /// [`RpcRefusal`] if the server refused the call or the bytes are malformed.
    pub(crate) fn parse(bytes: Vec<u8>) -> Result<Self, RpcRefusal> {
        let at = results_at(&bytes)?;
        let mut decoder = Decoder::new(bytes.get(at..).unwrap_or_default());
        let head: CompoundResultHead<'_> = decoder.value()?;
        let (status, count, rest) = (head.status, head.results, decoder.rest().len());
        let at = bytes.len() - rest;
        Ok(Self { bytes, status, count, at })
    }

    /// Reads the first result and removes it.
    pub(crate) fn first<T>(&mut self, operation: u32) -> Result<T, OpFailure>
    where
        T: for<'a> Decode<'a>,
    {
        let mut results = self.results();
        let value = results.next(operation);
        self.at = self.bytes.len() - results.0.rest().len();
        value
    }

    /// The results that have not been removed.
    pub(crate) fn results(&self) -> OpResults<'_> {
        OpResults(Decoder::new(self.bytes.get(self.at..).unwrap_or_default()))
    }
}

/// Results of operations, in order.
#[derive(Debug, Clone)]
pub(crate) struct OpResults<'a>(Decoder<'a>);

impl<'a> OpResults<'a> {
    /// Reads the next result, which must be of this operation.
    pub(crate) fn next<T: Decode<'a>>(&mut self, operation: u32) -> Result<T, OpFailure> {
        self.status(operation)?;
        Ok(self.0.value()?)
    }

    /// Reads the status of the next result, which must be of this operation.
    ///
    /// # Errors
    /// [`OpFailure`]; the bytes after a status other than OK are left unread.
    pub(crate) fn status(&mut self, operation: u32) -> Result<(), OpFailure> {
        let found: u32 = self.0.value()?;
        if found != operation {
            return Err(Malformed::Discriminant { of: "nfs_resop4", found }.into());
        }
        match self.0.value()? {
            Nfsstat4::Ok => Ok(()),
            status => Err(OpFailure::Status(status)),
        }
    }

    /// Reads another value of the same result.
    pub(crate) fn body<T: Decode<'a>>(&mut self) -> Result<T, Malformed> {
        self.0.value()
    }
}

#[cfg(test)]
mod tests {
    use comity_proto::nfs4::operation as op;
    use comity_rpc::{ReplyVerifier, accepted};
    use comity_xdr::{Encoder, Opaque};

    use super::*;

    fn reply(results: &[(u32, Nfsstat4, u32)]) -> CompoundReply {
        let mut encoder = Encoder::new();
        accepted::success(&mut encoder, 1, &ReplyVerifier::Empty);
        let status = results.last().unwrap().1;
        let results_count = results.len() as u32;
        encoder.value(&CompoundResultHead { status, tag: Opaque(b"t"), results: results_count });
        for (operation, status, body) in results {
            encoder.value(operation);
            encoder.value(status);
            if *status == Nfsstat4::Ok {
                encoder.value(body);
            }
        }
        CompoundReply::parse(encoder.bytes().to_vec()).unwrap()
    }

    #[test]
    fn results_are_read_in_order_up_to_the_failure() {
        let mut reply = reply(&[(op::SEQUENCE, Nfsstat4::Ok, 7), (op::LOOKUP, Nfsstat4::NoEnt, 0)]);
        assert_eq!((reply.status, reply.count), (Nfsstat4::NoEnt, 2));
        assert_eq!(reply.first::<u32>(op::SEQUENCE), Ok(7));
        let mut results = reply.results();
        let failed = results.next::<u32>(op::LOOKUP);
        assert_eq!(failed, Err(OpFailure::Status(Nfsstat4::NoEnt)));
        assert!(matches!(results.next::<u32>(op::GETFH), Err(OpFailure::Malformed(_))));
    }

    #[test]
    fn the_result_of_another_operation_is_refused() {
        let mut reply = reply(&[(op::GETFH, Nfsstat4::Ok, 7)]);
        let found = reply.first::<u32>(op::SEQUENCE);
        assert!(matches!(found, Err(OpFailure::Malformed(_))), "{found:?}");
    }
}
