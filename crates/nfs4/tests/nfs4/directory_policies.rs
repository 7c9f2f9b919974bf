//! The policy that an export names decides when a directory is delegated.

use std::thread::sleep;
use std::time::Duration;

use comity_proto::nfs4::{Createtype4, Nfsstat4, operation as op};

use crate::callbacks::{client, go_to, perform};
use crate::directories::{TOP, ask, ask_with, make, plan};
use crate::notifications::{CHILD, DIR, NAMES};
use crate::world::{World, furnish, memory};

/// Time after which a request is not of the same visit any more.
const VISIT: Duration = Duration::from_millis(120);

/// Returns whether a directory is granted at the first request, at a second one, and at the next
/// one after another client has changed the directory.
fn granted_by(policy: &str) -> [bool; 3] {
    let fs = memory();
    furnish(&*fs);
    let world = World::of(plan(&fs, &format!(",dir_delegations={policy}:sole-writer")));
    let (mut holder, mut other) = (client(&world, 2, b"holder"), client(&world, 2, b"other"));
    let first = ask(&world, &mut holder, TOP).unwrap();
    sleep(VISIT);
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
    sleep(VISIT);
    [first.is_some(), true, ask(&world, &mut holder, TOP).unwrap().is_some()]
}

#[test]
fn each_policy_of_an_export_grants_as_it_says() {
    assert_eq!(granted_by("always"), [true, true, true]);
    assert_eq!(granted_by("second-ask"), [false, true, false], "it rests after a recall");
    assert_eq!(granted_by("adaptive"), [false, true, true], "nothing says that it is not worth it");
}

/// Makes files beside a holder that is notified and never looks again; returns the status of the
/// last one.
fn noticed_by(policy: &str, files: usize) -> Nfsstat4 {
    let fs = memory();
    furnish(&*fs);
    let options = format!(",dir_delegations={policy}:sole-writer");
    let world = World::answering(plan(&fs, &options));
    let (mut holder, mut other) = (client(&world, 2, b"holder"), client(&world, 2, b"other"));
    assert_eq!(ask(&world, &mut holder, TOP), Ok(None));
    // The client looks once a second, so that sixteen files take less time than eight looks.
    sleep(VISIT * 10);
    ask_with(&world, &mut holder, TOP, (NAMES, CHILD, DIR)).unwrap().unwrap();
    let statuses = (0..files).map(|number| {
        let name: &'static [u8] = format!("made {number}").into_bytes().leak();
        perform(&world, 2, &mut other, 4, |call| make(call, TOP, name, Createtype4::Fifo)).0
    });
    statuses.last().unwrap()
}

#[test]
fn the_adaptive_policy_takes_a_directory_back_after_sixteen_notifications_without_use() {
    assert_eq!(noticed_by("second-ask", 20), Nfsstat4::Ok);
    assert_eq!(noticed_by("adaptive", 16), Nfsstat4::Ok);
    assert_eq!(noticed_by("adaptive", 17), Nfsstat4::Delay);
}
