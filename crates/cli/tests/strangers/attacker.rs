//! The attackers and their own sessions.

use std::sync::Arc;
use std::time::Duration;

use comity_proto::nfs4::{
    ClientOwner4, CreateSession4resok, ExchangeId4args, ExchangeId4resok, Setclientid4args,
    SetclientidConfirm4, StateProtect4a, operation as op,
};
use comity_proto::{mount, nfs3, nfs4, portmap};
use comity_xdr::{Decode, Decoder, Opaque};

use crate::attacks::{self, Attack, Standing};
use crate::keys::{HOME, KEYED, Keys};
use crate::portmapper;
use crate::victim::{HOST, Known, OWNERS, USER, nobody, sequence, sequence_in, session_of};
use crate::wire::{Call, Datagrams, Operation, Source, Tls, Wire, bytes, compound, operation};

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
    /// The victim's session and the number of the attacker's last request in its second slot.
    second_slot: Option<([u8; 16], u32)>,
    /// The handle of the directory that was granted to the attacker's key.
    home: Option<Vec<u8>>,
}

/// The reply status MSG_DENIED.
const DENIED: [u8; 4] = [0, 0, 0, 1];

/// A host that no export is offered to.
const UNLISTED: [u8; 4] = [127, 0, 0, 2];

/// Most connections that an unlisted attacker makes for one call.
const TRIES: u32 = 10;

/// Values of the stride: all calls, or each seventh, among which are calls of all minor versions.
const ALL: usize = 1;
const SOME: usize = 7;

