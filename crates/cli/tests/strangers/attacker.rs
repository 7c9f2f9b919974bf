//! The attackers and their own sessions.

use std::sync::Arc;

use comity_proto::nfs4::{
    ClientOwner4, CreateSession4resok, ExchangeId4args, ExchangeId4resok, Setclientid4args,
    SetclientidConfirm4, StateProtect4a, operation as op,
};
use comity_proto::{mount, nfs3, portmap};
use comity_xdr::{Decode, Decoder, Opaque};

use crate::attacks::{self, Attack, Standing};
use crate::keys::{HOME, KEYED, Keys};
use crate::victim::{HOST, Known, OWNERS, USER, nobody, sequence, session_of};
use crate::wire::{Call, Source, Tls, Wire, bytes, compound, operation};

/// Offsets in a reply of the results of a call, and of the first result's number in a COMPOUND.
const RESULTS_AT: usize = 24;
const OPERATIONS_AT: usize = RESULTS_AT + 12;

pub(crate) struct Attacker {
    port: u16,
    source: Source,
    tls: Option<Arc<Tls>>,
    standing: Standing,
    /// The attacker makes each call whose number in a round is a multiple of this.
    stride: usize,
    wire: Wire,
    /// The attacker's own session and the number of its last request, if the server admits it.
    own: Option<([u8; 16], u32)>,
    /// The handle of the directory that was granted to the attacker's key.
    home: Option<Vec<u8>>,
}

/// The reply status MSG_DENIED.
const DENIED: [u8; 4] = [0, 0, 0, 1];

/// A host that no export is offered to.
const UNLISTED: [u8; 4] = [127, 0, 0, 2];

/// Values of the stride: all calls, or each seventh, among which are calls of all minor versions.
const ALL: usize = 1;
const SOME: usize = 7;

impl Attacker {
    /// One attacker of each kind. Kinds that differ little from another one make only a part of the
    /// calls.
    pub(crate) fn all(port: u16, keys: &Keys) -> Vec<Self> {
        use Standing::{Granted, Listed, Refused};
        let source = |address, low_port, uid| Source { address, low_port, uid };
        let by_key = |uid| source(KEYED, false, uid);
        let kinds = [
            (source(UNLISTED, true, USER), None, Refused, ALL),
            (source(UNLISTED, false, 0), None, Refused, SOME),
            (source(HOST, false, USER), None, Refused, ALL),
            (source([127, 0, 0, 3], true, 1000), None, Listed, ALL),
            (source(KEYED, true, USER), None, Refused, SOME),
            (source(KEYED, true, USER), Some(&keys.none), Refused, SOME),
            (by_key(USER), Some(&keys.unknown), Granted, SOME),
            (by_key(USER), Some(&keys.granted), Granted, ALL),
        ];
        let new = |(source, tls, standing, stride)| {
            let attacker = Self::new(port, source, tls, standing);
            Self { stride, ..attacker }
        };
        kinds.into_iter().map(new).collect()
    }

    fn new(port: u16, source: Source, tls: Option<&Arc<Tls>>, standing: Standing) -> Self {
        let wire = Wire::connect_by(port, source, tls);
        let (tls, own, home) = (tls.cloned(), None, None);
        let mut attacker = Self { port, source, tls, standing, stride: ALL, wire, own, home };
        attacker.own = attacker.introduce(b"attacker").map(|session| (session, 0));
        assert_eq!(attacker.own.is_some(), standing != Standing::Refused, "whether it is admitted");
        attacker
    }

