//! The attackers, and the sessions that they have of their own.

use comity_proto::nfs4::{
    ClientOwner4, CreateSession4resok, ExchangeId4args, ExchangeId4resok, Setclientid4args,
    SetclientidConfirm4, StateProtect4a, operation as op,
};
use comity_xdr::{Decode, Decoder, Opaque};

use crate::attacks::{self, Attack, Session};
use crate::victim::{HOST, Known, OWNERS, USER, nobody, sequence, session_of};
use crate::wire::{Call, Source, Wire, compound, operation};

/// Bytes of a reply before the number of its first result.
const OPERATIONS_AT: usize = 36;

pub(crate) struct Attacker {
    port: u16,
    source: Source,
    wire: Wire,
    /// A session of its own and the number of its last request, if the server lets it have one.
    own: Option<([u8; 16], u32)>,
}

/// A host that no export is offered to.
const UNLISTED: [u8; 4] = [127, 0, 0, 2];

impl Attacker {
    /// One of each kind.
    pub(crate) fn all(port: u16) -> Vec<Self> {
        let sources = [
            Source { address: UNLISTED, low_port: true, uid: USER },
            Source { address: UNLISTED, low_port: false, uid: 0 },
            Source { address: HOST, low_port: false, uid: USER },
            Source { address: [127, 0, 0, 3], low_port: true, uid: 1000 },
        ];
        sources.into_iter().map(|source| Self::new(port, source)).collect()
    }

    fn new(port: u16, source: Source) -> Self {
        let wire = Wire::connect(port, source);
        let mut attacker = Self { port, source, wire, own: None };
        attacker.own = attacker.introduce(b"attacker").map(|session| (session, 0));
        assert_eq!(attacker.own.is_some(), attacker.is_listed(), "whether it is let in");
        attacker
    }

    const fn is_listed(&self) -> bool {
        self.source.uid == 1000
    }

    /// Asks everything.
    pub(crate) fn attack(&mut self, known: &Known) {
        self.usurp(known);
        let session = if self.is_listed() { Session::Own } else { Session::OfVictim };
        for attack in attacks::all(known, session) {
            match attack {
                Attack::Call(call) => drop(self.ask(&call)),
                Attack::InOwnSession(minor, operations) => {
                    let Some((session, number)) = &mut self.own else { continue };
                    *number += 1;
                    let first = sequence(*session, *number);
                    let call = compound(minor, &[&[first], &operations[..]].concat());
                    self.ask(&call);
                }
            }
        }
    }

    /// Makes a call; connects anew if the server has hung up, and for each call from the unlisted
    /// host, which is answered one call a second on a connection.
    fn ask(&mut self, call: &Call) -> Option<Vec<u8>> {
        if self.source.address == UNLISTED {
            self.wire = Wire::connect(self.port, self.source);
        }
        let reply = self.wire.ask(call);
        if reply.is_none() {
            self.wire = Wire::connect(self.port, self.source);
        }
        reply
    }

    /// Goes by the victim's owner strings as far as the server lets it. The name of a client
    /// that holds nothing is free for another principal (RFC 7530, 9.1.1; RFC 8881, 18.35.4), so
    /// that is left out.
    fn usurp(&mut self, known: &Known) {
        if known.holds[0] {
            self.announce(OWNERS[0]);
        }
        if known.holds[1] {
            assert_eq!(self.introduce(OWNERS[1]), None, "a session in the victim's name");
        }
    }

    /// SETCLIENTID and SETCLIENTID_CONFIRM.
    fn announce(&mut self, owner: &[u8]) {
        let client = ClientOwner4 { verifier: *b"attacker", id: Opaque(owner) };
        let args = Setclientid4args { client, callback: nobody(), callback_ident: 1 };
        let reply = self.ask(&compound(0, &[operation(op::SETCLIENTID, &args)]));
        let told = body::<SetclientidConfirm4>(reply.as_deref());
        assert_eq!(told, None, "the victim's name is taken");
    }

    /// EXCHANGE_ID and CREATE_SESSION: the session, if there is one.
    fn introduce(&mut self, owner: &[u8]) -> Option<[u8; 16]> {
        let clientowner = ClientOwner4 { verifier: *b"attacker", id: Opaque(owner) };
        let (flags, state_protect) = (0, StateProtect4a::None);
        let args = ExchangeId4args { clientowner, flags, state_protect, client_impl_id: None };
        let reply = self.ask(&compound(1, &[operation(op::EXCHANGE_ID, &args)]));
        let known: ExchangeId4resok<'_> = body(reply.as_deref())?;
        let args = session_of(known.clientid, known.sequenceid);
        let reply = self.ask(&compound(1, &[operation(op::CREATE_SESSION, &args)]));
        body::<CreateSession4resok>(reply.as_deref()).map(|made| made.sessionid)
    }
}

/// The body of the first result, if that is OK.
fn body<'r, T: Decode<'r>>(reply: Option<&'r [u8]>) -> Option<T> {
    let mut results = Decoder::new(reply?.get(OPERATIONS_AT..)?);
    let _: u32 = results.value().ok()?;
    if results.value::<u32>() != Ok(0) {
        return None;
    }
    results.value().ok()
}
