//! Many clients hold the delegation of one directory, and another client makes many files in it.

use std::time::{Duration, Instant};

use comity_proto::nfs4::{Createtype4, Nfsstat4, operation as op};

use crate::callbacks::{client, go_to, perform};
use crate::directories::{TOP, ask_with, make, plan};
use crate::notifications::{CHILD, DIR, NAMES};
use crate::session::Session;
use crate::world::{World, furnish, memory};

const HOLDERS: usize = 100;

const FILES: usize = 1000;

/// Longest time for all files, with all callbacks to holders and their answers. An unoptimized
/// build takes about a tenth of it on two cores.
const TIME_MAX: Duration = Duration::from_secs(120);

/// The highest growth of the memory of the process, in bytes.
const GROWTH_BYTES_MAX: usize = 64 << 20;

/// A server, clients that hold the delegation of its root directory, and another client.
fn storm(options: &str, make_world: impl FnOnce(comity_export::Plan) -> World) -> Storm {
    let fs = memory();
    furnish(&*fs);
    let world = make_world(plan(&fs, options));
    let hold = |number: usize| {
        let mut holder = client(&world, 2, format!("holder {number}").as_bytes());
        let wishes = (NAMES, CHILD, DIR);
        let granted = ask_with(&world, &mut holder, TOP, wishes).unwrap().unwrap();
        (holder, granted.stateid)
    };
    let holders = (0..HOLDERS).map(hold).collect();
    let other = client(&world, 2, b"other");
    Storm { world, holders, other }
}

struct Storm {
    world: World,
    holders: Vec<(Session, comity_proto::nfs4::Stateid4)>,
    other: Session,
}

impl Storm {
    fn create(&mut self, number: usize) -> Nfsstat4 {
        let name: &'static [u8] = format!("made {number}").into_bytes().leak();
        let say = |call: &mut comity_xdr::Encoder| make(call, TOP, name, Createtype4::Fifo);
        perform(&self.world, 2, &mut self.other, 4, say).0
    }

    fn return_all(&mut self) {
        for (holder, stateid) in &mut self.holders {
            let (status, _) = perform(&self.world, 2, holder, TOP.len() as u32 + 2, |call| {
                go_to(call, TOP);
                call.value(&op::DELEGRETURN);
                call.value(stateid);
            });
            assert_eq!(status, Nfsstat4::Ok);
        }
    }
}

/// The resident memory of this process in bytes.
fn resident_bytes() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

fn is_bounded(what: &str, storm: &mut Storm, mut work: impl FnMut(&mut Storm)) {
    let (begun, before) = (Instant::now(), resident_bytes());
    work(storm);
    let (time, growth) = (begun.elapsed(), resident_bytes().saturating_sub(before));
    println!("{what}: {time:?}, {} KiB more", growth >> 10);
    assert!(time < TIME_MAX && growth < GROWTH_BYTES_MAX, "{what}: {time:?}, {growth} bytes");
}

#[test]
fn a_thousand_files_beside_a_hundred_holders_cost_a_notification_each_and_no_recall() {
    let mut storm = storm(",dir_delegations=always:sole-writer", World::answering);
    is_bounded("notified", &mut storm, |storm| {
        (0..FILES).for_each(|number| assert_eq!(storm.create(number), Nfsstat4::Ok));
    });
    let totals = storm.world.engine.totals();
    assert_eq!(totals.directory_notices as usize, HOLDERS * FILES);
    assert_eq!(totals.directories_recalled, 0);
}

#[test]
fn a_thousand_files_cost_each_holder_one_recall_without_notifications() {
    let options = ",dir_delegations=always:sole-writer:recall-only";
    let mut storm = storm(options, World::answering);
    is_bounded("recalled", &mut storm, |storm| {
        assert_eq!(storm.create(0), Nfsstat4::Delay);
        storm.return_all();
        (0..FILES).for_each(|number| assert_eq!(storm.create(number), Nfsstat4::Ok));
    });
    let totals = storm.world.engine.totals();
    assert_eq!((totals.directories_recalled, totals.directory_notices), (HOLDERS as u64, 0));
}

/// The holders never answer, and this server cannot wait for them.
#[test]
fn silent_holders_are_recalled_after_one_notification_and_stop_further_changes() {
    let mut storm = storm(",dir_delegations=always:sole-writer", World::of);
    is_bounded("silent", &mut storm, |storm| {
        assert_eq!(storm.create(0), Nfsstat4::Ok);
        (1..FILES).for_each(|number| assert_eq!(storm.create(number), Nfsstat4::Delay));
    });
    let totals = storm.world.engine.totals();
    assert_eq!(totals.directory_notices as usize, HOLDERS);
    assert_eq!(totals.directories_recalled, HOLDERS as u64);
    storm.return_all();
    assert_eq!(storm.create(1), Nfsstat4::Ok);
}