    /// Makes all attacks.
    pub(crate) fn attack(&mut self, known: &Known) {
        self.usurp(known);
        self.go_home(known);
        let attacks = attacks::all(known, self.standing, self.home.as_deref());
        for attack in attacks.into_iter().step_by(self.stride) {
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

    /// Looks up the directory that was granted to the attacker's key.
    fn go_home(&mut self, known: &Known) {
        let [root, ..] = known.directories.as_slice() else { return };
        if self.home.is_none() && self.standing == Standing::Granted {
            let place = [bytes(&Opaque::<64>(root)), bytes(&Opaque::<64>(HOME.as_bytes()))];
            let lookup = (nfs3::PROGRAM, 3, nfs3::procedure::LOOKUP);
            let reply = self.ask(&(lookup, place.concat())).unwrap();
            let mut results = Decoder::new(&reply[RESULTS_AT..]);
            let is_found = results.value::<u32>() == Ok(0);
            self.home = is_found.then(|| results.opaque(64).unwrap().to_vec());
        }
    }

    /// Returns whether the attacker has found the directory that was granted to its key.
    pub(crate) const fn is_at_home(&self) -> bool {
        self.home.is_some()
    }

    /// Makes a call. Connects again if the server has closed the connection. From the unlisted host
    /// each call has a new connection, because the server answers such a host one call a second on
    /// a connection.
    fn ask(&mut self, call: &Call) -> Option<Vec<u8>> {
        if self.source.address == UNLISTED {
            self.connect();
        }
        let reply = self.wire.ask(call);
        match &reply {
            None => self.connect(),
            Some(reply) if self.is_refused(call) => {
                assert_eq!(reply[8..12], DENIED, "{:?} to {:?}", call.0, self.source);
            }
            Some(_) => {}
        }
        reply
    }

    /// Returns whether the server denies a call before it reaches a program. NULL is allowed for
    /// all hosts. The programs that a mount needs first are allowed for listed hosts, whatever
    /// their port and channel.
    fn is_refused(&self, ((program, _, procedure), _): &Call) -> bool {
        let comes_before = [mount::PROGRAM, portmap::PROGRAM].contains(program);
        let is_listed = self.source.address != UNLISTED;
        self.standing == Standing::Refused && *procedure != 0 && !(comes_before && is_listed)
    }

    fn connect(&mut self) {
        self.wire = Wire::connect_by(self.port, self.source, self.tls.as_ref());
    }

    /// Uses the victim's owner strings as far as the server allows it. The name of a client without
    /// state may be taken by another principal (RFC 7530, 9.1.1; RFC 8881, 18.35.4), so that case
    /// is left out. Over TLS the same name is another client.
    fn usurp(&mut self, known: &Known) {
        let is_another = self.standing == Standing::Granted;
        if known.holds[0] {
            let is_confirmed = self.announce(OWNERS[0]);
            assert_eq!(is_confirmed, is_another, "the victim's name is taken");
        }
        if known.holds[1] {
            let session = self.introduce(OWNERS[1]);
            assert_eq!(session.is_some(), is_another, "a session in the victim's name");
        }
    }

    /// Sends SETCLIENTID and SETCLIENTID_CONFIRM; returns whether the client is confirmed.
    fn announce(&mut self, owner: &[u8]) -> bool {
        let client = ClientOwner4 { verifier: *b"attacker", id: Opaque(owner) };
        let args = Setclientid4args { client, callback: nobody(), callback_ident: 1 };
        let reply = self.ask(&compound(0, &[operation(op::SETCLIENTID, &args)]));
        let Some(told) = body::<SetclientidConfirm4>(reply.as_deref()) else { return false };
        let reply = self.ask(&compound(0, &[operation(op::SETCLIENTID_CONFIRM, &told)]));
        body::<()>(reply.as_deref()).is_some()
    }

    /// Sends EXCHANGE_ID and CREATE_SESSION; returns the session if there is one.
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

/// The body of the first result, if its status is OK.
fn body<'r, T: Decode<'r>>(reply: Option<&'r [u8]>) -> Option<T> {
    let mut results = Decoder::new(reply?.get(OPERATIONS_AT..)?);
    let _: u32 = results.value().ok()?;
    if results.value::<u32>() != Ok(0) {
        return None;
    }
    results.value().ok()
}
