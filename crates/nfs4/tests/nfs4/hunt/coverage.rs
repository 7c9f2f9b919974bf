//! Every operation of NFSv4 is sent by the hunt, or is listed here with the reason why it is not.

use std::collections::BTreeSet;

use comity_proto::nfs4::{CompoundHead, CompoundResultHead, Nfsstat4, operation as op};
use comity_xdr::{Decoder, Encoder, Opaque};

use crate::session::Session;
use crate::world::World;

/// Operations about clients, sessions and stateids, which name no file.
pub(crate) const WITHOUT_A_FILE: [u32; 15] = [
    op::DELEGPURGE,
    op::RENEW,
    op::SETCLIENTID,
    op::SETCLIENTID_CONFIRM,
    op::RELEASE_LOCKOWNER,
    op::BACKCHANNEL_CTL,
    op::BIND_CONN_TO_SESSION,
    op::EXCHANGE_ID,
    op::CREATE_SESSION,
    op::DESTROY_SESSION,
    op::FREE_STATEID,
    // SEQUENCE begins every call.
    op::SEQUENCE,
    op::TEST_STATEID,
    op::DESTROY_CLIENTID,
    op::RECLAIM_COMPLETE,
];

/// Operations that this server answers with NOTSUPP.
pub(crate) const NOT_SERVED: [u32; 6] = [
    op::OPENATTR,
    op::GETDEVICELIST,
    op::SET_SSV,
    op::WANT_DELEGATION,
    op::COPY_NOTIFY,
    op::WRITE_SAME,
];

/// Operations on files that are placed on data servers; the exports of the hunt have none.
pub(crate) const OF_PLACEMENTS: [u32; 6] = [
    op::GETDEVICEINFO,
    op::LAYOUTCOMMIT,
    op::LAYOUTGET,
    op::LAYOUTRETURN,
    op::LAYOUTERROR,
    op::LAYOUTSTATS,
];

/// Panics if an operation is neither sent nor listed as left out, or is both.
pub(super) fn assert_whole(asked: &BTreeSet<u32>) {
    let excused = WITHOUT_A_FILE.into_iter().chain(NOT_SERVED);
    let excused: BTreeSet<u32> = excused.chain(OF_PLACEMENTS).collect();
    let all: BTreeSet<u32> = (op::ACCESS..=op::REMOVEXATTR).collect();
    let expected: BTreeSet<u32> = all.difference(&excused).copied().collect();
    assert_eq!(*asked, expected, "the operations that the hunt asks for");
}

#[test]
fn operations_that_the_hunt_leaves_out_are_answered_notsupp() {
    let world = World::new();
    let mut session = Session::open(&world, 2);
    for number in NOT_SERVED {
        let mut call = Encoder::new();
        call.value(&CompoundHead { tag: Opaque(b""), minorversion: 2, operations: 2 });
        session.sequence(&mut call);
        call.value(&number);
        let (answer, _) = world.compound(call.bytes());
        let head: CompoundResultHead<'_> = Decoder::new(&answer).value().unwrap();
        assert_eq!(head.status, Nfsstat4::NotSupp, "operation {number}");
    }
}
