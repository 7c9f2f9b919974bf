//! Every procedure of NFSv3, MOUNT and NLM is called by the hunt, or is listed here with the reason
//! why it is not.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use comity_proto::mount;
use comity_proto::nfs3::{self, procedure as nfs};
use comity_proto::nlm::{self, procedure as lock};

use crate::world::{Ground, World};

type Procedure = (u32, u32);

/// Procedures that name no file.
const WITHOUT_A_FILE: [Procedure; 4] = [
    (nfs3::PROGRAM, nfs::NULL),
    (mount::PROGRAM, mount::procedure::NULL),
    (nlm::PROGRAM, lock::NULL),
    (nlm::PROGRAM, lock::FREE_ALL),
];

/// Procedures that a host offers to the server, and numbers of no procedure: answered PROC_UNAVAIL.
const NOT_SERVED: [u32; 11] = [
    lock::GRANTED,
    lock::GRANTED_MSG,
    lock::TEST_RES,
    lock::LOCK_RES,
    lock::CANCEL_RES,
    lock::UNLOCK_RES,
    lock::GRANTED_RES,
    16,
    17,
    18,
    19,
];

const ALL: [(u32, RangeInclusive<u32>); 3] = [
    (nfs3::PROGRAM, nfs::NULL..=nfs::COMMIT),
    (mount::PROGRAM, mount::procedure::NULL..=mount::procedure::EXPORT),
    (nlm::PROGRAM, lock::NULL..=lock::FREE_ALL),
];

/// Panics if a procedure is neither called nor listed as left out, or is both.
pub(super) fn assert_whole(asked: &BTreeSet<Procedure>) {
    let excused: BTreeSet<Procedure> = WITHOUT_A_FILE.into_iter().chain(not_served()).collect();
    let expected: BTreeSet<Procedure> = all().difference(&excused).copied().collect();
    assert_eq!(*asked, expected, "the procedures that the hunt calls");
}

/// All programs with the numbers of their procedures.
pub(crate) fn all() -> BTreeSet<Procedure> {
    let numbers = |(program, numbers): (u32, RangeInclusive<u32>)| {
        numbers.map(move |number| (program, number))
    };
    ALL.into_iter().flat_map(numbers).collect()
}

/// The procedures that are answered with PROC_UNAVAIL.
pub(crate) fn not_served() -> BTreeSet<Procedure> {
    NOT_SERVED.into_iter().map(|number| (nlm::PROGRAM, number)).collect()
}

#[test]
fn procedures_that_the_hunt_leaves_out_are_unavailable() {
    const PROC_UNAVAIL: u32 = 3;
    let world = World::new(Ground::default());
    for number in NOT_SERVED {
        let reply = world.send(&world.record(nlm::PROGRAM, number, &[]));
        assert_eq!(reply.verdict, (0, PROC_UNAVAIL), "procedure {number} of NLM");
    }
}
