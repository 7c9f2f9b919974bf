use comity_proto::nfs4::{
    self, ChannelAttrs4, ClientOwner4, CompoundHead, CompoundResultHead, CreateSession4args,
    CreateSession4resok, ExchangeId4args, ExchangeId4resok, Nfsstat4, Sequence4args, Sessionid4,
    StateProtect4a, operation as op,
};
use comity_xdr::{Counted, Decode, Decoder, Encode, Encoder, Opaque};

use crate::TestServer;

/// Bytes of a reply before its results: record mark, and the header of an accepted call.
const HEADER_BYTES: usize = 28;

/// A session, and how often its only slot was used.
#[derive(Clone, Copy)]
pub(crate) struct Session {
    id: Sessionid4,
    seqid: u32,
}

impl TestServer {
    /// Appends a SEQUENCE that is in turn.
    pub(crate) fn sequence(&mut self, arguments: &mut Encoder) {
        let mut session = match self.session {
            Some(session) => session,
            None => self.open_session(),
        };
        session.seqid += 1;
        self.session = Some(session);
        arguments.value(&op::SEQUENCE);
        arguments.value(&Sequence4args {
            sessionid: session.id,
            sequenceid: session.seqid,
            slotid: 0,
            highest_slotid: 0,
            cachethis: session.seqid % 2 == 0,
        });
    }

    fn open_session(&mut self) -> Session {
        let clientowner = ClientOwner4 { verifier: [1; 8], id: Opaque(b"fuzz") };
        let state_protect = StateProtect4a::None;
        let args = ExchangeId4args { clientowner, flags: 0, state_protect, client_impl_id: None };
        let answer = self.alone(op::EXCHANGE_ID, &args);
        let known: ExchangeId4resok<'_> = result(&answer);
        let channel = ChannelAttrs4 {
            headerpadsize: 0,
            maxrequestsize: 1 << 20,
            maxresponsesize: 1 << 20,
            maxresponsesize_cached: 1 << 13,
            maxoperations: 64,
            maxrequests: 1,
            rdma_ird: None,
        };
        let answer = self.alone(
            op::CREATE_SESSION,
            &CreateSession4args {
                clientid: known.clientid,
                sequence: known.sequenceid,
                flags: 0,
                fore_chan: channel,
                back_chan: channel,
                cb_program: 0x4000_0000,
                sec_parms: Counted(Vec::new()),
            },
        );
        Session { id: result::<CreateSession4resok>(&answer).sessionid, seqid: 0 }
    }

    /// Sends a COMPOUND of one operation; its whole reply.
    fn alone(&mut self, number: u32, args: &impl Encode) -> Vec<u8> {
        let mut call = Encoder::new();
        call.value(&CompoundHead { tag: Opaque(b""), minorversion: 1, operations: 1 });
        call.value(&number);
        call.value(args);
        self.call((nfs4::PROGRAM, 4), nfs4::procedure::COMPOUND, call.bytes())
    }
}

fn result<'a, T: Decode<'a>>(reply: &'a [u8]) -> T {
    let mut decoder = Decoder::new(&reply[HEADER_BYTES..]);
    let head: CompoundResultHead<'_> = decoder.value().expect("a COMPOUND's results");
    assert_eq!(head.status, Nfsstat4::Ok);
    let (_, status) = (decoder.value::<u32>(), decoder.value::<Nfsstat4>());
    assert_eq!(status, Ok(Nfsstat4::Ok));
    decoder.value().expect("the body of a result")
}
