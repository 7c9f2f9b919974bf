use std::time::Instant;

use comity_xdr::{Decode, Decoder, Encode, Encoder, Malformed};

use crate::OpaqueAuth;

/// The only version of RPC in use.
pub(crate) const RPC_VERSION: u32 = 2;
const CALL: u32 = 0;

/// The header of a call: `call_body` (RFC 5531, 9).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallHeader<'a> {
    /// The number by which the client matches the reply to the call.
    pub xid: u32,
    /// Program number.
    pub program: u32,
    /// Version of the program.
    pub version: u32,
    /// Procedure number.
    pub procedure: u32,
    /// The identity that the caller claims.
    pub credential: OpaqueAuth<'a>,
    /// The proof of that identity.
    pub verifier: OpaqueAuth<'a>,
}

/// A call: its header, and the arguments, which are not decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call<'a> {
    /// The header.
    pub header: CallHeader<'a>,
    /// The arguments: the rest of the record.
    pub arguments: &'a [u8],
    /// The time at which the call began, if the clock was read for it; then the clock need not be
    /// read again.
    pub begun: Option<Instant>,
}

/// Why a record is not a valid call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unparsed {
    /// The record has no valid header, or is a reply: the rest of the stream cannot be trusted.
    #[error("record is no RPC call")]
    NotACall,
    /// The call is of another version of RPC.
    #[error("RPC version {version} is not spoken")]
    RpcVersion {
        /// The xid of the reply.
        xid: u32,
        /// The version asked for.
        version: u32,
    },
    /// The header is truncated or invalid.
    #[error("RPC header: {reason}")]
    Header {
        /// The xid of the reply.
        xid: u32,
        /// The error in the header.
        reason: Malformed,
    },
}

impl<'a> Call<'a> {
    /// Reads the header of a record.
    ///
    /// # Errors
    /// [`Unparsed`], with the xid if an error reply is possible.
    pub fn parse(record: &'a [u8]) -> Result<Self, Unparsed> {
        let mut decoder = Decoder::new(record);
        let xid = match decoder.words() {
            Ok([xid, CALL]) => xid,
            _ => return Err(Unparsed::NotACall),
        };
        match decoder.value::<u32>() {
            Ok(RPC_VERSION) => {}
            Ok(version) => return Err(Unparsed::RpcVersion { xid, version }),
            Err(reason) => return Err(Unparsed::Header { xid, reason }),
        }
        let header = body(xid, &mut decoder).map_err(|reason| Unparsed::Header { xid, reason })?;
        Ok(Self { header, arguments: decoder.rest(), begun: None })
    }

    /// Decodes the arguments, which must fill the rest of the record.
    ///
    /// # Errors
    /// [`Malformed`]; the reply must be GARBAGE_ARGS.
    pub fn arguments<T: Decode<'a>>(&self) -> Result<T, Malformed> {
        Decoder::whole(self.arguments)
    }
}

fn body<'a>(xid: u32, decoder: &mut Decoder<'a>) -> Result<CallHeader<'a>, Malformed> {
    let [program, version, procedure] = decoder.words()?;
    let (credential, verifier) = (decoder.value()?, decoder.value()?);
    Ok(CallHeader { xid, program, version, procedure, credential, verifier })
}

impl Encode for CallHeader<'_> {
    fn encode(&self, encoder: &mut Encoder) {
        for word in [self.xid, CALL, RPC_VERSION, self.program, self.version, self.procedure] {
            encoder.value(&word);
        }
        encoder.value(&self.credential);
        encoder.value(&self.verifier);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: CallHeader<'_> = CallHeader {
        xid: 7,
        program: 100_003,
        version: 3,
        procedure: 1,
        credential: OpaqueAuth::NONE,
        verifier: OpaqueAuth::NONE,
    };

    fn record(header: &CallHeader<'_>) -> Vec<u8> {
        let mut encoder = Encoder::new();
        encoder.value(header);
        encoder.bytes().to_vec()
    }

    #[test]
    fn a_call_is_its_header_and_the_rest() {
        let mut bytes = record(&HEADER);
        bytes.extend([1, 2, 3, 4]);
        let call = Call { header: HEADER, arguments: &[1, 2, 3, 4], begun: None };
        assert_eq!(Call::parse(&bytes), Ok(call));
    }

    #[test]
    fn another_rpc_version_is_told_with_its_xid() {
        let mut bytes = record(&HEADER);
        bytes[11] = 3;
        assert_eq!(Call::parse(&bytes), Err(Unparsed::RpcVersion { xid: 7, version: 3 }));
    }

    #[test]
    fn a_reply_is_no_call() {
        let mut bytes = record(&HEADER);
        bytes[7] = 1;
        assert_eq!(Call::parse(&bytes), Err(Unparsed::NotACall));
        assert_eq!(Call::parse(&bytes[..3]), Err(Unparsed::NotACall));
    }

    #[test]
    fn a_credential_above_400_bytes_is_refused() {
        let mut bytes = record(&HEADER);
        bytes[30] = 0xff;
        assert!(matches!(Call::parse(&bytes), Err(Unparsed::Header { xid: 7, .. })));
    }
}
