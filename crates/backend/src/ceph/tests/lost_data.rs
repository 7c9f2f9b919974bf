//! Data that Ceph throws away is not acknowledged.

use std::time::{Duration, Instant};

use comity_vfs::{Fs, Status};

use super::{
    CephCluster, CephOptions, PATIENCE, cluster, look_up, make_file, open, open_with, write,
};

/// libcephfs drops what it was about to write when the cluster becomes full.
#[test]
fn data_that_is_dropped_because_the_cluster_is_full_fails_the_commit() {
    let Some(cluster) = CephCluster::start() else {
        return println!("skipped: {}", cluster::NEEDED);
    };
    let fs = open(&cluster);
    let files = ["lost", "closed"].map(|name| make_file(&fs, &fs.root(), name));
    let [lost, closed] = &files;
    cluster.command(&["tell", "osd.0", "injectfull", "full"]);
    let begun = Instant::now();
    // The library refuses writes when it knows, and writes data by itself after some seconds: there
    // has to be some data at each moment. It learns from callers who store something.
    while files.iter().all(|file| write(&fs, file, b"data").is_ok()) {
        assert!(begun.elapsed() < PATIENCE, "the cluster is not full");
        let other = make_file(&fs, &fs.root(), &begun.elapsed().as_nanos().to_string());
        let _ = write(&fs, &other, b"x").and_then(|_| fs.commit(&other));
    }
    cluster.command(&["tell", "osd.0", "injectfull", "none"]);
    assert_eq!(fs.commit(lost).map(drop), Err(Status::NoSpc));
    let reported = Instant::now();
    fs.close_files(usize::MAX);
    assert_eq!(fs.commit(closed).map(drop), Err(Status::NoSpc), "the loss outlives the open file");
    let later = reported + Duration::from_secs(90);
    assert_eq!(fs.siblings.failures().of(lost, later), Ok(()), "the close reports it once more");
}

/// The number of a client is not known, so this test has a cluster of its own, and cuts all off.
#[test]
fn a_client_that_is_cut_off_fails_and_acknowledges_nothing() {
    let Some(cluster) = CephCluster::start() else {
        return println!("skipped: {}", cluster::NEEDED);
    };
    let options = CephOptions::default();
    let fs = open_with(&cluster, "/", options.clone());
    let file = make_file(&fs, &fs.root(), "file");
    write(&fs, &file, b"data").unwrap();
    let sessions = cluster.command(&["tell", "mds.a", "session", "ls"]).stdout;
    let sessions = String::from_utf8(sessions).unwrap();
    let id = sessions.lines().find_map(|line| line.trim().strip_prefix("\"id\": ")).unwrap();
    let id = format!("id={}", id.trim_end_matches(','));
    cluster.command(&["tell", "mds.a", "session", "evict", &id]);
    let begun = Instant::now();
    while write(&fs, &file, b"more").is_ok() {
        assert!(begun.elapsed() < PATIENCE, "the client is still served");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(fs.commit(&file), Err(Status::Io));
    assert_eq!(fs.getattr(&file).map(drop), Err(Status::Io));
    assert_eq!(look_up(&fs, &fs.root(), "file").map(drop), Err(Status::Io));
    assert!(begun.elapsed() < PATIENCE, "a call hangs");
    drop(fs);
    let fs = open_with(&cluster, "/", options);
    assert_eq!(fs.getattr(&file).map(|attr| attr.links), Ok(1), "a new mount is served");
    assert_eq!(fs.commit(&file), Err(Status::Io), "the loss is remembered");
}
