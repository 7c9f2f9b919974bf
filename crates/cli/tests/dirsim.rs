//! The simulator of directory delegations beside a server with mounts that do the same.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::collections::BTreeMap;
use std::path::PathBuf;

use comity_bench::dirsim::{self, Pattern, PolicyName, Settings};

use common::run;
use common::world::{MountPoint, World};

/// Directories are never believed without a delegation, so that no time of this test changes a
/// count.
const OPTIONS: &str = ",acdirmin=0,acdirmax=0,acregmin=600,acregmax=600";

/// The operations that the simulator counts, except GETATTR, which also follows others.
const OPERATIONS: [&str; 8] = [
    "LOOKUP",
    "ACCESS",
    "GET_DIR_DELEGATION",
    "READDIR",
    "CREATE",
    "REMOVE",
    "RENAME",
    "DELEGRETURN",
];

#[test]
fn the_simulator_predicts_the_calls_of_two_mounts_within_five_percent() {
    for (pattern, rounds) in [(Pattern::Update, 3), (Pattern::Build, 3), (Pattern::Includes, 1)] {
        let Some(world) =
            World::exporting("rw,insecure,no_root_squash,dir_delegations=sole-writer:always", &[])
        else {
            return;
        };
        let mut events = pattern.trace(1, 2, rounds);
        // The events follow each other as fast as they can.
        events.iter_mut().for_each(|event| event.at_microseconds /= 1000);
        let settings = Settings {
            policy: PolicyName::Always,
            believed_microseconds: (0, 0),
            notification_delay_microseconds: Some(0),
            ..Settings::default()
        };
        dirsim::lay_out(&events, &world.place.data()).unwrap();
        world.mount(&world.cached(OPTIONS));
        let other = second_mount(&world);
        let mounts: BTreeMap<u32, PathBuf> =
            [(1, world.dir.to_path_buf()), (2, other.to_path_buf())].into();
        let count = || OPERATIONS.map(|operation| calls(&world, operation));
        let before = count();
        let replayed = dirsim::replay(&events, &mounts, &world.place.data()).unwrap();
        let measured: u64 = count().iter().zip(before).map(|(after, before)| after - before).sum();
        assert_eq!(replayed.other_outcomes, 0, "{pattern:?}");
        let predicted = dirsim::simulate(settings, &replayed.performed).calls;
        let expected =
            predicted.total() - (predicted.getattrs + predicted.recalls + predicted.notifications);
        let difference = (expected as f64 / measured as f64 - 1.0).abs();
        println!("{pattern:?}: {expected} expected, {measured} measured: {predicted:?}");
        assert!(difference <= 0.05, "{pattern:?}: {expected} expected, {measured} measured");
        drop(other);
        world.umount();
    }
}

/// The number of calls of an operation that the server has answered.
fn calls(world: &World, operation: &str) -> u64 {
    world.counted(&["operations_total", &format!("operation=\"{operation}\"")])
}

/// Mounts the export once more, with the same options and another cache.
fn second_mount(world: &World) -> MountPoint {
    let dir = MountPoint::new(world.place.path("second"));
    let options = format!("dc_root={}{OPTIONS}", world.place.path("cache.second").display());
    let mut mount = world.comity("mount");
    let said = run(mount.args(["-o", &options, &world.source_at(world.port)]).arg(&*dir));
    assert_eq!(said.code, Some(0), "{}", said.err);
    dir
}
