//! Every file system of this crate does what an `Fs` must do.

use comity_backend::conformance::{Needs, Report, run};
use comity_backend::{Memory, MemoryOptions};
use comity_vfs::{Cred, Disk, Fs, Gid, Uid};

fn root() -> Cred<Disk> {
    Cred::new(Uid::new(0), Gid::new(0))
}

fn check(what: &str, report: &Report) {
    println!("{what}: {report}");
    assert!(report.failed.is_empty(), "{what}: {report}");
}

fn over(what: &str, fs: &dyn Fs) {
    check(what, &run(fs, &root(), Needs::ALL));
}

#[test]
fn memory() {
    over("memory", &Memory::new(MemoryOptions::default()).unwrap());
}
