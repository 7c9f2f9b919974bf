//! A barrier waits for the metadata server: the size of a file is in its journal only.

use std::thread::{self, sleep};
use std::time::Duration;

use comity_vfs::{Fs, LocalLocks, RangeLock};

use super::{CephCluster, cluster, make_file, open, write};

/// Time in which a COMMIT that does not wait would have returned.
const MOMENT: Duration = Duration::from_secs(1);

#[test]
fn a_commit_waits_until_the_metadata_server_has_the_size() {
    let Some(cluster) = CephCluster::start() else {
        return println!("skipped: {}", cluster::NEEDED);
    };
    let fs = open(&cluster);
    for is_locked in [false, true] {
        let file = make_file(&fs, &fs.root(), if is_locked { "locked" } else { "grown" });
        write(&fs, &file, b"old").unwrap();
        fs.commit(&file).unwrap();
        cluster.signal_metadata_server("STOP");
        thread::scope(|scope| {
            write(&fs, &file, b"longer").unwrap();
            let lock = || fs.hold_range(&file, (0, 9), RangeLock::Exclusive);
            let lock = is_locked.then(|| scope.spawn(lock));
            sleep(MOMENT);
            let commit = scope.spawn(|| fs.commit(&file));
            sleep(MOMENT);
            let is_early = commit.is_finished();
            cluster.signal_metadata_server("CONT");
            let size = commit.join().unwrap().map(|attr| attr.map(|attr| attr.size));
            assert_eq!(size, Ok(Some(6)));
            assert_eq!(lock.map(|lock| lock.join().unwrap()), is_locked.then_some(Ok(true)));
            assert!(!is_early, "the COMMIT did not wait (a lock came before: {is_locked})");
        });
    }
}
