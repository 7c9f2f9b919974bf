//! A reply that says that data are stable comes after their barrier, or has its failure.

use std::sync::Arc;

use comity_export::{Client, HandleKey, Plan};
use comity_vfs::layers::{Faults, Layer, Verb, When};
use comity_vfs::{Fs, Status};

use crate::script::Script;
use crate::world::{World, export, furnish, memory};

/// A server whose file system fails from the n-th barrier on.
fn failing(from: u64, status: Status) -> World {
    let fs = memory();
    furnish(&*fs);
    let faults = Faults::new(1).fail(Verb::Commit, status, When::From(from));
    let fs: Arc<dyn Fs> = Arc::new(Layer::new(fs, faults));
    World::of(Plan::new(HandleKey::new([7; 16]), vec![export(1, "/pub", &fs, Client::Everybody)]))
}

fn said(world: &World, line: &str) -> Vec<String> {
    Script::new(world).line(line)
}

const FILE: &str = "PUTROOTFH; LOOKUP pub; LOOKUP file";

#[test]
fn a_failed_barrier_ends_the_reply_with_the_status_of_its_operation() {
    let world = failing(1, Status::Io);
    let line = format!("{FILE}; READ 0 5; WRITE 0 file J; GETATTR size");
    let found = said(&world, &line);
    let last = ["READ OK eof=false hello", "WRITE IO", "behind a barrier"];
    assert_eq!(found[3..], last);
}

#[test]
fn the_first_operation_whose_barrier_fails_ends_the_reply() {
    let world = failing(2, Status::NoSpc);
    let line = format!("{FILE}; WRITE 0 file J; COMMIT 0 0; GETATTR size");
    let found = said(&world, &line);
    let last = ["WRITE OK count=1 FileSync", "COMMIT NOSPC", "behind a barrier"];
    assert_eq!(found[3..], last);
}

#[test]
fn setattr_with_a_failed_barrier_returns_an_empty_bitmap() {
    let world = failing(1, Status::Delay);
    let found = said(&world, &format!("{FILE}; SETATTR mode=600; GETATTR mode"));
    assert_eq!(found[3..], ["SETATTR IO", "behind a barrier"]);
}

#[test]
fn a_write_that_is_unstable_waits_for_no_barrier() {
    let world = failing(1, Status::Io);
    let found = said(&world, &format!("{FILE}; WRITE 0 unstable J; READ 0 5"));
    assert_eq!(found[3..], ["WRITE OK count=1 Unstable", "READ OK eof=false Jello"]);
}
