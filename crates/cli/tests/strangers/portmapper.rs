//! Calls of the portmapper, and what it may answer to an attacker.

use comity_proto::portmap::{self, Mapping, Rpcb, TCP, UDP, procedure as ask};
use comity_proto::{nfs3, nlm};
use comity_xdr::{Encoder, Opaque};

use crate::attacks::words;
use crate::wire::{Call, bytes};

/// Number of procedures in version 4, the one with most.
const PROCEDURES: u32 = 13;

/// The procedure CALLIT of version 2; in versions 3 and 4 it is CALLIT and BCAST.
const CALLIT: u32 = 5;

/// The procedure INDIRECT of version 4.
const INDIRECT: u32 = 10;

/// Every procedure of every version, also about the victim's locks on behalf of an attacker.
pub(crate) fn all() -> Vec<Call> {
    let mapping = |protocol| Mapping { program: nfs3::PROGRAM, version: 3, protocol, port: 6 };
    let rpcb = Rpcb {
        program: nfs3::PROGRAM,
        version: 3,
        netid: Opaque(b"tcp"),
        address: Opaque(b"127.0.0.2.0.6"),
        owner: Opaque(b"superuser"),
    };
    // A call of NLM that would free the victim's locks, if it came from the server's own address.
    let mut on_behalf = Encoder::new();
    on_behalf.raw(&words(&[nlm::PROGRAM, nlm::VERSION, nlm::procedure::FREE_ALL]));
    on_behalf.opaque(&[bytes(&Opaque::<64>(b"victim")), words(&[9])].concat());
    let versions = [(2, bytes(&mapping(TCP))), (2, bytes(&mapping(UDP)))];
    let versions = versions.into_iter().chain([3, 4].map(|version| (version, bytes(&rpcb))));
    let mut calls = Vec::new();
    for (version, arguments) in versions {
        for procedure in 0..PROCEDURES {
            let arguments = match procedure {
                CALLIT | INDIRECT => on_behalf.bytes().to_vec(),
                ask::DUMP | ask::NULL => Vec::new(),
                _ => arguments.clone(),
            };
            calls.push(((portmap::PROGRAM, version, procedure), arguments));
        }
    }
    calls
}

/// The calls by which a host sees what is registered.
pub(crate) fn looks() -> [Call; 3] {
    let locks = Mapping { program: nlm::PROGRAM, version: nlm::VERSION, protocol: UDP, port: 0 };
    [
        ((portmap::PROGRAM, 2, ask::DUMP), Vec::new()),
        ((portmap::PROGRAM, 4, ask::DUMP), Vec::new()),
        ((portmap::PROGRAM, 2, ask::GETPORT), bytes(&locks)),
    ]
}

/// Checks what a host to which an export is offered is answered: it changes nothing, and nothing is
/// called on its behalf.
pub(crate) fn check(((_, version, procedure), _): &Call, reply: &[u8]) {
    let accepted = &reply[20..];
    match *procedure {
        ask::SET | ask::UNSET => assert_eq!(accepted, words(&[0, 0]), "version {version}"),
        CALLIT | INDIRECT => assert_eq!(accepted, words(&[3]), "version {version}"),
        _ => {}
    }
}