impl Attacker {
    /// One attacker of each kind. Kinds that differ little from another one make only a part of the
    /// calls.
    pub(crate) fn all(port: u16, keys: &Keys) -> Vec<Self> {
        use Standing::{Beside, Granted, Listed, Refused};
        let source = |address, low_port, uid| Source { address, low_port, uid };
        let by_key = |uid| source(KEYED, false, uid);
        let kinds = [
            (source(UNLISTED, true, USER), None, Refused, SOME),
            (source(UNLISTED, false, 0), None, Refused, SOME),
            (source(HOST, false, USER), None, Refused, ALL),
            (source([127, 0, 0, 3], true, 1000), None, Listed, ALL),
            (source(HOST, true, 3000), None, Beside, ALL),
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
        let (tls, own, second_slot, home) = (tls.cloned(), None, None, None);
        let stride = ALL;
        let mut attacker =
            Self { port, source, tls, standing, stride, wire, own, second_slot, home };
        let owner = format!("attacker {}", source.uid);
        attacker.own = attacker.introduce(owner.as_bytes()).map(|session| (session, 0));
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
                Attack::InSecondSlot(minor, operations) => {
                    self.ask_beside(known, minor, &operations);
                }
            }
        }
        if self.tls.is_none() {
            self.send_datagrams(known);
            self.ask_portmapper();
        }
    }

    /// Sends operations in the second slot of the victim's session.
    fn ask_beside(&mut self, known: &Known, minor: u32, operations: &[Operation]) {
        let Some(session) = known.session else { return };
        let (_, number) = self.second_slot.get_or_insert((session, 0));
        *number += 1;
        let first = sequence_in(1, session, *number);
        let reply = self.ask(&compound(minor, &[&[first], operations].concat()));
        // The first result is the one of SEQUENCE.
        let status = reply.get(OPERATIONS_AT + 4..OPERATIONS_AT + 8);
        assert!(!known.holds[1] || status == Some(&[0; 4]), "minor {minor}: {reply:02x?}");
    }

    /// Calls NLM, NSM and the programs that are not served by datagrams at all.
    fn send_datagrams(&mut self, known: &Known) {
        let mut server = Datagrams::to(self.port, self.source);
        let locks = attacks::of_locks(known, self.standing);
        let nulls = [(nfs3::PROGRAM, 3), (nfs4::PROGRAM, 4), (mount::PROGRAM, 3)];
        let nulls = nulls.map(|(program, version)| ((program, version, 1), Vec::new()));
        let others = attacks::of_others(self.standing);
        for call in locks.into_iter().chain(others).chain(nulls).step_by(self.stride) {
            let reply = server.ask(&call);
            self.check_datagram(&call, reply);
        }
    }

    /// Calls every procedure of the portmapper, by datagrams and by a connection.
    fn ask_portmapper(&self) {
        let mut datagrams = Datagrams::to(portmap::PORT, self.source);
        let mut wire = (!self.is_unlisted()).then(|| Wire::connect(portmap::PORT, self.source));
        for call in portmapper::all().into_iter().step_by(self.stride) {
            let by_datagram = datagrams.ask(&call);
            if let Some((_, reply)) = by_datagram.as_ref().filter(|_| !self.is_refused(&call)) {
                portmapper::check(&call, reply);
            }
            self.check_datagram(&call, by_datagram);
            let reply = match &mut wire {
                Some(wire) => wire.ask(&call).expect("the portmapper's connection"),
                None => self.ask_anew(portmap::PORT, &call),
            };
            match self.is_refused(&call) {
                true => assert_eq!(reply[8..12], DENIED, "{:?} to {:?}", call.0, self.source),
                false => portmapper::check(&call, &reply),
            }
        }
    }

    /// Checks the reply to a datagram: the sender's address may be forged, so a host that is
    /// refused gets no more bytes than it has sent.
    fn check_datagram(&self, call: &Call, reply: Option<(usize, Vec<u8>)>) {
        if let Some((sent, reply)) = reply.filter(|_| self.is_refused(call)) {
            assert_eq!(reply[8..12], DENIED, "{:?} to {:?}", call.0, self.source);
            assert!(reply.len() <= sent, "{:?} to {:?}", call.0, self.source);
        }
    }

    /// Looks up the directory that was granted to the attacker's key.
    fn go_home(&mut self, known: &Known) {
        let [root, ..] = known.directories.as_slice() else { return };
        if self.home.is_none() && self.standing == Standing::Granted {
            let place = [bytes(&Opaque::<64>(root)), bytes(&Opaque::<64>(HOME.as_bytes()))];
            let lookup = (nfs3::PROGRAM, 3, nfs3::procedure::LOOKUP);
            let reply = self.ask(&(lookup, place.concat()));
            let mut results = Decoder::new(&reply[RESULTS_AT..]);
            let is_found = results.value::<u32>() == Ok(0);
            self.home = is_found.then(|| results.opaque(64).unwrap().to_vec());
        }
    }

    /// Returns whether the attacker has found the directory that was granted to its key.
    pub(crate) const fn is_at_home(&self) -> bool {
        self.home.is_some()
    }

    /// Makes a call, which is answered whatever it is: an attacker whose calls are dropped would
    /// find nothing.
    fn ask(&mut self, call: &Call) -> Vec<u8> {
        let reply = match self.is_unlisted() {
            true => self.ask_anew(self.port, call),
            false => self.wire.ask(call).unwrap_or_else(|| {
                panic!("the connection of {:?} was closed at {call:02x?}", self.source)
            }),
        };
        if self.is_refused(call) {
            assert_eq!(reply[8..12], DENIED, "{:?} to {:?}", call.0, self.source);
        }
        reply
    }

    /// Makes a call on a new connection: the server answers an unlisted host one call a second on a
    /// connection. A closed connection keeps its place until the next second, and the places of one
    /// address are limited; without one, the attacker waits for the next second.
    fn ask_anew(&self, port: u16, call: &Call) -> Vec<u8> {
        let ask = |_| {
            let reply = Wire::connect(port, self.source).ask(call);
            if reply.is_none() {
                std::thread::sleep(Duration::from_secs(1));
            }
            reply
        };
        (0..TRIES).find_map(ask).expect("a place for a connection")
    }

    fn is_unlisted(&self) -> bool {
        self.source.address == UNLISTED
    }

    /// Returns whether the server denies a call before it reaches a program. NULL is allowed for
    /// all hosts. The programs that a mount needs first are allowed for listed hosts, whatever
    /// their port and channel.
    fn is_refused(&self, ((program, _, procedure), _): &Call) -> bool {
        let comes_before = [mount::PROGRAM, portmap::PROGRAM].contains(program);
        let is_allowed = *procedure == 0 || comes_before && !self.is_unlisted();
        self.standing == Standing::Refused && !is_allowed
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
        let Some(told) = body::<SetclientidConfirm4>(&reply) else { return false };
        let reply = self.ask(&compound(0, &[operation(op::SETCLIENTID_CONFIRM, &told)]));
        body::<()>(&reply).is_some()
    }

    /// Sends EXCHANGE_ID and CREATE_SESSION; returns the session if there is one.
    fn introduce(&mut self, owner: &[u8]) -> Option<[u8; 16]> {
        let clientowner = ClientOwner4 { verifier: *b"attacker", id: Opaque(owner) };
        let (flags, state_protect) = (0, StateProtect4a::None);
        let args = ExchangeId4args { clientowner, flags, state_protect, client_impl_id: None };
        let reply = self.ask(&compound(1, &[operation(op::EXCHANGE_ID, &args)]));
        let known: ExchangeId4resok<'_> = body(&reply)?;
        let args = session_of(known.clientid, known.sequenceid);
        let reply = self.ask(&compound(1, &[operation(op::CREATE_SESSION, &args)]));
        body::<CreateSession4resok>(&reply).map(|made| made.sessionid)
    }
}

/// The body of the first result, if its status is OK.
fn body<'r, T: Decode<'r>>(reply: &'r [u8]) -> Option<T> {
    let mut results = Decoder::new(reply.get(OPERATIONS_AT..)?);
    let _: u32 = results.value().ok()?;
    if results.value::<u32>() != Ok(0) {
        return None;
    }
    results.value().ok()
}
