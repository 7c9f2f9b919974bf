//! A session of a client, for tests that need one and test something else.

use comity_proto::nfs4::{
    ChannelAttrs4, ClientOwner4, CompoundHead, CompoundResultHead, CreateSession4args,
    CreateSession4resok, ExchangeId4args, ExchangeId4resok, Nfsstat4, Sequence4args, Sessionid4,
    StateProtect4a, create_session, operation as op,
};
use comity_xdr::{Counted, Decode, Decoder, Encode, Encoder, Opaque};

use crate::world::World;

pub(crate) struct Session {
    id: Sessionid4,
    seqid: u32,
}

impl Session {
    pub(crate) fn open(world: &World, minor: u32) -> Self {
        Self::open_for(world, minor, 1 << 21)
    }

    /// A session of a client of this name.
    pub(crate) fn of(world: &World, minor: u32, name: &[u8]) -> Self {
        Self::open_as(world, minor, (name, 1 << 21), 0)
    }

    /// A session whose replies have at most `maxresponsesize` bytes.
    pub(crate) fn open_for(world: &World, minor: u32, maxresponsesize: u32) -> Self {
        Self::open_as(world, minor, (b"transcript", maxresponsesize), 0)
    }

    /// A session of a client of this name that can be called back.
    pub(crate) fn called_back(world: &World, minor: u32, name: &[u8]) -> Self {
        Self::open_as(world, minor, (name, 1 << 21), create_session::CONN_BACK_CHAN)
    }

    fn open_as(
        world: &World,
        minor: u32,
        (name, maxresponsesize): (&[u8], u32),
        session_flags: u32,
    ) -> Self {
        let clientowner = ClientOwner4 { verifier: *b"thislife", id: Opaque(name) };
        let (flags, state_protect) = (0, StateProtect4a::None);
        let known = alone(
            world,
            minor,
            op::EXCHANGE_ID,
            &ExchangeId4args { clientowner, flags, state_protect, client_impl_id: None },
        );
        let known: ExchangeId4resok<'_> = result(&known);
        let channel = ChannelAttrs4 {
            headerpadsize: 0,
            maxrequestsize: 1 << 21,
            maxresponsesize,
            maxresponsesize_cached: 1 << 16,
            maxoperations: 64,
            maxrequests: 8,
            rdma_ird: None,
        };
        let made = alone(
            world,
            minor,
            op::CREATE_SESSION,
            &CreateSession4args {
                clientid: known.clientid,
                sequence: known.sequenceid,
                flags: session_flags,
                fore_chan: channel,
                back_chan: channel,
                cb_program: 0x4000_0000,
                sec_parms: Counted(Vec::new()),
            },
        );
        let made: CreateSession4resok = result(&made);
        Self { id: made.sessionid, seqid: 0 }
    }

    /// Lets the client be called back; it has nothing to reclaim.
    pub(crate) fn call_back(&self, world: &World) {
        let engine = &world.engine;
        let session = engine.session(&comity_state::SessionId(self.id)).unwrap();
        engine.callbacks_work(session.client());
        let client = session.client();
        engine.reclaim_complete(std::time::Duration::ZERO, client, client.caller()).unwrap();
    }

    pub(crate) const fn id(&self) -> Sessionid4 {
        self.id
    }

    /// The sequence number of the last request of the first slot.
    pub(crate) const fn seqid(&self) -> u32 {
        self.seqid
    }

    /// Appends a SEQUENCE for the first slot.
    pub(crate) fn sequence(&mut self, call: &mut Encoder) {
        self.seqid += 1;
        call.value(&op::SEQUENCE);
        call.value(&Sequence4args {
            sessionid: self.id,
            sequenceid: self.seqid,
            slotid: 0,
            highest_slotid: 0,
            cachethis: false,
        });
    }
}

/// Sends a COMPOUND of one operation.
fn alone(world: &World, minorversion: u32, number: u32, args: &impl Encode) -> Vec<u8> {
    let mut call = Encoder::new();
    call.value(&CompoundHead { tag: Opaque(b""), minorversion, operations: 1 });
    call.value(&number);
    call.value(args);
    world.compound(call.bytes()).0
}

fn result<'a, T: Decode<'a>>(answer: &'a [u8]) -> T {
    let mut decoder = Decoder::new(answer);
    let head: CompoundResultHead<'_> = decoder.value().unwrap();
    assert_eq!(head.status, Nfsstat4::Ok);
    let (_, status) = (decoder.value::<u32>().unwrap(), decoder.value::<Nfsstat4>().unwrap());
    assert_eq!(status, Nfsstat4::Ok);
    decoder.value().unwrap()
}
