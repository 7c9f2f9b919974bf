//! A server that lost data in a restart, although it had acknowledged them, is noticed by its
//! changed write verifier (RFC 1813, 3.3.7; RFC 8881, 18.3.3).
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

mod common;
mod served;

use comity_bench::suite::Version;
use comity_bench::targets::NfsTarget;
use common::{chosen, plan, run};
use served::{Served, forgetting};

/// The server loses data after this number of COMMITs: more than are made before the measurement.
const KEPT: usize = 30;

/// Returns whether a call is a COMMIT: in version 3 by its procedure number, in 4.1 by the
/// operation at its end, which commits all bytes of a file.
fn is_commit(call: &[u8]) -> bool {
    let word = |at: usize| call.get(at..at + 4).map(|word| word.to_vec()).unwrap_or_default();
    let commit_of_all = [&[0, 0, 0, 5][..], &[0; 12]].concat();
    match (&word(20)[..], &word(24)[..]) {
        ([0, 0, 0, 3], [0, 0, 0, 21]) => true,
        ([0, 0, 0, 4], [0, 0, 0, 1]) => call.ends_with(&commit_of_all),
        _ => false,
    }
}

#[test]
fn a_server_that_loses_what_is_not_committed_fails_the_run() {
    for version in [Version::Three, Version::FourOne] {
        let (place, output) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let address = forgetting(&Served::new(place.path()), KEPT, is_commit);
        let url = format!("nfs://{address}{}", place.path().display());
        let target = NfsTarget::open((&url, "forgetful"), version, (0, 0)).unwrap();
        let workloads = vec![chosen("lsr", &[]), chosen("postmark", &[])];
        let (ran, outcome) = run(&plan(workloads, output.path()), Box::new(target));
        let error = ran.unwrap_err();
        assert!(error.contains("restarted and lost data"), "{version}: {error}");
        assert!(outcome.workloads[0].rounds[0].complete, "{version}: the first workload is lost");
        assert_eq!(outcome.failure.unwrap().workload, "postmark");
    }
}
