//! Hosts that no export is offered to, and calls from a wrong port.

use comity_export::{Client, HandleKey, Plan};

use comity_proto::nfs4::{
    ClientOwner4, CompoundHead, ExchangeId4args, StateProtect4a, operation as op,
};
use comity_rpc::{AuthStat, Flavor};
use comity_xdr::{Encoder, Opaque};

use crate::session::Session;
use crate::world::{World, export, memory};

/// A server with an export for one host; its peer has this address and port.
fn world(peer: &str) -> World {
    let listed = Client::parse("192.0.2.1").unwrap();
    let exports = vec![export(1, "/srv/pub", &memory(), listed)];
    World::of(Plan::new(HandleKey::new([7; 16]), exports)).coming_from(peer.parse().unwrap())
}

/// A COMPOUND of one operation, with the arguments of EXCHANGE_ID.
fn compound(minorversion: u32, number: u32) -> Vec<u8> {
    let clientowner = ClientOwner4 { verifier: *b"thislife", id: Opaque(b"victim") };
    let (flags, state_protect) = (0, StateProtect4a::None);
    let mut call = Encoder::new();
    call.value(&CompoundHead { tag: Opaque(b""), minorversion, operations: 1 });
    call.value(&number);
    call.value(&ExchangeId4args { clientowner, flags, state_protect, client_impl_id: None });
    call.bytes().to_vec()
}

#[test]
fn calls_of_an_unlisted_peer_or_from_a_wrong_port_make_no_state() {
    let listed = world("192.0.2.1:700");
    Session::open(&listed, 1);
    assert_eq!(listed.engine.census().clients, 1);
    let refused = [("192.0.2.1:40000", AuthStat::TooWeak), ("192.0.2.2:700", AuthStat::BadCred)];
    for (peer, why) in refused {
        let world = world(peer);
        let denied = [1, 1, 1, why as u32].map(u32::to_be_bytes).concat();
        for number in [op::EXCHANGE_ID, op::SETCLIENTID, op::SEQUENCE, op::PUTROOTFH] {
            for minor in 0..3 {
                let (reply, _) = world.send(&compound(minor, number));
                assert_eq!(reply[8..], denied, "operation {number} from {peer}");
            }
        }
        assert_eq!(world.engine.census().clients, 0);
    }
}

/// Earlier, such a credential stood for the user -1, so that all callers who sent one shared their
/// state.
#[test]
fn a_credential_that_cannot_be_used_makes_no_state() {
    let world = world("192.0.2.1:700");
    world.cut_credential();
    let refusal = |why: AuthStat| [1, 1, 1, why as u32].map(u32::to_be_bytes).concat();
    for minor in 0..3 {
        for number in [op::EXCHANGE_ID, op::PUTROOTFH] {
            let (reply, _) = world.send(&compound(minor, number));
            assert_eq!(reply[8..], refusal(AuthStat::BadCred), "operation {number}");
        }
    }
    world.act_under_flavor(Flavor(9));
    let (reply, _) = world.send(&compound(1, op::EXCHANGE_ID));
    assert_eq!(reply[8..], refusal(AuthStat::RejectedCred));
    assert_eq!(world.engine.census().clients, 0);
}
