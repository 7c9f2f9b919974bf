//! The policy that an export names decides when a directory is delegated.

use std::time::Duration;

use comity_proto::nfs4::{Createtype4, Nfsstat4, operation as op};

use crate::callbacks::{client, go_to, perform};
use crate::directories::{TOP, ask, make, plan};
use crate::world::{World, furnish, memory};

/// Whether a directory is granted at the first request, at a second one, and at the next one after
/// another client has changed the directory.
fn granted_by(policy: &str) -> [bool; 3] {
    let fs = memory();
    furnish(&*fs);
    let world = World::of(plan(&fs, &format!(",dir_delegations={policy}:sole-writer")));
    let (mut holder, mut other) = (client(&world, 2, b"holder"), client(&world, 2, b"other"));
    let first = ask(&world, &mut holder, TOP).unwrap();
    world.pass(Duration::from_secs(1));
    let second = first.or_else(|| ask(&world, &mut holder, TOP).unwrap()).unwrap();
    let mut change =
        || perform(&world, 2, &mut other, 4, |call| make(call, TOP, b"made", Createtype4::Fifo)).0;
    assert_eq!(change(), Nfsstat4::Delay);
    let (status, _) = perform(&world, 2, &mut holder, TOP.len() as u32 + 2, |call| {
        go_to(call, TOP);
        call.value(&op::DELEGRETURN);
        call.value(&second);
    });
    assert_eq!(status, Nfsstat4::Ok);
    assert_eq!(ask(&world, &mut holder, TOP), Ok(None), "the change has yet to come back");
    assert_eq!(change(), Nfsstat4::Ok);
    world.pass(Duration::from_secs(1));
    [first.is_some(), true, ask(&world, &mut holder, TOP).unwrap().is_some()]
}

#[test]
fn each_policy_of_an_export_grants_as_it_says() {
    assert_eq!(granted_by("always"), [true, true, true]);
    assert_eq!(granted_by("second-ask"), [false, true, false], "it rests after a recall");
    assert_eq!(granted_by("adaptive"), [false, true, true], "nothing says that it is not worth it");
}
