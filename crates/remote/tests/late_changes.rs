//! Changes that a server finishes after the timeout of a soft mount, for a caller that retries,
//! such as a proxy.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod served;

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use comity_backend::{Memory, MemoryOptions};
use comity_remote::{MountOptions, NfsVersion};
use comity_vfs::layers::{Hook, Layer, Verb};
use comity_vfs::{Handle, Mode, Result, Status};
use served::{TestServer, TestSettings, cred, file, mode, name, options};

/// The time for which the client waits for a reply.
const PATIENCE: Duration = Duration::from_millis(300);

/// A disk on which changes of names are slow.
struct Slow;

impl Hook for Slow {
    fn around<T>(&self, verb: Verb, _: &Handle, work: impl FnOnce() -> Result<T>) -> Result<T> {
        if matches!(verb, Verb::Mkdir | Verb::Remove | Verb::Rename) {
            thread::sleep(PATIENCE * 3);
        }
        work()
    }
}

fn slow_server() -> TestServer {
    let of_disk = MemoryOptions { root_mode: Mode::new(0o777), ..Default::default() };
    let disk = Memory::new(of_disk).unwrap();
    for name in ["removed", "moved"] {
        file(&disk, name, b"");
    }
    TestServer::over(Arc::new(Layer::new(Arc::new(disk), Slow)), TestSettings::default())
}

fn impatient(version: NfsVersion) -> MountOptions {
    let versions = (version, version);
    let (patience, is_soft, late) = (PATIENCE, true, Status::Delay);
    let options = options("late");
    MountOptions { versions, patience, retries: 0, is_soft, late, ..options }
}

#[test]
fn a_change_that_has_reached_the_server_is_waited_for() {
    for version in [NfsVersion::Three, NfsVersion::FourTwo] {
        let server = slow_server();
        let mounted = server.mount(impatient(version));
        let (fs, cred) = (&mounted.fs, cred(5, 5));
        let root = fs.root();
        let made = fs.mkdir(&cred, &root, name("new"), &mode(0o755));
        assert!(made.is_ok(), "{version:?}: {made:?}");
        let removed = fs.remove(&cred, &root, name("removed"));
        assert!(removed.is_ok(), "{version:?}: {removed:?}");
        let moved = fs.rename(&cred, (&root, name("moved")), (&root, name("elsewhere")));
        assert!(moved.is_ok(), "{version:?}: {moved:?}");
    }
}
